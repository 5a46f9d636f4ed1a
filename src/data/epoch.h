/* data/epoch.h - which sample stands at which place of an epoch, and which places make a batch. A place counts the
 * samples of the epoch in their order; a batch has places that follow each other, and images of one size. */
#ifndef ATT_DATA_EPOCH_H
#define ATT_DATA_EPOCH_H

#include "data/buckets.h"

typedef struct att_epoch {
    const att_dataset *dataset;
    const att_loader_options *options;
    int64_t places;       /* samples per epoch, without those of dropped batches; a repeated image counts each time */
    int64_t *order;       /* indices of the images in their order; NULL: that of the data set */
    int64_t *shuffled;    /* with buckets: the permutation that fills them; NULL if images are not shuffled */
    att_buckets *buckets; /* NULL: all images have one size */
} att_epoch;

/* The data set and the options must outlive the epoch. *epoch is zeroed before; att_epoch_free() frees it, also after a
 * failure. Errors: those of att_buckets_create(), ERR_MEMORY. */
att_status att_epoch_create(att_context *context, const att_dataset *dataset, const att_loader_options *options,
                            att_epoch *epoch);
void att_epoch_free(att_context *context, att_epoch *epoch);
/* Draws the order of epoch `number`. */
void att_epoch_begin(att_epoch *epoch, int64_t number);

int64_t att_epoch_batches(const att_epoch *epoch);
/* Place of the first sample of a batch, and the number of its samples. */
int64_t att_epoch_batch_begin(const att_epoch *epoch, int64_t batch);
int att_epoch_batch_size(const att_epoch *epoch, int64_t batch);
int att_epoch_batch_shape(const att_epoch *epoch, int64_t batch);

/* Sizes of images, by number. */
int att_epoch_shapes(const att_epoch *epoch);
att_loader_shape att_epoch_shape_at(const att_epoch *epoch, int shape);

/* Index of the image at a place; places beyond the end begin again at the first. */
int64_t att_epoch_index_at(const att_epoch *epoch, int64_t place);
bool att_epoch_has_shape(const att_epoch *epoch, int64_t index, int shape);

#endif
