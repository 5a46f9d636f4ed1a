#include "base/core/simd.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/batch_moments.h"

/* In f64 and in the order of the samples. Parts share the elements. */

enum { BLOCK = 512 }; /* elements per block */

static void mean_block(const att_call *call, int64_t count, int64_t begin, int64_t end)
{
    double sum[BLOCK] = {0}, share = 1 / ((double)ATT_ATTRS(call->problem, moments)->rows * (double)call->samples);
    for (int64_t sample = 0; sample < call->samples; sample++) {
        const float *from = (const float *)call->in[0] + sample * count + begin;
#pragma omp simd
        for (int64_t i = 0; i < end - begin; i++)
            sum[i] += (double)from[i];
    }
    for (int64_t i = begin; i < end; i++)
        ((float *)call->out[0])[i] = (float)(sum[i - begin] * share);
}

static att_status batch_mean_run(const att_call *call)
{
    int64_t count = att_elements(call, &call->problem->out[0]);
    att_range part = att_part_of(call, count, VW);
    for (int64_t begin = part.begin; begin < part.end; begin += BLOCK)
        mean_block(call, count, begin, begin + BLOCK < part.end ? begin + BLOCK : part.end);
    return ATT_OK;
}

ATT_SIMD_KERNEL(batch_mean, .run = batch_mean_run);
