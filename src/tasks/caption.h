/* tasks/caption.h - the line that stands below a picture. */
#ifndef ATT_TASKS_CAPTION_H
#define ATT_TASKS_CAPTION_H

#include <attscope/task.h>

#include "core/export.h"
#include "core/text.h"

/* The longest caption. */
enum { ATT_CAPTION_BYTES = 4096 };

/* Cuts a longer text, between two characters. A byte that is no UTF-8 counts as three: JSON has U+FFFD in its place. */
ATT_FOR_LAB void att_caption_truncate(att_text *text);

/* Appends the class of an image and the classes that a network finds most probable:
 *
 *   tench, recognised (93.1 %). Next: coho 3 %, barracouta 1 %.
 *   tench, predicted: coho (51 %). Next: tench 30 %.
 *   predicted: coho (51 %). Next: tench 30 %.
 *   tench.
 *
 * label: the number of the image's class, -1 where it is not known or not one of the network's classes. label_name: the
 * image's class where `names` lacks it; NULL or "": not known. top: `count` classes, the most probable first; the last
 * line above is for none. A class without a name is "class 7", and "n01440764" is "n01440764 tench". */
ATT_FOR_LAB void att_caption_classes(att_text *text, const att_answer_options *names, int label, const char *label_name,
                                     const att_ranked *top, int count);

#endif
