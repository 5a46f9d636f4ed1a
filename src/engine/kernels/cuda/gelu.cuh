/* kernels/cuda/gelu.cuh - GELU of one number, x Phi(x), and its derivative. */
#ifndef ATT_KERNELS_CUDA_GELU_CUH
#define ATT_KERNELS_CUDA_GELU_CUH

/* Phi(x), and e^(-x^2 / 2), by Abramowitz and Stegun 7.1.26: the error is at most 8e-8. */
__device__ __forceinline__ float cuda_normal_cdf(float x, float *exponential)
{
    float t = __fdividef(1, 1 + 0.3275911f * 0.70710678118654752440f * fabsf(x)), e = __expf(-0.5f * x * x);
    float tail = 0.5f * e * t *
                 (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    *exponential = e;
    return x < 0 ? tail : 1 - tail;
}

__device__ __forceinline__ float cuda_gelu(float x)
{
    float e;
    return x * cuda_normal_cdf(x, &e);
}

__device__ __forceinline__ float cuda_gelu_slope(float x)
{
    float e, cdf = cuda_normal_cdf(x, &e);
    return cdf + x * 0.39894228040143267794f * e; /* 1 / sqrt(2 pi) */
}

#endif
