/* pairs.h - pairs of figures to correlate, as --correlate names them. */
#ifndef CLI_PAIRS_H
#define CLI_PAIRS_H

#include "cli.h"

enum { CLI_FIGURE = 400 }; /* bytes of "X,Y" */

typedef struct cli_pairs {
    char figures[ATT_SWEEP_MOST_PAIRS][CLI_FIGURE];
    att_sweep_pair pairs[ATT_SWEEP_MOST_PAIRS];
    int count;
} cli_pairs;

#define CLI_CORRELATE_HELP                                                                                     \
    "two figures whose rank correlation over runs is printed, each as INSTRUMENT/STATISTIC or "                \
    "INSTRUMENT/NODE/STATISTIC, such as 'tns/tns unit,entropy/blocks.3.attn/mean'; may be repeated (default: " \
    "total neural stiffness, in each reading, with the accuracy)"

/* Splits each "X,Y" and checks that the instruments exist. measured: the list of instruments to which they must belong;
 * NULL: any. Returns CLI_OK or an exit code. */
int cli_pairs_read(const att_texts *texts, const char *measured, cli_pairs *pairs);

/* Checks that a run has each figure. where: the place that lists all names, for the message. Returns CLI_OK or an exit
 * code. */
int cli_pairs_find(const cli_pairs *pairs, const att_sweep *sweep, const char *where);

/* Name of a built-in instrument, for att_text_nearest(). */
const char *cli_instrument_name(const void *user, int index);

#endif
