/* Compares every CPU kernel with the reference on every case of its op, on each processor tier of this machine. Each
 * tier runs in a process of its own, because the context and oneDNN read the tier only once. Each kernel also runs in
 * several parts, which must give the same bits as one part. */
#include "engine/kernels/case.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/attention.h"
#include "engine/ops/list.h"

/* The largest allowed difference, relative to the largest magnitude of the output. The number beside each is the worst
 * measured one, over all tiers and cases. `name` NULL: every case of the op; the first entry that fits counts. */
typedef struct tolerance {
    const char *op, *name;
    double limit;
} tolerance;

static const tolerance tolerances[] = {
    {"linear", NULL, 2e-6},             /* 1.2e-6 */
    {"linear_weight_grad", NULL, 2e-6}, /* 5.5e-7 */
    {"conv2d", NULL, 2e-6},             /* 1.0e-6 */
    {"conv2d_data_grad", NULL, 2e-6},   /* 1.2e-6 */
    {"conv2d_weight_grad", NULL, 2e-6}, /* 1.2e-6 */
    {"conv_transpose2d", NULL, 2e-6},   /* 1.1e-6 */
    /* Measured: 1.2e-5. In f32, the mean of 1e4 is known to 5e-4, and the deviations of 1 are measured from it. */
    {"layer_norm", "large_mean", 2e-5},
    {"group_norm", "large_mean", 3e-5}, /* 1.4e-5, for the same reason */
    {"layer_norm", NULL, 1e-6},         /* 1.4e-7 */
    {"layer_norm_grad", NULL, 2e-6},    /* 5.1e-7 */
    /* Measured: 2.1e-4. In f32, scores of several thousands are known to 1e-4, and so are the exponents and small
       weights; cubes of these have three times this error. */
    {"attention", "sharp", 4e-4},
    {"attention", NULL, 4e-6},         /* 1.9e-6 */
    {"attention_grad", NULL, 4e-6},    /* 1.1e-6 */
    {"channel_gram", NULL, 3e-6},      /* 1.2e-6 */
    {"cosine_heads_grad", NULL, 5e-6}, /* 2.5e-6, of sums of few numbers that cancel */
    {NULL, NULL, 1.5e-6},              /* 7.9e-7, of sums over rows */
};

/* One bit for each input that the case has. */
static unsigned present_inputs(const att_op_case *definition)
{
    unsigned present = 0;
    for (int i = 0; i < definition->in_count; i++)
        present |= (unsigned)att_desc_present(&definition->in[i].desc) << i;
    return present;
}

/* If all operands of attention are bf16 and the processor multiplies bf16, p and ds are rounded to bf16 too. Other sums
 * and statistics stay f32. */
static const double rounded_inside_limit = 1e-2; /* 5.5e-3 */

static bool is_rounded_inside(const case_setup *setup, int out)
{
    bool forward = !strcmp(setup->op->name, "attention"), backward = !strcmp(setup->op->name, "attention_grad");
    enum { GRAD_O = 1 }; /* no operand of a product */
    unsigned operands = present_inputs(setup->definition) & setup->op->autocast_in & ~(backward ? 1u << GRAD_O : 0);
    return ((forward && out == 0) || backward) && (setup->autocast_in & operands) == operands &&
           att_context_has_bf16(context);
}

static double limit_of(const case_setup *setup, int out)
{
    if (is_rounded_inside(setup, out))
        return rounded_inside_limit;
    const tolerance *t = tolerances;
    while (t->op && (strcmp(t->op, setup->op->name) || (t->name && strcmp(t->name, setup->definition->name))))
        t++;
    return t->limit;
}

/* Updates divide one range among threads. All other ops work on groups of samples. */
static bool works_on_groups(const char *op)
{
    return strcmp(op, "sum_lanes") && strcmp(op, "sum_squares") && strcmp(op, "adamw") && strcmp(op, "sgd") &&
           strcmp(op, "adam") && strcmp(op, "ema");
}

static bool is_statistics(const att_op *op, int out)
{
    return !strcmp(op->name, "attention") && out == 2;
}

static double worst_measured, worst_rounded_inside, worst_flipped;
/* The share of elements of a bf16 output that may be rounded to the other neighbour when the exact value lies near the
 * middle of two numbers. An output of few elements has a limit of its own: a rounding error shows in half of them. */
static const double flipped_limit = 0.02; /* 0.0083, of group_norm's case "large_mean"; 0.0032 in all others */

static double bf16_difference(const case_setup *setup, const case_result *ours, const case_result *truth, int out)
{
    double flipped = 0, difference = case_difference_bf16(ours, truth, out, limit_of(setup, out), &flipped);
    flipped -= 1 / (double)ours->count[out];
    worst_flipped = fmax(worst_flipped, flipped);
    if (!(flipped <= flipped_limit))
        fail_msg("%s, case %s, in %x out %x is_bf16: %g of output %d round differently", setup->op->name,
                 setup->definition->name, setup->autocast_in, setup->autocast_out, flipped, out);
    return difference;
}

static double output_difference(const case_setup *setup, const case_result *ours, const case_result *truth, int out)
{
    if (is_statistics(setup->op, out))
        return case_statistics_difference(ours, truth, out);
    return truth->desc[out].dtype == ATT_BF16 ? bf16_difference(setup, ours, truth, out)
                                              : case_difference(ours, truth, out);
}

static void compare(const case_setup *setup, const case_result *ours, const case_result *truth)
{
    for (int out = 0; out < truth->out_count; out++) {
        if (!truth->data[out])
            continue;
        double difference = output_difference(setup, ours, truth, out);
        double *worst = is_rounded_inside(setup, out) ? &worst_rounded_inside : &worst_measured;
        *worst = fmax(*worst, difference);
        if (!(difference <= limit_of(setup, out)))
            fail_msg("%s, case %s, %lld samples, in %x out %x is_bf16: output %d differs by %g", setup->op->name,
                     setup->definition->name, (long long)setup->group, setup->autocast_in, setup->autocast_out, out,
                     difference);
    }
}

/* Whether the second operand is f32 and is rounded to bf16 inside the kernel. */
static bool is_product(const char *op)
{
    return !strncmp(op, "linear", 6) || !strncmp(op, "conv", 4) || !strncmp(op, "affine", 6) || !strcmp(op, "matmul");
}

/* The bits of our own kernels do not depend on how many threads share a call; nor do those of batches of matrices.
 * Those of oneDNN's products over the rows of a call may. */
static bool has_fixed_bits(const char *op)
{
    return !is_product(op) || !strcmp(op, "matmul");
}

static void compare_bits(const case_setup *setup, const case_result *one, const case_result *many, int parts)
{
    for (int out = 0; out < one->out_count; out++)
        if (case_difference(one, many, out) != 0)
            fail_msg("%s, case %s, in %x is_bf16: output %d of %d parts has other bits than of one", setup->op->name,
                     setup->definition->name, setup->autocast_in, out, parts);
}

static void run_case(case_setup setup)
{
    static const int parts[] = {3, 7};
    case_drawn drawn = case_draw(setup);
    const att_kernel *kernel = tiers_kernel_for(&drawn);
    case_result truth, one, many;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, kernel, 1, 0, &one));
    compare(&setup, &one, &truth);
    for (int i = 0; i < (setup.definition->bench ? 1 : 2); i++) {
        assert_true(case_run(&drawn, kernel, parts[i], 0, &many));
        if (has_fixed_bits(setup.op->name))
            compare_bits(&setup, &one, &many, parts[i]);
        else
            compare(&setup, &many, &truth);
        case_result_free(&many);
    }
    case_result_free(&one);
    case_result_free(&truth);
    case_free(&drawn);
}

TEST(every_kernel_agrees_with_the_reference)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        worst_measured = 0;
        for (int i = 0; i < (*op)->case_count; i++) {
            if (!case_is_run(&(*op)->cases[i]))
                continue;
            run_case((case_setup){context, *op, &(*op)->cases[i], ATT_F32, 1, false, 0, 0});
            if (!(*op)->cases[i].bench && works_on_groups((*op)->name))
                run_case((case_setup){context, *op, &(*op)->cases[i], ATT_F32, 3, true, 0, 0});
        }
        if (getenv("ATT_SHOW_ERRORS"))
            print_message("%-30s %.2g\n", (*op)->name, worst_measured);
    }
}

/* One bit for each output. */
static unsigned outputs_of(const att_op *op, const att_op_case *definition)
{
    case_drawn drawn = case_draw((case_setup){context, op, definition, ATT_F32, 1, false, 0, 0});
    unsigned outputs = (1u << drawn.out_count) - 1;
    case_free(&drawn);
    return outputs;
}

/* Cases of real networks, and others with many numbers, for which not every combination is run. */
static bool is_large(const att_op_case *definition)
{
    enum { MANY = 1 << 13 };
    int64_t most = 0;
    for (int i = 0; i < definition->in_count; i++)
        if (att_desc_present(&definition->in[i].desc) && att_shape_count(definition->in[i].desc.shape) > most)
            most = att_shape_count(definition->in[i].desc.shape);
    return definition->bench || most > MANY;
}

/* Whether a combination of bf16 values is run. Of many values, one is bf16, or all but one, or all. */
static bool is_combination_run(const att_op_case *definition, unsigned is_bf16, unsigned all)
{
    enum { FEW = 4 };
    const int chosen = __builtin_popcount(is_bf16), most = __builtin_popcount(all);
    if ((is_bf16 & ~all) || chosen == 0)
        return false;
    if (is_large(definition))
        return chosen == most;
    return most <= FEW || chosen == 1 || chosen >= most - 1;
}

/* Runs a case with bf16 in place of f32 for inputs and outputs that may be bf16. */
static void run_bf16(const att_op *op, const att_op_case *definition)
{
    enum { OUTPUTS_AT = 16 };
    unsigned in_all = op->autocast_in & present_inputs(definition),
             out_all = op->autocast_out & outputs_of(op, definition);
    for (unsigned in = 0; in <= in_all; in++)
        for (unsigned out = 0; out <= out_all; out++)
            if (is_combination_run(definition, in | out << OUTPUTS_AT, in_all | out_all << OUTPUTS_AT))
                run_case((case_setup){context, op, definition, ATT_F32, definition->bench ? 1 : 3, !definition->bench,
                                      in, out});
}

/* Products with weights have tests of their own, because not every processor multiplies bf16. */
TEST(every_mixed_kernel_agrees_with_the_reference)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        if (is_product((*op)->name) || !((*op)->autocast_in | (*op)->autocast_out))
            continue;
        worst_measured = worst_rounded_inside = worst_flipped = 0;
        for (int i = 0; i < (*op)->case_count; i++)
            if (case_is_run(&(*op)->cases[i]))
                run_bf16(*op, &(*op)->cases[i]);
        if (getenv("ATT_SHOW_ERRORS"))
            print_message("%-30s %.2g, rounded inside %.2g, %.2g round differently\n", (*op)->name, worst_measured,
                          worst_rounded_inside, worst_flipped);
    }
}

/* Casts every f32 number whose lower half is near the rounding boundary to bf16, including NaN and subnormals. */
TEST(casts_round_every_number)
{
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { COUNT = 6 * 65536 - 3 };
    const att_op *op = case_op(att_ops, "cast");
    const att_op_case definition = {
        .name = "every", .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(COUNT)}}}, .in_count = 1};
    case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, true, 0, 1});
    for (uint32_t i = 0; i < COUNT; i++)
        memcpy((char *)drawn.block[0] + (size_t)(i + 1) * 4, &(uint32_t){i / 6 << 16 | low[i % 6]}, 4);
    case_result truth, ours;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, "cast"), 3, 0, &ours));
    assert_memory_equal(ours.data[0], truth.data[0], COUNT * sizeof(uint16_t));
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

/* Outputs that nobody reads are NULL; the others are the same as if all were read. */
TEST(unread_outputs_are_left_out)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        case_drawn drawn = case_draw(
            (case_setup){context, *op, &(*op)->cases[0], ATT_F32, works_on_groups((*op)->name) ? 2 : 1, false, 0, 0});
        case_result all, some;
        assert_true(case_run(&drawn, tiers_kernel_for(&drawn), 1, 0, &all));
        for (int out = 0; out < drawn.out_count && drawn.out_count > 1; out++) {
            if (drawn.out[out].kind == ATT_SHARED && works_on_groups((*op)->name) == false)
                continue;
            assert_true(case_run(&drawn, tiers_kernel_for(&drawn), 1, 1u << out, &some));
            for (int other = 0; other < drawn.out_count; other++)
                if (other != out)
                    assert_true(case_difference(&some, &all, other) == 0);
            case_result_free(&some);
        }
        case_result_free(&all);
        case_free(&drawn);
    }
}
