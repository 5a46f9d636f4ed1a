#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"
#include "ops/patchify.h"

/* Moves one row of patches of one sample: patch[0] * width * channels elements of the image, and the same number of
 * elements of the patches, which are ordered (channel, row, column). */
static void move_strip(const float *patches, float *image, const int32_t patch[2], int64_t width, int64_t channels)
{
    int64_t patch_h = patch[0], patch_w = patch[1];
    for (int64_t y = 0; y < patch_h; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < channels; c++)
                *image++ = patches[((x / patch_w * channels + c) * patch_h + y) * patch_w + x % patch_w];
}

/* Parts share the strips of all samples. Not optimised, because gradients of images are rarely needed. */
static att_status patchify_grad_run(const att_call *call)
{
    const int64_t *dims = call->problem->out[0].shape.dims;
    const int32_t *patch = ATT_ATTRS(call->problem, patch)->patch;
    int64_t size = patch[0] * dims[1] * dims[2];
    att_range part = att_part_of(call, call->problem->group * (dims[0] / patch[0]), 1);
    for (int64_t i = part.begin; i < part.end; i++)
        move_strip((const float *)call->in[0] + i * size, (float *)call->out[0] + i * size, patch, dims[1], dims[2]);
    return ATT_OK;
}

const att_kernel att_cpu_patchify_grad = {
    .op = "patchify_grad", .name = "plain", .accepts = att_accepts_f32, .run = patchify_grad_run};
