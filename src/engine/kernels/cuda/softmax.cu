#include "engine/kernels/cuda/teams.cuh"

struct softmax_row {
    cuda_value x, y;
    int columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t begin = row * columns;
        float largest = -INFINITY, sum = 0;
        for (int c = team.first(); c < columns; c += team.step)
            largest = fmaxf(largest, load(x, begin + c));
        largest = team.max(largest);
        for (int c = team.first(); c < columns; c += team.step)
            sum += expf(load(x, begin + c) - largest);
        sum = team.sum(sum);
        for (int c = team.first(); c < columns; c += team.step)
            store(y, begin + c, expf(load(x, begin + c) - largest) / sum);
    }
};

static att_status run_softmax(const att_call *call)
{
    int columns = (int)att_cuda_dim(&call->problem->in[0], -1);
    cuda_each_row(att_cuda_rows(call, 0), columns, softmax_row{cuda_in(call, 0), cuda_out(call, 0), columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(softmax, run_softmax);

struct softmax_grad_row {
    cuda_value dy, y, dx;
    int columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t begin = row * columns;
        float sum = 0;
        for (int c = team.first(); c < columns; c += team.step)
            sum = fmaf(load(dy, begin + c), load(y, begin + c), sum);
        sum = team.sum(sum);
        for (int c = team.first(); c < columns; c += team.step)
            store(dx, begin + c, load(y, begin + c) * (load(dy, begin + c) - sum));
    }
};

static att_status run_softmax_grad(const att_call *call)
{
    int columns = (int)att_cuda_dim(&call->problem->in[1], -1);
    cuda_each_row(att_cuda_rows(call, 1), columns,
                  softmax_grad_row{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0), columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(softmax_grad, run_softmax_grad);
