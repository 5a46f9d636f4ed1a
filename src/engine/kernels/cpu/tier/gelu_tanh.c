#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/sigmoid.h"
#include "engine/kernels/cpu/tiered.h"

/* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3). */
static const float TWICE_ROOT = 1.5957691216f; /* 2 sqrt(2 / pi) */
static const float CUBIC = 0.044715f;

ATT_INLINE sigmoid gate_of(vf x)
{
    return sigmoid_of(TWICE_ROOT * x * v_fma(CUBIC * x, x, v_set(1)));
}

ATT_INLINE vf v_gelu_tanh(vf x)
{
    return x * gate_of(x).s;
}

/* Beyond 12, where the slope is 0 or 1 to the last bit, x^2 could overflow. */
ATT_INLINE vf v_gelu_tanh_slope(vf x)
{
    vf c = v_min(v_set(12), v_max(v_set(-12), x));
    sigmoid of = gate_of(c);
    return of.s * v_fma(c * (of.e * of.s), TWICE_ROOT * v_fma(3 * CUBIC * c, c, v_set(1)), v_set(1));
}

static att_status gelu_tanh_run(const att_call *call)
{
    return pointwise(call, v_gelu_tanh);
}

ATT_SIMD_KERNEL(gelu_tanh, .bf16_in = 1, .bf16_out = 1, .run = gelu_tanh_run);

static att_status gelu_tanh_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_gelu_tanh_slope);
}

ATT_SIMD_KERNEL(gelu_tanh_grad, .bf16_in = 3, .bf16_out = 1, .run = gelu_tanh_grad_run);
