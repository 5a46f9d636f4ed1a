#include "engine/ops/attention_rule.h"

#include <math.h>
#include <stdio.h>

#include "engine/graph/graph.h"
#include "engine/ops/rule.h"

enum { RELATIVE = ATT_ATTENTION_RELATIVE, ROWS = ATT_ATTENTION_ROWS, COLUMNS = ATT_ATTENTION_COLUMNS };
enum { KEYS = ATT_ATTENTION_KEYS };

att_attention_token att_attention_token_at(const att_attention_attrs *attrs, int64_t window, int64_t i)
{
    if (!attrs->window_h)
        return (att_attention_token){.index = i};
    int64_t across = attrs->grid_w / attrs->window_w;
    int64_t y = window / across * attrs->window_h + i / attrs->window_w + attrs->shift_h;
    int64_t x = window % across * attrs->window_w + i % attrs->window_w + attrs->shift_w;
    bool below = y >= attrs->grid_h, right = x >= attrs->grid_w; /* rolled over the edge */
    return (att_attention_token){.index = (y % attrs->grid_h) * attrs->grid_w + x % attrs->grid_w,
                                 .region = 2 * below + right};
}

/* Sets the inputs and heads of the operands. */
static bool find_heads(const att_desc *in, const att_attention_attrs *attrs, att_attention_operand *operand)
{
    const int64_t heads[] = {attrs->heads, attrs->key_heads, attrs->value_heads};
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++) {
        if (heads[o] < 1 || heads[ATT_ATTENTION_Q] % heads[o])
            return false;
        operand[o].heads = heads[o];
        operand[o].input = o == 0 || att_desc_present(&in[o]) ? o : operand[o - 1].input;
    }
    return true;
}

/* Columns of the input of operand o that none of the operands before it takes. */
static int64_t columns_left(const att_desc *in, const att_attention_operand *operand, int o)
{
    int64_t left = in[operand[o].input].shape.dims[1];
    for (int before = 0; before < o; before++)
        if (operand[before].input == operand[o].input)
            left -= operand[before].heads * operand[before].width;
    return left;
}

/* Operands that share the input of q have the width of q. */
static int64_t width_of_q(const att_desc *in, const att_attention_operand *operand)
{
    int64_t heads = 0;
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        heads += operand[o].input == ATT_ATTENTION_Q ? operand[o].heads : 0;
    return in[ATT_ATTENTION_Q].shape.dims[1] / heads;
}

bool att_attention_divide(const att_desc in[ATT_ATTENTION_OPERANDS], const att_attention_attrs *attrs,
                          att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    if (!find_heads(in, attrs, operand))
        return false;
    operand[ATT_ATTENTION_Q].width = operand[ATT_ATTENTION_K].width = width_of_q(in, operand);
    operand[ATT_ATTENTION_V].width = columns_left(in, operand, ATT_ATTENTION_V) / operand[ATT_ATTENTION_V].heads;
    bool filled = true;
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++) {
        const att_shape *shape = &in[operand[o].input].shape;
        bool is_last = o + 1 == ATT_ATTENTION_OPERANDS || operand[o + 1].input != operand[o].input;
        int64_t left = columns_left(in, operand, o), taken = operand[o].heads * operand[o].width;
        operand[o].tokens = shape->dims[0];
        operand[o].stride = shape->dims[1];
        operand[o].offset = shape->dims[1] - left;
        filled = filled && taken > 0 && (is_last ? taken == left : taken < left);
    }
    return filled && operand[ATT_ATTENTION_V].width > 0;
}

void att_attention_operands(const att_graph *graph, const att_node *node,
                            att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    att_desc in[ATT_ATTENTION_OPERANDS];
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        in[o] = att_graph_desc(graph, node->in[o]);
    att_attention_divide(in, node->attrs, operand); /* succeeds: the shape rule accepted the node */
}

static const char *const operand_names[] = {"q", "k", "v"};

static att_status fail_division(const att_infer *infer, const att_desc *in)
{
    const att_attention_attrs *attrs = infer->attrs;
    char shapes[ATT_ATTENTION_OPERANDS][112] = {""};
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (att_desc_present(&in[o]))
            snprintf(shapes[o], sizeof shapes[o], "%s%s %s", o ? ", " : "", operand_names[o], ATT_SHOWN(&in[o]));
    return att_rule_fail(infer, ATT_ERR_MISMATCH,
                         "rows of %s%s%s do not divide into %d heads of queries, %d of keys and %d of values",
                         shapes[0], shapes[1], shapes[2], attrs->heads, attrs->key_heads, attrs->value_heads);
}

att_status att_attention_check_operands(const att_infer *infer, int first,
                                        att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    const att_attention_attrs *attrs = infer->attrs;
    const att_desc *in = infer->in + first;
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (o == 0 || att_desc_present(&in[o]))
            ATT_TRY(att_rule_require_rank(infer, first + o, operand_names[o], ATT_SAMPLE, 2));
    if (!att_attention_divide(in, attrs, operand))
        return fail_division(infer, in);
    if (operand[ATT_ATTENTION_K].tokens != operand[ATT_ATTENTION_V].tokens)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%lld keys, but %lld values",
                             (long long)operand[ATT_ATTENTION_K].tokens, (long long)operand[ATT_ATTENTION_V].tokens);
    if (!isfinite(attrs->scale))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "scale is %g, must be finite", attrs->scale);
    return ATT_OK;
}

att_status att_attention_check_count(const att_infer *infer, int first)
{
    int count = infer->in_count - first;
    bool fits = count == ATT_ATTENTION_OPERANDS || count == ATT_ATTENTION_MOST_INPUTS;
    return fits ? ATT_OK : att_rule_count(infer, first + ATT_ATTENTION_INPUTS);
}

att_status att_attention_check_drop_rate(att_context *context, const att_attention_attrs *attrs)
{
    if (!(attrs->drop_rate >= 0 && attrs->drop_rate < 1))
        return att_fail(context, ATT_ERR_ARGUMENT, "attention: drop_rate is %g, must be in [0, 1)", attrs->drop_rate);
    return ATT_OK;
}

bool att_attention_fits_shifts(const att_attention_attrs *attrs, att_shape relative)
{
    int64_t shifts = (2 * att_attention_height(attrs) - 1) * (2 * att_attention_width(attrs) - 1);
    int64_t rows = relative.dims[0];
    return relative.dims[1] == attrs->heads &&
           (rows == shifts || (attrs->prefix > 0 && rows == shifts + ATT_ATTENTION_PREFIX_SHIFTS));
}

static att_status check_relative(const att_infer *infer, int i)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, i, "relative", ATT_SHARED, 2));
    if (att_attention_fits_shifts(attrs, infer->in[i].shape))
        return ATT_OK;
    return att_rule_fail(infer, ATT_ERR_MISMATCH,
                         "relative %s does not fit %d heads and a %s of %lld x %lld, which has (2 x %lld - 1) x (2 x "
                         "%lld - 1) shifts%s",
                         ATT_SHOWN(&infer->in[i]), attrs->heads, attrs->window_h ? "window" : "grid",
                         (long long)att_attention_height(attrs), (long long)att_attention_width(attrs),
                         (long long)att_attention_height(attrs), (long long)att_attention_width(attrs),
                         attrs->prefix > 0 ? ", and 3 numbers for prefix tokens" : "");
}

static att_status check_axes(const att_infer *infer, int first, int64_t queries)
{
    const att_attention_attrs *attrs = infer->attrs;
    int64_t heads = attrs->heads;
    if (attrs->window_h)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "rows and columns cannot be given with windows");
    ATT_TRY(
        att_rule_require_shape(infer, first + ROWS, "rows", ATT_SAMPLE, att_shape_of(queries, heads * attrs->grid_h)));
    return att_rule_require_shape(infer, first + COLUMNS, "columns", ATT_SAMPLE,
                                  att_shape_of(queries, heads * attrs->grid_w));
}

static att_status check_keys(const att_infer *infer, int first, int64_t keys)
{
    if (infer->in_count <= first + KEYS)
        return ATT_OK;
    if (((const att_attention_attrs *)infer->attrs)->window_h)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "keys cannot be given with windows");
    return att_rule_require_shape(infer, first + KEYS, "keys", ATT_SAMPLE, att_shape_of(keys));
}

att_status att_attention_check_terms(const att_infer *infer, int first,
                                     const att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    const att_attention_attrs *attrs = infer->attrs;
    const att_desc *in = infer->in + first;
    if (infer->in_count <= first + ATT_ATTENTION_OPERANDS)
        return ATT_OK;
    bool relative = att_desc_present(&in[RELATIVE]), rows = att_desc_present(&in[ROWS]);
    if (rows != att_desc_present(&in[COLUMNS]))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "rows and columns must be given both or not at all");
    if ((relative || rows) && attrs->grid_w == 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "terms need a grid");
    if (relative)
        ATT_TRY(check_relative(infer, first + RELATIVE));
    if (rows)
        ATT_TRY(check_axes(infer, first, operand[ATT_ATTENTION_Q].tokens));
    return check_keys(infer, first, operand[ATT_ATTENTION_K].tokens);
}

void att_attention_cost(const att_desc *in, const att_attention_attrs *attrs, int of_keys, int of_values,
                        att_cost *cost)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    if (!att_attention_divide(in, attrs, operand))
        return; /* refused by the shape rule */
    double keys = (double)operand[ATT_ATTENTION_K].tokens / (double)att_attention_windows(attrs);
    double scores = (double)operand[ATT_ATTENTION_Q].tokens * keys * attrs->heads;
    cost->macs =
        scores * (double)(of_keys * operand[ATT_ATTENTION_Q].width + of_values * operand[ATT_ATTENTION_V].width);
    cost->flops = 2 * cost->macs + 10 * scores;
}
