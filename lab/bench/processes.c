/* Training with several processes: its speed, and what communication costs. */
#include "lab/bench/bench.h"

#include <string.h>

#include "base/comm/comm.h"
#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/weights/gradient.h"
#include "lab/bench/clock.h"

/* What each process tells the others. */
typedef struct rank_message {
    att_bench_rank rank;
    double step_seconds, alone_seconds;
} rank_message;

/* --- a sum alone -------------------------------------------------------------------------------------------------- */

static void await_nothing(void *user, size_t offset, size_t bytes)
{
    (void)user, (void)offset, (void)bytes;
}

static void load(void *user, size_t offset, size_t bytes, char *buffer)
{
    memcpy(buffer, (const char *)user + offset, bytes);
}

static void add(void *user, size_t offset, size_t bytes, char *buffer)
{
    const float *share = (const float *)(const void *)((const char *)user + offset);
    float *sum = (float *)(void *)buffer;
    for (size_t i = 0; i < bytes / sizeof *sum; i++)
        sum[i] += share[i];
}

static void store(void *user, size_t offset, size_t bytes, const char *buffer)
{
    memcpy((char *)user + offset, buffer, bytes);
}

static att_status time_sum(att_comm *comm, float *values, size_t bytes, double *seconds)
{
    const att_comm_sum sum = {
        .bytes = bytes, .user = values, .await = await_nothing, .load = load, .add = add, .store = store};
    double begin = att_seconds_now();
    ATT_TRY(att_comm_reduce(comm, ATT_COMM_MAIN, &sum));
    *seconds = att_seconds_now() - begin;
    return ATT_OK;
}

/* As many bytes as the gradients have, summed while nothing is computed: once for the memory, then timed. */
static att_status time_sums(att_bench *bench, size_t bytes, double *median)
{
    att_comm *comm = bench->options.comm;
    int repeats = bench->options.repeats;
    *median = 0;
    if (att_comm_size(comm) == 1)
        return ATT_OK;
    float *values = att_allocate(bench->context, bytes);
    if (!values)
        return att_fail_memory(bench->context, bytes, "a sum over the processes");
    att_status status = time_sum(comm, values, bytes, median);
    for (int i = 0; i < repeats && status == ATT_OK; i++)
        status = time_sum(comm, values, bytes, &bench->gemm_seconds[i]);
    if (status == ATT_OK)
        *median = att_median(bench->gemm_seconds, repeats);
    att_free(bench->context, values);
    return status;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static att_status time_steps(att_bench *bench, rank_message *own)
{
    const att_bench_options *options = &bench->options;
    double *seconds = bench->network_seconds, steps = options->repeats;
    for (int i = 0; i < options->warmup; i++)
        ATT_TRY(att_bench_time(bench, options->batch_size, &seconds[0]));
    att_comm_figures before = att_comm_describe(options->comm);
    for (int i = 0; i < options->repeats; i++)
        ATT_TRY(att_bench_time(bench, options->batch_size, &seconds[i]));
    att_comm_figures after = att_comm_describe(options->comm);
    own->step_seconds = att_median(seconds, options->repeats);
    own->rank = (att_bench_rank){
        .threads = att_context_threads(bench->context),
        .bytes_sent = (double)(after.bytes_sent - before.bytes_sent) / steps,
        .bytes_received = (double)(after.bytes_received - before.bytes_received) / steps,
        .sum_seconds = (after.sum_seconds - before.sum_seconds) / steps,
        .sum_wait_seconds = (after.sum_wait_seconds - before.sum_wait_seconds) / steps,
        .wait_seconds = (after.wait_seconds - before.wait_seconds) / steps,
    };
    return ATT_OK;
}

static void summarise(const att_bench *bench, const rank_message *messages, att_bench_processes_result *result,
                      att_bench_rank *ranks)
{
    double sum = 0, waited = 0;
    int slowest = 0;
    for (int i = 0; i < att_comm_size(bench->options.comm); i++) {
        ranks[i] = messages[i].rank;
        sum += ranks[i].sum_seconds;
        waited += ranks[i].sum_wait_seconds;
        if (ranks[i].wait_seconds < ranks[slowest].wait_seconds)
            slowest = i;
    }
    *result = (att_bench_processes_result){
        .lanes = att_plan_describe(bench->timed.plan).lanes,
        .step_seconds = messages[0].step_seconds,
        .images_per_second = bench->options.batch_size / messages[0].step_seconds,
        .gradient_bytes = (int64_t)att_gradient_bytes(bench->timed.weights, NULL),
        .overlap = sum > waited ? 1 - waited / sum : 0,
        .alone_seconds = messages[0].alone_seconds,
        .slowest = slowest,
    };
}

static att_status run(att_bench *bench, att_bench_processes_result *result, att_bench_rank *ranks)
{
    att_comm *comm = bench->options.comm;
    size_t count = (size_t)att_comm_size(comm);
    rank_message *messages;
    ATT_TRY(att_new(bench->context, &messages, count, "the figures of processes"));
    rank_message *own = &messages[att_comm_rank(comm)];
    att_status status = time_steps(bench, own);
    if (status == ATT_OK)
        status = time_sums(bench, att_gradient_bytes(bench->timed.weights, NULL), &own->alone_seconds);
    if (status == ATT_OK)
        status = att_comm_collect(comm, ATT_COMM_MAIN, messages, sizeof *messages);
    if (status == ATT_OK)
        summarise(bench, messages, result, ranks);
    att_free(bench->context, messages);
    return status;
}

att_status att_bench_processes(att_context *context, const att_bench_options *options,
                               att_bench_processes_result *result, att_bench_rank *ranks)
{
    att_bench_options training = *options;
    training.training = true;
    training.profile = false;
    training.instruments = NULL;
    ATT_TRY(att_bench_check_repeats(context, options->repeats, options->warmup));
    att_bench *bench;
    ATT_TRY(att_bench_create(context, &training, &bench));
    att_status status = run(bench, result, ranks);
    att_bench_destroy(&bench);
    return status;
}
