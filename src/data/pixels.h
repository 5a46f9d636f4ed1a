/* data/pixels.h - in-place operations on 8-bit images, byte-identical to Pillow's (ImageOps, ImageEnhance,
 * Image.transform), where no other source is named.
 *
 * An image has 1 or 3 channels. Its grey value is Pillow's "L", (19595 R + 38470 G + 7471 B + 2^15) >> 16. `scratch` is
 * a buffer of as many bytes as the image; its contents need not be set. */
#ifndef ATT_DATA_PIXELS_H
#define ATT_DATA_PIXELS_H

#include <attscope/data.h>

void att_pixels_invert(const att_image *image);
/* Keeps the highest `bits` bits of each value. bits: 0 to 8. */
void att_pixels_posterize(const att_image *image, int bits);
/* Inverts values that are at least `threshold`. */
void att_pixels_solarize(const att_image *image, int threshold);
/* Adds `add` to values below 128; the results are at most 255. */
void att_pixels_solarize_add(const att_image *image, int add);
/* Stretches the values of each channel linearly to 0..255. */
void att_pixels_autocontrast(const att_image *image);
/* Equalizes the histogram of each channel. */
void att_pixels_equalize(const att_image *image);

/* degenerate + factor (image - degenerate), clipped to 0..255 and truncated. The degenerate image is black, the mean
 * grey, each pixel's grey, or the image smoothed by (1 1 1, 1 5 1, 1 1 1) / 13 (border pixels are not smoothed). */
void att_pixels_brightness(const att_image *image, double factor);
void att_pixels_contrast(const att_image *image, double factor);
void att_pixels_color(const att_image *image, double factor);
void att_pixels_sharpness(const att_image *image, double factor, uint8_t *scratch);

/* factor value + add in single precision, clipped to 0..255 and truncated. */
void att_pixels_linear(const att_image *image, double factor, double add);
/* Converts to 8-bit HSV (H: 0..179), changes S to factor S, clipped and truncated, and H to H + turn modulo 180, and
 * converts back. The conversions are OpenCV's. Images with one channel do not change. turn: -180..180. */
void att_pixels_hsv(const att_image *image, double factor, int turn);

/* Pillow's Gaussian blur: three box blurs along the rows, then three along the columns, whose widths together have the
 * variance radius^2 (Gwosdek et al. 2011). Pixels outside the image are those of its border. radius: at least 0. */
void att_pixels_gaussian_blur(const att_image *image, double radius, uint8_t *scratch);

/* timm's fill colour for pixels outside of an image: round(255 mean), half to even, clipped to 0..255. */
void att_pixels_mean_colour(const double mean[3], int channels, uint8_t colour[3]);

/* Moves pixels by an affine map: the result at (x, y) is the input at (a X + b Y + c, d X + e Y + f), with X = x + 1/2,
 * Y = y + 1/2. The value is interpolated from 2 x 2 or 4 x 4 neighbours (Keys' cubic with a = -1) and truncated; it is
 * `fill` if the point is outside of the image. */
typedef struct att_affine {
    double a, b, c, d, e, f;
} att_affine;
void att_pixels_affine(const att_image *image, const att_affine *map, att_interpolation interpolation,
                       const uint8_t fill[3], uint8_t *scratch);
/* The map of Image.rotate(): counter-clockwise about the centre. */
att_affine att_affine_rotation(double degrees, int width, int height);

#endif
