/* bench_tokens.c - attscope bench tokens: cost of attention by number of tokens. Each point runs in its own process. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct pass {
    const char *name;
    bool training, statistics;
} pass;
static const pass passes[] = {
    {"forward", false, false},
    {"forward+stats", false, true},
    {"forward+backward", true, false},
    {"forward+backward+stats", true, true},
};
enum { PASS_COUNT = sizeof passes / sizeof *passes, MOST_TOKENS = 1 << 20 };

typedef struct job_name {
    char text[64];
} job_name;

static job_name name_of(int tokens, const pass *p)
{
    job_name name;
    snprintf(name.text, sizeof name.text, "%d/%s", tokens, p->name);
    return name;
}

static att_bench_attention_options options_of(const bench_settings *s)
{
    att_bench_attention_options options = att_bench_attention_options_defaults();
    const att_option_values *network = &s->network.options;
    options.heads = (int)att_options_number(network, "num_heads", options.heads);
    if (att_options_find(network, "embed_dim"))
        options.width = (int)att_options_number(network, "embed_dim", 0) / options.heads;
    options.backend = s->engine.backend;
    options.precision = att_recipe_precision(&s->engine);
    options.repeats = s->measure.repeats;
    options.warmup = s->measure.warmup;
    return options;
}

static int run_job(const bench_call *call, const char *job)
{
    const bench_settings *s = call->settings;
    att_bench_attention_options options = options_of(s);
    char *name;
    options.tokens = strtol(job, &name, 10);
    int i = 0;
    while (i < PASS_COUNT && (*name != '/' || strcmp(name + 1, passes[i].name) != 0))
        i++;
    if (i == PASS_COUNT)
        return cli_usage("bench has no case \"%s\"", job);
    options.training = passes[i].training;
    options.statistics = passes[i].statistics;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    int code = cli_engine_open(call->cli, &s->engine);
    bench_record r = {.is_row = false};
    if (code == CLI_OK)
        code = cli_check(call->cli, att_bench_attention(call->cli->context, &options, &r.of.attention));
    if (code == CLI_OK)
        bench_send(call, &r);
    return code;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void print_head(const bench_call *call)
{
    att_bench_attention_options options = options_of(call->settings);
    const int threads = att_context_threads(call->cli->context);
    cli_print("attention, %d head%s of %d, %d thread%s, %s, median of %d\n\n", options.heads, cli_plural(options.heads),
              options.width, threads, cli_plural(threads), att_precision_name(options.precision), options.repeats);
}

static void print_formula(void)
{
    puts(
        "GFLOP/s: 4 N^2 heads width operations per image forward, three times that with\n"
        "backward. Share: relative to oneDNN's matmul over Q K' and P V per head, as in\n"
        "bench cases, with at most 1024 tokens. Beside: GFLOP/s divided by the value\n"
        "interpolated between the points before and after; < marks less than 0.8. Peak:\n"
        "VmHWM with all images of a run.");
}

static void print_point(int tokens, const att_bench_attention_result *r, double relative)
{
    cli_print("%8d %7d %12.3f %9.1f %6.1f %%", tokens, r->images, 1e3 * r->image_seconds,
              1e-9 * r->flops / r->image_seconds, 100 * r->share);
    bench_print_relative(relative);
    cli_print(" %6.0f MiB\n", (double)r->peak_bytes / (1 << 20));
}

static void write_point(const bench_call *call, const pass *p, int tokens, const att_bench_attention_result *r,
                        double relative)
{
    att_json_writer *w = call->writer;
    att_bench_attention_options options = options_of(call->settings);
    att_json_begin_object(w);
    att_json_put_string(w, "sweep", "tokens");
    att_json_put_string(w, "pass", p->name);
    att_json_put_integer(w, "tokens", tokens);
    att_json_put_integer(w, "heads", options.heads);
    att_json_put_integer(w, "head_width", options.width);
    att_json_put_string(w, "precision", att_precision_name(options.precision));
    att_json_put_integer(w, "threads", att_context_threads(call->cli->context));
    att_json_put_integer(w, "batch_size", r->images);
    att_json_put_number(w, "image_time", 1e3 * r->image_seconds);
    att_json_put_number(w, "gflops_per_sec", 1e-9 * r->flops / r->image_seconds);
    att_json_put_number(w, "gemm_gflops", 1e-9 * r->gemm_rate);
    att_json_put_number(w, "gemm_share", r->share);
    if (relative > 0)
        att_json_put_number(w, "beside_neighbours", relative);
    att_json_put_integer(w, "peak_bytes", r->peak_bytes);
    att_json_end_object(w);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static int measure(const pass *p, const int *points, int count, att_bench_attention_result *results)
{
    bench_records *records = malloc(sizeof *records);
    int code = records ? CLI_OK : cli_failure("out of memory");
    for (int i = 0; code == CLI_OK && i < count; i++) {
        code = bench_run_job(name_of(points[i], p).text, false, records);
        if (code == CLI_OK)
            results[i] = records->items[0].of.attention;
    }
    free(records);
    return code;
}

static int run_pass(const bench_call *call, const pass *p, const int *points, int count)
{
    att_bench_attention_result results[BENCH_POINTS];
    double rates[BENCH_POINTS];
    int code = measure(p, points, count, results);
    if (code != CLI_OK)
        return code;
    if (call->prints)
        cli_print("%s\n%8s %7s %12s %9s %8s  beside %8s\n", p->name, "tokens", "images", "ms/image", "GFLOP/s", "share",
                  "peak");
    for (int i = 0; i < count; i++)
        rates[i] = results[i].flops / results[i].image_seconds;
    for (int i = 0; i < count; i++) {
        double relative = bench_relative(points, rates, count, i);
        if (call->prints)
            print_point(points[i], &results[i], relative);
        if (call->writer)
            write_point(call, p, points[i], &results[i], relative);
    }
    if (call->prints) {
        putchar('\n');
        fflush(stdout);
    }
    return CLI_OK;
}

static int run(const bench_call *call)
{
    static const int standard[] = {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 0};
    int points[BENCH_POINTS], count = bench_points(call->settings, standard, MOST_TOKENS, points), shown = 0;
    if (count < 0)
        return CLI_USAGE;
    for (int i = 0; i < PASS_COUNT; i++) {
        if (!bench_wants(call->settings, NULL, passes[i].name))
            continue;
        if (call->prints && shown == 0)
            print_head(call);
        shown++;
        int code = run_pass(call, &passes[i], points, count);
        if (code != CLI_OK)
            return code;
    }
    if (shown == 0)
        return bench_nothing(call->settings, passes[0].name);
    if (call->prints)
        print_formula();
    return CLI_OK;
}

const bench_what bench_what_tokens = {.name = "tokens", .operands = "", .run = run, .job = run_job};
