/* Augmentation: arguments of operations against timm's (tests/goldens/augment_arguments.txt), frequencies against the
 * options, and independent random streams of the stages. */
#include "base/io/golden.h"
#include "data/augment.h"
#include "data/erase.h"
#include "data/transform.h"

enum { SIDE = 24, BYTES = SIDE * SIDE * 3, PICTURES = 3000 };

static uint8_t original[BYTES];

static att_image paint(uint8_t *pixels)
{
    for (int i = 0; i < BYTES; i++)
        original[i] = (uint8_t)((i * 7 + i / 72 * 5) % 200 + 20);
    memcpy(pixels, original, BYTES);
    return (att_image){SIDE, SIDE, 3, pixels};
}

static att_transform_options plain(void)
{
    att_transform_options options = att_transform_options_defaults(SIDE, SIDE, 3);
    for (int c = 0; c < 3; c++) {
        options.mean[c] = 0;
        options.std[c] = 1.0f / 255;
    }
    return options;
}

static void transform(scratch *self, const att_transform_options *options, int64_t index, float *out)
{
    uint8_t pixels[BYTES];
    att_image image = paint(pixels);
    CHECK(self->context, att_transform_image(self->context, options, &image, 7, 3, index, out));
}

/* --- arguments --------------------------------------------------------------------------------------------------- */

static int check_argument(const char *name, double magnitude, int negate, double expected)
{
    int checked = 0;
    for (int variant = 0; variant < 2; variant++)
        for (int i = 0; i < ATT_AUGMENT_OPERATIONS; i++) {
            if (strcmp(att_augment_name(i, variant), name) != 0)
                continue;
            /* the same formulas in doubles; measured: 0 */
            assert_float_equal(att_augment_argument(i, variant, magnitude, negate), expected, 1e-15);
            checked = 1;
        }
    return checked;
}

TEST(arguments_equal_timms)
{
    char path[4096], name[64];
    double magnitude, expected;
    int negate, count = 0;
    golden_path("augment_arguments.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fscanf(file, "%63s %lf %d %lf", name, &magnitude, &negate, &expected) == 4)
        count += check_argument(name, magnitude, negate, expected);
    fclose(file);
    assert_int_equal(count, 18 * 6 * 2);
}

SCRATCH_TEST(descriptions_are_parsed_as_by_timm)
{
    att_rand_augment how;
    assert_int_equal(att_rand_augment_parse(self->context, "rand-m9-mstd0.5-inc1", &how), ATT_OK);
    assert_int_equal(how.layers, 2);
    assert_true(how.magnitude == 9 && how.deviation == 0.5 && how.most == 10 && how.probability == 0.5);
    assert_true(how.increasing);
    assert_int_equal(att_rand_augment_parse(self->context, "rand-n3-p0.8-mmax20-mstd101", &how), ATT_OK);
    assert_int_equal(how.layers, 3);
    assert_true(how.magnitude == 10 && isinf(how.deviation) && how.most == 20 && how.probability == 0.8);
    assert_false(how.increasing);
    assert_int_equal(att_rand_augment_parse(self->context, "rand", &how), ATT_OK);
    static const char *const wrong[] = {"rand-",    "rand-x3", "rand-m",        "rand-m9-",     "rand-m9x",
                                        "rand-m-9", "rand-3",  "rand-tweights", "rand-mstdnan", "rand-n1e30"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(att_rand_augment_parse(self->context, wrong[i], &how), ATT_ERR_ARGUMENT);
    static const char *const other[] = {"", "randy-m9", "augmix-m3", "original-mstd0.5", "3a", "-rand"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_fails(self->context, att_rand_augment_parse(self->context, other[i], &how), ATT_ERR_UNSUPPORTED,
                     "rand-m9-mstd0.5-inc1");
}

/* --- RandAugment ------------------------------------------------------------------------------------------------- */

/* Returns the operation and direction that give these bytes at magnitude 6, as 2 * operation + negated; -1: none. */
static int recognise(const att_transform_options *options, const float *out)
{
    uint8_t pixels[BYTES], room[BYTES];
    att_geometry geometry = att_geometry_of(SIDE, SIDE);
    for (int i = 0; i < 2 * ATT_AUGMENT_OPERATIONS; i++) {
        att_image image = paint(pixels);
        att_augment_apply(i / 2, options, &image, att_augment_argument(i / 2, true, 6, i % 2), room, &geometry);
        int same = 0;
        while (same < BYTES && lrintf(out[same]) == pixels[same])
            same++;
        if (same == BYTES)
            return i;
    }
    return -1;
}

SCRATCH_TEST(operations_are_drawn_evenly)
{
    float out[BYTES];
    int drawn[ATT_AUGMENT_OPERATIONS] = {0}, negated = 0, left = 0;
    att_transform_options options = plain();
    options.rand_augment = (att_rand_augment){1, 6, 0, 10, 0.75, true};
    for (int i = 0; i < PICTURES; i++) {
        transform(self, &options, i, out);
        bool same = true;
        for (int k = 0; same && k < BYTES; k++)
            same = lrintf(out[k]) == original[k];
        if (same) {
            left++;
            continue;
        }
        int found = recognise(&options, out);
        assert_true(found >= 0);
        drawn[found / 2]++;
        if (found / 2 == 3)
            negated += found % 2;
    }
    /* The expected numbers are 750 +- 24, 150 +- 12 and half of the rotations +- 6; the limits are four deviations. */
    assert_true(abs(left - PICTURES / 4) < 95);
    for (int i = 0; i < ATT_AUGMENT_OPERATIONS; i++)
        if (abs(drawn[i] - PICTURES * 3 / 4 / ATT_AUGMENT_OPERATIONS) >= 48)
            fail_msg("%s was drawn %d times", att_augment_name(i, true), drawn[i]);
    assert_true(abs(negated - drawn[3] / 2) < 25);
}

/* Returns the number of bits that an image keeps, whose values use all eight. */
static int bits_kept(const uint8_t *pixels)
{
    int all = 0, bits = 0;
    for (int i = 0; i < BYTES; i++)
        all |= pixels[i];
    while (all >> (7 - bits) & 1)
        bits++;
    return bits;
}

/* Derived from the bits that Posterize, the fifth operation, keeps, and how often. */
SCRATCH_TEST(magnitudes_are_normal_and_clipped)
{
    uint8_t pixels[BYTES], room[BYTES];
    att_transform_options options = plain();
    options.rand_augment = (att_rand_augment){1, 5, 2.5, 10, 1, true};
    int steps[5] = {0}, count = 0;
    for (int i = 0; i < 8 * PICTURES; i++) {
        att_random random = att_random_from(att_random_key(1, 2, (uint64_t)i)), ahead = random;
        if (att_random_below(&ahead, ATT_AUGMENT_OPERATIONS) != 4)
            continue;
        att_image image = paint(pixels);
        att_geometry geometry = att_geometry_of(SIDE, SIDE);
        att_augment(&options, &image, &random, room, &geometry);
        steps[bits_kept(pixels)]++;
        count++;
    }
    /* Magnitudes below 2.5 keep 4 bits, below 5: 3, below 7.5: 2, below 10: 1, clipped to 10: none. These are the
     * shares of a normal distribution beyond 2, and between 2, 1, 0 and -1 deviations. With 1600 images, four
     * deviations are at most 0.05. */
    static const double shares[5] = {0.0228, 0.1359, 0.3413, 0.3413, 0.1587};
    for (int bits = 0; bits < 5; bits++)
        assert_float_equal((double)steps[bits] / count, shares[bits], 0.05);
}

/* --- 3-Augment --------------------------------------------------------------------------------------------------- */

/* Which change was made; ATT_THREE_BLUR if it is neither of the others. */
static att_three find_change(const float *out)
{
    uint8_t pixels[BYTES], room[BYTES];
    for (att_three change = ATT_THREE_GREY; change < ATT_THREE_BLUR; change++) {
        att_image image = paint(pixels);
        att_three_augment_apply(&(att_three_draw){.change = change}, &image, room);
        int same = 0;
        while (same < BYTES && lrintf(out[same]) == pixels[same])
            same++;
        if (same == BYTES)
            return change;
    }
    return ATT_THREE_BLUR;
}

SCRATCH_TEST(the_changes_of_3_augment_are_drawn_evenly)
{
    float out[BYTES];
    int drawn[ATT_THREE_COUNT] = {0};
    att_transform_options options = plain();
    options.three_augment = true;
    for (int i = 0; i < PICTURES; i++) {
        transform(self, &options, i, out);
        drawn[find_change(out)]++;
    }
    for (int i = 0; i < ATT_THREE_COUNT; i++)
        assert_true(abs(drawn[i] - PICTURES / 3) < 104); /* four deviations */
}

SCRATCH_TEST(three_augment_solarises_from_128_on)
{
    uint8_t pixels[] = {0, 127, 128, 255}, room[4];
    static const uint8_t expected[] = {0, 127, 127, 0};
    const att_image image = {4, 1, 1, pixels};
    att_three_augment_apply(&(att_three_draw){.change = ATT_THREE_SOLARIZE}, &image, room);
    assert_memory_equal(pixels, expected, sizeof expected);
}

SCRATCH_TEST(radii_of_3_augment_are_drawn_evenly)
{
    double sum = 0, least = 9, most = 0;
    for (int i = 0; i < PICTURES; i++) {
        att_random random = att_random_from(att_random_key(1, 2, (uint64_t)i));
        double radius = att_three_augment_draw(&random).radius;
        sum += radius;
        least = fmin(least, radius);
        most = fmax(most, radius);
    }
    assert_true(least >= 0.1 && least < 0.11 && most > 1.99 && most <= 2);
    assert_float_equal(sum / PICTURES, 1.05, 0.04); /* four deviations */
}

/* --- colour jitter ----------------------------------------------------------------------------------------------- */

SCRATCH_TEST(brightness_is_drawn_evenly_from_its_range)
{
    enum { bright = 20 };
    float out[BYTES];
    att_transform_options options = plain();
    options.color_jitter[0] = 0.4; /* brightness: v becomes v f, truncated */
    double sum = 0, squares = 0, least = 9, most = 0;
    for (int i = 0; i < PICTURES; i++) {
        transform(self, &options, i, out);
        double factor = ((double)out[bright] + 0.5) / original[bright];
        sum += factor;
        squares += factor * factor;
        least = fmin(least, factor);
        most = fmax(most, factor);
    }
    double mean = sum / PICTURES, deviation = sqrt(squares / PICTURES - mean * mean), step = 0.5 / original[bright];
    assert_true(least >= 0.6 - 2 * step && least < 0.62 && most > 1.38 && most <= 1.4 + 2 * step);
    assert_float_equal(mean, 1, 4 * 0.231 / sqrt(PICTURES) + step);
    assert_float_equal(deviation, 0.8 / sqrt(12), 0.01);
}

/* --- interpolation ----------------------------------------------------------------------------------------------- */

SCRATCH_TEST(random_interpolation_draws_both_filters_evenly)
{
    float out[BYTES / 4], bilinear[BYTES / 4], bicubic[BYTES / 4];
    att_transform_options options = plain();
    options.height = options.width = SIDE / 2;
    int chosen[2] = {0};
    for (int i = 0; i < 400; i++) {
        options.interpolation = ATT_BILINEAR;
        transform(self, &options, i, bilinear);
        options.interpolation = ATT_BICUBIC;
        transform(self, &options, i, bicubic);
        options.interpolation = ATT_RANDOM_INTERPOLATION;
        transform(self, &options, i, out);
        bool is_bilinear = memcmp(out, bilinear, sizeof out) == 0, is_bicubic = memcmp(out, bicubic, sizeof out) == 0;
        assert_true(is_bilinear != is_bicubic);
        chosen[is_bicubic]++;
    }
    assert_true(abs(chosen[0] - 200) < 40); /* four deviations */
}

/* --- flips and erasing ------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_vertical_flip_reverses_the_rows)
{
    float out[BYTES];
    att_transform_options options = plain();
    options.vertical_flip = 1;
    transform(self, &options, 0, out);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < 3 * SIDE; x++)
            assert_int_equal(lrintf(out[y * 3 * SIDE + x]), original[(SIDE - 1 - y) * 3 * SIDE + x]);
}

/* Counts erased values: those that are not whole numbers (normal draws), or zeros. */
static int count_erased(const float *out, att_erase_mode mode)
{
    int erased = 0;
    for (int i = 0; i < BYTES; i++)
        erased += mode == ATT_ERASE_CONST ? out[i] == 0 : fabsf(out[i]) < 15;
    return erased;
}

SCRATCH_TEST(erasing_has_its_probability_area_and_values)
{
    float out[BYTES];
    for (att_erase_mode mode = ATT_ERASE_CONST; mode <= ATT_ERASE_PIXEL; mode++) {
        att_transform_options options = plain();
        options.erase = 0.25;
        options.erase_mode = mode;
        double area = 0, values = 0, squares = 0;
        int touched = 0, distinct = 0, all = 0;
        for (int i = 0; i < PICTURES; i++) {
            transform(self, &options, i, out);
            int erased = count_erased(out, mode);
            touched += erased > 0;
            area += (double)erased / BYTES;
            for (int k = 0; k + 3 < BYTES && erased > 0; k++)
                if (fabsf(out[k]) < 15 && fabsf(out[k + 3]) < 15 && k % (3 * SIDE) < 3 * SIDE - 3) {
                    all++;
                    distinct += out[k] != out[k + 3];
                    values += (double)out[k];
                    squares += (double)out[k] * (double)out[k];
                }
        }
        /* 750 +- 24. Areas drawn from U(.02, 1/3) have the mean 0.177 +- 0.003, minus the effect of rounding and of
         * boxes that would be larger than the image. Measured: 0.170. */
        assert_true(abs(touched - PICTURES / 4) < 95);
        assert_float_equal(area / touched, 0.172, 0.015);
        assert_true(mode == ATT_ERASE_PIXEL ? distinct == all : distinct == 0);
        double mean = values / all, deviation = sqrt(squares / all - mean * mean);
        if (mode != ATT_ERASE_CONST) {
            assert_float_equal(mean, 0, 0.15);
            assert_float_equal(deviation, 1, 0.1);
        }
    }
}

SCRATCH_TEST(several_erased_boxes_share_the_area)
{
    float out[BYTES];
    att_transform_options options = plain();
    options.erase = 1;
    options.erase_count = 3;
    double area = 0;
    for (int i = 0; i < PICTURES; i++) {
        transform(self, &options, i, out);
        area += (double)count_erased(out, ATT_ERASE_CONST) / BYTES;
    }
    assert_float_equal(area / PICTURES, 0.165, 0.015); /* boxes may overlap; measured: 0.163 */
}

/* --- random streams ----------------------------------------------------------------------------------------------- */

/* The draws of one stage must not change the draws of another. */
SCRATCH_TEST(erasing_changes_no_draw_of_another_stage)
{
    float with[BYTES], without[BYTES];
    att_transform_options options = plain(), erasing;
    options.crop = ATT_CROP_PAD;
    options.flip = 0.5;
    erasing = options;
    erasing.erase = 1;
    for (int i = 0; i < 50; i++) {
        transform(self, &options, i, without);
        transform(self, &erasing, i, with);
        int same = 0;
        for (int k = 0; k < BYTES; k++)
            same += with[k] == without[k];
        assert_true(same + count_erased(with, ATT_ERASE_CONST) >= BYTES && same >= BYTES / 2);
    }
}

SCRATCH_TEST(repeats_of_an_image_differ)
{
    float first[BYTES], again[BYTES];
    uint8_t pixels[BYTES];
    att_transform_options options = plain();
    options.rand_augment = (att_rand_augment){2, 9, 0.5, 10, 1, true};
    att_transform_key key = {.seed = 7, .epoch = 3, .index = 5};
    att_geometry geometry;
    att_image image = paint(pixels);
    transform(self, &options, 5, first);
    assert_int_equal(att_transform_keyed(self->context, &options, &image, &key, again, &geometry), ATT_OK);
    assert_memory_equal(first, again, sizeof first);
    key.repeat = 1;
    assert_int_equal(att_transform_keyed(self->context, &options, &image, &key, again, &geometry), ATT_OK);
    assert_memory_not_equal(first, again, sizeof first);
}

static void expect_wrong(scratch *self, const att_transform_options *options, const char *part)
{
    uint8_t pixels[BYTES];
    float out[BYTES];
    att_image image = paint(pixels);
    assert_fails(self->context, att_transform_image(self->context, options, &image, 0, 0, 0, out), ATT_ERR_ARGUMENT,
                 part);
}

SCRATCH_TEST(wrong_options_are_refused)
{
    att_transform_options options = plain();
    options.erase = NAN;
    expect_wrong(self, &options, "erase");
    options.erase = 1;
    options.erase_count = 0;
    expect_wrong(self, &options, "erase_count");
    options.erase_count = 1;
    options.erase_mode = (att_erase_mode)3;
    expect_wrong(self, &options, "erasing");
    options.erase_mode = ATT_ERASE_RAND;
    options.color_jitter[2] = -0.1;
    expect_wrong(self, &options, "color_jitter");
    options.color_jitter[2] = 0;
    options.rand_augment = (att_rand_augment){1, NAN, 0, 10, 1, true};
    expect_wrong(self, &options, "magnitudes");
    options.rand_augment = (att_rand_augment){1, 5, -1, 10, 1, true};
    expect_wrong(self, &options, "deviation");
    options.rand_augment = (att_rand_augment){1, 5, 0, 10, 2, true};
    expect_wrong(self, &options, "probability");
    options.rand_augment = (att_rand_augment){.layers = -1};
    expect_wrong(self, &options, "layers");
}
