#include "ops/transpose.h"
#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"

/* Columns of y that are made of a block of rows at a time, so that what one row reads of a cache line of x is there for
 * the next. */
enum { BLOCK = 16 };

/* y [rows.., columns]: sizes of its axes and the distance in x of two neighbours along each; samples are the first. */
typedef struct layout {
    int rank;
    int64_t size[ATT_MAX_RANK + 1], stride[ATT_MAX_RANK + 1];
} layout;

static layout layout_of(const att_problem *problem)
{
    const att_transpose_attrs *attrs = problem->attrs;
    const att_shape *x = &problem->in[0].shape;
    int64_t step[ATT_MAX_RANK], count = 1;
    for (int i = x->rank - 1; i >= 0; count *= x->dims[i--])
        step[i] = count;
    layout l = {.rank = x->rank + 1, .size = {problem->group}, .stride = {count}};
    for (int i = 0; i < x->rank; i++) {
        l.size[i + 1] = x->dims[attrs->axes[i]];
        l.stride[i + 1] = step[attrs->axes[i]];
    }
    return l;
}

/* Where the first element of a row of y lies in x. */
static int64_t start_of(const layout *l, int64_t row)
{
    int64_t at = 0;
    for (int i = l->rank - 2; i >= 0; i--) {
        at += row % l->size[i] * l->stride[i];
        row /= l->size[i];
    }
    return at;
}

/* Rows [row, row + count) of y, count at most BLOCK. */
ATT_INLINE void gather_block(const att_call *call, const layout *l, int64_t row, int64_t count, bool narrow_x,
                             bool narrow_y)
{
    int64_t columns = l->size[l->rank - 1], stride = l->stride[l->rank - 1], start[BLOCK];
    for (int64_t r = 0; r < count; r++)
        start[r] = start_of(l, row + r);
    for (int64_t first = 0; first < columns; first += BLOCK) {
        int64_t end = columns - first < BLOCK ? columns : first + BLOCK;
        for (int64_t r = 0; r < count; r++)
            for (int64_t c = first; c < end; c++)
                att_float_put(call->out[0], (row + r) * columns + c,
                              att_float_get(call->in[0], start[r] + c * stride, narrow_x), narrow_y);
    }
}

static void gather_rows(const att_call *call, const layout *l, int64_t row, int64_t count)
{
    bool narrow_x = att_is_narrow(&call->problem->in[0]), narrow_y = att_is_narrow(&call->problem->out[0]);
    if (!narrow_x && !narrow_y)
        gather_block(call, l, row, count, false, false);
    else
        gather_block(call, l, row, count, narrow_x, narrow_y);
}

/* Parts share the rows of y, of all samples. */
static att_status run(const att_call *call)
{
    layout l = layout_of(call->problem);
    bool narrow_x = att_is_narrow(&call->problem->in[0]), narrow_y = att_is_narrow(&call->problem->out[0]);
    int64_t columns = l.size[l.rank - 1];
    att_range part = att_part_of(call, att_elements(call, &call->problem->out[0]) / columns, 1);
    if (l.stride[l.rank - 1] == 1)
        for (int64_t row = part.begin; row < part.end; row++)
            att_float_move(call->in[0], start_of(&l, row), narrow_x, call->out[0], row * columns, narrow_y, columns);
    else
        for (int64_t row = part.begin; row < part.end; row += BLOCK)
            gather_rows(call, &l, row, part.end - row < BLOCK ? part.end - row : BLOCK);
    return ATT_OK;
}

static bool accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 1);
}

const att_kernel att_cpu_transpose = {.op = "transpose", .name = "plain", .accepts = accepts, .run = run};
