/* kernels/cuda/value.cuh - values whose element type is read at run time, for kernels where it costs little. */
#ifndef ATT_KERNELS_CUDA_VALUE_CUH
#define ATT_KERNELS_CUDA_VALUE_CUH

#include "engine/kernels/cuda/cuda.cuh"

/* An input or output of a call: f32, bf16 or, for inputs, i32. data: NULL if it is absent or nobody reads it. */
struct cuda_value {
    void *data;
    att_dtype dtype;
};

static inline cuda_value cuda_in(const att_call *call, int i)
{
    if (i >= call->problem->in_count)
        return {nullptr, ATT_F32};
    return {(void *)call->in[i], call->problem->in[i].dtype};
}

static inline cuda_value cuda_out(const att_call *call, int i)
{
    return {call->out[i], call->problem->out[i].dtype};
}

__device__ __forceinline__ float load(cuda_value x, int64_t i)
{
    if (x.dtype == ATT_BF16)
        return __bfloat162float(((const bf16 *)x.data)[i]);
    return ((const float *)x.data)[i];
}

__device__ __forceinline__ void store(cuda_value x, int64_t i, float value)
{
    if (x.dtype == ATT_BF16)
        ((bf16 *)x.data)[i] = __float2bfloat16_rn(value);
    else
        ((float *)x.data)[i] = value;
}

/* The same for values that nobody may read. */
__device__ __forceinline__ void put(cuda_value x, int64_t i, float value)
{
    if (x.data)
        store(x, i, value);
}

/* Adds to a summed output, if anybody reads it. */
__device__ __forceinline__ void add_to(cuda_value x, int64_t i, float value)
{
    if (x.data)
        store(x, i, load(x, i) + value);
}

#endif
