#include <stdio.h>
#include <string.h>

#include "base/io/yaml.h"
#include "lab/report/run.h"

enum { MAX_FIELDS = 200, MAX_TEXT = 500 };

/* Writes a string, truncated to MAX_TEXT bytes between UTF-8 characters. */
static void write_text(att_json_writer *json, const char *text)
{
    size_t length = strlen(text);
    if (length <= MAX_TEXT) {
        att_json_string(json, text);
        return;
    }
    char truncated[MAX_TEXT + sizeof("\u2026")];
    size_t end = MAX_TEXT;
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(truncated, text, end);
    strcpy(truncated + end, "\u2026");
    att_json_string(json, truncated);
}

static void write_scalar(att_json_writer *json, const json_t *value)
{
    if (json_is_string(value))
        write_text(json, json_string_value(value));
    else if (json_is_integer(value))
        att_json_integer(json, (int64_t)json_integer_value(value));
    else if (json_is_real(value))
        att_json_number(json, json_real_value(value));
    else if (json_is_boolean(value))
        att_json_bool(json, json_is_true(value));
    else
        att_json_string(json, NULL);
}

/* Writes an event's members except lists and objects. */
static void write_event(att_json_writer *json, json_t *object)
{
    const char *key;
    json_t *value;
    int count = 0;
    att_json_begin_object(json);
    json_object_foreach(object, key, value)
    {
        if (json_is_array(value) || json_is_object(value) || count++ >= MAX_FIELDS || strlen(key) > MAX_TEXT)
            continue;
        att_json_key(json, key);
        write_scalar(json, value);
    }
    att_json_end_object(json);
}

static void write_event_or_null(att_json_writer *json, const char *key, json_t *object)
{
    att_json_key(json, key);
    if (object != NULL)
        write_event(json, object);
    else
        att_json_string(json, NULL);
}

/* Writes a list as text, as measurements do: "0.485 0.456 0.406". */
static void write_values(att_json_writer *json, const att_yaml_entry *entry)
{
    char text[2 * MAX_TEXT] = "";
    size_t length = 0;
    for (int i = 0; i < entry->value_count && length < sizeof text; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? " " : "", entry->values[i]);
    write_text(json, text);
}

static void write_settings(att_json_writer *json, const att_yaml *settings)
{
    att_json_begin_object(json);
    for (int i = 0; settings != NULL && i < att_yaml_count(settings) && i < MAX_FIELDS; i++) {
        att_yaml_entry entry = att_yaml_at(settings, i);
        if (entry.kind == ATT_YAML_NULL || strlen(entry.key) > MAX_TEXT)
            continue;
        att_json_key(json, entry.key);
        write_values(json, &entry);
    }
    att_json_end_object(json);
}

/* Writes {stride, step: [...], epoch: [...], loss: [...], ...}. */
static void write_steps(att_json_writer *json, const att_downsampled *steps)
{
    static const char *const columns[] = {"step", "epoch", "seconds", "loss", "lr", "grad_norm"};
    att_json_begin_object(json);
    att_json_put_integer(json, "stride", steps->stride);
    for (size_t column = 0; column < sizeof(columns) / sizeof(*columns); column++) {
        att_json_put_array(json, columns[column]);
        for (int i = 0; i < steps->count; i++) {
            const json_t *value = json_object_get(steps->records[i], columns[column]);
            write_scalar(json, json_is_number(value) ? value : NULL);
        }
        att_json_end_array(json);
    }
    att_json_end_object(json);
}

static void write_events(att_json_writer *json, const char *key, const att_downsampled *events)
{
    att_json_put_array(json, key);
    for (int i = 0; i < events->count; i++)
        write_event(json, events->records[i]);
    att_json_end_array(json);
}

void att_report_run_write(att_json_writer *json, const att_report_run *run)
{
    att_json_key(json, "folder");
    write_text(json, run->folder);
    write_event_or_null(json, "begin", run->begin);
    write_event_or_null(json, "end", run->end);
    att_json_key(json, "settings");
    write_settings(json, run->settings);
    att_json_key(json, "steps");
    write_steps(json, &run->steps);
    write_events(json, "epochs", &run->epochs);
    write_event_or_null(json, "measured_begin", run->measured_begin);
    att_json_put_bool(json, "has_measure_file", run->has_measure_file);
    att_json_put_string(json, "maps_left_out", run->maps_left_out);
    att_json_put_array(json, "measured");
    for (int i = 0; i < run->measured.count; i++)
        att_figures_write(json, run->measured.records[i]);
    att_json_end_array(json);
    att_json_key(json, "development");
    att_figures_write_series(json, (att_figures *const *)run->development.records, run->development.count);
    att_json_put_integer(json, "warning_count", run->warnings.seen);
    write_events(json, "warnings", &run->warnings);
}
