/* experiments/circle.h - the samples of the circle task. */
#ifndef ATT_EXPERIMENTS_CIRCLE_H
#define ATT_EXPERIMENTS_CIRCLE_H

#include "lab/papers/experiments/san.h"

enum { ATT_CIRCLE_TOKENS = 2, ATT_CIRCLE_BATCH = 30 };

typedef float att_circle_pair[ATT_CIRCLE_TOKENS][ATT_SAN_POINT];

typedef struct att_circle_task {
    int pairs;  /* the number of samples, and of points from the first point of a pair to its second */
    bool steps; /* the target is the step from a point to the next one, else the next point */
    bool sums;  /* x is the sum of the sample and the one in the same place of the batch before, if there is one */
} att_circle_task;

/* Writes sample i: a pair of the 1,000 points on the circle of radius 0.3. */
void att_circle_sample(const att_circle_task *task, int i, att_circle_pair x, att_circle_pair target);

#endif
