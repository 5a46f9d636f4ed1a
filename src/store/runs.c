/* Writes events to the database of all runs: for a training, one transaction per event; for a measurement of a
 * checkpoint, one transaction in all. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"
#include "store/database.h"
#include "store/log.h"

typedef struct runs {
    att_context *context;
    att_database database;
    att_json_writer *json; /* writes runs.settings */
    char *folder;          /* runs.folder */
    const char *source;    /* measurements.source */
    bool own_row;          /* the measurement is in a folder without a training and has a row of its own in `runs` */
    int64_t id;            /* runs.id; 0 if there is no row */
} runs;

/* --- the run's row ------------------------------------------------------------------------------------------------ */

/* Returns the path of `folder` relative to the database's folder, or the absolute path of `folder` if it is not inside
 * the database's folder. Returns NULL if memory is exhausted. */
static char *name_of(att_context *context, const char *folder, const char *database)
{
    char *whole = realpath(folder, NULL), *file = realpath(database, NULL);
    char *slash = file ? strrchr(file, '/') : NULL;
    size_t above = slash ? (size_t)(slash - file) + 1 : 0;
    bool below = whole && slash && strncmp(whole, file, above) == 0 && whole[above] != '\0';
    char *name = att_copy_string(context, below ? whole + above : whole ? whole : folder);
    free(whole);
    free(file);
    return name;
}

static const char *text_of(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (event->fields[i].text && strcmp(event->fields[i].name, name) == 0)
            return event->fields[i].text;
    return NULL;
}

/* Makes a JSON object from the event's fields. *text is valid until the writer starts another document. */
static att_status settings_of(runs *r, const att_event *event, const char **text)
{
    size_t length;
    att_json_begin_object(r->json);
    for (int i = 0; i < event->field_count; i++) {
        att_json_key(r->json, event->fields[i].name);
        if (event->fields[i].text)
            att_json_string(r->json, event->fields[i].text);
        else
            att_json_number(r->json, event->fields[i].number);
    }
    att_json_end_object(r->json);
    return att_json_writer_finish(r->json, text, &length);
}

static att_status make_row(runs *r, const char *model, const char *settings)
{
    char started[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    att_query query = att_query_open(
        &r->database, "INSERT INTO runs(folder,model,started,settings) VALUES(?,?,?,?) ON CONFLICT(folder) DO NOTHING");
    att_query_text(&query, r->folder);
    att_query_text(&query, model);
    att_query_text(&query, started);
    att_query_text(&query, settings);
    att_query_run(&query);
    return att_query_close(&query);
}

static att_status find_row(runs *r)
{
    r->id = 0;
    att_query query = att_query_open(&r->database, "SELECT id FROM runs WHERE folder=?");
    att_query_text(&query, r->folder);
    if (att_query_next(&query))
        r->id = sqlite3_column_int64(query.statement, 0);
    return att_query_close(&query);
}

static att_status delete_rows(runs *r, const char *sql)
{
    att_query query = att_query_open(&r->database, sql);
    att_query_integer(&query, r->id);
    att_query_run(&query);
    return att_query_close(&query);
}

static att_status delete_run(runs *r)
{
    ATT_TRY(delete_rows(r, "DELETE FROM scalars WHERE run=?"));
    ATT_TRY(delete_rows(r, "DELETE FROM measurements WHERE run=?"));
    return delete_rows(r, "DELETE FROM runs WHERE id=?");
}

/* Deletes what was recorded after the point from which the run resumes. */
static att_status delete_later(runs *r, const att_store_resume *resume)
{
    att_query scalars =
        att_query_open(&r->database, "DELETE FROM scalars WHERE run=? AND (step>? OR (event='epoch' AND epoch>=?))");
    att_query_integer(&scalars, r->id);
    att_query_integer(&scalars, resume->step);
    att_query_integer(&scalars, resume->epoch);
    att_query_run(&scalars);
    ATT_TRY(att_query_close(&scalars));
    att_query measured =
        att_query_open(&r->database, "DELETE FROM measurements WHERE run=? AND source='train' AND step>?");
    att_query_integer(&measured, r->id);
    att_query_integer(&measured, resume->step);
    att_query_run(&measured);
    ATT_TRY(att_query_close(&measured));
    return delete_rows(r, "UPDATE runs SET status=NULL,message=NULL WHERE id=?");
}

static att_status delete_earlier(runs *r, const att_store_resume *resume)
{
    ATT_TRY(find_row(r));
    if (r->id == 0)
        return ATT_OK;
    return resume ? delete_later(r, resume) : delete_run(r);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static att_status begin_run(runs *r, const att_event *event)
{
    const char *settings;
    ATT_TRY(settings_of(r, event, &settings));
    ATT_TRY(make_row(r, text_of(event, "model"), settings));
    return find_row(r);
}

static att_status add_scalars(runs *r, const att_event *event)
{
    att_query query =
        att_query_open(&r->database, "INSERT INTO scalars(run,step,epoch,event,name,value) VALUES(?,?,?,?,?,?)");
    for (int i = 0; i < event->field_count; i++) {
        if (event->fields[i].text)
            continue;
        att_query_integer(&query, r->id);
        att_query_integer(&query, event->step);
        att_query_integer(&query, event->epoch);
        att_query_text(&query, event->kind == ATT_EVENT_EPOCH ? "epoch" : "step");
        att_query_text(&query, event->fields[i].name);
        att_query_real(&query, event->fields[i].number);
        att_query_run(&query);
    }
    return att_query_close(&query);
}

static att_status add_measurements(runs *r, const att_event *event)
{
    att_query query = att_query_open(&r->database,
                                     "INSERT INTO measurements(run,source,step,split,instrument,node,"
                                     "head,statistic,unit,value,deviation,n) "
                                     "VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
    for (int i = 0; i < event->measurement_count; i++) {
        const att_measurement *m = &event->measurements[i];
        att_query_integer(&query, r->id);
        att_query_text(&query, r->source);
        att_query_integer(&query, event->step);
        att_query_text(&query, text_of(event, "split"));
        att_query_text(&query, m->instrument);
        att_query_text(&query, m->node);
        att_query_integer(&query, m->head);
        att_query_text(&query, m->statistic);
        att_query_text(&query, m->unit);
        att_query_real(&query, m->mean);
        att_query_real(&query, m->deviation);
        att_query_integer(&query, m->count);
        att_query_run(&query);
    }
    return att_query_close(&query);
}

static att_status end_run(runs *r, const att_event *event)
{
    att_query query = att_query_open(&r->database, "UPDATE runs SET status=?,message=? WHERE id=?");
    att_query_text(&query, text_of(event, "status"));
    att_query_text(&query, text_of(event, "message"));
    att_query_integer(&query, r->id);
    att_query_run(&query);
    return att_query_close(&query);
}

static att_status emit_within(runs *r, const att_event *event)
{
    switch (event->kind) {
    case ATT_EVENT_RUN_BEGIN:
        return begin_run(r, event);
    case ATT_EVENT_STEP:
    case ATT_EVENT_EPOCH:
        return add_scalars(r, event);
    case ATT_EVENT_MEASURE:
        return add_measurements(r, event);
    case ATT_EVENT_RUN_END:
        return end_run(r, event);
    case ATT_EVENT_WARNING:
        break;
    }
    return ATT_OK;
}

static att_status emit_run(void *log, const att_event *event)
{
    runs *r = log;
    ATT_TRY(att_database_begin(&r->database));
    ATT_TRY(att_database_end(&r->database, emit_within(r, event)));
    if (event->kind == ATT_EVENT_EPOCH || event->kind == ATT_EVENT_RUN_END)
        att_database_sync(&r->database);
    return ATT_OK;
}

/* Keeps the row of the training. If it is missing, makes one without settings. */
static att_status begin_beside_training(runs *r, const att_event *event)
{
    ATT_TRY(make_row(r, text_of(event, "model"), NULL));
    ATT_TRY(find_row(r));
    return delete_rows(r, "DELETE FROM measurements WHERE run=? AND source='measure'");
}

/* Begins a measurement and deletes the rows of an earlier one. */
static att_status begin_measured(runs *r, const att_event *event)
{
    if (!r->own_row)
        return begin_beside_training(r, event);
    ATT_TRY(delete_earlier(r, NULL));
    return begin_run(r, event);
}

static att_status emit_measured_within(runs *r, const att_event *event)
{
    if (event->kind == ATT_EVENT_RUN_BEGIN)
        return begin_measured(r, event);
    if (event->kind == ATT_EVENT_MEASURE)
        return add_measurements(r, event);
    return event->kind == ATT_EVENT_RUN_END && r->own_row ? end_run(r, event) : ATT_OK;
}

/* Uses one transaction for all events. */
static att_status emit_measured(void *log, const att_event *event)
{
    runs *r = log;
    if (event->kind == ATT_EVENT_RUN_BEGIN)
        ATT_TRY(att_database_begin(&r->database));
    att_status status = emit_measured_within(r, event);
    return status != ATT_OK || event->kind == ATT_EVENT_RUN_END ? att_database_end(&r->database, status) : ATT_OK;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void close_runs(void *log)
{
    runs *r = log;
    att_database_close(&r->database);
    att_json_writer_destroy(&r->json);
    att_free(r->context, r->folder);
    att_free(r->context, r);
}

static att_status open_runs(att_context *context, const att_log_place *place, const char *source, void **log)
{
    runs *r = att_allocate(context, sizeof *r);
    if (!r)
        return att_fail_memory(context, sizeof *r, place->path);
    r->context = context;
    r->source = source;
    att_status status = att_json_writer_create(context, false, &r->json);
    if (status == ATT_OK)
        status = att_database_open(context, place->path, &r->database);
    if (status == ATT_OK && !(r->folder = name_of(context, place->folder, place->path)))
        status = att_fail_memory(context, strlen(place->folder), place->folder);
    if (status != ATT_OK)
        close_runs(r);
    else
        *log = r;
    return status;
}

static att_status open_trained(att_context *context, const att_log_place *place, void **log)
{
    void *opened = NULL;
    ATT_TRY(open_runs(context, place, "train", &opened));
    runs *r = opened;
    att_status status = att_database_begin(&r->database);
    if (status == ATT_OK)
        status = att_database_end(&r->database, delete_earlier(r, place->resume));
    if (status != ATT_OK)
        close_runs(r);
    else
        *log = r;
    return status;
}

/* Sets r->own_row: whether the folder lacks the log of a training. */
static att_status look_for_training(runs *r, const char *folder)
{
    att_text path = {.context = r->context};
    att_text_append(&path, "%s/%s", folder, att_log_jsonl.file);
    att_status status = path.failed ? att_fail_memory(r->context, strlen(folder), folder) : ATT_OK;
    r->own_row = status == ATT_OK && !att_file_exists(path.data);
    att_text_free(&path);
    return status;
}

static att_status open_measured(att_context *context, const att_log_place *place, void **log)
{
    void *opened = NULL;
    ATT_TRY(open_runs(context, place, "measure", &opened));
    att_status status = look_for_training(opened, place->folder);
    if (status != ATT_OK)
        close_runs(opened);
    else
        *log = opened;
    return status;
}

const att_log_format att_log_runs = {.open = open_trained, .emit = emit_run, .close = close_runs};
const att_log_format att_log_measured_runs = {.open = open_measured, .emit = emit_measured, .close = close_runs};
