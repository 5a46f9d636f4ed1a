/* Transforms that keep the aspect ratio, mmsegmentation's random scale and crop, and its photometric distortion against
 * OpenCV's bytes (tests/goldens/photometric.txt). */
#include "base/core/memory.h"
#include "base/io/golden.h"
#include "data/augment.h"
#include "data/transform.h"
#include "failing.h"

/* Mean 0 and deviation 1/255, so bytes are unchanged. */
static att_transform_options plain(att_crop crop, int height, int width, int channels)
{
    att_transform_options options = att_transform_options_defaults(height, width, channels);
    options.crop = crop;
    options.interpolation = ATT_BILINEAR;
    for (int c = 0; c < 3; c++) {
        options.mean[c] = 0;
        options.std[c] = 1.0f / 255.0f;
    }
    return options;
}

/* Keeps the aspect ratio; the sides depend on the image. */
static att_transform_options varying(int longer, int shorter, int divisor)
{
    att_transform_options options = plain(ATT_CROP_KEEP, 0, 0, 1);
    options.longer = longer;
    options.shorter = shorter;
    options.divisor = divisor;
    return options;
}

/* The sides are those of mmcv.rescale_size((width, height), (longer, shorter)), computed by hand for the last two:
 * min(1333 / 1000, 800 / 333) = 1.333, 333 * 1.333 = 443.89; min(2048 / 683, 512 / 512) = 1. */
SCRATCH_TEST(sides_keep_their_ratio_and_are_filled_up_to_multiples)
{
    static const struct {
        int width, height, longer, shorter, divisor, to_width, to_height, all_width, all_height;
    } cases[] = {{640, 480, 1333, 800, 32, 1067, 800, 1088, 800}, {480, 640, 1333, 800, 32, 800, 1067, 800, 1088},
                 {500, 375, 2048, 512, 1, 683, 512, 683, 512},    {100, 100, 2048, 512, 7, 512, 512, 518, 518},
                 {1000, 333, 1333, 800, 1, 1333, 444, 1333, 444}, {683, 512, 2048, 512, 16, 683, 512, 688, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_transform_options options = varying(cases[i].longer, cases[i].shorter, cases[i].divisor);
        att_geometry geometry;
        CHECK(self->context,
              att_transform_geometry(self->context, &options, cases[i].width, cases[i].height, &geometry));
        assert_int_equal(geometry.width, cases[i].all_width);
        assert_int_equal(geometry.height, cases[i].all_height);
        double x = cases[i].width, y = cases[i].height;
        att_geometry_move(&geometry, &x, &y);
        assert_float_equal(x, cases[i].to_width, 1e-9); /* measured: 0 */
        assert_float_equal(y, cases[i].to_height, 1e-9);
    }
}

/* The sides are those of torchvision's GeneralizedRCNNTransform: floor(side min(800 / shorter, 1333 / longer)). A
 * result of these sides, filled up, holds the same image. */
SCRATCH_TEST(sides_within_the_largest_ones_are_rounded_down)
{
    static const int cases[][6] = {{640, 480, 1066, 800, 1088, 800},
                                   {427, 640, 800, 1199, 800, 1216},
                                   {500, 333, 1201, 800, 1216, 800},
                                   {640, 200, 1333, 416, 1344, 416},
                                   {457, 336, 1088, 800, 1088, 800}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_transform_options options = varying(1333, 800, 32);
        options.crop = ATT_CROP_WITHIN;
        for (int given = 0; given < 2; given++) {
            att_geometry geometry;
            CHECK(self->context, att_transform_geometry(self->context, &options, cases[i][0], cases[i][1], &geometry));
            assert_int_equal(geometry.width, cases[i][4]);
            assert_int_equal(geometry.height, cases[i][5]);
            double x = cases[i][0], y = cases[i][1];
            att_geometry_move(&geometry, &x, &y);
            assert_float_equal(x, cases[i][2], 1e-9); /* measured: 0 */
            assert_float_equal(y, cases[i][3], 1e-9);
            options.width = geometry.width;
            options.height = geometry.height;
        }
    }
}

/* In a result of given sides, the image also fits into them: 40 x 30 at most by longer and shorter, and the frame. */
SCRATCH_TEST(images_fit_into_given_sides)
{
    static const int cases[][6] = {
        {400, 300, 40, 30, 40, 30}, {300, 400, 40, 30, 23, 30}, {30, 40, 30, 40, 30, 40}, {800, 100, 40, 30, 40, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_transform_options options = plain(ATT_CROP_KEEP, cases[i][3], cases[i][2], 1);
        att_geometry geometry;
        CHECK(self->context, att_transform_geometry(self->context, &options, cases[i][0], cases[i][1], &geometry));
        double x = cases[i][0], y = cases[i][1];
        att_geometry_move(&geometry, &x, &y);
        assert_float_equal(x, cases[i][4], 1e-9); /* measured: 0 */
        assert_float_equal(y, cases[i][5], 1e-9);
        assert_true(geometry.width == cases[i][2] && geometry.height == cases[i][3]);
    }
}

enum { WIDE = 12, TALL = 5, SIDE = 16 };

static att_image paint(uint8_t *pixels, int width, int height)
{
    for (int i = 0; i < width * height; i++)
        pixels[i] = (uint8_t)(i % 200 + 30);
    return (att_image){width, height, 1, pixels};
}

/* Flips happen within the image, as in mmsegmentation and torchvision, which fill up later. */
SCRATCH_TEST(the_rest_is_zero_after_normalisation)
{
    uint8_t pixels[WIDE * TALL];
    float out[SIDE * SIDE];
    const att_image image = paint(pixels, WIDE, TALL);
    for (int flip = 0; flip < 4; flip++) {
        att_transform_options options = plain(ATT_CROP_KEEP, SIDE, SIDE, 1);
        options.longer = WIDE;
        options.shorter = TALL;
        options.mean[0] = 0.25;
        options.flip = flip & 1;
        options.vertical_flip = flip >> 1;
        for (int i = 0; i < SIDE * SIDE; i++)
            out[i] = NAN;
        CHECK(self->context, att_transform_image(self->context, &options, &image, 1, 2, 3, out));
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                int from_x = flip & 1 ? WIDE - 1 - x : x, from_y = flip >> 1 ? TALL - 1 - y : y;
                float wanted = x < WIDE && y < TALL ? (float)pixels[from_y * WIDE + from_x] - 63.75f : 0;
                assert_float_equal(out[y * SIDE + x], wanted, 1e-4); /* measured: 7.6e-6 */
            }
    }
}

SCRATCH_TEST(augmentation_leaves_the_filling_alone)
{
    uint8_t pixels[WIDE * TALL];
    float out[SIDE * SIDE];
    const att_image image = paint(pixels, WIDE, TALL);
    att_transform_options options = plain(ATT_CROP_KEEP, SIDE, SIDE, 1);
    options.longer = WIDE;
    options.shorter = TALL;
    options.mean[0] = 0.5;
    options.rand_augment = (att_rand_augment){2, 9, 0.5, 10, 1, true};
    options.erase = 1;
    options.erase_mode = ATT_ERASE_PIXEL;
    for (int index = 0; index < 50; index++) {
        att_geometry geometry;
        const att_transform_key key = {.seed = 1, .index = index};
        CHECK(self->context, att_transform_keyed(self->context, &options, &image, &key, out, &geometry));
        assert_int_equal(geometry.width, SIDE);
        assert_int_equal(geometry.height, SIDE);
        for (int i = 0; i < SIDE * SIDE; i++)
            assert_true(out[i] == 0 || (i % SIDE < WIDE && i / SIDE < TALL));
    }
}

SCRATCH_TEST(geometry_is_known_without_decoding)
{
    static uint8_t pixels[90 * 70];
    static float out[64 * 64];
    const att_image image = paint(pixels, 90, 70);
    for (att_crop crop = ATT_CROP_CENTER; crop <= ATT_CROP_SCALED; crop++) {
        att_transform_options options = plain(crop, 48, 64, 1);
        att_geometry made, known;
        const att_transform_key key = {0};
        options.crop_pct = 0.8;
        CHECK(self->context, att_transform_keyed(self->context, &options, &image, &key, out, &made));
        CHECK(self->context, att_transform_geometry(self->context, &options, 90, 70, &known));
        assert_memory_equal(&made, &known, sizeof made);
    }
}

SCRATCH_TEST(images_without_a_size_are_refused)
{
    uint8_t pixels[WIDE * TALL];
    float out[SIDE * SIDE];
    const att_image image = paint(pixels, WIDE, TALL);
    att_geometry geometry;
    att_transform_options options = varying(WIDE, TALL, 1);
    assert_fails(self->context, att_transform_image(self->context, &options, &image, 0, 0, 0, out), ATT_ERR_ARGUMENT,
                 "transform: height and width are 0, so that they depend on the image; only a loader knows them");
    options.height = options.width = 10;
    assert_fails(self->context, att_transform_geometry(self->context, &options, 0, 5, &geometry), ATT_ERR_ARGUMENT,
                 "transform: an image of 5 x 0 pixels (height x width)");
    options.longer = 10;
    assert_fails(self->context, att_transform_geometry(self->context, &options, 3000, 5, &geometry),
                 ATT_ERR_UNSUPPORTED, "an image of 3000 x 5 pixels is too narrow to be resized");
}

SCRATCH_TEST(wrong_sizes_are_refused)
{
    att_transform_options wrong[9];
    att_geometry geometry;
    for (int i = 0; i < 9; i++)
        wrong[i] = plain(i < 4 ? ATT_CROP_KEEP : ATT_CROP_SCALED, SIDE, SIDE, 1);
    wrong[0].shorter = 0;
    wrong[1].shorter = SIDE + 1;
    wrong[2].divisor = 0;
    wrong[3].occlude = 1;
    wrong[4].height = wrong[4].width = 0;
    wrong[5].factor[0] = 0;
    wrong[6].factor[1] = NAN;
    wrong[7].cat_max_ratio = 0;
    wrong[8].cat_max_ratio = NAN;
    for (int i = 0; i < 9; i++)
        assert_int_equal(att_transform_geometry(self->context, &wrong[i], 9, 9, &geometry), ATT_ERR_ARGUMENT);
}

/* --- random scale and crop ---------------------------------------------------------------------------------------- */

enum { FROM_WIDTH = 320, FROM_HEIGHT = 200, CROP = 96, TIMES = 2000 };

static att_geometry draw(scratch *self, const att_transform_options *options, int64_t index, int crop)
{
    const att_transform_key key = {.seed = 4, .index = index, .crop = crop};
    att_geometry geometry;
    CHECK(self->context, att_transform_place(self->context, options, FROM_WIDTH, FROM_HEIGHT, &key, &geometry));
    return geometry;
}

static att_transform_options scaling(void)
{
    att_transform_options options = plain(ATT_CROP_SCALED, CROP, CROP, 1);
    options.longer = FROM_WIDTH;
    options.shorter = FROM_HEIGHT;
    return options;
}

/* 200 pixels times a factor of 0.5 to 2: the image always covers a crop of 96 pixels. */
SCRATCH_TEST(scales_and_places_are_drawn_evenly)
{
    const att_transform_options options = scaling();
    double sum = 0, across = 0, down = 0;
    for (int i = 0; i < TIMES; i++) {
        const att_geometry g = draw(self, &options, i, 0);
        double scale = g.map[0][0], x = -g.map[0][2], y = -g.map[1][2];
        double room_x = rint(scale * FROM_WIDTH) - CROP, room_y = rint(g.map[1][1] * FROM_HEIGHT) - CROP;
        assert_true(scale >= 0.497 && scale <= 2);
        assert_true(fabs(g.map[1][1] - scale) < 0.006); /* sides are whole numbers of pixels */
        assert_true(g.width == CROP && g.height == CROP);
        assert_true(x >= 0 && x <= room_x && y >= 0 && y <= room_y);
        sum += scale / TIMES;
        across += x / room_x / TIMES;
        down += room_y > 0 ? y / room_y / TIMES : 0.5 / TIMES;
    }
    assert_float_equal(sum, 1.25 - 0.25 / FROM_HEIGHT, 0.04); /* +- 0.0097; measured 0.003; sides are truncated */
    assert_float_equal(across, 0.5, 0.03);                    /* +- 0.0065; measured 0.007 */
    assert_float_equal(down, 0.5, 0.03);
}

SCRATCH_TEST(crops_of_an_image_differ_in_their_place_only)
{
    const att_transform_options options = scaling();
    for (int i = 0; i < 20; i++) {
        const att_geometry first = draw(self, &options, i, 0);
        int moved = 0;
        for (int crop = 1; crop < ATT_CROP_CHOICES; crop++) {
            const att_geometry other = draw(self, &options, i, crop);
            assert_true(other.map[0][0] == first.map[0][0] && other.map[1][1] == first.map[1][1]);
            moved += other.map[0][2] != first.map[0][2];
        }
        assert_true(moved >= ATT_CROP_CHOICES / 2);
    }
}

SCRATCH_TEST(a_scaled_image_smaller_than_the_crop_is_filled_up)
{
    static uint8_t pixels[FROM_WIDTH * FROM_HEIGHT];
    static float out[CROP * CROP];
    const att_image image = {FROM_WIDTH, FROM_HEIGHT, 1, pixels};
    att_transform_options options = scaling();
    memset(pixels, 200, sizeof pixels);
    options.factor[0] = 0.2;
    options.factor[1] = 0.4;
    options.mean[0] = 0.1;
    options.flip = 0.5;
    for (int i = 0; i < 50; i++) {
        const att_transform_key key = {.seed = 4, .index = i};
        att_geometry g;
        CHECK(self->context, att_transform_keyed(self->context, &options, &image, &key, out, &g));
        const int scaled = (int)lround(fabs(g.map[0][0]) * FROM_WIDTH), wide = scaled < CROP ? scaled : CROP;
        const int tall = (int)lround(g.map[1][1] * FROM_HEIGHT);
        assert_true(tall < CROP && g.height == CROP && g.width == CROP);
        for (int k = 0; k < CROP * CROP; k++)
            assert_true((out[k] == 0) == (k % CROP >= wide || k / CROP >= tall));
    }
}

/* --- photometric distortion --------------------------------------------------------------------------------------- */

enum { PICTURE_WIDE = 64, PICTURE_TALL = 48, BYTES = PICTURE_WIDE * PICTURE_TALL * 3 };

TEST(photometric_distortion_equals_opencvs)
{
    char path[4096], saturation[16], hue[16], hash[32], found[32];
    static uint8_t pixels[BYTES];
    att_photometric_draw draw;
    int first, count = 0;
    golden_path("photometric.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fscanf(file, "%lf %lf %15s %15s %d %31s", &draw.brightness, &draw.contrast, saturation, hue, &first, hash) ==
           6) {
        const att_image image = {PICTURE_WIDE, PICTURE_TALL, 3, pixels};
        golden_paint(&image);
        draw.saturated = strcmp(saturation, "-") != 0;
        draw.hued = strcmp(hue, "-") != 0;
        draw.saturation = draw.saturated ? strtod(saturation, NULL) : 1;
        draw.hue = draw.hued ? (int)strtol(hue, NULL, 10) : 0;
        draw.contrast_first = first;
        att_photometric_apply(&draw, &image);
        snprintf(found, sizeof found, "%016" PRIx64, golden_hash(pixels, sizeof pixels));
        if (strcmp(found, hash) != 0)
            fail_msg("case %d: found %s, expected %s", count, found, hash);
        count++;
    }
    fclose(file);
    assert_int_equal(count, 13);
}

TEST(photometric_changes_are_drawn_as_by_mmsegmentation)
{
    int brighter = 0, contrasted = 0, saturated = 0, hued = 0, first = 0, hues[36] = {0};
    att_random random = att_random_from(9);
    for (int i = 0; i < TIMES; i++) {
        const att_photometric_draw d = att_photometric_draw_from(&random);
        assert_true(d.brightness >= -32 && d.brightness <= 32);
        assert_true(d.contrast >= 0.5 && d.contrast <= 1.5 && d.saturation >= 0.5 && d.saturation <= 1.5);
        assert_true(d.hue >= -18 && d.hue <= 17);
        brighter += d.brightness != 0;
        contrasted += d.contrast != 1;
        saturated += d.saturated;
        hued += d.hued;
        first += d.contrast_first;
        hues[d.hue + 18] += d.hued;
    }
    const int counts[] = {brighter, contrasted, saturated, hued, first};
    for (int i = 0; i < 5; i++)
        assert_true(abs(counts[i] - TIMES / 2) < 100); /* +- 22 */
    for (int i = 0; i < 36; i++)
        assert_true(hues[i] > 5 && hues[i] < 60); /* expected 28 +- 5 */
}

/* Distortion comes before the filling, and a grey image keeps its saturation and hue. */
SCRATCH_TEST(photometric_distortion_is_an_option)
{
    static uint8_t pixels[PICTURE_WIDE * PICTURE_TALL];
    static float out[PICTURE_WIDE * PICTURE_WIDE];
    const att_image image = {PICTURE_WIDE, PICTURE_TALL, 1, pixels};
    att_transform_options options = plain(ATT_CROP_KEEP, PICTURE_WIDE, PICTURE_WIDE, 1);
    int changed = 0;
    memset(pixels, 100, sizeof pixels);
    options.photometric = true;
    options.shorter = PICTURE_TALL;
    for (int i = 0; i < 100; i++) {
        CHECK(self->context, att_transform_image(self->context, &options, &image, 1, 1, i, out));
        changed += lrintf(out[0]) != 100;
        assert_true(out[PICTURE_WIDE * PICTURE_WIDE - 1] == 0 && out[0] > 0);
    }
    assert_true(changed > 60 && changed < 90); /* expected 75 +- 4 */
}

static att_status transform_once(scratch *self)
{
    static uint8_t pixels[WIDE * TALL];
    static float out[SIDE * SIDE];
    const att_image image = paint(pixels, WIDE, TALL);
    att_transform_options options = plain(ATT_CROP_SCALED, SIDE, SIDE, 1);
    return att_transform_image(self->context, &options, &image, 1, 1, 1, out);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, transform_once);
}
