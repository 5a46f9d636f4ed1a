#include "study/store/lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "study/store/log.h"

enum { WHERE = 4096 };

bool att_line_is_own_member(const char *key)
{
    static const char *const own[] = {"event", "epoch", "step", "seconds", "measurements"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(key, own[i]) == 0)
            return true;
    return false;
}

int att_line_fields(json_t *object, att_event_field *fields, int most)
{
    const char *key;
    json_t *value;
    int count = 0;
    json_object_foreach(object, key, value)
    {
        if (count < most && !att_line_is_own_member(key))
            fields[count++] = (att_event_field){.name = key,
                                                .number = json_is_number(value) ? json_number_value(value) : NAN,
                                                .text = json_string_value(value)};
    }
    return count;
}

static bool integer_or_absent(const json_t *object, const char *key, int64_t *value)
{
    const json_t *member = json_object_get(object, key);
    *value = json_is_integer(member) ? (int64_t)json_integer_value(member) : 0;
    return member == NULL || (json_is_integer(member) && *value >= 0);
}

static att_status visit_line(att_context *context, const char *where, const char *line, size_t length,
                             att_status (*visit)(void *user, const att_line_event *event), void *user)
{
    json_t *object = NULL;
    ATT_TRY(att_json_parse(context, where, line, length, &object));
    att_line_event event = {.object = object, .where = where};
    event.kind = json_string_value(json_object_get(object, "event"));
    bool valid = event.kind != NULL && integer_or_absent(object, "epoch", &event.epoch) &&
                 integer_or_absent(object, "step", &event.step);
    att_status status =
        valid ? visit(user, &event)
              : att_fail(context, ATT_ERR_FORMAT,
                         "%s: expected an event: an object with \"event\", \"epoch\" and \"step\"", where);
    json_decref(object);
    return status;
}

static att_status visit_lines(att_context *context, const char *path, att_file_window *window, char *where,
                              att_status (*visit)(void *user, const att_line_event *event), void *user)
{
    uint64_t at = 0;
    for (int64_t number = 1;; number++) {
        const char *line;
        size_t length;
        bool whole;
        snprintf(where, WHERE, "%.*s, line %lld", WHERE - 40, path, (long long)number);
        ATT_TRY(att_file_window_line(window, at, ATT_LOG_LONGEST_LINE, &line, &length, &whole));
        if (line == NULL)
            return ATT_OK;
        if (!whole) {
            att_log(context, ATT_LOG_WARNING, "%s is incomplete and is ignored", where);
            return ATT_OK;
        }
        ATT_TRY(visit_line(context, where, line, length, visit, user));
        at += length + 1;
    }
}

att_status att_lines_read(att_context *context, const char *path,
                          att_status (*visit)(void *user, const att_line_event *event), void *user)
{
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(context, path, &reader));
    att_file_window window = {.reader = reader};
    char *where = att_allocate(context, WHERE);
    att_status status =
        where == NULL ? att_fail_memory(context, WHERE, path) : visit_lines(context, path, &window, where, visit, user);
    att_free(context, where);
    att_file_window_free(&window);
    att_file_reader_close(&reader);
    return status;
}
