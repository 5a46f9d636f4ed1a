/* store/log.h - a format of log: one file that ends in one descriptor, listed in store.c. */
#ifndef ATT_STORE_LOG_H
#define ATT_STORE_LOG_H

#include <attscope/store.h>

#include "core/text.h"
#include "io/json.h"

/* Where a log is kept, and what of an earlier one stays. */
typedef struct att_log_place {
    const char *folder;             /* the run's */
    const char *path;               /* the log's file */
    const att_store_resume *resume; /* NULL: nothing stays */
} att_log_place;

typedef struct att_log_format {
    const char *file; /* its name in the run's folder; NULL: the database of all runs */
    /* As att_store_open(), for one file. On success *log is the caller's, ended by close. */
    att_status (*open)(att_context *context, const att_log_place *place, void **log);
    att_status (*emit)(void *log, const att_event *event);
    void (*close)(void *log);
} att_log_format;

/* Of a training. */
extern const att_log_format att_log_jsonl, att_log_csv, att_log_tensorboard, att_log_runs;
/* Of measuring a checkpoint; nothing stays of an earlier one. */
extern const att_log_format att_log_measured, att_log_measured_runs;

/* Puts the event and a newline, as metrics.jsonl has them, into line->data. ERR_ARGUMENT where two members have one
 * name, ERR_MEMORY. */
att_status att_log_json_line(att_json_writer *json, const att_event *event, att_text *line);

typedef enum att_line { ATT_LINE_KEEP, ATT_LINE_DROP, ATT_LINE_UNREADABLE } att_line;

/* Bytes of a line; a longer one is unreadable. */
enum { ATT_LOG_LONGEST_LINE = 16 << 20 };
/* Asks judge(user, line, length) about each line of the file, without its newline, until one is not to be kept.
 * *kept: the bytes before that line, 0 where there is no file. A last line without newline is never kept: its writing
 * was cut short. An unreadable line is warned of, with what is dropped. */
att_status att_log_truncate(att_context *context, const char *path,
                            att_line (*judge)(void *user, const char *line, size_t length), void *user, size_t *kept);
/* Warns of a log at `path` that is unreadable from byte `kept` on. */
void att_log_unreadable(att_context *context, const char *path, size_t kept, size_t dropped);

#endif
