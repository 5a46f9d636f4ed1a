/* tasks/score.h - scores of a classifier. */
#ifndef ATT_TASKS_SCORE_H
#define ATT_TASKS_SCORE_H

#include <stdint.h>

#include "base/core/export.h"

/* Returns the number of classes ranked before `label`: those with a larger logit, and those with an equal logit and a
 * lower number; `classes` if a logit is NaN. */
int att_score_rank(const float *logits, int classes, int label);

enum { ATT_SCORE_TOP = 5 };
/* Names of the shares of samples whose class ranks first, and among the first five. */
#define ATT_SCORE_TOP1 "top1"
#define ATT_SCORE_TOP5 "top5"

/* Scores of several samples; zero-initialise. `judged` differs from `count` only if some samples have no right class.
 */
typedef struct att_scores {
    int64_t count, judged;     /* number of samples, and of those with a right class */
    int64_t first, among_five; /* samples whose class ranks first, and among the first five */
    double loss;               /* sum of the losses */
} att_scores;
/* Adds a sample; returns its loss. */
ATT_FOR_LAB double att_scores_add(att_scores *scores, const float *logits, int classes, int label);
/* As att_scores_add(), for a sample with several right classes, or with none. Its loss is that of `label`. */
double att_scores_add_set(att_scores *scores, const float *logits, int classes, int label, const int32_t *right,
                          int right_count);
void att_scores_merge(att_scores *scores, const att_scores *more);

/* Writes the `k` largest logits to `top`, largest first (of equal ones the lower class first), with their softmax over
 * all classes. Returns how many were written: min(k, classes). */
typedef struct att_ranked {
    int class_number;
    float logit;
    double probability;
} att_ranked;
ATT_FOR_LAB int att_rank_classes(const float *logits, int classes, att_ranked *top, int k);

#endif
