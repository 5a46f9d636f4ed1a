#include "engine/ops/roi_align.h"

#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Reads a box. Returns whether its numbers are finite. */
static bool read_box(const float *boxes, int64_t row, double box[4])
{
    bool is_finite = true;
    for (int c = 0; c < 4; c++) {
        box[c] = boxes[4 * row + c];
        is_finite &= isfinite(box[c]) != 0;
    }
    return is_finite;
}

/* The places of a point, and its shares of them: upper left, upper right, lower left, lower right. */
typedef struct corners {
    int64_t place[4];
    float share[4];
} corners;

/* Sets the corners of point `point` of part `part`; shares add up to 1 over the points of the part. Returns whether the
 * point is inside a map of height x width places. */
static bool find_corners(const att_roi *roi, int64_t side, int64_t part, int point, const int64_t *size, corners *found)
{
    const att_roi_point y = att_roi_point_of(roi, 0, (int)(part / side), point / roi->points[1], size[0]),
                        x = att_roi_point_of(roi, 1, (int)(part % side), point % roi->points[1], size[1]);
    const double points = (double)roi->points[0] * roi->points[1];
    *found =
        (corners){.place = {y.low * size[1] + x.low, y.low * size[1] + x.high, y.high * size[1] + x.low,
                            y.high * size[1] + x.high},
                  .share = {(float)((1 - y.share) * (1 - x.share) / points), (float)((1 - y.share) * x.share / points),
                            (float)(y.share * (1 - x.share) / points), (float)(y.share * x.share / points)}};
    return y.inside && x.inside;
}

/* All parts of a box, from the map of one sample. */
static void align(const att_roi *roi, int64_t side, const float *map, const int64_t *size, float *y)
{
    const int64_t channels = size[2];
    memset(y, 0, (size_t)(side * side * channels) * sizeof *y);
    for (int64_t part = 0; part < side * side; part++, y += channels)
        for (int point = 0; point < roi->points[0] * roi->points[1]; point++) {
            corners at;
            if (!find_corners(roi, side, part, point, size, &at))
                continue;
            const float *a = map + at.place[0] * channels, *b = map + at.place[1] * channels,
                        *c = map + at.place[2] * channels, *d = map + at.place[3] * channels;
            const float of_a = at.share[0], of_b = at.share[1], of_c = at.share[2], of_d = at.share[3];
#pragma omp simd
            for (int64_t i = 0; i < channels; i++)
                y[i] += of_a * a[i] + of_b * b[i] + of_c * c[i] + of_d * d[i];
        }
}

static void fill(float *y, int64_t count, float value)
{
    for (int64_t e = 0; e < count; e++)
        y[e] = value;
}

/* Parts share the boxes of all samples. */
static att_status align_run(const att_call *call)
{
    const att_roi_align_attrs *attrs = call->problem->attrs;
    const int boxes = (int)attrs->levels;
    const int64_t rows = call->problem->in[boxes].shape.dims[0], channels = call->problem->in[0].shape.dims[2];
    const int64_t each = attrs->side * attrs->side * channels;
    att_range share = att_part_of(call, call->problem->group * rows, 1);
    for (int64_t row = share.begin; row < share.end; row++) {
        const int64_t sample = row / rows;
        float *y = (float *)call->out[0] + row * each;
        double box[4];
        const bool is_finite = read_box(call->in[boxes], row, box);
        if (row % rows >= ((const int32_t *)call->in[boxes + 1])[sample]) {
            fill(y, each, 0);
        } else if (!is_finite) {
            fill(y, each, NAN);
        } else {
            const att_roi roi = att_roi_of(attrs, box, boxes);
            const int64_t *size = call->problem->in[roi.level].shape.dims;
            align(&roi, attrs->side, (const float *)call->in[roi.level] + sample * size[0] * size[1] * size[2], size,
                  y);
        }
    }
    return ATT_OK;
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

enum { DY, BOXES, COUNT };

/* Adds all parts of a box to the gradient of the map of one sample, in some channels. */
static void align_back(const att_roi *roi, int64_t side, const float *dy, const int64_t *size, att_range channels,
                       float *map)
{
    for (int64_t part = 0; part < side * side; part++, dy += size[2])
        for (int point = 0; point < roi->points[0] * roi->points[1]; point++) {
            corners at;
            if (!find_corners(roi, side, part, point, size, &at))
                continue;
            for (int corner = 0; corner < 4; corner++) {
                float *to = map + at.place[corner] * size[2];
                for (int64_t c = channels.begin; c < channels.end; c++)
                    to[c] += at.share[corner] * dy[c];
            }
        }
}

static void clear(const att_call *call, int level, att_range channels)
{
    const int64_t width = call->problem->out[level].shape.dims[2], rows = att_rows(call, &call->problem->out[level]);
    float *map = call->out[level];
    for (int64_t row = 0; map && row < rows; row++)
        fill(map + row * width + channels.begin, channels.end - channels.begin, 0);
}

/* Parts share the channels, so that the order of sums does not depend on them. */
static att_status align_grad_run(const att_call *call)
{
    const att_roi_align_attrs *attrs = call->problem->attrs;
    const int64_t rows = call->problem->in[BOXES].shape.dims[0], channels = call->problem->in[DY].shape.dims[3];
    const int64_t each = attrs->side * attrs->side * channels;
    const int32_t *counts = call->in[COUNT];
    att_range share = att_part_of(call, channels, 16);
    for (int l = 0; l < attrs->levels; l++)
        clear(call, l, share);
    for (int64_t row = 0; row < call->problem->group * rows; row++) {
        double box[4];
        const bool is_finite = read_box(call->in[BOXES], row, box);
        if (!is_finite || row % rows >= counts[row / rows])
            continue;
        const att_roi roi = att_roi_of(attrs, box, (int)attrs->levels);
        const int64_t *size = call->problem->out[roi.level].shape.dims;
        float *map = call->out[roi.level];
        if (map)
            align_back(&roi, attrs->side, (const float *)call->in[DY] + row * each, size, share,
                       map + row / rows * size[0] * size[1] * size[2]);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(roi_align, .run = align_run);
ATT_PLAIN_KERNEL(roi_align_grad, .run = align_grad_run);
