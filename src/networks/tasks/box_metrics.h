/* tasks/box_metrics.h - the metrics of a task that finds boxes: COCO's figures (box_precision.h) in per cent, and AP
 * and AR of each class. The functions are members of att_task. */
#ifndef ATT_TASKS_BOX_METRICS_H
#define ATT_TASKS_BOX_METRICS_H

#include <attscope/coco.h>
#include <attscope/task.h>

#include "data/coco.h"

/* In the order of att_coco_figure_at(); NaN where no true box is in the range of areas. */
extern const att_metric att_box_metrics[ATT_COCO_FIGURES];

/* A target of evaluations: the map from the photograph to the network's input. */
#define ATT_BOX_GEOMETRY "geometry"
att_field att_box_geometry_field(void);

typedef struct att_box_state {
    att_coco_box *truth, *found;
    int truth_count, truth_room, found_count, found_room;
    bool concluded; /* `values` and `classes` are those of all boxes */
    double values[ATT_COCO_FIGURES];
    att_coco_class *classes; /* [classes of the network] */
    att_measurement *details;
    char (*names)[24]; /* of classes that the data set gives no name */
} att_box_state;

/* Compares the boxes of settings->evaluated with those that the network found, in pixels of the photographs. */
att_status att_box_observe(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                           const att_batch *answers);
att_status att_box_conclude(att_context *context, void *state, const att_task_settings *settings);
void att_box_report(const void *state, double *values);
att_status att_box_details(att_context *context, void *state, const att_task_settings *settings,
                           const att_measurement **figures, int *count);
void att_box_end(att_context *context, void *state);

#endif
