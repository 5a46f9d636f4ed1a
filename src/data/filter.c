#include "data/filter.h"

#include <math.h>
#include <stddef.h>

/* A fused multiply-add would round weights differently. gcc does not contract under -std=c17. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef struct filter {
    double support;
    double (*weight)(double distance);
} filter;

static double triangle(double distance)
{
    double x = fabs(distance);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic(double distance)
{
    const double a = -0.5;
    double x = fabs(distance);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static const filter filters[] = {
    [ATT_BILINEAR] = {1.0, triangle},   [ATT_BILINEAR_FLOAT] = {1.0, triangle}, [ATT_BICUBIC] = {2.0, cubic},
    [ATT_BICUBIC_FLOAT] = {2.0, cubic}, [ATT_BILINEAR_PLAIN] = {1.0, triangle}, [ATT_NEAREST] = {0.0, NULL}};

static double stretch_of(double scale)
{
    return scale < 1.0 ? 1.0 : scale;
}

/* Sums up steps as Pillow's affine transform does, which affects the rounding. */
static int nearest_pixel(double scale, int in, int x)
{
    double at = scale * 0.5;
    for (int i = 0; i < x; i++)
        at += scale;
    return (int)at < in ? (int)at : in - 1;
}

/* In single precision, as PyTorch computes them. */
static int plain_weights(int in, int out, int x, int *first, double *weights)
{
    const float scale = (float)in / (float)out, at = fmaxf(scale * ((float)x + 0.5f) - 0.5f, 0);
    *first = (int)at < in ? (int)at : in - 1;
    const float share = fminf(at - (float)*first, 1);
    weights[0] = *first + 1 < in ? 1 - share : 1;
    weights[1] = share;
    return *first + 1 < in ? 2 : 1;
}

int att_filter_max_weights(att_interpolation interpolation, int in, int out)
{
    const double stretch = interpolation == ATT_BILINEAR_PLAIN ? 1 : stretch_of((double)in / out);
    return (int)ceil(filters[interpolation].support * stretch) * 2 + 1;
}

int att_filter_weights(att_interpolation interpolation, int in, int out, int x, int *first, double *weights)
{
    const filter *f = &filters[interpolation];
    double scale = (double)in / out, stretch = stretch_of(scale), support = f->support * stretch;
    double center = (x + 0.5) * scale, per_sample = 1.0 / stretch, sum = 0.0;
    if (interpolation == ATT_NEAREST) {
        *first = nearest_pixel(scale, in, x);
        *weights = 1.0;
        return 1;
    }
    if (interpolation == ATT_BILINEAR_PLAIN)
        return plain_weights(in, out, x, first, weights);
    double low = center - support + 0.5, high = center + support + 0.5;
    int begin = low < 0 ? 0 : (int)low, end = high > in ? in : (int)high;
    for (int i = 0; i < end - begin; i++) {
        weights[i] = f->weight((i + begin - center + 0.5) * per_sample);
        sum += weights[i];
    }
    for (int i = 0; i < end - begin && sum != 0.0; i++)
        weights[i] /= sum;
    *first = begin;
    return end - begin;
}
