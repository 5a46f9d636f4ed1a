/* flags/unknown.h - names that are no flag, collected so that all of them are told. */
#ifndef ATT_FLAGS_UNKNOWN_H
#define ATT_FLAGS_UNKNOWN_H

#include <attscope/lab/flags.h>

enum { ATT_MOST_UNKNOWN = 16, ATT_UNKNOWN_NAME = 64 };

/* Zero-initialise; set `file` for the names of a file. */
typedef struct att_unknown_flags {
    const char *file; /* NULL: the command line, or a program */
    struct {
        char name[ATT_UNKNOWN_NAME]; /* with its dashes; a longer one is truncated */
        int line;                    /* in the file */
    } items[ATT_MOST_UNKNOWN];
    int count; /* those beyond ATT_MOST_UNKNOWN are counted only */
} att_unknown_flags;

void att_unknown_flags_add(att_unknown_flags *unknown, const char *dashes, const char *name, int line);
/* ATT_OK where there are none; otherwise ERR_ARGUMENT, which says why it is refused and what to write instead. Of
 * several the log says it of each. */
att_status att_unknown_flags_refuse(const att_flags *flags, const att_unknown_flags *unknown);

#endif
