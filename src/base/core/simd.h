/* core/simd.h - a vector of f32, as wide as the registers that the compiler's flags allow, and operations on it
 * that C's vector arithmetic lacks.
 *
 * All intrinsics are in one header per instruction set. Another one needs such a header (simd_portable.h says what it
 * defines), an #include at the end of this file, and a list of tiers in base/core/processor.h.
 *
 * A file in a folder tier/ is compiled once per tier, with -DATT_TIER=<name> and that tier's instructions. The headers
 * that it includes may define static functions only, and it defines only symbols that end in the tier's name.
 */
#ifndef ATT_CORE_SIMD_H
#define ATT_CORE_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/core/processor.h"

#define ATT_INLINE static inline __attribute__((always_inline))

#define ATT_PASTE_(a, b) a##_##b
#define ATT_PASTE(a, b) ATT_PASTE_(a, b)
/* ATT_TIERED(att_cpu_gelu) is att_cpu_gelu_avx512 in the AVX-512 object. */
#define ATT_TIERED(name) ATT_PASTE(name, ATT_TIER)
/* The features of the object's tier. */
#define ATT_TIER_FEATURES ATT_PASTE(ATT_FEATURES, ATT_TIER)

/* Number of lanes, and orders of lanes: those that interleave the first, or the last, halves of two vectors (a0 b0 a1
 * b1 ...), the same for two vectors of 64-bit lanes, and neighbours swapped (1 0 3 2 ...). */
#if defined(__AVX512F__)
enum { VW = 16 };
#define V_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define V_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define V_LANES_64 0, 1, 2, 3, 4, 5, 6, 7
#define V_LOW_64 0, 8, 1, 9, 2, 10, 3, 11
#define V_HIGH_64 4, 12, 5, 13, 6, 14, 7, 15
#define V_SWAPPED 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#elif defined(__AVX2__)
enum { VW = 8 };
#define V_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define V_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define V_LANES_64 0, 1, 2, 3
#define V_LOW_64 0, 4, 1, 5
#define V_HIGH_64 2, 6, 3, 7
#define V_SWAPPED 1, 0, 3, 2, 5, 4, 7, 6
#else
enum { VW = 4 };
#define V_LOW 0, 4, 1, 5
#define V_HIGH 2, 6, 3, 7
#define V_LANES_64 0, 1
#define V_LOW_64 0, 2
#define V_HIGH_64 1, 3
#define V_SWAPPED 1, 0, 3, 2
#endif

typedef uint16_t bf16;
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

/* x in lanes where keep is all ones, 0 where it is zero. */
ATT_INLINE vf v_where(vi keep, vf x)
{
    return (vf)(keep & (vi)x);
}

ATT_INLINE vf v_interleave_low(vf a, vf b)
{
    return __builtin_shufflevector(a, b, V_LOW);
}

ATT_INLINE vf v_interleave_high(vf a, vf b)
{
    return __builtin_shufflevector(a, b, V_HIGH);
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

/* Halves of pairs of bf16: the first is in the lower half of a 32-bit lane. A vf holds pairs as raw bits. */
ATT_INLINE vf v_first(vf pairs)
{
    return (vf)((vu)pairs << 16);
}

ATT_INLINE vf v_second(vf pairs)
{
    return (vf)((vu)pairs & 0xffff0000);
}

#if defined(__SSE2__)
#include "base/core/simd_x86_64.h"
#endif
#include "base/core/simd_portable.h"

#endif
