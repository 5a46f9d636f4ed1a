/* store/log.h - the interface of a log format. Each format is one source file with one att_log_format, listed in
 * store.c. */
#ifndef ATT_STORE_LOG_H
#define ATT_STORE_LOG_H

#include <attscope/store.h>

#include "base/core/text.h"
#include "base/io/json.h"

/* Where to write a log, and which part of an existing log to keep. */
typedef struct att_log_place {
    const char *folder;             /* folder of the run */
    const char *path;               /* file of the log */
    const att_store_resume *resume; /* events up to this point are kept; NULL: none are */
} att_log_place;

typedef struct att_log_format {
    /* Name of the log's file in the run's folder; NULL: the format writes to the database of all runs. */
    const char *file;
    /* Does for one log what att_store_open() does for all. Caller ends *log with close(). */
    att_status (*open)(att_context *context, const att_log_place *place, void **log);
    att_status (*emit)(void *log, const att_event *event);
    void (*close)(void *log);
} att_log_format;

/* Logs of a training run. */
extern const att_log_format att_log_jsonl, att_log_csv, att_log_tensorboard, att_log_runs;
/* Logs of measuring a checkpoint. They replace an existing log. */
extern const att_log_format att_log_measured, att_log_measured_runs;

/* Writes the event's fields as members of an object. */
void att_log_json_fields(att_json_writer *json, const att_event *event);
/* Sets line->data to the event as a line of metrics.jsonl. Errors: ERR_ARGUMENT (two members have the same name),
 * ERR_MEMORY. */
att_status att_log_json_line(att_json_writer *json, const att_event *event, att_text *line);

/* Whether a resume drops an event at this step. evaluated: it is an ATT_EVENT_EPOCH. */
static inline bool att_log_drops(const att_store_resume *resume, int64_t step, bool evaluated)
{
    return step > resume->step || (evaluated && resume->unevaluated && step == resume->step);
}

typedef enum att_line { ATT_LINE_KEEP, ATT_LINE_DROP, ATT_LINE_UNREADABLE } att_line;

/* Limit on the bytes of a line. A longer line is unreadable. */
enum { ATT_LOG_LONGEST_LINE = 16 << 20 };
/* Finds how much of a log to keep. Calls judge(user, line, length) for each line, without its newline, until a line is
 * not to be kept. *kept: size in bytes of the lines before it; 0 if the file does not exist. An incomplete last line
 * (without a newline) is not kept. An unreadable line gives a warning. */
att_status att_log_truncate(att_context *context, const char *path,
                            att_line (*judge)(void *user, const char *line, size_t length), void *user, size_t *kept);
/* Warns that the log is unreadable at byte `kept`, and that `dropped` bytes are dropped. */
void att_log_unreadable(att_context *context, const char *path, size_t kept, size_t dropped);

#endif
