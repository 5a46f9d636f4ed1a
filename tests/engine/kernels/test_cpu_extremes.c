/* Every CPU kernel against the reference with unusual numbers: all zeros, subnormal and large numbers, and NaN in one
 * element, which must reach the same outputs as in the reference. In f32 and bf16, on each processor tier. */
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/binary_cross_entropy.h"
#include "engine/ops/cases.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/l2_norm.h"
#include "engine/ops/list.h"

/* Relative to the largest result. Measured: 6.8e-7. */
static const double LIMIT = 2e-6;
/* Nothing is promised for results below the smallest normal number: instructions on pairs of bf16 take subnormal
 * numbers as zero, and a sum may have several of them. */
static const double TINY = 0x1p-122;

static bool works_on_groups(const char *op)
{
    return strcmp(op, "sum_lanes") && strcmp(op, "sum_squares") && strcmp(op, "adamw") && strcmp(op, "sgd") &&
           strcmp(op, "adam") && strcmp(op, "ema");
}

static void multiply_inputs(const case_drawn *drawn, double factor)
{
    for (int i = 0; i < drawn->in_count; i++) {
        const att_desc *desc = &drawn->in[i];
        for (int64_t e = 0; drawn->data[i] && case_is_float(desc->dtype) && e < case_count(&drawn->setup, desc); e++)
            att_element_store(desc->dtype, (void *)drawn->data[i], e,
                              att_element_load(desc->dtype, drawn->data[i], e) * factor);
    }
}

static double largest_of(const case_result *result, int out)
{
    double largest = 0;
    for (int64_t e = 0; e < result->count[out]; e++)
        if (isfinite(case_value(result, out, e)))
            largest = fmax(largest, fabs(case_value(result, out, e)));
    return largest;
}

typedef bool (*comparison)(double ours, double truth, double largest, bool is_bf16);

/* NaN exactly where the other one is NaN. */
static bool agree_on_nan(double ours, double truth, double largest, bool is_bf16)
{
    (void)largest, (void)is_bf16;
    return isnan(ours) == isnan(truth);
}

/* NaN at least where the other one is NaN. */
static bool has_nan(double ours, double truth, double largest, bool is_bf16)
{
    (void)largest, (void)is_bf16;
    return isnan(ours) || !isnan(truth);
}

/* Whether the kernel may or may not compute products of input `in` with zeros: the zeros around a map, or those that
 * pad an odd number of bf16 channels. */
static bool meets_zeros(const char *op, int in, bool is_bf16)
{
    return !strncmp(op, "conv", 4) && (is_bf16 || in == 1 || !strcmp(op, "conv2d_weight_grad"));
}

static double worst;

/* Whether the numbers are close; in bf16, whether they are neighbours. */
static bool agree(double ours, double truth, double largest, bool is_bf16)
{
    double step = is_bf16 ? case_bf16_step(fmax(fabs(ours), fabs(truth))) : 0;
    double error = ours == truth ? 0 : fmax(0, fabs(ours - truth) - step - TINY) / fmax(largest, TINY);
    worst = fmax(worst, error);
    return error <= LIMIT;
}

/* Whether output `out` has the place of a row's largest score. If all scores are equal or one is NaN, the tests of
 * attention check it. */
static bool is_statistics(const att_op *op, int out)
{
    return !strcmp(op->name, "attention") && out == 2;
}

static void compare(const case_drawn *drawn, const char *what, comparison close)
{
    case_result truth, ours;
    case_round_weights(drawn);
    truth_run(drawn, &truth);
    const att_kernel *kernel = tiers_kernel_for(drawn);
    assert_true(case_run(drawn, kernel, 1, 0, &ours));
    for (int out = 0; out < truth.out_count; out++) {
        double largest = largest_of(&truth, out);
        bool is_bf16 = truth.desc[out].dtype == ATT_BF16;
        for (int64_t e = 0; !is_statistics(drawn->setup.op, out) && e < truth.count[out]; e++)
            if (!close(case_value(&ours, out, e), case_value(&truth, out, e), largest, is_bf16))
                fail_msg("%s, case %s, in %x out %x is_bf16, %s: element %lld of output %d is %g instead of %g",
                         drawn->setup.op->name, drawn->setup.definition->name, drawn->setup.autocast_in,
                         drawn->setup.autocast_out, what, (long long)e, out, case_value(&ours, out, e),
                         case_value(&truth, out, e));
    }
    case_result_free(&truth);
    case_result_free(&ours);
}

typedef void (*visitor)(const att_op *op, const att_op_case *definition, unsigned autocast_in, unsigned autocast_out);

/* Whether a case is left out because the reference takes long: attention with many queries as well as many keys. Its
 * case many_grouped_keys has as many keys. */
static bool takes_long(const att_op_case *definition)
{
    return definition->bench || strstr(definition->name, "many_tokens");
}

/* Visits every op on its small cases, in f32 and with bf16 for all values that may be bf16. */
static void each_small_case(visitor visit)
{
    for (const att_op *const *op = att_ops; *op; op++)
        for (int i = 0; i < (*op)->case_count; i++) {
            if (takes_long(&(*op)->cases[i]))
                continue;
            visit(*op, &(*op)->cases[i], 0, 0);
            if ((*op)->autocast_in | (*op)->autocast_out)
                visit(*op, &(*op)->cases[i], (*op)->autocast_in, (*op)->autocast_out);
        }
}

static case_drawn draw(const att_op *op, const att_op_case *definition, unsigned autocast_in, unsigned autocast_out)
{
    return case_draw((case_setup){context, op, definition, ATT_F32, works_on_groups(op->name) ? 3 : 1, false,
                                  autocast_in, autocast_out});
}

/* The scores of attention grow with the square of its input, so its case "sharp" stands for large numbers. Cases of
 * large numbers already define their tolerance. The weights of a map are divided by their sum, and entropy lost in a
 * step is a difference of entropies: where a step loses nearly nothing it is rounding. RoIAlign reads as many points as
 * a box covers places, and boxes that grow cover millions. */
static void visit_magnitudes(const att_op *op, const att_op_case *definition, unsigned autocast_in,
                             unsigned autocast_out)
{
    static const struct magnitude {
        const char *name;
        double factor;
    } magnitudes[] = {{"zeros", 0}, {"subnormal", 0x1p-135}, {"small", 0x1p-60}, {"large", 0x1p12}};
    /* Other magnitudes run the same code: under sanitizers one is enough. */
    for (int i = is_sanitized() ? 3 : 0; i < 4 && !strstr(definition->name, "large"); i++) {
        if ((!strncmp(op->name, "attention", 9) || !strncmp(op->name, "roi_align", 9)) && magnitudes[i].factor > 1)
            continue;
        if (!strcmp(op->name, "map_statistic") && (i == 1 || i == 2))
            continue;
        case_drawn drawn = draw(op, definition, autocast_in, autocast_out);
        multiply_inputs(&drawn, magnitudes[i].factor);
        compare(&drawn, magnitudes[i].name, agree);
        case_free(&drawn);
    }
}

TEST(unusual_magnitudes_are_as_in_the_reference)
{
    each_small_case(visit_magnitudes);
    print_message("largest difference %.2g of the largest result\n", worst);
}

/* The squares of these numbers overflow f32. */
static void visit_huge(const att_op *op, const att_op_case *definition, unsigned autocast_in, unsigned autocast_out)
{
    if (strcmp(op->name, "rms_norm") && strcmp(op->name, "l2_norm"))
        return;
    case_drawn drawn = draw(op, definition, autocast_in, autocast_out);
    float *x = drawn.block[0];
    for (int64_t i = 0; i < case_count(&drawn.setup, &drawn.in[0]); i++)
        x[i] *= 0x1p80f;
    compare(&drawn, "huge", agree);
    case_free(&drawn);
}

TEST(norms_of_huge_rows_do_not_overflow)
{
    each_small_case(visit_huge);
}

/* One index is below 0, one is after the last row. */
static void visit_outside(const att_op *op, const att_op_case *definition, unsigned autocast_in, unsigned autocast_out)
{
    static const struct user {
        const char *op;
        int input; /* the indices */
        bool has_nan;
    } users[] = {{"embed", 1, true},
                 {"embed_grad", 1, false},
                 {"upsampled_cross_entropy", 1, true},
                 {"upsampled_cross_entropy_grad", 2, true}};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        if (strcmp(op->name, users[i].op))
            continue;
        case_drawn drawn = draw(op, definition, autocast_in, autocast_out);
        int32_t *indices = drawn.block[users[i].input];
        assert_true(case_count(&drawn.setup, &drawn.in[users[i].input]) > 1);
        indices[0] = -2;
        indices[1] = definition->in[users[i].input].limit;
        compare(&drawn, "outside", users[i].has_nan ? agree_on_nan : agree);
        case_free(&drawn);
    }
}

TEST(indices_outside_are_as_in_the_reference)
{
    each_small_case(visit_outside);
}

/* Rows whose norm equals eps exactly have the gradient of a constant divisor. */
TEST(norms_of_eps_are_as_in_the_reference)
{
    const att_l2_norm_attrs attrs = {.eps = 0.25};
    const att_op *op = case_op(att_ops, "l2_norm_grad");
    for (int i = 0; i < op->case_count; i++) {
        att_op_case at_eps = op->cases[i];
        if (at_eps.bench)
            continue;
        at_eps.attrs = &attrs;
        case_drawn drawn = draw(op, &at_eps, 0, 0);
        float *norms = drawn.block[2];
        for (int64_t row = 0; row < case_count(&drawn.setup, &drawn.in[2]); row++)
            norms[row] = 0.25f;
        compare(&drawn, "norms of eps", agree);
        case_free(&drawn);
    }
}

static void visit_nan(const att_op *op, const att_op_case *definition, unsigned autocast_in, unsigned autocast_out)
{
    for (int i = 0; i < definition->in_count; i++) {
        case_drawn drawn = draw(op, definition, autocast_in, autocast_out);
        if (drawn.data[i] && case_is_float(drawn.in[i].dtype)) {
            int64_t middle = case_count(&drawn.setup, &drawn.in[i]) / 2;
            att_element_store(drawn.in[i].dtype, (void *)drawn.data[i], middle, NAN);
            compare(&drawn, "one NaN", meets_zeros(op->name, i, autocast_in) ? has_nan : agree_on_nan);
        }
        case_free(&drawn);
    }
}

TEST(nan_goes_where_it_goes_in_the_reference)
{
    each_small_case(visit_nan);
}

/* GELU and its slope on a dense grid have the errors that kernels/cpu/tier/vmath.h states. Measured: 4.8e-7 for |x| <=
 * 3, 2.6e-7 |x| beyond; 3.6e-7 for the slope. */
TEST(gelu_is_as_close_as_it_says)
{
    enum { COUNT = 100000 };
    const att_op_case grid = {.name = "grid",
                              .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(COUNT)}, .scale = 1},
                                     {.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(COUNT)}, .scale = 1}},
                              .in_count = 2};
    att_op_case one = grid;
    one.in_count = 1;
    double near = 0, far = 0, slope = 0;
    for (int backward = 0; backward < 2; backward++) {
        const char *name = backward ? "gelu_grad" : "gelu";
        case_drawn drawn = draw(case_op(att_ops, name), backward ? &grid : &one, 0, 0);
        float *x = drawn.block[backward], *dy = drawn.block[0];
        for (int64_t i = 0; i < 3 * COUNT; i++) {
            if (backward)
                dy[i] = 1;
            x[i] = (float)(8 * ((double)i / (1.5 * COUNT) - 1));
        }
        case_result truth, ours;
        truth_run(&drawn, &truth);
        assert_true(case_run(&drawn, tiers_kernel(context, name), 1, 0, &ours));
        for (int64_t i = 0; i < 3 * COUNT; i++) {
            double error = fabs(case_value(&ours, 0, i) - case_value(&truth, 0, i)), size = fabs((double)x[i]);
            assert_true(isfinite(error));
            double *kind = backward ? &slope : size <= 3 ? &near : &far;
            *kind = fmax(*kind, backward || size <= 3 ? error : error / size);
        }
        case_result_free(&truth);
        case_result_free(&ours);
        case_free(&drawn);
    }
    print_message("GELU: errors up to %.2g, %.2g of x beyond 3; its slope: %.2g\n", near, far, slope);
    assert_true(near <= 6e-7 && far <= 4e-7 && slope <= 5e-7);
}

/* Relative error of the hyperbolic tangent on a dense grid. Measured: 3.0e-7. */
TEST(tanh_is_as_close_as_it_says)
{
    enum { COUNT = 100000 };
    const att_op_case grid = {
        .name = "grid", .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(COUNT)}, .scale = 1}}, .in_count = 1};
    case_drawn drawn = draw(case_op(att_ops, "tanh"), &grid, 0, 0);
    float *x = drawn.block[0];
    for (int64_t i = 0; i < 3 * COUNT; i++)
        x[i] = (float)(12 * ((double)i / (1.5 * COUNT) - 1));
    case_result truth, ours;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, "tanh"), 1, 0, &ours));
    double largest = 0;
    for (int64_t i = 0; i < 3 * COUNT; i++) {
        double expected = case_value(&truth, 0, i), got = case_value(&ours, 0, i);
        assert_true(fabs(got) <= 1);
        if (expected != 0)
            largest = fmax(largest, fabs(got - expected) / fabs(expected));
    }
    print_message("tanh: relative errors up to %.2g\n", largest);
    assert_true(largest <= 5e-7);
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

/* Masked elements are minus infinity: they become 0. A row with only masked elements becomes NaN. */
TEST(softmax_leaves_masked_elements_out)
{
    enum { COLUMNS = 35, ROWS = 3 };
    const att_op_case rows = {.name = "rows",
                              .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(ROWS, COLUMNS)}, .scale = 1}},
                              .in_count = 1};
    case_drawn drawn = draw(case_op(att_ops, "softmax"), &rows, 0, 0);
    float *x = drawn.block[0];
    for (int i = 0; i < COLUMNS; i++) {
        x[i] = i % 3 ? x[i] : -INFINITY;
        x[COLUMNS + i] = -INFINITY;
    }
    case_result truth, ours;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, "softmax"), 1, 0, &ours));
    for (int i = 0; i < COLUMNS; i++) {
        double got = case_value(&ours, 0, i);
        assert_true(i % 3 ? fabs(got - case_value(&truth, 0, i)) < 1e-6 : got == 0); /* measured: 3e-8 */
        assert_true(isnan(case_value(&ours, 0, COLUMNS + i)));
        assert_true(isfinite(case_value(&ours, 0, 2 * COLUMNS + i)));
    }
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

/* A mask of -100 makes weights that would be subnormal numbers, and arithmetic with these is a hundred times slower. */
TEST(exponentials_are_never_subnormal)
{
    enum { COLUMNS = 300 };
    const att_op_case row = {
        .name = "row", .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(1, COLUMNS)}, .scale = 1}}, .in_count = 1};
    case_drawn drawn = draw(case_op(att_ops, "softmax"), &row, 0, 0);
    float *x = drawn.block[0];
    for (int i = 0; i < COLUMNS; i++)
        x[i] = i == 0 ? 0 : -80 - (float)i / 10; /* from -80.1 to -109.9 */
    case_result ours;
    assert_true(case_run(&drawn, tiers_kernel(context, "softmax"), 1, 0, &ours));
    for (int i = 1; i < COLUMNS; i++)
        assert_true(x[i] < -87.3f ? case_value(&ours, 0, i) == 0 : case_value(&ours, 0, i) >= 0x1p-126);
    case_result_free(&ours);
    case_free(&drawn);
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

enum { SURE_CLASSES = 37, SURE = 5 };

/* The gradient of a class, without subtracting numbers that are nearly equal. */
static double sure_gradient(bool binary, const float *x, const double *t, int c)
{
    double sum = 0, others = 0, targets = 0;
    if (binary)
        return ((1 - t[c]) / (1 + exp(-x[c])) - t[c] / (1 + exp(x[c]))) / SURE_CLASSES;
    for (int i = 0; i < SURE_CLASSES; i++) {
        sum += exp(x[i]);
        others += i == c ? 0 : exp(x[i]);
        targets += i == c ? 0 : t[i];
    }
    return targets * exp(x[c]) / sum - t[c] * others / sum;
}

/* One logit is larger than the others by 20, so that its probability is 1 - 7e-8: a float between these two differs
 * from both by most of that. target: class, class with smoothing, or a number for each class. */
static void check_sure(bool binary, double smoothing, bool soft)
{
    const att_op *op = case_op(att_ops, binary ? "binary_cross_entropy_grad" : "cross_entropy_grad");
    const att_cross_entropy_attrs plain = {.smoothing = smoothing};
    const att_binary_cross_entropy_attrs each = {.smoothing = smoothing, .positive_weight = 1};
    const att_op_case sure = {
        .name = "sure",
        .attrs = binary ? (const void *)&each : &plain,
        .in = {SCALAR,
               SAMPLE(SURE_CLASSES),
               {.desc = {soft ? ATT_F32 : ATT_I32, ATT_SAMPLE, soft ? att_shape_of(SURE_CLASSES) : (att_shape){0}},
                .limit = SURE_CLASSES}},
        .in_count = 3};
    case_drawn drawn = case_draw((case_setup){context, op, &sure, ATT_F32, 1, false, 0, 0});
    float *dloss = drawn.block[0], *x = drawn.block[1], *given = drawn.block[2];
    double t[SURE_CLASSES];
    *dloss = 1;
    for (int c = 0; c < SURE_CLASSES; c++) {
        x[c] = c == SURE ? 20 : -(float)(c % 3);
        t[c] = (c == SURE ? 1 - smoothing : 0) + smoothing / SURE_CLASSES;
        if (soft)
            t[c] = given[c] = c == SURE ? 1 - 0x1p-20f : c == SURE + 1 ? 0x1p-20f : 0;
    }
    if (!soft)
        *(int32_t *)drawn.block[2] = SURE;
    case_result ours;
    assert_true(case_run(&drawn, tiers_kernel(context, op->name), 1, 0, &ours));
    for (int c = 0; c < SURE_CLASSES; c++) {
        double expected = sure_gradient(binary, x, t, c), got = case_value(&ours, 0, c);
        double error = fabs(got - expected) / fabs(expected);
        if (!(error < 1e-6)) /* measured: 1.6e-7 */
            fail_msg("%s, smoothing %g, soft %d: class %d has %.9g, expected %.9g", op->name, smoothing, soft, c, got,
                     expected);
        worst = fmax(worst, error);
    }
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(gradients_of_sure_classes_keep_their_digits)
{
    worst = 0;
    for (int binary = 0; binary < 2; binary++) {
        check_sure(binary, 0, false);
        check_sure(binary, 0.1, false);
        check_sure(binary, 0, true);
    }
    print_message("losses: relative errors up to %.2g\n", worst);
}
