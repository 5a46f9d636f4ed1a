/* kernels/cuda/ops.cuh - the arithmetic of indices in headers of ops, also for the device. Include it before any other
 * header of these. */
#ifndef ATT_KERNELS_CUDA_OPS_CUH
#define ATT_KERNELS_CUDA_OPS_CUH

#include "kernels/cuda/cuda.cuh"

extern "C" {
#define inline __host__ __device__ inline
#include "ops/mix_pairs.h"
#include "ops/rollout.h"
#include "ops/shift_scores.h"
#include "ops/upsample_bilinear.h"
#include "ops/window_pad.h"
#include "ops/windows.h"
#undef inline
}

#endif
