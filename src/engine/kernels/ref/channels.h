/* kernels/ref/channels.h - helpers for kernels on the channels of a sample. */
#ifndef ATT_KERNELS_REF_CHANNELS_H
#define ATT_KERNELS_REF_CHANNELS_H

#include "engine/kernels/ref/call.h"
#include "engine/ops/activation.h"

/* max(x, 0); NaN stays NaN. */
static inline double ref_relu(double x)
{
    return x < 0 ? 0 : x;
}

/* The larger number; NaN if either is NaN. */
static inline double ref_larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

/* activation: none or ReLU. */
static inline double ref_act(att_activation activation, double x)
{
    return activation == ATT_ACT_RELU ? ref_relu(x) : x;
}

/* A channel of one sample of input i: elements begin, begin + step, ... below end. */
typedef struct ref_channel {
    int64_t begin, end, step;
} ref_channel;

/* number: sample times channels plus channel, as in a sample value of shape [C]. */
static inline ref_channel ref_channel_of(const att_call *call, int i, int64_t number)
{
    int64_t columns = ref_dim(call, i, -1), all = att_shape_count(call->problem->in[i].shape);
    int64_t start = number / columns * all;
    return (ref_channel){start + number % columns, start + all, columns};
}

static inline int64_t ref_channel_rows(ref_channel channel)
{
    return (channel.end - channel.begin + channel.step - 1) / channel.step;
}

static inline double ref_channel_mean(const att_call *call, int i, ref_channel channel)
{
    double sum = 0;
    for (int64_t e = channel.begin; e < channel.end; e += channel.step)
        sum += ref_in(call, i, e);
    return sum / (double)ref_channel_rows(channel);
}

/* The sum of (x - mean)^2. */
static inline double ref_channel_squares(const att_call *call, int i, ref_channel channel, double mean)
{
    double sum = 0;
    for (int64_t e = channel.begin; e < channel.end; e += channel.step)
        sum += (ref_in(call, i, e) - mean) * (ref_in(call, i, e) - mean);
    return sum;
}

#endif
