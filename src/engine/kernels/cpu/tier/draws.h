/* kernels/cpu/tier/draws.h - the random draws of dropout. */
#ifndef ATT_KERNELS_CPU_TIER_DRAWS_H
#define ATT_KERNELS_CPU_TIER_DRAWS_H

#include <math.h>

#include "base/core/random.h"
#include "engine/backend/kernel.h"
#include "engine/kernels/cpu/tier/floats.h"

/* The random draws of a node. They depend on seed, step, node and sample only, not on the order of calls. A word w
 * keeps its element if w 2^-32 >= rate. */
typedef struct draws {
    uint64_t key;
    uint64_t least; /* smallest word that keeps its element; 2^32: no word does */
    float keep;     /* factor of kept elements */
} draws;

static inline draws draws_of(const att_call *call, double rate, uint64_t stream)
{
    const att_run *run = call->run;
    return (draws){att_random_key(run->seed, (uint64_t)run->step, stream), (uint64_t)ceil(rate * 0x1p32),
                   (float)(1 / (1 - rate))};
}

enum {
    DRAW_BLOCKS = VW / 2,
    DRAW_WORDS = 4 * DRAW_BLOCKS
}; /* words per step: a block of four words in each 64-bit lane */

/* att_philox_block() of the counters high:low, high:low + 1, ... as one run of DRAW_WORDS words. Only the lower halves
 * of the lanes of c0 ... c3 are valid; products leave garbage in the upper halves. */
ATT_INLINE void draw(uint64_t key, uint64_t high, uint64_t low, vu words[2])
{
    const vu64 m0 = (vu64){0} + ATT_PHILOX_M0, m1 = (vu64){0} + ATT_PHILOX_M1;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    vu64 c0 = (vu64){V_LANES_64} + low, c1 = c0 >> 32, c2 = (vu64){0} + high, c3 = c2 >> 32;
    for (int round = 0; round < ATT_PHILOX_ROUNDS; round++) {
        vu64 p0 = v_multiply_low(c0, m0), p1 = v_multiply_low(c2, m1);
        c0 = (p1 >> 32) ^ c1 ^ k0;
        c2 = (p0 >> 32) ^ c3 ^ k1;
        c1 = p1;
        c3 = p0;
        k0 += ATT_PHILOX_W0;
        k1 += ATT_PHILOX_W1;
    }
    vu64 even = (c0 & 0xffffffffu) | c1 << 32, odd = (c2 & 0xffffffffu) | c3 << 32;
    words[0] = (vu)__builtin_shufflevector(even, odd, V_LOW_64);
    words[1] = (vu)__builtin_shufflevector(even, odd, V_HIGH_64);
}

/* x times the factor of each draw: 0 or `keep`. */
ATT_INLINE vf drop(const draws *d, vu words, vf x)
{
    vi kept = words >= (vu){0} + (uint32_t)d->least;
    vi some = (vi){0} - (d->least <= UINT32_MAX);
    return v_where(kept & some, x * d->keep);
}

/* Writes the factors of `count` draws of a sample, rounded up to DRAW_WORDS, from draw `first` on, a multiple of 4. */
static inline void drop_factors(const draws *d, int64_t position, int64_t first, int64_t count, float *factors)
{
    const vf one = v_set(1);
    for (int64_t i = 0; i < count; i += DRAW_WORDS) {
        vu words[2];
        draw(d->key, (uint64_t)position, (uint64_t)(first + i) / 4, words);
        v_store(factors + i, drop(d, words[0], one));
        v_store(factors + i + VW, drop(d, words[1], one));
    }
}

#endif
