#include "engine/ops/dct_pool.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* B(i, k, L) of attscope/ops.h. */
static double cosine(int64_t i, int k, int length)
{
    const double pi = 3.14159265358979323846;
    return cos(pi * k * ((double)i + 0.5) / length) / sqrt(length) * (k > 0 ? sqrt(2) : 1);
}

/* Weight of element p of an axis of `size` elements in sum_i B(i, k, length) mean(window i), where adaptive average
 * pooling divides the axis into `length` windows. */
static double count_of(int64_t p, int64_t size, int k, int length)
{
    double sum = 0;
    for (int64_t i = 0; i < length; i++) {
        int64_t first = i * size / length, end = ((i + 1) * size + length - 1) / length;
        if (p >= first && p < end)
            sum += cosine(i, k, length) / (double)(end - first);
    }
    return sum;
}

/* Weight of element e of a sample in the output of its channel. */
static double weight_of(const att_dct_attrs *attrs, int64_t channels, int64_t e)
{
    int64_t group = e % channels / (channels / attrs->count), pixel = e / channels;
    return count_of(pixel / attrs->map_width, attrs->map_height, attrs->rows[group], attrs->height) *
           count_of(pixel % attrs->map_width, attrs->map_width, attrs->columns[group], attrs->width);
}

static att_status run_pool(const att_call *call)
{
    int64_t channels = ref_dim(call, 0, 2), all = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, channels * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        double sum = 0;
        for (int64_t e = k % channels; e < all; e += channels)
            sum += ref_in(call, 0, k / channels * all + e) * weight_of(call->problem->attrs, channels, e);
        ref_out(call, 0, k, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_dct_pool = {.op = "dct_pool", .name = "ref", .run = run_pool};

static att_status run_grad(const att_call *call)
{
    const att_dct_attrs *attrs = call->problem->attrs;
    int64_t channels = ref_dim(call, 0, 0), all = (int64_t)attrs->map_height * attrs->map_width * channels;
    ref_range share = ref_share(call, all * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++) {
        double dy = ref_in(call, 0, e / all * channels + e % channels);
        ref_out(call, 0, e, dy * weight_of(attrs, channels, e % all));
    }
    return ATT_OK;
}

const att_kernel att_ref_dct_pool_grad = {.op = "dct_pool_grad", .name = "ref", .run = run_grad};
