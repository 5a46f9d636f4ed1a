#include <math.h>

#include "core/random.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tiered.h"
#include "ops/drop.h"

/* The random draws of a node. They depend on seed, step, node and sample only, not on the order of calls. A word w
 * keeps its element if w 2^-32 >= rate. */
typedef struct draws {
    uint64_t key;
    uint64_t least; /* smallest word that keeps its element; 2^32: no word does */
    float keep;     /* factor of kept elements */
} draws;

static draws draws_of(const att_call *call)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    const att_run *run = call->run;
    return (draws){att_random_key(run->seed, (uint64_t)run->step, attrs->stream), (uint64_t)ceil(attrs->rate * 0x1p32),
                   (float)(1 / (1 - attrs->rate))};
}

/* --- dropout ------------------------------------------------------------------------------------------------------ */

enum { BLOCKS = VW / 2, WORDS = 4 * BLOCKS }; /* words per step: a block of four words in each 64-bit lane */

/* Interleaves the first, or the last, halves of two vectors of 64-bit lanes: a0 b0 a1 b1 ... */
#if defined(__AVX512F__)
#define LANES 0, 1, 2, 3, 4, 5, 6, 7
#define FIRST 0, 8, 1, 9, 2, 10, 3, 11
#define LAST 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__)
#define LANES 0, 1, 2, 3
#define FIRST 0, 4, 1, 5
#define LAST 2, 6, 3, 7
#else
#define LANES 0, 1
#define FIRST 0, 2
#define LAST 1, 3
#endif

/* att_philox_block() of the counters high:low, high:low + 1, ... as one run of WORDS words. Only the lower halves of
 * the lanes of c0 ... c3 are valid; products leave garbage in the upper halves. */
ATT_INLINE void draw(uint64_t key, uint64_t high, uint64_t low, vu words[2])
{
    const vu64 m0 = (vu64){0} + ATT_PHILOX_M0, m1 = (vu64){0} + ATT_PHILOX_M1;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    vu64 c0 = (vu64){LANES} + low, c1 = c0 >> 32, c2 = (vu64){0} + high, c3 = c2 >> 32;
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
    words[0] = (vu)__builtin_shufflevector(even, odd, FIRST);
    words[1] = (vu)__builtin_shufflevector(even, odd, LAST);
}

ATT_INLINE vf drop(const draws *d, vu words, vf x)
{
    vi kept = words >= (vu){0} + (uint32_t)d->least;
    vi some = (vi){0} - (d->least <= UINT32_MAX);
    return v_where(kept & some, x * d->keep);
}

/* Word e % 4 of block e / 4 decides about element e of the sample, which begins at element `at`. */
ATT_INLINE void drop_range(const att_call *call, const draws *d, int64_t sample, int64_t at, att_range range,
                           bool x_is_bf16, bool y_is_bf16)
{
    const void *x = att_float_at(call->in[0], at, x_is_bf16);
    void *y = (char *)call->out[0] + (size_t)at * att_float_size(y_is_bf16);
    uint64_t position = (uint64_t)(call->position + sample);
    for (int64_t i = range.begin; i < range.end; i += WORDS) {
        vu words[2];
        draw(d->key, position, (uint64_t)i / 4, words);
        v_put_until(y, i, range.end, drop(d, words[0], v_get_until(x, i, range.end, x_is_bf16)), y_is_bf16);
        if (i + VW < range.end)
            v_put_until(y, i + VW, range.end, drop(d, words[1], v_get_until(x, i + VW, range.end, x_is_bf16)),
                        y_is_bf16);
    }
}

ATT_INLINE void dropout_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    draws d = draws_of(call);
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group;
    att_range part = att_part_of(call, count, WORDS);
    for (int64_t sample = 0; sample < call->problem->group; sample++)
        drop_range(call, &d, sample, sample * count, part, x_is_bf16, y_is_bf16);
}

static att_status dropout_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!x && !y)
        dropout_as(call, false, false);
    else
        dropout_as(call, x, y);
    return ATT_OK;
}

/* --- drop path ---------------------------------------------------------------------------------------------------- */

ATT_INLINE void drop_path_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    draws d = draws_of(call);
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group;
    att_range part = att_part_of(call, count, VW);
    for (int64_t sample = 0; sample < call->problem->group; sample++) {
        bool keep = att_philox_block(d.key, (uint64_t)(call->position + sample), 0).word[0] >= d.least;
        const void *x = att_float_at(call->in[0], sample * count, x_is_bf16);
        void *y = (char *)call->out[0] + (size_t)(sample * count) * att_float_size(y_is_bf16);
        for (int64_t i = part.begin; i < part.end; i += VW) {
            vf kept = keep ? v_get_until(x, i, part.end, x_is_bf16) * d.keep : (vf){0};
            v_put_until(y, i, part.end, kept, y_is_bf16);
        }
    }
}

/* Forward, x and y are bf16 in a branch. In the gradient, x is the f32 gradient of the residual stream. */
static att_status drop_path_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (x && y)
        drop_path_as(call, true, true);
    else if (!x && !y)
        drop_path_as(call, false, false);
    else
        drop_path_as(call, x, y);
    return ATT_OK;
}

static bool drop_accepts(const att_problem *problem)
{
    return att_accepts_bf16(problem, 1, 1);
}

const att_kernel ATT_TIERED(att_cpu_dropout) = {
    .op = "dropout", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = drop_accepts, .run = dropout_run};
const att_kernel ATT_TIERED(att_cpu_drop_path) = {
    .op = "drop_path", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = drop_accepts, .run = drop_path_run};
