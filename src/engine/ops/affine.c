#include "engine/ops/activation.h"
#include "engine/ops/cases.h"
#include "engine/ops/gate.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* An affine map of rows with a matrix of the batch: the combination of a 1 x 1 convolution and the batch norm after it.
 * The matrix is [C + 1, O]; its last row is added to every product. The matrix's gradient is per sample. */

enum { X, MATRIX, GATE, RESIDUAL, IN_COUNT };
enum { DY, DATA_MATRIX, DATA_GATE, DATA_RESIDUAL, DATA_IN_COUNT };
enum { SUMS_X = 1, SUMS_MATRIX, SUMS_GATE, SUMS_RESIDUAL, SUMS_IN_COUNT };

/* Checks the matrix, which must fit rows of `inputs` elements (0: rows of any width). */
static att_status require_matrix(const att_infer *infer, int matrix, int64_t inputs)
{
    ATT_TRY(att_rule_require_rank(infer, matrix, "matrix", ATT_BATCH, 2));
    const int64_t *dims = infer->in[matrix].shape.dims;
    return att_rule_require_shape(infer, matrix, "matrix", ATT_BATCH,
                                  att_shape_of(inputs ? inputs + 1 : dims[0], dims[1]));
}

static att_status require_gate(const att_infer *infer, int gate, int64_t outputs)
{
    return att_desc_present(&infer->in[gate])
               ? att_rule_require_shape(infer, gate, "gate", ATT_SAMPLE, att_shape_of(outputs))
               : ATT_OK;
}

static att_status require_residual(const att_infer *infer, int residual, att_shape shape)
{
    return att_desc_present(&infer->in[residual])
               ? att_rule_require_shape(infer, residual, "residual", ATT_SAMPLE, shape)
               : ATT_OK;
}

static att_shape with_columns(att_shape shape, int64_t columns)
{
    shape.dims[shape.rank - 1] = columns;
    return shape;
}

/* --- affine ------------------------------------------------------------------------------------------------------- */

static att_status affine_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(require_matrix(infer, MATRIX, att_rule_columns(&infer->in[X])));
    int64_t outputs = infer->in[MATRIX].shape.dims[1];
    att_shape shape = with_columns(infer->in[X].shape, outputs);
    ATT_TRY(require_gate(infer, GATE, outputs));
    ATT_TRY(require_residual(infer, RESIDUAL, shape));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, shape);
}

static void affine_backward(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    att_value dy = att_backward_gradient(backward, 0), matrix = att_backward_in(backward, MATRIX);
    att_value gate = att_backward_in(backward, GATE), sums[2];
    if (((const att_gate_attrs *)att_backward_attrs(backward))->activation == ATT_ACT_RELU)
        dy = att_emit(graph, "relu_grad", NULL, (att_value[]){dy, att_backward_out(backward, 0)}, 2, NULL);
    if (att_backward_needs_gradient(backward, RESIDUAL))
        att_backward_add_gradient(backward, RESIDUAL, dy);
    if (att_backward_needs_gradient(backward, MATRIX) || att_backward_needs_gradient(backward, GATE)) {
        att_value in[SUMS_IN_COUNT] = {dy, att_backward_in(backward, X), matrix, gate, ATT_NONE};
        att_emit(graph, "affine_sums", NULL, in, SUMS_IN_COUNT, sums);
    }
    if (att_backward_needs_gradient(backward, MATRIX))
        att_backward_add_gradient(backward, MATRIX, sums[0]);
    if (att_backward_needs_gradient(backward, GATE))
        att_backward_add_gradient(backward, GATE, sums[1]);
    if (att_backward_needs_gradient(backward, X)) {
        att_value in[DATA_IN_COUNT] = {dy, matrix, gate, ATT_NONE};
        att_rule_add_node(backward, X, "affine_data_grad", NULL, in, DATA_IN_COUNT);
    }
}

static double elements(const att_desc *desc)
{
    return (double)att_shape_count(desc->shape);
}

static void affine_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    cost->macs = elements(&in[X]) * (double)att_rule_columns(out);
}

static bool absorb_gate(att_node *producer, const att_node *gate)
{
    enum { GATED_X, GATES, GATED_RESIDUAL };
    if (producer->in[GATE] != ATT_NONE || producer->in[RESIDUAL] != ATT_NONE || gate->in[GATED_X] != producer->out[0] ||
        gate->in[GATES] == producer->out[0])
        return false;
    producer->in[GATE] = gate->in[GATES];
    producer->in[RESIDUAL] = gate->in[GATED_RESIDUAL];
    ((att_gate_attrs *)producer->attrs)->activation = ATT_ATTRS(gate, gate)->activation;
    return true;
}

/* Absorbs a gate, a sum and a ReLU, in this order. */
static bool affine_absorb(att_node *producer, const att_node *consumer)
{
    if (ATT_ATTRS(producer, gate)->activation != ATT_ACT_NONE)
        return false;
    return consumer->op == &att_op_gate
               ? absorb_gate(producer, consumer)
               : att_rule_absorb_finish(producer, &((att_gate_attrs *)producer->attrs)->activation, consumer, RESIDUAL);
}

#define RELU ATTRS(gate, .activation = ATT_ACT_RELU)
#define MATRIX_OF(c, o) DRAWN(ATT_BATCH, 0.2, 0, (c) + 1, o)
#define ALONE(c, o, ...) IN(SAMPLE(__VA_ARGS__, c), MATRIX_OF(c, o), ABSENT, ABSENT)
#define ALL(c, o, ...) IN(SAMPLE(__VA_ARGS__, c), MATRIX_OF(c, o), SAMPLE(o), SAMPLE(__VA_ARGS__, o))
static const att_op_case affine_cases[] = {
    {.name = "odd", ALONE(7, 13, 3, 5)},
    {.name = "vector", IN(SAMPLE(16), MATRIX_OF(16, 64), ABSENT, ABSENT)},
    {.name = "everything", RELU, ALL(6, 33, 3, 5)},
    {.name = "many_rows", RELU, ALL(24, 48, 33, 31)},
    {.name = "gate", IN(SAMPLE(9, 6), MATRIX_OF(6, 33), SAMPLE(33), ABSENT)},
    {.name = "resnet164_32", RELU, ALL(16, 64, 32, 32), .bench = true},
    {.name = "resnet164_16", RELU, ALL(32, 128, 16, 16), .bench = true},
    {.name = "resnet164_8", RELU, ALL(64, 256, 8, 8), .bench = true},
    {.name = "resnet50_56", ALONE(64, 256, 56, 56), .bench = true},
};

const att_op att_op_affine = {
    .name = "affine",
    .attrs_size = sizeof(att_gate_attrs),
    .help = "y = act((x B + b) (.) gate + residual), with the matrix [B; b] of the batch",
    .flags = ATT_OP_ABSORBS_FIRST,
    .autocast_in = 1u << X | 1u << RESIDUAL,
    .autocast_out = 1,
    .autocast_promote = 1u << RESIDUAL,
    .infer = affine_infer,
    .backward = affine_backward,
    .cost = affine_cost,
    .absorb = affine_absorb,
    ATT_CASES(affine_cases),
};

/* --- affine_data_grad --------------------------------------------------------------------------------------------- */

static att_status data_grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, DATA_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, DY, "dy"));
    ATT_TRY(require_matrix(infer, DATA_MATRIX, 0));
    const int64_t *matrix = infer->in[DATA_MATRIX].shape.dims;
    att_shape shape = with_columns(infer->in[DY].shape, matrix[0] - 1);
    ATT_TRY(att_rule_require_shape(infer, DY, "dy", ATT_SAMPLE, with_columns(shape, matrix[1])));
    ATT_TRY(require_gate(infer, DATA_GATE, matrix[1]));
    ATT_TRY(require_residual(infer, DATA_RESIDUAL, shape));
    return att_rule_out(infer, infer->in[DY].dtype, ATT_SAMPLE, shape);
}

static bool data_grad_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_added(producer, consumer, DATA_RESIDUAL);
}

#define DATA(c, o, ...) IN(SAMPLE(__VA_ARGS__, o), MATRIX_OF(c, o), ABSENT, ABSENT)
#define DATA_ALL(c, o, ...) IN(SAMPLE(__VA_ARGS__, o), MATRIX_OF(c, o), SAMPLE(o), SAMPLE(__VA_ARGS__, c))
static const att_op_case data_grad_cases[] = {
    {.name = "odd", DATA(7, 13, 3, 5)},
    {.name = "vector", IN(SAMPLE(64), MATRIX_OF(16, 64), ABSENT, ABSENT)},
    {.name = "everything", DATA_ALL(6, 33, 3, 5)},
    {.name = "many_rows", DATA_ALL(24, 48, 33, 31)},
    {.name = "resnet164_32", DATA_ALL(16, 64, 32, 32), .bench = true},
    {.name = "resnet164_16", DATA_ALL(32, 128, 16, 16), .bench = true},
    {.name = "resnet164_8", DATA_ALL(64, 256, 8, 8), .bench = true},
    {.name = "resnet50_56", DATA(64, 256, 56, 56), .bench = true},
};

const att_op att_op_affine_data_grad = {
    .name = "affine_data_grad",
    .help = "dx = (dy (.) gate) B' + residual",
    .autocast_in = 1u << DY | 1u << DATA_RESIDUAL,
    .autocast_out = 1,
    .autocast_promote = 1u << DATA_RESIDUAL,
    .infer = data_grad_infer,
    .cost = affine_cost,
    .absorb = data_grad_absorb,
    ATT_CASES(data_grad_cases),
};

/* --- affine_sums -------------------------------------------------------------------------------------------------- */

static att_status sums_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, SUMS_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, DY, "dy"));
    ATT_TRY(att_rule_require_rows(infer, SUMS_X, "x"));
    ATT_TRY(require_matrix(infer, SUMS_MATRIX, att_rule_columns(&infer->in[SUMS_X])));
    int64_t outputs = infer->in[SUMS_MATRIX].shape.dims[1];
    ATT_TRY(att_rule_require_shape(infer, DY, "dy", ATT_SAMPLE, with_columns(infer->in[SUMS_X].shape, outputs)));
    ATT_TRY(require_gate(infer, SUMS_GATE, outputs));
    ATT_TRY(require_residual(infer, SUMS_RESIDUAL, infer->in[SUMS_MATRIX].shape));
    att_rule_out(infer, infer->in[DY].dtype, ATT_SAMPLE, infer->in[SUMS_MATRIX].shape);
    return att_rule_out(infer, infer->in[DY].dtype, ATT_SAMPLE, att_shape_of(outputs));
}

static void sums_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->macs = elements(&in[DY]) * (double)att_rule_columns(&in[SUMS_X]);
}

/* Absorbs the addition of another gradient of the matrix. Absorbs nothing if there is a gate: the op then also yields
 * the gate's gradient, on which the other addend may depend. */
static bool sums_absorb(att_node *producer, const att_node *consumer)
{
    return producer->in[SUMS_GATE] == ATT_NONE && att_rule_absorb_added(producer, consumer, SUMS_RESIDUAL);
}

#define SUMS(c, o, gate, ...) IN(SAMPLE(__VA_ARGS__, o), SAMPLE(__VA_ARGS__, c), MATRIX_OF(c, o), gate, ABSENT)
static const att_op_case sums_cases[] = {
    {.name = "odd", SUMS(7, 13, ABSENT, 3, 5)},
    {.name = "vector", IN(SAMPLE(64), SAMPLE(16), MATRIX_OF(16, 64), ABSENT, SAMPLE(17, 64))},
    {.name = "gate", SUMS(6, 33, SAMPLE(33), 3, 5)},
    {.name = "many_rows", SUMS(24, 48, SAMPLE(48), 33, 31)},
    {.name = "resnet164_32", SUMS(16, 64, SAMPLE(64), 32, 32), .bench = true},
    {.name = "resnet164_16", SUMS(32, 128, SAMPLE(128), 16, 16), .bench = true},
    {.name = "resnet164_8", SUMS(64, 256, SAMPLE(256), 8, 8), .bench = true},
    {.name = "resnet50_56", SUMS(64, 256, ABSENT, 56, 56), .bench = true},
};

const att_op att_op_affine_sums = {
    .name = "affine_sums",
    .help = "d[B; b] of each sample = [x 1]' (dy (.) gate) + residual; dgate = column sums of ([x 1]' dy) (.) [B; b]",
    .autocast_in = 1u << DY | 1u << SUMS_X,
    .infer = sums_infer,
    .cost = sums_cost,
    .absorb = sums_absorb,
    ATT_CASES(sums_cases),
};
