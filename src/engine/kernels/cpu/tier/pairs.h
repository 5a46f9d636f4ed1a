/* kernels/cpu/tier/pairs.h - pairs of bf16 in 32-bit lanes, the first in the lower half: operands of the dot product
 * instructions of processors with bf16. A vf holds pairs as raw bits. */
#ifndef ATT_KERNELS_CPU_TIER_PAIRS_H
#define ATT_KERNELS_CPU_TIER_PAIRS_H

#include "engine/kernels/cpu/tier/floats.h"

/* Whether v_dot() is one instruction. Without it, converting to f32 once and multiplying f32 is faster. */
#if defined(__AVX512BF16__)
enum { V_MULTIPLIES_PAIRS = 1 };
#else
enum { V_MULTIPLIES_PAIRS = 0 };
#endif

ATT_INLINE vf v_first(vf pairs)
{
    return (vf)((vu)pairs << 16);
}

ATT_INLINE vf v_second(vf pairs)
{
    return (vf)((vu)pairs & 0xffff0000);
}

/* sum + the products of both halves. The instruction treats subnormal numbers as zero. */
ATT_INLINE vf v_dot(vf a, vf b, vf sum)
{
#if defined(__AVX512BF16__)
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    return v_fma(v_first(a), v_first(b), v_fma(v_second(a), v_second(b), sum));
#endif
}

/* Pairs of the lanes of both vectors, rounded; subnormal numbers may become zero. */
ATT_INLINE vf v_pair(vf first, vf second)
{
#if defined(__AVX512BF16__)
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (vf)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
#else
    bf16 low[VW], high[VW];
    v_store_bf16(low, first);
    v_store_bf16(high, second);
    return (vf)((vu)v_load_bf16(low) >> 16 | (vu)v_load_bf16(high));
#endif
}

/* Stores the lanes, rounded, as bf16 elements [i, i + VW) of `to`; subnormal numbers may become zero. */
ATT_INLINE void v_put_halves(void *to, int64_t i, vf x)
{
#if defined(__AVX512BF16__)
    _mm256_storeu_si256((__m256i *)(void *)((bf16 *)to + i), (__m256i)_mm512_cvtneps_pbh((__m512)x));
#else
    v_store_bf16((bf16 *)to + i, x);
#endif
}

/* Elements [i, i + 2 VW) of bf16 x as pairs of adjacent elements; zeros in place of those from `end` on. */
ATT_INLINE vf v_get_pairs(const void *x, int64_t i, int64_t end)
{
    int64_t count = end - i < 2 * VW ? end - i : 2 * VW;
#if defined(__AVX512BW__)
    return (vf)_mm512_maskz_loadu_epi16(0xffffffffu >> (2 * VW - count), (const bf16 *)x + i);
#else
    vf pairs = {0};
    memcpy(&pairs, (const bf16 *)x + i, (size_t)count * sizeof(bf16));
    return pairs;
#endif
}

/* Pairs of elements [i, i + VW) of bf16 x with those `stride` elements later (stride 0: with zeros); zeros in place of
 * elements from `end` on, where `end` is the end of the first row. */
ATT_INLINE vf v_get_two_rows(const void *x, int64_t i, int64_t stride, int64_t end)
{
    vu first = (vu)v_get_until(x, i, end, true) >> 16;
    return (vf)(stride ? first | (vu)v_get_until(x, i + stride, end + stride, true) : first);
}

#endif
