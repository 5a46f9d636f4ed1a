/* data/pixels.h - changes of 8-bit pictures, in place, to Pillow's bytes (ImageOps, ImageEnhance, Image.transform).
 *
 * A picture has 1 or 3 channels; its grey value is Pillow's "L", (19595 R + 38470 G + 7471 B + 2^15) >> 16. Where
 * `scratch` is asked for it has as many bytes as the picture, of no meaning before or after.
 */
#ifndef ATT_DATA_PIXELS_H
#define ATT_DATA_PIXELS_H

#include <attscope/data.h>

void att_pixels_invert(const att_image *image);
/* Keeps the highest `bits` of each value, 0 to 8. */
void att_pixels_posterize(const att_image *image, int bits);
/* Inverts values from `threshold` on. */
void att_pixels_solarize(const att_image *image, int threshold);
/* Adds to values below 128, up to 255. */
void att_pixels_solarize_add(const att_image *image, int add);
/* Stretches each channel's values to 0..255. */
void att_pixels_autocontrast(const att_image *image);
/* Evens out each channel's histogram. */
void att_pixels_equalize(const att_image *image);

/* degenerate + factor (picture - degenerate), cut to 0..255, the fraction dropped; degenerate is black, the mean grey,
 * each pixel's grey, or the picture smoothed by (1 1 1, 1 5 1, 1 1 1) / 13 with its outermost pixels as they are. */
void att_pixels_brightness(const att_image *image, double factor);
void att_pixels_contrast(const att_image *image, double factor);
void att_pixels_color(const att_image *image, double factor);
void att_pixels_sharpness(const att_image *image, double factor, uint8_t *scratch);

/* The colour with which timm fills what lies outside a picture: round(255 mean), half to even, cut to 0..255. */
void att_pixels_mean_colour(const double mean[3], int channels, uint8_t colour[3]);

/* The pixel at (x, y) becomes the one at (a X + b Y + c, d X + e Y + f) of the picture, X = x + 1/2, Y = y + 1/2, from
 * its 2 x 2 or 4 x 4 neighbours (Keys' cubic with a = -1), the fraction dropped; outside the picture it becomes `fill`.
 */
typedef struct att_affine {
    double a, b, c, d, e, f;
} att_affine;
void att_pixels_affine(const att_image *image, const att_affine *map, att_interpolation interpolation,
                       const uint8_t fill[3], uint8_t *scratch);
/* The map of Image.rotate(): about the middle, counter-clockwise. */
att_affine att_affine_rotation(double degrees, int width, int height);

#endif
