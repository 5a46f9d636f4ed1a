#include "engine/ops/axis_terms.h"
#include <math.h>

#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { Q, ROW_TABLE, COLUMN_TABLE, IN_COUNT };
enum { ROWS, COLUMNS };
enum { GRAD_ROWS, GRAD_COLUMNS, GRAD_Q, GRAD_ROW_TABLE, GRAD_COLUMN_TABLE, GRAD_IN_COUNT };

void att_axis_terms(att_graph *graph, att_value q, att_value row_table, att_value column_table,
                    const att_axis_terms_options *options, att_attention_terms *terms)
{
    const att_axis_terms_attrs attrs = {.heads = options->heads,
                                        .width = options->width,
                                        .prefix = options->prefix,
                                        .grid_h = options->grid_h,
                                        .grid_w = options->grid_w,
                                        .scale = options->scale == 0 ? 1 : options->scale};
    att_value in[IN_COUNT] = {q, row_table, column_table}, out[2] = {ATT_NONE, ATT_NONE};
    if (att_emit(graph, "axis_terms", &attrs, in, IN_COUNT, out) == ATT_NONE)
        out[COLUMNS] = ATT_NONE;
    terms->rows = out[ROWS], terms->columns = out[COLUMNS];
}

/* first: the node's input q */
static att_status check_q(const att_infer *infer, int first)
{
    const att_axis_terms_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, first, "q", ATT_SAMPLE, 2));
    const int64_t *dims = infer->in[first].shape.dims;
    if (attrs->heads < 1 || attrs->width < 1 || dims[1] < (int64_t)attrs->heads * attrs->width)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "q %s does not hold %d heads of width %d",
                             ATT_SHOWN(&infer->in[first]), attrs->heads, attrs->width);
    if (attrs->prefix < 0 || attrs->grid_h < 1 || attrs->grid_w < 1 ||
        attrs->prefix + (int64_t)attrs->grid_h * attrs->grid_w != dims[0])
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "%lld tokens without %d prefix tokens do not fill a grid of %d x %d", (long long)dims[0],
                             attrs->prefix, attrs->grid_h, attrs->grid_w);
    if (!isfinite(attrs->scale))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "scale is %g, must be finite", attrs->scale);
    return ATT_OK;
}

static att_status check_table(const att_infer *infer, int i, const char *name, int length)
{
    ATT_TRY(att_rule_require_rank(infer, i, name, ATT_SHARED, 2));
    if (infer->in[i].shape.dims[0] != 2 * (int64_t)length - 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s must have 2 x %d - 1 rows", name, ATT_SHOWN(&infer->in[i]),
                             length);
    return ATT_OK;
}

/* first: the node's input q */
static att_status check_inputs(const att_infer *infer, int first)
{
    const att_axis_terms_attrs *attrs = infer->attrs;
    ATT_TRY(check_q(infer, first));
    ATT_TRY(check_table(infer, first + ROW_TABLE, "the table of rows", attrs->grid_h));
    ATT_TRY(check_table(infer, first + COLUMN_TABLE, "the table of columns", attrs->grid_w));
    int64_t rows = infer->in[first + ROW_TABLE].shape.dims[1], columns = infer->in[first + COLUMN_TABLE].shape.dims[1];
    if ((rows == attrs->width && columns == attrs->width) || rows + columns == attrs->width)
        return ATT_OK;
    return att_rule_fail(infer, ATT_ERR_MISMATCH,
                         "tables of %lld and %lld columns, must both have the width of a head, %d, or divide it",
                         (long long)rows, (long long)columns, attrs->width);
}

static att_status axis_terms_infer(att_infer *infer)
{
    const att_axis_terms_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(check_inputs(infer, 0));
    int64_t tokens = infer->in[Q].shape.dims[0], heads = attrs->heads;
    att_dtype dtype = infer->in[Q].dtype;
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(tokens, heads * attrs->grid_h));
    return att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(tokens, heads * attrs->grid_w));
}

static void axis_terms_backward(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, ROWS), att_backward_gradient(backward, COLUMNS),
                                   att_backward_in(backward, Q), att_backward_in(backward, ROW_TABLE),
                                   att_backward_in(backward, COLUMN_TABLE)};
    att_value out[IN_COUNT] = {ATT_NONE, ATT_NONE, ATT_NONE};
    att_emit(graph, "axis_terms_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT, out);
    att_backward_add_gradient(backward, Q, out[Q]);
    for (int i = ROW_TABLE; i <= COLUMN_TABLE; i++)
        if (att_backward_needs_gradient(backward, i))
            att_rule_add_sum(backward, i, out[i], 2);
}

/* `products` products of each query's head with the numbers of all rows, and of all columns. in: from q on */
static void cost_of(const att_desc *in, const att_axis_terms_attrs *attrs, int products, att_cost *cost)
{
    double rows = (double)attrs->grid_h * (double)in[ROW_TABLE].shape.dims[1];
    double columns = (double)attrs->grid_w * (double)in[COLUMN_TABLE].shape.dims[1];
    cost->macs = products * (double)in[Q].shape.dims[0] * attrs->heads * (rows + columns);
}

static void axis_terms_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(in, attrs, 1, cost);
}

#define TERMS(h, d, prefix_, gh, gw) \
    ATTRS(axis_terms, .heads = (h), .width = (d), .prefix = (prefix_), .grid_h = (gh), .grid_w = (gw), .scale = 0.7)
static const att_op_case axis_terms_cases[] = {
    {.name = "odd", TERMS(2, 3, 1, 2, 3), IN(SAMPLE(7, 6), SHARED(3, 3), SHARED(5, 3)), .gradient = true},
    {.name = "halves", TERMS(2, 5, 0, 3, 2), IN(SAMPLE(6, 30), SHARED(5, 2), SHARED(3, 3)), .gradient = true},
    {.name = "one_token", TERMS(1, 4, 0, 1, 1), IN(SAMPLE(1, 12), SHARED(1, 3), SHARED(1, 1))},
    {.name = "oblong", TERMS(3, 20, 2, 19, 5), IN(SAMPLE(97, 180), SHARED(37, 20), SHARED(9, 20))},
    {.name = "small", TERMS(6, 64, 1, 14, 14), IN(SAMPLE(197, 1152), SHARED(27, 64), SHARED(27, 64)), .bench = true},
};

const att_op att_op_axis_terms = {
    .name = "axis_terms",
    .attrs_size = sizeof(att_axis_terms_attrs),
    .help = "rows_iy' = scale q_i . R_(y - y'), columns_ix' = scale q_i . C_(x - x'), per head; query i at (y, x)",
    .autocast_in = 1u << Q,
    .infer = axis_terms_infer,
    .backward = axis_terms_backward,
    .cost = axis_terms_cost,
    ATT_CASES(axis_terms_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_axis_terms_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require(infer, GRAD_ROWS, "drows", ATT_SAMPLE));
    ATT_TRY(check_inputs(infer, GRAD_Q));
    int64_t tokens = infer->in[GRAD_Q].shape.dims[0], heads = attrs->heads;
    ATT_TRY(att_rule_require_shape(infer, GRAD_ROWS, "drows", ATT_SAMPLE, att_shape_of(tokens, heads * attrs->grid_h)));
    if (att_desc_present(&infer->in[GRAD_COLUMNS])) /* absent: 0 */
        ATT_TRY(att_rule_require_shape(infer, GRAD_COLUMNS, "dcolumns", ATT_SAMPLE,
                                       att_shape_of(tokens, heads * attrs->grid_w)));
    for (int i = GRAD_Q; i < GRAD_IN_COUNT; i++)
        att_rule_out(infer, infer->in[i].dtype, ATT_SAMPLE, infer->in[i].shape);
    return ATT_OK;
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(in + GRAD_Q, attrs, 2, cost);
}

#define GRAD_IN(n, rows, columns) SAMPLE(n, rows), SAMPLE(n, columns)
static const att_op_case grad_cases[] = {
    {.name = "only_rows", TERMS(1, 3, 1, 2, 3), IN(SAMPLE(7, 2), ABSENT, SAMPLE(7, 9), SHARED(3, 2), SHARED(5, 1))},
    {.name = "halves", TERMS(2, 5, 0, 3, 2), IN(GRAD_IN(6, 6, 4), SAMPLE(6, 30), SHARED(5, 2), SHARED(3, 3))},
    {.name = "one_token", TERMS(1, 4, 0, 1, 1), IN(GRAD_IN(1, 1, 1), SAMPLE(1, 4), SHARED(1, 3), SHARED(1, 1))},
    {.name = "oblong", TERMS(3, 20, 2, 19, 5), IN(GRAD_IN(97, 57, 15), SAMPLE(97, 180), SHARED(37, 20), SHARED(9, 20))},
    {.name = "small",
     TERMS(6, 64, 1, 14, 14),
     IN(GRAD_IN(197, 84, 84), SAMPLE(197, 1152), SHARED(27, 64), SHARED(27, 64)),
     .bench = true},
};

const att_op att_op_axis_terms_grad = {
    .name = "axis_terms_grad",
    .attrs_size = sizeof(att_axis_terms_attrs),
    .help =
        "dq_i = scale (sum_y' drows_iy' R_(y - y') + sum_x' dcolumns_ix' C_(x - x')); dR_s = scale sum of drows_iy' "
        "q_i over y - y' = s, dC likewise",
    .autocast_in = 1u << GRAD_Q,
    .autocast_out = 1u << 0,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};
