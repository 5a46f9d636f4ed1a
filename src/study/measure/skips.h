/* measure/skips.h - predictions of a classifier with the branches of some of its blocks skipped: x_{t+1} = x_t.
 *
 * All variants are copies of one graph (measure/clone.h) that share what comes before their first skipped block. */
#ifndef ATT_MEASURE_SKIPS_H
#define ATT_MEASURE_SKIPS_H

#include "study/measure/study.h"

enum { ATT_SKIPS_MOST_BLOCKS = 1024 };

/* zeta of a step from its row of norms: the reading "attention" of an addition, "unit" of a block. */
double att_skips_zeta(bool per_block, const float *norms);

typedef struct att_skips {
    att_context *context;
    att_plan *plan;
    att_session *session;
    int sets, classes, most; /* most: samples of one run of the session */
    bool wide;
    float *logits;
} att_skips;

/* Compiles a variant for each of `sets` sets of blocks. skipped: [sets][count]. Logs the cost. On failure *skips is
 * zero. Errors: ERR_UNSUPPORTED (a part that cannot be copied), ERR_MEMORY. */
att_status att_skips_open(const att_study_job *job, const att_residual_step *blocks, int count, const bool *skipped,
                          int sets, att_skips *skips);
void att_skips_close(att_skips *skips);
/* Writes to hits[sample * stride + set], for the samples [first, first + count) of the job's run, 1 if the variant's
 * largest logit is that of the sample's class, 0 if not, and NaN if the sample has no class. The first sample writes to
 * hits[0]. */
att_status att_skips_run(att_skips *skips, const att_study_job *job, int first, int count, float *hits, int64_t stride);

#endif
