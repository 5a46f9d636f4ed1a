#include "engine/ops/matmul.h"
#include <math.h>

#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { A, B, IN_COUNT };

att_value att_matmul(att_graph *graph, att_value a, att_value b, bool transposed, double scale)
{
    att_matmul_attrs attrs = {.scale = scale, .b_transposed = transposed};
    att_value in[IN_COUNT] = {a, b};
    return att_emit(graph, "matmul", &attrs, in, IN_COUNT, NULL);
}

/* Rows of one matrix of the product, after a transposition. */
static int64_t rows_of(const att_desc *desc, bool transposed)
{
    return desc->shape.dims[desc->shape.rank - (transposed ? 1 : 2)];
}

static int64_t columns_of(const att_desc *desc, bool transposed)
{
    return rows_of(desc, !transposed);
}

static bool same_leading_axes(const att_shape *a, const att_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank - 2; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static att_status require_matrices(const att_infer *infer, int i, const char *name)
{
    ATT_TRY(att_rule_require(infer, i, name, ATT_SAMPLE));
    if (infer->in[i].shape.rank < 2)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s must have at least 2 axes", name,
                             ATT_SHOWN(&infer->in[i]));
    return ATT_OK;
}

static att_status matmul_infer(att_infer *infer)
{
    const att_matmul_attrs *attrs = infer->attrs;
    const att_desc *a = &infer->in[A], *b = &infer->in[B];
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(require_matrices(infer, A, "a"));
    ATT_TRY(require_matrices(infer, B, "b"));
    if (!isfinite(attrs->scale))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "scale is %g, must be a finite number", attrs->scale);
    if (!same_leading_axes(&a->shape, &b->shape) ||
        columns_of(a, attrs->a_transposed) != rows_of(b, attrs->b_transposed))
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "a %s%s and b %s%s cannot be multiplied; a must have as many columns as b has rows, "
                             "and both the same leading axes",
                             ATT_SHOWN(a), attrs->a_transposed ? " transposed" : "", ATT_SHOWN(b),
                             attrs->b_transposed ? " transposed" : "");
    att_shape shape = a->shape;
    shape.dims[shape.rank - 2] = rows_of(a, attrs->a_transposed);
    shape.dims[shape.rank - 1] = columns_of(b, attrs->b_transposed);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of a %s and b %s is too large", ATT_SHOWN(a),
                             ATT_SHOWN(b));
    return att_rule_out(infer, a->dtype, ATT_SAMPLE, shape);
}

static void add_product_gradient(att_backward *backward, int i, att_value a, bool a_transposed, att_value b,
                                 bool b_transposed)
{
    const att_matmul_attrs attrs = {((const att_matmul_attrs *)att_backward_attrs(backward))->scale, a_transposed,
                                    b_transposed};
    att_value in[IN_COUNT] = {a, b};
    att_rule_add_node(backward, i, "matmul", &attrs, in, IN_COUNT);
}

/* With A and B after transposition: dA = scale dy B', dB = scale A' dy, transposed if a or b is stored transposed. */
static void matmul_backward(att_backward *backward)
{
    const att_matmul_attrs attrs = *(const att_matmul_attrs *)att_backward_attrs(backward);
    att_value dy = att_backward_gradient(backward, 0);
    if (att_backward_needs_gradient(backward, A)) {
        att_value b = att_backward_in(backward, B);
        if (attrs.a_transposed)
            add_product_gradient(backward, A, b, attrs.b_transposed, dy, true);
        else
            add_product_gradient(backward, A, dy, false, b, !attrs.b_transposed);
    }
    if (att_backward_needs_gradient(backward, B)) {
        att_value a = att_backward_in(backward, A);
        if (attrs.b_transposed)
            add_product_gradient(backward, B, dy, true, a, attrs.a_transposed);
        else
            add_product_gradient(backward, B, a, !attrs.a_transposed, dy, false);
    }
}

static void matmul_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    bool transposed = ((const att_matmul_attrs *)attrs)->a_transposed;
    cost->macs = (double)att_shape_count(out->shape) * (double)columns_of(&in[A], transposed);
}

#define PLAIN(s) ATTRS(matmul, .scale = (s))
#define A_TRANSPOSED(s) ATTRS(matmul, .scale = (s), .a_transposed = true)
#define B_TRANSPOSED(s) ATTRS(matmul, .scale = (s), .b_transposed = true)
#define BOTH_TRANSPOSED(s) ATTRS(matmul, .scale = (s), .a_transposed = true, .b_transposed = true)
static const att_op_case matmul_cases[] = {
    {.name = "plain", PLAIN(0.7), IN(SAMPLE(2, 3, 5), SAMPLE(2, 5, 4)), .gradient = true},
    {.name = "b_transposed", B_TRANSPOSED(-1.5), IN(SAMPLE(2, 3, 5), SAMPLE(2, 4, 5)), .gradient = true},
    {.name = "a_transposed", A_TRANSPOSED(0.7), IN(SAMPLE(2, 5, 3), SAMPLE(2, 5, 4)), .gradient = true},
    {.name = "both_transposed", BOTH_TRANSPOSED(0.7), IN(SAMPLE(2, 5, 3), SAMPLE(2, 4, 5)), .gradient = true},
    {.name = "one_matrix", PLAIN(1), IN(SAMPLE(17, 33), SAMPLE(33, 19))},
    {.name = "row_by_column", PLAIN(2), IN(SAMPLE(1, 7), SAMPLE(7, 1))},
    {.name = "column_by_row", PLAIN(2), IN(SAMPLE(7, 1), SAMPLE(1, 5))},
    {.name = "five_axes", B_TRANSPOSED(0.25), IN(SAMPLE(2, 1, 3, 7, 9), SAMPLE(2, 1, 3, 6, 9))},
    {.name = "wide", PLAIN(0.5), IN(SAMPLE(2, 3, 131), SAMPLE(2, 131, 127))},
    {.name = "wide_transposed", BOTH_TRANSPOSED(0.5), IN(SAMPLE(2, 131, 3), SAMPLE(2, 127, 131))},
    {.name = "large_values", PLAIN(1e-3), IN(DRAWN(ATT_SAMPLE, 1e4, 0, 3, 5, 16), SAMPLE(3, 16, 16))},
    {.name = "tiny_scores", B_TRANSPOSED(0.125), IN(SAMPLE(3, 197, 64), SAMPLE(3, 197, 64)), .bench = true},
    {.name = "tiny_values", PLAIN(1), IN(SAMPLE(3, 197, 197), SAMPLE(3, 197, 64)), .bench = true},
    {.name = "swin_tiny_scores",
     B_TRANSPOSED(0.17677669529663687),
     IN(SAMPLE(64, 3, 49, 32), SAMPLE(64, 3, 49, 32)),
     .bench = true},
    {.name = "swin_tiny_values", PLAIN(1), IN(SAMPLE(64, 3, 49, 49), SAMPLE(64, 3, 49, 32)), .bench = true},
    {.name = "swin_tiny_values_gradient",
     A_TRANSPOSED(1),
     IN(SAMPLE(64, 3, 49, 49), SAMPLE(64, 3, 49, 32)),
     .bench = true},
};

const att_op att_op_matmul = {
    .name = "matmul",
    .attrs_size = sizeof(att_matmul_attrs),
    .help = "y = scale a b, a product for each index of the leading axes; a, b as they lie or transposed",
    .autocast_in = 3,
    .autocast_cast = 3,
    .autocast_out = 1,
    .infer = matmul_infer,
    .backward = matmul_backward,
    .cost = matmul_cost,
    ATT_CASES(matmul_cases),
};
