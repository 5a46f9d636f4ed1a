#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/channel_conv.h"

/* Kernels on one vector of channels per sample, which is little work. Parts share the samples, or the elements that are
 * summed over them. */

/* Sum of y[c] x[c + offset] over all c where both exist. */
static float shifted_dot(const float *y, const float *x, int64_t columns, int64_t offset)
{
    int64_t begin = offset < 0 ? -offset : 0, end = offset > 0 ? columns - offset : columns;
    float sum = 0;
    for (int64_t c = begin; c < end; c++)
        sum += y[c] * x[c + offset];
    return sum;
}

static att_status channel_conv_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *weight = call->in[1];
    bool flipped = ATT_ATTRS(problem, channel_conv)->flipped;
    int64_t columns = att_columns(&problem->in[0]), width = att_columns(&problem->in[1]), reach = (width - 1) / 2;
    att_range part = att_part_of(call, problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        const float *x = (const float *)call->in[0] + sample * columns;
        float *y = (float *)call->out[0] + sample * columns;
        memset(y, 0, (size_t)columns * sizeof *y);
        for (int64_t j = 0; j < width; j++) {
            int64_t offset = j - reach, begin = offset < 0 ? -offset : 0, end = offset > 0 ? columns - offset : columns;
            float factor = weight[flipped ? width - 1 - j : j];
            for (int64_t c = begin; c < end; c++)
                y[c] += x[c + offset] * factor;
        }
    }
    return ATT_OK;
}

static att_status channel_conv_weight_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *dy = call->in[0], *x = call->in[1];
    float *dweight = call->out[0];
    int64_t columns = att_columns(&problem->in[0]), width = att_columns(&problem->in[2]), reach = (width - 1) / 2;
    att_range part = att_part_of(call, width, 1);
    for (int64_t j = part.begin; j < part.end; j++)
        for (int64_t sample = 0; sample < problem->group; sample++)
            dweight[j] += shifted_dot(dy + sample * columns, x + sample * columns, columns, j - reach);
    return ATT_OK;
}

static att_status channel_linear_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *x = call->in[0], *weight = call->in[1];
    int64_t channels = problem->in[0].shape.dims[0], width = problem->in[0].shape.dims[1];
    att_range part = att_part_of(call, channels * problem->group, 1);
    for (int64_t k = part.begin; k < part.end; k++) {
        float sum = 0;
        for (int64_t j = 0; j < width; j++)
            sum += x[k * width + j] * weight[k % channels * width + j];
        ((float *)call->out[0])[k] = sum;
    }
    return ATT_OK;
}

static att_status channel_linear_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *dy = call->in[0], *weight = call->in[1];
    int64_t channels = problem->in[1].shape.dims[0], width = problem->in[1].shape.dims[1];
    att_range part = att_part_of(call, channels * problem->group, 1);
    for (int64_t k = part.begin; k < part.end; k++)
        for (int64_t j = 0; j < width; j++)
            ((float *)call->out[0])[k * width + j] = dy[k] * weight[k % channels * width + j];
    return ATT_OK;
}

static att_status channel_linear_weight_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *dy = call->in[0], *x = call->in[1];
    float *dweight = call->out[0];
    int64_t channels = problem->in[1].shape.dims[0], width = problem->in[1].shape.dims[1];
    att_range part = att_part_of(call, channels, 1);
    for (int64_t sample = 0; sample < problem->group; sample++)
        for (int64_t c = part.begin; c < part.end; c++)
            for (int64_t j = 0; j < width; j++) {
                int64_t k = sample * channels + c;
                dweight[c * width + j] += dy[k] * x[k * width + j];
            }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(channel_conv, .run = channel_conv_run);
ATT_PLAIN_KERNEL(channel_conv_weight_grad, .run = channel_conv_weight_grad_run);
ATT_PLAIN_KERNEL(channel_linear, .run = channel_linear_run);
ATT_PLAIN_KERNEL(channel_linear_grad, .run = channel_linear_grad_run);
ATT_PLAIN_KERNEL(channel_linear_weight_grad, .run = channel_linear_weight_grad_run);
