/* kernels/cuda/ops.cuh - the arithmetic of indices in headers of ops, also for the device. Include it before any other
 * header of these. */
#ifndef ATT_KERNELS_CUDA_OPS_CUH
#define ATT_KERNELS_CUDA_OPS_CUH

#include "engine/kernels/cuda/cuda.cuh"

extern "C" {
#define inline __host__ __device__ inline
#include "engine/ops/mix_pairs.h"
#include "engine/ops/rollout.h"
#include "engine/ops/shift_scores.h"
#include "engine/ops/upsample_bilinear.h"
#include "engine/ops/window_pad.h"
#include "engine/ops/windows.h"
#undef inline
}

#endif
