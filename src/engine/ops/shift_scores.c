#include "engine/ops/shift_scores.h"
#include <attscope/ops.h>

#include "engine/ops/attention.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_shift_scores(att_graph *graph, att_value table, int prefix, int height, int width)
{
    const att_shift_scores_attrs attrs = {.prefix = prefix, .height = height, .width = width};
    return att_emit(graph, "shift_scores", &attrs, &table, 1, NULL);
}

static att_status check_grid(const att_infer *infer)
{
    const att_shift_scores_attrs *attrs = infer->attrs;
    if (attrs->prefix < 0 || attrs->height < 1 || attrs->width < 1 ||
        att_shape_count(att_shape_of(att_shift_tokens(attrs), att_shift_tokens(attrs))) < 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "%d prefix tokens and a grid of %d x %d, must be at least 0 and 1 x 1, and not too large",
                             attrs->prefix, attrs->height, attrs->width);
    return ATT_OK;
}

static bool fits_shifts(const att_shift_scores_attrs *attrs, int64_t rows)
{
    int64_t shifts = att_shift_count(attrs);
    return rows == shifts || (attrs->prefix > 0 && rows == shifts + ATT_ATTENTION_PREFIX_SHIFTS);
}

static att_status scores_infer(att_infer *infer)
{
    const att_shift_scores_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "table", ATT_SAMPLE, 2));
    ATT_TRY(check_grid(infer));
    const int64_t *dims = infer->in[0].shape.dims;
    if (!fits_shifts(attrs, dims[0]))
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "table %s does not fit a grid of %d x %d, which has (2 x %d - 1) x (2 x %d - 1) shifts%s",
                             ATT_SHOWN(&infer->in[0]), attrs->height, attrs->width, attrs->height, attrs->width,
                             attrs->prefix > 0 ? ", and 3 numbers for prefix tokens" : "");
    int64_t tokens = att_shift_tokens(attrs);
    att_shape shape = att_shape_of(dims[1], tokens, tokens);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%lld tokens are too many", (long long)tokens);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static void scores_backward(att_backward *backward)
{
    att_shift_scores_attrs attrs = *(const att_shift_scores_attrs *)att_backward_attrs(backward);
    attrs.rows = (int32_t)att_backward_in_desc(backward, 0).shape.dims[0];
    att_rule_add_of_dy(backward, "shift_scores_grad", &attrs);
}

#define GRID(prefix_, h, w, ...) ATTRS(shift_scores, .prefix = (prefix_), .height = (h), .width = (w), __VA_ARGS__)
static const att_op_case scores_cases[] = {
    {.name = "odd", GRID(0, 3, 2, ), IN(SAMPLE(15, 3)), .gradient = true},
    {.name = "prefixes", GRID(2, 2, 3, ), IN(SAMPLE(18, 2)), .gradient = true},
    {.name = "no_numbers_of_prefixes", GRID(1, 2, 2, ), IN(SAMPLE(9, 2)), .gradient = true},
    {.name = "one_axis", GRID(0, 19, 1, ), IN(SAMPLE(37, 5))},
    {.name = "one_token", GRID(0, 1, 1, ), IN(SAMPLE(1, 2))},
    {.name = "cordonnier", GRID(0, 16, 16, ), IN(SAMPLE(961, 9)), .bench = true},
};

const att_op att_op_shift_scores = {
    .name = "shift_scores",
    .attrs_size = sizeof(att_shift_scores_attrs),
    .help = "y[h, i, j] = table[shift from token j to token i, h]",
    .infer = scores_infer,
    .backward = scores_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(scores_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_shift_scores_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 3));
    ATT_TRY(check_grid(infer));
    const int64_t *dims = infer->in[0].shape.dims;
    int64_t tokens = att_shift_tokens(attrs);
    ATT_TRY(att_rule_require_shape(infer, 0, "dy", ATT_SAMPLE, att_shape_of(dims[0], tokens, tokens)));
    if (!fits_shifts(attrs, attrs->rows))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "a table of %d rows does not fit a grid of %d x %d", attrs->rows,
                             attrs->height, attrs->width);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->rows, dims[0]));
}

static const att_op_case grad_cases[] = {
    {.name = "odd", GRID(0, 3, 2, .rows = 15), IN(SAMPLE(3, 6, 6))},
    {.name = "prefixes", GRID(2, 2, 3, .rows = 18), IN(SAMPLE(2, 8, 8))},
    {.name = "no_numbers_of_prefixes", GRID(1, 2, 2, .rows = 9), IN(SAMPLE(2, 5, 5))},
    {.name = "one_axis", GRID(0, 19, 1, .rows = 37), IN(SAMPLE(5, 19, 19))},
    {.name = "cordonnier", GRID(0, 16, 16, .rows = 961), IN(SAMPLE(9, 256, 256)), .bench = true},
};

const att_op att_op_shift_scores_grad = {
    .name = "shift_scores_grad",
    .attrs_size = sizeof(att_shift_scores_attrs),
    .help = "dtable[s, h] = sum of dy[h, i, j] over all i, j with the shift s from token j to token i",
    .infer = grad_infer,
    .flops_per_in = 1,
    ATT_CASES(grad_cases),
};
