/* tasks/caption.h - captions of images. */
#ifndef ATT_TASKS_CAPTION_H
#define ATT_TASKS_CAPTION_H

#include <attscope/task.h>

#include "base/core/text.h"
#include "networks/tasks/score.h"

/* Largest size of a caption. */
enum { ATT_CAPTION_BYTES = 4096 };

/* Truncates the text to ATT_CAPTION_BYTES, between two characters. A byte that is not valid UTF-8 counts as three: JSON
 * replaces it by U+FFFD. */
void att_caption_truncate(att_text *text);

/* Appends the class of an image and the most probable classes of a prediction:
 *
 *   tench, recognised (93.1 %). Next: coho 3 %, barracouta 1 %.
 *   tench, predicted: coho (51 %). Next: tench 30 %.
 *   predicted: coho (51 %). Next: tench 30 %.
 *   tench.
 *
 * label: number of the image's class, -1 if unknown or not one of the network's. label_name: name of the class if
 * `names` lacks it; NULL or "": unknown. top: `count` classes, the most probable first; count 0 gives the last form. A
 * class without a name is written "class 7", and "n01440764" as "n01440764 tench".
 */
void att_caption_classes(att_text *text, const att_answer_options *names, int label, const char *label_name,
                         const att_ranked *top, int count);

#endif
