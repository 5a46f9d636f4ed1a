/* bench_start.c - attscope bench start: from the start of a process to the first logits, as attscope predict gets
 * there, each time in a new process. The files are in the system's cache after the first. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "network.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* Image to logits; *read is the instant when it was decoded, *done when its logits were there. */
static int classify(cli_app *cli, const char *path, const cli_loaded *loaded, att_classifier *classifier, float *logits,
                    double *read, double *done)
{
    att_image image = {0};
    int code = cli_check(cli, att_image_read(cli->context, path, loaded->transform.channels, NULL, &image));
    *read = now();
    if (code == CLI_OK)
        code = cli_check(cli, att_classifier_image(classifier, &image, logits));
    *done = now();
    att_image_free(cli->context, &image);
    return code;
}

static int answer(const bench_call *call, const cli_loaded *loaded, bench_instants *instants)
{
    const cli_engine *engine = &call->settings->engine;
    att_classifier *classifier = NULL;
    int code = cli_check(call->cli, att_classifier_create(loaded->model, loaded->weights, &loaded->transform,
                                                          engine->backend, cli_engine_precision(engine), &classifier));
    if (code != CLI_OK)
        return code;
    instants->ready = now();
    double again;
    float *logits = malloc((size_t)att_classifier_classes(classifier) * sizeof *logits);
    code = logits ? CLI_OK : cli_failure("out of memory");
    if (code == CLI_OK)
        code = classify(call->cli, call->operands[1], loaded, classifier, logits, &instants->image, &instants->first);
    if (code == CLI_OK)
        code = classify(call->cli, call->operands[1], loaded, classifier, logits, &again, &instants->second);
    free(logits);
    att_classifier_destroy(&classifier);
    return code;
}

static int run_job(const bench_call *call, const char *job)
{
    (void)job;
    const bench_settings *s = call->settings;
    cli_preprocess none = {.interpolation = NULL};
    cli_loaded loaded = {.file = NULL};
    bench_record r = {.of.instants.begun = now()};
    int code = cli_engine_open(call->cli, &s->engine);
    r.of.instants.context = now();
    if (code == CLI_OK)
        code = cli_load(call->cli, call->operands[0], &s->network, &none, false, &loaded);
    r.of.instants.loaded = now();
    if (code == CLI_OK)
        code = answer(call, &loaded, &r.of.instants);
    cli_unload(&loaded);
    if (code == CLI_OK)
        bench_send(call, &r);
    return code;
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

enum { PROCESS, CONTEXT, CHECKPOINT, PLAN, IMAGE, NETWORK, TOGETHER, SECOND, STAGE_COUNT };
typedef struct stage {
    const char *key, *text;
} stage;
static const stage stages[STAGE_COUNT] = {
    [PROCESS] = {"process", "process started, flags read"},
    [CONTEXT] = {"context", "threads started"},
    [CHECKPOINT] = {"checkpoint", "network found, weights read"},
    [PLAN] = {"plan", "plan compiled, arenas made"},
    [IMAGE] = {"image", "image decoded"},
    [NETWORK] = {"network", "transformed, weights packed, run"},
    [TOGETHER] = {"first_logits", "from start to first logits"},
    [SECOND] = {"second_logits", "a second image"},
};

typedef struct times {
    double of[STAGE_COUNT][BENCH_REPEATS];
} times;

static void keep(times *t, int i, double start, const bench_instants *at)
{
    t->of[PROCESS][i] = at->begun - start;
    t->of[CONTEXT][i] = at->context - at->begun;
    t->of[CHECKPOINT][i] = at->loaded - at->context;
    t->of[PLAN][i] = at->ready - at->loaded;
    t->of[IMAGE][i] = at->image - at->ready;
    t->of[NETWORK][i] = at->first - at->image;
    t->of[TOGETHER][i] = at->first - start;
    t->of[SECOND][i] = at->second - at->first;
}

static int measure(const bench_call *call, times *t, bench_records *records)
{
    const bench_measure *m = &call->settings->measure;
    for (int i = -m->warmup; i < m->repeats; i++) {
        double start = now();
        int code = bench_run_job("start", i > -m->warmup, records);
        if (code != CLI_OK)
            return code;
        if (i >= 0)
            keep(t, i, start, &records->items[0].of.instants);
    }
    return CLI_OK;
}

static void show(const bench_call *call, times *t)
{
    const bench_settings *s = call->settings;
    att_json_writer *w = call->writer;
    int threads = att_context_threads(call->cli->context);
    if (call->prints)
        cli_print("%s, %d threads, %s, median of %d processes\n%8s\n", call->operands[0], threads,
                  att_precision_name(cli_engine_precision(&s->engine)), s->measure.repeats, "ms");
    if (w) {
        att_json_begin_object(w);
        cli_json_text(w, "case", "start");
        cli_json_text(w, "checkpoint", call->operands[0]);
        cli_json_text(w, "precision", att_precision_name(cli_engine_precision(&s->engine)));
        cli_json_integer(w, "threads", threads);
    }
    for (int i = 0; i < STAGE_COUNT; i++) {
        double ms = 1e3 * bench_median(t->of[i], s->measure.repeats);
        if (call->prints)
            cli_print("%8.2f  %s\n", ms, stages[i].text);
        if (w)
            cli_json_number(w, stages[i].key, ms);
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
