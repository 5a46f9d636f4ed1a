#include <attscope/ops.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "graph/graph.h"
#include "ops/attention.h"
#include "ops/cases.h"
#include "ops/list.h"
#include "ops/rule.h"

_Static_assert((int)ATT_ATTENTION_STATS == (int)ATT_STAT_COUNT, "the public count is that of the columns");

enum { OUT, LSE, STATS, MAP };
enum { GRAD_DO, GRAD_O, GRAD_LSE, GRAD_Q, GRAD_PLAIN = GRAD_Q + ATT_ATTENTION_OPERANDS };
enum { RELATIVE = ATT_ATTENTION_RELATIVE, ROWS = ATT_ATTENTION_ROWS, COLUMNS = ATT_ATTENTION_COLUMNS };
enum { GRAD_IN_COUNT = GRAD_Q + ATT_ATTENTION_INPUTS };

/* Width of a head of q; 0 if the columns do not divide. in: q, k, v. */
static int64_t width_of(const att_graph *graph, const att_value *in, const att_attention_attrs *attrs)
{
    att_shape shape = att_value_shape(graph, in[ATT_ATTENTION_Q]);
    int64_t heads = attrs->heads;
    if (in[ATT_ATTENTION_K] == ATT_NONE)
        heads += attrs->key_heads + (in[ATT_ATTENTION_V] == ATT_NONE ? attrs->value_heads : 0);
    return shape.rank == 2 && heads > 0 ? shape.dims[1] / heads : 0;
}

/* A node without terms has no inputs for them. */
static int inputs_of(const att_value in[ATT_ATTENTION_INPUTS])
{
    bool plain = in[RELATIVE] == ATT_NONE && in[ROWS] == ATT_NONE && in[COLUMNS] == ATT_NONE;
    return plain ? ATT_ATTENTION_OPERANDS : ATT_ATTENTION_INPUTS;
}

att_value att_attention(att_graph *graph, att_value q, att_value k, att_value v, const att_attention_options *options)
{
    att_attention_attrs attrs = {0}; /* no heads, which the shape rule refuses */
    att_value in[ATT_ATTENTION_INPUTS] = {q, k, v};
    const att_attention_terms *terms = options ? options->terms : NULL;
    if (options) {
        attrs = (att_attention_attrs){
            .heads = options->heads,
            .key_heads = options->key_heads == 0 ? options->heads : options->key_heads,
            .value_heads = options->value_heads == 0 ? options->heads : options->value_heads,
            .prefix = options->prefix,
            .grid_h = options->grid_h,
            .grid_w = options->grid_w,
            .window_h = options->window_h,
            .window_w = options->window_w,
            .shift_h = options->shift_h,
            .shift_w = options->shift_w,
            .causal = options->causal,
            .step_h = options->step_h == 0 ? 1 : options->step_h,
            .step_w = options->step_w == 0 ? 1 : options->step_w,
            .scale = options->scale,
        };
        int64_t width = width_of(graph, in, &attrs);
        if (attrs.scale == 0 && width > 0)
            attrs.scale = 1 / sqrt((double)width);
    }
    in[RELATIVE] = terms ? terms->relative : ATT_NONE;
    in[ROWS] = terms ? terms->rows : ATT_NONE;
    in[COLUMNS] = terms ? terms->columns : ATT_NONE;
    return att_emit(graph, "attention", &attrs, in, inputs_of(in), NULL);
}

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

static const char *const operand_names[] = {"q", "k", "v"};

static att_status fail_division(const att_infer *infer, const char *op, const att_desc *in)
{
    const att_attention_attrs *attrs = infer->attrs;
    char shapes[ATT_ATTENTION_OPERANDS][112] = {""};
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (att_desc_present(&in[o]))
            snprintf(shapes[o], sizeof shapes[o], "%s%s %s", o ? ", " : "", operand_names[o], ATT_SHOWN(&in[o]));
    return att_fail(infer->context, ATT_ERR_MISMATCH,
                    "%s: rows of %s%s%s do not divide into %d heads of queries, %d of keys and %d of values", op,
                    shapes[0], shapes[1], shapes[2], attrs->heads, attrs->key_heads, attrs->value_heads);
}

/* Checks the inputs q, k and v, which begin at input `first`, and divides them. */
static att_status check_operands(const att_infer *infer, const char *op, int first,
                                 att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    const att_attention_attrs *attrs = infer->attrs;
    const att_desc *in = infer->in + first;
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (o == 0 || att_desc_present(&in[o]))
            ATT_TRY(att_rule_require_rank(infer, op, first + o, operand_names[o], ATT_SAMPLE, 2));
    if (!att_attention_divide(in, attrs, operand))
        return fail_division(infer, op, in);
    if (operand[ATT_ATTENTION_K].tokens != operand[ATT_ATTENTION_V].tokens)
        return att_fail(infer->context, ATT_ERR_MISMATCH, "%s: %lld keys, but %lld values", op,
                        (long long)operand[ATT_ATTENTION_K].tokens, (long long)operand[ATT_ATTENTION_V].tokens);
    if (!isfinite(attrs->scale))
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "%s: scale is %g, must be finite", op, attrs->scale);
    return ATT_OK;
}

/* A node has either no inputs for terms or all three, of which some may be absent. */
static att_status check_count(const att_infer *infer, const char *op, int first)
{
    return att_rule_count(
        infer, op,
        first + (infer->in_count == first + ATT_ATTENTION_OPERANDS ? ATT_ATTENTION_OPERANDS : ATT_ATTENTION_INPUTS));
}

/* Whether the number of rows of the table `relative` fits the grid of the terms. */
static bool fits_shifts(const att_attention_attrs *attrs, int64_t rows)
{
    int64_t shifts = (2 * att_attention_height(attrs) - 1) * (2 * att_attention_width(attrs) - 1);
    return rows == shifts || (attrs->prefix > 0 && rows == shifts + ATT_ATTENTION_PREFIX_SHIFTS);
}

static att_status check_relative(const att_infer *infer, const char *op, int i)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, op, i, "relative", ATT_SHARED, 2));
    const int64_t *dims = infer->in[i].shape.dims;
    if (dims[1] == attrs->heads && fits_shifts(attrs, dims[0]))
        return ATT_OK;
    return att_fail(infer->context, ATT_ERR_MISMATCH,
                    "%s: relative %s does not fit %d heads and a %s of %lld x %lld, which has (2 x %lld - 1) x (2 x "
                    "%lld - 1) shifts%s",
                    op, ATT_SHOWN(&infer->in[i]), attrs->heads, attrs->window_h ? "window" : "grid",
                    (long long)att_attention_height(attrs), (long long)att_attention_width(attrs),
                    (long long)att_attention_height(attrs), (long long)att_attention_width(attrs),
                    attrs->prefix > 0 ? ", and 3 numbers for prefix tokens" : "");
}

/* Checks the terms, which follow input q at `first`; operands and grid have been checked. */
static att_status check_terms(const att_infer *infer, const char *op, int first, int64_t queries)
{
    const att_attention_attrs *attrs = infer->attrs;
    const att_desc *in = infer->in + first;
    if (infer->in_count <= first + ATT_ATTENTION_OPERANDS)
        return ATT_OK;
    bool relative = att_desc_present(&in[RELATIVE]), rows = att_desc_present(&in[ROWS]);
    if (rows != att_desc_present(&in[COLUMNS]))
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "%s: rows and columns must be given both or not at all", op);
    if ((relative || rows) && attrs->grid_w == 0)
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "%s: terms need a grid", op);
    if (rows && attrs->window_h)
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "%s: rows and columns cannot be given with windows", op);
    if (relative)
        ATT_TRY(check_relative(infer, op, first + RELATIVE));
    if (!rows)
        return ATT_OK;
    int64_t heads = attrs->heads;
    ATT_TRY(att_rule_require_shape(infer, op, first + ROWS, "rows", ATT_SAMPLE,
                                   att_shape_of(queries, heads * attrs->grid_h)));
    return att_rule_require_shape(infer, op, first + COLUMNS, "columns", ATT_SAMPLE,
                                  att_shape_of(queries, heads * attrs->grid_w));
}

static att_status check_windows(const att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    if (attrs->window_h == 0 && attrs->window_w == 0 && attrs->shift_h == 0 && attrs->shift_w == 0)
        return ATT_OK;
    if (attrs->prefix > 0 || attrs->causal || attrs->grid_w == 0)
        return att_fail(infer->context, ATT_ERR_ARGUMENT,
                        "attention: windows need a grid without prefix tokens and causality");
    if (attrs->window_h < 1 || attrs->window_w < 1 || attrs->grid_h % attrs->window_h ||
        attrs->grid_w % attrs->window_w)
        return att_fail(infer->context, ATT_ERR_MISMATCH,
                        "attention: windows of %d x %d do not divide a grid of %d x %d", attrs->window_h,
                        attrs->window_w, attrs->grid_h, attrs->grid_w);
    if (attrs->shift_h < 0 || attrs->shift_w < 0 || attrs->shift_h >= attrs->window_h ||
        attrs->shift_w >= attrs->window_w)
        return att_fail(infer->context, ATT_ERR_ARGUMENT,
                        "attention: a shift of %d and %d, must be at least 0 and below the window, %d x %d",
                        attrs->shift_h, attrs->shift_w, attrs->window_h, attrs->window_w);
    return ATT_OK;
}

/* Keeps sums of distances within the range of f32. */
static const double MOST_STEP = 1e9;

/* tokens: of the keys */
static att_status check_grid(const att_infer *infer, int64_t queries, int64_t tokens)
{
    const att_attention_attrs *attrs = infer->attrs;
    int64_t grid = (int64_t)attrs->grid_h * attrs->grid_w;
    if (attrs->prefix < 0 || attrs->prefix > tokens)
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "attention: %d prefix tokens, but only %lld tokens",
                        attrs->prefix, (long long)tokens);
    if (attrs->causal && queries != tokens)
        return att_fail(infer->context, ATT_ERR_MISMATCH,
                        "attention: causality needs as many queries as keys, not %lld and %lld", (long long)queries,
                        (long long)tokens);
    if (attrs->grid_h == 0 && attrs->grid_w == 0)
        return ATT_OK;
    if (queries != tokens)
        return att_fail(infer->context, ATT_ERR_MISMATCH,
                        "attention: a grid needs as many queries as keys, not %lld and %lld", (long long)queries,
                        (long long)tokens);
    if (attrs->grid_h < 1 || attrs->grid_w < 1 || grid != tokens - attrs->prefix)
        return att_fail(infer->context, ATT_ERR_MISMATCH,
                        "attention: %lld tokens without %d prefix tokens do not fill a grid of %d x %d",
                        (long long)tokens, attrs->prefix, attrs->grid_h, attrs->grid_w);
    if (!(attrs->step_h > 0 && attrs->step_h <= MOST_STEP && attrs->step_w > 0 && attrs->step_w <= MOST_STEP))
        return att_fail(infer->context, ATT_ERR_ARGUMENT,
                        "attention: the steps of the grid are %g and %g, must be above 0 and at most %g", attrs->step_h,
                        attrs->step_w, MOST_STEP);
    return ATT_OK;
}

static att_status attention_infer(att_infer *infer)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    ATT_TRY(check_count(infer, "attention", 0));
    ATT_TRY(check_operands(infer, "attention", 0, operand));
    int64_t queries = operand[ATT_ATTENTION_Q].tokens, keys = operand[ATT_ATTENTION_K].tokens;
    int64_t heads = operand[ATT_ATTENTION_Q].heads;
    ATT_TRY(check_grid(infer, queries, keys));
    ATT_TRY(check_windows(infer));
    ATT_TRY(check_terms(infer, "attention", 0, queries));
    att_dtype dtype = infer->in[0].dtype;
    int64_t seen = keys / att_attention_windows(infer->attrs);
    if (att_shape_count(att_shape_of(heads, queries, seen)) < 0)
        return att_fail(infer->context, ATT_ERR_MISMATCH, "attention: %lld tokens are too many", (long long)keys);
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(queries, heads * operand[ATT_ATTENTION_V].width));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, queries));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, queries, ATT_STAT_COUNT));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, queries, seen));
    return ATT_OK;
}

/* Output i of the gradient is that of the i-th present input; that of `relative` is one of a sample. */
static void attention_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, OUT), att_backward_out(backward, OUT),
                                   att_backward_out(backward, LSE)},
              out[ATT_ATTENTION_INPUTS];
    for (int i = 0; i < ATT_ATTENTION_INPUTS; i++)
        in[GRAD_Q + i] = att_backward_in(backward, i);
    int inputs = inputs_of(in + GRAD_Q);
    att_emit(att_backward_graph(backward), "attention_grad", att_backward_attrs(backward), in, GRAD_Q + inputs, out);
    for (int i = 0, present = 0; i < inputs; i++) {
        if (in[GRAD_Q + i] == ATT_NONE)
            continue;
        if (i == RELATIVE && att_backward_needs_gradient(backward, i))
            att_rule_add_sum(backward, i, out[present], 2);
        else if (i != RELATIVE)
            att_backward_add_gradient(backward, i, out[present]);
        present++;
    }
}

/* `of_keys` products of N x M x d and `of_values` of N x M x e per head, and about 10 operations per score. */
static void cost_of(const att_desc *in, const att_attention_attrs *attrs, int of_keys, int of_values, att_cost *cost)
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

static void attention_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(in, attrs, 1, 1, cost);
}

#define STEPPED(h, d, prefix_, gh, gw, sh, sw)                                                             \
    ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(h), .prefix = (prefix_), .grid_h = (gh), .grid_w = (gw), \
                   .scale = (d), .step_h = (sh), .step_w = (sw))
#define HEADS(h, d, prefix_, gh, gw) STEPPED(h, d, prefix_, gh, gw, 1, 1)
#define GROUPED(h, kh, vh, scale_, prefix_)                                                              \
    ATT_CASE_ATTRS(attention, .heads = (h), .key_heads = (kh), .value_heads = (vh), .prefix = (prefix_), \
                   .scale = (scale_))
#define GRID(h, prefix_, gh, gw, ...)                                                                      \
    ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(h), .prefix = (prefix_), .grid_h = (gh), .grid_w = (gw), \
                   .scale = 0.5, .step_h = 1, .step_w = 1, __VA_ARGS__)
#define PACKED(...)                                                    \
    {                                                                  \
        ATT_CASE_SAMPLE(__VA_ARGS__), ATT_CASE_ABSENT, ATT_CASE_ABSENT \
    }
#define PACKED_TERMS(...) ATT_CASE_SAMPLE(__VA_ARGS__), ATT_CASE_ABSENT, ATT_CASE_ABSENT
static const att_op_case attention_cases[] = {
    {.name = "odd", HEADS(2, 0.6, 1, 2, 2), .in = PACKED(5, 18), .in_count = ATT_ATTENTION_OPERANDS, .gradient = true},
    {.name = "one_token", HEADS(1, 0.4, 0, 1, 1), .in = PACKED(1, 21), .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "no_grid",
     HEADS(1, 0.4, 0, 0, 0),
     .in = PACKED(7, 21),
     .in_count = ATT_ATTENTION_OPERANDS,
     .gradient = true},
    {.name = "two_prefixes", HEADS(3, 0.5, 2, 3, 5), .in = PACKED(17, 45), .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "oblong_patches",
     STEPPED(2, 0.5, 1, 5, 3, 8, 16),
     .in = PACKED(16, 30),
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "oblong_patches_on_a_wide_grid",
     STEPPED(1, 0.5, 1, 2, 40, 2, 0.5),
     .in = PACKED(81, 12),
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "only_prefixes", HEADS(1, 0.5, 3, 0, 0), .in = PACKED(3, 12), .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "cross",
     GROUPED(2, 2, 2, 0.5, 1),
     .in = {ATT_CASE_SAMPLE(5, 6), ATT_CASE_SAMPLE(7, 6), ATT_CASE_SAMPLE(7, 10)},
     .in_count = ATT_ATTENTION_OPERANDS,
     .gradient = true},
    {.name = "one_query",
     GROUPED(3, 3, 3, 0.5, 0),
     .in = {ATT_CASE_SAMPLE(1, 27), ATT_CASE_SAMPLE(40, 54), ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "grouped",
     GROUPED(4, 2, 2, 0.6, 1),
     .in = PACKED(5, 24),
     .in_count = ATT_ATTENTION_OPERANDS,
     .gradient = true},
    {.name = "shared_values",
     GROUPED(4, 2, 1, 0.6, 0),
     .in = {ATT_CASE_SAMPLE(6, 12), ATT_CASE_SAMPLE(6, 13), ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_OPERANDS,
     .gradient = true},
    {.name = "shared_keys",
     GROUPED(6, 2, 3, 0.5, 2),
     .in = {ATT_CASE_SAMPLE(70, 24), ATT_CASE_ABSENT, ATT_CASE_SAMPLE(70, 6)},
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "many_grouped_keys",
     GROUPED(4, 1, 2, 0.35, 0),
     .in = {ATT_CASE_SAMPLE(5, 16), ATT_CASE_SAMPLE(1101, 4), ATT_CASE_SAMPLE(1101, 6)},
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "relative",
     GRID(2, 0, 2, 3, ),
     .in = {PACKED_TERMS(6, 18), ATT_CASE_SHARED(15, 2), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS,
     .gradient = true},
    {.name = "relative_prefixes",
     GRID(2, 2, 3, 2, ),
     .in = {PACKED_TERMS(8, 18), ATT_CASE_SHARED(18, 2), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS,
     .gradient = true},
    {.name = "relative_no_prefixes",
     GRID(1, 1, 5, 19, ),
     .in = {PACKED_TERMS(96, 21), ATT_CASE_SHARED(333, 1), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS},
    {.name = "relative_grouped",
     ATT_CASE_ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 3, .grid_w = 4, .scale = 0.5,
                    .step_h = 1, .step_w = 1),
     .in = {ATT_CASE_SAMPLE(12, 12), ATT_CASE_SAMPLE(12, 13), ATT_CASE_ABSENT, ATT_CASE_SHARED(35, 4), ATT_CASE_ABSENT,
            ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS,
     .gradient = true},
    {.name = "rows_and_columns",
     GRID(2, 1, 2, 3, ),
     .in = {PACKED_TERMS(7, 18), ATT_CASE_ABSENT, ATT_CASE_SAMPLE(7, 4), ATT_CASE_SAMPLE(7, 6)},
     .in_count = ATT_ATTENTION_INPUTS,
     .gradient = true},
    {.name = "all_terms",
     GRID(2, 0, 3, 2, ),
     .in = {PACKED_TERMS(6, 18), ATT_CASE_SHARED(15, 2), ATT_CASE_SAMPLE(6, 6), ATT_CASE_SAMPLE(6, 4)},
     .in_count = ATT_ATTENTION_INPUTS,
     .gradient = true},
    {.name = "terms_of_many_tokens",
     GRID(1, 2, 61, 17, ),
     .in = {PACKED_TERMS(1039, 12), ATT_CASE_SHARED(3996, 1), ATT_CASE_SAMPLE(1039, 61), ATT_CASE_SAMPLE(1039, 17)},
     .in_count = ATT_ATTENTION_INPUTS},
    {.name = "windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3),
     .in = PACKED(24, 18),
     .in_count = ATT_ATTENTION_OPERANDS,
     .gradient = true},
    {.name = "shifted_windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3, .shift_h = 1, .shift_w = 1),
     .in = {PACKED_TERMS(24, 18), ATT_CASE_SHARED(15, 2), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS,
     .gradient = true},
    {.name = "grouped_windows",
     ATT_CASE_ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 6, .grid_w = 10, .scale = 0.5,
                    .step_h = 4, .step_w = 2, .window_h = 3, .window_w = 5, .shift_h = 2, .shift_w = 1),
     .in = {ATT_CASE_SAMPLE(60, 12), ATT_CASE_SAMPLE(60, 13), ATT_CASE_ABSENT, ATT_CASE_SHARED(45, 4), ATT_CASE_ABSENT,
            ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS},
    {.name = "causal",
     ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(2), .scale = 0.5, .causal = 1),
     .in = PACKED(6, 18),
     .in_count = ATT_ATTENTION_OPERANDS,
     .gradient = true},
    {.name = "causal_many_tokens",
     ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(1), .scale = 0.5, .causal = 1),
     .in = PACKED(1035, 12),
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "sharp",
     HEADS(2, 0.5, 1, 4, 4),
     .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 20, 0, 17, 24), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "uniform",
     HEADS(2, 0.5, 1, 4, 4),
     .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 0, 0.5, 17, 24), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "many_tokens", HEADS(1, 0.35, 1, 20, 30), .in = PACKED(601, 24), .in_count = ATT_ATTENTION_OPERANDS},
    {.name = "demo", HEADS(4, 0.25, 1, 7, 7), .in = PACKED(50, 192), .in_count = ATT_ATTENTION_OPERANDS, .bench = true},
    {.name = "tiny",
     HEADS(3, 0.125, 1, 14, 14),
     .in = PACKED(197, 576),
     .in_count = ATT_ATTENTION_OPERANDS,
     .bench = true},
    {.name = "small",
     HEADS(6, 0.125, 1, 14, 14),
     .in = PACKED(197, 1152),
     .in_count = ATT_ATTENTION_OPERANDS,
     .bench = true},
    {.name = "small_relative",
     HEADS(6, 0.125, 1, 14, 14),
     .in = {PACKED_TERMS(197, 1152), ATT_CASE_SHARED(732, 6), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS,
     .bench = true},
    {.name = "small_rows_and_columns",
     HEADS(6, 0.125, 1, 14, 14),
     .in = {PACKED_TERMS(197, 1152), ATT_CASE_ABSENT, ATT_CASE_SAMPLE(197, 84), ATT_CASE_SAMPLE(197, 84)},
     .in_count = ATT_ATTENTION_INPUTS,
     .bench = true},
    {.name = "swin_tiny",
     ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(6), .grid_h = 28, .grid_w = 28, .scale = 0.177, .step_h = 1,
                    .step_w = 1, .window_h = 7, .window_w = 7, .shift_h = 3, .shift_w = 3),
     .in = {PACKED_TERMS(784, 576), ATT_CASE_SHARED(169, 6), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = ATT_ATTENTION_INPUTS,
     .bench = true},
};

const att_op att_op_attention = {
    .name = "attention",
    .attrs_size = sizeof(att_attention_attrs),
    .help = "o_i = sum_j a_ij v_j, a_i = softmax_j(scale q_i . k_j + t_ij), per head",
    .autocast_in = 1u << ATT_ATTENTION_Q | 1u << ATT_ATTENTION_K | 1u << ATT_ATTENTION_V,
    .autocast_out = 1,
    .infer = attention_infer,
    .backward = attention_backward,
    .cost = attention_cost,
    ATT_CASES(attention_cases),
};

static att_status grad_infer(att_infer *infer)
{
    static const char op[] = "attention_grad";
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    ATT_TRY(check_count(infer, op, GRAD_Q));
    ATT_TRY(att_rule_require(infer, op, GRAD_DO, "do", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, op, GRAD_O, "o", ATT_SAMPLE, GRAD_DO));
    ATT_TRY(att_rule_require(infer, op, GRAD_LSE, "lse", ATT_SAMPLE));
    ATT_TRY(check_operands(infer, op, GRAD_Q, operand));
    const att_desc *in = infer->in;
    int64_t queries = operand[ATT_ATTENTION_Q].tokens, heads = operand[ATT_ATTENTION_Q].heads;
    if (!att_shape_equal(in[GRAD_DO].shape, att_shape_of(queries, heads * operand[ATT_ATTENTION_V].width)) ||
        !att_shape_equal(in[GRAD_LSE].shape, att_shape_of(heads, queries)))
        return att_fail(infer->context, ATT_ERR_MISMATCH, "%s: do %s and lse %s do not fit q %s with %lld heads", op,
                        ATT_SHOWN(&in[GRAD_DO]), ATT_SHOWN(&in[GRAD_LSE]), ATT_SHOWN(&in[GRAD_Q]), (long long)heads);
    ATT_TRY(check_terms(infer, op, GRAD_Q, queries));
    for (int i = GRAD_Q; i < infer->in_count; i++)
        if (att_desc_present(&in[i]))
            att_rule_out(infer, in[i].dtype, ATT_SAMPLE, in[i].shape);
    return ATT_OK;
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(in + GRAD_Q, attrs, 3, 2, cost);
}

/* o and lse are drawn rather than computed: the formula does not require that the rows of exp(s - lse) sum to 1. lse is
 * near the logarithm of the number of tokens, as in real networks. */
#define GRAD_OF(n, h, e, lse) \
    ATT_CASE_SAMPLE(n, (h) * (e)), ATT_CASE_SAMPLE(n, (h) * (e)), ATT_CASE_DRAWN(ATT_SAMPLE, 0.3, lse, h, n)
#define GRAD_IN(n, h, d, lse) GRAD_OF(n, h, d, lse), ATT_CASE_SAMPLE(n, 3 * (h) * (d)), ATT_CASE_ABSENT, ATT_CASE_ABSENT
static const att_op_case grad_cases[] = {
    {.name = "odd", HEADS(2, 0.6, 1, 2, 2), .in = {GRAD_IN(5, 2, 3, 2)}, .in_count = GRAD_PLAIN},
    {.name = "one_token", HEADS(1, 0.4, 0, 1, 1), .in = {GRAD_IN(1, 1, 7, 0)}, .in_count = GRAD_PLAIN},
    {.name = "two_prefixes", HEADS(3, 0.5, 2, 3, 5), .in = {GRAD_IN(17, 3, 5, 3)}, .in_count = GRAD_PLAIN},
    {.name = "cross",
     GROUPED(2, 2, 2, 0.5, 0),
     .in = {GRAD_OF(5, 2, 5, 2), ATT_CASE_SAMPLE(5, 6), ATT_CASE_SAMPLE(7, 6), ATT_CASE_SAMPLE(7, 10)},
     .in_count = GRAD_PLAIN},
    {.name = "grouped",
     GROUPED(4, 2, 2, 0.6, 0),
     .in = {GRAD_OF(5, 4, 3, 2), ATT_CASE_SAMPLE(5, 24), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_PLAIN},
    {.name = "shared_values",
     GROUPED(4, 2, 1, 0.6, 0),
     .in = {GRAD_OF(6, 4, 7, 2), ATT_CASE_SAMPLE(6, 12), ATT_CASE_SAMPLE(6, 13), ATT_CASE_ABSENT},
     .in_count = GRAD_PLAIN},
    {.name = "shared_keys",
     GROUPED(6, 2, 3, 0.5, 0),
     .in = {GRAD_OF(70, 6, 2, 4), ATT_CASE_SAMPLE(70, 24), ATT_CASE_ABSENT, ATT_CASE_SAMPLE(70, 6)},
     .in_count = GRAD_PLAIN},
    {.name = "many_grouped_keys",
     GROUPED(4, 1, 2, 0.35, 0),
     .in = {GRAD_OF(5, 4, 3, 7), ATT_CASE_SAMPLE(5, 16), ATT_CASE_SAMPLE(1101, 4), ATT_CASE_SAMPLE(1101, 6)},
     .in_count = GRAD_PLAIN},
    {.name = "relative_prefixes",
     GRID(2, 2, 3, 2, ),
     .in = {GRAD_IN(8, 2, 3, 2), ATT_CASE_SHARED(18, 2), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_IN_COUNT},
    {.name = "relative_grouped",
     ATT_CASE_ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 3, .grid_w = 4, .scale = 0.5,
                    .step_h = 1, .step_w = 1),
     .in = {GRAD_OF(12, 4, 7, 2), ATT_CASE_SAMPLE(12, 12), ATT_CASE_SAMPLE(12, 13), ATT_CASE_ABSENT,
            ATT_CASE_SHARED(35, 4), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_IN_COUNT},
    {.name = "terms_of_many_tokens",
     GRID(1, 2, 31, 17, ),
     .in = {GRAD_IN(529, 1, 4, 6), ATT_CASE_SHARED(2016, 1), ATT_CASE_SAMPLE(529, 31), ATT_CASE_SAMPLE(529, 17)},
     .in_count = GRAD_IN_COUNT},
    {.name = "shifted_windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3, .shift_h = 1, .shift_w = 1),
     .in = {GRAD_IN(24, 2, 3, 2), ATT_CASE_SHARED(15, 2), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_IN_COUNT},
    {.name = "grouped_windows",
     ATT_CASE_ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 6, .grid_w = 10, .scale = 0.5,
                    .step_h = 4, .step_w = 2, .window_h = 3, .window_w = 5, .shift_h = 2, .shift_w = 1),
     .in = {GRAD_OF(60, 4, 7, 2), ATT_CASE_SAMPLE(60, 12), ATT_CASE_SAMPLE(60, 13), ATT_CASE_ABSENT,
            ATT_CASE_SHARED(45, 4), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_IN_COUNT},
    {.name = "causal_many_tokens",
     ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(1), .scale = 0.5, .causal = 1),
     .in = {GRAD_IN(530, 1, 4, 6)},
     .in_count = GRAD_PLAIN},
    {.name = "many_tokens", HEADS(1, 0.35, 1, 20, 30), .in = {GRAD_IN(601, 1, 8, 6.5)}, .in_count = GRAD_PLAIN},
    {.name = "demo", HEADS(4, 0.25, 1, 7, 7), .in = {GRAD_IN(50, 4, 16, 4)}, .in_count = GRAD_PLAIN, .bench = true},
    {.name = "tiny",
     HEADS(3, 0.125, 1, 14, 14),
     .in = {GRAD_IN(197, 3, 64, 5.5)},
     .in_count = GRAD_PLAIN,
     .bench = true},
    {.name = "small",
     HEADS(6, 0.125, 1, 14, 14),
     .in = {GRAD_IN(197, 6, 64, 5.5)},
     .in_count = GRAD_PLAIN,
     .bench = true},
    {.name = "small_relative",
     HEADS(6, 0.125, 1, 14, 14),
     .in = {GRAD_IN(197, 6, 64, 5.5), ATT_CASE_SHARED(732, 6), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_IN_COUNT,
     .bench = true},
    {.name = "small_rows_and_columns",
     HEADS(6, 0.125, 1, 14, 14),
     .in = {GRAD_IN(197, 6, 64, 5.5), ATT_CASE_ABSENT, ATT_CASE_SAMPLE(197, 84), ATT_CASE_SAMPLE(197, 84)},
     .in_count = GRAD_IN_COUNT,
     .bench = true},
    {.name = "swin_tiny",
     ATT_CASE_ATTRS(attention, ATT_ATTENTION_HEADS(6), .grid_h = 28, .grid_w = 28, .scale = 0.177, .step_h = 1,
                    .step_w = 1, .window_h = 7, .window_w = 7, .shift_h = 3, .shift_w = 3),
     .in = {GRAD_IN(784, 6, 32, 4), ATT_CASE_SHARED(169, 6), ATT_CASE_ABSENT, ATT_CASE_ABSENT},
     .in_count = GRAD_IN_COUNT,
     .bench = true},
};

const att_op att_op_attention_grad = {
    .name = "attention_grad",
    .attrs_size = sizeof(att_attention_attrs),
    .help =
        "dv_j = sum_i a_ij do_i; ds_ij = a_ij (do_i . v_j - do_i . o_i); dq_i = scale sum_j ds_ij k_j; "
        "dk_j = scale sum_i ds_ij q_i; a_ij = exp(scale q_i . k_j + t_ij - lse_i); dt_ij = ds_ij",
    .autocast_in = 1u << GRAD_DO | 1u << GRAD_O | 7u << GRAD_Q,
    .autocast_out = 7,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};

static bool is_output(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return true;
    return false;
}

/* A probe of attention nodes: the suffix of its name, and the function that returns the value to observe. */
typedef struct attention_probe {
    const char *name;
    att_value (*value)(att_graph *graph, const att_node *node);
} attention_probe;

static att_value stats_of(att_graph *graph, const att_node *node)
{
    (void)graph;
    return node->out[STATS];
}

static att_value map_of(att_graph *graph, const att_node *node)
{
    (void)graph;
    return node->out[MAP];
}

static att_value summary_of(att_graph *graph, const att_node *node)
{
    att_graph_scope(graph, node->scope);
    return att_attention_summary(graph, node->out[STATS], ATT_ATTRS(node, attention)->prefix);
}

static const attention_probe stats = {"stats", stats_of}, map = {"map", map_of}, summary = {"summary", summary_of};

static void add_probe(att_graph *graph, att_node node, const attention_probe *probe)
{
    att_text name = {.context = graph->context};
    att_text_append(&name, "%s.%s", node.scope, probe->name);
    if (name.failed)
        att_graph_fail(graph, att_fail_memory(graph->context, name.length, "the name of an output"));
    else if (!is_output(graph, name.data))
        att_graph_probe(graph, name.data, probe->value(graph, &node));
    att_text_free(&name);
}

static att_status add_probes(att_graph *graph, const char *pattern, const attention_probe *probe)
{
    ATT_TRY(graph->status);
    bool found = false;
    int count = graph->nodes.count;
    for (int i = 0; i < count; i++) {
        att_node node = graph->nodes.items[i];
        if (node.op != &att_op_attention || !att_text_matches(pattern, node.scope))
            continue;
        found = true;
        add_probe(graph, node, probe);
    }
    if (!found)
        return att_fail(graph->context, ATT_ERR_NOT_FOUND, "no attention layer matches \"%s\"", pattern);
    return graph->status;
}

att_status att_graph_probe_attention_stats(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &stats);
}

att_status att_graph_probe_attention_map(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &map);
}

att_status att_graph_probe_attention_summary(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &summary);
}
