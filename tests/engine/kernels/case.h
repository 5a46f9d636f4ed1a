/* kernels/case.h - draws the inputs of an op's case and runs any kernel on them, so that kernels can be compared.
 *
 *     case_drawn drawn = case_draw((case_setup){.context = context, .op = op, .definition = &op->cases[0],
 *                                               .dtype = ATT_F32, .group = 3});
 *     case_result truth, ours;
 *     case_run(&drawn, case_kernel(att_kernels_ref, op->name), 1, 0, &truth);
 *     if (case_run(&drawn, kernel, 3, 0, &ours))
 *         assert_true(case_difference(&ours, &truth, 0) < 1e-6);
 *     case_result_free(&ours), case_result_free(&truth), case_free(&drawn);
 *
 * Everything fails through cmocka's assertions.
 */
#ifndef ATT_TESTS_KERNELS_CASE_H
#define ATT_TESTS_KERNELS_CASE_H

#include <attscope/update.h>

#include "base/core/random.h"
#include "engine/backend/kernel.h"
#include "engine/kernels/ref/element.h"
#include "engine/ops/attention.h"
#include "sanitized.h"
#include "test.h"

typedef struct case_setup {
    att_context *context;
    const att_op *op;
    const att_op_case *definition;
    att_dtype dtype; /* of the case's floats, which the case declares as F32 */
    int64_t group;
    bool skew; /* sample values begin one element after a multiple of 64 bytes, as memory bound by a caller may */
    unsigned autocast_in, autocast_out; /* with F32: one bit for each input and output that is BF16 */
} case_setup;

/* Inputs of one case. Those of kind SAMPLE are drawn for the whole group. */
typedef struct case_drawn {
    case_setup setup;
    att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS];
    int in_count, out_count;
    void *block[ATT_CASE_INPUTS];
    const void *data[ATT_CASE_INPUTS];
} case_drawn;

/* Outputs of one run. An output that is not read has data NULL and count 0. */
typedef struct case_result {
    att_desc desc[ATT_CASE_OUTPUTS];
    int out_count;
    int64_t count[ATT_CASE_OUTPUTS];
    void *block[ATT_CASE_OUTPUTS], *data[ATT_CASE_OUTPUTS];
} case_result;

static inline bool case_is_float(att_dtype dtype)
{
    return dtype == ATT_F32 || dtype == ATT_F64 || dtype == ATT_BF16;
}

static inline int64_t case_count(const case_setup *setup, const att_desc *desc)
{
    return att_shape_count(desc->shape) * (desc->kind == ATT_SAMPLE ? setup->group : 1);
}

/* Allocates exactly `bytes` bytes, so that a sanitizer detects accesses beyond, and sets them to 0xff: NaN in every
 * float type. */
static inline void *case_memory(size_t bytes)
{
    void *block = NULL;
    assert_int_equal(posix_memalign(&block, 64, bytes ? bytes : 1), 0);
    memset(block, 0xff, bytes);
    return block;
}

static inline void *case_value_memory(const case_setup *setup, const att_desc *desc, void **block)
{
    size_t size = att_dtype_size(desc->dtype);
    size_t skew = setup->skew && desc->kind == ATT_SAMPLE ? size : 0;
    *block = case_memory((size_t)case_count(setup, desc) * size + skew);
    return (char *)*block + skew;
}

static inline uint64_t case_key(const case_setup *setup, int stream)
{
    return att_random_key(att_random_hash(setup->op->name), att_random_hash(setup->definition->name), (uint64_t)stream);
}

/* Drawing is slow, so all cases read one table of normal numbers, each from a place of its own. The length is prime and
 * divides no row length. */
enum { CASE_PERIOD = 65537 };

static inline double case_normal(uint64_t place)
{
    static double numbers[CASE_PERIOD];
    static bool drawn;
    att_random random = att_random_from(1);
    for (int i = 0; i < CASE_PERIOD && !drawn; i++)
        numbers[i] = att_random_normal(&random);
    drawn = true;
    return numbers[place % CASE_PERIOD];
}

static inline void case_fill(const case_setup *setup, const att_case_input *input, att_desc desc, void *data,
                             int stream)
{
    uint64_t key = case_key(setup, stream), place = key % CASE_PERIOD;
    att_random random = att_random_from(key);
    int64_t count = case_count(setup, &desc);
    for (int64_t i = 0; i < count; i++)
        att_element_store(desc.dtype, data, i,
                          case_is_float(desc.dtype) ? case_normal(place + (uint64_t)i) * input->scale + input->shift
                                                    : (double)att_random_below(&random, input->limit));
}

/* Whether the test runs the case. Cases of real size run only in optimised builds. */
static inline bool case_is_run(const att_op_case *definition)
{
    return !definition->bench || !is_sanitized();
}

static inline void case_in_bf16(att_desc *descs, int count, unsigned is_bf16)
{
    for (int i = 0; i < count; i++)
        if (is_bf16 >> i & 1)
            descs[i].dtype = ATT_BF16;
}

/* Infers the outputs and draws the inputs. As in a plan, shape rules are not told which values become bf16. */
static inline case_drawn case_draw(case_setup setup)
{
    case_drawn drawn = {.setup = setup, .in_count = setup.definition->in_count};
    for (int i = 0; i < drawn.in_count; i++) {
        drawn.in[i] = setup.definition->in[i].desc;
        if (drawn.in[i].dtype == ATT_F32)
            drawn.in[i].dtype = setup.dtype;
    }
    att_infer infer = {.context = setup.context,
                       .op = setup.op,
                       .attrs = att_op_case_attrs(setup.op, setup.definition),
                       .in = drawn.in,
                       .in_count = drawn.in_count,
                       .out = drawn.out,
                       .room = ATT_CASE_OUTPUTS};
    assert_int_equal(setup.op->infer(&infer), ATT_OK);
    drawn.out_count = infer.out_count;
    case_in_bf16(drawn.in, drawn.in_count, setup.autocast_in);
    case_in_bf16(drawn.out, drawn.out_count, setup.autocast_out);
    for (int i = 0; i < drawn.in_count; i++) {
        if (!att_desc_present(&drawn.in[i]))
            continue;
        void *data = case_value_memory(&setup, &drawn.in[i], &drawn.block[i]);
        case_fill(&setup, &setup.definition->in[i], drawn.in[i], data, i);
        drawn.data[i] = data;
    }
    return drawn;
}

/* Rounds the f32 operand of a product to numbers that bf16 can hold, and gates that it is multiplied by to powers of
 * two. Then the kernel and the reference multiply the same numbers. */
static inline void case_round_weights(const case_drawn *drawn)
{
    static const char *const products[] = {"linear",           "conv2d", "conv2d_data_grad",
                                           "conv_transpose2d", "affine", "affine_data_grad"};
    const char *op = drawn->setup.op->name;
    bool found = false;
    for (int i = 0; i < (int)(sizeof products / sizeof *products); i++)
        found |= !strcmp(op, products[i]);
    float *weight = (float *)(uintptr_t)drawn->data[1], *gate = (float *)(uintptr_t)drawn->data[2];
    for (int64_t i = 0; found && i < case_count(&drawn->setup, &drawn->in[1]); i++)
        weight[i] = (float)att_bf16_load(att_bf16_store(weight[i]));
    bool gated = !strcmp(op, "affine_data_grad") && att_desc_present(&drawn->in[2]);
    for (int64_t i = 0; gated && i < case_count(&drawn->setup, &drawn->in[2]); i++)
        gate[i] = isnormal(gate[i]) ? ldexpf(1, ilogbf(gate[i])) : gate[i];
}

static inline void case_free(case_drawn *drawn)
{
    for (int i = 0; i < drawn->in_count; i++)
        free(drawn->block[i]);
    memset(drawn, 0, sizeof *drawn);
}

static inline void case_result_free(case_result *result)
{
    for (int i = 0; i < result->out_count; i++)
        free(result->block[i]);
    memset(result, 0, sizeof *result);
}

/* The settings of every run. None is a round number, which could hide a missing factor. */
static inline att_hyper case_hyper(void)
{
    return (att_hyper){.lr = 0.03,
                       .weight_decay = 0.2,
                       .momentum = 0.9,
                       .nesterov = true,
                       .beta1 = 0.9,
                       .beta2 = 0.99,
                       .eps = 1e-3,
                       .ema_decay = 0.7,
                       .clip_norm = 0.5,
                       .update = 3};
}
enum { CASE_POSITION = 11 };

/* Initialises outputs: NaN if the kernel overwrites them, random numbers if it adds to them or updates them in place.
 * The random numbers are not negative, because a second moment may be among them. */
static inline void case_outputs(const case_drawn *drawn, unsigned unread, case_result *result)
{
    *result = (case_result){.out_count = drawn->out_count};
    for (int i = 0; i < drawn->out_count; i++) {
        result->desc[i] = drawn->out[i];
        if (unread >> i & 1) {
            result->desc[i].shape.rank = -1;
            continue;
        }
        result->count[i] = case_count(&drawn->setup, &drawn->out[i]);
        result->data[i] = case_value_memory(&drawn->setup, &drawn->out[i], &result->block[i]);
        if (drawn->out[i].kind == ATT_SAMPLE)
            continue;
        uint64_t place = case_key(&drawn->setup, ATT_CASE_INPUTS + i) % CASE_PERIOD;
        for (int64_t e = 0; e < result->count[i]; e++)
            att_element_store(drawn->out[i].dtype, result->data[i], e, fabs(case_normal(place + (uint64_t)e)));
    }
}

/* The case as a problem of kernels. in, out: memory for its descriptions. */
static inline att_problem case_problem(const case_drawn *drawn, const att_desc *results, int parts,
                                       att_desc in[ATT_CASE_INPUTS], att_desc out[ATT_CASE_OUTPUTS])
{
    const case_setup *setup = &drawn->setup;
    att_problem problem = {.context = setup->context,
                           .op = setup->op->name,
                           .attrs = att_op_case_attrs(setup->op, setup->definition),
                           .in = in,
                           .out = out,
                           .in_count = drawn->in_count,
                           .out_count = drawn->out_count,
                           .group = setup->group,
                           .parts = parts};
    memcpy(in, drawn->in, sizeof drawn->in);
    memcpy(out, results, sizeof drawn->out);
    att_problem_divide(setup->op, &problem, in, out);
    return problem;
}

/* Prepares `kernel` for the case with `parts` parts and runs all parts, the last one first. Bit i of `unread`: nobody
 * reads output i. Returns false if the kernel does not accept the problem; *result is then empty. */
static inline bool case_run(const case_drawn *drawn, const att_kernel *kernel, int parts, unsigned unread,
                            case_result *result)
{
    assert_non_null(kernel);
    att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS];
    case_outputs(drawn, unread, result);
    att_problem problem = case_problem(drawn, result->desc, parts, in, out);
    if (!att_kernel_accepts(kernel, &problem)) {
        case_result_free(result);
        return false;
    }
    att_prepared prepared = {0};
    if (kernel->prepare)
        assert_int_equal(kernel->prepare(&problem, &prepared), ATT_OK);
    void *packed = NULL;
    if (prepared.packed_bytes) {
        packed = case_memory(prepared.packed_bytes);
        assert_int_equal(kernel->pack(&problem, prepared.state, drawn->data, packed), ATT_OK);
    }
    att_hyper hyper = case_hyper();
    att_run run = {.seed = 7, .step = 3, .scale = 0.15, .hyper = &hyper};
    for (int part = parts - 1; part >= 0; part--) {
        void *scratch = case_memory(prepared.scratch_bytes);
        att_call call = {&problem, drawn->data, result->data,  packed, prepared.state, scratch,
                         part,     parts,       CASE_POSITION, &run,   problem.group};
        assert_int_equal(kernel->run(&call), ATT_OK);
        free(scratch);
    }
    if (kernel->release)
        kernel->release(drawn->setup.context, prepared.state);
    free(packed);
    return true;
}

/* Returns the first kernel of `op` in a NULL-terminated list; NULL if there is none. */
static inline const att_kernel *case_kernel(const att_kernel *const *kernels, const char *op)
{
    for (; *kernels; kernels++)
        if (!strcmp((*kernels)->op, op))
            return *kernels;
    return NULL;
}

static inline const att_op *case_op(const att_op *const *ops, const char *name)
{
    for (; *ops; ops++)
        if (!strcmp((*ops)->name, name))
            return *ops;
    fail_msg("no op named %s", name);
    return NULL;
}

static inline const att_op_case *case_named(const att_op *op, const char *name)
{
    for (int i = 0; i < op->case_count; i++)
        if (!strcmp(op->cases[i].name, name))
            return &op->cases[i];
    fail_msg("%s has no case named %s", op->name, name);
    return NULL;
}

static inline double case_value(const case_result *result, int out, int64_t i)
{
    return att_element_load(result->desc[out].dtype, result->data[out], i);
}

/* Returns max |a - b| / max |b| over the elements first, first + stride, ... of an output, or infinity if two elements
 * differ and one of them is NaN or infinite. So no NaN passes. Output `out` must have been read in both runs. */
static inline double case_difference_strided(const case_result *a, const case_result *b, int out, int64_t first,
                                             int64_t stride)
{
    assert_non_null(a->data[out]);
    assert_non_null(b->data[out]);
    assert_int_equal(a->count[out], b->count[out]);
    double largest = 0, difference = 0;
    for (int64_t i = first; i < a->count[out]; i += stride) {
        double x = case_value(a, out, i), y = case_value(b, out, i);
        if (x == y)
            continue;
        if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        difference = fmax(difference, fabs(x - y));
    }
    for (int64_t i = first; i < b->count[out]; i += stride)
        if (isfinite(case_value(b, out, i)))
            largest = fmax(largest, fabs(case_value(b, out, i)));
    return difference == 0 ? 0 : difference / fmax(largest, 1e-30);
}

static inline double case_difference(const case_result *a, const case_result *b, int out)
{
    return case_difference_strided(a, b, out, 0, 1);
}

/* Returns the distance of neighbouring bf16 numbers around `value`. */
static inline double case_bf16_step(double value)
{
    return ldexp(1, (value == 0 ? -126 : (int)fmax(-126, floor(log2(fabs(value))))) - 7);
}

/* For a bf16 output: as case_difference(), but neighbouring numbers count as equal. *flipped is set to the share of
 * elements that differ by more than `slack` times the largest magnitude. */
static inline double case_difference_bf16(const case_result *a, const case_result *b, int out, double slack,
                                          double *flipped)
{
    assert_int_equal(a->desc[out].dtype, ATT_BF16);
    assert_int_equal(b->desc[out].dtype, ATT_BF16);
    assert_int_equal(a->count[out], b->count[out]);
    double largest = 1e-30, difference = 0;
    for (int64_t i = 0; i < b->count[out]; i++)
        if (isfinite(case_value(b, out, i)))
            largest = fmax(largest, fabs(case_value(b, out, i)));
    int64_t differing = 0;
    for (int64_t i = 0; i < a->count[out]; i++) {
        double x = case_value(a, out, i), y = case_value(b, out, i);
        if (x == y)
            continue;
        if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        differing += fabs(x - y) > slack * largest;
        difference = fmax(difference, fabs(x - y) - case_bf16_step(fmax(fabs(x), fabs(y))));
    }
    *flipped = (double)differing / (double)a->count[out];
    return difference / largest;
}

/* case_difference() of one column of the last axis, for outputs whose columns have different meanings (statistics). */
static inline double case_difference_column(const case_result *a, const case_result *b, int out, int column)
{
    return case_difference_strided(a, b, out, column, a->desc[out].shape.dims[a->desc[out].shape.rank - 1]);
}

/* As case_difference_column() for the covariances of the statistics of attention, which may all be 0: relative to the
 * largest product of both standard deviations. */
static inline double case_covariance_difference(const case_result *a, const case_result *b, int out)
{
    double largest = 0, difference = 0;
    assert_int_equal(a->count[out], b->count[out]);
    for (int64_t row = 0; row < b->count[out]; row += ATT_STAT_COUNT) {
        double x = case_value(a, out, row + ATT_STAT_YX), y = case_value(b, out, row + ATT_STAT_YX);
        if (isnan(x) != isnan(y))
            return INFINITY;
        difference = isnan(x) ? difference : fmax(difference, fabs(x - y));
        largest = fmax(largest, sqrt(case_value(b, out, row + ATT_STAT_YY) * case_value(b, out, row + ATT_STAT_XX)));
    }
    return difference == 0 ? 0 : difference / fmax(largest, 1e-30);
}

/* The largest difference of a column of the statistics of attention. */
static inline double case_statistics_difference(const case_result *a, const case_result *b, int out)
{
    double worst = case_covariance_difference(a, b, out);
    for (int column = 0; column < ATT_STAT_YX; column++)
        worst = fmax(worst, case_difference_column(a, b, out, column));
    return worst;
}

#endif
