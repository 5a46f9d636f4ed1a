#include <attscope/lab/bench.h>
#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "lab/bench/clock.h"
#include "lab/bench/gemm.h"
#include "lab/bench/limits.h"
#include "lab/bench/timed.h"

enum { MAX_TOKENS = 1 << 20, TOKENS_PER_THREAD = 2048, GEMM_TOKENS = 1024 };

att_bench_attention_options att_bench_attention_options_defaults(void)
{
    att_bench_options network = att_bench_options_defaults();
    return (att_bench_attention_options){.tokens = 1024,
                                         .heads = 3,
                                         .width = 64,
                                         .backend = network.backend,
                                         .repeats = network.repeats,
                                         .warmup = network.warmup};
}

typedef struct bench {
    att_context *context;
    const att_bench_attention_options *options;
    att_graph *graph, *products; /* products: graph whose matrix products give the GEMM rate */
    att_timed timed;
    att_gemm *gemm;
    int images;
    double seconds[ATT_BENCH_REPEATS], gemm_seconds[ATT_BENCH_REPEATS];
} bench;

/* --- creation ----------------------------------------------------------------------------------------------------- */

/* Builds a graph with one attention. The expected distance needs a grid of tokens: rows of 64 tokens if the number of
 * tokens is a multiple of 64, else a single row. */
static att_status build(const bench *b, int64_t tokens, att_graph **out)
{
    const att_bench_attention_options *options = b->options;
    ATT_TRY(att_graph_create(b->context, ATT_F32, out));
    att_graph *graph = *out;
    int64_t channels = (int64_t)options->heads * options->width;
    int rows = tokens % 64 == 0 ? (int)(tokens / 64) : 1;
    att_attention_options attention = {.heads = options->heads, .grid_h = rows, .grid_w = (int)(tokens / rows)};
    att_graph_scope(graph, "attn");
    att_value x = att_graph_input(graph, "qkv", ATT_F32, att_shape_of(tokens, 3 * channels));
    att_value bias = att_graph_parameter(graph, "bias", att_shape_of(3 * channels), (att_init){0}, false);
    att_value mean =
        att_token_mean(graph, att_attention(graph, att_add(graph, x, bias), ATT_NONE, ATT_NONE, &attention), 0);
    att_value target = att_graph_input(graph, "class", ATT_I32, (att_shape){0});
    att_graph_output(graph, "mean", mean);
    if (options->training)
        att_graph_output(graph, "loss", att_cross_entropy(graph, mean, target, 0));
    return options->statistics ? att_graph_probe_attention_stats(graph, "attn") : att_graph_status(graph);
}

static att_status prepare(bench *b)
{
    const att_bench_attention_options *options = b->options;
    int64_t images = options->tokens < TOKENS_PER_THREAD ? TOKENS_PER_THREAD / options->tokens : 1;
    b->images = (int)images * att_context_threads(b->context);
    ATT_TRY(build(b, options->tokens, &b->graph));
    att_timed_options timed = {
        .plan = att_plan_options_defaults(), .batch = b->images, .classes = options->heads * options->width};
    timed.plan.purpose = options->training ? ATT_TRAIN : ATT_INFER;
    timed.plan.backend = options->backend;
    timed.plan.precision = options->precision;
    timed.plan.group = 1; /* as in networks with about 200 tokens or more */
    return att_timed_create(b->graph, &timed, &b->timed);
}

static att_status check(att_context *context, const att_bench_attention_options *options)
{
    if (options->tokens < 1 || options->tokens > MAX_TOKENS)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: tokens must be in 1..%d, not %lld", MAX_TOKENS,
                        (long long)options->tokens);
    if (options->heads < 1 || options->heads > 1024 || options->width < 1 || options->width > 1024)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: heads and their width must be in 1..1024, not %d and %d",
                        options->heads, options->width);
    return att_bench_check_repeats(context, options->repeats, options->warmup);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static att_status run(bench *b, att_bench_attention_result *result)
{
    const att_bench_attention_options *options = b->options;
    ATT_TRY(prepare(b));
    for (int i = 0; i < options->warmup; i++)
        ATT_TRY(att_timed_run(&b->timed, b->images));
    result->peak_bytes = att_clock_peak_bytes();
    ATT_TRY(build(b, options->tokens < GEMM_TOKENS ? options->tokens : GEMM_TOKENS, &b->products));
    ATT_TRY(
        att_gemm_create(b->products, b->images, att_bench_gemm_precision(b->context, options->precision), &b->gemm));
    ATT_TRY(att_gemm_run(b->gemm));
    for (int i = 0; i < options->repeats; i++) {
        double begin = att_seconds_now();
        ATT_TRY(att_timed_run(&b->timed, b->images));
        b->seconds[i] = att_seconds_now() - begin;
        begin = att_seconds_now();
        ATT_TRY(att_gemm_run(b->gemm));
        b->gemm_seconds[i] = att_seconds_now() - begin;
    }
    return ATT_OK;
}

static void summarise(bench *b, att_bench_attention_result *result)
{
    const att_bench_attention_options *options = b->options;
    double n = (double)options->tokens;
    result->images = b->images;
    result->flops = (options->training ? 12 : 4) * n * n * options->heads * options->width;
    result->image_seconds = att_median(b->seconds, options->repeats) / b->images;
    result->gemm_rate = att_gemm_flops(b->gemm) / att_median(b->gemm_seconds, options->repeats);
    result->share = result->flops / result->image_seconds / result->gemm_rate;
}

att_status att_bench_attention(att_context *context, const att_bench_attention_options *options,
                               att_bench_attention_result *result)
{
    ATT_TRY(check(context, options));
    bench *b;
    ATT_TRY(att_new(context, &b, 1, "a benchmark"));
    b->context = context;
    b->options = options;
    att_bench_attention_result measured = {0};
    att_status status = run(b, &measured);
    if (status == ATT_OK) {
        summarise(b, &measured);
        *result = measured;
    }
    att_gemm_destroy(&b->gemm);
    att_timed_destroy(&b->timed);
    att_graph_destroy(&b->graph);
    att_graph_destroy(&b->products);
    att_free(context, b);
    return status;
}
