/* report/correlations.h - rank correlations of pairs of figures over the runs of several settings and architectures. */
#ifndef ATT_REPORT_CORRELATIONS_H
#define ATT_REPORT_CORRELATIONS_H

#include <attscope/lab/sweep.h>

#include "base/core/memory.h"

/* A run as correlations see it. */
typedef struct att_correlated_run {
    const char *setting;
    const char *model; /* its architecture; "" if unknown */
} att_correlated_run;

typedef struct att_correlations {
    att_arena *arena; /* owns `items` */
    const att_correlated_run *runs;
    int run_count; /* at most ATT_SWEEP_MOST_RUNS */
    const att_sweep_pair *pairs;
    int pair_count; /* at most ATT_SWEEP_MOST_PAIRS */
    /* The figure `name` of a run; NaN if it has none. */
    double (*value)(const void *user, int run, const char *name);
    const void *user;
    uint64_t seed; /* for att_correlate() */

    att_sweep_correlation *items;
    int count;
} att_correlations;

/* Fills items and count: for each pair the correlation over all runs; within each architecture, if there are several,
 * and one has several settings; within each setting, if there are several. The texts are those of `runs` and `pairs`,
 * which must live as long as the items. Errors: ERR_MEMORY. */
att_status att_correlations_make(att_correlations *correlations);

#endif
