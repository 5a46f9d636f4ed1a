#include "data/resize.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "data/filter.h"
#include "data/tiered.h"

enum { LANES = ATT_RESIZE_LANES };

static int32_t to_fixed(double weight)
{
    double scaled = weight * (1 << ATT_TAPS_FRACTION);
    return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

static void free_taps(att_context *context, att_taps *taps)
{
    att_free(context, taps->first);
    att_free(context, taps->length);
    att_free(context, taps->weights);
    att_free(context, taps->floats);
}

/* Computes the taps of output pixels start..start+count-1 of a line that is resized from `in` to `out` pixels. */
static att_status make_taps(att_context *context, att_interpolation interpolation, int in, int out, int start,
                            int count, att_taps *taps)
{
    int room = att_filter_max_weights(interpolation, in, out);
    size_t weights = (size_t)room * (size_t)count;
    const bool floats = att_resizes_in_floats(interpolation);
    double *exact = att_allocate_array(context, (size_t)room, sizeof *exact);
    void *all = att_allocate_array(context, weights, floats ? sizeof *taps->floats : sizeof *taps->weights);
    *taps = (att_taps){.room = room,
                       .first = att_allocate_array(context, (size_t)count, sizeof *taps->first),
                       .length = att_allocate_array(context, (size_t)count, sizeof *taps->length),
                       .weights = floats ? NULL : all,
                       .floats = floats ? all : NULL};
    att_status status = ATT_OK;
    if (!exact || !taps->first || !taps->length || !all)
        status = att_fail_memory(context, weights * sizeof *taps->weights, "the weights of a resize");
    for (int i = 0; status == ATT_OK && i < count; i++) {
        const size_t at = (size_t)i * (size_t)room;
        taps->length[i] = att_filter_weights(interpolation, in, out, start + i, &taps->first[i], exact);
        for (size_t k = 0; k < (size_t)taps->length[i]; k++)
            if (floats)
                taps->floats[at + k] = (float)exact[k];
            else
                taps->weights[at + k] = to_fixed(exact[k]);
    }
    att_free(context, exact);
    if (status != ATT_OK)
        free_taps(context, taps);
    return status;
}

/* --- interleaved lines --------------------------------------------------------------------------------------------
 *
 * The horizontal pass processes LANES bytes with the same weights: the bytes at the same x of several lines. A pixel
 * with three channels takes four lanes. */

static int lane_bytes(int channels)
{
    return channels == 1 ? 1 : 4;
}

/* Copies `count` pixels, `from_step` and `to_step` bytes apart. For three channels, four bytes are copied per pixel,
 * except for the last; the next pixel overwrites the fourth byte. */
static void copy_pixels(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step, int channels, int count)
{
    if (channels == 1) {
        for (int i = 0; i < count; i++)
            to[(size_t)i * to_step] = from[(size_t)i * from_step];
        return;
    }
    for (int i = 0; i < count - 1; i++)
        memcpy(to + (size_t)i * to_step, from + (size_t)i * from_step, 4);
    memcpy(to + (size_t)(count - 1) * to_step, from + (size_t)(count - 1) * from_step, 3);
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

static const att_resize_functions *functions_of(const att_context *context)
{
#define ADDRESS(name, tier, features) &name##_##tier,
    static const att_resize_functions *const functions[] = {ATT_EACH_TIER(ADDRESS, att_resize)};
#undef ADDRESS
    return functions[att_context_tier_index(context)];
}

/* A resize in progress. It reads columns left..right-1 and rows top..bottom-1 of the box `from`. */
typedef struct resize_job {
    const att_resize_functions *functions;
    const att_image *image;
    att_box from, window;
    att_taps columns, rows;
    int left, right, top, bottom;
    uint8_t *lines;        /* [right - left][LANES] */
    uint8_t *out;          /* [window.width][LANES] */
    uint8_t *intermediate; /* result of the first pass */
    float *floats;         /* the same in floats */
} resize_job;

/* `count` rows of pixels, `stride` bytes apart. */
typedef struct rows_of_pixels {
    const uint8_t *pixels;
    size_t stride;
    int count;
} rows_of_pixels;

/* Horizontal pass over as many rows from y on as fit into the lanes: columns left..right-1 become the window's columns.
 * Returns the number of rows. */
static int pass_horizontal_rows(const resize_job *r, const rows_of_pixels *from, int y, uint8_t *to)
{
    int channels = r->image->channels, bytes = lane_bytes(channels), width = r->right - r->left;
    int count = from->count - y < LANES / bytes ? from->count - y : LANES / bytes;
    size_t stride = (size_t)r->window.width * (size_t)channels;
    for (int i = 0; i < count; i++)
        copy_pixels(from->pixels + (size_t)(y + i) * from->stride, (size_t)channels, r->lines + i * bytes, LANES,
                    channels, width);
    r->functions->horizontal(r->lines, r->left, &r->columns, r->window.width, r->out);
    for (int i = 0; i < count; i++)
        copy_pixels(r->out + i * bytes, LANES, to + (size_t)(y + i) * stride, (size_t)channels, channels,
                    r->window.width);
    return count;
}

static void pass_horizontal(const resize_job *r, const rows_of_pixels *from, uint8_t *to)
{
    for (int y = 0; y < from->count;)
        y += pass_horizontal_rows(r, from, y, to);
}

/* Vertical pass: rows top..bottom-1, of `width` pixels each, become the window's rows. */
static void pass_vertical(const resize_job *r, const rows_of_pixels *from, int width, uint8_t *to)
{
    size_t count = (size_t)width * (size_t)r->image->channels;
    for (int y = 0; y < r->window.height; y++)
        r->functions->vertical(from->pixels + (size_t)(r->rows.first[y] - r->top) * from->stride, from->stride, count,
                               r->rows.weights + (size_t)y * (size_t)r->rows.room, r->rows.length[y],
                               to + (size_t)y * count);
}

static void run_passes(const resize_job *r, bool vertical_first, uint8_t *out)
{
    size_t channels = (size_t)r->image->channels;
    int width = r->right - r->left;
    rows_of_pixels image = {pixel_at(r->image, r->from.x + r->left, r->from.y + r->top),
                            (size_t)r->image->width * channels, r->bottom - r->top};
    if (vertical_first) {
        rows_of_pixels intermediate = {r->intermediate, (size_t)width * channels, r->window.height};
        pass_vertical(r, &image, width, r->intermediate);
        pass_horizontal(r, &intermediate, out);
    } else {
        rows_of_pixels intermediate = {r->intermediate, (size_t)r->window.width * channels, r->bottom - r->top};
        pass_horizontal(r, &image, r->intermediate);
        pass_vertical(r, &intermediate, r->window.width, out);
    }
}

/* --- in floats ---------------------------------------------------------------------------------------------------- */

/* One row of the image: the sums over its columns. */
static void sum_columns(const resize_job *r, const uint8_t *row, float *out)
{
    const int channels = r->image->channels;
    for (int x = 0; x < r->window.width; x++)
        for (int c = 0; c < channels; c++) {
            const float *weights = r->columns.floats + (size_t)x * (size_t)r->columns.room;
            const uint8_t *from = row + (size_t)r->columns.first[x] * (size_t)channels + c;
            float sum = 0;
            for (int k = 0; k < r->columns.length[x]; k++)
                sum += weights[k] * (float)from[k * channels];
            *out++ = sum;
        }
}

/* One row of the result: the sums over `count` numbers each of the rows top..bottom-1. */
static void sum_rows(const resize_job *r, int y, size_t count, float *out)
{
    const float *from = r->floats + (size_t)(r->rows.first[y] - r->top) * count;
    memset(out, 0, count * sizeof *out);
    for (int k = 0; k < r->rows.length[y]; k++) {
        const float weight = r->rows.floats[(size_t)y * (size_t)r->rows.room + (size_t)k];
        for (size_t i = 0; i < count; i++)
            out[i] += weight * from[(size_t)k * count + i];
    }
}

static att_status resize_floats(att_context *context, resize_job *r, float *out)
{
    const size_t count = (size_t)r->window.width * (size_t)r->image->channels, rows = (size_t)(r->bottom - r->top);
    r->floats = att_allocate_array(context, rows * count, sizeof *r->floats);
    if (!r->floats)
        return att_fail_memory(context, rows * count * sizeof *r->floats, "a resize");
    for (size_t y = 0; y < rows; y++)
        sum_columns(r, pixel_at(r->image, r->from.x, r->from.y + r->top + (int)y), r->floats + y * count);
    for (int y = 0; y < r->window.height; y++)
        sum_rows(r, y, count, out + (size_t)y * count);
    att_free(context, r->floats);
    return ATT_OK;
}

/* --- the window --------------------------------------------------------------------------------------------------- */

static void find_bounds(resize_job *r)
{
    int last_x = r->window.width - 1, last_y = r->window.height - 1;
    r->left = r->columns.first[0];
    r->right = r->columns.first[last_x] + r->columns.length[last_x];
    r->top = r->rows.first[0];
    r->bottom = r->rows.first[last_y] + r->rows.length[last_y];
}

static att_status resize_bytes(att_context *context, resize_job *r, bool vertical_first, uint8_t *out)
{
    size_t lines = (size_t)(r->right - r->left) * LANES, results = (size_t)r->window.width * LANES;
    size_t intermediate = vertical_first ? (size_t)r->window.height * (size_t)(r->right - r->left)
                                         : (size_t)(r->bottom - r->top) * (size_t)r->window.width;
    size_t bytes = lines + results + intermediate * (size_t)r->image->channels;
    r->lines = att_allocate(context, bytes);
    if (!r->lines)
        return att_fail_memory(context, bytes, "a resize");
    r->out = r->lines + lines;
    r->intermediate = r->out + results;
    run_passes(r, vertical_first, out);
    att_free(context, r->lines);
    return ATT_OK;
}

/* Whether the vertical pass comes first, by Pillow 13's rule. */
static bool vertical_comes_first(att_box from, int width, int height)
{
    int64_t narrower = (int64_t)from.width - width, lower = (int64_t)from.height - height;
    return lower > 0 && lower > 2 * narrower;
}

bool att_resizes_in_floats(att_interpolation interpolation)
{
    return interpolation == ATT_BILINEAR_FLOAT || interpolation == ATT_BICUBIC_FLOAT ||
           interpolation == ATT_BILINEAR_PLAIN;
}

att_status att_resize(att_context *context, const att_image *image, att_box from, att_interpolation interpolation,
                      int width, int height, att_box window, void *out)
{
    const bool floats = att_resizes_in_floats(interpolation);
    if (width == from.width && height == from.height && !floats) {
        copy_box(image, from.x, from.y, window, out);
        return ATT_OK;
    }
    resize_job r = {.functions = functions_of(context), .image = image, .from = from, .window = window};
    ATT_TRY(make_taps(context, interpolation, from.width, width, window.x, window.width, &r.columns));
    att_status status = make_taps(context, interpolation, from.height, height, window.y, window.height, &r.rows);
    if (status == ATT_OK) {
        find_bounds(&r);
        status = floats ? resize_floats(context, &r, out)
                        : resize_bytes(context, &r, vertical_comes_first(from, width, height), out);
        free_taps(context, &r.rows);
    }
    free_taps(context, &r.columns);
    return status;
}

/* Sets *first and *length to a range of input pixels that includes every pixel on which output pixels
 * begin..begin+count-1 depend, in a line resized from `in` to `out` pixels. */
static void needed_range(att_interpolation interpolation, int in, int out, int begin, int count, int *first,
                         int *length)
{
    double scale = (double)in / out;
    int reach = att_filter_max_weights(interpolation, in, out) / 2 + 1;
    double low = floor((begin + 0.5) * scale - reach), high = ceil((begin + count - 0.5) * scale + reach);
    *first = low < 0 ? 0 : (int)low;
    *length = (high > in ? in : (int)high) - *first;
}

att_box att_resize_needs(att_box from, att_interpolation interpolation, int width, int height, att_box window)
{
    att_box box;
    needed_range(interpolation, from.width, width, window.x, window.width, &box.x, &box.width);
    needed_range(interpolation, from.height, height, window.y, window.height, &box.y, &box.height);
    box.x += from.x;
    box.y += from.y;
    return box;
}
