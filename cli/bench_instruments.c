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

typedef struct station {
    att_bench *bench; /* NULL: these instruments cannot observe the network */
    /* over: ratio of the seconds to those of the network alone in the same turn. */
    double seconds[BENCH_REPEATS], over[BENCH_REPEATS];
} station;

static int open_stations(const bench_call *call, const char *job, bench_case *c, station *stations)
{
    att_bench_options options;
    int code = bench_case_open(call, job, call->settings->engine.threads, c, &options);
    for (int i = 0; code == CLI_OK && i < OBSERVERS; i++) {
        options.instruments = observers[i].instruments;
        att_status status = att_bench_create(call->cli->context, &options, &stations[i].bench);
        if (i == 0 || status != ATT_ERR_NOT_FOUND)
            code = cli_check(call->cli, status);
    }
    return code;
}

static int take_turns(const bench_call *call, int batch, station *stations)
{
    const bench_measure *m = &call->settings->measure;
    for (int turn = -m->warmup; turn < m->repeats; turn++) {
        double alone = 0;
        for (int i = 0; i < OBSERVERS; i++) {
            double seconds;
            if (!stations[i].bench)
                continue;
            int code = cli_check(call->cli, att_bench_time(stations[i].bench, batch, &seconds));
            if (code != CLI_OK)
                return code;
            alone = i == 0 ? seconds : alone;
            if (turn < 0)
                continue;
            stations[i].seconds[turn] = seconds;
            stations[i].over[turn] = seconds / alone;
        }
    }
    return CLI_OK;
}

/* Sends for each set of instruments: the median of the seconds, and the median of their ratio to the network alone;
 * both are 0 if the instruments cannot observe the network. */
static int run_job(const bench_call *call, const char *job)
{
    station *stations = calloc(OBSERVERS, sizeof *stations);
    if (!stations)
        return cli_failure("out of memory");
    bench_case c;
    int repeats = call->settings->measure.repeats, code = open_stations(call, job, &c, stations);
    if (code == CLI_OK)
        code = take_turns(call, c.batch_size, stations);
    for (int i = 0; code == CLI_OK && i < OBSERVERS; i++) {
        bench_record seconds = {.of.seconds = bench_median(stations[i].seconds, repeats)};
        bench_record over = {.of.seconds = bench_median(stations[i].over, repeats)};
        bench_send(call, &seconds);
        bench_send(call, &over);
    }
    for (int i = 0; i < OBSERVERS; i++)
        att_bench_destroy(&stations[i].bench);
    free(stations);
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
    cli_json_text(w, "observed_by", observers[index].instruments);
    cli_json_number(w, "images_per_second", rate);
    cli_json_number(w, "seconds_over_alone", over);
    att_json_end_object(w);
}

static void print_head(const bench_call *call)
{
    const int threads = att_context_threads(call->cli->context);
    const bench_measure *m = &call->settings->measure;
    cli_print("%d thread%s, %s, medians of %d turn%s\n", threads, cli_plural(threads),
              att_precision_name(att_recipe_precision(&call->settings->engine)), m->repeats, cli_plural(m->repeats));
    cli_print("attention: %s; additional time relative to alone, median over turns\n\n", observers[1].instruments);
    cli_print("  %-28s %5s %-10s %9s %10s\n", "case", "batch", "observed by", "images/s", "time");
}

static int run(const bench_call *call)
{
    bench_case c;
    int code = CLI_OK, index = 0;
    bench_records *records = malloc(sizeof *records);
    if (!records)
        return cli_failure("out of memory");
    for (; code == CLI_OK && bench_case_at(call->settings, BENCH_TRANSFORMERS, index, &c); index++) {
        code = bench_run_job(c.name, false, records);
        if (code == CLI_OK && records->count != 2 * OBSERVERS)
            code = cli_failure("bench: %s sent %d results, expected %d", c.name, records->count, 2 * OBSERVERS);
        if (code == CLI_OK && index == 0 && call->prints)
            print_head(call);
        for (int i = 0; code == CLI_OK && i < OBSERVERS; i++)
            if (records->items[2 * i].of.seconds > 0)
                show_observe(call, &c, i, records->items[2 * i].of.seconds, records->items[2 * i + 1].of.seconds);
        fflush(stdout);
    }
    free(records);
    return code == CLI_OK && index == 0 ? bench_nothing(call->settings, "vit_tiny_patch16_224/infer") : code;
}

const bench_what bench_what_instruments = {.name = "instruments", .operands = "", .run = run, .job = run_job};
