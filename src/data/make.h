/* data/make.h - reads and transforms one image of a data set. */
#ifndef ATT_DATA_MAKE_H
#define ATT_DATA_MAKE_H

#include "data/dataset.h"
#include "data/transform.h"

/* As att_dataset_read() followed by att_transform_image() with this key, but decodes only the part that the transform
 * reads. Error messages name the image. *geometry: the map from pixels of the file to pixels of the result. */
att_status att_make_image(const att_dataset *dataset, const att_transform_options *transform, att_context *context,
                          int64_t index, const att_transform_key *key, float *out, att_geometry *geometry);

#endif
