/* core/simd_x86_64.h - the functions of simd_portable.h with the intrinsics of x86-64: SSE2, AVX2 with FMA,
 * AVX-512 (F, BW, DQ and VL) or AVX512_BF16, whatever the compiler's flags allow. Included by core/simd.h. */
#include <immintrin.h>

/* MM(max_ps) is _mm512_max_ps, _mm256_max_ps or _mm_max_ps. */
#if defined(__AVX512F__)
#define V_REGISTERS 32
#define V_HAS_MASKS 1
#define MM(name) _mm512_##name
typedef __m512 mm_ps;
typedef __m512i mm_int;
#elif defined(__AVX2__)
#define V_REGISTERS 16
#define V_HAS_MASKS 0
#define MM(name) _mm256_##name
typedef __m256 mm_ps;
typedef __m256i mm_int;
#else
#define V_REGISTERS 16
#define V_HAS_MASKS 0
#define MM(name) _mm_##name
typedef __m128 mm_ps;
typedef __m128i mm_int;
#endif

#if defined(__AVX512BF16__)
#define V_MULTIPLIES_PAIRS 1
#else
#define V_MULTIPLIES_PAIRS 0
#endif

ATT_INLINE unsigned v_enter_flush(void)
{
    enum { FLUSH_RESULTS = 0x8000, OPERANDS_ARE_ZERO = 0x40 };
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | FLUSH_RESULTS | OPERANDS_ARE_ZERO);
    return before;
}

ATT_INLINE void v_leave_flush(unsigned before)
{
    _mm_setcsr(before);
}

ATT_INLINE vf v_set(float x)
{
    return (vf)MM(set1_ps)(x);
}

ATT_INLINE vf v_fma(vf a, vf b, vf c)
{
#if defined(__FMA__)
    return (vf)MM(fmadd_ps)((mm_ps)a, (mm_ps)b, (mm_ps)c);
#else
    return a * b + c;
#endif
}

ATT_INLINE vf v_max(vf a, vf b)
{
    return (vf)MM(max_ps)((mm_ps)a, (mm_ps)b);
}

ATT_INLINE vf v_min(vf a, vf b)
{
    return (vf)MM(min_ps)((mm_ps)a, (mm_ps)b);
}

ATT_INLINE vf v_sqrt(vf x)
{
    return (vf)MM(sqrt_ps)((mm_ps)x);
}

ATT_INLINE vu64 v_multiply_low(vu64 a, vu64 b)
{
    return (vu64)MM(mul_epu32)((mm_int)a, (mm_int)b);
}

ATT_INLINE unsigned v_bits(vi lanes)
{
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)lanes);
#else
    return (unsigned)MM(movemask_ps)((mm_ps)lanes);
#endif
}

ATT_INLINE __m128 v_half(__m128 x)
{
    return _mm_movehl_ps(x, x);
}

ATT_INLINE __m128 v_odd(__m128 x)
{
    return _mm_shuffle_ps(x, x, 1);
}

ATT_INLINE float v_sum(vf x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
#if defined(__AVX2__)
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
#else
    __m128 four = (__m128)x;
#endif
    __m128 two = _mm_add_ps(four, v_half(four));
    return _mm_cvtss_f32(_mm_add_ss(two, v_odd(two)));
#endif
}

ATT_INLINE float v_largest(vf x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x);
#else
#if defined(__AVX2__)
    __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
#else
    __m128 four = (__m128)x;
#endif
    __m128 two = _mm_max_ps(four, v_half(four));
    return _mm_cvtss_f32(_mm_max_ss(two, v_odd(two)));
#endif
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

ATT_INLINE vi v_load_bytes(const uint8_t *from)
{
#if defined(__AVX512F__)
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    int32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    __m128i zero = _mm_setzero_si128();
    return (vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero), zero);
#endif
}

ATT_INLINE void v_store_bytes(uint8_t *to, vi x)
{
#if defined(__AVX512F__)
    __m512i positive = _mm512_max_epi32((__m512i)x, _mm512_setzero_si512());
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtusepi32_epi8(positive));
#elif defined(__AVX2__)
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(words, words));
#else
    __m128i words = _mm_packs_epi32((__m128i)x, _mm_setzero_si128());
    int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(to, &bytes, sizeof bytes);
#endif
}

/* --- bf16 --------------------------------------------------------------------------------------------------------- */

ATT_INLINE vf v_load_bf16(const bf16 *from)
{
#if defined(__AVX512F__)
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from)), 16);
#elif defined(__AVX2__)
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from)), 16);
#else
    return (vf)_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)(const void *)from));
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
#else
    __m128i high = (__m128i)((vi)x >> 16);
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi32(high, high));
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

/* --- masks of lanes ----------------------------------------------------------------------------------------------- */

#if V_HAS_MASKS
typedef __mmask16 v_mask;

ATT_INLINE vf v_load_part(const float *from, int64_t count)
{
    return (vf)_mm512_maskz_loadu_ps((__mmask16)(0xffffu >> (VW - count)), from);
}

ATT_INLINE void v_store_part(float *to, vf x, int64_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)(0xffffu >> (VW - count)), (__m512)x);
}

ATT_INLINE vf v_load_bf16_part(const bf16 *from, int64_t count)
{
    __m256i lanes = _mm256_maskz_loadu_epi16((__mmask16)(0xffffu >> (VW - count)), from);
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(lanes), 16);
}

ATT_INLINE vf v_load_pairs(const bf16 *from, int64_t count)
{
    return (vf)_mm512_maskz_loadu_epi16(0xffffffffu >> (2 * VW - count), from);
}

ATT_INLINE v_mask v_not_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NLT_UQ);
}

ATT_INLINE vf v_scale_where(v_mask keep, vf x, vf shifted)
{
    return (vf)_mm512_maskz_scalef_ps(keep, (__m512)x, (__m512)(shifted - v_set(0x1.8p23f)));
}

#endif

/* --- products of pairs of bf16 ------------------------------------------------------------------------------------ */

#if V_MULTIPLIES_PAIRS
ATT_INLINE vf v_dot(vf a, vf b, vf sum)
{
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

ATT_INLINE vf v_pair(vf first, vf second)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (vf)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

ATT_INLINE void v_store_halves(bf16 *to, vf x)
{
    _mm256_storeu_si256((__m256i *)(void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)x));
}

ATT_INLINE void v_store_bf16_pair(bf16 *to, vf a, vf b)
{
    if (__builtin_expect((v_subnormal(a) | v_subnormal(b)) == 0, 1)) {
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a));
        return;
    }
    v_store_bf16(to, a);
    v_store_bf16(to + VW, b);
}

#endif
