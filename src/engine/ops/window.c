#include "engine/ops/window.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/pool.h"
#include "engine/ops/rule.h"

/* Number of windows of `extent` elements, `stride` apart, that fit into `size` elements with `padding` on both sides; 0
 * if none fits. All arguments are at most INT32_MAX; stride is at least 1. */
static int64_t window_count(int64_t size, int64_t extent, int64_t stride, int64_t padding)
{
    int64_t left = size + 2 * padding - extent;
    return left < 0 ? 0 : left / stride + 1;
}

att_status att_rule_require_maps(const att_infer *infer, int i, const char *name)
{
    enum { MAPS_RANK = 4 };
    const int rank = infer->in[i].shape.rank;
    return att_rule_require_rank(infer, i, name, ATT_SAMPLE, rank == MAPS_RANK && !infer->derived ? MAPS_RANK : 3);
}

static bool is_size(int64_t size)
{
    return size >= 1 && size <= INT32_MAX;
}

static att_status check_conv(const att_infer *infer, const int64_t size[2], const int64_t kernel[2])
{
    const att_conv_attrs *attrs = infer->attrs;
    if (attrs->stride < 1 || attrs->dilation < 1 || attrs->groups < 1 || attrs->padding < 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "stride %d, dilation %d and groups %d must be at least 1, padding %d at least 0",
                             attrs->stride, attrs->dilation, attrs->groups, attrs->padding);
    if (!is_size(size[0]) || !is_size(size[1]) || !is_size(kernel[0]) || !is_size(kernel[1]))
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "map and kernel sides must be 1 to %d, not %lld x %lld (map) and %lld x %lld (kernel)",
                             INT32_MAX, (long long)size[0], (long long)size[1], (long long)kernel[0],
                             (long long)kernel[1]);
    return ATT_OK;
}

att_status att_conv_size(const att_infer *infer, const int64_t size[2], const int64_t kernel[2], int64_t to[2])
{
    const att_conv_attrs *attrs = infer->attrs;
    ATT_TRY(check_conv(infer, size, kernel));
    for (int axis = 0; axis < 2; axis++) {
        to[axis] = window_count(size[axis], attrs->dilation * (kernel[axis] - 1) + 1, attrs->stride, attrs->padding);
        if (to[axis] < 1)
            return att_rule_fail(infer, ATT_ERR_MISMATCH,
                                 "a kernel of %lld x %lld, dilation %d, does not fit into a map of %lld x %lld with "
                                 "padding %d",
                                 (long long)kernel[0], (long long)kernel[1], attrs->dilation, (long long)size[0],
                                 (long long)size[1], attrs->padding);
    }
    return ATT_OK;
}

att_status att_conv_transpose_size(const att_infer *infer, const int64_t size[2], const int64_t kernel[2],
                                   int64_t to[2])
{
    const att_conv_attrs *attrs = infer->attrs;
    ATT_TRY(check_conv(infer, size, kernel));
    if (attrs->output_padding < 0 || attrs->output_padding >= attrs->stride)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "output padding %d must be from 0 to less than the stride, %d",
                             attrs->output_padding, attrs->stride);
    for (int axis = 0; axis < 2; axis++)
        to[axis] = (size[axis] - 1) * attrs->stride + attrs->dilation * (kernel[axis] - 1) + 1 -
                   2 * (int64_t)attrs->padding + attrs->output_padding;
    if (!is_size(to[0]) || !is_size(to[1]))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the sides of the result must be 1 to %d, not %lld x %lld",
                             INT32_MAX, (long long)to[0], (long long)to[1]);
    return ATT_OK;
}

/* With `ceil`, the last window may reach beyond the padding, but must begin inside x or the padding before x. */
static int64_t pool_count(const att_pool_attrs *attrs, int64_t size)
{
    int64_t slack = attrs->ceil ? attrs->stride - 1 : 0;
    int64_t left = size + 2 * (int64_t)attrs->padding - attrs->kernel + slack;
    int64_t count = left < 0 ? 0 : left / attrs->stride + 1;
    return attrs->ceil && count > 0 && (count - 1) * attrs->stride >= size + attrs->padding ? count - 1 : count;
}

att_status att_pool_size(const att_infer *infer, const int64_t size[2], int64_t to[2])
{
    const att_pool_attrs *attrs = infer->attrs;
    if (attrs->kernel < 1 || attrs->stride < 1 || attrs->padding < 0 || attrs->padding > attrs->kernel / 2)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "kernel %d and stride %d must be at least 1, padding %d from 0 to half the kernel",
                             attrs->kernel, attrs->stride, attrs->padding);
    for (int axis = 0; axis < 2; axis++) {
        to[axis] = is_size(size[axis]) ? pool_count(attrs, size[axis]) : 0;
        if (to[axis] < 1)
            return att_rule_fail(infer, ATT_ERR_MISMATCH,
                                 "a window of %d x %d does not fit into a map of %lld x %lld with padding %d",
                                 attrs->kernel, attrs->kernel, (long long)size[0], (long long)size[1], attrs->padding);
    }
    return ATT_OK;
}
