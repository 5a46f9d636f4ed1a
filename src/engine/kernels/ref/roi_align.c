#include "engine/ops/roi_align.h"

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Boxes are input `boxes`; the count is the next input. */
static int64_t count_boxes(const att_call *call, int boxes, int64_t sample)
{
    const int64_t count = (int64_t)ref_in(call, boxes + 1, sample), rows = ref_dim(call, boxes, 0);
    return count < rows ? count : rows;
}

/* Reads a box. Returns whether its numbers are finite. */
static bool read_box(const att_call *call, int boxes, int64_t row, double box[4])
{
    bool is_finite = true;
    for (int c = 0; c < 4; c++) {
        box[c] = ref_in(call, boxes, 4 * row + c);
        is_finite &= isfinite(box[c]) != 0;
    }
    return is_finite;
}

/* The mean of the points of part (i, j) in channel c of the roi's map. */
static double mean_of(const att_call *call, const att_roi *roi, int64_t sample, int i, int j, int64_t c)
{
    const int level = (int)roi->level;
    const int64_t height = ref_dim(call, level, 0), width = ref_dim(call, level, 1), channels = ref_dim(call, level, 2);
    const int points = roi->points[0] * roi->points[1];
    double sum = 0;
    for (int p = 0; p < points; p++) {
        const att_roi_point y = att_roi_point_of(roi, 0, i, p / roi->points[1], height),
                            x = att_roi_point_of(roi, 1, j, p % roi->points[1], width);
        const int64_t low = (sample * height + y.low) * width, high = (sample * height + y.high) * width;
        if (y.inside && x.inside)
            sum += (1 - y.share) * ((1 - x.share) * ref_in(call, level, (low + x.low) * channels + c) +
                                    x.share * ref_in(call, level, (low + x.high) * channels + c)) +
                   y.share * ((1 - x.share) * ref_in(call, level, (high + x.low) * channels + c) +
                              x.share * ref_in(call, level, (high + x.high) * channels + c));
    }
    return points > 0 ? sum / points : 0;
}

/* Parts share the boxes of all samples. */
static att_status run_align(const att_call *call)
{
    const att_roi_align_attrs *attrs = call->problem->attrs;
    const int boxes = (int)attrs->levels;
    const int64_t rows = ref_dim(call, boxes, 0), channels = ref_dim(call, 0, 2), side = attrs->side;
    ref_range share = ref_share(call, call->problem->group * rows);
    for (int64_t row = share.begin; row < share.end; row++) {
        const int64_t sample = row / rows;
        const bool counts = row % rows < count_boxes(call, boxes, sample);
        double box[4];
        const bool is_finite = read_box(call, boxes, row, box);
        const att_roi roi = is_finite ? att_roi_of(attrs, box, boxes) : (att_roi){0};
        for (int64_t e = 0; e < side * side * channels; e++) {
            const int i = (int)(e / channels / side), j = (int)(e / channels % side);
            const double value = is_finite && counts ? mean_of(call, &roi, sample, i, j, e % channels) : (double)NAN;
            ref_out(call, 0, row * side * side * channels + e, counts ? value : 0);
        }
    }
    return ATT_OK;
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

enum { DY, BOXES };

/* Adds `value` in channel c at the places of a point. */
static void add_point(const att_call *call, const att_roi *roi, int64_t sample, const att_roi_point at[2], int64_t c,
                      double value)
{
    const att_desc *map = &call->problem->out[roi->level];
    const int64_t *dims = map->shape.dims;
    for (int corner = 0; corner < 4; corner++) {
        const int64_t row = corner / 2 ? at[0].high : at[0].low, column = corner % 2 ? at[1].high : at[1].low;
        const double share =
            (corner / 2 ? at[0].share : 1 - at[0].share) * (corner % 2 ? at[1].share : 1 - at[1].share);
        ref_sum(call, (int)roi->level, ((sample * dims[0] + row) * dims[1] + column) * dims[2] + c, share * value);
    }
}

/* Adds dy of part (i, j) in channel c to the points of the part. */
static void add_part(const att_call *call, const att_roi *roi, int64_t sample, int i, int j, int64_t c, double dy)
{
    const int64_t *map = call->problem->out[roi->level].shape.dims;
    const int points = roi->points[0] * roi->points[1];
    for (int p = 0; p < points; p++) {
        const att_roi_point at[2] = {att_roi_point_of(roi, 0, i, p / roi->points[1], map[0]),
                                     att_roi_point_of(roi, 1, j, p % roi->points[1], map[1])};
        if (at[0].inside && at[1].inside)
            add_point(call, roi, sample, at, c, dy / points);
    }
}

static void clear_channel(const att_call *call, int64_t levels, int64_t c)
{
    for (int l = 0; l < levels; l++) {
        if (!call->out[l])
            continue;
        const int64_t channels = call->problem->out[l].shape.dims[2],
                      elements = att_problem_count(call->problem, &call->problem->out[l]);
        for (int64_t e = c; e < elements; e += channels)
            ref_out(call, l, e, 0);
    }
}

/* Parts share the channels, so that the order of sums does not depend on them. */
static att_status run_grad(const att_call *call)
{
    const att_roi_align_attrs *attrs = call->problem->attrs;
    const int64_t rows = ref_dim(call, BOXES, 0), channels = ref_dim(call, DY, 3), side = attrs->side;
    ref_range share = ref_share(call, channels);
    for (int64_t c = share.begin; c < share.end; c++)
        clear_channel(call, attrs->levels, c);
    for (int64_t row = 0; row < call->problem->group * rows; row++) {
        double box[4];
        const bool is_finite = read_box(call, BOXES, row, box);
        if (!is_finite || row % rows >= count_boxes(call, BOXES, row / rows))
            continue;
        const att_roi roi = att_roi_of(attrs, box, (int)attrs->levels);
        for (int64_t part = 0; call->out[roi.level] && part < side * side; part++)
            for (int64_t c = share.begin; c < share.end; c++)
                add_part(call, &roi, row / rows, (int)(part / side), (int)(part % side), c,
                         ref_in(call, DY, (row * side * side + part) * channels + c));
    }
    return ATT_OK;
}

const att_kernel att_ref_roi_align = {.op = "roi_align", .name = "ref", .run = run_align};
const att_kernel att_ref_roi_align_grad = {.op = "roi_align_grad", .name = "ref", .run = run_grad};
