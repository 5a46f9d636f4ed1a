#include "engine/ops/linear.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"

enum { X, WEIGHT, BIAS, RESIDUAL };

/* Small layers with few rows per sample, as in attention modules, where the call of a matrix product would take longer
 * than the sums. Weights are packed as [input][output, padded to whole vectors], followed by the bias. The choice of
 * this kernel does not depend on the group, so the bits do not either. */
enum { MOST_WEIGHTS = 1 << 14, MOST_ROWS = 4, CHAINS = 4 };

static int64_t rows_of(const att_problem *problem)
{
    return att_shape_count(problem->in[X].shape) / att_columns(&problem->in[X]);
}

static bool accepts(const att_problem *problem)
{
    return rows_of(problem) <= MOST_ROWS && att_shape_count(problem->in[WEIGHT].shape) <= MOST_WEIGHTS &&
           ATT_ATTRS(problem, linear)->activation == ATT_ACT_NONE;
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    int64_t inputs = att_columns(&problem->in[X]), width = whole_vectors(att_columns(&problem->out[0]));
    prepared->packed_bytes = (size_t)((inputs + 1) * width) * sizeof(float);
    prepared->packed_key = 2 * VW + ATT_ATTRS(problem, linear)->transposed;
    return ATT_OK;
}

static att_status pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    int64_t inputs = att_columns(&problem->in[X]), outputs = att_columns(&problem->out[0]);
    int64_t width = whole_vectors(outputs);
    const float *weight = in[WEIGHT], *bias = in[BIAS];
    float *to = packed;
    memset(to, 0, (size_t)((inputs + 1) * width) * sizeof *to);
    for (int64_t i = 0; i < inputs; i++)
        for (int64_t o = 0; o < outputs; o++)
            to[i * width + o] = weight[ATT_ATTRS(problem, linear)->transposed ? i * outputs + o : o * inputs + i];
    if (bias)
        memcpy(to + inputs * width, bias, (size_t)outputs * sizeof *to);
    return ATT_OK;
}

/* A vector of outputs, from CHAINS independent sums. */
ATT_INLINE vf sum_of(const void *x, int64_t from, int64_t inputs, bool is_bf16, const float *weight, int64_t width)
{
    vf sum[CHAINS] = {{0}};
    int64_t i = 0;
    for (; i + CHAINS <= inputs; i += CHAINS)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = v_fma(v_set(att_float_get(x, from + i + c, is_bf16)), v_load(weight + (i + c) * width), sum[c]);
    for (; i < inputs; i++)
        sum[0] = v_fma(v_set(att_float_get(x, from + i, is_bf16)), v_load(weight + i * width), sum[0]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

ATT_INLINE void run_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    int64_t inputs = att_columns(&call->problem->in[X]), outputs = att_columns(&call->problem->out[0]);
    int64_t width = whole_vectors(outputs);
    const float *weight = call->packed, *bias = weight + inputs * width;
    att_range part = att_part_of(call, call->problem->group * rows_of(call->problem), 1);
    for (int64_t row = part.begin; row < part.end; row++)
        for (int64_t o = 0; o < outputs; o += VW) {
            int64_t first = row * outputs + o, end = (row + 1) * outputs;
            vf sum = sum_of(call->in[X], row * inputs, inputs, x_is_bf16, weight + o, width) + v_load(bias + o);
            if (call->in[RESIDUAL])
                sum += v_get_until(call->in[RESIDUAL], first, end, false);
            v_put_until(call->out[0], first, end, sum, y_is_bf16);
        }
}

static att_status run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[X]), y = att_is_bf16(&call->problem->out[0]);
    if (x)
        run_as(call, true, y);
    else
        run_as(call, false, y);
    return ATT_OK;
}

ATT_SIMD_KERNEL(linear, .bf16_in = 1u << X, .bf16_out = 1, .accepts = accepts, .prepare = prepare, .pack = pack,
                .packed_in = 1u << WEIGHT, .run = run);
