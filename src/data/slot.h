/* data/slot.h - room for one batch of a loader, with what became of images that could not be made. */
#ifndef ATT_DATA_SLOT_H
#define ATT_DATA_SLOT_H

#include <attscope/context.h>

typedef struct att_slot_failure {
    att_status status; /* ATT_OK: none */
    char *reason;      /* NULL where there was no memory for it */
    int64_t index;     /* of the image in the data set */
    bool replaced;
} att_slot_failure;

/* Arrays of batch_size members. */
typedef struct att_slot {
    att_context *context;
    int batch_size, field_count;
    const size_t *row_bytes; /* of a sample, by field */
    void **fields;           /* [field_count], each [batch_size] rows */
    int64_t *indices;
    att_slot_failure *failures;
    int missing; /* images not made yet */
} att_slot;

/* row_bytes: of each field; outlives the slot. What failed is to be freed too. Errors: ERR_MEMORY. */
att_status att_slot_make(att_context *context, int batch_size, const size_t *row_bytes, int field_count,
                         att_slot *slot);
/* A sample's row of a field. */
void *att_slot_row(const att_slot *slot, int field, int sample);
/* Forgets what failed; `missing` images are to be made. */
void att_slot_ready(att_slot *slot, int missing);
void att_slot_free(att_slot *slot);

const char *att_slot_reason(const att_slot_failure *failure);
/* Failures among the first `size` images. */
int att_slot_failed(const att_slot *slot, int size);
/* Moves the samples that did not fail or were replaced together; how many there are among the first `size`. */
int att_slot_close_gaps(att_slot *slot, int size);

#endif
