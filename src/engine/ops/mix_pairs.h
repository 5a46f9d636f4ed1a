/* ops/mix_pairs.h - attention without content on a map, with a head for each pair of a row map and a column map. */
#ifndef ATT_OPS_MIX_PAIRS_H
#define ATT_OPS_MIX_PAIRS_H

#include "engine/ops/attention.h"

/* Attributes of mix_pairs and its gradient. The keys are the pixels of a map, with `ring` zero tokens on each side of
 * both axes; the query at (y, x) of its grid lies on the pixel (stride y, stride x). */
typedef struct att_mix_pairs_attrs {
    /* heads: row maps times column maps; value_heads: 1; no prefix and windows; grid and steps: of the queries */
    att_attention_attrs attention;
    int32_t ring, stride;
    int32_t groups; /* the channels of a token are ordered (group, row map, column map, channel of the group) */
    int32_t unused; /* in place of padding bytes */
} att_mix_pairs_attrs;

/* Sets [*begin, *end) to the keys from the first to the last weight that is not 0. Other keys are not read. row: the
 * weights of a query, ring included. The keys count without the ring, whose tokens are never read. */
static inline void att_mix_pairs_keys(const att_mix_pairs_attrs *attrs, const float *row, int64_t length,
                                      int64_t *begin, int64_t *end)
{
    int64_t first = attrs->ring, last = length - attrs->ring;
    while (first < last && row[first] == 0)
        first++;
    while (last > first && row[last - 1] == 0)
        last--;
    *begin = first - attrs->ring;
    *end = last - attrs->ring;
}

/* The maps of a node, and statistics of their rows, as attention has them. */
enum { ATT_PAIR_MAPS_STATS, ATT_PAIR_MAPS_MAP };

#endif
