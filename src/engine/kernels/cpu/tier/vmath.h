/* kernels/cpu/tier/vmath.h - exponential, logarithm, GELU and hyperbolic tangent of a vector. Coefficients are minimax
 * fits by iteratively reweighted least squares, computed for this file. tests/engine/kernels/test_cpu_extremes.c checks
 * the errors stated here for GELU and tanh. NaN stays NaN. */
#ifndef ATT_KERNELS_CPU_TIER_VMATH_H
#define ATT_KERNELS_CPU_TIER_VMATH_H

#include "base/core/simd.h"

/* e^x for x <= 88, relative error at most 2e-7; 0 below -87.3, since products of subnormal numbers are a hundred times
 * slower. x = n ln 2 + r, |r| <= ln(2) / 2; e^r is a polynomial of degree 5. Adding 1.5 2^23 to x / ln 2 rounds it to
 * the integer n, which is then in the low bits of the sum. */
ATT_INLINE vf v_exp(vf x)
{
    const vf lowest = v_set(-87.3f);
    v_mask keep = v_not_less(x, lowest);
    x = v_max(lowest, x);
    const vf shift = v_set(0x1.8p23f);
    vf shifted = v_fma(x, v_set(0x1.715476p0f), shift);
    vf n = shifted - shift;
    vf r = v_fma(n, v_set(-0x1.62e4p-1f), x);
    r = v_fma(n, v_set(-0x1.7f7d1cp-20f), r);
    vf p = v_fma(r, v_set(0.00831252505f), v_set(0.0418901134f));
    p = v_fma(p, r, v_set(0.166671145f));
    p = v_fma(p, r, v_set(0.499992318f));
    p = v_fma(p, r, v_set(1.0f));
    p = v_fma(p, r, v_set(1.0f));
    return v_scale_where(keep, p, shifted);
}

/* ln(1 + x) for x >= 0, relative error at most 3e-7. 1 + x = 2^k m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s)
 * with s = (m - 1) / (m + 1), as a series in s^2. What 1 + x loses by rounding is added at the end. */
ATT_INLINE vf v_log1p(vf x)
{
    const vi root = (vi)v_set(0x1.6a09e6p-1f); /* sqrt(1/2) */
    vf sum = x + 1.0f, lost = (x - (sum - 1.0f)) / sum;
    vi k = ((vi)sum - root) >> 23;
    vf m = (vf)((vi)sum - (k << 23)), s = (m - 1.0f) / (m + 1.0f), z = s * s;
    vf series = v_fma(z, v_set(0x1.c71c72p-4f), v_set(0x1.24924ap-3f));
    series = v_fma(series, z, v_set(0x1.99999ap-3f));
    series = v_fma(series, z, v_set(0x1.555556p-2f));
    vf log_m = v_fma(2.0f * s * z, series, 2.0f * s);
    vf whole = __builtin_convertvector(k, vf);
    return v_fma(whole, v_set(0x1.62e43p-1f), log_m + lost);
}

/* x P(x^2) / Q(x^2) with x clamped to [-limit, limit]. */
ATT_INLINE vf v_odd_rational(vf x, float limit, const float p[6], const float q[5])
{
    vf c = v_min(v_set(limit), v_max(v_set(-limit), x));
    vf u = c * c;
    vf top = v_set(p[5]), bottom = v_set(q[4]);
    for (int i = 4; i >= 0; i--)
        top = v_fma(top, u, v_set(p[i]));
    for (int i = 3; i >= 0; i--)
        bottom = v_fma(bottom, u, v_set(q[i]));
    bottom = v_fma(bottom, u, v_set(1.0f));
    return c * (top / bottom);
}

/* x Phi(x), Phi the normal distribution function: absolute error at most 6e-7 for |x| <= 3, 4e-7 |x| beyond.
 * Phi(x) - 1/2 by an odd rational function; below -5.5 the result is 0. */
ATT_INLINE vf v_gelu(vf x)
{
    static const float p[6] = {0.398942009f,    0.0351072314f,   0.0047592739f,
                               0.000182453285f, 6.52330875e-06f, 2.22177137e-08f};
    static const float q[5] = {0.254664531f, 0.0293780147f, 0.00196026313f, 7.84530884e-05f, 1.19487726e-06f};
    vf y = x * (v_odd_rational(x, 5.5f, p, q) + 0.5f);
    return v_where(~(x < v_set(-5.5f)), y);
}

/* d/dx x Phi(x) = Phi(x) + x phi(x): absolute error at most 5e-7. */
ATT_INLINE vf v_gelu_slope(vf x)
{
    static const float p[6] = {0.797884689f,   -0.0307659867f, 0.0142108021f,
                               2.3762891e-05f, 3.5852066e-05f, 1.90991478e-07f};
    static const float q[5] = {0.294778228f, 0.0410565269f, 0.0035282802f, 0.000193360794f, 8.89059106e-06f};
    return v_odd_rational(x, 6.0f, p, q) + 0.5f;
}

/* tanh x: relative error at most 5e-7; the result is in [-1, 1]. */
ATT_INLINE vf v_tanh(vf x)
{
    static const float p[6] = {1.0f, 0.140992165f, 0.00442595873f, 4.22739759e-05f, 1.11177364e-07f, 3.67451174e-11f};
    static const float q[5] = {0.474325508f, 0.0292011257f, 0.000500836002f, 2.60387628e-06f, 2.95122282e-09f};
    return v_min(v_set(1.0f), v_max(v_set(-1.0f), v_odd_rational(x, 9.02f, p, q)));
}

#endif
