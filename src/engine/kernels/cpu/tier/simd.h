/* kernels/cpu/tier/simd.h - a vector of f32, as wide as the tier's registers, and operations on it that C's vector
 * arithmetic lacks.
 *
 * A file in tier/ is compiled once per tier, with -DATT_TIER=<name> and that tier's instruction set. The headers that
 * it includes may define static functions only, and it defines only symbols that end in the tier's name.
 */
#ifndef ATT_KERNELS_CPU_TIER_SIMD_H
#define ATT_KERNELS_CPU_TIER_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#else
#include <math.h>
#endif

#include "engine/kernels/cpu/floats.h"

#define ATT_PASTE_(a, b) a##_##b
#define ATT_PASTE(a, b) ATT_PASTE_(a, b)
/* ATT_TIERED(att_cpu_gelu) is att_cpu_gelu_avx512 in the AVX-512 object. */
#define ATT_TIERED(name) ATT_PASTE(name, ATT_TIER)
#define ATT_TIER_VALUE_baseline ATT_TIER_BASELINE
#define ATT_TIER_VALUE_avx2 ATT_TIER_AVX2
#define ATT_TIER_VALUE_avx512 ATT_TIER_AVX512
#define ATT_TIER_VALUE_avx512_bf16 ATT_TIER_AVX512_BF16
#define ATT_TIER_VALUE ATT_PASTE(ATT_TIER_VALUE, ATT_TIER)

#if defined(__AVX512F__)
enum { VW = 16 };
#elif defined(__AVX2__)
enum { VW = 8 };
#else
enum { VW = 4 };
#endif

typedef float vf __attribute__((vector_size(4 * VW)));
typedef int32_t vi __attribute__((vector_size(4 * VW)));
typedef uint32_t vu __attribute__((vector_size(4 * VW)));
typedef uint64_t vu64 __attribute__((vector_size(4 * VW)));
typedef float vf_unaligned __attribute__((vector_size(4 * VW), may_alias, aligned(4)));

static inline int64_t whole_vectors(int64_t count)
{
    return (count + VW - 1) / VW * VW;
}

ATT_INLINE vf v_load(const float *from)
{
    return *(const vf_unaligned *)from;
}

ATT_INLINE void v_store(float *to, vf x)
{
    *(vf_unaligned *)to = x;
}

ATT_INLINE vf v_set(float x)
{
#if defined(__AVX512F__)
    return (vf)_mm512_set1_ps(x);
#else
    return x - (vf){0};
#endif
}

/* The first `count` (1..VW) elements; 0 in the other lanes. */
ATT_INLINE vf v_load_part(const float *from, int64_t count)
{
#if defined(__AVX512F__)
    return (vf)_mm512_maskz_loadu_ps((__mmask16)(0xffffu >> (VW - count)), from);
#else
    vf x = {0};
    memcpy(&x, from, (size_t)count * sizeof(float));
    return x;
#endif
}

ATT_INLINE void v_store_part(float *to, vf x, int64_t count)
{
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)(0xffffu >> (VW - count)), (__m512)x);
#else
    memcpy(to, &x, (size_t)count * sizeof(float));
#endif
}

/* a b + c, rounded once if the tier has FMA. */
ATT_INLINE vf v_fma(vf a, vf b, vf c)
{
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* If either operand is NaN, the result is `b`. */
ATT_INLINE vf v_max(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    vi greater = a > b;
    return (vf)((greater & (vi)a) | (~greater & (vi)b));
#endif
}

ATT_INLINE vf v_min(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    vi less = a < b;
    return (vf)((less & (vi)a) | (~less & (vi)b));
#endif
}

ATT_INLINE vf v_sqrt(vf x)
{
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (vf)_mm_sqrt_ps((__m128)x);
#else
    for (int i = 0; i < VW; i++)
        x[i] = sqrtf(x[i]);
    return x;
#endif
}

/* x in lanes where keep is all ones, 0 where it is zero. */
ATT_INLINE vf v_where(vi keep, vf x)
{
    return (vf)(keep & (vi)x);
}

/* The 64-bit products of the lower halves of the lanes. */
ATT_INLINE vu64 v_multiply_low(vu64 a, vu64 b)
{
#if defined(__AVX512F__)
    return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vu64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

/* Bit i is set if lane i of a comparison's result is set. */
ATT_INLINE unsigned v_bits(vi lanes)
{
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)lanes);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps((__m256)lanes);
#elif defined(__SSE2__)
    return (unsigned)_mm_movemask_ps((__m128)lanes);
#else
    unsigned bits = 0;
    for (int i = 0; i < VW; i++)
        bits |= (unsigned)(lanes[i] != 0) << i;
    return bits;
#endif
}

/* Interleaves the first, or the last, halves of two vectors: a0 b0 a1 b1 ... */
#if defined(__AVX512F__)
#define V_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define V_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__)
#define V_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define V_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define V_LOW 0, 4, 1, 5
#define V_HIGH 2, 6, 3, 7
#endif

ATT_INLINE vf v_interleave_low(vf a, vf b)
{
    return __builtin_shufflevector(a, b, V_LOW);
}

ATT_INLINE vf v_interleave_high(vf a, vf b)
{
    return __builtin_shufflevector(a, b, V_HIGH);
}

#if defined(__SSE2__)
ATT_INLINE __m128 v_half(__m128 x)
{
    return _mm_movehl_ps(x, x);
}

ATT_INLINE __m128 v_odd(__m128 x)
{
    return _mm_shuffle_ps(x, x, 1);
}
#endif

/* Sum of the lanes, always in the same order. */
ATT_INLINE float v_sum(vf x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#elif defined(__SSE2__)
#if defined(__AVX2__)
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
#else
    __m128 four = (__m128)x;
#endif
    __m128 two = _mm_add_ps(four, v_half(four));
    return _mm_cvtss_f32(_mm_add_ss(two, v_odd(two)));
#else
    float sum = 0;
    for (int i = 0; i < VW; i++)
        sum += x[i];
    return sum;
#endif
}

/* Lane i is the sum of the lanes of x[i], always in the same order. Costs about a third of VW calls of v_sum(). */
ATT_INLINE vf v_sum_each(const vf x[VW])
{
    vf sums[VW];
    for (int i = 0; i < VW; i++)
        sums[i] = x[i];
    /* Lanes of sums[i] belong to x[i], x[i + half], x[i + 2 half], ... in turn. */
    for (int half = VW / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] = v_interleave_low(sums[i], sums[i + half]) + v_interleave_high(sums[i], sums[i + half]);
    return sums[0];
}

/* The largest lane; NaN lanes may be ignored. */
ATT_INLINE float v_largest(vf x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x);
#elif defined(__SSE2__)
#if defined(__AVX2__)
    __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
#else
    __m128 four = (__m128)x;
#endif
    __m128 two = _mm_max_ps(four, v_half(four));
    return _mm_cvtss_f32(_mm_max_ss(two, v_odd(two)));
#else
    float largest = x[0];
    for (int i = 1; i < VW; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
#endif
}

#endif
