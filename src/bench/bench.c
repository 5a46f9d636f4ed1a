#include <attscope/bench.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/gemm.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/random.h"

enum { MOST_REPEATS = 1000, MOST_BATCH = 65536 };

/* A network ready to run, with its images. */
typedef struct bench {
    att_context *context;
    const att_bench_options *options;
    att_model *model;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    float *images;
    int32_t *targets;
    int64_t step;
    att_gemm *gemm;
    double network_seconds[MOST_REPEATS], gemm_seconds[MOST_REPEATS];
} bench;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

/* The most memory this process has had at a time; 0 where the system does not say. */
static int64_t peak_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long long kilobytes = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lld kB", &kilobytes) == 1)
            break;
    if (status)
        fclose(status);
    return 1024 * (int64_t)kilobytes;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static att_status make_images(bench *b)
{
    att_model_options network = att_model_options_of(b->model);
    size_t batch = (size_t)b->options->batch_size, side = (size_t)network.img_size;
    size_t pixels = side * side * (size_t)network.in_chans;
    b->images = att_allocate_array(b->context, batch * pixels, sizeof *b->images);
    b->targets = att_allocate_array(b->context, batch, sizeof *b->targets);
    if (!b->images || !b->targets)
        return att_fail_memory(b->context, batch * pixels * sizeof *b->images, "the images of a benchmark");
    att_random random = att_random_from(att_random_key(1, 0, 0));
    for (size_t i = 0; i < batch * pixels; i++)
        b->images[i] = (float)(2 * att_random_uniform(&random) - 1);
    for (size_t i = 0; i < batch; i++)
        b->targets[i] = (int32_t)att_random_below(&random, network.num_classes);
    ATT_TRY(att_session_bind(b->session, "image", b->images));
    return b->options->training ? att_session_bind(b->session, "target", b->targets) : ATT_OK;
}

static att_status make_network(bench *b)
{
    att_model_options network = b->options->network ? *b->options->network : att_model_options_defaults();
    network.loss = b->options->training;
    ATT_TRY(att_model_create(b->context, b->options->model, &network, ATT_F32, &b->model));
    const att_graph *graph = att_model_graph(b->model);
    ATT_TRY(att_weights_create(graph, &b->weights));
    ATT_TRY(att_weights_initialise(b->weights, 1));
    att_plan_options plan = att_plan_options_defaults();
    plan.backend = b->options->backend;
    plan.precision = b->options->precision;
    if (b->options->training) {
        plan.purpose = ATT_TRAIN;
        plan.optimizer = "adamw";
    }
    ATT_TRY(att_plan_compile(graph, &plan, &b->plan));
    ATT_TRY(att_session_create(b->plan, b->weights, b->options->batch_size, &b->session));
    return make_images(b);
}

static void release(bench *b)
{
    att_gemm_destroy(&b->gemm);
    att_session_destroy(&b->session);
    att_plan_destroy(&b->plan);
    att_weights_destroy(&b->weights);
    att_model_destroy(&b->model);
    att_free(b->context, b->images);
    att_free(b->context, b->targets);
    att_free(b->context, b);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static att_status run_batch(bench *b)
{
    int batch = b->options->batch_size;
    if (!b->options->training)
        return att_session_run(b->session, batch);
    att_hyper hyper = {
        .lr = 1e-4, .weight_decay = 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .update = ++b->step};
    ATT_TRY(att_session_accumulate(b->session, batch, 1.0 / batch, 1, b->step, 0));
    ATT_TRY(att_session_reduce(b->session, NULL));
    return att_session_update(b->session, &hyper);
}

static att_status time_both(bench *b)
{
    for (int i = 0; i < b->options->repeats; i++) {
        double begin = now();
        ATT_TRY(run_batch(b));
        b->network_seconds[i] = now() - begin;
        begin = now();
        ATT_TRY(att_gemm_run(b->gemm));
        b->gemm_seconds[i] = now() - begin;
    }
    return ATT_OK;
}

/* The reference computes in bf16 where the processor does not. */
static att_precision gemm_precision(const bench *b)
{
    return att_context_has_bf16(b->context) ? b->options->precision : ATT_FULL;
}

static att_status run_case(bench *b, att_bench_result *result)
{
    ATT_TRY(make_network(b));
    for (int i = 0; i < b->options->warmup; i++)
        ATT_TRY(run_batch(b));
    result->peak_bytes = peak_bytes();
    ATT_TRY(att_gemm_create(att_model_graph(b->model), b->options->batch_size, gemm_precision(b), &b->gemm));
    ATT_TRY(att_gemm_run(b->gemm));
    if (b->options->profile)
        ATT_TRY(att_session_profile(b->session, true));
    return time_both(b);
}

static void summarise(bench *b, att_bench_result *result)
{
    const att_graph *graph = att_model_graph(b->model);
    int repeats = b->options->repeats, batch = b->options->batch_size;
    double flops = att_gemm_flops(b->gemm);
    result->img_size = att_model_options_of(b->model).img_size;
    result->parameters = att_graph_parameter_elements(graph);
    result->gmacs = 1e-9 * att_graph_cost(graph).macs;
    result->step_seconds = median(b->network_seconds, repeats);
    result->images_per_second = batch / result->step_seconds;
    result->gemm_rate = flops / median(b->gemm_seconds, repeats);
    result->share = (b->options->training ? 3 : 1) * flops / result->step_seconds / result->gemm_rate;
    result->plan = att_plan_describe(b->plan);
}

static int compare_rows(const void *a, const void *b)
{
    double x = ((const att_profile_row *)a)->seconds, y = ((const att_profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

static att_status give_profile(bench *b)
{
    int count = att_session_profile_count(b->session);
    if (!b->options->profile || !b->options->row || count <= 0)
        return ATT_OK;
    att_profile_row *rows = att_allocate_array(b->context, (size_t)count, sizeof *rows);
    if (!rows)
        return att_fail_memory(b->context, (size_t)count * sizeof *rows, "a profile");
    for (int i = 0; i < count; i++)
        rows[i] = att_session_profile_at(b->session, i);
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    for (int i = 0; i < count; i++)
        b->options->row(b->options->row_user, &rows[i]);
    att_free(b->context, rows);
    return ATT_OK;
}

att_bench_options att_bench_options_defaults(void)
{
    return (att_bench_options){.backend = "cpu", .batch_size = 32, .repeats = 5, .warmup = 2};
}

static att_status check(att_context *context, const att_bench_options *options)
{
    if (options->batch_size < 1 || options->batch_size > MOST_BATCH)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: batch_size must be in 1..%d, not %d", MOST_BATCH,
                        options->batch_size);
    if (options->repeats < 1 || options->repeats > MOST_REPEATS || options->warmup < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: repeats must be in 1..%d and warmup at least 1",
                        MOST_REPEATS);
    return ATT_OK;
}

att_status att_bench_run(att_context *context, const att_bench_options *options, att_bench_result *result)
{
    ATT_TRY(check(context, options));
    bench *b = att_allocate(context, sizeof *b);
    if (!b)
        return att_fail_memory(context, sizeof *b, "a benchmark");
    b->context = context;
    b->options = options;
    att_bench_result found = {0};
    att_status status = run_case(b, &found);
    if (status == ATT_OK)
        status = give_profile(b);
    if (status == ATT_OK) {
        summarise(b, &found);
        *result = found;
    }
    release(b);
    return status;
}
