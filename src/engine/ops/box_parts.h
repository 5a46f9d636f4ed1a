/* ops/box_parts.h - what the operations on boxes share: numbers of one sample, areas and overlaps, anchors.
 *
 * A box is left, top, right and bottom. Numbers are F32 or F64; arithmetic is in f64. */
#ifndef ATT_OPS_BOX_PARTS_H
#define ATT_OPS_BOX_PARTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <attscope/ops.h>

#include "engine/graph/op.h"

enum { ATT_BOX = 4 };

/* The part of a call that one thread computes: the samples begin .. end - 1 of the group. in, data, out: descriptions
 * and data of the whole group, as in att_problem and att_call; an output that nobody reads is NULL. seed, step,
 * position: on which random draws depend besides the node; position is the index of the group's first sample among
 * those of the update. scratch: as many bytes as the operation says, aligned to 8. */
typedef struct att_box_work {
    const void *attrs;
    const att_desc *in;
    int in_count;
    const void *const *data;
    void *const *out;
    int64_t begin, end;
    uint64_t seed;
    int64_t step, position;
    void *scratch;
} att_box_work;

/* An input of one sample. */
typedef struct att_box_numbers {
    const void *data;
    bool is_wide;
    int64_t first;
} att_box_numbers;

static inline att_box_numbers att_box_numbers_of(const att_desc *desc, const void *data, int64_t sample)
{
    return (att_box_numbers){data, desc->dtype == ATT_F64, sample * att_shape_count(desc->shape)};
}

static inline double att_box_number(const att_box_numbers *of, int64_t i)
{
    return of->is_wide ? ((const double *)of->data)[of->first + i] : (double)((const float *)of->data)[of->first + i];
}

/* An output of one sample, in the type of the first input. */
typedef struct att_box_result {
    void *data; /* NULL: nobody reads it */
    bool is_wide;
    int64_t first;
} att_box_result;

static inline void att_box_put(const att_box_result *to, int64_t i, double value)
{
    if (to->data && to->is_wide)
        ((double *)to->data)[to->first + i] = value;
    else if (to->data)
        ((float *)to->data)[to->first + i] = (float)value;
}

static inline double att_box_area(const double box[ATT_BOX])
{
    return (box[2] - box[0]) * (box[3] - box[1]);
}

/* The area that two boxes share. Comparisons take half the time of fmin() and fmax(). */
static inline double att_box_shared(const double a[ATT_BOX], const double b[ATT_BOX])
{
    const double left = a[0] > b[0] ? a[0] : b[0], right = a[2] < b[2] ? a[2] : b[2];
    const double top = a[1] > b[1] ? a[1] : b[1], bottom = a[3] < b[3] ? a[3] : b[3];
    return right > left && bottom > top ? (right - left) * (bottom - top) : 0;
}

/* Intersection over union. */
static inline double att_box_overlap(const double a[ATT_BOX], const double b[ATT_BOX])
{
    const double both = att_box_shared(a, b);
    return both > 0 ? both / (att_box_area(a) + att_box_area(b) - both) : 0;
}

/* Half of the width and height of the anchors of a level and a ratio. */
static inline void att_anchor_half(double size, bool rounded, int level, int ratio, double half[2])
{
    static const double ratios[ATT_BOX_RATIOS] = {0.5, 1, 2};
    const double stretch = sqrt(ratios[ratio]), side = ldexp(size, level);
    half[0] = rounded ? rint(side / stretch / 2) : side / stretch / 2;
    half[1] = rounded ? rint(side * stretch / 2) : side * stretch / 2;
}

/* The anchor at a place. stride: vertical, horizontal. */
static inline void att_anchor_at(const double half[2], const int32_t stride[2], int64_t row, int64_t column,
                                 double anchor[ATT_BOX])
{
    const double x = (double)column * stride[1], y = (double)row * stride[0];
    anchor[0] = x - half[0];
    anchor[1] = y - half[1];
    anchor[2] = x + half[0];
    anchor[3] = y + half[1];
}

#endif
