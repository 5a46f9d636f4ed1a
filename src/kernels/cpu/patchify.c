#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"

/* One row of patches of one image: its memory is patch * width * channels elements of the image, and as many of the
 * patches, whose elements are ordered (channel, row, column). */
typedef struct strip {
    int64_t first; /* element of the call's images, and of its patches */
    int64_t patch, width, channels;
} strip;

ATT_INLINE void move_strip(const att_call *call, const strip *s, bool to_patches, bool narrow)
{
    for (int64_t p = 0; p < s->width / s->patch; p++)
        for (int64_t c = 0; c < s->channels; c++)
            for (int64_t y = 0; y < s->patch; y++) {
                int64_t patch = s->first + ((p * s->channels + c) * s->patch + y) * s->patch;
                int64_t pixel = s->first + (y * s->width + p * s->patch) * s->channels + c;
                for (int64_t x = 0; x < s->patch; x++) {
                    int64_t from = to_patches ? pixel + x * s->channels : patch + x;
                    int64_t to = to_patches ? patch + x : pixel + x * s->channels;
                    att_float_put(call->out[0], to, ((const float *)call->in[0])[from], narrow);
                }
            }
}

/* Parts share the strips of all samples. */
ATT_INLINE void move_strips(const att_call *call, const att_desc *image, bool to_patches, bool narrow)
{
    const int64_t *dims = image->shape.dims;
    int64_t patch = call->problem->attrs->patch.patch, size = patch * dims[1] * dims[2];
    att_range part = att_part_of(call, call->problem->group * (dims[0] / patch), 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        strip s = {i * size, patch, dims[1], dims[2]};
        move_strip(call, &s, to_patches, narrow);
    }
}

static att_status patchify_run(const att_call *call)
{
    if (att_is_narrow(&call->problem->out[0]))
        move_strips(call, &call->problem->in[0], true, true);
    else
        move_strips(call, &call->problem->in[0], true, false);
    return ATT_OK;
}

static bool patchify_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 0, 1);
}

static att_status patchify_grad_run(const att_call *call)
{
    move_strips(call, &call->problem->out[0], false, false);
    return ATT_OK;
}

const att_kernel att_cpu_patchify = {
    .op = "patchify", .name = "plain", .accepts = patchify_accepts, .run = patchify_run};
const att_kernel att_cpu_patchify_grad = {
    .op = "patchify_grad", .name = "plain", .accepts = att_takes_f32, .run = patchify_grad_run};
