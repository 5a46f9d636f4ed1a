/* data/buckets.h - sorts the samples of an epoch into batches, each of images of one size, where sizes depend on the
 * image. */
#ifndef ATT_DATA_BUCKETS_H
#define ATT_DATA_BUCKETS_H

#include "data/sides.h"

typedef struct att_buckets {
    att_context *context;
    int batch_size;
    bool drop_last; /* drop incomplete batches */
    int64_t images; /* of the data set */
    int shape_count;
    att_sides *shapes;    /* [shape_count]: sides of transformed images; the largest area first, of equal ones the
                             highest */
    int64_t *counts;      /* [shape_count]: images of each shape */
    int32_t *shape_of;    /* [images] */
    int64_t batches;      /* per epoch */
    int64_t *begins;      /* [batches + 1]: place of each batch's first sample in the epoch's order */
    int32_t *batch_shape; /* [batches] */
    /* Scratch: samples of each shape so far; by shape: number of its first batch among those that batch_of lists, shape
     * after shape; the place of a batch in the epoch. */
    int64_t *seen, *first, *batch_of;
} att_buckets;

/* Finds the shape of every image: reads the sides from the files' headers, and asks the transform. An image whose
 * header cannot be read gets the shape of most images if `corrupt` allows such images; loading it fails again. The
 * buckets outlive none of the arguments. Errors: those of reading an image, ERR_MEMORY, ERR_STOPPED. */
att_status att_buckets_create(att_context *context, const att_dataset *dataset, const att_loader_options *options,
                              att_buckets **buckets);
void att_buckets_destroy(att_buckets **buckets);
/* Batches of a shape per epoch. */
int64_t att_buckets_batches(const att_buckets *buckets, int shape);

/* Fills the batches of an epoch. Samples go into the bucket of their shape, in the order given; a full bucket is the
 * next batch. What is left at the end are short batches, in the order of the shapes, unless these are dropped. order:
 * [images]; NULL: that of the data set, with all batches of the first shape first, then those of the second, so that an
 * evaluation needs the memory of one shape at a time. filled: [images], of which the first begins[batches] are set. */
void att_buckets_fill(att_buckets *buckets, const int64_t *order, int64_t *filled);

#endif
