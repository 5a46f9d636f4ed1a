/* Sums stay in registers, as LANES / VW vectors of VW integers. */
#include "data/tiered.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif
#include <string.h>

#if defined(__AVX512F__)
enum { VW = 16 };
#elif defined(__AVX2__)
enum { VW = 8 };
#else
enum { VW = 4 };
#endif

enum { LANES = ATT_RESIZE_LANES, VECTORS = LANES / VW, HALF = 1 << (ATT_TAPS_FRACTION - 1) };

typedef int32_t vi __attribute__((vector_size(4 * VW)));

static inline vi load(const uint8_t *from)
{
#if defined(__AVX512F__)
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
#elif defined(__SSE2__)
    int32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    __m128i zero = _mm_setzero_si128();
    return (vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero), zero);
#else
    uint8_t bytes[VW];
    memcpy(bytes, from, sizeof bytes);
    return (vi){bytes[0], bytes[1], bytes[2], bytes[3]};
#endif
}

static inline uint8_t round_sum(int32_t sum)
{
    int32_t value = sum >> ATT_TAPS_FRACTION;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static inline void store_rounded(uint8_t *to, vi sums)
{
#if defined(__AVX512F__)
    __m512i positive = _mm512_max_epi32((__m512i)(sums >> ATT_TAPS_FRACTION), _mm512_setzero_si512());
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtusepi32_epi8(positive));
#elif defined(__AVX2__)
    __m256i values = (__m256i)(sums >> ATT_TAPS_FRACTION);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(words, words));
#elif defined(__SSE2__)
    __m128i words = _mm_packs_epi32((__m128i)(sums >> ATT_TAPS_FRACTION), _mm_setzero_si128());
    int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(to, &bytes, sizeof bytes);
#else
    for (int i = 0; i < VW; i++)
        to[i] = round_sum(sums[i]);
#endif
}

/* Computes LANES weighted sums over from[0], from[step], .., one term per weight. */
static inline void sum_lanes(const uint8_t *from, size_t step, const int32_t *weights, int length, uint8_t *out)
{
    vi sums[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        sums[v] = (vi){0} + HALF;
    for (int i = 0; i < length; i++)
        for (int v = 0; v < VECTORS; v++)
            sums[v] += load(from + (size_t)i * step + v * VW) * weights[i];
    for (int v = 0; v < VECTORS; v++)
        store_rounded(out + v * VW, sums[v]);
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

const att_resize_functions ATT_DATA_TIERED(att_resize, ATT_TIER) = {horizontal, vertical};
