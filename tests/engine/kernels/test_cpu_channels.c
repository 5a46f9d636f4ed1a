/* CPU kernels on channels, on every tier: various widths and numbers of rows, accuracy of batch statistics, and NaN. */
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/activation.h"
#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/channel_gram.h"
#include "engine/ops/group_norm.h"
#include "engine/ops/list.h"

/* --- widths ------------------------------------------------------------------------------------------------------- */

/* Relative to the largest result. Measured: 2.8e-7. */
static const double LIMIT = 1e-6;

static double worst;

static void compare_at(const char *name, const att_op_case *definition, unsigned autocast_in)
{
    const att_op *op = case_op(att_ops, name);
    case_drawn drawn = case_draw((case_setup){context, op, definition, ATT_F32, 2, true, autocast_in, 0});
    case_result truth, ours;
    truth_run(&drawn, &truth);
    for (int parts = 1; parts <= 3; parts += 2) {
        assert_true(case_run(&drawn, tiers_kernel(context, name), parts, 0, &ours));
        for (int out = 0; out < truth.out_count; out++) {
            double difference = case_difference(&ours, &truth, out);
            worst = fmax(worst, difference);
            if (!(difference <= LIMIT))
                fail_msg("%s %s, %d parts: output %d differs by %g", name, definition->name, parts, out, difference);
        }
        case_result_free(&ours);
    }
    case_result_free(&truth);
    case_free(&drawn);
}

static att_case_input drawn_from(att_kind kind, double scale, double shift, att_shape shape)
{
    return (att_case_input){.desc = {ATT_F32, kind, shape}, .scale = scale, .shift = shift};
}

static void compare_width(int64_t rows, int64_t columns)
{
    char name[64];
    snprintf(name, sizeof name, "[%d, %d]", (int)rows, (int)columns);
    att_case_input map = drawn_from(ATT_SAMPLE, 1, 0, att_shape_of(rows, columns));
    att_case_input shared = drawn_from(ATT_SHARED, 1, 0, att_shape_of(columns));
    att_case_input mean = drawn_from(ATT_BATCH, 1, 0, att_shape_of(columns));
    att_case_input stats = drawn_from(ATT_BATCH, 0.1, 1, att_shape_of(2, columns));
    att_case_input vector = drawn_from(ATT_SAMPLE, 1, 0, att_shape_of(columns)), absent = {.desc.shape.rank = -1};
    att_batch_norm_attrs attrs = {.eps = 1e-5};
    compare_at("channel_moments", &(att_op_case){name, NULL, {map}, 1, false, false}, 0);
    compare_at("global_max", &(att_op_case){name, NULL, {map}, 1, false, false}, 0);
    compare_at("token_mean", &(att_op_case){name, NULL, {map}, 1, false, false}, 1);
    compare_at("normalize", &(att_op_case){name, &attrs, {map, stats, shared, shared}, 4, false, false}, 0);
    for (int relu = 0; relu < 2; relu++) {
        attrs.activation = relu ? ATT_ACT_RELU : ATT_ACT_NONE;
        compare_at("normalize_sums", &(att_op_case){name, &attrs, {map, map, stats, shared, shared}, 5, false, false},
                   3);
        for (int handed = 0; handed < 4; handed++) {
            att_case_input factor = handed & 1 ? vector : absent, pooled = handed & 2 ? vector : absent;
            att_op_case grad = {name, &attrs, {map, map, stats, shared, shared, mean, mean, factor, pooled},
                                9,    false,  false};
            compare_at("normalize_grad", &grad, 1);
        }
    }
}

TEST(every_width_is_right)
{
    static const int64_t columns[] = {1, 2, 3, 8, 15, 16, 17, 31, 48, 63, 65, 127, 511, 513},
                         rows[] = {1, 2, 3, 67, 131};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            compare_width(rows[r], columns[c]);
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("widths: %.2g\n", worst);
}

/* --- accuracy ----------------------------------------------------------------------------------------------------- */

/* Returns the worst relative difference of elements [begin, end) of output 0. */
static double relative(const case_result *ours, const case_result *truth, int64_t begin, int64_t end)
{
    double difference = 0;
    for (int64_t i = begin; i < end; i++) {
        double a = case_value(ours, 0, i), b = case_value(truth, 0, i);
        if (a == b)
            continue;
        double d = fabs(a - b) / fabs(b);
        difference = isfinite(d) ? fmax(difference, d) : INFINITY;
    }
    return difference;
}

/* A mean of 10000 and a deviation of 0.1, which is 100 times the spacing of f32 there. Measured: 0 for means, 2e-7 for
 * sums of squares. */
TEST(a_large_mean_loses_no_accuracy)
{
    const att_op *op = case_op(att_ops, "channel_moments");
    const att_op_case *definition = case_named(op, "large_mean");
    case_drawn drawn = case_draw((case_setup){context, op, definition, ATT_F32, 1, false, 0, 0});
    case_result truth, ours;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, op->name), 1, 0, &ours));
    int64_t columns = drawn.out[0].shape.dims[1];
    double of_mean = relative(&ours, &truth, 0, columns), of_squares = relative(&ours, &truth, columns, 2 * columns);
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("large mean: %.2g, squares %.2g\n", of_mean, of_squares);
    assert_true(of_mean <= 1.2e-7);
    assert_true(of_squares <= 2e-6);
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(equal_numbers_have_no_variance)
{
    const att_op *op = case_op(att_ops, "channel_moments");
    case_drawn drawn = case_draw((case_setup){context, op, case_named(op, "no_variance"), ATT_F32, 3, true, 0, 0});
    case_result ours;
    assert_true(case_run(&drawn, tiers_kernel(context, op->name), 2, 0, &ours));
    int64_t columns = drawn.out[0].shape.dims[1];
    float number = *(const float *)drawn.data[0];
    for (int64_t i = 0; i < ours.count[0]; i++)
        assert_true(case_value(&ours, 0, i) == (i / columns % 2 == 0 ? (double)number : 0));
    case_result_free(&ours);
    case_free(&drawn);
}

enum { GROUP_ROWS = 67, GROUPS = 3, GROUP_CHANNELS = 4, GROUP_WIDTH = GROUPS * GROUP_CHANNELS };

/* Returns the largest error of group norm's y [GROUP_ROWS, GROUP_WIDTH] without gamma and beta. */
static double group_error(const float *x, const case_result *y)
{
    double largest = 0;
    for (int g = 0; g < GROUPS; g++) {
        double mean = 0, variance = 0, count = GROUP_ROWS * GROUP_CHANNELS;
        for (int pass = 0; pass < 3; pass++)
            for (int i = 0; i < GROUP_ROWS * GROUP_WIDTH; i++) {
                double apart = x[i] - mean;
                if (i % GROUP_WIDTH / GROUP_CHANNELS != g)
                    continue;
                if (pass == 2)
                    largest = fmax(largest, fabs(case_value(y, 0, i) - apart / sqrt(variance + 1e-5)));
                variance += pass == 1 ? apart * apart / count : 0;
                mean += pass == 0 ? x[i] / count : 0;
            }
    }
    return largest;
}

/* A mean of 10000 and a deviation of 1: f32 knows the mean to 5e-4. A variance computed as a difference of squares
 * would be wrong by several units. Measured: 7.5e-4. */
TEST(group_norm_of_a_large_mean_is_close)
{
    const att_group_norm_attrs attrs = {.groups = GROUPS, .eps = 1e-5};
    const att_case_input absent = {.desc.shape.rank = -1};
    const att_case_input map = drawn_from(ATT_SAMPLE, 1, 1e4, att_shape_of(GROUP_ROWS, GROUP_WIDTH));
    const att_case_input moments = drawn_from(ATT_SAMPLE, 1, 0, att_shape_of(2, GROUP_WIDTH));
    const att_op_case first = {"group", NULL, {map}, 1, false, false};
    const att_op_case second = {"group", &attrs, {map, moments, absent, absent}, 4, false, false};
    case_drawn x =
        case_draw((case_setup){context, case_op(att_ops, "channel_moments"), &first, ATT_F32, 1, false, 0, 0});
    case_drawn norm =
        case_draw((case_setup){context, case_op(att_ops, "group_norm"), &second, ATT_F32, 1, false, 0, 0});
    case_result of_channels, y;
    assert_true(case_run(&x, tiers_kernel(context, "channel_moments"), 1, 0, &of_channels));
    memcpy(norm.block[0], x.block[0], GROUP_ROWS * GROUP_WIDTH * sizeof(float));
    memcpy(norm.block[1], of_channels.data[0], 2 * GROUP_WIDTH * sizeof(float));
    assert_true(case_run(&norm, tiers_kernel(context, "group_norm"), 1, 0, &y));
    double error = group_error(x.block[0], &y);
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("group norm of a large mean: %.2g\n", error);
    assert_true(error <= 2e-3);
    case_result_free(&of_channels);
    case_result_free(&y);
    case_free(&x);
    case_free(&norm);
}

/* Samples with distant means: the variance is that of their means. Measured: 1.2e-7. */
TEST(samples_apart_make_variance)
{
    enum { SAMPLES = 5, COLUMNS = 70 };
    const att_op *op = case_op(att_ops, "merge_moments");
    const att_op_case definition = {.name = "apart",
                                    .attrs = &(const att_moments_attrs){.rows = 3},
                                    .in = {drawn_from(ATT_SAMPLE, 100, 1e4, att_shape_of(2, COLUMNS))},
                                    .in_count = 1};
    case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, SAMPLES, true, 0, 0});
    case_result truth, ours;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, op->name), 3, 0, &ours));
    assert_true(relative(&ours, &truth, 0, COLUMNS) <= 1.2e-7);
    assert_true(relative(&ours, &truth, COLUMNS, 2 * COLUMNS) <= 3e-7);
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

/* --- statistics of a 1 x 1 convolution's output, computed from its input ------------------------------------------ */

enum { WIDE_SAMPLES = 3, WIDE_SIDE = 9, WIDE_PIXELS = WIDE_SIDE * WIDE_SIDE, WIDE_FROM = 21, WIDE_TO = 45 };

/* Runs a kernel in one part on all samples. */
static void call_kernel(const char *op, const void *attrs, const att_desc *in, const void *const *data, int in_count,
                        const att_desc *out, void *const *to, int out_count)
{
    const att_kernel *kernel = tiers_kernel(context, op);
    att_problem problem = {context, op, attrs, in, out, in_count, out_count, WIDE_SAMPLES, 1};
    att_prepared prepared = {0};
    void *scratch = NULL;
    assert_int_equal(kernel->prepare(&problem, &prepared), ATT_OK);
    assert_int_equal(posix_memalign(&scratch, 64, prepared.scratch_bytes), 0);
    att_call call = {
        .problem = &problem, .in = data, .out = to, .scratch = scratch, .parts = 1, .samples = WIDE_SAMPLES};
    assert_int_equal(kernel->run(&call), ATT_OK);
    free(scratch);
}

static void from_gram(const float *x, const float *weight, float *stats)
{
    static float grams[WIDE_SAMPLES * (WIDE_FROM + 1) * WIDE_FROM], merged[(WIDE_FROM + 1) * WIDE_FROM];
    static const float gamma[WIDE_TO], beta[WIDE_TO];
    const att_moments_attrs rows = {.rows = WIDE_PIXELS};
    const att_gram_norm_attrs norm = {1e-5, WIDE_PIXELS};
    att_shape square = att_shape_of(WIDE_FROM + 1, WIDE_FROM), vector = att_shape_of(WIDE_TO);
    att_desc map = {ATT_F32, ATT_SAMPLE, att_shape_of(WIDE_SIDE, WIDE_SIDE, WIDE_FROM)};
    att_desc gram = {ATT_F32, ATT_SAMPLE, square}, none = {ATT_F32, ATT_BATCH, {.rank = -1}};
    att_desc batch[] = {{ATT_F32, ATT_BATCH, square},
                        {ATT_F32, ATT_SHARED, att_shape_of(WIDE_TO, WIDE_FROM, 1, 1)},
                        {ATT_F32, ATT_SHARED, vector},
                        {ATT_F32, ATT_SHARED, vector}};
    att_desc made[] = {none, {ATT_F32, ATT_BATCH, att_shape_of(2, WIDE_TO)}};
    call_kernel("channel_gram", NULL, &map, (const void *[]){x}, 1, &gram, (void *[]){grams}, 1);
    call_kernel("merge_gram", &rows, &gram, (const void *[]){grams}, 1, batch, (void *[]){merged}, 1);
    call_kernel("gram_norm", &norm, batch, (const void *[]){merged, weight, gamma, beta}, 4, made,
                (void *[]){NULL, stats}, 2);
}

/* Computes the largest relative error of a channel's variance, and the largest error of its mean relative to the
 * deviation. */
static void compare_statistics(const float *x, const float *weight, const float *stats, double errors[2])
{
    const int rows = WIDE_SAMPLES * WIDE_PIXELS;
    for (int c = 0; c < WIDE_TO; c++) {
        double y[WIDE_SAMPLES * WIDE_PIXELS] = {0}, mean = 0, variance = 0;
        for (int row = 0; row < rows; row++) {
            for (int k = 0; k < WIDE_FROM; k++)
                y[row] += (double)weight[c * WIDE_FROM + k] * (double)x[row * WIDE_FROM + k];
            mean += y[row] / rows;
        }
        for (int row = 0; row < rows; row++)
            variance += (y[row] - mean) * (y[row] - mean) / rows;
        double of_mean = fabs((double)stats[c] - mean) / sqrt(variance);
        double of_variance = fabs((double)stats[WIDE_TO + c] - variance) / variance;
        errors[0] = isfinite(of_variance) ? fmax(errors[0], of_variance) : INFINITY;
        errors[1] = isfinite(of_mean) ? fmax(errors[1], of_mean) : INFINITY;
    }
}

/* x has the mean `shift` and deviation 1, and the samples have distant means. near: the first two channels differ by a
 * thousandth. */
static void check_statistics(double shift, bool near, double limit_variance, double limit_mean)
{
    static float x[WIDE_SAMPLES * WIDE_PIXELS * WIDE_FROM], weight[WIDE_TO * WIDE_FROM], stats[2 * WIDE_TO];
    att_random random = att_random_from(7);
    for (int i = 0; i < WIDE_SAMPLES * WIDE_PIXELS * WIDE_FROM; i++)
        x[i] = (float)(att_random_normal(&random) + shift + i / (WIDE_PIXELS * WIDE_FROM));
    for (int i = 0; near && i < WIDE_SAMPLES * WIDE_PIXELS * WIDE_FROM; i += WIDE_FROM)
        x[i + 1] = x[i] + 1e-3f * x[i + 1];
    for (int i = 0; i < WIDE_TO * WIDE_FROM; i++)
        weight[i] = (float)(0.2 * att_random_normal(&random));
    double errors[2] = {0, 0};
    from_gram(x, weight, stats);
    compare_statistics(x, weight, stats, errors);
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("mean %g: variance differs by %.2g, mean by %.2g\n", shift, errors[0], errors[1]);
    assert_true(errors[0] <= limit_variance);
    assert_true(errors[1] <= limit_mean);
}

/* Measured: 1.1e-7 and 1.4e-7. For a mean of 1000, which f32 knows to 6e-5: 2.5e-5 and 6.2e-5. */
TEST(moments_follow_from_those_of_the_input)
{
    check_statistics(0.5, false, 1e-6, 1e-6);
    check_statistics(0.5, true, 1e-6, 1e-6);
    check_statistics(1000, false, 1e-4, 2e-4);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static att_status merge_one(const att_kernel *kernel, int64_t rows, int64_t samples)
{
    float moments[2] = {3, 4}, stats[2];
    att_moments_attrs attrs = {.rows = rows};
    att_desc in = {ATT_F32, ATT_SAMPLE, att_shape_of(2, 1)}, out = {ATT_F32, ATT_BATCH, att_shape_of(2, 1)};
    att_problem problem = {context, "merge_moments", &attrs, &in, &out, 1, 1, 1, 1};
    att_call call = {
        .problem = &problem, .in = (const void *[]){moments}, .out = (void *[]){stats}, .parts = 1, .samples = samples};
    att_status status = kernel->run(&call);
    assert_true(status != ATT_OK || (stats[0] == 3 && stats[1] == 2));
    return status;
}

TEST(one_row_in_all_is_refused)
{
    const att_kernel *both[] = {tiers_kernel(context, "merge_moments"), case_kernel(att_kernels_ref, "merge_moments")};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(merge_one(both[i], 1, 1), ATT_ERR_ARGUMENT);
        assert_string_equal(att_context_message(context), "batch norm needs more than one row; use a larger batch");
        assert_int_equal(merge_one(both[i], 2, 1), ATT_OK);
    }
}

/* The buffers are updated in place: half of the old values 1, 2 and half of the new values 3, 4 x 6 / 5. */
TEST(running_statistics_are_updated_in_place)
{
    const att_kernel *both[] = {tiers_kernel(context, "running_stats"), case_kernel(att_kernels_ref, "running_stats")};
    att_moments_attrs attrs = {.rows = 2, .momentum = 0.5};
    att_desc vector = {ATT_F32, ATT_SHARED, att_shape_of(1)}, result = {ATT_F32, ATT_BATCH, att_shape_of(1)};
    att_desc in[] = {{ATT_F32, ATT_BATCH, att_shape_of(2, 1)}, vector, vector}, out[] = {result, result};
    att_problem problem = {context, "running_stats", &attrs, in, out, 3, 2, 1, 1};
    for (int i = 0; i < 2; i++) {
        float stats[2] = {3, 4}, mean = 1, variance = 2;
        att_call call = {.problem = &problem,
                         .in = (const void *[]){stats, &mean, &variance},
                         .out = (void *[]){&mean, &variance},
                         .parts = 1,
                         .samples = 3};
        assert_int_equal(both[i]->run(&call), ATT_OK);
        assert_true(mean == 2);
        assert_true(fabs(variance - 3.4) < 1e-6);
    }
}

/* --- NaN ---------------------------------------------------------------------------------------------------------- */

/* Sets element `place` of input 0 of a case to NaN and returns the outputs of the CPU kernel. */
static case_result run_with_nan(const char *name, const char *of, int64_t place, case_drawn *drawn)
{
    const att_op *op = case_op(att_ops, name);
    *drawn = case_draw((case_setup){context, op, case_named(op, of), ATT_F32, 1, false, 0, 0});
    ((float *)drawn->block[0])[place] = NAN;
    case_result ours;
    assert_true(case_run(drawn, tiers_kernel(context, name), 1, 0, &ours));
    return ours;
}

static void assert_nan_at(const char *name, const char *of, int64_t place, int64_t result)
{
    case_drawn drawn;
    case_result ours = run_with_nan(name, of, place, &drawn);
    for (int64_t i = 0; i < ours.count[0]; i++)
        if (isnan(case_value(&ours, 0, i)) != (i == result))
            fail_msg("%s, case %s: NaN at %lld gives %g at %lld", name, of, (long long)place, case_value(&ours, 0, i),
                     (long long)i);
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(nan_stays_nan)
{
    assert_nan_at("relu", "odd", 9, 9);
    assert_nan_at("add", "relu", 40, 40);
    assert_nan_at("gate", "relu", 40, 40);
    assert_nan_at("pixel_gate", "relu", 40, 40);
    assert_nan_at("normalize", "row", 3, 3);
    assert_nan_at("sigmoid", "odd", 34, 34);
    assert_nan_at("global_max", "odd", 7 * 3 + 2, 2);
    assert_nan_at("global_max", "negative", 33 * 3 + 32, 32);
}
