/* store/log.h - a format of log: one file that ends in one descriptor, listed in store.c. */
#ifndef ATT_STORE_LOG_H
#define ATT_STORE_LOG_H

#include <attscope/store.h>

typedef struct att_log_format {
    const char *file; /* its name in the run's folder */
    /* As att_store_open(), for one file. On success *log is the caller's, ended by close. */
    att_status (*open)(att_context *context, const char *path, const att_store_resume *resume, void **log);
    att_status (*emit)(void *log, const att_event *event);
    void (*close)(void *log);
} att_log_format;

extern const att_log_format att_log_jsonl, att_log_csv;

typedef enum att_line { ATT_LINE_KEEP, ATT_LINE_CUT, ATT_LINE_UNREADABLE } att_line;

/* Asks judge(user, line, length) about each line of the file, without its newline, until one is not to be kept.
 * *kept: the bytes before that line, 0 where there is no file. A last line without newline is never kept: its writing
 * was cut short. An unreadable line is warned of, with what is dropped. */
att_status att_log_cut(att_context *context, const char *path,
                       att_line (*judge)(void *user, const char *line, size_t length), void *user, size_t *kept);

#endif
