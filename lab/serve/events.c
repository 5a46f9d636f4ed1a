/* The events of training runs: GET /api/events. */
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

/* A run of a stream. */
typedef struct follower {
    att_context *context;
    feed *feed;
    att_text name;                      /* of the run, as JSON */
    att_tail_place place, place_before; /* before: the last call of next() */
    progress progress, progress_before;
    bool ended; /* because of a problem */
} follower;

/* A stream. */
typedef struct stream {
    att_context *context;
    feeds *all;
    follower *runs;
    int count;
} stream;

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

/* more: further members of the data. */
static void append_event(const follower *f, att_text *out, const char *kind, const char *more)
{
    att_text_append(out, "event: %s\ndata: {\"run\":%s%s}\n\n", kind, f->name.data, more);
}

/* Appends the text as JSON. */
static att_status append_json(att_context *context, const char *text, att_text *out)
{
    const char *json;
    size_t length;
    att_json_writer *writer = NULL;
    ATT_TRY(att_json_writer_create(context, false, &writer));
    att_json_string(writer, text);
    const att_status status = att_json_writer_finish(writer, &json, &length);
    if (status == ATT_OK)
        att_text_append_bytes(out, json, length);
    att_json_writer_destroy(&writer);
    return status == ATT_OK && out->failed ? att_fail_memory(context, length, "an event") : status;
}

static void append_problem(const follower *f, att_text *out)
{
    att_text error = {.context = f->context};
    att_text_append(&error, ",\"error\":");
    if (append_json(f->context, att_context_message(f->context), &error) == ATT_OK)
        append_event(f, out, "problem", error.data);
    att_text_free(&error);
}

/* Appends {run, record: the line, ...}. A carriage return, which may stand between the line's tokens, would end the
 * event's line. */
static void append_record(const follower *f, const char *line, size_t length, att_text *out)
{
    const progress *p = &f->progress;
    char speed[ATT_NUMBER_TEXT], left[ATT_NUMBER_TEXT], updates[ATT_NUMBER_TEXT];
    const double values[] = {p->images_per_second, seconds_left(p), p->updates};
    char *texts[] = {speed, left, updates};
    for (int i = 0; i < 3; i++)
        if (isfinite(values[i]))
            att_format_number(values[i], texts[i]);
        else
            strcpy(texts[i], "null");
    att_text_append(out,
                    "event: record\ndata: {\"run\":%s,\"images_per_second\":%s,\"seconds_left\":%s,\"updates\":%s,"
                    "\"record\":",
                    f->name.data, speed, left, updates);
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
        append_record(f, line, (size_t)(newline - line), out);
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
        append_event(f, out, "restart", "");
    }
    if (status == ATT_OK)
        status = append_lines(f, &lines, out);
    att_text_free(&lines);
    return out->failed ? ATT_ERR_MEMORY : status;
}

static void keep(stream *s)
{
    for (int i = 0; i < s->count; i++) {
        s->runs[i].place_before = s->runs[i].place;
        s->runs[i].progress_before = s->runs[i].progress;
    }
}

/* Takes back what was appended since keep(), for which there is no memory: a later call appends it. */
static void take_back(stream *s, att_text *out)
{
    for (int i = 0; i < s->count; i++) {
        s->runs[i].place = s->runs[i].place_before;
        s->runs[i].progress = s->runs[i].progress_before;
    }
    att_text_free(out);
}

/* A run with damaged records is followed no longer; the stream ends after the last such run. */
static att_status next(void *user, att_text *out)
{
    stream *s = user;
    att_status last = ATT_OK;
    int left = 0;
    keep(s);
    for (int i = 0; i < s->count; i++) {
        follower *f = &s->runs[i];
        if (f->ended)
            continue;
        const att_status status = append_events(f, out);
        if (status == ATT_ERR_MEMORY) {
            take_back(s, out);
            return ATT_OK;
        }
        if (status != ATT_OK) {
            append_problem(f, out);
            f->ended = true;
            last = status;
        } else
            left++;
    }
    return left > 0 ? ATT_OK : last;
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

static void close_stream(void *user)
{
    stream *s = user;
    for (int i = 0; i < s->count; i++) {
        att_text_free(&s->runs[i].name);
        leave_feed(s->all, s->runs[i].feed);
    }
    att_free(s->context, s->runs);
    att_free(s->context, s);
}

static att_status join(stream *s, const char *name, const char *folder)
{
    char path[ATT_RUN_PATH];
    follower *f = &s->runs[s->count];
    *f = (follower){.context = s->context, .name = {.context = s->context}, .progress = unknown};
    ATT_TRY(att_path_join(s->context, folder, "metrics.jsonl", path, sizeof path));
    ATT_TRY(join_feed(s->all, s->context, path, &f->feed));
    s->count++;
    return append_json(s->context, name, &f->name);
}

static att_status join_all(const att_request_runs *runs, stream *s)
{
    ATT_TRY(att_new(s->context, &s->runs, (size_t)runs->count, "an event stream"));
    for (int i = 0; i < runs->count; i++)
        ATT_TRY(join(s, runs->names[i], runs->folders[i]));
    return ATT_OK;
}

static att_status get_events(const att_request *request, att_response *response)
{
    att_request_runs *runs;
    stream *s;
    ATT_TRY(att_request_find_runs(request, &runs));
    att_status status = att_new(request->context, &s, 1, "an event stream");
    if (status == ATT_OK) {
        *s = (stream){.context = request->context, .all = request->state};
        status = join_all(runs, s);
        if (status == ATT_OK)
            response->stream = (att_stream){next, close_stream, s};
        else
            close_stream(s);
    }
    att_free(request->context, runs);
    return status;
}

static const att_route routes[] = {{"/api/events", ATT_GET, get_events}};

const att_route_group att_routes_events = {routes, 1, open_feeds, close_feeds};
