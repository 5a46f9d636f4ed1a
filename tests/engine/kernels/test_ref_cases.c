/* The results of reference kernels on every small case do not depend on parts, group size or alignment. */
#include "engine/kernels/direct.h"

TEST_GROUP(direct_setup, close_context)

/* Updates divide one range among threads. All other ops work on groups of samples. */
static bool couples_no_samples(const att_op *op)
{
    return strcmp(op->name, "sum_lanes") && strcmp(op->name, "sum_squares") && strcmp(op->name, "adamw") &&
           strcmp(op->name, "adam") && strcmp(op->name, "sgd") && strcmp(op->name, "ema");
}

static void assert_same_bits(const case_result *a, const case_result *b, const case_setup *setup)
{
    for (int i = 0; i < a->out_count; i++)
        if (case_difference(a, b, i) != 0)
            fail_msg("%s, case %s: output %d differs", setup->op->name, setup->definition->name, i);
}

/* The log-sum-exp of a query without keys is infinite: its map is 0. */
static bool is_infinite(const case_setup *setup, int out)
{
    enum { LSE = 1 };
    return !strcmp(setup->op->name, "attention") && !strcmp(setup->definition->name, "no_keys") && out == LSE;
}

static void assert_finite(const case_result *result, const case_setup *setup)
{
    for (int i = 0; i < result->out_count; i++)
        for (int64_t e = 0; e < result->count[i]; e++)
            if (is_infinite(setup, i) ? case_value(result, i, e) != INFINITY : !isfinite(case_value(result, i, e)))
                fail_msg("%s, case %s: element %lld of output %d is not finite", setup->op->name,
                         setup->definition->name, (long long)e, i);
}

static void compare_parts(case_setup setup)
{
    const att_kernel *kernel = case_kernel(att_kernels_ref, setup.op->name);
    case_drawn drawn = case_draw(setup);
    case_result one, many;
    assert_true(case_run(&drawn, kernel, 1, 0, &one));
    assert_true(case_run(&drawn, kernel, 3, 0, &many));
    assert_same_bits(&one, &many, &setup);
    assert_finite(&one, &setup);
    case_result_free(&many);
    case_free(&drawn);

    setup.skew = true;
    drawn = case_draw(setup);
    assert_true(case_run(&drawn, kernel, 7, 0, &many));
    assert_same_bits(&one, &many, &setup);
    case_result_free(&many);
    case_result_free(&one);
    case_free(&drawn);
}

TEST(parts_and_alignment_change_no_bit)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        for (int i = 0; i < (*op)->case_count; i++) {
            const att_op_case *definition = &(*op)->cases[i];
            if (definition->bench)
                continue;
            case_setup setup = {context, *op, definition, ATT_F32, couples_no_samples(*op) ? 3 : 1, false, 0, 0};
            compare_parts(setup);
            setup.dtype = ATT_F64;
            setup.group = 1;
            compare_parts(setup);
        }
    }
}

/* Any subset of outputs may be unread: the others do not change. */
TEST(unread_outputs_change_no_other)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        case_setup setup = {context, *op, &(*op)->cases[0], ATT_F32, couples_no_samples(*op) ? 3 : 1, false, 0, 0};
        case_drawn drawn = case_draw(setup);
        const att_kernel *kernel = case_kernel(att_kernels_ref, (*op)->name);
        bool in_place = drawn.out[0].kind == ATT_SHARED; /* updates read all outputs */
        case_result all;
        assert_true(case_run(&drawn, kernel, 1, 0, &all));
        for (unsigned unread = 1; !in_place && unread + 1 < 1u << drawn.out_count; unread++) {
            case_result some;
            assert_true(case_run(&drawn, kernel, 2, unread, &some));
            for (int i = 0; i < drawn.out_count; i++)
                assert_true(unread >> i & 1 || case_difference(&some, &all, i) == 0);
            case_result_free(&some);
        }
        case_result_free(&all);
        case_free(&drawn);
    }
}

TEST(every_op_has_one_reference_kernel_and_a_case)
{
    int ops = 0, kernels = 0;
    for (const att_op *const *op = att_ops; *op; op++, ops++) {
        const att_kernel *kernel = case_kernel(att_kernels_ref, (*op)->name);
        assert_non_null(kernel);
        assert_true(!kernel->f32 && !kernel->accepts);
        assert_true((*op)->case_count > 0);
        assert_non_null((*op)->help);
    }
    for (const att_kernel *const *kernel = att_kernels_ref; *kernel; kernel++, kernels++)
        assert_int_equal((*kernel)->features, 0);
    assert_int_equal(ops, kernels);
}

TEST(bf16_rounds_to_nearest_even)
{
    uint16_t data[1];
    const double values[][2] = {
        {1, 1}, {1.00390625, 1}, {1.01171875, 1.015625}, {-3.14159, -3.140625}, {1e39, INFINITY}};
    for (int i = 0; i < 5; i++) {
        att_element_store(ATT_BF16, data, 0, values[i][0]);
        assert_true(att_element_load(ATT_BF16, data, 0) == values[i][1]);
    }
    att_element_store(ATT_BF16, data, 0, NAN);
    assert_true(isnan(att_element_load(ATT_BF16, data, 0)));
}
