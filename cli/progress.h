/* progress.h - progress of a long command, on stderr: a bar on a terminal, lines otherwise.
 *
 * A line is printed after a run's first update and then after every `every` batches; in other stages, a line is
 * printed after each tenth. In all stages, a line is printed if the last one is ten seconds old. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <attscope/progress.h>

#include "cli.h"

/* Seconds of a monotonic clock, which all processes of a machine share. */
double cli_now(void);

typedef struct cli_progress {
    cli_app *cli;
    bool terminal;
    int64_t first;   /* lines: batches of the first update, after which the first line is printed */
    int64_t every;   /* lines: batches between two lines of a training run */
    bool in_updates; /* a training run shows its updates, not the batches of an epoch */
    bool shown;      /* something was shown; last_shown: time of the last output, or the start time */
    double last_shown;
    int64_t last_tenth; /* lines: last printed tenth of a stage other than training */
} cli_progress;

/* first, every: members of cli_progress, used for a training run; other commands pass 1. */
cli_progress cli_progress_to(cli_app *cli, int64_t first, int64_t every);
/* Whether to show `p` at time `seconds` of a monotonic clock. If so, it counts as shown. */
bool cli_progress_is_due(cli_progress *progress, const att_progress *p, double seconds);
/* An att_progress_fn; user: a cli_progress. Returns false after a signal that asks to stop. */
bool cli_progress_show(void *user, const att_progress *progress);

/* Shows downloads of pretrained weights (attscope/hub.h) that the context makes. */
void cli_progress_of_downloads(cli_app *cli);

/* Removes the progress bar, if one is shown. */
void cli_bar_clear(cli_app *cli);
/* On a terminal, draws the text at the start of the last line of stderr. */
void cli_bar_print(cli_app *cli, const char *format, ...) ATT_PRINTF(2, 3);

#endif
