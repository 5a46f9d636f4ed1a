/* tasks/box_precision.h - average precision and recall of boxes, as COCO defines them.
 *
 * Detections of a category take true boxes of their image in the order of their scores, at most 100 in an image, at ten
 * thresholds of overlap, 0.5 to 0.95. Precision is made non-increasing in recall and read at 101 recalls, 0 to 1. True
 * boxes of a crowd or outside a range of areas count neither as found nor as missed, nor do detections that take these,
 * nor detections outside the range that take none.
 */
#ifndef ATT_TASKS_BOX_PRECISION_H
#define ATT_TASKS_BOX_PRECISION_H

#include <attscope/coco.h>

#include "data/coco.h"

/* Sets the ATT_COCO_FIGURES figures, and of each category its own [categories]. Boxes of both kinds may be in any
 * order; of equal scores the detection that comes first in `found` has precedence. Errors: ERR_MEMORY. */
att_status att_box_precision(att_context *context, const att_coco_box *truth, int truth_count,
                             const att_coco_box *found, int found_count, int categories,
                             double figures[ATT_COCO_FIGURES], att_coco_class *classes);

#endif
