/* Sums stay in registers, as LANES / VW vectors of VW integers. */
#include "data/tiered.h"

#include "base/core/simd.h"

enum { LANES = ATT_RESIZE_LANES, VECTORS = LANES / VW, HALF = 1 << (ATT_TAPS_FRACTION - 1) };

/* Computes LANES weighted sums over from[0], from[step], .., one term per weight. */
static inline void sum_lanes(const uint8_t *from, size_t step, const int32_t *weights, int length, uint8_t *out)
{
    vi sums[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        sums[v] = (vi){0} + HALF;
    for (int i = 0; i < length; i++)
        for (int v = 0; v < VECTORS; v++)
            sums[v] += v_load_bytes(from + (size_t)i * step + v * VW) * weights[i];
    for (int v = 0; v < VECTORS; v++)
        v_store_bytes(out + v * VW, sums[v] >> ATT_TAPS_FRACTION);
}

static uint8_t round_sum(int32_t sum)
{
    int32_t value = sum >> ATT_TAPS_FRACTION;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void horizontal(const uint8_t *lines, int left, const att_taps *taps, int count, uint8_t *out)
{
    for (int x = 0; x < count; x++)
        sum_lanes(lines + (size_t)(taps->first[x] - left) * LANES, LANES,
                  taps->weights + (size_t)x * (size_t)taps->room, taps->length[x], out + (size_t)x * LANES);
}

static void vertical(const uint8_t *lines, size_t stride, size_t count, const int32_t *weights, int length,
                     uint8_t *out)
{
    size_t begin = 0;
    for (; begin + LANES <= count; begin += LANES)
        sum_lanes(lines + begin, stride, weights, length, out + begin);
    for (; begin < count; begin++) {
        int32_t sum = HALF;
        for (int k = 0; k < length; k++)
            sum += lines[(size_t)k * stride + begin] * weights[k];
        out[begin] = round_sum(sum);
    }
}

const att_resize_functions ATT_TIERED(att_resize) = {horizontal, vertical};
