#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "study/store/log.h"

enum { MAX_COLUMNS = 256 };

struct csv {
    att_context *context;
    att_file_appender *file;
    att_text row;
    att_arena names;
    const char *columns[MAX_COLUMNS]; /* names of the columns after `epoch`; none until the header is read or written */
    int column_count;
    bool has_header;
};

struct resume_point {
    struct csv *csv;
    const char *path;
    const att_store_resume *resume;
    att_status status;
};

static att_status add_column(struct csv *csv, const char *name, size_t length)
{
    if (csv->column_count == MAX_COLUMNS)
        return att_fail(csv->context, ATT_ERR_FORMAT, "a summary of more than %d columns", MAX_COLUMNS + 1);
    char *copy = att_arena_allocate(&csv->names, length + 1);
    if (copy == NULL)
        return att_fail_memory(csv->context, length + 1, "a column's name");
    memcpy(copy, name, length);
    csv->columns[csv->column_count++] = copy;
    return ATT_OK;
}

/* Name of the last column. Files of the first versions lack it; each of their rows is an epoch. */
static const char update_column[] = "update";

static bool has_updates(const struct csv *csv)
{
    return csv->column_count > 0 && strcmp(csv->columns[csv->column_count - 1], update_column) == 0;
}

/* Reads the columns from the header of an existing file: `epoch` first, names without commas or quotes. */
static att_status read_header(struct csv *csv, const char *path, const char *line, size_t length)
{
    static const char first[] = "epoch";
    size_t place = sizeof(first) - 1;
    if (length < place || memcmp(line, first, place) != 0 || (length > place && line[place] != ','))
        return att_fail(csv->context, ATT_ERR_FORMAT, "%s: its header does not begin with \"epoch\"", path);
    while (place < length) {
        const char *name = line + place + 1;
        size_t rest = length - place - 1;
        const char *comma = memchr(name, ',', rest);
        size_t name_length = comma != NULL ? (size_t)(comma - name) : rest;
        ATT_TRY(add_column(csv, name, name_length));
        place += 1 + name_length;
    }
    csv->has_header = true;
    return ATT_OK;
}

/* Reads the integer before the next comma. */
static bool read_cell(const char *text, size_t length, int64_t *number)
{
    char cell[32];
    size_t size = 0;
    while (size < length && size < sizeof(cell) - 1 && text[size] != ',') {
        cell[size] = text[size];
        size++;
    }
    cell[size] = '\0';
    return att_text_to_i64(cell, number);
}

static att_line judge_line(void *user, const char *line, size_t length)
{
    struct resume_point *point = user;
    if (!point->csv->has_header) {
        point->status = read_header(point->csv, point->path, line, length);
        return point->status == ATT_OK ? ATT_LINE_KEEP : ATT_LINE_DROP;
    }
    const bool in_updates = has_updates(point->csv);
    const att_store_resume *resume = point->resume;
    const char *last = line;
    int64_t epoch, update = 0;
    for (size_t i = 0; i < length; i++)
        last = line[i] == ',' ? line + i + 1 : last;
    if (!read_cell(line, length, &epoch) || (in_updates && !read_cell(last, (size_t)(line + length - last), &update)))
        return ATT_LINE_UNREADABLE;
    const bool drops = in_updates ? att_log_drops(resume, update, true) : epoch >= resume->epoch;
    return drops ? ATT_LINE_DROP : ATT_LINE_KEEP;
}

static void close_csv(void *log)
{
    struct csv *csv = log;
    att_file_appender_close(&csv->file);
    att_text_free(&csv->row);
    att_arena_free(&csv->names);
    att_free(csv->context, csv);
}

static att_status start_csv(struct csv *csv, const att_log_place *place)
{
    size_t kept = 0;
    struct resume_point point = {csv, place->path, place->resume, ATT_OK};
    if (place->resume != NULL)
        ATT_TRY(att_log_truncate(csv->context, place->path, judge_line, &point, &kept));
    ATT_TRY(point.status);
    return att_file_appender_open(csv->context, place->path, kept, &csv->file);
}

static att_status open_csv(att_context *context, const att_log_place *place, void **log)
{
    struct csv *csv;
    ATT_TRY(att_new(context, &csv, 1, place->path));
    csv->context = csv->row.context = csv->names.context = context;
    att_status status = start_csv(csv, place);
    if (status != ATT_OK)
        close_csv(csv);
    else
        *log = csv;
    return status;
}

/* Appends a text, quoted as in RFC 4180 if necessary. Replaces newlines by spaces, because resuming a run drops rows
 * line by line. */
static void append_text(att_text *row, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        att_text_append(row, "%s", text);
        return;
    }
    att_text_append_bytes(row, "\"", 1);
    for (; *text != '\0'; text++)
        if (*text == '"')
            att_text_append_bytes(row, "\"\"", 2);
        else
            att_text_append_bytes(row, *text == '\r' || *text == '\n' ? " " : text, 1);
    att_text_append_bytes(row, "\"", 1);
}

/* Adds a column for each field whose name begins with `prefix`. */
static att_status add_columns(struct csv *csv, const att_event *event, const char *prefix)
{
    for (int i = 0; i < event->field_count; i++) {
        const char *name = event->fields[i].name;
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        if (name[strcspn(name, ",\"\r\n")] != '\0')
            return att_fail(csv->context, ATT_ERR_ARGUMENT, "a column of the summary cannot be named %s", name);
        ATT_TRY(add_column(csv, name, strlen(name)));
    }
    return ATT_OK;
}

static bool has_field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0)
            return true;
    return false;
}

static att_status choose_columns(struct csv *csv, const att_event *event)
{
    csv->column_count = 0;
    ATT_TRY(add_columns(csv, event, "train_"));
    ATT_TRY(add_columns(csv, event, "eval_"));
    if (has_field(event, "lr"))
        ATT_TRY(add_column(csv, "lr", strlen("lr")));
    return add_column(csv, update_column, strlen(update_column));
}

static void append_cell(att_text *row, const att_event *event, const char *column)
{
    att_text_append_bytes(row, ",", 1);
    for (int i = 0; i < event->field_count; i++) {
        const att_event_field *field = &event->fields[i];
        char number[ATT_NUMBER_TEXT];
        if (strcmp(field->name, column) == 0) {
            append_text(row, field->text != NULL ? field->text : att_format_number(field->number, number));
            return;
        }
    }
}

static att_status emit_csv(void *log, const att_event *event)
{
    struct csv *csv = log;
    if (event->kind != ATT_EVENT_EPOCH)
        return ATT_OK;
    csv->row.length = 0;
    csv->row.failed = false;
    if (!csv->has_header) {
        ATT_TRY(choose_columns(csv, event));
        att_text_append(&csv->row, "epoch");
        for (int i = 0; i < csv->column_count; i++)
            att_text_append(&csv->row, ",%s", csv->columns[i]);
        att_text_append(&csv->row, "\n");
    }
    att_text_append(&csv->row, "%" PRId64, event->epoch);
    for (int i = 0; i < csv->column_count - has_updates(csv); i++)
        append_cell(&csv->row, event, csv->columns[i]);
    if (has_updates(csv))
        att_text_append(&csv->row, ",%" PRId64, event->step);
    att_text_append(&csv->row, "\n");
    if (csv->row.failed)
        return att_fail_memory(csv->context, csv->row.length, "a row of the summary");
    ATT_TRY(att_file_appender_write(csv->file, csv->row.data, csv->row.length));
    csv->has_header = true;
    return att_file_appender_sync(csv->file);
}

const att_log_format att_log_csv = {.file = "summary.csv", .open = open_csv, .emit = emit_csv, .close = close_csv};
