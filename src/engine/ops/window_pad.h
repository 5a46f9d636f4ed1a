/* ops/window_pad.h - attributes of window_pad and window_crop, and where tokens lie in the padded grid. */
#ifndef ATT_OPS_WINDOW_PAD_H
#define ATT_OPS_WINDOW_PAD_H

#include <stdint.h>

typedef struct att_window_pad_attrs {
    int32_t grid_h, grid_w; /* before padding */
    int32_t window_h, window_w, shift_h, shift_w;
} att_window_pad_attrs;

/* The smallest multiple of `window` that is no smaller than `side`. */
static inline int64_t att_window_padded(int64_t side, int64_t window)
{
    return (side + window - 1) / window * window;
}

static inline int64_t att_window_modulo(int64_t a, int64_t n)
{
    return (a % n + n) % n;
}

/* On one axis: the place in the padded grid of place `at`. Rolled by `shift`, both are at the same place. */
static inline int64_t att_window_place(int64_t at, int64_t side, int64_t padded, int64_t shift)
{
    return (att_window_modulo(at - shift, side) + shift) % padded;
}

/* The inverse of att_window_place(); -1 in the padding. */
static inline int64_t att_window_source(int64_t at, int64_t side, int64_t padded, int64_t shift)
{
    int64_t rolled = att_window_modulo(at - shift, padded);
    return rolled < side ? (rolled + shift) % side : -1;
}

/* The token of the padded grid that holds a token, and the inverse, -1 in the padding. */
static inline int64_t att_window_pad_place(const att_window_pad_attrs *a, int64_t token)
{
    int64_t height = att_window_padded(a->grid_h, a->window_h), width = att_window_padded(a->grid_w, a->window_w);
    return att_window_place(token / a->grid_w, a->grid_h, height, a->shift_h) * width +
           att_window_place(token % a->grid_w, a->grid_w, width, a->shift_w);
}

static inline int64_t att_window_pad_source(const att_window_pad_attrs *a, int64_t token)
{
    int64_t height = att_window_padded(a->grid_h, a->window_h), width = att_window_padded(a->grid_w, a->window_w);
    int64_t row = att_window_source(token / width, a->grid_h, height, a->shift_h);
    int64_t column = att_window_source(token % width, a->grid_w, width, a->shift_w);
    return row < 0 || column < 0 ? -1 : row * a->grid_w + column;
}

#endif
