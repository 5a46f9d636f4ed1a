/* tasks/score.h - how a classifier did. */
#ifndef ATT_TASKS_SCORE_H
#define ATT_TASKS_SCORE_H

#include <stdint.h>

/* How many classes come before `label`: those with a larger logit, and of equal ones the lower numbers; `classes` where
 * a logit is NaN. */
int att_score_rank(const float *logits, int classes, int label);
/* -ln softmax(logits)_label. */
double att_score_loss(const float *logits, int classes, int label);

enum { ATT_SCORE_TOP = 5 };

/* How it did on several samples. Zero bytes: none. */
typedef struct att_scores {
    int64_t count;             /* samples */
    int64_t first, among_five; /* of these, those whose class came first, among the first five */
    double loss;               /* the sum of their losses */
} att_scores;
/* Adds a sample; returns its loss. */
double att_scores_add(att_scores *scores, const float *logits, int classes, int label);
void att_scores_merge(att_scores *scores, const att_scores *more);

#endif
