/* train/preview.h - shows some images of a data set to the instruments that want to see them before a measurement. */
#ifndef ATT_TRAIN_PREVIEW_H
#define ATT_TRAIN_PREVIEW_H

#include <attscope/evaluate.h>

#include "study/train/inference.h"

/* Runs as many images as the instruments of options->measure want (att_measure_previews()), evenly spread over the data
 * set, or all if it has fewer. image: name of the input that takes them. options->batch_size is the largest batch of
 * the inference. With skip_corrupt, images that cannot be decoded are passed over. Errors: those of reading and
 * running. */
att_status att_preview(att_inference *inference, const char *image, const att_dataset *dataset,
                       const att_transform_options *transform, const att_evaluate_options *options);

#endif
