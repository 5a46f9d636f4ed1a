#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tiered.h"

/* Row by row, each with numbers of its own: parts share rows. */

ATT_INLINE void gate_as(const att_call *call, bool narrow_x, bool narrow_y)
{
    const float *gate = call->in[1];
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t i = row * columns, end = i + columns;
        vf g = v_set(gate[row]);
        for (; i + 2 * VW <= end; i += 2 * VW)
            v_put_pair(call->out[0], i, v_get(call->in[0], i, narrow_x) * g, v_get(call->in[0], i + VW, narrow_x) * g,
                       narrow_y);
        for (; i < end; i += VW)
            v_put_until(call->out[0], i, end, v_get_until(call->in[0], i, end, narrow_x) * g, narrow_y);
    }
}

static att_status gate_run(const att_call *call)
{
    bool x = att_is_narrow(&call->problem->in[0]), y = att_is_narrow(&call->problem->out[0]);
    if (x && y)
        gate_as(call, true, true);
    else if (!x && !y)
        gate_as(call, false, false);
    else
        gate_as(call, x, y);
    return ATT_OK;
}

static bool gate_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 1);
}

const att_kernel ATT_TIERED(att_cpu_pixel_gate) = {
    .op = "pixel_gate", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = gate_accepts, .run = gate_run};

ATT_INLINE void dot_as(const att_call *call, bool narrow_dy, bool narrow_x)
{
    int64_t columns = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[1]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t i = row * columns, end = i + columns;
        vf sum[2] = {{0}};
        for (; i + 2 * VW <= end; i += 2 * VW)
            for (int v = 0; v < 2; v++)
                sum[v] =
                    v_fma(v_get(call->in[0], i + v * VW, narrow_dy), v_get(call->in[1], i + v * VW, narrow_x), sum[v]);
        for (; i < end; i += VW)
            sum[0] =
                v_fma(v_get_until(call->in[0], i, end, narrow_dy), v_get_until(call->in[1], i, end, narrow_x), sum[0]);
        ((float *)call->out[0])[row] = v_sum(sum[0] + sum[1]);
    }
}

static att_status dot_run(const att_call *call)
{
    bool dy = att_is_narrow(&call->problem->in[0]), x = att_is_narrow(&call->problem->in[1]);
    if (dy && x)
        dot_as(call, true, true);
    else if (!dy && !x)
        dot_as(call, false, false);
    else
        dot_as(call, dy, x);
    return ATT_OK;
}

static bool dot_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 3, 0);
}

const att_kernel ATT_TIERED(att_cpu_pixel_dot) = {
    .op = "pixel_dot", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = dot_accepts, .run = dot_run};

/* --- channel_pool ------------------------------------------------------------------------------------------------- */

/* Where the row's sum says that there may be a NaN. */
static float largest_or_nan(const void *x, int64_t first, int64_t end, bool narrow)
{
    float largest = att_float_get(x, first, narrow);
    for (int64_t i = first; i < end; i++) {
        float value = att_float_get(x, i, narrow);
        largest = value > largest || value != value ? value : largest;
    }
    return largest;
}

ATT_INLINE void pool_row(const void *x, int64_t first, int64_t columns, float *y, bool narrow)
{
    int64_t i = first, end = first + columns;
    vf total = {0}, largest = v_set(att_float_get(x, first, narrow));
    for (; i + VW <= end; i += VW) {
        vf value = v_get(x, i, narrow);
        total += value;
        largest = v_max(largest, value);
    }
    float sum = v_sum(total), most = v_largest(largest);
    for (; i < end; i++) {
        float value = att_float_get(x, i, narrow);
        sum += value;
        most = value > most ? value : most;
    }
    y[0] = sum / (float)columns;
    y[1] = sum == sum ? most : largest_or_nan(x, first, end, narrow);
}

ATT_INLINE void pool_as(const att_call *call, bool narrow)
{
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++)
        pool_row(call->in[0], row * columns, columns, (float *)call->out[0] + 2 * row, narrow);
}

static att_status pool_run(const att_call *call)
{
    if (att_is_narrow(&call->problem->in[0]))
        pool_as(call, true);
    else
        pool_as(call, false);
    return ATT_OK;
}

static bool pool_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 0);
}

const att_kernel ATT_TIERED(att_cpu_channel_pool) = {
    .op = "channel_pool", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = pool_accepts, .run = pool_run};

/* The first element of [first, end) that is `value`; end where none is. */
ATT_INLINE int64_t place_of(const void *x, int64_t first, int64_t end, float value, bool narrow)
{
    vf wanted = v_set(value);
    for (int64_t i = first; i < end; i += VW) {
        unsigned here = v_bits(v_get_until(x, i, end, narrow) == wanted);
        if (end - i < VW)
            here &= (1u << (end - i)) - 1;
        if (here)
            return i + __builtin_ctz(here);
    }
    return end;
}

ATT_INLINE void pool_grad_as(const att_call *call, bool narrow_x, bool narrow_dx)
{
    const float *dy = call->in[0], *y = call->in[2];
    int64_t columns = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[1]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t first = row * columns, end = first + columns;
        float share = dy[2 * row] / (float)columns;
        for (int64_t i = first; i < end; i += VW)
            v_put_until(call->out[0], i, end, v_set(share), narrow_dx);
        int64_t place = place_of(call->in[1], first, end, y[2 * row + 1], narrow_x);
        if (place < end)
            att_float_put(call->out[0], place, share + dy[2 * row + 1], narrow_dx);
    }
}

static att_status pool_grad_run(const att_call *call)
{
    bool x = att_is_narrow(&call->problem->in[1]), dx = att_is_narrow(&call->problem->out[0]);
    if (x && dx)
        pool_grad_as(call, true, true);
    else if (!x && !dx)
        pool_grad_as(call, false, false);
    else
        pool_grad_as(call, x, dx);
    return ATT_OK;
}

static bool pool_grad_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 2, 1);
}

const att_kernel ATT_TIERED(att_cpu_channel_pool_grad) = {.op = "channel_pool_grad",
                                                          .name = "simd",
                                                          .tier = ATT_TIER_VALUE,
                                                          .accepts = pool_grad_accepts,
                                                          .run = pool_grad_run};
