/* data/make.h - one image of a data set, from its file to floats. */
#ifndef ATT_DATA_MAKE_H
#define ATT_DATA_MAKE_H

#include "data/dataset.h"
#include "data/transform.h"

/* As att_dataset_read() and att_transform_image() with this key; only what the transform reads is decoded. Every
 * message names the image. *geometry: how its pixels moved. */
att_status att_make_image(const att_dataset *dataset, const att_transform_options *transform, att_context *context,
                          int64_t index, const att_transform_key *key, float *out, att_geometry *geometry);

#endif
