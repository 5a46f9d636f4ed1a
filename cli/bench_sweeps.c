/* bench_sweeps.c - attscope bench batch and bench threads: speed of a network by batch size and by number of threads.
 * All points run in turns in one process, so that all of them see the same machine state. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* A network with a given number of threads. */
typedef struct station {
    cli_app app; /* has its own context */
    att_bench *bench;
    int batch; /* maximum images per run */
} station;

enum { MOST_BATCH = 65536, MOST_THREADS = 1024, SHORT_IMAGES = 8 };

/* most_batch: 0 means the case's batch size. */
static int open_station(const bench_call *call, const char *job, int threads, int most_batch, station *s)
{
    bench_case c;
    att_bench_options options;
    bench_call own = *call;
    own.cli = &s->app;
    int code = bench_case_open(&own, job, threads, &c, &options);
    s->batch = options.batch_size = most_batch ? most_batch : c.batch_size;
    return code == CLI_OK ? cli_check(&s->app, att_bench_create(s->app.context, &options, &s->bench)) : code;
}

static void close_station(station *s)
{
    att_bench_destroy(&s->bench);
    att_context_destroy(&s->app.context);
}

/* Runs of `batch` images; short ones are repeated and averaged. */
static bench_point point_of(station *s, int batch)
{
    return (bench_point){
        .bench = s->bench, .app = &s->app, .batch = batch, .runs = batch < SHORT_IMAGES ? SHORT_IMAGES / batch : 1};
}

/* Times all points in turns and sends their medians, in order. */
static int take_turns(const bench_call *call, bench_point *points, int count)
{
    int code = bench_take_turns(call, points, count);
    for (int i = 0; code == CLI_OK && i < count; i++) {
        bench_record r = {.of.seconds = bench_median(points[i].seconds, call->settings->measure.repeats)};
        bench_send(call, &r);
    }
    return code;
}

static int run_jobs(const bench_call *call, int (*show)(const bench_call *, const bench_case *, const bench_records *))
{
    return bench_run_cases(call, "vit_tiny*", "vit_tiny_patch16_224/infer", NULL, show);
}

/* --- batch -------------------------------------------------------------------------------------------------------- */

static int batch_sizes(const bench_call *call, int sizes[BENCH_POINTS])
{
    static const int standard[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 128, 0};
    return bench_points(call->settings, standard, MOST_BATCH, sizes);
}

static int batch_job(const bench_call *call, const char *job)
{
    int sizes[BENCH_POINTS], count = batch_sizes(call, sizes);
    bench_point *points = calloc(BENCH_POINTS, sizeof *points);
    station s = {.bench = NULL};
    int code = count < 0 ? CLI_USAGE : points ? CLI_OK : cli_failure("out of memory");
    if (code == CLI_OK)
        code = open_station(call, job, call->settings->engine.threads, sizes[count - 1], &s);
    for (int i = 0; code == CLI_OK && i < count; i++)
        points[i] = point_of(&s, sizes[i]);
    if (code == CLI_OK)
        code = take_turns(call, points, count);
    close_station(&s);
    free(points);
    return code;
}

static void show_size(const bench_call *call, const bench_case *c, int batch, double seconds, double relative)
{
    if (call->prints) {
        cli_print("%8d %11.2f %11.2f", batch, 1e3 * seconds, batch / seconds);
        bench_print_relative(relative);
        putchar('\n');
    }
    att_json_writer *w = call->writer;
    if (!w)
        return;
    att_json_begin_object(w);
    att_json_put_string(w, "sweep", "batch");
    bench_write_case(call, c);
    att_json_put_integer(w, "threads", att_context_threads(call->cli->context));
    att_json_put_integer(w, "batch_size", batch);
    att_json_put_number(w, "step_time", 1e3 * seconds);
    att_json_put_number(w, "samples_per_sec", batch / seconds);
    if (relative > 0)
        att_json_put_number(w, "beside_neighbours", relative);
    att_json_end_object(w);
}

static int show_batch(const bench_call *call, const bench_case *c, const bench_records *records)
{
    int sizes[BENCH_POINTS], count = batch_sizes(call, sizes);
    double rates[BENCH_POINTS];
    const int threads = att_context_threads(call->cli->context);
    if (count != records->count)
        return cli_failure("%s gave %d results, expected %d", c->name, records->count, count);
    if (call->prints)
        cli_print("%s, %d thread%s, %s, median of %d\n%8s %11s %11s  beside\n", c->name, threads, cli_plural(threads),
                  bench_precision(call), call->settings->measure.repeats, "batch", "ms", "images/s");
    for (int i = 0; i < count; i++)
        rates[i] = sizes[i] / records->items[i].of.seconds;
    for (int i = 0; i < count; i++)
        show_size(call, c, sizes[i], records->items[i].of.seconds, bench_relative(sizes, rates, count, i));
    if (call->prints)
        putchar('\n');
    return CLI_OK;
}

static int batch_run(const bench_call *call)
{
    int sizes[BENCH_POINTS];
    if (batch_sizes(call, sizes) < 0)
        return CLI_USAGE;
    int code = run_jobs(call, show_batch);
    if (code == CLI_OK && call->prints)
        puts(
            "Beside: images/s divided by the value interpolated between the batch sizes before\n"
            "and after; < marks less than 0.8.");
    return code;
}

const bench_what bench_what_batch = {.name = "batch", .operands = "", .run = batch_run, .job = batch_job};

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* Powers of two below `all`, and `all`. */
static int thread_numbers(const bench_call *call, int all, int numbers[BENCH_POINTS])
{
    int standard[BENCH_POINTS + 1] = {0}, count = 0;
    for (int n = 1; n < all; n *= 2)
        standard[count++] = n;
    standard[count] = all;
    return bench_points(call->settings, standard, MOST_THREADS, numbers);
}

/* Reads the thread counts to visit. The number of all threads comes from a context. */
static int count_threads(const bench_call *call, int numbers[BENCH_POINTS])
{
    cli_app app = {.context = NULL};
    int code = cli_engine_open(&app, &call->settings->engine);
    int count = code == CLI_OK ? thread_numbers(call, att_context_threads(app.context), numbers) : -1;
    att_context_destroy(&app.context);
    return count;
}

static int threads_job(const bench_call *call, const char *job)
{
    int numbers[BENCH_POINTS], count = count_threads(call, numbers);
    station *stations = calloc(BENCH_POINTS, sizeof *stations);
    bench_point *points = calloc((size_t)2 * BENCH_POINTS, sizeof *points);
    int code = count < 0 ? CLI_USAGE : stations && points ? CLI_OK : cli_failure("out of memory");
    for (int i = 0; code == CLI_OK && i < count; i++) {
        code = open_station(call, job, numbers[i], 0, &stations[i]);
        points[2 * i] = point_of(&stations[i], stations[i].batch);
        points[2 * i + 1] = point_of(&stations[i], 1);
    }
    if (code == CLI_OK)
        code = take_turns(call, points, 2 * count);
    for (int i = 0; stations && i < BENCH_POINTS; i++)
        close_station(&stations[i]);
    free(points);
    free(stations);
    return code;
}

/* Seconds of a batch, and of one image. */
typedef struct pair {
    double batch, one;
} pair;

static void show_threads(const bench_call *call, const bench_case *c, int threads, pair seconds, pair first,
                         double relative)
{
    int batch = c->batch_size;
    if (call->prints) {
        cli_print("%8d %11.2f %8.2f", threads, batch / seconds.batch, first.batch / seconds.batch);
        bench_print_relative(relative);
        cli_print(" %12.2f %8.2f\n", 1e3 * seconds.one, seconds.one / first.one);
    }
    att_json_writer *w = call->writer;
    if (!w)
        return;
    att_json_begin_object(w);
    att_json_put_string(w, "sweep", "threads");
    bench_write_case(call, c);
    att_json_put_integer(w, "threads", threads);
    att_json_put_integer(w, "batch_size", batch);
    att_json_put_number(w, "samples_per_sec", batch / seconds.batch);
    att_json_put_number(w, "speedup", first.batch / seconds.batch);
    if (relative > 0)
        att_json_put_number(w, "beside_neighbours", relative);
    att_json_put_number(w, "one_image_time", 1e3 * seconds.one);
    att_json_put_number(w, "one_image_ratio", seconds.one / first.one);
    att_json_end_object(w);
}

static int show_all_threads(const bench_call *call, const bench_case *c, const bench_records *records)
{
    int numbers[BENCH_POINTS], count = count_threads(call, numbers);
    pair seconds[BENCH_POINTS];
    double rates[BENCH_POINTS];
    if (2 * count != records->count)
        return cli_failure("%s gave %d results, expected %d", c->name, records->count, 2 * count);
    if (call->prints)
        cli_print("%s, batch %d, %s, median of %d\n%8s %11s %8s  beside %12s %8s\n", c->name, c->batch_size,
                  bench_precision(call), call->settings->measure.repeats, "threads", "images/s", "times",
                  "one image/ms", "times");
    for (int i = 0; i < count; i++) {
        seconds[i] = (pair){records->items[2 * i].of.seconds, records->items[2 * i + 1].of.seconds};
        rates[i] = 1 / seconds[i].batch;
    }
    for (int i = 0; i < count; i++)
        show_threads(call, c, numbers[i], seconds[i], seconds[0], bench_relative(numbers, rates, count, i));
    if (call->prints)
        putchar('\n');
    return CLI_OK;
}

static int threads_run(const bench_call *call)
{
    int numbers[BENCH_POINTS];
    if (count_threads(call, numbers) < 0)
        return CLI_USAGE;
    int code = run_jobs(call, show_all_threads);
    if (code == CLI_OK && call->prints)
        puts(
            "Times: relative to the first row. One image: a batch of one, shared by all\n"
            "threads in inference. Beside: images/s divided by the value interpolated between\n"
            "the rows before and after; < marks less than 0.8.");
    return code;
}

const bench_what bench_what_threads = {.name = "threads", .operands = "", .run = threads_run, .job = threads_job};
