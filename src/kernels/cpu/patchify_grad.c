#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"
#include "ops/patchify.h"

/* One row of patches of one sample: its memory is patch * width * channels elements of the image, and as many of the
 * patches, whose elements are ordered (channel, row, column). */
static void move_strip(const float *patches, float *image, int64_t patch, int64_t width, int64_t channels)
{
    for (int64_t y = 0; y < patch; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < channels; c++)
                *image++ = patches[((x / patch * channels + c) * patch + y) * patch + x % patch];
}

/* Parts share the strips of all samples. Images are hardly ever learned, so this is plain. */
static att_status patchify_grad_run(const att_call *call)
{
    const int64_t *dims = call->problem->out[0].shape.dims;
    int64_t patch = ATT_ATTRS(call->problem, patch)->patch, size = patch * dims[1] * dims[2];
    att_range part = att_part_of(call, call->problem->group * (dims[0] / patch), 1);
    for (int64_t i = part.begin; i < part.end; i++)
        move_strip((const float *)call->in[0] + i * size, (float *)call->out[0] + i * size, patch, dims[1], dims[2]);
    return ATT_OK;
}

const att_kernel att_cpu_patchify_grad = {
    .op = "patchify_grad", .name = "plain", .accepts = att_takes_f32, .run = patchify_grad_run};
