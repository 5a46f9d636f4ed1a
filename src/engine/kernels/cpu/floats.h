/* kernels/cpu/floats.h - elements that are f32 or bf16, chosen by `is_bf16`. With a constant `is_bf16`, inlining yields
 * loops for one type. Static functions only, so that tier objects can use it. */
#ifndef ATT_KERNELS_CPU_FLOATS_H
#define ATT_KERNELS_CPU_FLOATS_H

#include <string.h>

#include "base/core/simd.h"
#include "engine/backend/kernel.h"

static inline bool att_is_bf16(const att_desc *desc)
{
    return desc->dtype == ATT_BF16;
}

ATT_INLINE size_t att_float_size(bool is_bf16)
{
    return is_bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* Address of element i. */
ATT_INLINE const void *att_float_at(const void *x, int64_t i, bool is_bf16)
{
    return (const char *)x + (size_t)i * att_float_size(is_bf16);
}

ATT_INLINE float att_float_get(const void *x, int64_t i, bool is_bf16)
{
    if (!is_bf16)
        return ((const float *)x)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
ATT_INLINE void att_float_put(void *y, int64_t i, float value, bool is_bf16)
{
    if (!is_bf16) {
        ((float *)y)[i] = value;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    ((uint16_t *)y)[i] = (uint16_t)(value != value ? nan : rounded);
}

/* Copies x[from, from + count) to y[to, to + count), with conversion. */
static inline void att_float_move(const void *x, int64_t from, bool x_is_bf16, void *y, int64_t to, bool y_is_bf16,
                                  int64_t count)
{
    if (x_is_bf16 == y_is_bf16) {
        size_t size = att_float_size(y_is_bf16);
        memcpy((char *)y + (size_t)to * size, att_float_at(x, from, x_is_bf16), (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        att_float_put(y, to + i, att_float_get(x, from + i, x_is_bf16), y_is_bf16);
}

/* Sets y[to, to + count) to zero. */
static inline void att_float_clear(void *y, int64_t to, bool is_bf16, int64_t count)
{
    memset((char *)y + (size_t)to * att_float_size(is_bf16), 0, (size_t)count * att_float_size(is_bf16));
}

#endif
