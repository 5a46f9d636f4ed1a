/* store/lines.h - the events of a JSON lines file, one after another. */
#ifndef ATT_STORE_LINES_H
#define ATT_STORE_LINES_H

#include "core/export.h"
#include "io/json.h"

/* One event: an object whose member "event" is `kind`. `where` names file and line, for messages. */
typedef struct att_line_event {
    json_t *object; /* of the caller; json_incref() to keep it */
    const char *kind, *where;
    int64_t epoch, step; /* 0 where the line does not say */
} att_line_event;

/* Gives each line of the file at `path` to visit(), until that fails. A last line without a newline was cut short in
 * its writing: a warning, and it is left out. Errors: ERR_FORMAT (a line that is no such object, or of more than 16
 * MiB), those of files, and visit()'s. */
ATT_FOR_LAB att_status att_lines_read(att_context *context, const char *path,
                                      att_status (*visit)(void *user, const att_line_event *event), void *user);

#endif
