/* progress.h - where a long command is: a bar that is redrawn on a terminal, lines elsewhere; on stderr.
 *
 * Lines come after a training's first update and so many batches, for other stages after each tenth, and whenever the
 * last line is ten seconds old. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <attscope/progress.h>

#include "cli.h"

typedef struct cli_progress {
    cli_app *cli;
    bool terminal;
    int64_t first; /* no terminal: batches of the first update, after which the first line is printed */
    int64_t every; /* no terminal: batches between two lines while training */
    bool shown;    /* something was, at `last_shown` seconds; before that it is when this began */
    double last_shown;
    int64_t last_tenth; /* no terminal: tenths of a stage that is no training which were said */
} cli_progress;

/* first, every: of a training; other commands pass 1. */
cli_progress cli_progress_to(cli_app *cli, int64_t first, int64_t every);
/* Whether something is to be shown of `p` when a monotonic clock says `seconds`; it then counts as shown. */
bool cli_progress_is_due(cli_progress *progress, const att_progress *p, double seconds);
/* att_progress_fn; user: a cli_progress. False once a signal asked to stop. */
bool cli_progress_show(void *user, const att_progress *progress);

/* Takes the bar off the terminal's line, where one stands. */
void cli_bar_clear(cli_app *cli);

/* "m:ss" or "h:mm:ss"; "--" for NaN. Returns `text`. */
char *cli_format_seconds(double seconds, char *text, size_t size);

#endif
