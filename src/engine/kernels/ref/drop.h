/* kernels/ref/drop.h - the draws of dropout. */
#ifndef ATT_KERNELS_REF_DROP_H
#define ATT_KERNELS_REF_DROP_H

#include "base/core/random.h"
#include "engine/kernels/ref/call.h"

/* Factor from draw `index` of a sample: 0 if dropped, else 1 / (1 - rate). */
static inline double ref_drop_factor(const att_call *call, double rate, uint64_t stream, int64_t sample, int64_t index)
{
    uint64_t key = att_random_key(call->run->seed, (uint64_t)call->run->step, stream);
    att_philox block = att_philox_block(key, (uint64_t)(call->position + sample), (uint64_t)index / 4);
    double uniform = block.word[index % 4] * 0x1p-32;
    return uniform >= rate ? 1 / (1 - rate) : 0;
}

#endif
