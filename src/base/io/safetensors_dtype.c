#include <string.h>

#include "base/io/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little endian, and elements are copied as they are"
#endif

size_t att_safetensors_dtype_size(att_safetensors_dtype dtype)
{
    static const size_t sizes[] = {
#define ELEMENT_SIZE(name, bytes) bytes,
        ATT_SAFETENSORS_DTYPE_LIST(ELEMENT_SIZE)
#undef ELEMENT_SIZE
    };
    return (size_t)dtype < sizeof(sizes) / sizeof(sizes[0]) ? sizes[dtype] : 0;
}

const char *att_safetensors_dtype_name(att_safetensors_dtype dtype)
{
    static const char *const names[] = {
#define ELEMENT_NAME(name, bytes) #name,
        ATT_SAFETENSORS_DTYPE_LIST(ELEMENT_NAME)
#undef ELEMENT_NAME
    };
    return (size_t)dtype < sizeof(names) / sizeof(names[0]) ? names[dtype] : "unknown";
}

att_safetensors_dtype att_safetensors_dtype_of(att_dtype dtype)
{
    switch (dtype) {
#define SAME_NAME(name, bytes, text) \
    case ATT_##name:                 \
        return ATT_SAFETENSORS_##name;
        ATT_DTYPE_LIST(SAME_NAME)
#undef SAME_NAME
    }
    return ATT_SAFETENSORS_F32;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* IEEE 754 binary16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits. */
static float f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1F, fraction = half & 0x3FF;
    if (exponent == 0x1F)
        return float_of_bits(sign | 0x7F800000 | fraction << 13);
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24F;
        return sign != 0 ? -magnitude : magnitude;
    }
    return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

static void convert_f16(const uint8_t *bytes, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof(half));
        out[i] = f16_to_f32(half);
    }
}

static void convert_bf16(const uint8_t *bytes, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t upper;
        memcpy(&upper, bytes + 2 * i, sizeof(upper));
        out[i] = float_of_bits((uint32_t)upper << 16);
    }
}

static void convert_f64(const uint8_t *bytes, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, bytes + 8 * i, sizeof(value));
        out[i] = (float)value;
    }
}

bool att_safetensors_to_f32(att_safetensors_dtype dtype, const uint8_t *bytes, float *out, int64_t count)
{
    switch (dtype) {
    case ATT_SAFETENSORS_F32:
        if (count > 0)
            memcpy(out, bytes, (size_t)count * sizeof(*out));
        return true;
    case ATT_SAFETENSORS_F16:
        convert_f16(bytes, out, count);
        return true;
    case ATT_SAFETENSORS_BF16:
        convert_bf16(bytes, out, count);
        return true;
    case ATT_SAFETENSORS_F64:
        convert_f64(bytes, out, count);
        return true;
    default:
        return false;
    }
}
