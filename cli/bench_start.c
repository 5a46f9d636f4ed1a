/* bench_start.c - attscope bench start: time from the start of a process to the first logits, in the same steps as in
 * attscope predict. Each run is a new process. After the first run, the files are in the system's cache. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "network.h"
#include "progress.h"

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* Predicts an image. *read: time when the image was decoded; *done: time when the logits were computed. */
static int predict(cli_app *cli, const char *path, const cli_loaded *loaded, double *read, double *done)
{
    att_batch outputs;
    att_image image = {0};
    int code = cli_check(cli, att_image_read(cli->context, path, loaded->identity->preprocess.in_chans, NULL, &image));
    *read = cli_now();
    if (code == CLI_OK)
        code = cli_check(cli, att_network_run_images(loaded->network, &image, 1, &outputs));
    *done = cli_now();
    att_image_free(cli->context, &image);
    return code;
}

static int answer(const bench_call *call, const cli_loaded *loaded, bench_instants *instants)
{
    double again;
    int code = predict(call->cli, call->operands[1], loaded, &instants->image, &instants->first);
    return code == CLI_OK ? predict(call->cli, call->operands[1], loaded, &again, &instants->second) : code;
}

static int run_job(const bench_call *call, const char *job)
{
    (void)job;
    const bench_settings *s = call->settings;
    att_recipe_preprocess none = {.interpolation = NULL};
    cli_loaded loaded = {.file = NULL};
    bench_record r = {.of.instants.begun = cli_now()};
    int code = cli_engine_open(call->cli, &s->engine);
    r.of.instants.context = cli_now();
    if (code == CLI_OK)
        code = cli_load(call->cli, call->operands[0],
                        &(cli_load_options){&s->network, &none, &s->engine, false, false, ATT_F32, NULL, 0}, &loaded);
    r.of.instants.loaded = cli_now();
    if (code == CLI_OK)
        code = answer(call, &loaded, &r.of.instants);
    cli_unload(&loaded);
    if (code == CLI_OK)
        bench_send(call, &r);
    return code;
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

/* X(stage, key in JSON, text) */
#define STAGE_LIST(X)                                        \
    X(PROCESS, process, "process started, flags read")       \
    X(CONTEXT, context, "threads started")                   \
    X(CHECKPOINT, checkpoint, "network found, weights read") \
    X(IMAGE, image, "image decoded")                         \
    X(NETWORK, network, "compiled, weights packed, run")     \
    X(TOGETHER, first_logits, "from start to first logits")  \
    X(SECOND, second_logits, "a second image")

#define STAGE_ENUM(stage, key, text) stage,
enum { STAGE_LIST(STAGE_ENUM) STAGE_COUNT };
typedef struct stage {
    const char *key, *text;
} stage;
#define STAGE_ROW(stage, key, text) [stage] = {#key, text},
static const stage stages[STAGE_COUNT] = {STAGE_LIST(STAGE_ROW)};

typedef struct times {
    double of[STAGE_COUNT][BENCH_REPEATS];
} times;

static void store_times(times *t, int i, double start, const bench_instants *at)
{
    t->of[PROCESS][i] = at->begun - start;
    t->of[CONTEXT][i] = at->context - at->begun;
    t->of[CHECKPOINT][i] = at->loaded - at->context;
    t->of[IMAGE][i] = at->image - at->loaded;
    t->of[NETWORK][i] = at->first - at->image;
    t->of[TOGETHER][i] = at->first - start;
    t->of[SECOND][i] = at->second - at->first;
}

static int measure(const bench_call *call, times *t, bench_records *records)
{
    const bench_measure *m = &call->settings->measure;
    for (int i = -m->warmup; i < m->repeats; i++) {
        double start = cli_now();
        int code = bench_run_job("start", i > -m->warmup, records);
        if (code != CLI_OK)
            return code;
        if (i >= 0)
            store_times(t, i, start, &records->items[0].of.instants);
    }
    return CLI_OK;
}

static void show(const bench_call *call, times *t)
{
    const bench_settings *s = call->settings;
    att_json_writer *w = call->writer;
    int threads = att_context_threads(call->cli->context);
    if (call->prints)
        cli_print("%s, %d thread%s, %s, median of %d process%s\n%8s\n", call->operands[0], threads, cli_plural(threads),
                  bench_precision(call), s->measure.repeats, s->measure.repeats == 1 ? "" : "es", "ms");
    if (w) {
        att_json_begin_object(w);
        att_json_put_string(w, "case", "start");
        att_json_put_string(w, "checkpoint", call->operands[0]);
        att_json_put_string(w, "precision", bench_precision(call));
        att_json_put_integer(w, "threads", threads);
    }
    for (int i = 0; i < STAGE_COUNT; i++) {
        double ms = 1e3 * bench_median(t->of[i], s->measure.repeats);
        if (call->prints)
            cli_print("%8.2f  %s\n", ms, stages[i].text);
        if (w)
            att_json_put_number(w, stages[i].key, ms);
    }
    if (w)
        att_json_end_object(w);
}

static int run(const bench_call *call)
{
    times *t = malloc(sizeof *t);
    bench_records *records = malloc(sizeof *records);
    int code = t && records ? measure(call, t, records) : cli_failure("out of memory");
    if (code == CLI_OK)
        show(call, t);
    free(records);
    free(t);
    return code;
}

const bench_what bench_what_start = {.name = "start",
                                     .operands = "CHECKPOINT IMAGE",
                                     .least_operands = 2,
                                     .most_operands = 2,
                                     .run = run,
                                     .job = run_job};
