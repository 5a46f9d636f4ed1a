#include "data/make.h"

#include "base/core/error.h"

typedef struct making {
    const att_dataset *dataset;
    const att_transform_options *transform;
    const att_target_rules *targets;
    att_context *context;
    int64_t index;
    att_transform_key key;
    bool chosen;       /* `key` has the crop */
    att_status status; /* of choosing it */
} making;

/* An image that cannot be transformed is left to the transform, which says so. */
static att_status choose_crop(making *it, int width, int height)
{
    att_geometry crops[ATT_CROP_CHOICES];
    int chosen = 0;
    for (int i = 0; i < ATT_CROP_CHOICES; i++) {
        it->key.crop = i;
        if (att_transform_place(it->context, it->transform, width, height, &it->key, &crops[i]) != ATT_OK)
            return ATT_OK;
    }
    att_status status = it->targets->choose_crop(it->targets->user, it->context, it->dataset, it->index, crops,
                                                 it->transform->cat_max_ratio, &chosen);
    it->key.crop = chosen;
    return status;
}

/* Chooses the crop when the image's sides are known. */
static void choose(making *it, int width, int height)
{
    if (it->chosen)
        return;
    it->chosen = true;
    it->status = choose_crop(it, width, height);
}

static att_box needed_box(void *user, int width, int height)
{
    making *it = user;
    choose(it, width, height);
    return it->status == ATT_OK ? att_transform_needs(it->transform, width, height, &it->key)
                                : (att_box){0, 0, width, height};
}

att_status att_make_image(const att_dataset *dataset, const att_transform_options *transform,
                          const att_target_rules *targets, att_context *context, int64_t index,
                          const att_transform_key *key, float *out, att_geometry *geometry)
{
    making it = {.dataset = dataset,
                 .transform = transform,
                 .targets = targets,
                 .context = context,
                 .index = index,
                 .key = *key,
                 .chosen = !att_transform_chooses(transform)};
    att_image_need need = {.box = needed_box, .user = &it};
    att_image image;
    ATT_TRY(att_dataset_read_needed(dataset, context, index, transform->channels, &need, &image));
    choose(&it, image.width, image.height); /* formats that decode whole images do not ask for the box */
    att_status status = it.status;
    if (status == ATT_OK)
        status = att_transform_keyed(context, transform, &image, &it.key, out, geometry);
    att_image_free(context, &image);
    ATT_TRY(it.status);
    if (status != ATT_OK) {
        char name[ATT_DATA_MAX_NAME];
        att_dataset_name(dataset, index, name, sizeof name);
        return att_fail(context, status, "%s: %s", name, att_context_message(context));
    }
    return ATT_OK;
}
