#include "engine/kernels/cuda/teams.cuh"

extern "C" {
#include "engine/ops/frozen_norm.h"
}

/* Deviations from the row's first element are summed, so that a large mean costs no digits. */
struct frozen_row {
    cuda_value x, gamma, stats, beta, y;
    int columns, numbers;
    bool centred;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t begin = row * columns;
        float first = centred ? load(x, begin) : 0, mean = 0, rstd = load(stats, row * numbers + numbers - 1);
        if (centred) {
            float sum = 0;
            for (int c = team.first(); c < columns; c += team.step)
                sum += load(x, begin + c) - first;
            mean = team.sum(sum) / columns;
        }
        for (int c = team.first(); c < columns; c += team.step) {
            float value = (load(x, begin + c) - first - mean) * rstd * load(gamma, c);
            store(y, begin + c, value + (beta.data ? load(beta, c) : 0));
        }
    }
};

static att_status run(const att_call *call)
{
    const att_frozen_norm_attrs *attrs = ATT_ATTRS(call->problem, frozen_norm);
    int columns = (int)att_cuda_dim(&call->problem->in[ATT_FROZEN_X], -1);
    cuda_each_row(att_cuda_rows(call, ATT_FROZEN_X), columns,
                  frozen_row{cuda_in(call, ATT_FROZEN_X), cuda_in(call, ATT_FROZEN_GAMMA),
                             cuda_in(call, ATT_FROZEN_STATS), cuda_in(call, ATT_FROZEN_BETA), cuda_out(call, 0),
                             columns, ATT_FROZEN_NUMBERS(attrs), attrs->centred != 0});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(frozen_norm, run);
