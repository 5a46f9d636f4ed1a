/* tasks/confusion.h - the confusion matrix of a segmenter and what follows from it. */
#ifndef ATT_TASKS_CONFUSION_H
#define ATT_TASKS_CONFUSION_H

#include <stdint.h>

#include <attscope/data.h>

/* counts [classes][classes]: pixels by their class (rows) and the predicted class (columns). Pixels without a class are
 * not counted. Zero-initialise. */
typedef struct att_confusion {
    int classes;
    int64_t *counts;
} att_confusion;

/* Allocates the counts, unless that is done. The caller calls att_confusion_free(). */
att_status att_confusion_begin(att_context *context, att_confusion *confusion, int classes);
void att_confusion_free(att_context *context, att_confusion *confusion);

/* Adds `count` pixels. classes: ATT_MASK_NONE for those without a class. predicted: 0..classes-1. Errors: ERR_MISMATCH
 * for a class that the network does not have. */
att_status att_confusion_add(att_context *context, att_confusion *confusion, const uint16_t *classes,
                             const uint16_t *predicted, int64_t count);

/* Shares of the pixels of a class; NaN for 0 / 0. With T the pixels of the class, P those with this prediction, and I
 * both: iou = I / (T + P - I), accuracy = I / T. */
typedef struct att_class_score {
    double iou, accuracy;
    int64_t pixels; /* T */
} att_class_score;
att_class_score att_confusion_class(const att_confusion *confusion, int class_number);

/* As in mmsegmentation (IoUMetric): miou is the mean iou of the classes that occur in the masks or in the predictions,
 * macc the mean accuracy of the classes that occur in the masks, aacc the share of all pixels with a class that are
 * right. NaN if there are none. */
typedef struct att_segmentation_scores {
    double miou, macc, aacc;
} att_segmentation_scores;
att_segmentation_scores att_confusion_scores(const att_confusion *confusion);

#endif
