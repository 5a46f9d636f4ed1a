/* data/make.h - reads and transforms one image of a data set. */
#ifndef ATT_DATA_MAKE_H
#define ATT_DATA_MAKE_H

#include "data/dataset.h"
#include "data/transform.h"

/* As att_dataset_read() followed by att_transform_image() with this key, but decodes only the part that the transform
 * reads. If the transform chooses among several crops, targets->choose_crop does. Error messages name the image.
 * *geometry: the map from pixels of the file to pixels of the result. */
att_status att_make_image(const att_dataset *dataset, const att_transform_options *transform,
                          const att_target_rules *targets, att_context *context, int64_t index,
                          const att_transform_key *key, float *out, att_geometry *geometry);

#endif
