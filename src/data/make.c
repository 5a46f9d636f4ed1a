#include "data/make.h"

#include "base/core/error.h"

typedef struct need_arguments {
    const att_transform_options *transform;
    const att_transform_key *key;
} need_arguments;

static att_box needed_box(void *user, int width, int height)
{
    const need_arguments *it = user;
    return att_transform_needs(it->transform, width, height, it->key);
}

att_status att_make_image(const att_dataset *dataset, const att_transform_options *transform, att_context *context,
                          int64_t index, const att_transform_key *key, float *out, att_geometry *geometry)
{
    need_arguments it = {transform, key};
    att_image_need need = {needed_box, &it};
    att_image image;
    ATT_TRY(att_dataset_read_needed(dataset, context, index, transform->channels, &need, &image));
    att_status status = att_transform_keyed(context, transform, &image, key, out, geometry);
    att_image_free(context, &image);
    if (status != ATT_OK) {
        char name[ATT_DATA_MAX_NAME];
        att_dataset_name(dataset, index, name, sizeof name);
        return att_fail(context, status, "%s: %s", name, att_context_message(context));
    }
    return ATT_OK;
}
