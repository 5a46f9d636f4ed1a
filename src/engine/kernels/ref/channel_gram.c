#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/batch_moments.h"

/* Sum over a sample's rows of (x - mean of x) (y - mean of y) for two channels x and y. */
static double products(const att_call *call, ref_channel x, ref_channel y)
{
    double mean_x = ref_channel_mean(call, 0, x), mean_y = ref_channel_mean(call, 0, y), sum = 0;
    for (int64_t e = x.begin, f = y.begin; e < x.end; e += x.step, f += y.step)
        sum += (ref_in(call, 0, e) - mean_x) * (ref_in(call, 0, f) - mean_y);
    return sum;
}

static att_status run_gram(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range share = ref_share(call, columns * call->problem->group);
    for (int64_t number = share.begin; number < share.end; number++) {
        int64_t first = number / columns * columns, k = number % columns;
        int64_t out = first * (columns + 1);
        ref_channel channel = ref_channel_of(call, 0, number);
        ref_out(call, 0, out + k, ref_channel_mean(call, 0, channel));
        for (int64_t j = 0; j < columns; j++)
            ref_out(call, 0, out + (1 + k) * columns + j, products(call, channel, ref_channel_of(call, 0, first + j)));
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_gram = {.op = "channel_gram", .name = "ref", .run = run_gram};

static double mean_of_samples(const att_call *call, int64_t column)
{
    int64_t count = att_shape_count(call->problem->in[0].shape);
    double mean = 0;
    for (int64_t sample = 0; sample < call->samples; sample++)
        mean += ref_in(call, 0, sample * count + column) / (double)call->samples;
    return mean;
}

/* Merged like moments: n C = sum of the samples' grams + n_sample sum (m_s - m)' (m_s - m). An element below the
 * diagonal is computed as its mirror image above, so that the result is exactly symmetric. */
static double merged(const att_call *call, int64_t row, int64_t column)
{
    int64_t columns = ref_dim(call, 0, 1), count = att_shape_count(call->problem->in[0].shape);
    int64_t at = row < column ? (1 + row) * columns + column : (1 + column) * columns + row;
    double rows = (double)ATT_ATTRS(call->problem, moments)->rows, sum = 0;
    double mean_row = mean_of_samples(call, row), mean_column = mean_of_samples(call, column);
    for (int64_t first = 0; first < call->samples * count; first += count)
        sum += ref_in(call, 0, first + at) +
               rows * (ref_in(call, 0, first + row) - mean_row) * (ref_in(call, 0, first + column) - mean_column);
    return sum / (rows * (double)call->samples);
}

static att_status run_merge(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, columns);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_out(call, 0, k, mean_of_samples(call, k));
        for (int64_t j = 0; j < columns; j++)
            ref_out(call, 0, (1 + k) * columns + j, merged(call, k, j));
    }
    return ATT_OK;
}

const att_kernel att_ref_merge_gram = {.op = "merge_gram", .name = "ref", .run = run_merge};
