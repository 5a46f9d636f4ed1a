#include <attscope/lab/bench.h>

#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/processor.h"
#include "base/core/random.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "lab/bench/clock.h"
#include "lab/bench/limits.h"

/* Minimum duration of a timed run in seconds. A run repeats the call until it lasts this long. */
static const double MIN_SECONDS = 1e-3;

/* The problem of one case, its operands, and the kernel that is being timed. */
typedef struct bench {
    att_context *context;
    const att_bench_kernel_options *options;
    const att_op *op;
    const att_op_case *definition;
    att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS];
    att_problem problem;
    void *operands[ATT_CASE_INPUTS], *results[ATT_CASE_OUTPUTS];
    att_prepared prepared;
    void *packed, *scratch;
    double seconds[ATT_BENCH_REPEATS];
} bench;

/* --- operands ----------------------------------------------------------------------------------------------------- */

static void use_bf16(att_desc *descs, int count, unsigned which)
{
    for (int i = 0; i < count; i++)
        if (which >> i & 1 && descs[i].dtype == ATT_F32)
            descs[i].dtype = ATT_BF16;
}

static att_status describe_problem(bench *b)
{
    const att_op_case *definition = b->definition;
    for (int i = 0; i < definition->in_count; i++)
        b->in[i] = definition->in[i].desc;
    att_infer infer = {.context = b->context,
                       .op = b->op,
                       .attrs = att_op_case_attrs(b->op, definition),
                       .in = b->in,
                       .in_count = definition->in_count,
                       .out = b->out,
                       .room = ATT_CASE_OUTPUTS};
    ATT_TRY(b->op->infer(&infer));
    if (b->options->precision == ATT_MIXED) {
        use_bf16(b->in, definition->in_count, b->op->autocast_in);
        use_bf16(b->out, infer.out_count, b->op->autocast_out);
    }
    b->problem = (att_problem){.context = b->context,
                               .op = b->op->name,
                               .attrs = att_op_case_attrs(b->op, definition),
                               .in = b->in,
                               .out = b->out,
                               .in_count = definition->in_count,
                               .out_count = infer.out_count,
                               .group = 1,
                               .parts = 1};
    att_problem_divide(b->op, &b->problem, b->in, b->out);
    return ATT_OK;
}

static void fill_random(const att_case_input *input, att_desc desc, int64_t count, void *block)
{
    att_random random = att_random_from(att_random_key(1, 0, 0));
    for (int64_t i = 0; i < count; i++) {
        float value = (float)((2 * att_random_uniform(&random) - 1) * input->scale + input->shift);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (desc.dtype == ATT_I32)
            ((int32_t *)block)[i] = (int32_t)att_random_below(&random, input->limit);
        else if (desc.dtype == ATT_BF16)
            ((uint16_t *)block)[i] = (uint16_t)(bits >> 16);
        else
            ((float *)block)[i] = value;
    }
}

static att_status allocate_block(att_context *context, size_t count, size_t size, void **block)
{
    if (count == 0)
        return ATT_OK;
    *block = att_allocate_array(context, count, size);
    return *block ? ATT_OK : att_fail_memory(context, count * size, "a kernel's operands");
}

static att_status make_operands(bench *b)
{
    for (int i = 0; i < b->problem.in_count; i++) {
        if (!att_desc_present(&b->in[i]))
            continue;
        const int64_t count = att_problem_count(&b->problem, &b->in[i]);
        ATT_TRY(allocate_block(b->context, (size_t)count, att_dtype_size(b->in[i].dtype), &b->operands[i]));
        fill_random(&b->definition->in[i], b->in[i], count, b->operands[i]);
    }
    /* Optional outputs, such as statistics and maps, are absent: only the first output is always computed. */
    for (int i = 0; i < b->problem.out_count; i++) {
        bool optional = b->out[i].kind == ATT_SAMPLE && i > 0;
        if (optional)
            b->out[i].shape.rank = -1;
        else
            ATT_TRY(allocate_block(b->context, (size_t)att_problem_count(&b->problem, &b->out[i]),
                                   att_dtype_size(b->out[i].dtype), &b->results[i]));
    }
    return ATT_OK;
}

static void free_operands(bench *b)
{
    for (int i = 0; i < ATT_CASE_INPUTS; i++)
        att_free(b->context, b->operands[i]);
    for (int i = 0; i < ATT_CASE_OUTPUTS; i++)
        att_free(b->context, b->results[i]);
    memset(b->operands, 0, sizeof b->operands);
    memset(b->results, 0, sizeof b->results);
}

/* --- one kernel --------------------------------------------------------------------------------------------------- */

static att_status pack(bench *b, const att_kernel *kernel)
{
    ATT_TRY(allocate_block(b->context, b->prepared.scratch_bytes, 1, &b->scratch));
    ATT_TRY(allocate_block(b->context, b->prepared.packed_bytes, 1, &b->packed));
    if (!b->packed)
        return ATT_OK;
    return kernel->pack(&b->problem, b->prepared.state, (const void *const *)b->operands, b->packed);
}

static att_status time_calls(const bench *b, const att_kernel *kernel, int calls, double *seconds)
{
    att_hyper hyper = {.lr = 1e-4,
                       .weight_decay = 0.05,
                       .momentum = 0.9,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .ema_decay = 0.999,
                       .update = 1};
    att_run run = {.seed = 1, .scale = 1, .hyper = &hyper};
    att_call call = {.problem = &b->problem,
                     .in = (const void *const *)b->operands,
                     .out = b->results,
                     .packed = b->packed,
                     .state = b->prepared.state,
                     .scratch = b->scratch,
                     .parts = 1,
                     .run = &run,
                     .samples = b->problem.group};
    double begin = att_seconds_now();
    for (int i = 0; i < calls; i++)
        ATT_TRY(kernel->run(&call));
    *seconds = (att_seconds_now() - begin) / calls;
    return ATT_OK;
}

static att_status time_prepared(bench *b, const att_kernel *kernel)
{
    double once;
    ATT_TRY(pack(b, kernel));
    ATT_TRY(time_calls(b, kernel, 1, &once));
    ATT_TRY(time_calls(b, kernel, 1, &once));
    int calls = once < MIN_SECONDS ? (int)(MIN_SECONDS / (once + 1e-7)) + 1 : 1;
    for (int i = 0; i < b->options->repeats; i++)
        ATT_TRY(time_calls(b, kernel, calls, &b->seconds[i]));
    return ATT_OK;
}

static att_status time_kernel(bench *b, const att_kernel *kernel)
{
    b->prepared = (att_prepared){0};
    if (kernel->prepare)
        ATT_TRY(kernel->prepare(&b->problem, &b->prepared));
    att_status status = time_prepared(b, kernel);
    if (kernel->release)
        kernel->release(b->context, b->prepared.state);
    att_free(b->context, b->scratch);
    att_free(b->context, b->packed);
    b->scratch = b->packed = NULL;
    return status;
}

static void report(bench *b, const att_kernel *kernel, bool taken)
{
    att_bench_kernel_row row = {.op = b->op->name,
                                .name = b->definition->name,
                                .kernel = kernel->name,
                                .tier = att_tier_name(kernel->features),
                                .taken = taken,
                                .seconds = att_median(b->seconds, b->options->repeats)};
    att_cost cost = {0};
    att_op_cost(b->op, b->in, b->out, b->problem.attrs, &cost);
    row.flops = cost.flops * (double)b->problem.group;
    for (int i = 0; i < b->problem.in_count; i++)
        if (b->operands[i])
            row.bytes += (double)att_problem_count(&b->problem, &b->in[i]) * (double)att_dtype_size(b->in[i].dtype);
    for (int i = 0; i < b->problem.out_count; i++)
        if (b->results[i])
            row.bytes += (double)att_problem_count(&b->problem, &b->out[i]) * (double)att_dtype_size(b->out[i].dtype);
    b->options->row(b->options->row_user, &row);
}

/* Times all kernels of the backend that accept the problem. The first one is the kernel that plans use. */
static att_status run_kernels(bench *b, const att_backend *backend)
{
    bool taken = true;
    att_status status = ATT_OK;
    for (const att_kernel *const *k = backend->kernels; status == ATT_OK && *k; k++) {
        if (!att_kernel_fits(*k, &b->problem))
            continue;
        status = time_kernel(b, *k);
        if (status == ATT_OK)
            report(b, *k, taken);
        taken = false;
    }
    return status;
}

static att_status run_case(bench *b, const att_backend *backend)
{
    ATT_TRY(describe_problem(b));
    att_status status = make_operands(b);
    if (status == ATT_OK)
        status = run_kernels(b, backend);
    free_operands(b);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static att_status run_op(bench *b, const att_backend *backend)
{
    const att_bench_kernel_options *options = b->options;
    for (int i = 0; i < b->op->case_count; i++) {
        b->definition = &b->op->cases[i];
        if (b->definition->bench &&
            (!options->wants || options->wants(options->row_user, b->op->name, b->definition->name)))
            ATT_TRY(run_case(b, backend));
    }
    return ATT_OK;
}

att_bench_kernel_options att_bench_kernel_options_defaults(void)
{
    return (att_bench_kernel_options){.backend = "cpu", .repeats = att_bench_options_defaults().repeats};
}

att_status att_bench_kernels(att_context *context, const att_bench_kernel_options *options)
{
    ATT_TRY(att_bench_check_repeats(context, options->repeats, 1));
    const att_backend *backend = att_backend_find(context, options->backend);
    if (!backend || !backend->memory->host)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no backend \"%s\" in the host's memory",
                        options->backend);
    bench *b;
    ATT_TRY(att_new(context, &b, 1, "a benchmark"));
    b->context = context;
    b->options = options;
    att_status status = ATT_OK;
    const att_op *const *ops = att_context_registry(context)->ops;
    for (int i = 0; status == ATT_OK && ops[i]; i++) {
        b->op = ops[i];
        status = run_op(b, backend);
    }
    att_free(context, b);
    return status;
}
