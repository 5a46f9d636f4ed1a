/* Kernels with separate coefficients for each row. Parts share the rows. */
#include "engine/kernels/cpu/tier/gate.h"
#include "engine/kernels/cpu/tiered.h"

/* The form of a gate, a compile-time constant: whether a residual is added, and which operands are bf16. */
typedef struct gate_form {
    bool added, x_is_bf16, residual_is_bf16, y_is_bf16;
} gate_form;

/* Elements [i, i + VW) of y, of which those before `end` are valid. */
ATT_INLINE vf gated(const att_call *call, gate_form f, vf gate, vf least, int64_t i, int64_t end)
{
    vf x = v_get_until(call->in[X], i, end, f.x_is_bf16);
    vf y = f.added ? v_fma(x, gate, v_get_until(call->in[RESIDUAL], i, end, f.residual_is_bf16)) : x * gate;
    return v_max(least, y);
}

ATT_INLINE void gate_as(const att_call *call, bool added, bool x_is_bf16, bool residual_is_bf16, bool y_is_bf16)
{
    gate_form f = {added, x_is_bf16, residual_is_bf16, y_is_bf16};
    const float *gate = call->in[GATE];
    int64_t columns = att_columns(&call->problem->in[X]);
    vf least = v_set(gate_floor(call));
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[X]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t i = row * columns, end = i + columns;
        vf g = v_set(gate[row]);
        for (; i + 2 * VW <= end; i += 2 * VW)
            v_put_pair(call->out[0], i, gated(call, f, g, least, i, i + VW),
                       gated(call, f, g, least, i + VW, i + 2 * VW), y_is_bf16);
        for (; i < end; i += VW)
            v_put_until(call->out[0], i, end, gated(call, f, g, least, i, end), y_is_bf16);
    }
}

static att_status pixel_gate_run(const att_call *call)
{
    return run_gate(call, gate_as);
}

ATT_SIMD_KERNEL(pixel_gate, .bf16_in = 1u << X | 1u << RESIDUAL, .bf16_out = 1, .run = pixel_gate_run);

ATT_INLINE void dot_as(const att_call *call, bool dy_is_bf16, bool x_is_bf16)
{
    int64_t columns = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[1]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t i = row * columns, end = i + columns;
        vf sum[2] = {{0}};
        for (; i + 2 * VW <= end; i += 2 * VW)
            for (int v = 0; v < 2; v++)
                sum[v] = v_fma(v_get(call->in[0], i + v * VW, dy_is_bf16), v_get(call->in[1], i + v * VW, x_is_bf16),
                               sum[v]);
        for (; i < end; i += VW)
            sum[0] = v_fma(v_get_until(call->in[0], i, end, dy_is_bf16), v_get_until(call->in[1], i, end, x_is_bf16),
                           sum[0]);
        ((float *)call->out[0])[row] = v_sum(sum[0] + sum[1]);
    }
}

static att_status dot_run(const att_call *call)
{
    return run_for_types(call, dot_as, &call->problem->in[0], &call->problem->in[1]);
}

ATT_SIMD_KERNEL(pixel_dot, .bf16_in = 3, .run = dot_run);

/* --- channel_pool ------------------------------------------------------------------------------------------------- */

/* Slow path for rows whose sum is NaN. */
static float largest_or_nan(const void *x, int64_t first, int64_t end, bool is_bf16)
{
    float largest = att_float_get(x, first, is_bf16);
    for (int64_t i = first; i < end; i++) {
        float value = att_float_get(x, i, is_bf16);
        largest = value > largest || value != value ? value : largest;
    }
    return largest;
}

ATT_INLINE void pool_row(const void *x, int64_t first, int64_t columns, float *y, bool is_bf16)
{
    int64_t i = first, end = first + columns;
    vf total = {0}, largest = v_set(att_float_get(x, first, is_bf16));
    for (; i + VW <= end; i += VW) {
        vf value = v_get(x, i, is_bf16);
        total += value;
        largest = v_max(largest, value);
    }
    float sum = v_sum(total), most = v_largest(largest);
    for (; i < end; i++) {
        float value = att_float_get(x, i, is_bf16);
        sum += value;
        most = value > most ? value : most;
    }
    y[0] = sum / (float)columns;
    y[1] = sum == sum ? most : largest_or_nan(x, first, end, is_bf16);
}

ATT_INLINE void pool_as(const att_call *call, bool is_bf16)
{
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++)
        pool_row(call->in[0], row * columns, columns, (float *)call->out[0] + 2 * row, is_bf16);
}

static att_status pool_run(const att_call *call)
{
    return run_for_type(call, pool_as, &call->problem->in[0]);
}

ATT_SIMD_KERNEL(channel_pool, .bf16_in = 1, .run = pool_run);

/* Index of the first element of [first, end) that equals `value`; end if there is none. Searches backwards without an
 * early exit, whose branch would be mispredicted. */
ATT_INLINE int64_t place_of(const void *x, int64_t first, int64_t end, float value, bool is_bf16)
{
    vf target = v_set(value);
    int64_t place = end, whole = (end - first) / VW * VW;
    if (first + whole < end) {
        unsigned here = v_bits(v_get_until(x, first + whole, end, is_bf16) == target);
        here &= (1u << (end - first - whole)) - 1;
        place = here ? first + whole + __builtin_ctz(here) : place;
    }
    for (int64_t i = first + whole - VW; i >= first; i -= VW) {
        unsigned here = v_bits(v_get(x, i, is_bf16) == target);
        int64_t lane = i + __builtin_ctz(here | 1u << VW);
        place = here ? lane : place;
    }
    return place;
}

ATT_INLINE void fill_row(void *y, int64_t first, int64_t end, float value, bool is_bf16)
{
    int64_t i = first;
    for (; i + 2 * VW <= end; i += 2 * VW)
        v_put_pair(y, i, v_set(value), v_set(value), is_bf16);
    for (; i < end; i += VW)
        v_put_until(y, i, end, v_set(value), is_bf16);
}

ATT_INLINE void pool_grad_as(const att_call *call, bool x_is_bf16, bool dx_is_bf16)
{
    const float *dy = call->in[0], *y = call->in[2];
    int64_t columns = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[1]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t first = row * columns, end = first + columns;
        float share = dy[2 * row] / (float)columns;
        fill_row(call->out[0], first, end, share, dx_is_bf16);
        int64_t place = place_of(call->in[1], first, end, y[2 * row + 1], x_is_bf16);
        if (place < end)
            att_float_put(call->out[0], place, share + dy[2 * row + 1], dx_is_bf16);
    }
}

static att_status pool_grad_run(const att_call *call)
{
    return run_for_types(call, pool_grad_as, &call->problem->in[1], &call->problem->out[0]);
}

ATT_SIMD_KERNEL(channel_pool_grad, .bf16_in = 2, .bf16_out = 1, .run = pool_grad_run);
