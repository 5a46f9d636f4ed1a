#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/onednn_conv.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/conv2d.h"

enum { DY, X, IN };

typedef struct weight_grad {
    att_conv *conv;
    const att_tier_functions *functions;
    int64_t count[IN];
    bool widened[IN];
    size_t at[IN]; /* offsets in scratch of the widened inputs */
} weight_grad;

static att_conv_spec spec_of(const att_problem *problem, att_dtype dtype)
{
    const att_conv_attrs *attrs = problem->attrs;
    const int64_t *x = problem->in[X].shape.dims, *dy = problem->in[DY].shape.dims;
    return (att_conv_spec){.kind = ATT_CONV_WEIGHT_GRAD,
                           .samples = problem->group,
                           .height = x[0],
                           .width = x[1],
                           .inputs = x[2],
                           .out_h = dy[0],
                           .out_w = dy[1],
                           .outputs = dy[2],
                           .kernel_h = attrs->kernel_h,
                           .kernel_w = attrs->kernel_w,
                           .stride = attrs->stride,
                           .dilation = attrs->dilation,
                           .groups = attrs->groups,
                           .above = attrs->padding,
                           .left = attrs->padding,
                           .dtype = dtype,
                           .to = dtype};
}

static bool accepts_bf16(const att_problem *problem)
{
    return problem->in[DY].dtype == ATT_BF16 && problem->in[X].dtype == ATT_BF16 && problem->out[0].dtype == ATT_F32;
}

static att_status prepare_as(const att_problem *problem, att_dtype dtype, att_prepared *prepared)
{
    weight_grad *w;
    ATT_TRY(att_new(problem->context, &w, 1, "a weight's gradient"));
    att_conv_spec spec = spec_of(problem, dtype);
    att_status status = att_conv_create(problem->context, &spec, &w->conv);
    if (status != ATT_OK) {
        att_free(problem->context, w);
        return status;
    }
    w->functions = att_cpu_functions(problem->context);
    size_t top = att_conv_scratch_bytes(w->conv);
    for (int i = 0; i < IN; i++) {
        w->count[i] = att_problem_count(problem, &problem->in[i]);
        w->widened[i] = problem->in[i].dtype != dtype;
        w->at[i] = (top + 63) / 64 * 64;
        top = w->at[i] + (w->widened[i] ? (size_t)w->count[i] * sizeof(float) : 0);
    }
    *prepared = (att_prepared){.state = w, .scratch_bytes = top};
    return ATT_OK;
}

static att_status prepare_f32(const att_problem *problem, att_prepared *prepared)
{
    return prepare_as(problem, ATT_F32, prepared);
}

/* Falls back to f32 if oneDNN lacks a bf16 kernel. */
static att_status prepare_bf16(const att_problem *problem, att_prepared *prepared)
{
    att_status status = prepare_as(problem, ATT_BF16, prepared);
    return status == ATT_ERR_UNSUPPORTED ? prepare_f32(problem, prepared) : status;
}

/* A oneDNN primitive runs on one thread: the first part. (In training, calls have several parts only if a batch has
 * fewer groups than there are threads.) */
static att_status run(const att_call *call)
{
    const weight_grad *w = call->state;
    if (call->part > 0)
        return ATT_OK;
    const void *in[IN] = {call->in[DY], call->in[X]};
    for (int i = 0; i < IN; i++) {
        if (!w->widened[i])
            continue;
        float *copy = (float *)((char *)call->scratch + w->at[i]);
        w->functions->widen(in[i], w->count[i], copy);
        in[i] = copy;
    }
    return att_conv_run_weight_grad(w->conv, in[DY], in[X], call->out[0], call->scratch);
}

static void release(att_context *context, void *state)
{
    weight_grad *w = state;
    att_conv_destroy(context, w->conv);
    att_free(context, w);
}

ATT_CPU_KERNEL(conv2d_weight_grad, "conv2d_weight_grad", "onednn", .f32 = true, .prepare = prepare_f32, .run = run,
               .release = release);

ATT_CPU_KERNEL(conv2d_weight_grad_bf16, "conv2d_weight_grad", "onednn-bf16", .features = ATT_AVX512_BF16,
               .accepts = accepts_bf16, .prepare = prepare_bf16, .run = run, .release = release);

/* Widens its inputs to f32: for processors without bf16 products, or if only one input is bf16. */
ATT_CPU_KERNEL(conv2d_weight_grad_widened, "conv2d_weight_grad", "onednn-widened", .f32 = true,
               .bf16_in = 1u << DY | 1u << X, .prepare = prepare_f32, .run = run, .release = release);
