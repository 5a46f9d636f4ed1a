/* data/labels.h - for tests: target rules of a loader whose targets are the images' classes. */
#ifndef TESTS_DATA_LABELS_H
#define TESTS_DATA_LABELS_H

#include <attscope/data.h>

static inline att_status labels_fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                                     const att_geometry *geometry, void *const *fields)
{
    (void)user, (void)context, (void)geometry;
    *(int32_t *)fields[0] = att_dataset_label(dataset, index);
    return ATT_OK;
}

/* One field, "label", I32. */
static inline att_target_rules labels_rules(void)
{
    static const att_field field = {.name = "label", .dtype = ATT_I32};
    return (att_target_rules){.fields = &field, .count = 1, .fill = labels_fill};
}

static inline const int32_t *labels_of(const att_batch *batch)
{
    return att_batch_field(batch, "label");
}

static inline const float *images_of(const att_batch *batch)
{
    return batch->data[0];
}

#endif
