#include "engine/kernels/cuda/cuda.cuh"

extern "C" {
#include "engine/ops/add.h"
}

namespace
{

template <class Y, class A, class B> struct add_repeated {
    Y *y;
    const A *a;
    const B *b;
    int64_t period;
    bool relu;
    __device__ void operator()(int64_t i) const
    {
        float sum = load(a, i) + load(b, i % period);
        store(y, i, relu && sum < 0 ? 0 : sum);
    }
};

struct add_plain {
    bool relu;
    __device__ float operator()(float a, float b) const
    {
        float sum = a + b;
        return relu && sum < 0 ? 0 : sum;
    }
};

static att_status run(const att_call *call)
{
    int64_t count = att_cuda_in_count(call, 0), period = att_cuda_in_count(call, 1);
    bool relu = ATT_ATTRS(call->problem, add)->activation == ATT_ACT_RELU;
    if (period == count)
        return att_cuda_map2(call, add_plain{relu});
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *a) {
            att_cuda_in(call, 1, [&](auto *b) { att_cuda_each(count, add_repeated{y, a, b, period, relu}); });
        });
    });
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_KERNEL(add, run);
