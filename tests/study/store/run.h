/* store/run.h - for tests: the events of a small training. */
#ifndef TESTS_STORE_RUN_H
#define TESTS_STORE_RUN_H

#include <attscope/store.h>

#include "base/io/scratch.h"

#define FIELDS(...)                         \
    (const att_event_field[]){__VA_ARGS__}, \
        (int)(sizeof((const att_event_field[]){__VA_ARGS__}) / sizeof(att_event_field))

static inline att_status emit(const att_sink *sink, att_event_kind kind, int64_t epoch, int64_t step,
                              const att_event_field *fields, int count)
{
    const att_event event = {
        .kind = kind, .epoch = epoch, .step = step, .seconds = 0.5, .fields = fields, .field_count = count};
    return sink->emit(sink->user, &event);
}

static inline att_sink open_store(scratch *self, const att_store_options *options)
{
    att_sink sink;
    CHECK(self->context, att_store_open(self->context, self->folder, options, &sink));
    return sink;
}

static inline const char *path_of(scratch *self, const char *name)
{
    snprintf(self->path, sizeof(self->path), "%s/%s", self->folder, name);
    return self->path;
}

enum { STEPS_PER_EPOCH = 4 };

static inline void emit_begin(const att_sink *sink)
{
    assert_int_equal(emit(sink, ATT_EVENT_RUN_BEGIN, 0, 0, FIELDS({"model", 0, "vit"}, {"seed", 0, "42"})), ATT_OK);
}

/* Emits the events of updates step + 1 to until: one step event each, and an evaluation after each `every`. */
static inline void emit_run_every(const att_sink *sink, int64_t step, int64_t until, int every)
{
    while (step < until) {
        int64_t epoch = step++ / STEPS_PER_EPOCH;
        assert_int_equal(emit(sink, ATT_EVENT_STEP, epoch, step, FIELDS({"loss", 1.0 / (double)step, NULL})), ATT_OK);
        if (step % every == 0)
            assert_int_equal(emit(sink, ATT_EVENT_EPOCH, epoch, step,
                                  FIELDS({"lr", 0.1, NULL}, {"eval_loss", 2, NULL}, {"train_loss", 0.25, NULL},
                                         {"eval_top1", (double)epoch, NULL}, {"images_per_second", 7, NULL})),
                             ATT_OK);
    }
}

/* An evaluation comes after each epoch. */
static inline void emit_run(const att_sink *sink, int64_t step, int64_t until)
{
    emit_run_every(sink, step, until, STEPS_PER_EPOCH);
}

static inline void emit_end(const att_sink *sink, int64_t step)
{
    assert_int_equal(emit(sink, ATT_EVENT_RUN_END, step / STEPS_PER_EPOCH, step, FIELDS({"status", 0, "OK"})), ATT_OK);
}

static inline char *read_log(scratch *self, const char *name)
{
    FILE *file = fopen(path_of(self, name), "rb");
    assert_non_null(file);
    char *text = calloc(1, 100000);
    assert_true(fread(text, 1, 99999, file) < 99999);
    fclose(file);
    return text;
}

#endif
