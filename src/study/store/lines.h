/* store/lines.h - reads the events of a JSON Lines file. */
#ifndef ATT_STORE_LINES_H
#define ATT_STORE_LINES_H

#include <attscope/event.h>

#include "base/core/export.h"
#include "base/io/json.h"

/* One event. kind: value of the object's member "event". where: file and line, for messages. */
typedef struct att_line_event {
    json_t *object; /* valid during the call of visit(), which can keep it with json_incref() */
    const char *kind, *where;
    int64_t epoch, step; /* 0 if the line lacks them */
} att_line_event;

/* Whether a member of the object is one that every event has, and not a field. */
bool att_line_is_own_member(const char *key);
/* Writes the fields of an event's object, at most `most`; their texts belong to the object. Returns how many. */
int att_line_fields(json_t *object, att_event_field *fields, int most);

/* Calls visit() for each line of the file at `path` and stops at the first failure. Ignores an incomplete last line
 * (without a newline) with a warning. Errors: ERR_FORMAT (a line is not an event, or has more than 16 MiB), those of
 * att_file_reader_read(), and those of visit(). */
ATT_FOR_LAB att_status att_lines_read(att_context *context, const char *path,
                                      att_status (*visit)(void *user, const att_line_event *event), void *user);

#endif
