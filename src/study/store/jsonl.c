#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "study/store/log.h"

static const char *const kinds[] = {
    [ATT_EVENT_RUN_BEGIN] = "run_begin", [ATT_EVENT_STEP] = "step",       [ATT_EVENT_MEASURE] = "measure",
    [ATT_EVENT_EPOCH] = "epoch",         [ATT_EVENT_RUN_END] = "run_end", [ATT_EVENT_WARNING] = "warning",
    [ATT_EVENT_ALERT] = "alert"};
static const char *const own_names[] = {"event", "epoch", "step", "seconds", "measurements"};

/* --- a line ------------------------------------------------------------------------------------------------------- */

static bool is_taken(const att_event *event, int index)
{
    const char *name = event->fields[index].name;
    for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
        if (strcmp(name, own_names[i]) == 0)
            return true;
    for (int i = 0; i < index; i++)
        if (strcmp(name, event->fields[i].name) == 0)
            return true;
    return false;
}

/* Writes samples with 5 digits, enough for charts, because there are many. */
static void write_samples(att_json_writer *json, const att_measurement *m)
{
    char text[32];
    if (m->sample_count == 0)
        return;
    att_json_put_array(json, "samples");
    for (int i = 0; i < m->sample_count; i++) {
        snprintf(text, sizeof(text), "%.5g", m->samples[i]);
        att_json_number(json, strtod(text, NULL));
    }
    att_json_end_array(json);
}

static void write_measurement(att_json_writer *json, const att_measurement *m)
{
    att_json_begin_object(json);
    att_json_put_string(json, "instrument", m->instrument);
    att_json_put_string(json, "node", m->node);
    if (m->head >= 0)
        att_json_put_integer(json, "head", m->head);
    att_json_put_string(json, "statistic", m->statistic);
    att_json_put_number(json, "mean", m->mean);
    att_json_put_number(json, "deviation", m->deviation);
    att_json_put_integer(json, "n", m->count);
    if (m->undefined > 0)
        att_json_put_integer(json, "undefined", m->undefined);
    if (m->excluded)
        att_json_put_bool(json, ATT_EXCLUDED_KEY, true);
    if (m->bound > 0)
        att_json_put_number(json, "bound", m->bound);
    if (m->uniform > 0)
        att_json_put_number(json, "uniform", m->uniform);
    write_samples(json, m);
    att_json_end_object(json);
}

static void write_measurements(att_json_writer *json, const att_event *event)
{
    att_json_put_array(json, "measurements");
    for (int i = 0; i < event->measurement_count; i++)
        write_measurement(json, &event->measurements[i]);
    att_json_end_array(json);
}

void att_log_json_fields(att_json_writer *json, const att_event *event)
{
    for (int i = 0; i < event->field_count; i++) {
        att_json_key(json, event->fields[i].name);
        if (event->fields[i].text != NULL)
            att_json_string(json, event->fields[i].text);
        else
            att_json_number(json, event->fields[i].number);
    }
}

static void write_event(att_json_writer *json, const att_event *event)
{
    att_json_begin_object(json);
    att_json_put_string(json, "event", kinds[event->kind]);
    att_json_put_integer(json, "epoch", event->epoch);
    att_json_put_integer(json, "step", event->step);
    att_json_put_number(json, "seconds", event->seconds);
    att_log_json_fields(json, event);
    if (event->kind == ATT_EVENT_MEASURE)
        write_measurements(json, event);
    att_json_end_object(json);
}

att_status att_log_json_line(att_json_writer *json, const att_event *event, att_text *line)
{
    for (int i = 0; i < event->field_count; i++)
        if (is_taken(event, i))
            return att_fail(line->context, ATT_ERR_ARGUMENT, "an event of kind %s has two members named %s",
                            kinds[event->kind], event->fields[i].name);
    const char *text = NULL;
    size_t length = 0;
    write_event(json, event);
    ATT_TRY(att_json_writer_finish(json, &text, &length));
    line->length = 0;
    line->failed = false;
    att_text_append_bytes(line, text, length);
    att_text_append_bytes(line, "\n", 1);
    return line->failed ? att_fail_memory(line->context, length, "a line of the log") : ATT_OK;
}

/* --- metrics.jsonl ------------------------------------------------------------------------------------------------ */

struct jsonl {
    att_context *context;
    att_file_appender *file;
    att_json_writer *json;
    att_text line;
    bool begun; /* whether the file already has a run_begin */
};

struct resume_point {
    att_context *context;
    const char *path;
    const att_store_resume *resume;
    att_status status;
};

static att_line judge_object(const att_store_resume *resume, const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "event"));
    const json_t *epoch = json_object_get(object, "epoch"), *step = json_object_get(object, "step");
    if (kind == NULL || !json_is_integer(epoch) || !json_is_integer(step))
        return ATT_LINE_UNREADABLE;
    const bool evaluated = strcmp(kind, kinds[ATT_EVENT_EPOCH]) == 0;
    bool drops =
        strcmp(kind, kinds[ATT_EVENT_RUN_END]) == 0 || att_log_drops(resume, json_integer_value(step), evaluated);
    return drops ? ATT_LINE_DROP : ATT_LINE_KEEP;
}

static att_line judge_line(void *user, const char *line, size_t length)
{
    struct resume_point *point = user;
    json_t *object = NULL;
    att_status status = att_json_parse(point->context, point->path, line, length, &object);
    if (status == ATT_ERR_FORMAT)
        return ATT_LINE_UNREADABLE;
    point->status = status;
    if (status != ATT_OK)
        return ATT_LINE_DROP;
    att_line verdict = judge_object(point->resume, object);
    json_decref(object);
    return verdict;
}

static void close_jsonl(void *log)
{
    struct jsonl *jsonl = log;
    att_file_appender_close(&jsonl->file);
    att_json_writer_destroy(&jsonl->json);
    att_text_free(&jsonl->line);
    att_free(jsonl->context, jsonl);
}

static att_status start_jsonl(struct jsonl *jsonl, const att_log_place *place)
{
    size_t kept = 0;
    struct resume_point point = {jsonl->context, place->path, place->resume, ATT_OK};
    if (place->resume != NULL)
        ATT_TRY(att_log_truncate(jsonl->context, place->path, judge_line, &point, &kept));
    ATT_TRY(point.status);
    jsonl->begun = kept > 0;
    ATT_TRY(att_json_writer_create(jsonl->context, false, &jsonl->json));
    return att_file_appender_open(jsonl->context, place->path, kept, &jsonl->file);
}

static att_status open_jsonl(att_context *context, const att_log_place *place, void **log)
{
    struct jsonl *jsonl;
    ATT_TRY(att_new(context, &jsonl, 1, place->path));
    jsonl->context = jsonl->line.context = context;
    att_status status = start_jsonl(jsonl, place);
    if (status != ATT_OK)
        close_jsonl(jsonl);
    else
        *log = jsonl;
    return status;
}

static att_status emit_jsonl(void *log, const att_event *event)
{
    struct jsonl *jsonl = log;
    ATT_TRY(att_log_json_line(jsonl->json, event, &jsonl->line));
    if (event->kind == ATT_EVENT_RUN_BEGIN && jsonl->begun)
        return ATT_OK;
    ATT_TRY(att_file_appender_write(jsonl->file, jsonl->line.data, jsonl->line.length));
    if (event->kind == ATT_EVENT_EPOCH || event->kind == ATT_EVENT_RUN_END)
        return att_file_appender_sync(jsonl->file);
    return ATT_OK;
}

const att_log_format att_log_jsonl = {
    .file = "metrics.jsonl", .open = open_jsonl, .emit = emit_jsonl, .close = close_jsonl};
