#include "study/train/preview.h"

#include "base/core/error.h"
#include "base/core/memory.h"
#include "study/measure/study.h"

typedef struct preview {
    att_context *context;
    att_inference *inference;
    const att_dataset *dataset;
    const att_transform_options *transform;
    const att_evaluate_options *options;
    att_field field; /* the image */
    float *images;
    int32_t *labels;
    int count, most; /* images that wait, and room for them */
} preview;

/* Image `index` takes the next place, unless it cannot be decoded. */
static att_status read_image(preview *p, int64_t index)
{
    att_image image = {0};
    att_status status = att_dataset_read(p->dataset, p->context, index, p->transform->channels, &image);
    if (p->options->skip_corrupt && (status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED))
        return ATT_OK; /* the evaluation reports this image */
    ATT_TRY(status);
    float *to = p->images + p->count * att_shape_count(p->field.shape);
    status = att_transform_image(p->context, p->transform, &image, 0, 0, index, to);
    att_image_free(p->context, &image);
    p->labels[p->count++] = p->options->unlabelled ? -1 : (int32_t)att_dataset_label(p->dataset, index);
    return status;
}

static att_status show(preview *p)
{
    att_batch answers;
    if (p->count == 0)
        return ATT_OK;
    const void *const data[] = {p->images};
    const att_batch images = {.count = p->count, .field_count = 1, .fields = &p->field, .data = data};
    ATT_TRY(att_inference_run(p->inference, &images, p->count, &answers));
    ATT_TRY(att_measure_preview(p->options->measure, p->inference->session, p->count, p->labels));
    p->count = 0;
    return ATT_OK;
}

static att_status show_images(preview *p, int64_t wanted)
{
    const int64_t all = att_dataset_count(p->dataset), shown = wanted < all ? wanted : all;
    for (int64_t i = 0; i < shown; i++) {
        ATT_TRY(read_image(p, (int64_t)(((double)i + 0.5) * (double)all / (double)shown)));
        if (p->count == p->most)
            ATT_TRY(show(p));
    }
    return show(p);
}

att_status att_preview(att_inference *inference, const char *image, const att_dataset *dataset,
                       const att_transform_options *transform, const att_evaluate_options *options)
{
    const int64_t wanted = options->measure ? att_measure_previews(options->measure) : 0;
    const size_t room = (size_t)options->batch_size;
    if (wanted == 0)
        return ATT_OK;
    preview p = {.context = inference->context,
                 .inference = inference,
                 .dataset = dataset,
                 .transform = transform,
                 .options = options,
                 .field = {image, ATT_F32, att_shape_of(transform->height, transform->width, transform->channels)},
                 .most = options->batch_size};
    const size_t bytes = att_field_bytes(&p.field);
    p.images = att_allocate_array(p.context, room, bytes);
    p.labels = att_allocate_array(p.context, room, sizeof *p.labels);
    att_status status = p.images && p.labels ? show_images(&p, wanted)
                                             : att_fail_memory(p.context, room * bytes, "the images of a preview");
    att_free(p.context, p.images);
    att_free(p.context, p.labels);
    return status;
}
