#include <math.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* torch.nn.utils.clip_grad_norm_ adds this to the norm before dividing. */
static const double CLIP_EPSILON = 1e-6;

static att_status norm_run(const att_call *call)
{
    const double *squares = call->in[0];
    double sum = 0;
    for (int64_t i = 0; i < att_shape_count(call->problem->in[0].shape); i++)
        sum += squares[i];
    *(double *)call->out[0] = sqrt(sum);
    return ATT_OK;
}

ATT_CPU_KERNEL(gradient_norm, "gradient_norm", "plain", .run = norm_run);

static att_status factor_run(const att_call *call)
{
    double norm = *(const double *)call->in[0], most = call->run->hyper->clip_norm;
    double factor = most > 0 ? most / (norm + CLIP_EPSILON) : 1;
    *(float *)call->out[0] = (float)(factor < 1 ? factor : 1);
    return ATT_OK;
}

static bool makes_f32(const att_problem *problem)
{
    return problem->out[0].dtype == ATT_F32;
}

ATT_CPU_KERNEL(clip_factor, "clip_factor", "plain", .accepts = makes_f32, .run = factor_run);
