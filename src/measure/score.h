/* measure/score.h - how a classifier did on one sample. */
#ifndef ATT_MEASURE_SCORE_H
#define ATT_MEASURE_SCORE_H

/* How many classes come before `label`: those with a larger logit, and of equal ones the lower numbers; `classes` where
 * a logit is NaN. */
int att_score_rank(const float *logits, int classes, int label);
/* -ln softmax(logits)_label. */
double att_score_loss(const float *logits, int classes, int label);

enum { ATT_SCORE_TOP = 5 };

#endif
