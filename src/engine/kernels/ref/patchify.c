#include "engine/ops/patchify.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Index in the images [group, h, w, c] of element `e` of the patches [group, N, c P Q]. */
static int64_t pixel_of(int64_t e, int64_t height, int64_t width, int64_t channels, const int32_t patch[2])
{
    int64_t patch_h = patch[0], patch_w = patch[1];
    int64_t column = e % patch_w, row = e / patch_w % patch_h, channel = e / (patch_h * patch_w) % channels;
    int64_t number = e / (patch_h * patch_w * channels); /* index of the patch among all samples */
    int64_t across = width / patch_w, down = height / patch_h;
    int64_t y = number / across % down * patch_h + row, x = number % across * patch_w + column;
    int64_t sample = number / (across * down);
    return ((sample * height + y) * width + x) * channels + channel;
}

static att_status run_patchify(const att_call *call)
{
    const int32_t *patch = ATT_ATTRS(call->problem, patch)->patch;
    int64_t height = ref_dim(call, 0, 0), width = ref_dim(call, 0, 1), channels = ref_dim(call, 0, 2);
    ref_range share = ref_share(call, call->problem->group * att_shape_count(call->problem->out[0].shape));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, pixel_of(e, height, width, channels, patch)));
    return ATT_OK;
}

const att_kernel att_ref_patchify = {.op = "patchify", .name = "ref", .run = run_patchify};

/* The inverse; -1 for a pixel beyond the patches. */
static int64_t element_of(int64_t pixel, const att_patch_attrs *attrs)
{
    int64_t patch_h = attrs->patch[0], patch_w = attrs->patch[1], channels = attrs->channels;
    int64_t across = attrs->width / patch_w, down = attrs->height / patch_h;
    int64_t channel = pixel % channels, x = pixel / channels % attrs->width;
    int64_t line = pixel / channels / attrs->width, y = line % attrs->height, sample = line / attrs->height;
    if (x >= across * patch_w || y >= down * patch_h)
        return -1;
    int64_t number = (sample * down + y / patch_h) * across + x / patch_w;
    return ((number * channels + channel) * patch_h + y % patch_h) * patch_w + x % patch_w;
}

static att_status run_grad(const att_call *call)
{
    const att_patch_attrs *attrs = call->problem->attrs;
    ref_range share = ref_share(call, call->problem->group * att_shape_count(call->problem->out[0].shape));
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t from = element_of(e, attrs);
        ref_out(call, 0, e, from < 0 ? 0 : ref_in(call, 0, from));
    }
    return ATT_OK;
}

const att_kernel att_ref_patchify_grad = {.op = "patchify_grad", .name = "ref", .run = run_grad};
