/* data/resize.h - Pillow's antialiased resize of 8-bit images, to the byte.
 *
 * Two passes, each rounding to 8 bits: across and then down, or the other way round where the height shrinks by more
 * than twice as many pixels as the width, as in Pillow 13. (Before, Pillow always went across first.) The weights are
 * data/filter.h's, rounded to 22 fractional bits.
 */
#ifndef ATT_DATA_RESIZE_H
#define ATT_DATA_RESIZE_H

#include <attscope/data.h>

#include "io/image_codec.h"

/* Takes the part `from` of an image as a picture of its own, resizes it to width x height pixels, and writes the part
 * `window` of that to `out`, [window.height][window.width][channels]. Boxes lie inside what they are boxes of. Only
 * what the window needs is computed. Errors: ERR_MEMORY. */
att_status att_resize(att_context *context, const att_image *image, att_box from, att_interpolation interpolation,
                      int width, int height, att_box window, uint8_t *out);

/* The part of the image that att_resize() reads for such a window: within `from`, and a little more than it needs. */
att_box att_resize_needs(att_box from, att_interpolation interpolation, int width, int height, att_box window);

#endif
