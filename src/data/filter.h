/* data/filter.h - the weights of an antialiased resize, as Pillow and PyTorch (antialias=True) have them.
 *
 * Output sample x of a line of `in` to `out` samples has its centre at c = (x + 1/2) s with s = in / out, and is the
 * weighted sum of the input samples i within c -+ r, where r = support * max(s, 1), clipped to the line; weights
 * f((i + 1/2 - c) / max(s, 1)), scaled to the sum 1. f: the triangle of support 1, or Keys' cubic with a = -1/2 of
 * support 2.
 */
#ifndef ATT_DATA_FILTER_H
#define ATT_DATA_FILTER_H

#include <attscope/data.h>

/* The most weights that one sample has. */
int att_filter_room(att_interpolation interpolation, int in, int out);
/* The weights of output sample x, the first of them for input sample *first; returns how many there are. */
int att_filter_weights(att_interpolation interpolation, int in, int out, int x, int *first, double *weights);

#endif
