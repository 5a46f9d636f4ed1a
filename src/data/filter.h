/* data/filter.h - the weights of an antialiased resize, the same as Pillow's and PyTorch's (antialias=True).
 *
 * A line of `in` samples is resized to `out` samples; the scale is s = in / out. Output sample x has its centre at c =
 * (x + 1/2) s. It is the weighted sum of the input samples i within c - r .. c + r, clipped to the line, where r =
 * support * max(s, 1). The weights f((i + 1/2 - c) / max(s, 1)) are scaled to the sum 1. f is the triangle with support
 * 1, or Keys' cubic with a = -1/2 and support 2. ATT_BILINEAR_PLAIN takes s = 1 for max(s, 1): no antialiasing. */
#ifndef ATT_DATA_FILTER_H
#define ATT_DATA_FILTER_H

#include <attscope/data.h>

/* The maximum number of weights of an output sample. */
int att_filter_max_weights(att_interpolation interpolation, int in, int out);
/* Computes the weights of output sample x; weights[0] belongs to input sample *first. Returns the number of weights. */
int att_filter_weights(att_interpolation interpolation, int in, int out, int x, int *first, double *weights);

#endif
