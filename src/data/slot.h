/* data/slot.h - storage for one batch of a loader, with the failures of its images. */
#ifndef ATT_DATA_SLOT_H
#define ATT_DATA_SLOT_H

#include <attscope/context.h>

typedef struct att_slot_failure {
    att_status status; /* ATT_OK: no failure */
    char *reason;      /* message; NULL if there was no memory for it */
    int64_t index;     /* index of the image in the data set */
    bool replaced;
} att_slot_failure;

/* One batch. `indices` and `failures` have batch_size elements. */
typedef struct att_slot {
    att_context *context;
    int batch_size, field_count;
    const size_t *row_bytes; /* bytes of a sample, per field; at most those that the slot was made for */
    void **fields;           /* [field_count], each [batch_size] rows */
    int64_t *indices;
    att_slot_failure *failures;
    int missing; /* images that are not prepared yet */
} att_slot;

/* row_bytes: most bytes of a sample per field; must outlive the slot. The caller frees the slot, also after a failure.
 * Errors: ERR_MEMORY. */
att_status att_slot_make(att_context *context, int batch_size, const size_t *row_bytes, int field_count,
                         att_slot *slot);
/* Address of a sample's data in a field. */
void *att_slot_row(const att_slot *slot, int field, int sample);
/* Clears the failures; `missing` images have to be prepared. */
void att_slot_reset(att_slot *slot, int missing);
void att_slot_free(att_slot *slot);

/* Returns the failure's message, or a sentence by its status if there was no memory for the message. */
const char *att_slot_reason(const att_slot_failure *failure);
/* Number of failures among the first `size` images. */
int att_slot_failed(const att_slot *slot, int size);
/* Removes those of the first `size` samples that failed and have no replacement. Returns how many samples are left. */
int att_slot_compact(att_slot *slot, int size);

#endif
