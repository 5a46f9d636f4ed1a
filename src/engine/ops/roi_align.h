/* ops/roi_align.h - attributes of roi_align and its gradient, and where a box is read. */
#ifndef ATT_OPS_ROI_ALIGN_H
#define ATT_OPS_ROI_ALIGN_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <attscope/ops.h>

/* height, width: of each map, for the gradient. */
typedef struct att_roi_align_attrs {
    double finest;
    int64_t levels;
    int32_t side, samples, stride, aligned;
    int32_t height[ATT_BOX_LEVELS], width[ATT_BOX_LEVELS];
} att_roi_align_attrs;

/* One box in its map: part (i, j) has the points first + (i + (p + 1/2) / points) step along each axis, p < points. */
typedef struct att_roi {
    int64_t level;
    double first[2], step[2]; /* vertical, horizontal; in places of the map */
    int points[2];
} att_roi;

/* Places that count in a point, and their shares: at low and low + 1, or twice at the last. */
typedef struct att_roi_point {
    int64_t low, high;
    double share; /* of high */
    bool inside;  /* otherwise the point is 0 */
} att_roi_point;

static inline int att_roi_level(const double box[4], int levels, double finest)
{
    const double side = sqrt(fmax(box[2] - box[0], 0) * fmax(box[3] - box[1], 0));
    const double level = floor(log2(side / finest) + 1e-6);
    return level > 0 ? (int)fmin(level, levels - 1) : 0;
}

/* box: finite numbers. */
static inline att_roi att_roi_of(const att_roi_align_attrs *attrs, const double box[4], int levels)
{
    att_roi roi = {.level = att_roi_level(box, levels, attrs->finest)};
    const double place = ldexp(attrs->stride, roi.level), shift = attrs->aligned ? 0.5 : 0;
    for (int axis = 0; axis < 2; axis++) {
        const double from = box[1 - axis] / place - shift, to = box[3 - axis] / place - shift;
        const double length = attrs->aligned ? to - from : fmax(to - from, 1), points = ceil(length / attrs->side);
        roi.first[axis] = from;
        roi.step[axis] = length / attrs->side;
        roi.points[axis] = attrs->samples > 0 ? attrs->samples : points > 0 ? (int)fmin(points, 1 << 15) : 0;
    }
    return roi;
}

/* Point `point` of part `part` along an axis of `count` places. */
static inline att_roi_point att_roi_point_of(const att_roi *roi, int axis, int part, int point, int64_t count)
{
    const double at = roi->first[axis] + (part + (point + 0.5) / roi->points[axis]) * roi->step[axis];
    if (!(at >= -1 && at <= (double)count))
        return (att_roi_point){0};
    const double within = fmin(fmax(at, 0), (double)(count - 1));
    const int64_t low = (int64_t)within;
    return (att_roi_point){low, low + 1 < count ? low + 1 : low, within - (double)low, true};
}

#endif
