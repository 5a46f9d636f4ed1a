/* data/resize.h - Pillow's antialiased resize of 8-bit images; the results are byte-identical. Interpolations in floats
 * compute the same sums without rounding, as torchvision's resize of float tensors with antialias=True.
 *
 * There are two passes, each of which rounds to 8 bits: horizontal, then vertical. As in Pillow 13, the vertical pass
 * comes first if the height shrinks by more than twice as many pixels as the width. (Earlier versions of Pillow always
 * began with the horizontal pass.) The weights are those of data/filter.h, rounded to 22 fractional bits. */
#ifndef ATT_DATA_RESIZE_H
#define ATT_DATA_RESIZE_H

#include <attscope/data.h>

#include "base/io/image_codec.h"

/* Crops the box `from` out of an image, resizes it to width x height pixels, and writes the part `window` of the result
 * to `out`, [window.height][window.width][channels]: bytes, or floats (0..255; bicubic sums can lie outside) if
 * att_resizes_in_floats(). Pixels outside of `from` have no influence. `from` lies within the image, `window` within
 * width x height. Only the window is computed. Errors: ERR_MEMORY. */
att_status att_resize(att_context *context, const att_image *image, att_box from, att_interpolation interpolation,
                      int width, int height, att_box window, void *out);
bool att_resizes_in_floats(att_interpolation interpolation);

/* The part of the image that att_resize() reads for a window. It lies within `from` and can be slightly too large. */
att_box att_resize_needs(att_box from, att_interpolation interpolation, int width, int height, att_box window);

#endif
