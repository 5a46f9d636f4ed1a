/* tasks/found_boxes.h - the boxes that a detector answers with. */
#ifndef ATT_TASKS_FOUND_BOXES_H
#define ATT_TASKS_FOUND_BOXES_H

#include <attscope/task.h>

/* Names of the outputs (attscope/task.h, "detect"). */
#define ATT_FOUND_BOXES "boxes"
#define ATT_FOUND_SCORES "scores"
#define ATT_FOUND_CLASSES "classes"
#define ATT_FOUND_COUNT "count"

/* The boxes of one image, the best first. */
typedef struct att_found_boxes {
    const float *boxes, *scores; /* [count][4], [count] */
    const int32_t *classes;      /* [count] */
    int count;
} att_found_boxes;

/* Finds the boxes of a row of the answers. Errors: ERR_MISMATCH (the network has no head). */
att_status att_found_boxes_of(att_context *context, const att_batch *answers, int row, att_found_boxes *found);
/* Sets `box` to left, top, right and bottom of box `index` in pixels of the photograph, or of the network's input if
 * geometry is NULL. */
void att_found_box_place(const att_found_boxes *found, int index, const att_geometry *geometry, double box[4]);

#endif
