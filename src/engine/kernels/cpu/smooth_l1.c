/* smooth_l1 and its gradient: most rows are left out. */
#include "engine/ops/smooth_l1.h"

#include <attscope/ops.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* The operands of all rows of a call. */
typedef struct operands {
    const float *x, *target;
    const int32_t *columns;
    int64_t rows; /* of a sample */
    int64_t all, width;
    double beta;
} operands;

static operands operands_of(const att_call *call, int first)
{
    const att_desc *in = &call->problem->in[first];
    return (operands){.x = call->in[first],
                      .target = call->in[first + 1],
                      .columns = call->in[first + 2],
                      .rows = in[0].shape.dims[0],
                      .all = in[0].shape.dims[1],
                      .width = in[1].shape.dims[1],
                      .beta = ATT_ATTRS(call->problem, smooth_l1)->beta};
}

static bool is_broken(const operands *of, int64_t row)
{
    return of->columns[row] < 0 || of->columns[row] >= of->all / of->width;
}

/* Element of x that is compared with the first target of a row. */
static int64_t place_of(const operands *of, int64_t row)
{
    return row * of->all + of->columns[row] * of->width;
}

static double row_loss(const operands *of, int64_t row)
{
    const float *target = of->target + row * of->width;
    double loss = 0;
    if (of->columns[row] == ATT_NO_CLASS)
        return 0;
    if (is_broken(of, row))
        return (double)NAN;
    const float *x = of->x + place_of(of, row);
    for (int64_t d = 0; d < of->width; d++)
        loss += att_smooth_l1_of((double)x[d] - (double)target[d], of->beta);
    return loss;
}

static att_status loss_run(const att_call *call)
{
    const operands of = operands_of(call, 0);
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        double loss = 0;
        for (int64_t row = sample * of.rows; row < (sample + 1) * of.rows; row++)
            loss += row_loss(&of, row);
        ((float *)call->out[0])[sample] = (float)loss;
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(smooth_l1, .run = loss_run);

static void set(float *to, int64_t count, float value)
{
    for (int64_t i = 0; to && i < count; i++)
        to[i] = value;
}

/* dx, dtarget: the row's; NULL: nobody reads it. */
static void row_grad(const operands *of, float dloss, int64_t row, float *dx, float *dtarget)
{
    const float *target = of->target + row * of->width;
    const bool is_left_out = of->columns[row] == ATT_NO_CLASS, broken = !is_left_out && is_broken(of, row);
    set(dx, of->all, broken ? NAN : 0);
    set(dtarget, of->width, broken ? NAN : 0);
    for (int64_t d = 0; d < of->width && !is_left_out && !broken; d++) {
        const double e = (double)of->x[place_of(of, row) + d] - (double)target[d];
        const float slope = (float)((double)dloss * att_smooth_l1_slope(e, of->beta));
        if (dx)
            dx[of->columns[row] * of->width + d] = slope;
        if (dtarget)
            dtarget[d] = -slope;
    }
}

static att_status grad_run(const att_call *call)
{
    const operands of = operands_of(call, 1);
    float *dx = call->out[0], *dtarget = call->out[1];
    att_range part = att_part_of(call, call->problem->group * of.rows, 1);
    for (int64_t row = part.begin; row < part.end; row++)
        row_grad(&of, ((const float *)call->in[0])[row / of.rows], row, dx ? dx + row * of.all : NULL,
                 dtarget ? dtarget + row * of.width : NULL);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(smooth_l1_grad, .run = grad_run);
