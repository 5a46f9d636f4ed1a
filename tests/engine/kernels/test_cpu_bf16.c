/* Matrix products in bf16 against the reference, on every tier. Tiers without bf16 products widen their operands. */
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/list.h"

/* Relative to the largest result. Measured: 7.4e-7. */
static const double LIMIT = 2e-6;
/* Share of elements of bf16 results that may be the neighbour of the reference's number. Measured: 1.1e-4. */
static const double FLIPPED = 1e-3;

static double worst, worst_flipped;

static void compare(const case_setup *setup, const case_result *ours, const case_result *truth)
{
    for (int out = 0; out < truth->out_count; out++) {
        double flipped = 0, difference = truth->desc[out].dtype == ATT_BF16
                                             ? case_difference_bf16(ours, truth, out, LIMIT, &flipped)
                                             : case_difference(ours, truth, out);
        flipped = fmax(0, flipped - 1 / (double)ours->count[out]);
        worst = fmax(worst, difference);
        worst_flipped = fmax(worst_flipped, flipped);
        if (!(difference <= LIMIT) || !(flipped <= FLIPPED))
            fail_msg("%s, case %s, %lld samples, out %x is_bf16: output %d differs by %g, %g of it rounds differently",
                     setup->op->name, setup->definition->name, (long long)setup->group, setup->autocast_out, out,
                     difference, flipped);
    }
}

static void run_case(case_setup setup)
{
    static const int parts[] = {1, 3};
    case_drawn drawn = case_draw(setup);
    case_round_weights(&drawn);
    const att_kernel *kernel = tiers_kernel_for(&drawn);
    assert_non_null(kernel);
    case_result truth, ours;
    truth_run(&drawn, &truth);
    for (int i = 0; i < 2; i++) {
        assert_true(case_run(&drawn, kernel, parts[i], 0, &ours));
        compare(&setup, &ours, &truth);
        case_result_free(&ours);
    }
    case_result_free(&truth);
    case_free(&drawn);
}

static void run_op(const char *name, unsigned autocast_in, unsigned autocast_out)
{
    const att_op *op = case_op(att_ops, name);
    for (int i = 0; i < op->case_count; i++) {
        if (!case_is_run(&op->cases[i]) || (op->cases[i].bench && autocast_out != op->autocast_out))
            continue;
        run_case((case_setup){context, op, &op->cases[i], ATT_F32, 1, false, autocast_in, autocast_out});
        if (!op->cases[i].bench)
            run_case((case_setup){context, op, &op->cases[i], ATT_F32, 3, true, autocast_in, autocast_out});
    }
    print_message("%s, out %x is_bf16: f32 differs by %.2g, %.2g of bf16 round differently\n", name, autocast_out,
                  worst, worst_flipped);
    worst = worst_flipped = 0;
}

TEST(products_agree_with_the_reference)
{
    run_op("linear", 1, 0);
    run_op("linear", 1, 1);
    run_op("linear_weight_grad", 3, 0);
    run_op("conv2d", 1, 0);
    run_op("conv2d", 1, 1);
    run_op("conv2d", 1 | 8, 1); /* also the residual, if the case has one */
    run_op("conv2d_data_grad", 1, 0);
    run_op("conv2d_data_grad", 1, 1);
    run_op("conv2d_data_grad", 1 | 4 | 8, 1); /* also residual and passed, if the case has them */
    run_op("conv2d_data_grad", 1 | 8, 0);
    run_op("conv2d_weight_grad", 3, 0);
    run_op("conv_transpose2d", 1, 0);
    run_op("conv_transpose2d", 1, 1);
    run_op("conv_transpose2d", 1 | 8, 1);
    run_op("affine", 1, 0);
    run_op("affine", 1, 1);
    run_op("affine", 1 | 8, 1);
    run_op("affine_data_grad", 1, 0);
    run_op("affine_data_grad", 1, 1);
    run_op("affine_data_grad", 1 | 8, 1);
    run_op("affine_sums", 1, 0);
    run_op("affine_sums", 2, 0);
    run_op("affine_sums", 3, 0);
    run_op("matmul", 3, 0);
    run_op("matmul", 3, 1);
}

/* More rows than one pass handles, an odd number of them; columns that do not fill a vector; more outputs than one
 * block. */
TEST(many_rows_are_summed_in_passes)
{
    static const att_op_case odd = {.name = "passes",
                                    .in = {{.desc = {ATT_F32, ATT_SAMPLE, {2, {131, 277}}}, .scale = 1},
                                           {.desc = {ATT_F32, ATT_SAMPLE, {2, {131, 37}}}, .scale = 1}},
                                    .in_count = 2};
    const att_op *op = case_op(att_ops, "linear_weight_grad");
    run_case((case_setup){context, op, &odd, ATT_F32, 5, true, 3, 0});
}

/* The gradient of a weight has the same bits for any number of parts. */
static void check_parts(const char *name)
{
    const att_op *op = case_op(att_ops, name);
    for (int i = 0; i < op->case_count; i++) {
        if (!case_is_run(&op->cases[i]))
            continue;
        case_drawn drawn = case_draw((case_setup){context, op, &op->cases[i], ATT_F32, 1, false, 3, 0});
        case_result one, many;
        assert_true(case_run(&drawn, tiers_kernel_for(&drawn), 1, 0, &one));
        assert_true(case_run(&drawn, tiers_kernel_for(&drawn), 5, 0, &many));
        for (int out = 0; out < one.out_count; out++)
            assert_true(case_difference(&one, &many, out) == 0);
        case_result_free(&one);
        case_result_free(&many);
        case_free(&drawn);
    }
}

TEST(parts_change_no_bit)
{
    check_parts("linear_weight_grad");
    check_parts("conv2d_weight_grad");
    check_parts("affine_sums");
}
