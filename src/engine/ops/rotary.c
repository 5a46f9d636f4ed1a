#include "engine/ops/rotary.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, TABLE, IN_COUNT };
enum { GRAD_DY, GRAD_TABLE, GRAD_X, GRAD_IN_COUNT };

att_value att_rotary(att_graph *graph, att_value x, att_value table, const att_rotary_options *options)
{
    att_rotary_attrs attrs = {.heads = options->heads, .prefix = options->prefix, .halves = options->halves};
    att_value in[IN_COUNT] = {x, table};
    return att_emit(graph, "rotary", &attrs, in, IN_COUNT, NULL);
}

static att_status check_table(const att_infer *infer)
{
    const att_desc *x = &infer->in[X], *table = &infer->in[TABLE];
    const att_rotary_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require(infer, TABLE, "table", ATT_SHARED));
    if (table->shape.rank != 2 && table->shape.rank != 3)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "table %s must have 2 or 3 axes", ATT_SHOWN(table));
    att_rotary_shape shape = att_rotary_shape_of(x, table);
    if (shape.width % 2)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the last axis of table %s must be even", ATT_SHOWN(table));
    if (attrs->prefix < 0 || table->shape.dims[0] != shape.tokens - attrs->prefix)
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "table %s must have a row for each token of x %s but the first %d", ATT_SHOWN(table),
                             ATT_SHOWN(x), (int)attrs->prefix);
    if (attrs->heads < 1 || attrs->heads > shape.columns / shape.width)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d heads of table %s do not fit into the rows of x %s",
                             (int)attrs->heads, ATT_SHOWN(table), ATT_SHOWN(x));
    if (attrs->heads % shape.entries)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d heads must be a multiple of the %lld heads of table %s",
                             (int)attrs->heads, (long long)shape.entries, ATT_SHOWN(table));
    return ATT_OK;
}

static att_status rotary_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rank(infer, X, "x", ATT_SAMPLE, 2));
    ATT_TRY(check_table(infer));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

/* x is read for the gradient of the table only. */
static void rotary_backward(att_backward *backward)
{
    bool learned = att_backward_needs_gradient(backward, TABLE);
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, TABLE),
                                   learned ? att_backward_in(backward, X) : ATT_NONE};
    att_rule_add_outputs(backward, "rotary_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT, TABLE + 1);
}

/* Elements of x that are turned. */
static double turned(const att_desc *table, const void *attrs)
{
    int64_t width = att_rule_columns(table);
    return (double)table->shape.dims[0] * (double)width * ((const att_rotary_attrs *)attrs)->heads;
}

static void rotary_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost->flops = 3 * turned(&in[TABLE], attrs);
}

#define HEADS(heads_, prefix_) ATTRS(rotary, .heads = (heads_), .prefix = (prefix_))
#define HALVES(heads_, prefix_) ATTRS(rotary, .heads = (heads_), .prefix = (prefix_), .halves = 1)
static const att_op_case rotary_cases[] = {
    {.name = "learned_halves", HALVES(2, 0), IN(SAMPLE(3, 14), SHARED(3, 2, 6)), .gradient = true},
    {.name = "learned", HEADS(4, 1), IN(SAMPLE(4, 24), SHARED(3, 2, 4)), .gradient = true},
    {.name = "packed", HEADS(4, 1), IN(SAMPLE(5, 24), SHARED(4, 4)), .gradient = true},
    {.name = "packed_halves", HALVES(4, 1), IN(SAMPLE(5, 38), SHARED(4, 6)), .gradient = true},
    {.name = "one_pair", HEADS(1, 0), IN(SAMPLE(1, 2), SHARED(1, 2))},
    {.name = "wide", HEADS(2, 2), IN(SAMPLE(7, 200), SHARED(5, 70))},
    {.name = "wide_halves", HALVES(2, 2), IN(SAMPLE(7, 200), SHARED(5, 70))},
    {.name = "wide_learned", HEADS(6, 0), IN(SAMPLE(7, 500), SHARED(7, 3, 72))},
    {.name = "wide_learned_halves", HALVES(6, 0), IN(SAMPLE(7, 500), SHARED(7, 3, 72))},
    {.name = "small", HEADS(12, 1), IN(SAMPLE(197, 1152), SHARED(196, 64)), .bench = true},
    {.name = "small_halves", HALVES(12, 1), IN(SAMPLE(197, 1152), SHARED(196, 64)), .bench = true},
    {.name = "small_learned", HEADS(12, 1), IN(SAMPLE(197, 1152), SHARED(196, 6, 64)), .bench = true},
};

const att_op att_op_rotary = {
    .name = "rotary",
    .help = "pairs of channels of the first heads of x, turned by the angles of a table",
    .attrs_size = sizeof(att_rotary_attrs),
    .infer = rotary_infer,
    .backward = rotary_backward,
    .cost = rotary_cost,
    .autocast_in = 1 << X,
    .autocast_out = 1,
    ATT_CASES(rotary_cases),
};

/* Without x there is no gradient of the table. */
static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require_rank(infer, GRAD_DY, "dy", ATT_SAMPLE, 2));
    ATT_TRY(check_table(infer));
    const att_desc *dy = &infer->in[GRAD_DY], *table = &infer->in[GRAD_TABLE];
    att_rule_out(infer, dy->dtype, ATT_SAMPLE, dy->shape);
    if (!att_desc_present(&infer->in[GRAD_X]))
        return ATT_OK;
    ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    return att_rule_out(infer, dy->dtype, ATT_SUMMED, table->shape);
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    double count = turned(&in[GRAD_TABLE], attrs);
    cost->flops = (att_desc_present(&in[GRAD_X]) ? 7 : 3) * count;
}

#define LEARNED(n, c, ...) IN(SAMPLE(n, c), __VA_ARGS__, SAMPLE(n, c))
#define FIXED(n, c, ...) IN(SAMPLE(n, c), __VA_ARGS__, ABSENT)
static const att_op_case grad_cases[] = {
    {.name = "learned_halves", HALVES(2, 0), LEARNED(3, 14, SHARED(3, 2, 6))},
    {.name = "learned", HEADS(4, 1), LEARNED(4, 24, SHARED(3, 2, 4))},
    {.name = "packed", HEADS(4, 1), FIXED(5, 24, SHARED(4, 4))},
    {.name = "wide_halves", HALVES(2, 2), FIXED(7, 200, SHARED(5, 70))},
    {.name = "wide_learned", HEADS(6, 0), LEARNED(7, 500, SHARED(7, 3, 72))},
    {.name = "wide_learned_halves", HALVES(6, 1), LEARNED(7, 500, SHARED(6, 3, 72))},
    {.name = "small", HEADS(12, 1), FIXED(197, 1152, SHARED(196, 64)), .bench = true},
    {.name = "small_learned", HEADS(12, 1), LEARNED(197, 1152, SHARED(196, 6, 64)), .bench = true},
};

const att_op att_op_rotary_grad = {
    .name = "rotary_grad",
    .help = "dx = dy turned back; dtable, if x is given",
    .attrs_size = sizeof(att_rotary_attrs),
    .infer = grad_infer,
    .cost = grad_cost,
    .autocast_in = 1 << GRAD_DY | 1 << GRAD_X,
    .autocast_out = 1,
    ATT_CASES(grad_cases),
};
