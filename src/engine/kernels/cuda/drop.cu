#include "engine/kernels/cuda/draws.cuh"

extern "C" {
#include "engine/ops/drop.h"
}

namespace
{

/* Four neighbouring elements of a row share a block of draws, which are the same for all rows of a sample. */
template <class Y, class X> struct dropped {
    cuda_draws draws;
    Y *y;
    const X *x;
    int64_t count, blocks; /* of a row */
    int64_t rows;          /* of a sample */
    __device__ void operator()(int64_t i) const
    {
        int64_t row = i / blocks, block = i % blocks;
        float factors[4];
        cuda_draw_factors(draws, row / rows, block, factors);
        for (int k = 0; k < 4 && block * 4 + k < count; k++) {
            int64_t e = row * count + block * 4 + k;
            store(y, e, factors[k] == 0 ? 0 : factors[k] * load(x, e));
        }
    }
};

/* The sample's first draw decides for all its elements. */
template <class Y, class X> struct dropped_whole {
    cuda_draws draws;
    Y *y;
    const X *x;
    int64_t count;
    __device__ void operator()(int64_t e) const
    {
        float factors[4];
        cuda_draw_factors(draws, e / count, 0, factors);
        store(y, e, factors[0] == 0 ? 0 : factors[0] * load(x, e));
    }
};

/* Draws for the `count` elements of a row. */
static att_status run_rows(const att_call *call, int64_t count)
{
    const att_drop_attrs *attrs = ATT_ATTRS(call->problem, drop);
    cuda_draws draws = cuda_draws_of(call, attrs->rate, attrs->stream);
    int64_t rows = att_shape_count(call->problem->in[0].shape) / count, blocks = (count + 3) / 4;
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) {
            att_cuda_each(att_cuda_in_count(call, 0) / count * blocks, dropped{draws, y, x, count, blocks, rows});
        });
    });
    return att_cuda_launched(call);
}

static att_status run_dropout(const att_call *call)
{
    return run_rows(call, att_shape_count(call->problem->in[0].shape));
}

static att_status run_channel_dropout(const att_call *call)
{
    const att_shape *x = &call->problem->in[0].shape;
    return run_rows(call, x->dims[x->rank - 1]);
}

static att_status run_drop_path(const att_call *call)
{
    const att_drop_attrs *attrs = ATT_ATTRS(call->problem, drop);
    cuda_draws draws = cuda_draws_of(call, attrs->rate, attrs->stream);
    int64_t count = att_shape_count(call->problem->in[0].shape);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) {
            att_cuda_each(att_cuda_in_count(call, 0), dropped_whole{draws, y, x, count});
        });
    });
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_KERNEL(dropout, run_dropout);
ATT_CUDA_KERNEL(channel_dropout, run_channel_dropout);
ATT_CUDA_KERNEL(drop_path, run_drop_path);
