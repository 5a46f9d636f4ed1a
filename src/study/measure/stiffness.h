/* measure/stiffness.h - the neural stiffness index of all steps of one sample, for TNS and the instruments beside it.
 */
#ifndef ATT_MEASURE_STIFFNESS_H
#define ATT_MEASURE_STIFFNESS_H

#include "study/measure/instrument.h"

/* The steps of a sample, without the first step of each stage. The indices are of the observed rows. If an index is not
 * defined, all members but `count` are NaN or -1. */
typedef struct att_stiffness {
    double largest, second; /* the two largest indices, equal if two steps have the largest; 0 if there is no second */
    double sum;
    int where; /* row of the largest index; of equal ones the first */
    int count; /* number of steps */
} att_stiffness;

/* Requests the norms of all steps. Returns ERR_NOT_FOUND if there is none beside the first of each stage. */
att_status att_stiffness_request(att_requests *requests, att_dt dt);
/* Finds the next step that counts after `step` (node -1: the first), in the order of the rows. Returns false if there
 * is none. */
bool att_stiffness_next(const att_graph *graph, att_residual_step *step);

/* Computes from the first `rows` rows of a sample, which are norms of steps. */
att_stiffness att_stiffness_of(const att_observed *observed, int rows, att_reading reading);

/* TNS of a sample: the area of M1, M2 > 0 in which the largest index is at least max(mean (1 + M1), M2). */
double att_tns(double largest, double mean);

#endif
