/* The events of a running training: GET /api/events. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"
#include "io/json.h"
#include "serve/list.h"
#include "serve/record.h"
#include "serve/tail.h"

/* The progress of a training, from its records. */
typedef struct progress {
    double epochs, updates;           /* of the whole training; NaN: not known */
    double images_per_second;         /* NaN: not known */
    double first_step, first_seconds; /* of the first record of this process */
    double step, seconds;             /* of the last record */
    bool ended;
} progress;

static const progress unknown = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};

typedef struct follower {
    att_context *context;
    char path[ATT_RUN_PATH];
    att_tail tail;
    att_json_writer *json;
    progress progress;
} follower;

/* --- progress ----------------------------------------------------------------------------------------------------- */

/* The updates that the settings promise: the incomplete last batch of an epoch is dropped. */
static double promised_updates(const json_t *begin, double epochs)
{
    const double images = att_record_number(begin, "train_images"), batch = att_record_number(begin, "batch_size");
    const double accumulated = att_record_number(begin, "grad_accum_steps");
    return batch > 0 ? epochs * ceil(floor(images / batch) / (accumulated > 1 ? accumulated : 1)) : NAN;
}

/* A time before the last one means that the training was continued by another process. */
static void note_time(progress *p, double step, double seconds)
{
    if (isnan(p->first_step) || seconds < p->seconds || step < p->step) {
        p->first_step = step;
        p->first_seconds = seconds;
    }
    p->step = step;
    p->seconds = seconds;
}

static void note(progress *p, const json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "event"));
    const double step = att_record_number(record, "step"), seconds = att_record_number(record, "seconds");
    const double speed = att_record_number(record, "images_per_second");
    if (kind == NULL)
        return;
    if (strcmp(kind, "run_begin") == 0) {
        *p = unknown;
        p->epochs = att_record_number(record, "epochs");
        p->updates = promised_updates(record, p->epochs);
    }
    if (strcmp(kind, "epoch") == 0)
        p->updates = p->epochs * step / (att_record_number(record, "epoch") + 1);
    p->ended = strcmp(kind, "run_end") == 0;
    if (!isnan(step) && !isnan(seconds))
        note_time(p, step, seconds);
    if (!isnan(speed))
        p->images_per_second = speed;
}

static double seconds_left(const progress *p)
{
    const double pace = (p->seconds - p->first_seconds) / (p->step - p->first_step);
    return p->ended ? 0 : p->step > p->first_step ? fmax(0, (p->updates - p->step) * pace) : NAN;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void append_event(att_text *out, const char *kind, const char *data)
{
    att_text_append(out, "event: %s\ndata: %s\n\n", kind, data);
}

static att_status append_problem(follower *f, att_text *out)
{
    const char *text;
    size_t length;
    att_json_begin_object(f->json);
    att_json_key(f->json, "error");
    att_json_string(f->json, att_context_message(f->context));
    att_json_end_object(f->json);
    ATT_TRY(att_json_writer_finish(f->json, &text, &length));
    append_event(out, "problem", text);
    return ATT_OK;
}

/* Appends {record: the line, ...}. A carriage return, which may stand between the line's tokens, would end the event's
 * line. */
static void append_record(const progress *p, const char *line, size_t length, att_text *out)
{
    char speed[ATT_NUMBER_TEXT], left[ATT_NUMBER_TEXT], updates[ATT_NUMBER_TEXT];
    const double values[] = {p->images_per_second, seconds_left(p), p->updates};
    char *texts[] = {speed, left, updates};
    for (int i = 0; i < 3; i++)
        if (isfinite(values[i]))
            att_format_number(values[i], texts[i]);
        else
            strcpy(texts[i], "null");
    att_text_append(
        out, "event: record\ndata: {\"images_per_second\":%s,\"seconds_left\":%s,\"updates\":%s,\"record\":", speed,
        left, updates);
    const size_t begin = out->length;
    att_text_append_bytes(out, line, length);
    for (size_t i = begin; !out->failed && i < out->length; i++)
        if (out->data[i] == '\r')
            out->data[i] = ' ';
    att_text_append(out, "}\n\n");
}

static att_status append_lines(follower *f, const att_text *lines, att_text *out)
{
    if (lines->length == 0)
        return ATT_OK;
    const char *end = lines->data + lines->length;
    for (const char *line = lines->data; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        json_t *record = NULL;
        ATT_TRY(att_json_parse(f->context, f->path, line, (size_t)(newline - line), &record));
        note(&f->progress, record);
        json_decref(record);
        append_record(&f->progress, line, (size_t)(newline - line), out);
        line = newline + 1;
    }
    return ATT_OK;
}

static att_status next(void *user, att_text *out)
{
    follower *f = user;
    bool restarted;
    att_text lines = {.context = f->context};
    att_status status = att_tail_read(&f->tail, &restarted, &lines);
    if (restarted) {
        f->progress = unknown;
        append_event(out, "restart", "{}");
    }
    if (status == ATT_OK)
        status = append_lines(f, &lines, out);
    att_text_free(&lines);
    if (status != ATT_OK && append_problem(f, out) != ATT_OK)
        out->failed = true;
    return status;
}

static void close_follower(void *user)
{
    follower *f = user;
    att_json_writer_destroy(&f->json);
    att_free(f->context, f);
}

static att_status start(const att_request *request, follower *f)
{
    int64_t run;
    char folder[ATT_RUN_PATH];
    ATT_TRY(att_request_integer(request, "run", 0, INT32_MAX, &run));
    ATT_TRY(att_site_run(request->site, request->context, run, folder));
    ATT_TRY(att_path_join(request->context, folder, "metrics.jsonl", f->path, sizeof f->path));
    return att_json_writer_create(request->context, false, &f->json);
}

static att_status get_events(const att_request *request, att_response *response)
{
    follower *f = att_allocate(request->context, sizeof *f);
    if (f == NULL)
        return att_fail_memory(request->context, sizeof *f, "an event stream");
    f->context = f->tail.context = request->context;
    f->tail.path = f->path;
    f->progress = unknown;
    att_status status = start(request, f);
    if (status != ATT_OK)
        close_follower(f);
    else
        response->stream = (att_stream){next, close_follower, f};
    return status;
}

static const att_route routes[] = {{"/api/events", ATT_GET, get_events}};

const att_route_group att_routes_events = {routes, 1, .open = NULL};
