#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"

/* Widens its inputs to f32 and runs the tier's f32 kernel: for processors without bf16 products. Every part widens its
 * own copies. */

enum { DY, X, IN };

typedef struct widened {
    const att_kernel *kernel;
    att_problem problem; /* the problem in f32 */
    att_desc in[IN];
    void *state;
    const att_tier_functions *functions;
    size_t at[IN]; /* offsets in scratch of the copies */
} widened;

static void describe(const att_problem *problem, widened *w)
{
    w->problem = *problem;
    w->problem.in = w->in;
    for (int i = 0; i < IN; i++) {
        w->in[i] = problem->in[i];
        w->in[i].dtype = ATT_F32;
    }
    w->kernel = att_kernel_for(att_kernels_cpu, &w->problem);
    w->functions = att_cpu_functions(problem->context);
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    widened *w;
    ATT_TRY(att_new(problem->context, &w, 1, "a weight's gradient"));
    describe(problem, w);
    att_prepared inner = {0};
    att_status status = w->kernel->prepare ? w->kernel->prepare(&w->problem, &inner) : ATT_OK;
    if (status != ATT_OK) {
        att_free(problem->context, w);
        return status;
    }
    w->state = inner.state;
    size_t top = inner.scratch_bytes;
    for (int i = 0; i < IN; i++) {
        w->at[i] = (top + 63) / 64 * 64;
        top = w->at[i] + (size_t)att_problem_count(problem, &w->in[i]) * sizeof(float);
    }
    *prepared = (att_prepared){.state = w, .scratch_bytes = top};
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    const widened *w = call->state;
    const void *in[IN];
    for (int i = 0; i < IN; i++) {
        in[i] = call->in[i];
        if (!att_is_bf16(&call->problem->in[i]))
            continue;
        float *copy = (float *)((char *)call->scratch + w->at[i]);
        w->functions->widen(call->in[i], att_problem_count(&w->problem, &w->in[i]), copy);
        in[i] = copy;
    }
    att_call inner = *call;
    inner.problem = &w->problem;
    inner.in = in;
    inner.state = w->state;
    return w->kernel->run(&inner);
}

static void release(att_context *context, void *state)
{
    widened *w = state;
    if (w->kernel->release)
        w->kernel->release(context, w->state);
    att_free(context, w);
}

ATT_CPU_KERNEL(linear_weight_grad_widened, "linear_weight_grad", "simd-widened", .f32 = true,
               .bf16_in = 1u << DY | 1u << X, .prepare = prepare, .run = run, .release = release);
