#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/patchify.h"

/* Fills one line of an image from row y of its patches, whose elements are ordered (channel, row, column). */
static void fill_line(const float *patches, float *image, const att_patch_attrs *attrs, int64_t y)
{
    int64_t patch_h = attrs->patch[0], patch_w = attrs->patch[1], channels = attrs->channels;
    int64_t end = attrs->width / patch_w * patch_w;
    for (int64_t x = 0; x < attrs->width; x++)
        for (int64_t c = 0; c < channels; c++)
            *image++ = x < end ? patches[((x / patch_w * channels + c) * patch_h + y) * patch_w + x % patch_w] : 0;
}

/* Parts share the lines of all samples. Not optimised, because gradients of images are rarely needed. */
static att_status patchify_grad_run(const att_call *call)
{
    const att_patch_attrs *attrs = call->problem->attrs;
    int64_t patch_h = attrs->patch[0], down = attrs->height / patch_h, line = (int64_t)attrs->width * attrs->channels;
    int64_t strip = attrs->width / attrs->patch[1] * attrs->patch[1] * patch_h * attrs->channels;
    att_range part = att_part_of(call, call->problem->group * attrs->height, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t sample = i / attrs->height, y = i % attrs->height;
        float *image = (float *)call->out[0] + i * line;
        if (y < down * patch_h)
            fill_line((const float *)call->in[0] + (sample * down + y / patch_h) * strip, image, attrs, y % patch_h);
        else
            memset(image, 0, (size_t)line * sizeof *image);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(patchify_grad, .run = patchify_grad_run);
