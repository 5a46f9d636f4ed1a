/* The reference kernels of losses, masks and updates against values from PyTorch 2.15 in f64
 * (torch.nn.functional.cross_entropy, torch.optim.AdamW, Adam and SGD) and against statistics. */
#include <attscope/ops.h>
#include <attscope/update.h>

#include <inttypes.h>

#include "engine/kernels/direct.h"
#include "engine/ops/binary_cross_entropy.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/drop.h"
#include "engine/ops/update.h"
#include "engine/ops/upsample_bilinear.h"
#include "engine/ops/upsampled_cross_entropy.h"
#include "golden_path.h"

TEST_GROUP(direct_setup, close_context)

static const double tight = 1e-15;
static const double logits[] = {1, 2, -1, 0, 0.5, 3};

TEST(losses_are_those_of_pytorch)
{
    const int32_t classes[] = {2, 1};
    const double soft[] = {0.2, 0.5, 0.3, 0.1, 0.1, 0.1};
    const att_cross_entropy_attrs smoothed = {.smoothing = 0.1};
    double loss[2];
    DIRECT("cross_entropy", NULL, 2, OUTPUTS(loss), SAMPLE(logits, 3), CLASSES(classes));
    CLOSE(loss, tight, 3.349012216768186, 2.6238729583693674);
    DIRECT("cross_entropy", &smoothed, 2, OUTPUTS(loss), SAMPLE(logits, 3), CLASSES(classes));
    CLOSE(loss, tight, 3.1823455501015196, 2.557206291702701);
    DIRECT("cross_entropy", NULL, 2, OUTPUTS(loss), SAMPLE(logits, 3), SAMPLE(soft, 3));
    CLOSE(loss, tight, 1.4490122167681863, 0.5871618875108103);
}

/* softmax(ln 3, 0) = (3/4, 1/4). */
TEST(the_loss_gradient_is_softmax_minus_target)
{
    const double dloss[] = {8, 1}, x[] = {1.0986122886681098, 0, 0, 1.0986122886681098}, soft[] = {0.5, 0, 0, 1};
    const int32_t classes[] = {1, 0};
    double d[4];
    DIRECT("cross_entropy_grad", NULL, 2, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, 2), CLASSES(classes));
    CLOSE(d, tight, 6, -6, -0.75, 0.75);
    DIRECT("cross_entropy_grad", NULL, 2, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, 2), SAMPLE(soft, 2));
    CLOSE(d, tight, 8 * (0.375 - 0.5), 1, 0.25, -0.25);
}

/* 1 - softmax is e^-50 / (1 + e^-50), far below the rounding of 1. */
TEST(gradients_of_sure_classes_keep_their_digits)
{
    const double dloss[] = {1}, x[] = {0, 50}, soft[] = {0, 1}, rest = 1 / (1 + exp(50.0));
    const att_binary_cross_entropy_attrs binary = {.positive_weight = 1, .sum = true};
    const int32_t classes[] = {1};
    double d[3][2];
    DIRECT("cross_entropy_grad", NULL, 1, OUTPUTS(d[0]), SCALARS(dloss), SAMPLE(x, 2), CLASSES(classes));
    DIRECT("cross_entropy_grad", NULL, 1, OUTPUTS(d[1]), SCALARS(dloss), SAMPLE(x, 2), SAMPLE(soft, 2));
    DIRECT("binary_cross_entropy_grad", &binary, 1, OUTPUTS(d[2]), SCALARS(dloss), SAMPLE(x, 2), SAMPLE(soft, 2));
    for (int i = 0; i < 3; i++)
        assert_true(fabs(d[i][1] / -rest - 1) < 1e-13); /* measured: 3e-15 */
}

/* torch.nn.functional.cross_entropy with reduction="sum" and ignore_index=-1. */
TEST(tokens_without_a_class_are_left_out)
{
    const double x[] = {1, 2, -1, 0, 0.5, 3, 0.25, -2, 0, 4, 1, 1}, dloss[] = {8, 1};
    const int32_t classes[] = {2, ATT_NO_CLASS, ATT_NO_CLASS, 1}, wrong[] = {2, -2, ATT_NO_CLASS, 1};
    const att_cross_entropy_attrs rows = {.rows = true};
    const direct_input of_tokens = {{ATT_I32, ATT_SAMPLE, DIRECT_SHAPE(2)}, classes};
    const direct_input of_wrong = {{ATT_I32, ATT_SAMPLE, DIRECT_SHAPE(2)}, wrong};
    double loss[2], d[12];
    DIRECT("cross_entropy", &rows, 2, OUTPUTS(loss), SAMPLE(x, 2, 3), of_tokens);
    CLOSE(loss, tight, 3.349012216768186, 3.0949229564209606);
    DIRECT("cross_entropy_grad", &rows, 2, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, 2, 3), of_tokens);
    CLOSE(d, 3e-15, 2.075971682739353, 5.64307610158593, -7.719047784325282, 0, 0, 0, 0, 0, 0, 0.909442998512742,
          -0.954721499256371, 0.04527850074362908);
    DIRECT("cross_entropy", &rows, 2, OUTPUTS(loss), SAMPLE(x, 2, 3), of_wrong);
    assert_true(isnan(loss[0]) && !isnan(loss[1]));
}

/* A line of tests/goldens/losses.txt. */
enum { BCE_CLASSES = 7, BCE_NUMBERS = 3 * BCE_CLASSES + 1 };
typedef struct bce_line {
    att_binary_cross_entropy_attrs attrs;
    int32_t class;
    double numbers[BCE_NUMBERS]; /* logits, targets, loss, gradient */
} bce_line;

static bool read_bce(FILE *file, bce_line *line)
{
    int sum, classes;
    if (fscanf(file, "%lf %lf %lf %d %d %" SCNd32, &line->attrs.smoothing, &line->attrs.threshold,
               &line->attrs.positive_weight, &sum, &classes, &line->class) != 6)
        return false;
    assert_int_equal(classes, BCE_CLASSES);
    line->attrs.sum = sum;
    line->attrs.binary = line->attrs.threshold >= 0;
    for (int i = 0; i < BCE_NUMBERS; i++)
        assert_int_equal(fscanf(file, "%lf", &line->numbers[i]), 1);
    return true;
}

TEST(binary_cross_entropy_is_timms)
{
    char path[4096];
    bce_line line;
    int count = 0;
    golden_path("losses.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; read_bce(file, &line); count++) {
        const double *x = line.numbers, *targets = x + BCE_CLASSES, *expected = targets + BCE_CLASSES, dloss[] = {3};
        double loss[1], d[BCE_CLASSES], slopes[BCE_CLASSES];
        for (int c = 0; c < BCE_CLASSES; c++)
            slopes[c] = dloss[0] * expected[1 + c];
        if (line.class >= 0) {
            DIRECT("binary_cross_entropy", &line.attrs, 1, OUTPUTS(loss), SAMPLE(x, BCE_CLASSES), CLASSES(&line.class));
            DIRECT("binary_cross_entropy_grad", &line.attrs, 1, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, BCE_CLASSES),
                   CLASSES(&line.class));
        } else {
            DIRECT("binary_cross_entropy", &line.attrs, 1, OUTPUTS(loss), SAMPLE(x, BCE_CLASSES),
                   SAMPLE(targets, BCE_CLASSES));
            DIRECT("binary_cross_entropy_grad", &line.attrs, 1, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, BCE_CLASSES),
                   SAMPLE(targets, BCE_CLASSES));
        }
        direct_close(loss, expected, 1, 1e-14);
        direct_close(d, slopes, BCE_CLASSES, 1e-14);
    }
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(count, 64);
}

/* A line of tests/goldens/upsampled.txt. */
enum { DENSE_MOST = 128 };
typedef struct dense_line {
    int h, w, classes, height, width;
    att_upsampled_cross_entropy_attrs attrs;
    double logits[DENSE_MOST], loss, gradient[DENSE_MOST];
    int32_t mask[DENSE_MOST], top[DENSE_MOST];
} dense_line;

static void read_doubles(FILE *file, double *numbers, int count)
{
    assert_true(count <= DENSE_MOST);
    for (int i = 0; i < count; i++)
        assert_int_equal(fscanf(file, "%lf", &numbers[i]), 1);
}

static void read_integers(FILE *file, int32_t *numbers, int count)
{
    assert_true(count <= DENSE_MOST);
    for (int i = 0; i < count; i++)
        assert_int_equal(fscanf(file, "%" SCNd32, &numbers[i]), 1);
}

static bool read_dense(FILE *file, dense_line *line)
{
    int over_all;
    if (fscanf(file, "%d %d %d %d %d %" SCNd32 " %d", &line->h, &line->w, &line->classes, &line->height, &line->width,
               &line->attrs.ignored, &over_all) != 7)
        return false;
    line->attrs.mean = over_all ? ATT_MEAN_OF_ALL : ATT_MEAN_OF_LABELED;
    read_doubles(file, line->logits, line->h * line->w * line->classes);
    read_integers(file, line->mask, line->height * line->width);
    read_doubles(file, &line->loss, 1);
    read_doubles(file, line->gradient, line->h * line->w * line->classes);
    read_integers(file, line->top, line->height * line->width);
    return true;
}

/* The loss of one sample, whose rows are returned by the op, and the gradient of the logits. */
static double run_dense(const dense_line *line, double *gradient)
{
    const direct_input mask = {{ATT_I32, ATT_SAMPLE, DIRECT_SHAPE(line->height, line->width)}, line->mask};
    double rows[DENSE_MOST], drows[DENSE_MOST], loss = 0;
    DIRECT("upsampled_cross_entropy", &line->attrs, 1, OUTPUTS(rows),
           SAMPLE(line->logits, line->h, line->w, line->classes), mask);
    for (int i = 0; i < line->height; i++) {
        loss += rows[i] / line->height;
        drows[i] = 1.0 / line->height;
    }
    DIRECT("upsampled_cross_entropy_grad", &line->attrs, 1, OUTPUTS(gradient), SAMPLE(drows, line->height, 1),
           SAMPLE(line->logits, line->h, line->w, line->classes), mask);
    return loss;
}

TEST(upsampled_losses_and_classes_are_pytorchs)
{
    char path[4096];
    dense_line line;
    int count = 0;
    golden_path("upsampled.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; read_dense(file, &line); count++) {
        const att_upsample_attrs size = {line.height, line.width};
        double gradient[DENSE_MOST], loss = run_dense(&line, gradient);
        int32_t top[DENSE_MOST];
        direct_close(&loss, &line.loss, 1, 1e-14);
        direct_close(gradient, line.gradient, line.h * line.w * line.classes, 1e-14);
        DIRECT("upsampled_argmax", &size, 1, OUTPUTS(top), SAMPLE(line.logits, line.h, line.w, line.classes));
        assert_memory_equal(top, line.top, (size_t)(line.height * line.width) * sizeof *top);
    }
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(count, 16);
}

/* PyTorch's mean over no pixels is NaN. */
TEST(a_mask_of_ignored_pixels_has_loss_0)
{
    dense_line line = {.h = 1, .w = 1, .classes = 2, .height = 2, .width = 2, .attrs.ignored = 7};
    double gradient[2];
    for (int i = 0; i < 4; i++)
        line.mask[i] = 7;
    for (int mean = ATT_MEAN_OF_LABELED; mean <= ATT_MEAN_OF_ALL; mean++) {
        line.attrs.mean = mean;
        assert_true(run_dense(&line, gradient) == 0 && gradient[0] == 0 && gradient[1] == 0);
    }
}

TEST(a_pixel_of_a_class_that_does_not_exist_makes_the_loss_nan)
{
    dense_line line = {.h = 1, .w = 2, .classes = 2, .height = 1, .width = 4, .attrs.ignored = 255};
    double gradient[4];
    for (int wrong = -1; wrong <= 2; wrong += 3) {
        line.mask[3] = wrong;
        assert_true(isnan(run_dense(&line, gradient)));
        assert_true(isnan(gradient[2]) && isnan(gradient[3]));
    }
}

TEST(classes_that_are_not_numbers_are_never_the_largest)
{
    const double x[] = {NAN, 1, NAN, 2, NAN, NAN, NAN, NAN};
    const att_upsample_attrs size = {1, 1};
    int32_t top[2];
    DIRECT("upsampled_argmax", &size, 2, OUTPUTS(top), SAMPLE(x, 1, 1, 4));
    assert_true(top[0] == 3 && top[1] == 0);
}

/* 2 ln 2 for two classes with logits 0: the weight of positive targets has no influence. */
TEST(a_target_at_the_threshold_is_not_above_it)
{
    const att_binary_cross_entropy_attrs attrs = {.positive_weight = 7, .binary = true, .threshold = 0.25, .sum = true};
    const double x[] = {0, 0}, targets[] = {0.25, 0.25}, expected[] = {2 * log(2)};
    double loss[1];
    DIRECT("binary_cross_entropy", &attrs, 1, OUTPUTS(loss), SAMPLE(x, 2), SAMPLE(targets, 2));
    direct_close(loss, expected, 1, 1e-15);
}

TEST(a_class_that_does_not_exist_makes_binary_cross_entropy_nan)
{
    const att_binary_cross_entropy_attrs attrs = {.positive_weight = 1, .binary = true, .threshold = 0.5};
    const double x[] = {1, 2, 1, 2}, dloss[] = {1, 1};
    const int32_t classes[] = {2, 1};
    double loss[2], d[4];
    DIRECT("binary_cross_entropy", &attrs, 2, OUTPUTS(loss), SAMPLE(x, 2), CLASSES(classes));
    assert_true(isnan(loss[0]) && isfinite(loss[1]));
    DIRECT("binary_cross_entropy_grad", &attrs, 2, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, 2), CLASSES(classes));
    assert_true(isnan(d[0]) && isnan(d[1]) && isfinite(d[2]) && isfinite(d[3]));
}

TEST(a_class_that_does_not_exist_makes_the_loss_nan)
{
    const double x[] = {1, 2, 1, 2, 1, 2}, dloss[] = {1, 1, 1};
    const int32_t classes[] = {2, 1, -1};
    double loss[3], d[6];
    DIRECT("cross_entropy", NULL, 3, OUTPUTS(loss), SAMPLE(x, 2), CLASSES(classes));
    assert_true(isnan(loss[0]) && isfinite(loss[1]) && isnan(loss[2]));
    DIRECT("cross_entropy_grad", NULL, 3, OUTPUTS(d), SCALARS(dloss), SAMPLE(x, 2), CLASSES(classes));
    assert_true(isnan(d[0]) && isnan(d[1]) && isfinite(d[2]) && isfinite(d[3]) && isnan(d[4]));
}

TEST(a_logit_of_minus_infinity_is_a_class_ruled_out)
{
    const double x[] = {0, -INFINITY, 0};
    const int32_t classes[] = {0};
    double loss[1];
    DIRECT("cross_entropy", NULL, 1, OUTPUTS(loss), SAMPLE(x, 3), CLASSES(classes));
    CLOSE(loss, tight, log(2));
}

TEST(the_seed_of_the_backward_pass_is_the_weight)
{
    const double loss[] = {NAN, 3};
    const att_run run = {.scale = 0.125};
    double dloss[2];
    direct_run("loss_seed", NULL, 2, (const direct_input[]){SCALARS(loss)}, 1, OUTPUTS(dloss), &run, 0);
    CLOSE(dloss, 0, 0.125, 0.125);
}

enum { DRAWS = 4000 };

static void masks(const char *op, int64_t group, int64_t position, int64_t step, uint32_t stream, double *y)
{
    static double ones[DRAWS];
    for (int i = 0; i < DRAWS; i++)
        ones[i] = 1;
    const att_drop_attrs attrs = {.rate = 0.25, .stream = stream};
    const att_run run = {.seed = 42, .step = step};
    direct_run(op, &attrs, group, (const direct_input[]){SAMPLE(ones, DRAWS / group)}, 1, OUTPUTS(y), &run, position);
}

static double mean(const double *y)
{
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        assert_true(y[i] == 0 || y[i] == 1 / 0.75);
        sum += y[i];
    }
    return sum / DRAWS;
}

/* The standard deviation of the mean is sqrt(1/3 / 4000) = 0.0091. */
TEST(masks_keep_the_expected_share)
{
    double y[DRAWS];
    masks("dropout", 1, 0, 0, 0, y);
    assert_true(fabs(mean(y) - 1) < 4 * 0.0091);
    masks("drop_path", DRAWS, 0, 0, 0, y);
    assert_true(fabs(mean(y) - 1) < 4 * 0.0091);
}

TEST(masks_depend_on_position_step_and_stream_alone)
{
    for (int whole = 0; whole < 2; whole++) {
        const char *op = whole ? "drop_path" : "dropout";
        double eight[DRAWS], four[DRAWS], other[DRAWS];
        masks(op, 8, 16, 5, 1, eight); /* samples 16..23, 500 elements each */
        masks(op, 8, 20, 5, 1, four);  /* samples 20..27 */
        assert_memory_equal(eight + 4 * 500, four, 4 * 500 * sizeof *four);
        masks(op, 100, 0, 5, 1, eight);
        masks(op, 100, 0, 6, 1, other);
        assert_memory_not_equal(eight, other, sizeof other);
        masks(op, 100, 0, 5, 2, other);
        assert_memory_not_equal(eight, other, sizeof other);
    }
}

TEST(channel_dropout_zeroes_a_channel_in_all_rows)
{
    enum { SAMPLES = 4, ROWS = 10, COLUMNS = DRAWS / SAMPLES / ROWS };
    static double ones[DRAWS], y[DRAWS];
    const att_drop_attrs attrs = {.rate = 0.25, .stream = 1};
    const att_run run = {.seed = 42};
    for (int i = 0; i < DRAWS; i++)
        ones[i] = 1;
    direct_run("channel_dropout", &attrs, SAMPLES, (const direct_input[]){SAMPLE(ones, ROWS, COLUMNS)}, 1, OUTPUTS(y),
               &run, 0);
    for (int i = 0; i < DRAWS; i++)
        assert_true(y[i] == y[i / (ROWS * COLUMNS) * (ROWS * COLUMNS) + i % COLUMNS]);
    assert_memory_not_equal(y, y + ROWS * COLUMNS, COLUMNS * sizeof *y);
    assert_true(fabs(mean(y) - 1) < 4 * 0.0091 * sqrt(ROWS)); /* only 400 draws */
}

TEST(drop_path_zeroes_whole_samples)
{
    double y[DRAWS];
    masks("drop_path", 40, 0, 0, 0, y);
    for (int i = 0; i < DRAWS; i++)
        assert_true(y[i] == y[i / 100 * 100]);
}

TEST(a_dropped_infinity_is_zero)
{
    const double x[] = {INFINITY};
    const att_drop_attrs attrs = {.rate = 1 - 0x1p-40};
    const att_run run = {.seed = 1};
    double y[1];
    direct_run("dropout", &attrs, 1, (const direct_input[]){SAMPLE(x, 1)}, 1, OUTPUTS(y), &run, 0);
    CLOSE(y, 0, 0);
}

TEST(lanes_are_added_to_the_total)
{
    const double lanes[] = {1, 2, 3, 10, 20, 30};
    double total[] = {100, 200, 300};
    DIRECT("sum_lanes", NULL, 1, OUTPUTS(total), SHARED(lanes, 2, 3));
    CLOSE(total, 0, 111, 222, 333);
}

TEST(squares_are_summed_by_blocks)
{
    double x[4100], squares[2];
    for (int i = 0; i < 4100; i++)
        x[i] = i < 4096 ? 2 : -3;
    DIRECT("sum_squares", NULL, 1, OUTPUTS(squares), SHARED(x, 4100));
    CLOSE(squares, 0, 4096 * 4, 4 * 9);
}

/* Three updates starting at p = (1, -2, 1/2). The gradients are halved, which the gradient scale undoes. */
static void three_updates(const char *op, const att_hyper *hyper, bool decay, double *const *slots)
{
    const double g[3][3] = {{0.25, -0.5, 1}, {0.125, 1.5, -0.0625}, {-0.75, 0, 0.5}};
    const double start[] = {1, -2, 0.5};
    const att_update_attrs attrs = {.lr = 1, .weight_decay = decay};
    att_hyper now = *hyper;
    const double scale = 2;
    const att_run run = {.hyper = &now};
    memcpy(slots[0], start, sizeof start);
    for (now.update = 1; now.update <= 3; now.update++)
        direct_run(op, &attrs, 1, (const direct_input[]){SHARED(g[now.update - 1], 3), SHARED(&scale, 1)}, 2,
                   OUTPUTS(slots[0], slots[1], slots[2]), &run, 0);
}

TEST(adamw_is_that_of_pytorch)
{
    const att_hyper hyper = {.lr = 0.03, .weight_decay = 0.2, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    double p[3], m[3] = {0}, v[3] = {0};
    three_updates("adamw", &hyper, true, (double *const[]){p, m, v});
    CLOSE(p, tight, 0.9351296803093806, -1.9607670655147529, 0.42132572442909794);
    CLOSE(m, tight, -0.087, 0.189, 0.25075);
    CLOSE(v, tight, 0.025569, 0.098901, 0.0493586875);
}

TEST(adam_is_that_of_pytorch)
{
    const att_hyper hyper = {.lr = 0.03, .weight_decay = 0.2, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3};
    double p[3], m[3] = {0}, v[3] = {0};
    three_updates("adam", &hyper, true, (double *const[]){p, m, v});
    CLOSE(p, tight, 0.945379293343041, -1.9854029059337273, 0.4277744392347768);
    CLOSE(m, tight, -0.03451663102699671, 0.08153636510470504, 0.2763145140505987);
    CLOSE(v, tight, 0.02396172227265121, 0.08801139278780987, 0.055113850197892354);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    three_updates("adam", &hyper, false, (double *const[]){p, m, v});
    CLOSE(p, tight, 0.952496096704973, -1.9962816901309453, 0.4298009027690675);
}

TEST(sgd_is_that_of_pytorch)
{
    att_hyper hyper = {.lr = 0.03, .weight_decay = 0.2, .momentum = 0.9};
    double p[3], buffer[3] = {0};
    three_updates("sgd", &hyper, true, (double *const[]){p, buffer, NULL});
    CLOSE(p, tight, 0.956999044, -2.022868088, 0.299124632);
    CLOSE(buffer, tight, -0.3424348, 0.8138696, 2.7434456);
    hyper.nesterov = true;
    memset(buffer, 0, sizeof buffer);
    three_updates("sgd", &hyper, true, (double *const[]){p, buffer, NULL});
    CLOSE(p, tight, 0.966880772596, -2.045037245192, 0.226536342788);
    memset(buffer, 0, sizeof buffer);
    three_updates("sgd", &hyper, false, (double *const[]){p, buffer, NULL});
    CLOSE(p, tight, 1.01359, -2.14073, 0.2468225);
}

TEST(ema_moves_towards_the_weights)
{
    const double p[] = {1, 8};
    const att_hyper hyper = {.ema_decay = 0.75};
    const att_run run = {.hyper = &hyper};
    double ema[] = {0, 4};
    direct_run("ema", NULL, 1, (const direct_input[]){SHARED(p, 2)}, 1, OUTPUTS(ema), &run, 0);
    CLOSE(ema, 0, 0.25, 5);
}
