/* measure/instrument.h - what the built-in instruments share. Each is one file here that ends in one
 * `const att_instrument` (attscope/measure.h), plus its line in list.h. */
#ifndef ATT_MEASURE_INSTRUMENT_H
#define ATT_MEASURE_INSTRUMENT_H

#include <attscope/measure.h>

#include "core/error.h"
#include "graph/graph.h"

/* ERR_ARGUMENT, in one sentence, where a member is missing or cannot be. The name is valid. */
att_status att_instrument_check(att_context *context, const att_instrument *instrument);

/* summaries.c: for instruments that read columns of attention summaries. `columns` are statistics in the order in which
 * they were declared. side: whether the constant is 1 / the grid's longer side (only nodes with a grid), or 1. */
typedef struct att_summary_column {
    int column;
    const char *statistic;
} att_summary_column;
att_status att_summaries_ask(att_asking *asking, const att_summary_column *columns, int count, bool side);
void att_summaries_observe(const att_observed *observed, const att_summary_column *columns, int count, double *values);

/* steps.c */

/* Makes the step's norms a probe, once, and wants its rows; their constant is 0 where the step begins a stage, else 1.
 */
void att_asking_step_norms(att_asking *asking, const att_residual_step *step);
/* What dt is in NSI, and so in TNS. Without a gate on any branch both readings are the same. */
extern const char *const att_nsi_readings[];
#define ATT_NSI_READINGS_AGREE "no gates here"
/* Of a row of step norms: |branch| / |before|, |after - before| / |before|. */
double att_nsi_attention(const float *row);
double att_nsi_unit(const float *row);

#endif
