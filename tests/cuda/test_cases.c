/* Compares every CUDA kernel with the reference on every case of its op, in f32 and with bf16 in place of f32, and
 * checks that two runs give the same bits. Arguments: names of ops; none: all ops. Skipped without a device. */
#include "engine/kernels/case.h"
#include "engine/kernels/truth.h"

#include "cuda/device.h"
#include "engine/graph/registry.h"
#include "engine/ops/attention.h"
#include "engine/ops/linear.h"
#include "engine/ops/list.h"

/* The largest allowed difference, relative to the largest magnitude of the output. `name` NULL: every case of the op;
 * the first entry that fits counts. */
typedef struct tolerance {
    const char *op, *name;
    double limit;
} tolerance;

/* The number beside each is the worst measured one, on an H200. */
static const tolerance tolerances[] = {
    /* In f32, the mean of 1e4 is known to 5e-4, and the deviations of 1 are measured from it. */
    {"layer_norm", "large_mean", 3e-5}, /* 1.2e-5 */
    {"group_norm", "large_mean", 3e-5}, /* 1.4e-5 */
    /* In f32, scores of several thousands are known to 1e-4, and so are the exponents and small weights; cubes of these
     * have three times this error. */
    {"attention", "sharp", 4e-4}, /* 1.9e-4 */
    /* The sum of squares is taken from the sample's first row. */
    {"channel_moments", NULL, 2e-5},   /* 7.0e-6 */
    {"channel_gram", NULL, 1e-5},      /* 4.3e-6 */
    {"cosine_heads_grad", NULL, 8e-6}, /* 3.2e-6, of sums of few numbers that cancel */
    {NULL, NULL, 4e-6},                /* 2.1e-6 */
};

/* The convolutions that bias and norm follow. */
static bool is_conv(const char *op)
{
    return !strcmp(op, "conv2d") || !strcmp(op, "conv_transpose2d");
}

/* A batch norm that is folded into a weight changes the weight before it is rounded to bf16. */
static const double folded_limit = 5e-3; /* 1.7e-3 */

static bool is_folded(const case_setup *setup)
{
    enum { GAMMA = 4 };
    return is_conv(setup->op->name) && setup->definition->in_count > GAMMA &&
           att_desc_present(&setup->definition->in[GAMMA].desc) && (setup->autocast_in & 1);
}

static unsigned present_inputs(const att_op_case *definition)
{
    unsigned present = 0;
    for (int i = 0; i < definition->in_count; i++)
        present |= (unsigned)att_desc_present(&definition->in[i].desc) << i;
    return present;
}

/* Attention rounds the map and its gradient to bf16 for the products if all operands are bf16. */
static const double rounded_inside_limit = 1e-2;

static bool is_rounded_inside(const case_setup *setup, int out)
{
    bool forward = !strcmp(setup->op->name, "attention"), backward = !strcmp(setup->op->name, "attention_grad");
    enum { GRAD_O = 1 }; /* no operand of a product */
    unsigned operands = present_inputs(setup->definition) & setup->op->autocast_in & ~(backward ? 1u << GRAD_O : 0);
    return ((forward && out == 0) || backward) && (setup->autocast_in & operands) == operands;
}

/* Some products are rounded to bf16 before bias or GELU follow: cuBLASLt's if the result is not aligned to 16 bytes,
 * and GELU of a bf16 result always. */
static const double rounded_twice_limit = 8e-3;

static bool is_rounded_twice(const case_setup *setup)
{
    const char *op = setup->op->name;
    bool linear = !strcmp(op, "linear"), product = linear || !strncmp(op, "conv", 4);
    const att_linear_attrs *attrs = linear ? att_op_case_attrs(setup->op, setup->definition) : NULL;
    bool narrow = (setup->autocast_in & 1) && (setup->autocast_out & 1);
    return product && narrow && (setup->skew || (attrs && attrs->activation == ATT_ACT_GELU));
}

static double limit_of(const case_setup *setup, int out)
{
    if (is_rounded_inside(setup, out))
        return rounded_inside_limit;
    if (is_rounded_twice(setup))
        return rounded_twice_limit;
    if (is_folded(setup))
        return folded_limit;
    const tolerance *t = tolerances;
    while (t->op && (strcmp(t->op, setup->op->name) || (t->name && strcmp(t->name, setup->definition->name))))
        t++;
    return t->limit;
}

/* --- a case on the device ----------------------------------------------------------------------------------------- */

/* Blocks of device memory; those of values are as long as the host's, and begin as far behind a multiple of 64. */
typedef struct device_block {
    char *block, *data;
    size_t bytes;
} device_block;

static device_block device_memory(size_t bytes, size_t skew)
{
    device_block d = {.bytes = bytes + skew + 64};
    d.block = backend->memory->allocate(context, d.bytes);
    assert_non_null(d.block);
    d.data = d.block + skew;
    return d;
}

static void device_free(device_block *d)
{
    if (d->block)
        backend->memory->release(context, d->block, d->bytes);
}

static size_t bytes_of(const case_setup *setup, const att_desc *desc)
{
    return (size_t)case_count(setup, desc) * att_dtype_size(desc->dtype);
}

static device_block copied_in(const case_setup *setup, const att_desc *desc, const void *host, const void *block)
{
    size_t skew = (size_t)((const char *)host - (const char *)block);
    device_block d = device_memory(bytes_of(setup, desc), skew);
    backend->memory->copy_in(d.data, host, bytes_of(setup, desc));
    return d;
}

/* As case_run() in one part, with inputs and outputs in device memory. */
static bool device_run(const case_drawn *drawn, unsigned unread, case_result *result)
{
    const case_setup *setup = &drawn->setup;
    case_outputs(drawn, unread, result);
    att_desc descs[ATT_CASE_INPUTS], results[ATT_CASE_OUTPUTS];
    const att_problem problem = case_problem(drawn, result->desc, 1, descs, results);
    const att_kernel *kernel = att_kernel_for(backend->kernels, &problem);
    if (!kernel) {
        case_result_free(result);
        return false;
    }
    att_prepared prepared = {0};
    if (kernel->prepare)
        assert_int_equal(kernel->prepare(&problem, &prepared), ATT_OK);
    device_block in[ATT_CASE_INPUTS] = {{0}}, out[ATT_CASE_OUTPUTS] = {{0}}, scratch = {0}, packed = {0};
    const void *in_data[ATT_CASE_INPUTS] = {0};
    void *out_data[ATT_CASE_OUTPUTS] = {0};
    for (int i = 0; i < drawn->in_count; i++)
        if (drawn->data[i]) {
            in[i] = copied_in(setup, &drawn->in[i], drawn->data[i], drawn->block[i]);
            in_data[i] = in[i].data;
        }
    for (int i = 0; i < result->out_count; i++)
        if (result->data[i]) {
            out[i] = copied_in(setup, &result->desc[i], result->data[i], result->block[i]);
            out_data[i] = out[i].data;
        }
    if (prepared.packed_bytes) {
        packed = device_memory(prepared.packed_bytes, 0);
        assert_int_equal(kernel->pack(&problem, prepared.state, in_data, packed.data), ATT_OK);
    }
    if (prepared.scratch_bytes)
        scratch = device_memory(prepared.scratch_bytes, 0);
    att_hyper hyper = case_hyper();
    att_run run = {.seed = 7, .step = 3, .scale = 0.15, .hyper = &hyper};
    att_call call = {&problem, in_data, out_data,      packed.data, prepared.state, scratch.data,
                     0,        1,       CASE_POSITION, &run,        setup->group};
    if (kernel->run(&call) != ATT_OK)
        fail_msg("%s, case %s: %s", setup->op->name, setup->definition->name, att_context_message(context));
    for (int i = 0; i < result->out_count; i++)
        if (result->data[i])
            backend->memory->copy_out(result->data[i], out[i].data, bytes_of(setup, &result->desc[i]));
    for (int i = 0; i < ATT_CASE_INPUTS; i++)
        device_free(&in[i]);
    for (int i = 0; i < ATT_CASE_OUTPUTS; i++)
        device_free(&out[i]);
    device_free(&scratch);
    device_free(&packed);
    if (kernel->release)
        kernel->release(setup->context, prepared.state);
    return true;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

typedef struct op_test {
    const att_op *op;
    double worst, worst_mixed, worst_flipped;
    int failures, left_out;
} op_test;

/* The share of elements of a bf16 output that may be rounded to the other neighbour when the exact value lies near the
 * middle of two numbers. */
static const double flipped_limit = 0.02;

static double output_difference(op_test *test, const case_setup *setup, const case_result *ours,
                                const case_result *truth, int out)
{
    if (!strcmp(setup->op->name, "attention") && out == 2)
        return case_statistics_difference(ours, truth, out);
    if (truth->desc[out].dtype != ATT_BF16)
        return case_difference(ours, truth, out);
    double flipped = 0, difference = case_difference_bf16(ours, truth, out, limit_of(setup, out), &flipped);
    flipped -= 1 / (double)ours->count[out];
    test->worst_flipped = fmax(test->worst_flipped, flipped);
    return flipped <= flipped_limit || is_folded(setup) ? difference : INFINITY;
}

static void report(op_test *test, const case_setup *setup, const char *what, int out, double difference)
{
    test->failures++;
    print_message("%s, case %s, %lld samples, in %x out %x is_bf16: %s %d: %g\n", setup->op->name,
                  setup->definition->name, (long long)setup->group, setup->autocast_in, setup->autocast_out, what, out,
                  difference);
}

static void compare(op_test *test, const case_setup *setup, const case_result *ours, const case_result *again,
                    const case_result *truth)
{
    for (int out = 0; out < truth->out_count; out++) {
        if (!truth->data[out])
            continue;
        double difference = output_difference(test, setup, ours, truth, out);
        double *worst = setup->autocast_in | setup->autocast_out ? &test->worst_mixed : &test->worst;
        *worst = fmax(*worst, difference);
        if (!(difference <= limit_of(setup, out)))
            report(test, setup, "difference of output", out, difference);
        if (memcmp(ours->data[out], again->data[out], bytes_of(setup, &truth->desc[out])))
            report(test, setup, "bits of a second run differ in output", out, case_difference(again, ours, out));
    }
}

/* The bias of a product with a bf16 result is bf16, too. */
static void round_bias(const case_drawn *drawn)
{
    enum { BIAS = 2 };
    const char *op = drawn->setup.op->name;
    float *bias = (float *)(uintptr_t)drawn->data[BIAS];
    bool has_bias = (!strcmp(op, "linear") || is_conv(op)) && att_desc_present(&drawn->in[BIAS]);
    for (int64_t i = 0; has_bias && i < case_count(&drawn->setup, &drawn->in[BIAS]); i++)
        bias[i] = (float)att_bf16_load(att_bf16_store(bias[i]));
}

static void run_case(op_test *test, case_setup setup)
{
    case_drawn drawn = case_draw(setup);
    if (setup.autocast_in) {
        case_round_weights(&drawn);
        round_bias(&drawn);
    }
    case_result truth, ours, again;
    if (!device_run(&drawn, 0, &ours)) {
        test->left_out++;
        case_free(&drawn);
        return;
    }
    assert_true(device_run(&drawn, 0, &again));
    truth_run(&drawn, &truth);
    compare(test, &setup, &ours, &again, &truth);
    case_result_free(&again);
    case_result_free(&ours);
    case_result_free(&truth);
    case_free(&drawn);
}

/* Updates work on one range. All other ops work on groups of samples. */
static bool works_on_groups(const char *op)
{
    return strcmp(op, "sum_lanes") && strcmp(op, "sum_squares") && strcmp(op, "adamw") && strcmp(op, "sgd") &&
           strcmp(op, "adam") && strcmp(op, "ema");
}

static unsigned outputs_of(const att_op *op, const att_op_case *definition)
{
    case_drawn drawn = case_draw((case_setup){context, op, definition, ATT_F32, 1, false, 0, 0});
    unsigned outputs = (1u << drawn.out_count) - 1;
    case_free(&drawn);
    return outputs;
}

/* Every combination of bf16 inputs and outputs, but only the one with all of them for cases of real networks. */
static void run_mixed(op_test *test, const att_op_case *definition)
{
    const att_op *op = test->op;
    unsigned in_all = op->autocast_in & present_inputs(definition),
             out_all = op->autocast_out & outputs_of(op, definition);
    for (unsigned in = 0; in <= in_all; in++)
        for (unsigned out = 0; out <= out_all; out++) {
            if ((in & ~in_all) || (out & ~out_all) || (in | out) == 0)
                continue;
            if (definition->bench && (in != in_all || out != out_all))
                continue;
            run_case(test, (case_setup){context, op, definition, ATT_F32, definition->bench ? 1 : 3, !definition->bench,
                                        in, out});
        }
}

static void agrees_with_the_reference(void **state)
{
    op_test *test = *state;
    const att_op *op = test->op;
    for (int i = 0; i < op->case_count; i++) {
        if (!case_is_run(&op->cases[i]))
            continue;
        run_case(test, (case_setup){context, op, &op->cases[i], ATT_F32, 1, false, 0, 0});
        if (!op->cases[i].bench && works_on_groups(op->name))
            run_case(test, (case_setup){context, op, &op->cases[i], ATT_F32, 3, true, 0, 0});
        if (op->autocast_in | op->autocast_out)
            run_mixed(test, &op->cases[i]);
    }
    print_message("%-30s %.2g, with bf16 %.2g, %.2g round differently; %d runs without a kernel\n", op->name,
                  test->worst, test->worst_mixed, test->worst_flipped, test->left_out);
    if (test->failures)
        fail_msg("%d differences", test->failures);
}

/* Outputs that nobody reads are NULL; the others are the same as if all were read. */
static void unread_outputs_are_left_out(void **state)
{
    const op_test *test = *state;
    const att_op *op = test->op;
    case_drawn drawn =
        case_draw((case_setup){context, op, &op->cases[0], ATT_F32, works_on_groups(op->name) ? 2 : 1, false, 0, 0});
    case_result all, some;
    bool runs = device_run(&drawn, 0, &all);
    for (int out = 0; runs && out < drawn.out_count && drawn.out_count > 1; out++) {
        if (drawn.out[out].kind == ATT_SHARED && !works_on_groups(op->name))
            continue;
        assert_true(device_run(&drawn, 1u << out, &some));
        for (int other = 0; other < drawn.out_count; other++)
            if (other != out)
                assert_true(case_difference(&some, &all, other) == 0);
        case_result_free(&some);
    }
    if (runs)
        case_result_free(&all);
    case_free(&drawn);
}

static bool is_wanted(const char *op, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], op))
            return true;
    return count == 0;
}

static bool has_kernel(const char *op)
{
    for (const att_kernel *const *kernel = backend->kernels; *kernel; kernel++)
        if (!strcmp((*kernel)->op, op))
            return true;
    return false;
}

enum { MOST_OPS = 256 };
static op_test op_tests[MOST_OPS];
static struct CMUnitTest tests[2 * MOST_OPS];

int main(int argc, char **argv)
{
    int count = 0;
    if (!device_open())
        return DEVICE_SKIPPED;
    for (const att_op *const *op = att_ops; *op; op++) {
        if (!is_wanted((*op)->name, argc - 1, argv + 1))
            continue;
        if (!has_kernel((*op)->name)) {
            print_message("the backend \"cuda\" has no kernel for %s\n", (*op)->name);
            continue;
        }
        op_tests[count] = (op_test){.op = *op};
        tests[2 * count] = (struct CMUnitTest){(*op)->name, agrees_with_the_reference, NULL, NULL, &op_tests[count]};
        tests[2 * count + 1] =
            (struct CMUnitTest){(*op)->name, unread_outputs_are_left_out, NULL, NULL, &op_tests[count]};
        count++;
    }
    int failed = _cmocka_run_group_tests("cuda", tests, (size_t)(2 * count), NULL, NULL);
    att_context_destroy(&context);
    return failed;
}
