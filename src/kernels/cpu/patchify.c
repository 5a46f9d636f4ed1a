#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"

/* One row of patches of one image: its memory is patch * width * channels elements of the image, and as many of the
 * patches, whose elements are ordered (channel, row, column). */
typedef struct strip {
    float *image, *patches;
    int64_t patch, width, channels;
} strip;

static inline void to_patches(float *patch, float *pixel)
{
    *patch = *pixel;
}

static inline void to_image(float *patch, float *pixel)
{
    *pixel = *patch;
}

static inline void move_strip(const strip *s, void (*move)(float *patch, float *pixel))
{
    for (int64_t p = 0; p < s->width / s->patch; p++)
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t y = 0; y < s->patch; y++) {
                float *patch = s->patches + ((p * s->channels + c) * s->patch + y) * s->patch;
                float *pixel = s->image + (y * s->width + p * s->patch) * s->channels + c;
                for (int64_t x = 0; x < s->patch; x++)
                    move(patch + x, pixel + x * s->channels);
            }
}

/* Parts share the strips of all samples. */
static inline void move_strips(const att_call *call, const att_desc *image, float *pixels, float *patches,
                               void (*move)(float *patch, float *pixel))
{
    const int64_t *dims = image->shape.dims;
    int64_t patch = call->problem->attrs->patch.patch, size = patch * dims[1] * dims[2];
    att_range part = att_part_of(call, call->problem->group * (dims[0] / patch), 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        strip s = {pixels + i * size, patches + i * size, patch, dims[1], dims[2]};
        move_strip(&s, move);
    }
}

static att_status patchify_run(const att_call *call)
{
    move_strips(call, &call->problem->in[0], (float *)call->in[0], call->out[0], to_patches);
    return ATT_OK;
}

static att_status patchify_grad_run(const att_call *call)
{
    move_strips(call, &call->problem->out[0], call->out[0], (float *)call->in[0], to_image);
    return ATT_OK;
}

const att_kernel att_cpu_patchify = {.op = "patchify", .name = "plain", .accepts = att_takes_f32, .run = patchify_run};
const att_kernel att_cpu_patchify_grad = {
    .op = "patchify_grad", .name = "plain", .accepts = att_takes_f32, .run = patchify_grad_run};
