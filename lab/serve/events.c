/* The events of a running training: GET /api/events. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "lab/serve/list.h"
#include "lab/serve/record.h"
#include "lab/serve/tail.h"

/* The progress of a training run, from its records. */
typedef struct progress {
    double updates;                   /* of the whole training; NaN: not known */
    double epochs;                    /* of the whole training, if the records do not say its updates; else NaN */
    double images_per_second;         /* NaN: not known */
    double first_step, first_seconds; /* of the first record of this process */
    double step, seconds;             /* of the last record */
    bool ended;
} progress;

static const progress unknown = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};

/* The records of a run, for all streams that follow them. */
typedef struct feed {
    char path[ATT_RUN_PATH];
    pthread_mutex_t lock;
    att_tail tail; /* under the lock */
    int streams;   /* under the lock of the feeds, as the list is */
    struct feed *next;
} feed;

/* The runs that streams follow now. */
typedef struct feeds {
    att_context *context;
    pthread_mutex_t lock;
    feed *first;
} feeds;

/* A stream. */
typedef struct follower {
    att_context *context;
    feeds *all;
    feed *feed;
    att_tail_place place;
    progress progress;
} follower;

/* --- progress ----------------------------------------------------------------------------------------------------- */

/* The updates that the settings of an earlier version promise: the incomplete last batch of an epoch is dropped. */
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
        const double updates = att_record_number(record, "updates"), epochs = att_record_number(record, "epochs");
        p->epochs = updates > 0 ? NAN : epochs;
        p->updates = updates > 0 ? updates : promised_updates(record, epochs);
    }
    if (strcmp(kind, "epoch") == 0 && !isnan(p->epochs))
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

static void append_problem(const follower *f, att_text *out)
{
    const char *text;
    size_t length;
    att_json_writer *json = NULL;
    if (att_json_writer_create(f->context, false, &json) != ATT_OK)
        return;
    att_json_begin_object(json);
    att_json_put_string(json, "error", att_context_message(f->context));
    att_json_end_object(json);
    if (att_json_writer_finish(json, &text, &length) == ATT_OK)
        append_event(out, "problem", text);
    att_json_writer_destroy(&json);
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
        ATT_TRY(att_json_parse(f->context, f->feed->path, line, (size_t)(newline - line), &record));
        note(&f->progress, record);
        json_decref(record);
        append_record(&f->progress, line, (size_t)(newline - line), out);
        line = newline + 1;
    }
    return ATT_OK;
}

static att_status append_events(follower *f, att_text *out)
{
    bool restarted;
    att_text lines = {.context = f->context};
    pthread_mutex_lock(&f->feed->lock);
    att_status status = att_tail_read(&f->feed->tail, &f->place, &restarted, &lines);
    pthread_mutex_unlock(&f->feed->lock);
    if (restarted) {
        f->progress = unknown;
        append_event(out, "restart", "{}");
    }
    if (status == ATT_OK)
        status = append_lines(f, &lines, out);
    att_text_free(&lines);
    return out->failed ? ATT_ERR_MEMORY : status;
}

/* Without memory for the events, the follower stays where it was: a later call sends them. */
static att_status next(void *user, att_text *out)
{
    follower *f = user;
    const att_tail_place place = f->place;
    const progress before = f->progress;
    const att_status status = append_events(f, out);
    if (status == ATT_ERR_MEMORY) {
        f->place = place;
        f->progress = before;
        att_text_free(out);
        return ATT_OK;
    }
    if (status != ATT_OK)
        append_problem(f, out);
    return status;
}

/* --- feeds -------------------------------------------------------------------------------------------------------- */

static att_status open_feeds(att_context *context, att_site *site, void **state)
{
    (void)site;
    feeds *all;
    ATT_TRY(att_new(context, &all, 1, "the event streams"));
    all->context = context;
    pthread_mutex_init(&all->lock, NULL);
    *state = all;
    return ATT_OK;
}

static void close_feeds(void *state)
{
    feeds *all = state;
    pthread_mutex_destroy(&all->lock);
    att_free(all->context, all);
}

/* NULL: there is no memory. */
static feed *make_feed(feeds *all, const char *path)
{
    feed *made = att_allocate(all->context, sizeof *made);
    if (made == NULL)
        return NULL;
    strcpy(made->path, path);
    pthread_mutex_init(&made->lock, NULL);
    made->tail.path = made->path;
    made->next = all->first;
    return all->first = made;
}

/* Finds the feed of a file, or makes it. path: at most ATT_RUN_PATH - 1 bytes. */
static att_status join_feed(feeds *all, att_context *context, const char *path, feed **joined)
{
    pthread_mutex_lock(&all->lock);
    feed *found = all->first;
    while (found != NULL && strcmp(found->path, path) != 0)
        found = found->next;
    if (found == NULL)
        found = make_feed(all, path);
    if (found != NULL)
        found->streams++;
    pthread_mutex_unlock(&all->lock);
    *joined = found;
    return found != NULL ? ATT_OK : att_fail_memory(context, sizeof *found, "an event stream");
}

/* Frees the feed after its last stream. */
static void leave_feed(feeds *all, feed *left)
{
    pthread_mutex_lock(&all->lock);
    feed **at = &all->first;
    while (*at != left)
        at = &(*at)->next;
    if (--left->streams == 0) {
        *at = left->next;
        pthread_mutex_destroy(&left->lock);
        att_free(all->context, left);
    }
    pthread_mutex_unlock(&all->lock);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static void close_follower(void *user)
{
    follower *f = user;
    leave_feed(f->all, f->feed);
    att_free(f->context, f);
}

static att_status join(const att_request *request, feed **joined)
{
    int64_t run;
    char folder[ATT_RUN_PATH], path[ATT_RUN_PATH];
    ATT_TRY(att_request_integer(request, "run", 0, INT32_MAX, &run));
    ATT_TRY(att_site_run(request->site, request->context, run, folder));
    ATT_TRY(att_path_join(request->context, folder, "metrics.jsonl", path, sizeof path));
    return join_feed(request->state, request->context, path, joined);
}

static att_status get_events(const att_request *request, att_response *response)
{
    feed *joined;
    ATT_TRY(join(request, &joined));
    follower *f = att_allocate(request->context, sizeof *f);
    if (f == NULL) {
        leave_feed(request->state, joined);
        return att_fail_memory(request->context, sizeof *f, "an event stream");
    }
    *f = (follower){.context = request->context, .all = request->state, .feed = joined, .progress = unknown};
    response->stream = (att_stream){next, close_follower, f};
    return ATT_OK;
}

static const att_route routes[] = {{"/api/events", ATT_GET, get_events}};

const att_route_group att_routes_events = {routes, 1, open_feeds, close_feeds};
