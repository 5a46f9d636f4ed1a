/* bench_instruments.c - attscope bench instruments: the cost of observation. The network alone and the network with
 * instruments run in turns in one process, so that all variants see the same machine state. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Sets of instruments; the first is empty. */
typedef struct observer {
    const char *name, *instruments;
} observer;
static const observer observers[] = {
    {"alone", NULL},
    {"attention", "entropy,distance,jacobian"},
    {"all", "all"},
};
enum { OBSERVERS = sizeof observers / sizeof *observers };

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* points: of the sets of instruments; `bench` is NULL if they cannot observe the network. */
static int open_points(const bench_call *call, const char *job, bench_point *points)
{
    bench_case c;
    att_bench_options options;
    int code = bench_case_open(call, job, call->settings->engine.threads, &c, &options);
    for (int i = 0; code == CLI_OK && i < OBSERVERS; i++) {
        points[i] = (bench_point){.app = call->cli, .batch = c.batch_size, .runs = 1};
        options.instruments = observers[i].instruments;
        att_status status = att_bench_create(call->cli->context, &options, &points[i].bench);
        if (i == 0 || status != ATT_ERR_NOT_FOUND)
            code = cli_check(call->cli, status);
    }
    return code;
}

/* Sends for each set of instruments: the median of the seconds, and the median of their ratio to those of the network
 * alone in the same turn; both are 0 if the instruments cannot observe the network. */
static void send_medians(const bench_call *call, bench_point *points)
{
    const int repeats = call->settings->measure.repeats;
    double over[OBSERVERS][BENCH_REPEATS];
    for (int i = 0; i < OBSERVERS; i++)
        for (int turn = 0; turn < repeats; turn++)
            over[i][turn] = points[i].seconds[turn] / points[0].seconds[turn];
    for (int i = 0; i < OBSERVERS; i++) {
        bench_send(call, &(bench_record){.of.seconds = bench_median(points[i].seconds, repeats)});
        bench_send(call, &(bench_record){.of.seconds = bench_median(over[i], repeats)});
    }
}

static int run_job(const bench_call *call, const char *job)
{
    bench_point *points = calloc(OBSERVERS, sizeof *points);
    if (!points)
        return cli_failure("out of memory");
    int code = open_points(call, job, points);
    if (code == CLI_OK)
        code = bench_take_turns(call, points, OBSERVERS);
    if (code == CLI_OK)
        send_medians(call, points);
    for (int i = 0; i < OBSERVERS; i++)
        att_bench_destroy(&points[i].bench);
    free(points);
    return code;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void show_observe(const bench_call *call, const bench_case *c, int index, double seconds, double over)
{
    double rate = c->batch_size / seconds;
    if (call->prints) {
        cli_print("  %-28s %5d %-10s %9.2f", index == 0 ? c->name : "", c->batch_size, observers[index].name, rate);
        if (index > 0)
            cli_print(" %+8.1f %%", 100 * (over - 1));
        putchar('\n');
    }
    att_json_writer *w = call->writer;
    if (!w)
        return;
    att_json_begin_object(w);
    bench_write_case(call, c);
    att_json_put_string(w, "observed_by", observers[index].instruments);
    att_json_put_number(w, "images_per_second", rate);
    att_json_put_number(w, "seconds_over_alone", over);
    att_json_end_object(w);
}

static void print_head(const bench_call *call)
{
    const int threads = att_context_threads(call->cli->context);
    const bench_measure *m = &call->settings->measure;
    cli_print("%d thread%s, %s, medians of %d turn%s\n", threads, cli_plural(threads), bench_precision(call),
              m->repeats, cli_plural(m->repeats));
    cli_print("attention: %s; additional time relative to alone, median over turns\n\n", observers[1].instruments);
    cli_print("  %-28s %5s %-10s %9s %10s\n", "case", "batch", "observed by", "images/s", "time");
}

static int show(const bench_call *call, const bench_case *c, const bench_records *records)
{
    if (records->count != 2 * OBSERVERS)
        return cli_failure("bench: %s sent %d results, expected %d", c->name, records->count, 2 * OBSERVERS);
    for (int i = 0; i < OBSERVERS; i++)
        if (records->items[2 * i].of.seconds > 0)
            show_observe(call, c, i, records->items[2 * i].of.seconds, records->items[2 * i + 1].of.seconds);
    return CLI_OK;
}

static int run(const bench_call *call)
{
    return bench_run_cases(call, BENCH_TRANSFORMERS, "vit_tiny_patch16_224/infer", print_head, show);
}

const bench_what bench_what_instruments = {.name = "instruments", .operands = "", .run = run, .job = run_job};
