/* measure/instrument.h - functions shared by the built-in instruments. Each instrument is one file in this folder that
 * ends in a `const att_instrument` (attscope/measure.h), with a line in list.h. */
#ifndef ATT_MEASURE_INSTRUMENT_H
#define ATT_MEASURE_INSTRUMENT_H

#include <attscope/measure.h>
#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/export.h"
#include "engine/graph/graph.h"

/* Returns ERR_ARGUMENT if a member is missing or invalid. The name has been checked already. */
att_status att_instrument_check(att_context *context, const att_instrument *instrument);

/* The source of most values on the scales of statistics. */
#define ATT_OF_PHOTOGRAPHS "attscope measure, deit_tiny_patch16_224, 200 photographs of ImageNet"

/* summaries.c: for instruments that read columns of attention summaries. `columns`: the statistics, in the order of
 * their series. side: whether values are divided by the grid's longer side; only nodes with a grid are then
 * observed. */
typedef struct att_summary_column {
    int column;
    const char *statistic;
} att_summary_column;
att_status att_summaries_request(att_requests *requests, const att_summary_column *columns, int count, bool side);
void att_summaries_observe(const att_observed *observed, const att_summary_column *columns, int count, double *values);

/* Returns ERR_NOT_FOUND: the network has no <what> that matches the user's pattern, or no attention between tokens; the
 * message then says what it has instead. */
att_status att_requests_found_no_attention(const att_requests *requests, const char *what);

/* Returns ERR_NOT_FOUND if the network has no output with a score for each class (att_task_class_output()). */
att_status att_requests_need_classes(const att_requests *requests);

/* As att_requests_series(), for a statistic in a reading: "tns unit". One of both names may be NULL. They are copied.
 */
void att_requests_reading(att_requests *requests, const char *node, int head, const char *statistic,
                          const char *reading);
/* Declares a series for each head of an attention node, and for all heads together. */
void att_requests_heads(att_requests *requests, const att_node *node, const char *statistic, const char *reading);

/* maps.c: for instruments that read figures of whole rows of attention maps (att_map_statistic()). */

/* Requests a row for each attention node: the figure of each head. The constant of the rows is the number of keys. */
att_status att_maps_request(att_requests *requests, att_map_statistic_kind kind, double parameter);
/* Declares a statistic for each head of each attention node, and for all heads together. reading: may be NULL. */
void att_maps_add_series(att_requests *requests, const char *statistic, const char *reading);
/* Writes the values of one statistic from `count` rows, those of one att_maps_request(). Returns the place after them.
 */
double *att_maps_observe(const att_observed *observed, int first, int count, double *values);
#define ATT_MAPS_COST                                                                                               \
    "computed from the whole map, of one layer at a time: 4 bytes for each head, query and key of the images that " \
    "are "                                                                                                          \
    "computed together"

/* steps.c */

/* Which factors on a branch count as the step size dt. */
typedef enum att_dt {
    ATT_DT_GATES, /* gates of attention modules */
    ATT_DT_ALL    /* also LayerScale and drop path */
} att_dt;
extern const char *const att_dt_choices[];
/* The option of instruments that choose it. */
#define ATT_DT_OPTION                                                                                              \
    {                                                                                                              \
        .name = "dt",                                                                                              \
        .meaning =                                                                                                 \
            "which factors on a branch count as dt: gates of attention modules, or also LayerScale and drop path", \
        .high = ATT_DT_ALL, .choices = att_dt_choices                                                              \
    }

/* The option "per" of instruments, and the next step in its sense: a residual addition or a block. */
enum { ATT_PER_ADDITION, ATT_PER_BLOCK };
extern const char *const att_per_choices[];
bool att_step_next(const att_graph *graph, bool per_block, att_residual_step *step);
/* Whether the step matches the user's pattern. */
bool att_requests_has_step(const att_requests *requests, const att_residual_step *step);
/* Declares a series for each step that matches, marked if the step begins a stage. As att_requests_reading(). */
void att_requests_step_series(att_requests *requests, bool per_block, const char *statistic, const char *reading);

/* The branch of a residual addition before the factors in dt. If LayerScale or drop path follows a gate, nodes that
 * apply it to the branch without the gate are added to the graph. */
att_value att_step_branch(att_graph *graph, const att_residual_step *step, att_dt dt);

/* The norms of a step: |before|, |after - before|, |branch before the factors in dt|, |branch as it is added|. */
ATT_FOR_LAB att_value att_norms_of_step(att_graph *graph, const att_residual_step *step, att_dt dt);
/* Adds a probe of the step's norms, unless the graph has it already, and requests the probe's rows. The constant of the
 * rows is 0 if the step begins a stage, else 1. */
void att_requests_step_norms(att_requests *requests, const att_residual_step *step, att_dt dt);
/* The same for all steps that match. Returns their number. */
int att_requests_steps(att_requests *requests, bool per_block, att_dt dt);

/* Finds the step on whose branch the gate lies: node `gate` is one of the branch's factors. Returns false if there is
 * none. */
bool att_step_of_gate(const att_graph *graph, int gate, att_residual_step *step);
/* The next node after `after` that multiplies by the gate of a module and matches the user's pattern; -1: none. */
int att_requests_gate(const att_requests *requests, int after);
/* Whether the gate has one number per pixel, as CBAM's second one, and not one per channel. */
bool att_is_pixel_gate(const att_node *node);
/* Requests the values of a gate. */
void att_requests_gate_values(att_requests *requests, int gate, double constant);

/* The three readings of NSI, and therefore of TNS. Without gates on branches and ReLUs after sums they are equal. */
typedef enum att_reading { ATT_READING_ATTENTION, ATT_READING_GATED, ATT_READING_UNIT, ATT_READINGS } att_reading;
extern const char *const att_nsi_readings[]; /* their names */
#define ATT_NSI_READINGS_AGREE "no gates here"
/* Compute from a row of step norms: |(x_{t+1} - x_t) / dt| in a reading, and the same over |x_t|. */
double att_step_size(const float *row, att_reading reading);
double att_nsi(const float *row, att_reading reading);

/* residual.c: requests the row of att_residual_norms() of x, by a probe "<scope>.<label>". */
void att_requests_residual(att_requests *requests, const char *scope, const char *label, att_value x, bool median);
/* |res(X)| / |X| from a row of att_residual_norms(), in the composite norm, whose products do not overflow,
 * and in the Frobenius norm. */
double att_residual_composite(const float *row);
double att_residual_frobenius(const float *row);

#endif
