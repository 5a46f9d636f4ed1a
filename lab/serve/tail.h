/* serve/tail.h - follows a file to which another process appends lines. */
#ifndef ATT_SERVE_TAIL_H
#define ATT_SERVE_TAIL_H

#include <sys/stat.h>

#include "base/core/text.h"

enum { ATT_TAIL_CHECKED = 64 };

/* What is known of the file, for all who read it: where its whole lines end. Each byte is looked at once, and none
 * while size and time of the file stay the same. Zero-initialise, then set the path. Not thread-safe. */
typedef struct att_tail {
    const char *path;
    uint64_t edition; /* from 1; another number: the file was replaced, or cut and written anew */
    dev_t device;
    ino_t inode; /* 0: there is no file */
    struct timespec changed;
    off_t size;                     /* of the file when it was looked at */
    off_t whole;                    /* the end of the last whole line */
    char checked[ATT_TAIL_CHECKED]; /* the bytes before `size` */
    size_t checked_size;
} att_tail;

/* How far a reader is. Zero-initialise. */
typedef struct att_tail_place {
    uint64_t edition;
    off_t offset;
} att_tail_place;

/* Appends the whole lines that are new to the reader to `lines`: as many as fit in 16 KiB, or one that is longer. A
 * last line without newline is left for a later call. *restarted: the file was replaced, or cut and written anew, or
 * this is the reader's first call: `lines` begins with the first line of the file. A missing file has no lines.
 * Messages go to the context of `lines`. Errors: ERR_IO (also if it is no regular file), ERR_FORMAT (a line has more
 * than 16 MiB), ERR_MEMORY. */
att_status att_tail_read(att_tail *tail, att_tail_place *place, bool *restarted, att_text *lines);

#endif
