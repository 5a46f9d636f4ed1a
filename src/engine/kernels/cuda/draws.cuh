/* kernels/cuda/draws.cuh - the random draws of dropout: the same bits as att_philox_block(). */
#ifndef ATT_KERNELS_CUDA_DRAWS_CUH
#define ATT_KERNELS_CUDA_DRAWS_CUH

#include "engine/kernels/cuda/cuda.cuh"

/* The draws of a node. A word w keeps its element if w 2^-32 >= rate. */
struct cuda_draws {
    uint64_t key;
    uint64_t least;   /* smallest word that keeps its element; 2^32: no word does */
    int64_t position; /* of the call's first sample */
    float keep;       /* factor of kept elements */
};

static inline cuda_draws cuda_draws_of(const att_call *call, double rate, uint64_t stream)
{
    const att_run *run = call->run;
    return {att_random_key(run->seed, (uint64_t)run->step, stream), (uint64_t)ceil(rate * 0x1p32), call->position,
            (float)(1 / (1 - rate))};
}

/* Factors of the four draws of block `block` of a sample of the call: 0 or `keep`. */
__device__ __forceinline__ void cuda_draw_factors(const cuda_draws &d, int64_t sample, int64_t block, float factors[4])
{
    uint64_t high = (uint64_t)(d.position + sample);
    uint32_t k0 = (uint32_t)d.key, k1 = (uint32_t)(d.key >> 32);
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)((uint64_t)block >> 32), c2 = (uint32_t)high,
             c3 = (uint32_t)(high >> 32);
#pragma unroll
    for (int round = 0; round < ATT_PHILOX_ROUNDS; round++) {
        uint32_t n0 = __umulhi(ATT_PHILOX_M1, c2) ^ c1 ^ k0, n2 = __umulhi(ATT_PHILOX_M0, c0) ^ c3 ^ k1;
        c1 = ATT_PHILOX_M1 * c2;
        c3 = ATT_PHILOX_M0 * c0;
        c0 = n0, c2 = n2;
        k0 += ATT_PHILOX_W0, k1 += ATT_PHILOX_W1;
    }
    const uint32_t word[4] = {c0, c1, c2, c3};
#pragma unroll
    for (int i = 0; i < 4; i++)
        factors[i] = word[i] >= d.least ? d.keep : 0;
}

#endif
