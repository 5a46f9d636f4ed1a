/* kernels/cpu/tier/pairs.h - pairs of bf16 in 32-bit lanes, the first in the lower half: operands of the dot product
 * instructions of processors with bf16. A vf holds pairs as raw bits. */
#ifndef ATT_KERNELS_CPU_TIER_PAIRS_H
#define ATT_KERNELS_CPU_TIER_PAIRS_H

#include "engine/kernels/cpu/tier/floats.h"

/* Stores the lanes, rounded, as bf16 elements [i, i + VW) of `to`; subnormal numbers may become zero. */
ATT_INLINE void v_put_halves(void *to, int64_t i, vf x)
{
    v_store_halves((bf16 *)to + i, x);
}

/* Elements [i, i + 2 VW) of bf16 x as pairs of adjacent elements; zeros in place of those from `end` on. */
ATT_INLINE vf v_get_pairs(const void *x, int64_t i, int64_t end)
{
    return v_load_pairs((const bf16 *)x + i, end - i < 2 * VW ? end - i : 2 * VW);
}

/* Pairs of elements [i, i + VW) of bf16 x with those `stride` elements later (stride 0: with zeros); zeros in place of
 * elements from `end` on, where `end` is the end of the first row. */
ATT_INLINE vf v_get_two_rows(const void *x, int64_t i, int64_t stride, int64_t end)
{
    vu first = (vu)v_get_until(x, i, end, true) >> 16;
    return (vf)(stride ? first | (vu)v_get_until(x, i + stride, end + stride, true) : first);
}

#endif
