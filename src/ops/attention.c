#include <attscope/ops.h>

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "graph/graph.h"
#include "ops/attention.h"
#include "ops/cases.h"
#include "ops/list.h"
#include "ops/rule.h"

_Static_assert((int)ATT_ATTENTION_STATS == (int)ATT_STAT_COUNT, "the public count is that of the columns");

enum { OUT, LSE, STATS, MAP };
enum { GRAD_DO, GRAD_QKV, GRAD_O, GRAD_LSE, GRAD_IN_COUNT };

att_value att_attention(att_graph *graph, att_value qkv, const att_attention_options *options)
{
    att_attention_attrs attrs = {0}; /* no heads, which the shape rule refuses */
    if (options) {
        att_shape shape = att_value_shape(graph, qkv);
        int64_t width = shape.rank == 2 && options->heads > 0 ? shape.dims[1] / 3 / options->heads : 0;
        attrs = (att_attention_attrs){
            .heads = options->heads,
            .prefix = options->prefix,
            .grid_h = options->grid_h,
            .grid_w = options->grid_w,
            .step_h = options->step_h == 0 ? 1 : options->step_h,
            .step_w = options->step_w == 0 ? 1 : options->step_w,
            .scale = options->scale == 0 && width > 0 ? 1 / sqrt((double)width) : options->scale,
        };
    }
    return att_emit(graph, "attention", &attrs, &qkv, 1, NULL);
}

static att_status check_qkv(const att_infer *infer, const char *op, int i)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, op, i, "qkv", ATT_SAMPLE, 2));
    if (attrs->heads < 1 || infer->in[i].shape.dims[1] % (3 * (int64_t)attrs->heads))
        return att_fail(infer->context, ATT_ERR_MISMATCH, "%s: rows of qkv %s do not divide into q, k, v of %d heads",
                        op, ATT_SHOWN(&infer->in[i]), attrs->heads);
    if (!isfinite(attrs->scale))
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "%s: scale is %g, must be finite", op, attrs->scale);
    return ATT_OK;
}

/* Keeps sums of distances within the range of f32. */
static const double MOST_STEP = 1e9;

static att_status check_grid(const att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    int64_t tokens = infer->in[0].shape.dims[0], grid = (int64_t)attrs->grid_h * attrs->grid_w;
    if (attrs->prefix < 0 || attrs->prefix > tokens)
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "attention: %d prefix tokens, but only %lld tokens",
                        attrs->prefix, (long long)tokens);
    if (attrs->grid_h == 0 && attrs->grid_w == 0)
        return ATT_OK;
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
    ATT_TRY(att_rule_count(infer, "attention", 1));
    ATT_TRY(check_qkv(infer, "attention", 0));
    ATT_TRY(check_grid(infer));
    int64_t heads = ((const att_attention_attrs *)infer->attrs)->heads;
    int64_t n = infer->in[0].shape.dims[0], c = infer->in[0].shape.dims[1] / 3;
    att_dtype dtype = infer->in[0].dtype;
    if (att_shape_count(att_shape_of(heads, n, n)) < 0)
        return att_fail(infer->context, ATT_ERR_MISMATCH, "attention: %lld tokens are too many", (long long)n);
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(n, c));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, n));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, n, ATT_STAT_COUNT));
    att_rule_out(infer, dtype, ATT_SAMPLE, att_shape_of(heads, n, n));
    return ATT_OK;
}

static void attention_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, OUT), att_backward_in(backward, 0),
                                   att_backward_out(backward, OUT), att_backward_out(backward, LSE)};
    att_backward_add_gradient(backward, 0,
                              att_emit(att_backward_graph(backward), "attention_grad", att_backward_attrs(backward), in,
                                       GRAD_IN_COUNT, NULL));
}

/* `products` matrix products of N x N x d per head, and about 10 operations per score. */
static void cost_of(const att_desc *qkv, const att_attention_attrs *attrs, int products, att_cost *cost)
{
    int64_t channels = qkv->shape.dims[1] / 3;
    double n = (double)qkv->shape.dims[0];
    cost->macs = products * n * n * (double)channels;
    cost->flops = 2 * cost->macs + 10 * n * n * attrs->heads;
}

static void attention_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(&in[0], attrs, 2, cost);
}

#define STEPPED(h, d, prefix_, gh, gw, sh, sw)                                                                 \
    ATT_CASE_ATTRS(attention, .heads = (h), .prefix = (prefix_), .grid_h = (gh), .grid_w = (gw), .scale = (d), \
                   .step_h = (sh), .step_w = (sw))
#define HEADS(h, d, prefix_, gh, gw) STEPPED(h, d, prefix_, gh, gw, 1, 1)
static const att_op_case attention_cases[] = {
    {.name = "odd", HEADS(2, 0.6, 1, 2, 2), .in = {ATT_CASE_SAMPLE(5, 18)}, .in_count = 1, .gradient = true},
    {.name = "one_token", HEADS(1, 0.4, 0, 1, 1), .in = {ATT_CASE_SAMPLE(1, 21)}, .in_count = 1},
    {.name = "no_grid", HEADS(1, 0.4, 0, 0, 0), .in = {ATT_CASE_SAMPLE(7, 21)}, .in_count = 1, .gradient = true},
    {.name = "two_prefixes", HEADS(3, 0.5, 2, 3, 5), .in = {ATT_CASE_SAMPLE(17, 45)}, .in_count = 1},
    {.name = "oblong_patches", STEPPED(2, 0.5, 1, 5, 3, 8, 16), .in = {ATT_CASE_SAMPLE(16, 30)}, .in_count = 1},
    {.name = "oblong_patches_on_a_wide_grid",
     STEPPED(1, 0.5, 1, 2, 40, 2, 0.5),
     .in = {ATT_CASE_SAMPLE(81, 12)},
     .in_count = 1},
    {.name = "only_prefixes", HEADS(1, 0.5, 3, 0, 0), .in = {ATT_CASE_SAMPLE(3, 12)}, .in_count = 1},
    {.name = "sharp", HEADS(2, 0.5, 1, 4, 4), .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 20, 0, 17, 24)}, .in_count = 1},
    {.name = "uniform", HEADS(2, 0.5, 1, 4, 4), .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 0, 0.5, 17, 24)}, .in_count = 1},
    {.name = "many_tokens", HEADS(1, 0.35, 1, 20, 30), .in = {ATT_CASE_SAMPLE(601, 24)}, .in_count = 1},
    {.name = "demo", HEADS(4, 0.25, 1, 7, 7), .in = {ATT_CASE_SAMPLE(50, 192)}, .in_count = 1, .bench = true},
    {.name = "tiny", HEADS(3, 0.125, 1, 14, 14), .in = {ATT_CASE_SAMPLE(197, 576)}, .in_count = 1, .bench = true},
    {.name = "small", HEADS(6, 0.125, 1, 14, 14), .in = {ATT_CASE_SAMPLE(197, 1152)}, .in_count = 1, .bench = true},
};

const att_op att_op_attention = {
    .name = "attention",
    .attrs_size = sizeof(att_attention_attrs),
    .help = "o_i = sum_j a_ij v_j, a_i = softmax_j(scale q_i . k_j), per head",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = attention_infer,
    .backward = attention_backward,
    .cost = attention_cost,
    ATT_CASES(attention_cases),
};

static att_status grad_infer(att_infer *infer)
{
    static const char op[] = "attention_grad";
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, op, GRAD_IN_COUNT));
    ATT_TRY(check_qkv(infer, op, GRAD_QKV));
    ATT_TRY(att_rule_require(infer, op, GRAD_DO, "do", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, op, GRAD_O, "o", ATT_SAMPLE, GRAD_DO));
    ATT_TRY(att_rule_require(infer, op, GRAD_LSE, "lse", ATT_SAMPLE));
    const att_desc *in = infer->in, *qkv = &in[GRAD_QKV];
    int64_t n = qkv->shape.dims[0], c = qkv->shape.dims[1] / 3;
    if (!att_shape_equal(in[GRAD_DO].shape, att_shape_of(n, c)) ||
        !att_shape_equal(in[GRAD_LSE].shape, att_shape_of(attrs->heads, n)))
        return att_fail(infer->context, ATT_ERR_MISMATCH, "%s: do %s and lse %s do not fit qkv %s with %d heads", op,
                        ATT_SHOWN(&in[GRAD_DO]), ATT_SHOWN(&in[GRAD_LSE]), ATT_SHOWN(qkv), attrs->heads);
    att_rule_out(infer, qkv->dtype, ATT_SAMPLE, qkv->shape);
    return ATT_OK;
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(&in[GRAD_QKV], attrs, 5, cost);
}

/* o and lse are drawn rather than computed: the formula does not require that the rows of exp(s - lse) sum to 1. lse is
 * near the logarithm of the number of tokens, as in real networks. */
#define GRAD_IN(n, h, d, lse)                                                                        \
    ATT_CASE_SAMPLE(n, (h) * (d)), ATT_CASE_SAMPLE(n, 3 * (h) * (d)), ATT_CASE_SAMPLE(n, (h) * (d)), \
        ATT_CASE_DRAWN(ATT_SAMPLE, 0.3, lse, h, n)
static const att_op_case grad_cases[] = {
    {.name = "odd", HEADS(2, 0.6, 1, 2, 2), .in = {GRAD_IN(5, 2, 3, 2)}, .in_count = GRAD_IN_COUNT},
    {.name = "one_token", HEADS(1, 0.4, 0, 1, 1), .in = {GRAD_IN(1, 1, 7, 0)}, .in_count = GRAD_IN_COUNT},
    {.name = "two_prefixes", HEADS(3, 0.5, 2, 3, 5), .in = {GRAD_IN(17, 3, 5, 3)}, .in_count = GRAD_IN_COUNT},
    {.name = "many_tokens", HEADS(1, 0.35, 1, 20, 30), .in = {GRAD_IN(601, 1, 8, 6.5)}, .in_count = GRAD_IN_COUNT},
    {.name = "demo", HEADS(4, 0.25, 1, 7, 7), .in = {GRAD_IN(50, 4, 16, 4)}, .in_count = GRAD_IN_COUNT, .bench = true},
    {.name = "tiny",
     HEADS(3, 0.125, 1, 14, 14),
     .in = {GRAD_IN(197, 3, 64, 5.5)},
     .in_count = GRAD_IN_COUNT,
     .bench = true},
    {.name = "small",
     HEADS(6, 0.125, 1, 14, 14),
     .in = {GRAD_IN(197, 6, 64, 5.5)},
     .in_count = GRAD_IN_COUNT,
     .bench = true},
};

const att_op att_op_attention_grad = {
    .name = "attention_grad",
    .attrs_size = sizeof(att_attention_attrs),
    .help =
        "dv_j = sum_i a_ij do_i; ds_ij = a_ij (do_i . v_j - do_i . o_i); dq_i = scale sum_j ds_ij k_j; "
        "dk_j = scale sum_i ds_ij q_i; a_ij = exp(scale q_i . k_j - lse_i)",
    .autocast_in = 7,
    .autocast_out = 1,
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
