/* flags/unknown.h - collects unknown flags, so that one refusal reports all of them. */
#ifndef ATT_FLAGS_UNKNOWN_H
#define ATT_FLAGS_UNKNOWN_H

#include "base/flags/flags.h"

enum { ATT_MOST_UNKNOWN = 16, ATT_UNKNOWN_NAME = 64 };

/* Zero-initialise; set `file` if the names come from a file. */
typedef struct att_unknown_flags {
    const char *file; /* NULL: the command line, or a program */
    struct {
        char name[ATT_UNKNOWN_NAME]; /* with its dashes; a longer one is truncated */
        int line;                    /* in the file */
    } items[ATT_MOST_UNKNOWN];
    int count; /* also counts names beyond ATT_MOST_UNKNOWN, which are not stored */
} att_unknown_flags;

void att_unknown_flags_add(att_unknown_flags *unknown, const char *dashes, const char *name, int line);
/* ATT_OK if there are none. Otherwise ERR_ARGUMENT; the message gives the reason and what to write instead. If there
 * are several, the log receives the reason for each. */
att_status att_unknown_flags_refuse(const att_flags *flags, const att_unknown_flags *unknown);

#endif
