/* kernels/ref/element.h - loads and stores elements of any type as f64; reference kernels compute in f64 only. */
#ifndef ATT_KERNELS_REF_ELEMENT_H
#define ATT_KERNELS_REF_ELEMENT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <attscope/tensor.h>

static inline double att_bf16_load(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Rounds to f32, then to bf16, to nearest, ties to even. */
static inline uint16_t att_bf16_store(double value)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Element i of `data`, of type dtype. */
static inline double att_element_load(att_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case ATT_F32:
        return ((const float *)data)[i];
    case ATT_F64:
        return ((const double *)data)[i];
    case ATT_BF16:
        return att_bf16_load(((const uint16_t *)data)[i]);
    case ATT_I32:
        return ((const int32_t *)data)[i];
    case ATT_U8:
        return ((const uint8_t *)data)[i];
    }
    return NAN;
}

static inline void att_element_store(att_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case ATT_F32:
        ((float *)data)[i] = (float)value;
        break;
    case ATT_F64:
        ((double *)data)[i] = value;
        break;
    case ATT_BF16:
        ((uint16_t *)data)[i] = att_bf16_store(value);
        break;
    case ATT_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case ATT_U8:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    }
}

/* Adds to an element of a summed output. */
static inline void att_element_add(att_dtype dtype, void *data, int64_t i, double value)
{
    att_element_store(dtype, data, i, att_element_load(dtype, data, i) + value);
}

#endif
