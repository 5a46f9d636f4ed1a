#include "engine/backend/kernel.h"

#include <string.h>

int64_t att_problem_count(const att_problem *problem, const att_desc *desc)
{
    int64_t count = att_shape_count(desc->shape);
    return desc->kind == ATT_SAMPLE ? count * problem->group : count;
}

static void take_one_map(att_desc *descs, int count)
{
    for (int i = 0; i < count; i++)
        if (descs[i].kind == ATT_SAMPLE && att_desc_present(&descs[i])) {
            const int64_t *dims = descs[i].shape.dims;
            descs[i].shape = att_shape_of(dims[1], dims[2], dims[3]);
        }
}

void att_problem_divide(const att_op *op, att_problem *problem, att_desc *in, att_desc *out)
{
    enum { MAPS_RANK = 4 };
    if (!(op->flags & ATT_OP_MAPS) || in[0].shape.rank != MAPS_RANK)
        return;
    problem->group *= in[0].shape.dims[0];
    take_one_map(in, problem->in_count);
    take_one_map(out, problem->out_count);
}

static bool none_bf16(const att_desc *descs, int count, unsigned but)
{
    for (int i = 0; i < count; i++)
        if (att_desc_present(&descs[i]) && descs[i].dtype == ATT_BF16 && !(but >> i & 1))
            return false;
    return true;
}

static bool accepts_types(const att_kernel *kernel, const att_problem *problem)
{
    return problem->in[0].dtype != ATT_F64 && none_bf16(problem->in, problem->in_count, kernel->bf16_in) &&
           none_bf16(problem->out, problem->out_count, kernel->bf16_out);
}

bool att_kernel_accepts(const att_kernel *kernel, const att_problem *problem)
{
    return strcmp(kernel->op, problem->op) == 0 && (!kernel->f32 || accepts_types(kernel, problem)) &&
           (!kernel->accepts || kernel->accepts(problem));
}

bool att_kernel_fits(const att_kernel *kernel, const att_problem *problem)
{
    return !(kernel->features & ~att_context_features(problem->context)) && att_kernel_accepts(kernel, problem);
}

const att_kernel *att_kernel_for(const att_kernel *const *kernels, const att_problem *problem)
{
    while (*kernels && !att_kernel_fits(*kernels, problem))
        kernels++;
    return *kernels;
}

void att_share(int64_t count, int64_t grain, int part, int parts, int64_t *begin, int64_t *end)
{
    int64_t grains = (count + grain - 1) / grain;
    int64_t first = grains * part / parts * grain, last = grains * (part + 1) / parts * grain;
    *begin = first < count ? first : count;
    *end = last < count ? last : count;
}
