/* The distribution of every random parameter of the augmentation against timm's (tests/goldens/draws.txt). Draws are
 * fixed by their seed, so the result is always the same.
 *
 *     data_test_draws --print N
 *
 * prints a line "name value value ..." with N draws of each parameter, for tools/versus_timm_augment. */
#include "base/io/golden.h"
#include "data/augment.h"
#include "data/erase.h"
#include "data/labels.h"
#include "data/mix.h"
#include "data/pictures.h"
#include "data/transform.h"

/* --- crops and flips --------------------------------------------------------------------------------------------- */

enum { WIDE = 500, TALL = 375, NARROW_WIDE = 640, NARROW_TALL = 160, OUT = 224 };

static att_box crop_box(int64_t index, int width, int height)
{
    att_transform_options options = att_transform_options_defaults(OUT, OUT, 3);
    const att_transform_key key = {.seed = 1, .index = index};
    options.crop = ATT_CROP_RANDOM_RESIZED;
    return att_transform_needs(&options, width, height, &key);
}

static double crop_area(int64_t index)
{
    att_box box = crop_box(index, WIDE, TALL);
    return (double)box.width * box.height / (WIDE * TALL);
}

static double crop_aspect(int64_t index)
{
    att_box box = crop_box(index, WIDE, TALL);
    return (double)box.width / box.height;
}

/* Where the box lies between the left and the right end; NaN if there is no choice. */
static double crop_x(int64_t index)
{
    att_box box = crop_box(index, WIDE, TALL);
    return box.width < WIDE ? (double)box.x / (WIDE - box.width) : NAN;
}

static double crop_y(int64_t index)
{
    att_box box = crop_box(index, WIDE, TALL);
    return box.height < TALL ? (double)box.y / (TALL - box.height) : NAN;
}

static double narrow_area(int64_t index)
{
    att_box box = crop_box(index, NARROW_WIDE, NARROW_TALL);
    return (double)box.width * box.height / (NARROW_WIDE * NARROW_TALL);
}

/* Whether the box is the central one, which is taken after ten tries. */
static double narrow_fallback(int64_t index)
{
    const int central = 213; /* 160 * 4 / 3 */
    att_box box = crop_box(index, NARROW_WIDE, NARROW_TALL);
    return box.width == central && box.height == NARROW_TALL && box.x == (NARROW_WIDE - central) / 2;
}

static att_context *context;

static double flip(int64_t index)
{
    uint8_t pixels[4] = {0};
    float out[4];
    const att_image image = {2, 2, 1, pixels};
    att_transform_options options = att_transform_options_defaults(2, 2, 1);
    const att_transform_key key = {.seed = 1, .index = index};
    att_geometry geometry;
    options.flip = 0.3;
    assert_int_equal(att_transform_keyed(context, &options, &image, &key, out, &geometry), ATT_OK);
    return geometry.map[0][0] < 0;
}

/* --- RandAugment, colour jitter, 3-Augment ------------------------------------------------------------------------ */

static att_random draws_of(int64_t index, const char *what)
{
    return att_random_from(att_random_key(1, (uint64_t)index, att_random_hash(what)));
}

/* rand-m9-mstd0.5-inc1, rand-m9-mstd101-inc1, rand-m12-mmax20-mstd3 */
static const att_rand_augment usual = {2, 9, 0.5, 10, 0.5, true}, uniform = {2, 9, INFINITY, 10, 0.5, true},
                              wide = {2, 12, 3, 20, 0.5, false};

static double rand_operation(int64_t index)
{
    att_random random = draws_of(index, "operation");
    return att_rand_augment_draw(&usual, &random).operation;
}

static double rand_applied(int64_t index)
{
    att_random random = draws_of(index, "applied");
    return att_rand_augment_draw(&usual, &random).applied;
}

/* The argument of an operation; draws until this operation is applied. */
static double argument(int64_t index, const att_rand_augment *settings, int operation)
{
    att_random random = draws_of(index, att_augment_name(operation, settings->increasing));
    att_layer_draw draw;
    do {
        draw = att_rand_augment_draw(settings, &random);
    } while (draw.operation != operation || !draw.applied);
    return draw.argument;
}

#define ARGUMENT(name, settings, operation)               \
    static double name(int64_t index)                     \
    {                                                     \
        return argument(index, &(settings), (operation)); \
    }
ARGUMENT(rand_rotate, usual, 3)
ARGUMENT(rand_posterize, usual, 4)
ARGUMENT(rand_solarize, usual, 5)
ARGUMENT(rand_solarize_add, usual, 6)
ARGUMENT(rand_color, usual, 7)
ARGUMENT(rand_shear_x, usual, 11)
ARGUMENT(rand_translate_y, usual, 14)
ARGUMENT(uniform_rotate, uniform, 3)
ARGUMENT(wide_rotate, wide, 3)
ARGUMENT(wide_brightness, wide, 9)

static att_jitter_draw jitter(int64_t index)
{
    static const double most[3] = {0.4, 0.3, 1.5};
    att_random random = draws_of(index, "jitter");
    return att_color_jitter_draw(most, &random);
}

static double jitter_brightness(int64_t index)
{
    return jitter(index).factors[0];
}

static double jitter_contrast(int64_t index)
{
    return jitter(index).factors[1];
}

static double jitter_saturation(int64_t index)
{
    return jitter(index).factors[2];
}

static double jitter_first(int64_t index)
{
    return (double)jitter(index).order[0];
}

static att_three_draw three(int64_t index)
{
    att_random random = draws_of(index, "three");
    return att_three_augment_draw(&random);
}

static double three_change(int64_t index)
{
    return three(index).change;
}

static double three_radius(int64_t index)
{
    return three(index).radius;
}

/* --- random erasing ---------------------------------------------------------------------------------------------- */

enum { SIDE = 64 };

static att_transform_options erasing(att_erase_mode mode, double probability, int count)
{
    att_transform_options options = att_transform_options_defaults(SIDE, SIDE, 1);
    options.erase = probability;
    options.erase_mode = mode;
    options.erase_count = count;
    return options;
}

static const float untouched = 100;

/* image: [SIDE * SIDE] */
static void erase(const att_transform_options *options, int64_t index, float *image)
{
    att_random random = draws_of(index, "erase");
    for (int i = 0; i < SIDE * SIDE; i++)
        image[i] = untouched;
    att_erase(options, &random, image);
}

/* The only box of an image of OUT x OUT pixels; empty if there is none. */
static att_box erased_box(int64_t index)
{
    const att_transform_options options = att_transform_options_defaults(OUT, OUT, 3);
    att_random random = draws_of(index, "box");
    att_box box = {0};
    (void)att_erase_draw(&options, &random, 1, &box);
    return box;
}

static double erase_applied(int64_t index)
{
    const att_transform_options options = erasing(ATT_ERASE_CONST, 0.25, 1);
    float image[SIDE * SIDE];
    erase(&options, index, image);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (image[i] != untouched)
            return 1;
    return 0;
}

static double erase_area(int64_t index)
{
    att_box box = erased_box(index);
    return box.width ? (double)box.width * box.height / (OUT * OUT) : NAN;
}

static double erase_aspect(int64_t index)
{
    att_box box = erased_box(index);
    return box.width ? (double)box.height / box.width : NAN;
}

static double erase_x(int64_t index)
{
    att_box box = erased_box(index);
    return box.width ? (double)box.x / (OUT - box.width) : NAN;
}

static double erase_y(int64_t index)
{
    att_box box = erased_box(index);
    return box.width ? (double)box.y / (OUT - box.height) : NAN;
}

/* The area of the union of one to four boxes. */
static double erase_four(int64_t index)
{
    const att_transform_options options = erasing(ATT_ERASE_CONST, 1, 4);
    float image[SIDE * SIDE];
    int count = 0;
    erase(&options, index, image);
    for (int i = 0; i < SIDE * SIDE; i++)
        count += image[i] == 0;
    return (double)count / (SIDE * SIDE);
}

/* The first erased value; NaN if there is none. */
static double erased_value(att_erase_mode mode, int64_t index)
{
    const att_transform_options options = erasing(mode, 1, 1);
    float image[SIDE * SIDE];
    erase(&options, index, image);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (image[i] != untouched)
            return (double)image[i];
    return NAN;
}

static double erase_pixel(int64_t index)
{
    return erased_value(ATT_ERASE_PIXEL, index);
}

static double erase_rand(int64_t index)
{
    return erased_value(ATT_ERASE_RAND, index);
}

/* --- mixing ------------------------------------------------------------------------------------------------------ */

static att_mixing mixing(int64_t index, double mixup, double cutmix, double probability)
{
    att_mix_options options = {.mixup = mixup, .cutmix = cutmix, .prob = probability, .switch_prob = 0.35};
    att_random random = draws_of(index, "mix");
    return att_mix_draw(&options, OUT, OUT, &random);
}

static double mix_applied(int64_t index)
{
    return mixing(index, 0.8, 0, 0.7).lambda != 1;
}

static double mix_cuts(int64_t index)
{
    return mixing(index, 0.8, 1, 1).cuts;
}

static double mixup_lambda(int64_t index)
{
    return mixing(index, 0.8, 0, 1).lambda;
}

static double mixup_small_lambda(int64_t index)
{
    return mixing(index, 0.2, 0, 1).lambda;
}

static double cutmix_lambda(int64_t index)
{
    return mixing(index, 0, 1, 1).lambda;
}

static double cutmix_height(int64_t index)
{
    att_mixing mix = mixing(index, 0, 1, 1);
    return mix.bottom - mix.top;
}

static double cutmix_left(int64_t index)
{
    return mixing(index, 0, 1, 1).left;
}

static att_mixing minmax(int64_t index)
{
    att_mix_options options = {.cutmix_minmax = {0.2, 0.8}, .prob = 1};
    att_random random = draws_of(index, "minmax");
    return att_mix_draw(&options, OUT, OUT, &random);
}

static double minmax_width(int64_t index)
{
    att_mixing mix = minmax(index);
    return mix.right - mix.left;
}

static double minmax_top(int64_t index)
{
    att_mixing mix = minmax(index);
    return (double)mix.top / (OUT - (mix.bottom - mix.top));
}

static double minmax_lambda(int64_t index)
{
    return minmax(index).lambda;
}

/* --- the parameters ---------------------------------------------------------------------------------------------- */

enum { MOST = 500000, MANY = 100000, FEWER = 20000 };

static const struct parameter {
    const char *name;
    int count; /* draws of the test */
    double (*draw)(int64_t index);
} parameters[] = {
    {"crop_area", MANY, crop_area},
    {"crop_aspect", MANY, crop_aspect},
    {"crop_x", MANY, crop_x},
    {"crop_y", MANY, crop_y},
    {"crop_narrow_area", MANY, narrow_area},
    {"crop_narrow_fallback", MANY, narrow_fallback},
    {"flip", MANY, flip},
    {"rand_operation", MANY, rand_operation},
    {"rand_applied", MANY, rand_applied},
    {"rand_rotate", MANY, rand_rotate},
    {"rand_posterize", MANY, rand_posterize},
    {"rand_solarize", MANY, rand_solarize},
    {"rand_solarize_add", MANY, rand_solarize_add},
    {"rand_color", MANY, rand_color},
    {"rand_shear_x", MANY, rand_shear_x},
    {"rand_translate_y", MANY, rand_translate_y},
    {"rand_uniform_rotate", MANY, uniform_rotate},
    {"rand_wide_rotate", MANY, wide_rotate},
    {"rand_wide_brightness", MANY, wide_brightness},
    {"jitter_brightness", MANY, jitter_brightness},
    {"jitter_contrast", MANY, jitter_contrast},
    {"jitter_saturation", MANY, jitter_saturation},
    {"jitter_first", MANY, jitter_first},
    {"three_change", MANY, three_change},
    {"three_radius", MANY, three_radius},
    {"erase_applied", FEWER, erase_applied},
    {"erase_area", MANY, erase_area},
    {"erase_aspect", MANY, erase_aspect},
    {"erase_x", MANY, erase_x},
    {"erase_y", MANY, erase_y},
    {"erase_four_area", FEWER, erase_four},
    {"erase_pixel", FEWER, erase_pixel},
    {"erase_rand", FEWER, erase_rand},
    {"mix_applied", MANY, mix_applied},
    {"mix_cuts", MANY, mix_cuts},
    {"mixup_lambda", MANY, mixup_lambda},
    {"mixup_small_lambda", MANY, mixup_small_lambda},
    {"cutmix_lambda", MOST, cutmix_lambda},
    {"cutmix_height", MANY, cutmix_height},
    {"cutmix_left", MANY, cutmix_left},
    {"minmax_width", MANY, minmax_width},
    {"minmax_top", MANY, minmax_top},
    {"minmax_lambda", MANY, minmax_lambda},
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

/* Draws, without those that do not exist (NaN). Returns their number. */
static int draw_all(const struct parameter *parameter, int count, double *values)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        double value = parameter->draw(i);
        if (!isnan(value))
            values[kept++] = value;
    }
    return kept;
}

static int print_draws(int count)
{
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int p = 0; p < PARAMETERS; p++) {
        int kept = draw_all(&parameters[p], count, values);
        printf("%s", parameters[p].name);
        for (int i = 0; i < kept; i++)
            printf(" %.9g", values[i]);
        printf("\n");
    }
    free(values);
    return 0;
}

/* --- the comparison ---------------------------------------------------------------------------------------------- */

/* A line of the golden: timm's draws of a parameter. quantiles: of the shares 1/20, 2/20, ... 19/20. */
enum { QUANTILES = 19 };
typedef struct expectation {
    char name[64];
    int count;
    double least, thousandth, quantiles[QUANTILES], last_thousandth, most;
} expectation;

static bool read_expectation(FILE *file, expectation *e)
{
    if (fscanf(file, "%63s %d %lf %lf", e->name, &e->count, &e->least, &e->thousandth) != 4)
        return false;
    for (int q = 0; q < QUANTILES; q++)
        assert_int_equal(fscanf(file, "%lf", &e->quantiles[q]), 1);
    assert_int_equal(fscanf(file, "%lf %lf", &e->last_thousandth, &e->most), 2);
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share of sorted values below `limit`, or up to it. */
static double share_below(const double *sorted, int count, double limit, bool up_to)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (sorted[middle] < limit || (up_to && sorted[middle] == limit))
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low / count;
}

/* The quantiles may differ by four deviations of the difference of two shares. The extremes lie among timm's extreme
 * thousandths, or as far beyond as these are wide. */
static void compare(const expectation *expected, double *values, int count)
{
    const double rounding = 1e-9;
    double tolerance = 4 * sqrt(0.25 / count + 0.25 / expected->count);
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    for (int q = 0; q < QUANTILES; q++) {
        double limit = expected->quantiles[q], share = (q + 1) / (double)(QUANTILES + 1);
        double below = share_below(values, count, limit - rounding, false);
        double up_to = share_below(values, count, limit + rounding, true);
        if (share < below - tolerance || share > up_to + tolerance)
            fail_msg("%s: %.4f to %.4f of the values are at most %g, expected %.2f (+- %.4f)", expected->name, below,
                     up_to, limit, share, tolerance);
    }
    double least = values[0], most = values[count - 1], low = expected->thousandth, high = expected->last_thousandth;
    if (least > low + rounding || least < expected->least - (low - expected->least) - rounding)
        fail_msg("%s: the least value is %g, expected %g to %g", expected->name, least, expected->least, low);
    if (most < high - rounding || most > expected->most + (expected->most - high) + rounding)
        fail_msg("%s: the largest value is %g, expected %g to %g", expected->name, most, high, expected->most);
}

static const struct parameter *find_parameter(const char *name)
{
    for (int p = 0; p < PARAMETERS; p++)
        if (strcmp(parameters[p].name, name) == 0)
            return &parameters[p];
    fail_msg("no parameter %s", name);
    return NULL;
}

TEST(every_distribution_is_timms)
{
    static double values[MOST];
    char path[4096];
    expectation expected;
    int compared = 0;
    golden_path("draws.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; read_expectation(file, &expected); compared++) {
        const struct parameter *parameter = find_parameter(expected.name);
        compare(&expected, values, draw_all(parameter, parameter->count, values));
    }
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(compared, PARAMETERS);
}

/* --- repeated augmentation --------------------------------------------------------------------------------------- */

enum { MOST_IMAGES = 1000, REPEATS = 3 };

typedef struct epoch_of_repeats {
    int length, distinct, often, neighbours; /* often: images that occur REPEATS times */
} epoch_of_repeats;

static epoch_of_repeats run_epoch(scratch *self, int images)
{
    att_dataset *dataset = NULL;
    att_loader *loader = NULL;
    att_loader_options options = att_loader_options_defaults(2, 2, 1);
    epoch_of_repeats epoch = {0};
    int counts[MOST_IMAGES] = {0};
    int64_t last = -1;
    idx_write(self, "train", images, images);
    assert_int_equal(att_dataset_open(self->context, self->folder, NULL, &dataset), ATT_OK);
    options.repeats = REPEATS;
    options.shuffle = true;
    options.workers = 0;
    options.seed = 3;
    options.targets = labels_rules();
    CHECK(self->context, att_loader_create(self->context, dataset, &options, &loader));
    for (att_batch batch = {.count = 1}; batch.count > 0;) {
        assert_int_equal(att_loader_next(loader, &batch), ATT_OK);
        for (int i = 0; i < batch.count; i++, epoch.length++) {
            counts[batch.indices[i]]++;
            epoch.neighbours += batch.indices[i] == last;
            last = batch.indices[i];
        }
    }
    for (int i = 0; i < images; i++) {
        epoch.distinct += counts[i] > 0;
        epoch.often += counts[i] == REPEATS;
    }
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
    return epoch;
}

SCRATCH_TEST(repeats_are_timms)
{
    char path[4096];
    int images, lines = 0;
    epoch_of_repeats expected;
    golden_path("repeats.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; fscanf(file, "%d %d %d %d %d", &images, &expected.length, &expected.distinct, &expected.often,
                  &expected.neighbours) == 5;
         lines++) {
        epoch_of_repeats found = run_epoch(self, images);
        if (memcmp(&found, &expected, sizeof found) != 0)
            fail_msg("%d images: %d samples, %d images, %d of them three times, %d repetitions", images, found.length,
                     found.distinct, found.often, found.neighbours);
    }
    fclose(file);
    assert_int_equal(lines, 4);
}

int main(int count, char **arguments)
{
    if (att_context_create_with(NULL, NULL, &context) != ATT_OK)
        return 1;
    int failures =
        count == 3 && strcmp(arguments[1], "--print") == 0 ? print_draws(atoi(arguments[2])) : test_run("draws");
    att_context_destroy(&context);
    return failures;
}
