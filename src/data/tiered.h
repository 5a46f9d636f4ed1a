/* data/tiered.h - the inner loops of resizing, compiled once per processor tier. They compute with integers only, so
 * all tiers give the same bytes. */
#ifndef ATT_DATA_TIERED_H
#define ATT_DATA_TIERED_H

#include "base/core/processor.h"

/* Taps of the output pixels of a line. Output pixel x is the weighted sum of `length[x]` input pixels from `first[x]`
 * on; weights have ATT_TAPS_FRACTION fractional bits. */
typedef struct att_taps {
    int room; /* capacity: weights per output pixel */
    int *first, *length;
    int32_t *weights; /* [output pixels][room] */
    float *floats;    /* the same without rounding; one of the two is NULL */
} att_taps;

enum { ATT_TAPS_FRACTION = 22, ATT_RESIZE_LANES = 16 };

typedef struct att_resize_functions {
    /* Horizontal pass over ATT_RESIZE_LANES interleaved lines: computes out[x][lane] from lines[x - left][lane], for
     * the `count` output pixels of the taps. */
    void (*horizontal)(const uint8_t *lines, int left, const att_taps *taps, int count, uint8_t *out);
    /* Vertical pass for one output line of `count` bytes: the weighted sum of `length` input lines, which are `stride`
     * bytes apart. */
    void (*vertical)(const uint8_t *lines, size_t stride, size_t count, const int32_t *weights, int length,
                     uint8_t *out);
} att_resize_functions;

#define ATT_DECLARE(name, tier, features) extern const att_resize_functions name##_##tier;
ATT_EACH_TIER(ATT_DECLARE, att_resize)
#undef ATT_DECLARE

#endif
