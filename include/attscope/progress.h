/* attscope/progress.h - progress reports of long calls, and how to stop them. */
#ifndef ATTSCOPE_PROGRESS_H
#define ATTSCOPE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Figures that are not known yet are NaN. */
typedef struct att_progress {
    const char *stage;        /* "train", "evaluate", "evaluate ema" */
    int epoch, epochs;        /* 0-based index of the epoch, and their number; both 0 outside training */
    int64_t update, updates;  /* updates whose batches are finished, and their number; both 0 outside training */
    int64_t batch, batches;   /* batches finished in this stage, and their number */
    double images_per_second; /* mean speed of this stage so far */
    double seconds_left;      /* estimate for the rest of the whole call */
    double loss;              /* mean over this stage so far */
    double lr;                /* learning rate of the last update */
    int slowest_rank;         /* with several processes: the one that waited least for others in this stage; else -1 */
    double others_share;      /* mean share of this stage's time that a process waited for others */
    int64_t done, total;      /* samples finished in this stage, and their number; both 0: count batches instead */
    const char *unit;         /* of the samples that images_per_second counts: "samples"; NULL: "images" */
} att_progress;

/* Called after every batch, on the thread that made the call. Return false to stop: the call then finishes its files
 * and returns ATT_ERR_STOPPED. */
typedef bool (*att_progress_fn)(void *user, const att_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
