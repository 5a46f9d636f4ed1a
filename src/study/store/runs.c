/* Writes events to the database of all runs: for a training run, one transaction per event; for a measurement of a
 * checkpoint, one transaction in all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "study/store/database.h"
#include "study/store/import.h"
#include "study/store/log.h"
#include "study/store/measured_figures.h"

typedef struct runs {
    att_context *context;
    att_database database;
    att_json_writer *json; /* writes runs.settings */
    char *folder;          /* runs.folder */
    const char *source;    /* measurements.source */
    bool own_row; /* the measurement is in a folder without a training run and has a row of its own in `runs` */
    int64_t id;   /* runs.id; 0 if there is no row */
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
    att_log_json_fields(r->json, event);
    att_json_end_object(r->json);
    return att_json_writer_finish(r->json, text, &length);
}

enum { TIME_TEXT = 32 };

static const char *format_time(time_t time, char text[TIME_TEXT])
{
    struct tm utc;
    *text = '\0';
    if (gmtime_r(&time, &utc))
        strftime(text, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

static att_status make_row(runs *r, const char *model, const char *settings)
{
    char started[TIME_TEXT];
    format_time(time(NULL), started);
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
        att_query_open(&r->database, "DELETE FROM scalars WHERE run=? AND (step>? OR (event='epoch' AND step>?))");
    att_query_integer(&scalars, r->id);
    att_query_integer(&scalars, resume->step);
    att_query_integer(&scalars, resume->step - resume->unevaluated);
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
    case ATT_EVENT_ALERT:
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
    runs *r;
    ATT_TRY(att_new(context, &r, 1, place->path));
    r->context = context;
    r->source = source;
    att_status status = att_json_writer_create(context, false, &r->json);
    if (status == ATT_OK)
        status = att_database_open(context, place->path, ATT_DATABASE_WAL, &r->database);
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

/* Sets r->own_row: whether the folder lacks the log of a training run. */
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

/* --- importing ---------------------------------------------------------------------------------------------------- */

typedef struct import {
    runs *runs;
    double seconds;      /* time of the last event since the beginning of the run */
    att_status database; /* the first failure of the database; other failures are those of the records */
} import;

static bool find_kind(const char *name, att_event_kind *kind)
{
    static const struct {
        const char *name;
        att_event_kind kind;
    } kinds[] = {{"run_begin", ATT_EVENT_RUN_BEGIN},
                 {"step", ATT_EVENT_STEP},
                 {"measure", ATT_EVENT_MEASURE},
                 {"epoch", ATT_EVENT_EPOCH},
                 {"run_end", ATT_EVENT_RUN_END}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].name) == 0) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

static att_status import_event(import *i, att_event *event, const att_line_event *line)
{
    att_figures *figures = NULL;
    runs *r = i->runs;
    if (event->kind == ATT_EVENT_MEASURE) {
        ATT_TRY(att_figures_read(r->context, line, true, &figures));
        att_figures_set_units(r->context, figures);
        event->measurements = figures->items;
        event->measurement_count = figures->count;
    }
    i->database = strcmp(r->source, "train") == 0 ? emit_within(r, event) : emit_measured_within(r, event);
    att_figures_free(r->context, figures);
    return i->database;
}

static att_status import_line(void *user, const att_line_event *line)
{
    import *i = user;
    att_context *context = i->runs->context;
    const size_t most = json_object_size(line->object) + 1;
    const json_t *seconds = json_object_get(line->object, "seconds");
    att_event event = {.epoch = line->epoch, .step = line->step};
    if (json_is_number(seconds))
        i->seconds = json_number_value(seconds);
    if (!find_kind(line->kind, &event.kind))
        return ATT_OK;
    att_event_field *fields;
    ATT_TRY(att_new(context, &fields, most, line->where));
    event.fields = fields;
    event.field_count = att_line_fields(line->object, fields, (int)most);
    att_status status = import_event(i, &event, line);
    att_free(context, fields);
    return status;
}

/* runs.started: when the records were written last, less the time that the run took. */
static att_status set_started(runs *r, const struct stat *records, double seconds)
{
    char started[TIME_TEXT];
    att_query query = att_query_open(&r->database, "UPDATE runs SET started=? WHERE id=?");
    const bool known = seconds >= 0 && seconds < (double)records->st_mtime;
    att_query_text(&query, format_time(records->st_mtime - (known ? (time_t)seconds : 0), started));
    att_query_integer(&query, r->id);
    att_query_run(&query);
    return att_query_close(&query);
}

/* The files of a run's records. */
typedef struct records {
    att_text training, measured; /* paths */
    struct stat of_training, of_measured;
    bool has_training, has_measured;
} records;

static void free_records(records *files)
{
    att_text_free(&files->training);
    att_text_free(&files->measured);
}

static att_status find_records(att_context *context, const char *folder, records *files)
{
    *files = (records){.training = {.context = context}, .measured = {.context = context}};
    att_text_append(&files->training, "%s/%s", folder, att_log_jsonl.file);
    att_text_append(&files->measured, "%s/%s", folder, att_log_measured.file);
    if (files->training.failed || files->measured.failed)
        return att_fail_memory(context, strlen(folder), folder);
    files->has_training = stat(files->training.data, &files->of_training) == 0;
    files->has_measured = stat(files->measured.data, &files->of_measured) == 0;
    return ATT_OK;
}

enum { IMPORT_TEXT = 128 };

static void describe_file(const struct stat *file, bool exists, char *text, size_t size)
{
    snprintf(text, size, "-");
    if (exists)
        snprintf(text, size, "%lld bytes %lld.%09ld", (long long)file->st_size, (long long)file->st_mtim.tv_sec,
                 file->st_mtim.tv_nsec);
}

/* imports.files: size and time of both files. */
static void describe_records(const records *files, char text[IMPORT_TEXT])
{
    char training[IMPORT_TEXT / 2 - 1], measured[IMPORT_TEXT / 2 - 1];
    describe_file(&files->of_training, files->has_training, training, sizeof training);
    describe_file(&files->of_measured, files->has_measured, measured, sizeof measured);
    snprintf(text, IMPORT_TEXT, "%s, %s", training, measured);
}

static att_status is_imported(runs *r, const char *files, bool *imported)
{
    att_query query = att_query_open(&r->database, "SELECT 1 FROM imports WHERE folder=? AND files=?");
    att_query_text(&query, r->folder);
    att_query_text(&query, files);
    *imported = att_query_next(&query);
    return att_query_close(&query);
}

static att_status note_import(runs *r, const char *files)
{
    att_query query = att_query_open(&r->database, "INSERT OR REPLACE INTO imports(folder,files) VALUES(?,?)");
    att_query_text(&query, r->folder);
    att_query_text(&query, files);
    att_query_run(&query);
    return att_query_close(&query);
}

static att_status read_records(import *i, const records *files)
{
    runs *r = i->runs;
    r->own_row = !files->has_training;
    r->source = "train";
    if (files->has_training)
        ATT_TRY(att_lines_read(r->context, files->training.data, import_line, i));
    const double seconds = i->seconds;
    r->source = "measure";
    if (files->has_measured)
        ATT_TRY(att_lines_read(r->context, files->measured.data, import_line, i));
    i->database = set_started(r, files->has_training ? &files->of_training : &files->of_measured,
                              files->has_training ? seconds : i->seconds);
    return i->database;
}

/* *damaged: the records cannot be read. */
static att_status replace_rows(runs *r, const records *files, const char *description, bool *damaged)
{
import i = {.runs = r };
    ATT_TRY(delete_earlier(r, NULL));
    att_status status = read_records(&i, files);
    *damaged = status == ATT_ERR_FORMAT && i.database == ATT_OK;
    return status == ATT_OK ? note_import(r, description) : status;
}

static att_status import_run(runs *r, const records *files)
{
    char description[IMPORT_TEXT];
    bool imported, damaged = false;
    describe_records(files, description);
    ATT_TRY(is_imported(r, description, &imported));
    if (imported || (!files->has_training && !files->has_measured))
        return ATT_OK;
    ATT_TRY(att_database_begin(&r->database));
    att_status status = att_database_end(&r->database, replace_rows(r, files, description, &damaged));
    return damaged ? ATT_OK : status;
}

static att_status import_folder(runs *r, const char *folder)
{
    records files;
    r->folder = name_of(r->context, folder, r->database.path);
    att_status status =
        r->folder ? find_records(r->context, folder, &files) : att_fail_memory(r->context, strlen(folder), folder);
    if (status == ATT_OK)
        status = import_run(r, &files);
    if (r->folder)
        free_records(&files);
    att_free(r->context, r->folder);
    r->folder = NULL;
    return status;
}

static att_status make_import_table(runs *r)
{
    att_query query = att_query_open(
        &r->database, "CREATE TABLE IF NOT EXISTS imports(folder TEXT PRIMARY KEY, files TEXT NOT NULL)");
    att_query_run(&query);
    return att_query_close(&query);
}

att_status att_store_import(att_context *context, const char *database, const char *const *folders, int count)
{
    runs r = {.context = context};
    ATT_TRY(att_json_writer_create(context, false, &r.json));
    att_status status = att_database_open(context, database, ATT_DATABASE_ROLLBACK, &r.database);
    if (status == ATT_OK)
        status = make_import_table(&r);
    for (int i = 0; i < count && status == ATT_OK; i++)
        status = import_folder(&r, folders[i]);
    att_database_close(&r.database);
    att_json_writer_destroy(&r.json);
    return status;
}
