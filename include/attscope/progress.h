/* attscope/progress.h - how a long call tells where it is, and how it is asked to stop. */
#ifndef ATTSCOPE_PROGRESS_H
#define ATTSCOPE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Figures that are not known (yet) are NaN. */
typedef struct att_progress {
    const char *stage;        /* "train", "evaluate", "evaluate ema" */
    int epoch, epochs;        /* 0-based, and how many there will be; 0 and 0 outside training */
    int64_t batch, batches;   /* finished in this stage, and how many it has */
    double images_per_second; /* of this stage so far */
    double seconds_left;      /* of the whole call, as far as it can be foreseen */
    double loss;              /* mean of this stage so far */
    double lr;                /* of the last update */
} att_progress;

/* Called after every batch from the thread that made the call. False asks to stop: the call then ends in an orderly
 * way with ATT_ERR_STOPPED. */
typedef bool (*att_progress_fn)(void *user, const att_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
