/* kernels/cpu/tier/floats.h - loads and stores vectors of elements that are f32 or bf16, chosen by `is_bf16` as in
 * kernels/cpu/floats.h.
 *
 * A kernel is one inlined function of such flags. It is called with constant flags for the combinations that occur in
 * networks, which compiles fast code, and with variable flags for all others.
 */
#ifndef ATT_KERNELS_CPU_TIER_FLOATS_H
#define ATT_KERNELS_CPU_TIER_FLOATS_H

#include "engine/kernels/cpu/tier/simd.h"

typedef uint16_t bf16;
typedef uint32_t vu __attribute__((vector_size(4 * VW)));

ATT_INLINE vf v_load_bf16(const bf16 *from)
{
#if defined(__AVX512F__)
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from)), 16);
#elif defined(__AVX2__)
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from)), 16);
#elif defined(__SSE2__)
    return (vf)_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    vf x;
    for (int i = 0; i < VW; i++)
        x[i] = att_float_get(from, i, true);
    return x;
#endif
}

/* Stores the upper halves of 32-bit lanes. */
ATT_INLINE void v_store_upper(bf16 *to, vu x)
{
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16((__m512i)(x >> 16)));
#elif defined(__AVX2__)
    __m256i high = (__m256i)((vi)x >> 16); /* signed, so that packing keeps every bit */
    _mm_storeu_si128((__m128i *)(void *)to,
                     _mm_packs_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
#elif defined(__SSE2__)
    __m128i high = (__m128i)((vi)x >> 16);
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi32(high, high));
#else
    for (int i = 0; i < VW; i++)
        to[i] = (bf16)(x[i] >> 16);
#endif
}

#if defined(__AVX512BF16__)
/* Lanes that the rounding instructions would flush to zero. */
ATT_INLINE __mmask16 v_subnormal(vf x)
{
    enum { SUBNORMAL = 0x20 };
    return _mm512_fpclass_ps_mask((__m512)x, SUBNORMAL);
}
#endif

/* Rounds to nearest, ties to even; NaN stays NaN. */
ATT_INLINE void v_store_bf16(bf16 *to, vf x)
{
#if defined(__AVX512BF16__)
    if (__builtin_expect(v_subnormal(x) == 0, 1)) {
        _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)x));
        return;
    }
#endif
    vu bits = (vu)x, rounded = bits + 0x7fff + (bits >> 16 & 1);
#if defined(__AVX512F__)
    __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
    v_store_upper(to, (vu)_mm512_mask_or_epi32((__m512i)rounded, nan, (__m512i)bits, _mm512_set1_epi32(0x400000)));
#else
    vu nan = (vu)(x != x);
    v_store_upper(to, (rounded & ~nan) | ((bits | 0x400000) & nan));
#endif
}

/* Stores two vectors with a single branch, which is the main cost in short loops. */
ATT_INLINE void v_store_bf16_pair(bf16 *to, vf a, vf b)
{
#if defined(__AVX512BF16__)
    if (__builtin_expect((v_subnormal(a) | v_subnormal(b)) == 0, 1)) {
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a));
        return;
    }
#endif
    v_store_bf16(to, a);
    v_store_bf16(to + VW, b);
}

/* Elements [i, i + VW). */
ATT_INLINE vf v_get(const void *x, int64_t i, bool is_bf16)
{
    return is_bf16 ? v_load_bf16((const bf16 *)x + i) : v_load((const float *)x + i);
}

ATT_INLINE void v_put(void *y, int64_t i, vf value, bool is_bf16)
{
    if (is_bf16)
        v_store_bf16((bf16 *)y + i, value);
    else
        v_store((float *)y + i, value);
}

/* Elements [i, i + 2 VW). */
ATT_INLINE void v_put_pair(void *y, int64_t i, vf a, vf b, bool is_bf16)
{
    if (is_bf16) {
        v_store_bf16_pair((bf16 *)y + i, a, b);
        return;
    }
    v_store((float *)y + i, a);
    v_store((float *)y + i + VW, b);
}

/* Elements [i, i + count), count 1..VW; 0 in the other lanes. */
ATT_INLINE vf v_get_part(const void *x, int64_t i, int64_t count, bool is_bf16)
{
    if (!is_bf16)
        return v_load_part((const float *)x + i, count);
#if defined(__AVX512BW__)
    __m256i lanes = _mm256_maskz_loadu_epi16((__mmask16)(0xffffu >> (VW - count)), (const bf16 *)x + i);
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(lanes), 16);
#else
    bf16 lane[VW] = {0};
    memcpy(lane, (const bf16 *)x + i, (size_t)count * sizeof *lane);
    return v_load_bf16(lane);
#endif
}

ATT_INLINE void v_put_part(void *y, int64_t i, vf value, int64_t count, bool is_bf16)
{
    if (!is_bf16) {
        v_store_part((float *)y + i, value, count);
        return;
    }
    bf16 lane[VW];
    v_store_bf16(lane, value);
    memcpy((bf16 *)y + i, lane, (size_t)count * sizeof *lane);
}

/* Elements [i, i + VW); 0 in place of those from `end` on. */
ATT_INLINE vf v_get_until(const void *x, int64_t i, int64_t end, bool is_bf16)
{
    return end - i >= VW ? v_get(x, i, is_bf16) : v_get_part(x, i, end - i, is_bf16);
}

ATT_INLINE void v_put_until(void *y, int64_t i, int64_t end, vf value, bool is_bf16)
{
    if (end - i >= VW)
        v_put(y, i, value, is_bf16);
    else
        v_put_part(y, i, value, end - i, is_bf16);
}

#endif
