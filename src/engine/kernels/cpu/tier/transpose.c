#include "engine/ops/transpose.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"

/* One axis of y: its size, and its strides in x and y. */
typedef struct axis {
    int64_t size, in_x, in_y;
} axis;

/* The axes of y, in order, samples first. Axes of size 1 are dropped, and adjacent axes of y that are also adjacent in
 * x are merged. */
typedef struct layout {
    int rank;
    axis axes[ATT_MAX_RANK + 1];
} layout;

static void add_axis(layout *l, int64_t size, int64_t in_x)
{
    if (l->rank > 0 && l->axes[l->rank - 1].in_x == size * in_x) {
        l->axes[l->rank - 1].size *= size;
        l->axes[l->rank - 1].in_x = in_x;
    } else if (size > 1) {
        l->axes[l->rank++] = (axis){size, in_x, 0};
    }
}

static layout layout_of(const att_problem *problem)
{
    const att_transpose_attrs *attrs = problem->attrs;
    const att_shape *x = &problem->in[0].shape;
    int64_t step[ATT_MAX_RANK], count = 1;
    for (int i = x->rank - 1; i >= 0; count *= x->dims[i--])
        step[i] = count;
    layout l = {.rank = 0};
    add_axis(&l, problem->group, count);
    for (int i = 0; i < x->rank; i++)
        add_axis(&l, x->dims[attrs->axes[i]], step[attrs->axes[i]]);
    if (l.rank == 0)
        l.axes[l.rank++] = (axis){1, 1, 0};
    int64_t in_y = 1;
    for (int i = l.rank - 1; i >= 0; in_y *= l.axes[i--].size)
        l.axes[i].in_y = in_y;
    return l;
}

/* Removes axis i from the layout and returns it. */
static axis remove_axis(layout *l, int i)
{
    axis removed = l->axes[i];
    l->rank--;
    for (; i < l->rank; i++)
        l->axes[i] = l->axes[i + 1];
    return removed;
}

static int64_t count_of(const layout *l)
{
    int64_t count = 1;
    for (int i = 0; i < l->rank; i++)
        count *= l->axes[i].size;
    return count;
}

typedef struct place {
    int64_t x, y;
} place;

/* Position of element `number` of a layout in x and y. */
static place place_of(const layout *l, int64_t number)
{
    place at = {0, 0};
    for (int i = l->rank - 1; i >= 0; i--) {
        int64_t index = number % l->axes[i].size;
        number /= l->axes[i].size;
        at.x += index * l->axes[i].in_x;
        at.y += index * l->axes[i].in_y;
    }
    return at;
}

/* Copies rows of y that are contiguous in x, too. Parts share the rows. */
static void copy_rows(const att_call *call, layout l)
{
    bool x_is_bf16 = att_is_bf16(&call->problem->in[0]), y_is_bf16 = att_is_bf16(&call->problem->out[0]);
    int64_t columns = remove_axis(&l, l.rank - 1).size;
    att_range part = att_part_of(call, count_of(&l), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        place at = place_of(&l, row);
        att_float_move(call->in[0], at.x, x_is_bf16, call->out[0], at.y, y_is_bf16, columns);
    }
}

/* Transposes a tile of up to VW x VW: `rows` runs of x along axis `run`, which are `last->in_x` apart, become `columns`
 * runs of y. */
ATT_INLINE void transpose_tile(const att_call *call, place at, int64_t rows, int64_t columns, const axis *last,
                               const axis *run, bool x_is_bf16, bool y_is_bf16)
{
    vf tile[VW];
    for (int i = 0; i < VW; i++) {
        int64_t from = at.x + i * last->in_x;
        tile[i] = i < rows ? v_get_until(call->in[0], from, from + columns, x_is_bf16) : (vf){0};
    }
    gemm_transpose_vectors(tile);
    for (int i = 0; i < VW && i < columns; i++) {
        int64_t to = at.y + i * run->in_y;
        v_put_until(call->out[0], to, to + rows, tile[i], y_is_bf16);
    }
}

/* Transposes matrices: `last` is the last axis of y, `run` the last axis of x. Parts share strips of VW rows of y. */
ATT_INLINE void transpose_as(const att_call *call, const layout *rest, const axis *last, const axis *run,
                             bool x_is_bf16, bool y_is_bf16)
{
    int64_t strips = (run->size + VW - 1) / VW;
    att_range part = att_part_of(call, count_of(rest) * strips, 1);
    for (int64_t strip = part.begin; strip < part.end; strip++) {
        place at = place_of(rest, strip / strips);
        int64_t first = strip % strips * VW, columns = run->size - first < VW ? run->size - first : VW;
        at.x += first;
        at.y += first * run->in_y;
        for (int64_t row = 0; row < last->size; row += VW, at.x += VW * last->in_x, at.y += VW)
            transpose_tile(call, at, last->size - row < VW ? last->size - row : VW, columns, last, run, x_is_bf16,
                           y_is_bf16);
    }
}

static void transpose(const att_call *call, layout l)
{
    bool x_is_bf16 = att_is_bf16(&call->problem->in[0]), y_is_bf16 = att_is_bf16(&call->problem->out[0]);
    axis last = remove_axis(&l, l.rank - 1);
    int unit = 0;
    while (l.axes[unit].in_x != 1)
        unit++;
    axis run = remove_axis(&l, unit);
    if (!x_is_bf16 && !y_is_bf16)
        transpose_as(call, &l, &last, &run, false, false);
    else if (x_is_bf16 && y_is_bf16)
        transpose_as(call, &l, &last, &run, true, true);
    else
        transpose_as(call, &l, &last, &run, x_is_bf16, y_is_bf16);
}

static att_status transpose_run(const att_call *call)
{
    layout l = layout_of(call->problem);
    if (l.axes[l.rank - 1].in_x == 1)
        copy_rows(call, l);
    else
        transpose(call, l);
    return ATT_OK;
}

ATT_SIMD_KERNEL(transpose, .bf16_in = 1, .bf16_out = 1, .run = transpose_run);
