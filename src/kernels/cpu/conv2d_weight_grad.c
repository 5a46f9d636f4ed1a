#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "kernels/cpu/list.h"
#include "kernels/cpu/onednn_conv.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tiered.h"

enum { DY, X, IN };

/* --- by 1 x 1: the weight gradient of a linear layer ----------------------------------------------------------------
 */

typedef struct pointwise {
    const att_kernel *kernel;
    att_problem problem; /* of linear_weight_grad, which has a second output that nobody reads */
    att_desc out[2];
    void *state;
} pointwise;

static const att_kernel *find_kernel(const att_problem *problem)
{
    for (const att_kernel *const *kernel = att_kernels_cpu; *kernel; kernel++)
        if (strcmp((*kernel)->op, problem->op) == 0 && (*kernel)->tier <= att_context_tier(problem->context) &&
            (!(*kernel)->accepts || (*kernel)->accepts(problem)))
            return *kernel;
    return NULL;
}

static att_status pointwise_prepare(const att_problem *problem, att_prepared *prepared)
{
    pointwise *p = att_allocate(problem->context, sizeof *p);
    if (!p)
        return att_fail_memory(problem->context, sizeof *p, "a weight's gradient");
    int64_t outputs = att_columns(&problem->in[DY]), inputs = att_columns(&problem->in[X]);
    p->out[0] = (att_desc){problem->out[0].dtype, ATT_SUMMED, att_shape_of(outputs, inputs)};
    p->out[1] = (att_desc){problem->out[0].dtype, ATT_SUMMED, {.rank = -1}};
    p->problem = *problem;
    p->problem.op = "linear_weight_grad";
    p->problem.out = p->out;
    p->problem.out_count = 2;
    p->kernel = find_kernel(&p->problem);
    att_prepared inner = {0};
    att_status status = p->kernel->prepare ? p->kernel->prepare(&p->problem, &inner) : ATT_OK;
    if (status != ATT_OK) {
        att_free(problem->context, p);
        return status;
    }
    p->state = inner.state;
    *prepared = (att_prepared){.state = p, .scratch_bytes = inner.scratch_bytes};
    return ATT_OK;
}

static att_status pointwise_run(const att_call *call)
{
    const pointwise *p = call->state;
    void *out[] = {call->out[0], NULL};
    att_call inner = *call;
    inner.problem = &p->problem;
    inner.out = out;
    inner.state = p->state;
    return p->kernel->run(&inner);
}

static void pointwise_release(att_context *context, void *state)
{
    pointwise *p = state;
    if (p->kernel->release)
        p->kernel->release(context, p->state);
    att_free(context, p);
}

static bool is_pointwise(const att_problem *problem)
{
    const att_conv_attrs *attrs = &problem->attrs->conv;
    return attrs->kernel_h == 1 && attrs->kernel_w == 1 && attrs->stride == 1 && attrs->padding == 0 &&
           attrs->groups == 1 && att_takes_narrow(problem, 1u << DY | 1u << X, 0);
}

const att_kernel att_cpu_conv2d_weight_grad_pointwise = {.op = "conv2d_weight_grad",
                                                         .name = "simd",
                                                         .accepts = is_pointwise,
                                                         .prepare = pointwise_prepare,
                                                         .run = pointwise_run,
                                                         .release = pointwise_release};

/* --- others ------------------------------------------------------------------------------------------------------- */

typedef struct weight_grad {
    att_conv *conv;
    const att_tier_functions *functions;
    int64_t count[IN];
    bool widened[IN];
    size_t at[IN]; /* of widened inputs, in scratch */
} weight_grad;

static att_conv_spec spec_of(const att_problem *problem, att_dtype dtype)
{
    const att_conv_attrs *attrs = &problem->attrs->conv;
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

static bool takes_bf16(const att_problem *problem)
{
    return problem->in[DY].dtype == ATT_BF16 && problem->in[X].dtype == ATT_BF16 && problem->out[0].dtype == ATT_F32;
}

static att_status prepare_as(const att_problem *problem, att_dtype dtype, att_prepared *prepared)
{
    weight_grad *w = att_allocate(problem->context, sizeof *w);
    if (!w)
        return att_fail_memory(problem->context, sizeof *w, "a weight's gradient");
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

/* oneDNN may lack it. */
static att_status prepare_bf16(const att_problem *problem, att_prepared *prepared)
{
    att_status status = prepare_as(problem, ATT_BF16, prepared);
    return status == ATT_ERR_UNSUPPORTED ? prepare_f32(problem, prepared) : status;
}

/* oneDNN's primitive is one piece of work: the first part does it. (In training a call has one part, but for batches of
 * fewer groups than threads.) */
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

const att_kernel att_cpu_conv2d_weight_grad = {.op = "conv2d_weight_grad",
                                               .name = "onednn",
                                               .accepts = att_takes_f32,
                                               .prepare = prepare_f32,
                                               .run = run,
                                               .release = release};

const att_kernel att_cpu_conv2d_weight_grad_bf16 = {.op = "conv2d_weight_grad",
                                                    .name = "onednn-bf16",
                                                    .tier = ATT_TIER_AVX512_BF16,
                                                    .accepts = takes_bf16,
                                                    .prepare = prepare_bf16,
                                                    .run = run,
                                                    .release = release};

static bool takes_narrow(const att_problem *problem)
{
    return att_takes_narrow(problem, 1u << DY | 1u << X, 0);
}

/* On copies of its inputs: where the processor has no products in bf16, or one of them is f32. */
const att_kernel att_cpu_conv2d_weight_grad_widened = {.op = "conv2d_weight_grad",
                                                       .name = "onednn-widened",
                                                       .accepts = takes_narrow,
                                                       .prepare = prepare_f32,
                                                       .run = run,
                                                       .release = release};
