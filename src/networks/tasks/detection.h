/* tasks/detection.h - what the task "detect" needs for training (detection_training.c), beside its head and its answers
 * (detection.c). */
#ifndef ATT_TASKS_DETECTION_H
#define ATT_TASKS_DETECTION_H

#include "networks/heads/detector.h"

/* The head that options of a network describe; torchvision's values where none is given. */
att_detector att_detection_head(const att_option_values *options, int classes);

/* Options of the task. */
typedef struct att_detection_options {
    char anchor_best[16];
    double anchor_least, crowd_share, box_beta;
    int most_boxes, train_proposals, train_level_proposals, anchor_samples, box_samples;
} att_detection_options;
enum { ATT_DETECTION_OPTIONS = 9 };
extern const att_option att_detection_declared[ATT_DETECTION_OPTIONS];
void att_detection_defaults(att_option_values *options);

/* The target that the loss reads: true boxes [most_boxes, 5], as att_boxes_move() writes them. */
att_field att_detection_boxes_field(const att_task_settings *settings);
void att_detection_fill_boxes(const att_task_settings *settings, const att_dataset *dataset, int64_t index,
                              const att_geometry *geometry, float *rows);
/* Checks that the target has room for the boxes of every image. Error: ERR_MISMATCH. */
att_status att_detection_check_boxes(att_context *context, const att_task_settings *settings,
                                     const att_dataset *dataset);
/* As att_task.loss. Drops the graph's answers: a training run has none. */
att_value att_detection_loss(att_graph *graph, const att_task_settings *settings);

/* Names of the head's scope and of its input with the size of the image. */
#define ATT_DETECTION_SCOPE "detector"
#define ATT_DETECTION_SIZE "image_size"

#endif
