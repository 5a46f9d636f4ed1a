#include "data/resize.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* a fused multiply-add would round weights differently; gcc has none under -std=c17 */
#endif

enum { FRACTION_BITS = 22, HALF = 1 << (FRACTION_BITS - 1), STRIP = 512 };

/* What each output pixel of a line is made of: `length` input pixels from `first` on. */
typedef struct taps {
    int room; /* weights per output pixel */
    int *first, *length;
    int32_t *weights;
} taps;

typedef struct resize_filter {
    double support;
    double (*weight)(double distance);
} resize_filter;

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

static const resize_filter filters[] = {[ATT_BILINEAR] = {1.0, triangle}, [ATT_BICUBIC] = {2.0, cubic}};

static int32_t to_fixed(double weight)
{
    double scaled = weight * (1 << FRACTION_BITS);
    return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/* The taps of output pixel x; `exact` has room for all of its weights. */
static void fill_taps(const resize_filter *filter, int in, double scale, int x, double *exact, int *first, int *length,
                      int32_t *weights)
{
    double stretch = scale < 1.0 ? 1.0 : scale, support = filter->support * stretch;
    double center = (x + 0.5) * scale, per_pixel = 1.0 / stretch, sum = 0.0;
    double low = center - support + 0.5, high = center + support + 0.5;
    int begin = low < 0 ? 0 : (int)low, end = high > in ? in : (int)high;
    for (int i = 0; i < end - begin; i++) {
        exact[i] = filter->weight((i + begin - center + 0.5) * per_pixel);
        sum += exact[i];
    }
    for (int i = 0; i < end - begin; i++)
        weights[i] = to_fixed(sum != 0.0 ? exact[i] / sum : exact[i]);
    *first = begin;
    *length = end - begin;
}

static void free_taps(att_context *context, taps *made)
{
    att_free(context, made->first);
    att_free(context, made->length);
    att_free(context, made->weights);
}

/* Taps of output pixels start..start+count-1 of a line resized from `in` to `out` pixels. */
static att_status make_taps(att_context *context, att_interpolation interpolation, int in, int out, int start,
                            int count, taps *made)
{
    const resize_filter *filter = &filters[interpolation];
    double scale = (double)in / out;
    int room = (int)ceil(filter->support * (scale < 1.0 ? 1.0 : scale)) * 2 + 1;
    size_t weights = (size_t)room * (size_t)count;
    double *exact = att_allocate_array(context, (size_t)room, sizeof *exact);
    *made = (taps){.room = room,
                   .first = att_allocate_array(context, (size_t)count, sizeof *made->first),
                   .length = att_allocate_array(context, (size_t)count, sizeof *made->length),
                   .weights = att_allocate_array(context, weights, sizeof *made->weights)};
    att_status status = ATT_OK;
    if (!exact || !made->first || !made->length || !made->weights)
        status = att_fail_memory(context, weights * sizeof *made->weights, "the weights of a resize");
    for (int i = 0; status == ATT_OK && i < count; i++)
        fill_taps(filter, in, scale, start + i, exact, &made->first[i], &made->length[i],
                  made->weights + (size_t)i * (size_t)room);
    att_free(context, exact);
    if (status != ATT_OK)
        free_taps(context, made);
    return status;
}

static uint8_t round_sum(int32_t sum)
{
    int value = sum >> FRACTION_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void across_grey(const uint8_t *row, const taps *columns, int count, uint8_t *out)
{
    for (int x = 0; x < count; x++) {
        const int32_t *weights = columns->weights + (size_t)x * (size_t)columns->room;
        const uint8_t *from = row + columns->first[x];
        int32_t sum = HALF;
        for (int i = 0; i < columns->length[x]; i++)
            sum += from[i] * weights[i];
        out[x] = round_sum(sum);
    }
}

static void across_rgb(const uint8_t *row, const taps *columns, int count, uint8_t *out)
{
    for (int x = 0; x < count; x++) {
        const int32_t *weights = columns->weights + (size_t)x * (size_t)columns->room;
        const uint8_t *from = row + (size_t)columns->first[x] * 3;
        int32_t red = HALF, green = HALF, blue = HALF;
        for (int i = 0; i < columns->length[x]; i++) {
            red += from[3 * i] * weights[i];
            green += from[3 * i + 1] * weights[i];
            blue += from[3 * i + 2] * weights[i];
        }
        out[3 * x] = round_sum(red);
        out[3 * x + 1] = round_sum(green);
        out[3 * x + 2] = round_sum(blue);
    }
}

/* One output row: `length` rows of `stride` bytes from `rows` on, weighted; a strip of sums at a time stays in cache.
 */
static void down(const uint8_t *rows, size_t stride, const int32_t *weights, int length, uint8_t *out)
{
    int32_t sums[STRIP];
    for (size_t begin = 0; begin < stride; begin += STRIP) {
        size_t width = stride - begin < STRIP ? stride - begin : STRIP;
        for (size_t i = 0; i < width; i++)
            sums[i] = HALF;
        for (int k = 0; k < length; k++) {
            const uint8_t *row = rows + (size_t)k * stride + begin;
            int32_t weight = weights[k];
            for (size_t i = 0; i < width; i++)
                sums[i] += row[i] * weight;
        }
        for (size_t i = 0; i < width; i++)
            out[begin + i] = round_sum(sums[i]);
    }
}

static const uint8_t *pixel_at(const att_image *image, int x, int y)
{
    return image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
}

static void copy_box(const att_image *image, int x, int y, att_box window, uint8_t *out)
{
    size_t stride = (size_t)window.width * (size_t)image->channels;
    for (int row = 0; row < window.height; row++)
        memcpy(out + (size_t)row * stride, pixel_at(image, x + window.x, y + window.y + row), stride);
}

static att_status resize_passes(att_context *context, const att_image *image, att_box from, const taps *columns,
                                const taps *rows, att_box window, uint8_t *out)
{
    size_t stride = (size_t)window.width * (size_t)image->channels;
    int top = rows->first[0], bottom = rows->first[window.height - 1] + rows->length[window.height - 1];
    uint8_t *between = att_reallocate(context, NULL, stride * (size_t)(bottom - top));
    if (!between)
        return att_fail_memory(context, stride * (size_t)(bottom - top), "a resize");
    for (int y = top; y < bottom; y++) {
        const uint8_t *row = pixel_at(image, from.x, from.y + y);
        uint8_t *to = between + (size_t)(y - top) * stride;
        if (image->channels == 1)
            across_grey(row, columns, window.width, to);
        else
            across_rgb(row, columns, window.width, to);
    }
    for (int y = 0; y < window.height; y++)
        down(between + (size_t)(rows->first[y] - top) * stride, stride, rows->weights + (size_t)y * (size_t)rows->room,
             rows->length[y], out + (size_t)y * stride);
    att_free(context, between);
    return ATT_OK;
}

att_status att_resize(att_context *context, const att_image *image, att_box from, att_interpolation interpolation,
                      int width, int height, att_box window, uint8_t *out)
{
    if (width == from.width && height == from.height) {
        copy_box(image, from.x, from.y, window, out);
        return ATT_OK;
    }
    taps columns, rows;
    ATT_TRY(make_taps(context, interpolation, from.width, width, window.x, window.width, &columns));
    att_status status = make_taps(context, interpolation, from.height, height, window.y, window.height, &rows);
    if (status == ATT_OK) {
        status = resize_passes(context, image, from, &columns, &rows, window, out);
        free_taps(context, &rows);
    }
    free_taps(context, &columns);
    return status;
}
