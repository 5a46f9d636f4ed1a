/* core/simd_portable.h - operations without intrinsics, for all that the instruction set lacks. The comments here
 * say what the functions do on every instruction set. Included by core/simd.h.
 *
 * Without a header for the instruction set, every function is from here. Such a header defines V_REGISTERS, the number
 * of vector registers, V_HAS_MASKS and V_MULTIPLIES_PAIRS. Where these are 0, functions that need masks of lanes, or
 * products of pairs of bf16, are from here.
 */
#if !defined(V_REGISTERS)
#include <math.h>

#define V_REGISTERS 16
#define V_HAS_MASKS 0
#define V_MULTIPLIES_PAIRS 0 /* otherwise v_dot() is one instruction. If not, f32 converted once is faster */

/* While subnormal numbers count as zero, the processor is in a mode that v_leave_flush() ends. Returns the mode before.
 */
ATT_INLINE unsigned v_enter_flush(void)
{
    return 0;
}

ATT_INLINE void v_leave_flush(unsigned before)
{
    (void)before;
}

ATT_INLINE vf v_set(float x)
{
    return x - (vf){0};
}

/* a b + c, rounded once if the processor has FMA. */
ATT_INLINE vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

/* If either operand is NaN, the result is `b`. */
ATT_INLINE vf v_max(vf a, vf b)
{
    vi greater = a > b;
    return (vf)((greater & (vi)a) | (~greater & (vi)b));
}

ATT_INLINE vf v_min(vf a, vf b)
{
    vi less = a < b;
    return (vf)((less & (vi)a) | (~less & (vi)b));
}

ATT_INLINE vf v_sqrt(vf x)
{
    for (int i = 0; i < VW; i++)
        x[i] = sqrtf(x[i]);
    return x;
}

/* The 64-bit products of the lower halves of the lanes. */
ATT_INLINE vu64 v_multiply_low(vu64 a, vu64 b)
{
    return (a & 0xffffffffu) * (b & 0xffffffffu);
}

/* Bit i is set if lane i of a comparison's result is set. */
ATT_INLINE unsigned v_bits(vi lanes)
{
    unsigned bits = 0;
    for (int i = 0; i < VW; i++)
        bits |= (unsigned)(lanes[i] != 0) << i;
    return bits;
}

/* Sum of the lanes, always in the same order. */
ATT_INLINE float v_sum(vf x)
{
    float sum = 0;
    for (int i = 0; i < VW; i++)
        sum += x[i];
    return sum;
}

/* The largest lane; NaN lanes may be ignored. */
ATT_INLINE float v_largest(vf x)
{
    float largest = x[0];
    for (int i = 1; i < VW; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

ATT_INLINE vi v_load_bytes(const uint8_t *from)
{
    vi x = {0};
    for (int i = 0; i < VW; i++)
        x[i] = from[i];
    return x;
}

/* Stores the lanes, limited to 0..255. */
ATT_INLINE void v_store_bytes(uint8_t *to, vi x)
{
    for (int i = 0; i < VW; i++)
        to[i] = (uint8_t)(x[i] < 0 ? 0 : x[i] > 255 ? 255 : x[i]);
}

/* --- bf16 --------------------------------------------------------------------------------------------------------- */

ATT_INLINE vf v_load_bf16(const bf16 *from)
{
    vu x = {0};
    for (int i = 0; i < VW; i++)
        x[i] = (uint32_t)from[i] << 16;
    return (vf)x;
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
ATT_INLINE void v_store_bf16(bf16 *to, vf x)
{
    vu bits = (vu)x, rounded = bits + 0x7fff + (bits >> 16 & 1), nan = (vu)(x != x);
    rounded = (rounded & ~nan) | ((bits | 0x400000) & nan);
    for (int i = 0; i < VW; i++)
        to[i] = (bf16)(rounded[i] >> 16);
}

#endif

/* --- without masks ------------------------------------------------------------------------------------------------ */

#if !V_HAS_MASKS
/* The result of v_not_less(). */
typedef vi v_mask;

/* The first `count` (1..VW) elements; 0 in the other lanes. */
ATT_INLINE vf v_load_part(const float *from, int64_t count)
{
    vf x = {0};
    memcpy(&x, from, (size_t)count * sizeof(float));
    return x;
}

ATT_INLINE void v_store_part(float *to, vf x, int64_t count)
{
    memcpy(to, &x, (size_t)count * sizeof(float));
}

/* The first `count` (1..VW) elements; 0 in the other lanes. */
ATT_INLINE vf v_load_bf16_part(const bf16 *from, int64_t count)
{
    bf16 lane[VW] = {0};
    memcpy(lane, from, (size_t)count * sizeof *lane);
    return v_load_bf16(lane);
}

/* The first `count` (1..2 VW) elements as pairs of adjacent elements; zeros in place of the others. */
ATT_INLINE vf v_load_pairs(const bf16 *from, int64_t count)
{
    vf pairs = {0};
    memcpy(&pairs, from, (size_t)count * sizeof(bf16));
    return pairs;
}

/* Lanes where not a < b, which includes NaN. */
ATT_INLINE v_mask v_not_less(vf a, vf b)
{
    return ~(a < b);
}

/* 2^n x in the lanes of `keep`, 0 in the others. n: integers in -126..127, given as shifted = 1.5 2^23 + n. */
ATT_INLINE vf v_scale_where(v_mask keep, vf x, vf shifted)
{
    return v_where(keep, x * (vf)(((vi)shifted + 127) << 23));
}

#endif

/* --- without products of pairs of bf16 ---------------------------------------------------------------------------- */

#if !V_MULTIPLIES_PAIRS
/* sum + the products of both halves. The instruction treats subnormal numbers as zero. */
ATT_INLINE vf v_dot(vf a, vf b, vf sum)
{
    return v_fma(v_first(a), v_first(b), v_fma(v_second(a), v_second(b), sum));
}

/* Pairs of the lanes of both vectors, rounded; subnormal numbers may become zero. */
ATT_INLINE vf v_pair(vf first, vf second)
{
    bf16 low[VW], high[VW];
    v_store_bf16(low, first);
    v_store_bf16(high, second);
    return (vf)((vu)v_load_bf16(low) >> 16 | (vu)v_load_bf16(high));
}

/* Stores the lanes, rounded; subnormal numbers may become zero. */
ATT_INLINE void v_store_halves(bf16 *to, vf x)
{
    v_store_bf16(to, x);
}

/* Stores two vectors with a single branch, which is the main cost in short loops. */
ATT_INLINE void v_store_bf16_pair(bf16 *to, vf a, vf b)
{
    v_store_bf16(to, a);
    v_store_bf16(to + VW, b);
}

#endif
