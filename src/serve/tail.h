/* serve/tail.h - follows a file to which another process appends lines. */
#ifndef ATT_SERVE_TAIL_H
#define ATT_SERVE_TAIL_H

#include <sys/types.h>

#include "core/text.h"

enum { ATT_TAIL_CHECKED = 64 };

/* Zero-initialise, then set the first two members. */
typedef struct att_tail {
    att_context *context;
    const char *path;
    bool begun;
    dev_t device;
    ino_t inode;
    off_t offset;                   /* of the first line that was not read */
    char checked[ATT_TAIL_CHECKED]; /* the bytes before it */
    size_t checked_size;
} att_tail;

/* Appends the whole lines that are new to `lines`, about a mebibyte at most. A last line without newline is left for
 * a later call. *restarted: the file was replaced, or cut and written anew, or this is the first call: `lines` begins
 * with the first line of the file. A missing file has no lines. Errors: ERR_IO (also if it is no regular file),
 * ERR_FORMAT (a line has more than 16 MiB), ERR_MEMORY. */
att_status att_tail_read(att_tail *tail, bool *restarted, att_text *lines);

#endif
