#include "data/pixels.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* values are truncated to bytes, so a different rounding can change a byte */
#endif

static size_t byte_count(const att_image *image)
{
    return (size_t)image->width * (size_t)image->height * (size_t)image->channels;
}

void att_pixels_mean_colour(const double mean[3], int channels, uint8_t colour[3])
{
    for (int c = 0; c < channels; c++)
        colour[c] = (uint8_t)fmin(fmax(rint(255.0 * mean[c]), 0), 255);
}

/* --- value by value ---------------------------------------------------------------------------------------------- */

/* Replaces each value v of channel c by table[c][v]. */
static void map_channels(const att_image *image, uint8_t table[3][256])
{
    size_t count = byte_count(image);
    if (image->channels == 1)
        for (size_t i = 0; i < count; i++)
            image->pixels[i] = table[0][image->pixels[i]];
    else
        for (size_t i = 0; i < count; i += 3)
            for (size_t c = 0; c < 3; c++)
                image->pixels[i + c] = table[c][image->pixels[i + c]];
}

static void map_all(const att_image *image, const uint8_t table[256])
{
    size_t count = byte_count(image);
    for (size_t i = 0; i < count; i++)
        image->pixels[i] = table[image->pixels[i]];
}

void att_pixels_invert(const att_image *image)
{
    att_pixels_solarize(image, 0);
}

void att_pixels_posterize(const att_image *image, int bits)
{
    size_t count = byte_count(image);
    int mask = bits >= 8 ? 0xff : 0xff << (8 - bits);
    for (size_t i = 0; i < count; i++)
        image->pixels[i] = (uint8_t)(image->pixels[i] & mask);
}

void att_pixels_solarize(const att_image *image, int threshold)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)(v < threshold ? v : 255 - v);
    map_all(image, table);
}

void att_pixels_solarize_add(const att_image *image, int add)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)(v >= 128 ? v : v + add > 255 ? 255 : v + add);
    map_all(image, table);
}

/* --- by histograms ----------------------------------------------------------------------------------------------- */

static void count_values(const att_image *image, int64_t histogram[3][256])
{
    size_t count = byte_count(image), channels = (size_t)image->channels;
    memset(histogram, 0, sizeof(int64_t[3][256]));
    for (size_t i = 0; i < count; i += channels)
        for (size_t c = 0; c < channels; c++)
            histogram[c][image->pixels[i + c]]++;
}

static uint8_t clip(double value)
{
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value);
}

static void stretch_table(const int64_t histogram[256], uint8_t table[256])
{
    int low = 0, high = 255;
    while (low < 255 && !histogram[low])
        low++;
    while (high > 0 && !histogram[high])
        high--;
    double scale = high > low ? 255.0 / (high - low) : 1, offset = high > low ? -low * scale : 0;
    for (int v = 0; v < 256; v++)
        table[v] = clip(v * scale + offset);
}

/* Pillow's equalize: the pixels with the highest value are not counted; the others are divided into 255 equal steps,
 * starting at half a step. */
static void equalize_table(const int64_t histogram[256], uint8_t table[256])
{
    int64_t all = 0, last = 0;
    for (int v = 0; v < 256; v++) {
        all += histogram[v];
        last = histogram[v] ? histogram[v] : last;
    }
    int64_t step = (all - last) / 255, sum = step / 2;
    for (int v = 0; v < 256; v++) {
        int64_t level = step ? sum / step : v;
        table[v] = (uint8_t)(level > 255 ? 255 : level);
        sum += histogram[v];
    }
}

static void map_by_histogram(const att_image *image, void (*make)(const int64_t histogram[256], uint8_t table[256]))
{
    int64_t histogram[3][256];
    uint8_t table[3][256];
    count_values(image, histogram);
    for (int c = 0; c < image->channels; c++)
        make(histogram[c], table[c]);
    map_channels(image, table);
}

void att_pixels_autocontrast(const att_image *image)
{
    map_by_histogram(image, stretch_table);
}

void att_pixels_equalize(const att_image *image)
{
    map_by_histogram(image, equalize_table);
}

/* --- blur -------------------------------------------------------------------------------------------------------- */

/* A box whose width 2 radius + 1 is not whole: `inner` is the weight of the 2 whole + 1 pixels in the middle, `outer`
 * of the pixel at each side, both times 2^24. */
typedef struct box_filter {
    int whole;
    uint32_t inner, outer;
} box_filter;

enum { BLUR_PASSES = 3, BLUR_BITS = 24 };

/* Single precision, as in Pillow. */
static box_filter blur_filter(double radius)
{
    float variance = (float)radius * (float)radius / BLUR_PASSES;
    float length = (float)sqrt(12.0 * (double)variance + 1.0), whole = (float)floor(((double)length - 1.0) / 2.0);
    float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
    part /= 6 * (variance - (whole + 1) * (whole + 1));
    box_filter filter = {.whole = (int)(whole + part)};
    filter.inner = (uint32_t)((float)(1u << BLUR_BITS) / ((whole + part) * 2 + 1));
    filter.outer = ((1u << BLUR_BITS) - (uint32_t)(2 * filter.whole + 1) * filter.inner) / 2;
    return filter;
}

/* The pixels of a row or column, `stride` bytes apart. */
typedef struct pixel_line {
    uint8_t *first;
    size_t stride;
    int count;
} pixel_line;

static uint32_t pixel_at(const uint8_t *line, int count, int at)
{
    return line[at < 0 ? 0 : at >= count ? count - 1 : at];
}

/* scratch: a copy of the line. */
static void blur_line(const pixel_line *line, const box_filter *filter, uint8_t *scratch)
{
    const int count = line->count, whole = filter->whole;
    uint32_t sum = 0;
    for (int i = 0; i < count; i++)
        scratch[i] = line->first[(size_t)i * line->stride];
    for (int i = -whole; i <= whole; i++)
        sum += pixel_at(scratch, count, i);
    for (int i = 0; i < count; i++) {
        uint32_t sides = pixel_at(scratch, count, i - whole - 1) + pixel_at(scratch, count, i + whole + 1);
        line->first[(size_t)i * line->stride] =
            (uint8_t)((sum * filter->inner + sides * filter->outer + (1u << (BLUR_BITS - 1))) >> BLUR_BITS);
        sum += pixel_at(scratch, count, i + whole + 1) - pixel_at(scratch, count, i - whole);
    }
}

void att_pixels_gaussian_blur(const att_image *image, double radius, uint8_t *scratch)
{
    const size_t channels = (size_t)image->channels, stride = (size_t)image->width * channels;
    const box_filter filter = blur_filter(radius);
    if (radius <= 0)
        return;
    for (int y = 0; y < image->height; y++)
        for (size_t c = 0; c < channels; c++)
            for (int pass = 0; pass < BLUR_PASSES; pass++)
                blur_line(&(pixel_line){image->pixels + (size_t)y * stride + c, channels, image->width}, &filter,
                          scratch);
    for (size_t column = 0; column < stride; column++)
        for (int pass = 0; pass < BLUR_PASSES; pass++)
            blur_line(&(pixel_line){image->pixels + column, stride, image->height}, &filter, scratch);
}

/* --- blending ---------------------------------------------------------------------------------------------------- */

static uint8_t blend(int degenerate, int value, float factor)
{
    float blended = (float)degenerate + factor * (float)(value - degenerate);
    return (uint8_t)(blended <= 0 ? 0 : blended >= 255 ? 255 : blended);
}

static int grey_of(const uint8_t rgb[3])
{
    return (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16;
}

/* Blends every value with the constant `degenerate`. */
static void blend_with_value(const att_image *image, int degenerate, double factor)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++)
        table[v] = blend(degenerate, v, (float)factor);
    map_all(image, table);
}

void att_pixels_brightness(const att_image *image, double factor)
{
    blend_with_value(image, 0, factor);
}

static int mean_grey(const att_image *image)
{
    size_t count = byte_count(image), channels = (size_t)image->channels;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i += channels)
        sum += channels == 1 ? image->pixels[i] : grey_of(image->pixels + i);
    size_t pixels = count / channels;
    return (int)((double)sum / (double)pixels + 0.5);
}

void att_pixels_contrast(const att_image *image, double factor)
{
    blend_with_value(image, mean_grey(image), factor);
}

void att_pixels_color(const att_image *image, double factor)
{
    size_t count = byte_count(image);
    if (image->channels == 1)
        return;
    for (size_t i = 0; i < count; i += 3) {
        int grey = grey_of(image->pixels + i);
        for (size_t c = 0; c < 3; c++)
            image->pixels[i + c] = blend(grey, image->pixels[i + c], (float)factor);
    }
}

void att_pixels_linear(const att_image *image, double factor, double add)
{
    uint8_t table[256];
    for (int v = 0; v < 256; v++) {
        float value = (float)v * (float)factor + (float)add;
        table[v] = (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value);
    }
    map_all(image, table);
}

/* --- HSV, as in OpenCV's color_hsv.simd.hpp for 8-bit pixels ------------------------------------------------------ */

enum { HUES = 180, HSV_BITS = 12 };

/* round(2^12 * 255 / value) and round(2^12 * 30 / value), half to even; 0 for 0. */
typedef struct hsv_tables {
    int saturation[256], hue[256];
} hsv_tables;

static void fill_tables(hsv_tables *tables)
{
    *tables = (hsv_tables){{0}, {0}};
    for (int value = 1; value < 256; value++) {
        tables->saturation[value] = (int)rint(255.0 * (1 << HSV_BITS) / value);
        tables->hue[value] = (int)rint(HUES / 6.0 * (1 << HSV_BITS) / value);
    }
}

static int fixed_product(int value, int factor)
{
    return (value * factor + (1 << (HSV_BITS - 1))) >> HSV_BITS;
}

static void to_hsv(const hsv_tables *tables, const uint8_t rgb[3], int hsv[3])
{
    int r = rgb[0], g = rgb[1], b = rgb[2];
    int most = r > g ? r : g, least = r > g ? g : r;
    most = b > most ? b : most;
    least = b < least ? b : least;
    int range = most - least;
    int sixth = most == r ? g - b : most == g ? b - r + 2 * range : r - g + 4 * range;
    int hue = fixed_product(sixth, tables->hue[range]);
    hsv[0] = hue < 0 ? hue + HUES : hue;
    hsv[1] = fixed_product(range, tables->saturation[most]);
    hsv[2] = most;
}

/* OpenCV's vector code, which truncates, and rounds 1 - a b once. The product of two floats is exact in double. */
static float one_minus(float a, float b)
{
    return (float)(1 - (double)a * (double)b);
}

static void from_hsv(const int hsv[3], uint8_t rgb[3])
{
    static const uint8_t sectors[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
    float h = (float)hsv[0] * (6.0f / HUES), s = (float)hsv[1] * (1.0f / 255), v = (float)hsv[2] * (1.0f / 255);
    int sector = (int)h;
    h -= (float)sector;
    float values[4] = {v, v * (1 - s), v * one_minus(s, h), v * one_minus(s, 1 - h)};
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)(values[sectors[sector][c]] * 255);
}

void att_pixels_hsv(const att_image *image, double factor, int turn)
{
    size_t count = byte_count(image);
    hsv_tables tables;
    fill_tables(&tables);
    for (size_t i = 0; i < count && image->channels == 3; i += 3) {
        int hsv[3];
        to_hsv(&tables, image->pixels + i, hsv);
        float saturation = (float)hsv[1] * (float)factor;
        hsv[0] = (hsv[0] + turn + HUES) % HUES;
        hsv[1] = saturation >= 255 ? 255 : (int)saturation;
        from_hsv(hsv, image->pixels + i);
    }
}

/* The weighted 3 x 3 sum divided by 13, rounded to nearest; ties cannot occur. */
static int smooth_at(const uint8_t *at, size_t stride, size_t channels)
{
    int sum = 4 * at[0];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += at[dy * (ptrdiff_t)stride + dx * (ptrdiff_t)channels];
    return (2 * sum + 13) / 26;
}

void att_pixels_sharpness(const att_image *image, double factor, uint8_t *scratch)
{
    size_t channels = (size_t)image->channels, stride = (size_t)image->width * channels;
    memcpy(scratch, image->pixels, byte_count(image));
    for (int y = 1; y < image->height - 1; y++)
        for (size_t x = channels; x + channels < stride; x++) {
            const uint8_t *at = scratch + (size_t)y * stride + x;
            image->pixels[(size_t)y * stride + x] = blend(smooth_at(at, stride, channels), *at, (float)factor);
        }
}

/* --- affine maps ------------------------------------------------------------------------------------------------- */

typedef struct source_point {
    int x, y;
    double dx, dy; /* offset from the centre of pixel (x, y) */
} source_point;

static int clamp(int value, int size)
{
    return value < 0 ? 0 : value < size ? value : size - 1;
}

static double interpolate_linear(const uint8_t *row, const int x[2], double d)
{
    return row[x[0]] + (row[x[1]] - row[x[0]]) * d;
}

/* Interpolates within two rows, then between the two results. */
static double bilinear_at(const att_image *image, const uint8_t *from, const source_point *at, int c)
{
    int channels = image->channels, x[2];
    double rows[2];
    for (int i = 0; i < 2; i++)
        x[i] = clamp(at->x + i, image->width) * channels + c;
    for (int i = 0; i < 2; i++)
        rows[i] = interpolate_linear(from + (size_t)clamp(at->y + i, image->height) * (size_t)(image->width * channels),
                                     x, at->dx);
    return rows[0] + (rows[1] - rows[0]) * at->dy;
}

static double interpolate_cubic(const double v[4], double d)
{
    return v[1] + d * (-v[0] + v[2] + d * (2 * (v[0] - v[1]) + v[2] - v[3] + d * (-v[0] + v[1] - v[2] + v[3])));
}

static double bicubic_at(const att_image *image, const uint8_t *from, const source_point *at, int c)
{
    int channels = image->channels;
    double rows[4];
    for (int i = 0; i < 4; i++) {
        const uint8_t *row = from + (size_t)clamp(at->y - 1 + i, image->height) * (size_t)(image->width * channels);
        double values[4];
        for (int k = 0; k < 4; k++)
            values[k] = row[clamp(at->x - 1 + k, image->width) * channels + c];
        rows[i] = interpolate_cubic(values, at->dx);
    }
    return interpolate_cubic(rows, at->dy);
}

/* Returns false if the source point is outside of the image. */
static bool find_source(const att_image *image, const att_affine *map, int x, int y, source_point *at)
{
    double in_x = x + 0.5, in_y = y + 0.5;
    double from_x = map->a * in_x + map->b * in_y + map->c, from_y = map->d * in_x + map->e * in_y + map->f;
    if (!(from_x >= 0 && from_x < image->width && from_y >= 0 && from_y < image->height))
        return false;
    at->x = (int)floor(from_x - 0.5);
    at->y = (int)floor(from_y - 0.5);
    at->dx = from_x - 0.5 - at->x;
    at->dy = from_y - 0.5 - at->y;
    return true;
}

void att_pixels_affine(const att_image *image, const att_affine *map, att_interpolation interpolation,
                       const uint8_t fill[3], uint8_t *scratch)
{
    memcpy(scratch, image->pixels, byte_count(image));
    uint8_t *to = image->pixels;
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++, to += image->channels) {
            source_point at = {0};
            bool inside = find_source(image, map, x, y, &at);
            for (int c = 0; c < image->channels; c++)
                to[c] = !inside                         ? fill[c]
                        : interpolation == ATT_BILINEAR ? clip(bilinear_at(image, scratch, &at, c))
                                                        : clip(bicubic_at(image, scratch, &at, c));
        }
}

/* Rounds to 15 decimals, as Pillow does. */
static double rounded(double value)
{
    return rint(value * 1e15) / 1e15;
}

att_affine att_affine_rotation(double degrees, int width, int height)
{
    const double pi = 3.14159265358979323846;
    double angle = -(degrees * (pi / 180)), x = width / 2.0, y = height / 2.0;
    double cosine = rounded(cos(angle)), sine = rounded(sin(angle)), minus_sine = rounded(-sin(angle));
    return (att_affine){cosine,     sine,   cosine * -x + sine * -y + x,
                        minus_sine, cosine, minus_sine * -x + cosine * -y + y};
}
