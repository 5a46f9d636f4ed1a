/* unknown.h - names that are no option, collected so that one message tells of all of them. */
#ifndef CLI_UNKNOWN_H
#define CLI_UNKNOWN_H

#include "options.h"

enum { CLI_MOST_UNKNOWN = 16, CLI_UNKNOWN_NAME = 64 };

/* Zero-initialise; set `file` for the names of a config file. */
typedef struct cli_unknown {
    const char *file; /* NULL: the command line */
    struct {
        char name[CLI_UNKNOWN_NAME]; /* with its dashes; a longer one is cut */
        int line;                    /* in the file */
    } items[CLI_MOST_UNKNOWN];
    int count; /* those beyond CLI_MOST_UNKNOWN are counted only */
} cli_unknown;

void cli_unknown_add(cli_unknown *unknown, const char *dashes, const char *name, int line);
/* True where there are none; otherwise prints why each is refused and what to write instead. */
bool cli_unknown_none(const cli_table *table, const cli_unknown *unknown);

#endif
