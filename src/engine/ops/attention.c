#include <attscope/ops.h>

#include <math.h>

#include "engine/graph/graph.h"
#include "engine/ops/attention_cases.h"
#include "engine/ops/attention_rule.h"
#include "engine/ops/drop.h"
#include "engine/ops/list.h"
#include "engine/ops/mixing.h"
#include "engine/ops/rule.h"

_Static_assert((int)ATT_ATTENTION_STATS == (int)ATT_STAT_COUNT, "the public count is that of the columns");

enum { RELATIVE = ATT_ATTENTION_RELATIVE, ROWS = ATT_ATTENTION_ROWS, COLUMNS = ATT_ATTENTION_COLUMNS };
enum { KEYS = ATT_ATTENTION_KEYS };
enum { OUT, LSE };

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
static int inputs_of(const att_value in[ATT_ATTENTION_MOST_INPUTS])
{
    if (in[KEYS] != ATT_NONE)
        return ATT_ATTENTION_MOST_INPUTS;
    bool plain = in[RELATIVE] == ATT_NONE && in[ROWS] == ATT_NONE && in[COLUMNS] == ATT_NONE;
    return plain ? ATT_ATTENTION_OPERANDS : ATT_ATTENTION_INPUTS;
}

att_attention_terms att_attention_no_terms(void)
{
    return (att_attention_terms){ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE};
}

/* in: q, k, v. The attributes of a node without options have no heads, which the shape rule refuses. */
static att_attention_attrs attrs_of(const att_graph *graph, const att_value *in, const att_attention_options *options)
{
    if (!options)
        return (att_attention_attrs){0};
    att_attention_attrs attrs = {
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
        .drop_rate = options->drop_rate,
        .drop_stream = options->drop_rate == 0 ? 0 : att_drop_next_stream(graph),
    };
    int64_t width = width_of(graph, in, &attrs);
    if (attrs.scale == 0 && width > 0)
        attrs.scale = 1 / sqrt((double)width);
    return attrs;
}

att_value att_attention(att_graph *graph, att_value q, att_value k, att_value v, const att_attention_options *options)
{
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    att_value in[ATT_ATTENTION_MOST_INPUTS] = {q, k, v};
    const att_attention_attrs attrs = attrs_of(graph, in, options);
    const att_attention_terms terms = options && options->terms ? *options->terms : att_attention_no_terms();
    if ((terms.row_shifts == ATT_NONE) != (terms.column_shifts == ATT_NONE))
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                              "attention: row_shifts and column_shifts must be given both or not at "
                                              "all"));
    if (q == ATT_NONE && k == ATT_NONE && v != ATT_NONE)
        return att_mixing_attention(graph, v, &attrs, &terms);
    in[RELATIVE] = terms.row_shifts == ATT_NONE ? terms.relative : att_join_shifts(graph, &attrs, &terms);
    in[ROWS] = terms.rows;
    in[COLUMNS] = terms.columns;
    in[KEYS] = terms.keys;
    return att_emit(graph, "attention", &attrs, in, inputs_of(in), NULL);
}

static att_status check_windows(const att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    if (attrs->window_h == 0 && attrs->window_w == 0 && attrs->shift_h == 0 && attrs->shift_w == 0)
        return ATT_OK;
    if (attrs->prefix > 0 || attrs->causal || attrs->grid_w == 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "windows need a grid without prefix tokens and causality");
    if (attrs->window_h < 1 || attrs->window_w < 1 || attrs->grid_h % attrs->window_h ||
        attrs->grid_w % attrs->window_w)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "windows of %d x %d do not divide a grid of %d x %d",
                             attrs->window_h, attrs->window_w, attrs->grid_h, attrs->grid_w);
    if (attrs->shift_h < 0 || attrs->shift_w < 0 || attrs->shift_h >= attrs->window_h ||
        attrs->shift_w >= attrs->window_w)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "a shift of %d and %d, must be at least 0 and below the window, %d x %d", attrs->shift_h,
                             attrs->shift_w, attrs->window_h, attrs->window_w);
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
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d prefix tokens, but only %lld tokens", attrs->prefix,
                             (long long)tokens);
    if (attrs->causal && queries != tokens)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "causality needs as many queries as keys, not %lld and %lld",
                             (long long)queries, (long long)tokens);
    if (attrs->grid_h == 0 && attrs->grid_w == 0)
        return ATT_OK;
    if (queries != tokens)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "a grid needs as many queries as keys, not %lld and %lld",
                             (long long)queries, (long long)tokens);
    if (attrs->grid_h < 1 || attrs->grid_w < 1 || grid != tokens - attrs->prefix)
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "%lld tokens without %d prefix tokens do not fill a grid of %d x %d", (long long)tokens,
                             attrs->prefix, attrs->grid_h, attrs->grid_w);
    if (!(attrs->step_h > 0 && attrs->step_h <= MOST_STEP && attrs->step_w > 0 && attrs->step_w <= MOST_STEP))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "the steps of the grid are %g and %g, must be above 0 and at most %g", attrs->step_h,
                             attrs->step_w, MOST_STEP);
    return ATT_OK;
}

static att_status attention_infer(att_infer *infer)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    ATT_TRY(att_attention_check_drop_rate(infer->context, infer->attrs));
    ATT_TRY(att_attention_check_count(infer, 0));
    ATT_TRY(att_attention_check_operands(infer, 0, operand));
    int64_t queries = operand[ATT_ATTENTION_Q].tokens, keys = operand[ATT_ATTENTION_K].tokens;
    int64_t heads = operand[ATT_ATTENTION_Q].heads;
    ATT_TRY(check_grid(infer, queries, keys));
    ATT_TRY(check_windows(infer));
    ATT_TRY(att_attention_check_terms(infer, 0, operand));
    att_dtype dtype = infer->in[0].dtype;
    int64_t seen = keys / att_attention_windows(infer->attrs);
    if (att_shape_count(att_shape_of(heads, queries, seen)) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%lld tokens are too many", (long long)keys);
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(queries, heads * operand[ATT_ATTENTION_V].width));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, queries));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, queries, ATT_STAT_COUNT));
    return att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, queries, seen));
}

/* Output i of the gradient is that of the i-th present input; that of `relative` is one of a sample. The terms of keys
 * have none. The norms of the gradient of scores, the last output, are for instruments only. */
static void attention_backward(att_backward *backward)
{
    enum { BEFORE_Q = 3 };
    att_value in[BEFORE_Q + ATT_ATTENTION_MOST_INPUTS] = {att_backward_gradient(backward, OUT),
                                                          att_backward_out(backward, OUT),
                                                          att_backward_out(backward, LSE)},
                            out[ATT_ATTENTION_INPUTS + 1];
    att_graph *graph = att_backward_graph(backward);
    for (int i = 0; i < ATT_ATTENTION_MOST_INPUTS; i++)
        in[BEFORE_Q + i] = att_backward_in(backward, i);
    if (att_backward_needs_gradient(backward, KEYS))
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_UNSUPPORTED,
                                       "attention: the terms of keys are a mask, which has no gradient"));
    int inputs = inputs_of(in + BEFORE_Q);
    att_emit(graph, "attention_grad", att_backward_attrs(backward), in, BEFORE_Q + inputs, out);
    for (int i = 0, present = 0; i < inputs && i < ATT_ATTENTION_INPUTS; i++) {
        if (in[BEFORE_Q + i] == ATT_NONE)
            continue;
        if (i == RELATIVE && att_backward_needs_gradient(backward, i))
            att_rule_add_sum(backward, i, out[present], 2);
        else if (i != RELATIVE)
            att_backward_add_gradient(backward, i, out[present]);
        present++;
    }
}

static att_value attention_in_training(att_graph *graph, const att_node *node)
{
    att_attention_attrs attrs = *ATT_ATTRS(node, attention);
    if (attrs.drop_rate == 0 || attrs.drops)
        return ATT_NONE;
    attrs.drops = true;
    return att_emit(graph, "attention", &attrs, node->in, node->in_count, NULL);
}

static void attention_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    att_attention_cost(in, attrs, 1, 1, cost);
}

static const att_op_case attention_cases[] = {
    {.name = "odd", HEADS(2, 0.6, 1, 2, 2, ), IN(PACKED(5, 18)), .gradient = true},
    {.name = "one_token", HEADS(1, 0.4, 0, 1, 1, ), IN(PACKED(1, 21))},
    {.name = "no_grid", HEADS(1, 0.4, 0, 0, 0, ), IN(PACKED(7, 21)), .gradient = true},
    {.name = "two_prefixes", HEADS(3, 0.5, 2, 3, 5, ), IN(PACKED(17, 45))},
    {.name = "oblong_patches", STEPPED(2, 0.5, 1, 5, 3, 8, 16, ), IN(PACKED(16, 30))},
    {.name = "oblong_patches_on_a_wide_grid", STEPPED(1, 0.5, 1, 2, 40, 2, 0.5, ), IN(PACKED(81, 12))},
    {.name = "only_prefixes", HEADS(1, 0.5, 3, 0, 0, ), IN(PACKED(3, 12))},
    {.name = "cross", GROUPED(2, 2, 2, 0.5, 1, ), IN(SAMPLE(5, 6), SAMPLE(7, 6), SAMPLE(7, 10)), .gradient = true},
    {.name = "one_query", GROUPED(3, 3, 3, 0.5, 0, ), IN(SAMPLE(1, 27), SAMPLE(40, 54), ABSENT)},
    {.name = "grouped", GROUPED(4, 2, 2, 0.6, 1, ), IN(PACKED(5, 24)), .gradient = true},
    {.name = "shared_values", GROUPED(4, 2, 1, 0.6, 0, ), IN(SAMPLE(6, 12), SAMPLE(6, 13), ABSENT), .gradient = true},
    {.name = "shared_keys", GROUPED(6, 2, 3, 0.5, 2, ), IN(SAMPLE(70, 24), ABSENT, SAMPLE(70, 6))},
    {.name = "many_grouped_keys", GROUPED(4, 1, 2, 0.35, 0, ), IN(SAMPLE(5, 16), SAMPLE(1101, 4), SAMPLE(1101, 6))},
    {.name = "relative", GRID(2, 0, 2, 3, ), IN(PACKED(6, 18), SHARED(15, 2), ABSENT, ABSENT), .gradient = true},
    {.name = "relative_prefixes",
     GRID(2, 2, 3, 2, ),
     IN(PACKED(8, 18), SHARED(18, 2), ABSENT, ABSENT),
     .gradient = true},
    {.name = "relative_no_prefixes", GRID(1, 1, 5, 19, ), IN(PACKED(96, 21), SHARED(333, 1), ABSENT, ABSENT)},
    {.name = "relative_grouped",
     ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 3, .grid_w = 4, .scale = 0.5, .step_h = 1,
           .step_w = 1),
     IN(SAMPLE(12, 12), SAMPLE(12, 13), ABSENT, SHARED(35, 4), ABSENT, ABSENT),
     .gradient = true},
    {.name = "rows_and_columns",
     GRID(2, 1, 2, 3, ),
     IN(PACKED(7, 18), ABSENT, SAMPLE(7, 4), SAMPLE(7, 6)),
     .gradient = true},
    {.name = "all_terms",
     GRID(2, 0, 3, 2, ),
     IN(PACKED(6, 18), SHARED(15, 2), SAMPLE(6, 6), SAMPLE(6, 4)),
     .gradient = true},
    {.name = "terms_of_many_tokens",
     GRID(1, 2, 61, 17, ),
     IN(PACKED(1039, 12), SHARED(3996, 1), SAMPLE(1039, 61), SAMPLE(1039, 17))},
    {.name = "windows", GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3), IN(PACKED(24, 18)), .gradient = true},
    {.name = "shifted_windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3, .shift_h = 1, .shift_w = 1),
     IN(PACKED(24, 18), SHARED(15, 2), ABSENT, ABSENT),
     .gradient = true},
    {.name = "grouped_windows",
     ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 6, .grid_w = 10, .scale = 0.5,
           .step_h = 4, .step_w = 2, .window_h = 3, .window_w = 5, .shift_h = 2, .shift_w = 1),
     IN(SAMPLE(60, 12), SAMPLE(60, 13), ABSENT, SHARED(45, 4), ABSENT, ABSENT)},
    {.name = "windows_of_many_tokens",
     GRID(1, 0, 6, 400, .window_h = 3, .window_w = 400, .shift_h = 1, .shift_w = 390),
     IN(PACKED(2400, 12))},
    {.name = "causal",
     ATTRS(attention, ATT_ATTENTION_HEADS(2), .scale = 0.5, .causal = 1),
     IN(PACKED(6, 18)),
     .gradient = true},
    {.name = "causal_many_tokens",
     ATTRS(attention, ATT_ATTENTION_HEADS(1), .scale = 0.5, .causal = 1),
     IN(PACKED(1035, 12))},
    {.name = "keys", GROUPED(4, 2, 1, 0.6, 0, ), IN(SAMPLE(5, 12), SAMPLE(7, 6), SAMPLE(7, 5), NO_TERMS, SAMPLE(7))},
    {.name = "keys_and_terms",
     GRID(2, 2, 3, 2, .causal = 1),
     IN(PACKED(8, 18), SHARED(18, 2), SAMPLE(8, 6), SAMPLE(8, 4), SAMPLE(8))},
    {.name = "many_keys",
     GROUPED(1, 1, 1, 0.35, 0, ),
     IN(SAMPLE(3, 4), SAMPLE(1101, 4), SAMPLE(1101, 6), NO_TERMS, SAMPLE(1101))},
    {.name = "no_keys",
     GROUPED(2, 2, 2, 0.6, 0, ),
     IN(SAMPLE(5, 6), SAMPLE(37, 6), SAMPLE(37, 6), NO_TERMS, NO_KEYS(37))},
    {.name = "drop", HEADS(2, 0.6, 1, 2, 2, DROPS(0.4)), IN(PACKED(5, 18)), .gradient = true},
    {.name = "drop_many_keys",
     GROUPED(4, 1, 2, 0.35, 0, DROPS(0.1)),
     IN(SAMPLE(5, 16), SAMPLE(1101, 4), SAMPLE(1101, 6))},
    {.name = "drop_windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3, .shift_h = 1, .shift_w = 1, DROPS(0.5)),
     IN(PACKED(24, 18), SHARED(15, 2), ABSENT, ABSENT),
     .gradient = true},
    {.name = "drop_all_terms",
     GRID(2, 0, 3, 2, DROPS(0.3)),
     IN(PACKED(6, 18), SHARED(15, 2), SAMPLE(6, 6), SAMPLE(6, 4)),
     .gradient = true},
    {.name = "sharp", HEADS(2, 0.5, 1, 4, 4, ), IN(DRAWN(ATT_SAMPLE, 20, 0, 17, 24), ABSENT, ABSENT)},
    {.name = "uniform", HEADS(2, 0.5, 1, 4, 4, ), IN(DRAWN(ATT_SAMPLE, 0, 0.5, 17, 24), ABSENT, ABSENT)},
    {.name = "many_tokens", HEADS(1, 0.35, 1, 20, 30, ), IN(PACKED(601, 24))},
    {.name = "demo", HEADS(4, 0.25, 1, 7, 7, ), IN(PACKED(50, 192)), .bench = true},
    {.name = "tiny", HEADS(3, 0.125, 1, 14, 14, ), IN(PACKED(197, 576)), .bench = true},
    {.name = "small", HEADS(6, 0.125, 1, 14, 14, ), IN(PACKED(197, 1152)), .bench = true},
    {.name = "small_relative",
     HEADS(6, 0.125, 1, 14, 14, ),
     IN(PACKED(197, 1152), SHARED(732, 6), ABSENT, ABSENT),
     .bench = true},
    {.name = "small_rows_and_columns",
     HEADS(6, 0.125, 1, 14, 14, ),
     IN(PACKED(197, 1152), ABSENT, SAMPLE(197, 84), SAMPLE(197, 84)),
     .bench = true},
    {.name = "small_drop", HEADS(6, 0.125, 1, 14, 14, DROPS(0.1)), IN(PACKED(197, 1152)), .bench = true},
    {.name = "swin_tiny",
     ATTRS(attention, ATT_ATTENTION_HEADS(6), .grid_h = 28, .grid_w = 28, .scale = 0.177, .step_h = 1, .step_w = 1,
           .window_h = 7, .window_w = 7, .shift_h = 3, .shift_w = 3),
     IN(PACKED(784, 576), SHARED(169, 6), ABSENT, ABSENT),
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
    .in_training = attention_in_training,
    .cost = attention_cost,
    ATT_CASES(attention_cases),
};
