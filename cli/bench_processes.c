/* bench_processes.c - attscope bench processes: training with several processes, and what communication costs. */
#include <stdlib.h>

#include "bench.h"

typedef struct found {
    const bench_case *c;
    att_comm *comm;
    att_bench_processes_result result;
    att_bench_rank *ranks;
} found;

/* What the chain and the broadcast of all gradients send in a step, all ranks together. */
static double expected_bytes(const found *f)
{
    return 2.0 * (att_comm_size(f->comm) - 1) * (double)f->result.gradient_bytes;
}

/* Sums over the ranks. */
static att_bench_rank total(const found *f)
{
    att_bench_rank sum = {0};
    for (int i = 0; i < att_comm_size(f->comm); i++) {
        sum.threads += f->ranks[i].threads;
        sum.bytes_sent += f->ranks[i].bytes_sent;
        sum.bytes_received += f->ranks[i].bytes_received;
        sum.sum_seconds += f->ranks[i].sum_seconds;
        sum.sum_wait_seconds += f->ranks[i].sum_wait_seconds;
        sum.wait_seconds += f->ranks[i].wait_seconds;
    }
    return sum;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void print_head(const bench_call *call, const found *f)
{
    const bench_measure *m = &call->settings->measure;
    int size = att_comm_size(f->comm);
    int threads = total(f).threads, lanes = f->result.lanes;
    cli_print("%d process%s%s%s, %d thread%s together, %d lane%s, %s\n", size, size == 1 ? "" : "es",
              size == 1 ? "" : " connected by ", att_comm_library(f->comm), threads, cli_plural(threads), lanes,
              cli_plural(lanes), bench_precision(call));
    cli_print("training of %s, %d images per step; speed: median of %d steps; other figures: mean per step\n\n",
              f->c->model, f->c->batch_size, m->repeats);
    cli_print("%.2f images/s, %.1f ms per step\n", f->result.images_per_second, 1e3 * f->result.step_seconds);
}

static void print_ranks(const found *f)
{
    cli_print("\n%5s %7s %9s %9s %9s %9s %9s  %s\n", "rank", "threads", "MB sent", "received", "ms sums", "waiting",
              "all waits", "host");
    for (int i = 0; i < att_comm_size(f->comm); i++) {
        const att_bench_rank *r = &f->ranks[i];
        cli_print("%5d %7d %9.2f %9.2f %9.1f %9.1f %9.1f  %s\n", i, r->threads, 1e-6 * r->bytes_sent,
                  1e-6 * r->bytes_received, 1e3 * r->sum_seconds, 1e3 * r->sum_wait_seconds, 1e3 * r->wait_seconds,
                  att_comm_host(f->comm, i));
    }
}

static void print_sums(const found *f)
{
    int size = att_comm_size(f->comm), slowest = f->result.slowest;
    att_bench_rank sum = total(f);
    cli_print("\nsent by all ranks: %.2f MB; by the formula 2 (P - 1) G = 2 x %d x %.2f MB: %.2f MB\n",
              1e-6 * sum.bytes_sent, size - 1, 1e-6 * (double)f->result.gradient_bytes, 1e-6 * expected_bytes(f));
    cli_print("sums were under way for %.1f ms per step and rank; %.0f %% of it was hidden behind computation\n",
              1e3 * sum.sum_seconds / size, 100 * f->result.overlap);
    cli_print("a sum alone, while nothing is computed: %.1f ms\n", 1e3 * f->result.alone_seconds);
    cli_print("slowest: rank %d on %s, which waited %.1f ms of %.1f ms\n", slowest, att_comm_host(f->comm, slowest),
              1e3 * f->ranks[slowest].wait_seconds, 1e3 * f->result.step_seconds);
}

static void print_formula(void)
{
    puts(
        "\nP: processes. G: bytes of all gradients. Partial sums of the gradients travel from\n"
        "rank to rank, then the complete sums, so each rank sends and receives at most 2 G.\n"
        "Batch norm with --sync-bn sends more. Sums: from when this rank has computed its\n"
        "share until it has the complete sum. Waiting: computation waited for sums. All\n"
        "waits: for sums, and in all other exchanges.");
}

static void print_alone(void)
{
    puts(
        "\nThis process is alone. Its speed is what the efficiency of several processes is\n"
        "relative to. Two processes, for example, are started with\n"
        "  mpirun -n 2 --bind-to none attscope bench processes");
}

static void print_found(const bench_call *call, const found *f)
{
    print_head(call, f);
    if (att_comm_size(f->comm) == 1) {
        print_alone();
        return;
    }
    print_ranks(f);
    print_sums(f);
    print_formula();
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_times(att_json_writer *w, const att_bench_rank *r)
{
    att_json_put_integer(w, "threads", r->threads);
    att_json_put_number(w, "bytes_sent", r->bytes_sent);
    att_json_put_number(w, "bytes_received", r->bytes_received);
    att_json_put_number(w, "sum_seconds", r->sum_seconds);
    att_json_put_number(w, "sum_wait_seconds", r->sum_wait_seconds);
    att_json_put_number(w, "wait_seconds", r->wait_seconds);
}

static void write_ranks(att_json_writer *w, const found *f)
{
    att_json_put_array(w, "ranks");
    for (int i = 0; i < att_comm_size(f->comm); i++) {
        att_json_begin_object(w);
        att_json_put_integer(w, "rank", i);
        att_json_put_string(w, "host", att_comm_host(f->comm, i));
        write_times(w, &f->ranks[i]);
        att_json_end_object(w);
    }
    att_json_end_array(w);
}

static void write_found(const bench_call *call, const found *f)
{
    att_json_writer *w = call->writer;
    att_bench_rank sum = total(f);
    att_json_begin_object(w);
    bench_write_case(call, f->c);
    att_json_put_string(w, "mpi", att_comm_library(f->comm));
    att_json_put_integer(w, "processes", att_comm_size(f->comm));
    att_json_put_integer(w, "lanes", f->result.lanes);
    att_json_put_integer(w, "batch_size", f->c->batch_size);
    att_json_put_number(w, "samples_per_sec", f->result.images_per_second);
    att_json_put_number(w, "step_seconds", f->result.step_seconds);
    att_json_put_integer(w, "gradient_bytes", f->result.gradient_bytes);
    att_json_put_number(w, "expected_bytes", expected_bytes(f));
    write_times(w, &sum);
    att_json_put_number(w, "overlap", f->result.overlap);
    att_json_put_number(w, "sum_alone_seconds", f->result.alone_seconds);
    att_json_put_integer(w, "slowest", f->result.slowest);
    write_ranks(w, f);
    att_json_end_object(w);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static int measure(const bench_call *call, found *f)
{
    att_bench_options options;
    bench_options_of(call, f->c, &options);
    options.comm = f->comm;
    options.sync_statistics = call->settings->measure.sync_bn;
    f->ranks = calloc((size_t)att_comm_size(f->comm), sizeof *f->ranks);
    if (!f->ranks)
        return cli_failure("out of memory");
    return cli_check(call->cli, att_bench_processes(call->cli->context, &options, &f->result, f->ranks));
}

static int run(const bench_call *call)
{
    const char *model = call->settings->network.model;
    bench_case c;
    bench_case_of(call->settings, model ? model : "vit_tiny_patch16_224", "", true, &c);
    snprintf(c.name, sizeof c.name, "%.80s/train", c.model);
    found f = {.c = &c, .comm = call->cli->comm};
    int code = measure(call, &f);
    if (code == CLI_OK && call->prints)
        print_found(call, &f);
    if (code == CLI_OK && call->writer)
        write_found(call, &f);
    free(f.ranks);
    return code;
}

const bench_what bench_what_processes = {.name = "processes", .operands = "", .processes = true, .run = run};
