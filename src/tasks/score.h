/* tasks/score.h - scores of a classifier. */
#ifndef ATT_TASKS_SCORE_H
#define ATT_TASKS_SCORE_H

#include <stdint.h>

/* Returns the number of classes ranked before `label`: those with a larger logit, and those with an equal logit and a
 * lower number; `classes` if a logit is NaN. */
int att_score_rank(const float *logits, int classes, int label);
/* -ln softmax(logits)_label. */
double att_score_loss(const float *logits, int classes, int label);

enum { ATT_SCORE_TOP = 5 };

/* Scores of several samples; zero-initialise. */
typedef struct att_scores {
    int64_t count;             /* number of samples */
    int64_t first, among_five; /* samples whose class ranks first, and among the first five */
    double loss;               /* sum of the losses */
} att_scores;
/* Adds a sample; returns its loss. */
double att_scores_add(att_scores *scores, const float *logits, int classes, int label);
void att_scores_merge(att_scores *scores, const att_scores *more);

#endif
