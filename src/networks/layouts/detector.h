/* layouts/detector.h - what layouts of Faster R-CNN have in common. */
#ifndef ATT_LAYOUTS_DETECTOR_H
#define ATT_LAYOUTS_DETECTOR_H

#include "networks/layouts/layout.h"

/* Rows of the tensor `name`; 0: there is none of this rank. */
double att_layout_rows_of(const att_layout_source *source, const char *name, int rank);

/* A complete(): sets the task, the head, its channels and classes, from its tensors under attscope's names. classifier:
 * the file's name of the layer for classes, for messages. */
att_status att_layout_complete_detector(const att_layout_source *source, const char *classifier, att_config *config);

/* A name_classes(): a network with as many classes as the built-in list `list` has from name `first` on gets these
 * names, unless the file has names. */
att_status att_layout_name_objects(att_tensors *file, const char *list, int first);

#endif
