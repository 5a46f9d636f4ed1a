#include <attscope/data.h>

#include "base/core/memory.h"
#include "base/io/golden.h"
#include "data/transform.h"
#include "shared.h"

static void transform(scratch *self, const att_transform_options *options, const att_image *image, int64_t index,
                      float *out)
{
    CHECK(self->context, att_transform_image(self->context, options, image, 7, 3, index, out));
}

SCRATCH_TEST(normalisation_equals_torchvisions)
{
    uint8_t ramp[256 * 3];
    for (int i = 0; i < 256 * 3; i++)
        ramp[i] = (uint8_t)(i / 3);
    float out[256 * 3];
    att_image image = {256, 1, 3, ramp};
    att_transform_options options = att_transform_options_defaults(1, 256, 3);
    memcpy(options.mean, (double[]){0.485, 0.456, 0.406}, sizeof(options.mean));
    memcpy(options.std, (double[]){0.229, 0.224, 0.225}, sizeof(options.std));
    transform(self, &options, &image, 0, out);
    char expected[64] = "", path[4096], line[512];
    golden_path("preprocess.txt", path, sizeof(path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "normalise %63s", expected) == 1)
            break;
    fclose(file);
    char found[32];
    snprintf(found, sizeof(found), "%016" PRIx64, golden_hash(out, sizeof(out)));
    assert_string_equal(found, expected);
}

static void check_photograph(scratch *self, const char *line, const att_transform_options *shape)
{
    char name[256], hash[32], file[300], path[SHARED_PATH], found[32];
    assert_int_equal(sscanf(line, "%255s %31s", name, hash), 2);
    snprintf(file, sizeof(file), "%s/%s", SHARED_PHOTOGRAPHS, name);
    assert_true(shared_path(file, path));
    att_image image;
    CHECK(self->context, att_image_read(self->context, path, 3, NULL, &image));
    att_transform_options options = *shape;
    memset(options.mean, 0, sizeof(options.mean));
    for (int c = 0; c < 3; c++)
        options.std[c] = 1.0f;
    size_t count = (size_t)options.height * (size_t)options.width * 3;
    float *out = malloc(count * sizeof(*out));
    uint8_t *bytes = malloc(count);
    transform(self, &options, &image, 0, out);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)lrintf(out[i] * 255.0f);
    snprintf(found, sizeof(found), "%016" PRIx64, golden_hash(bytes, count));
    if (strcmp(found, hash) != 0)
        fail_msg("%s: found %s", line, found);
    free(out);
    free(bytes);
    att_image_free(self->context, &image);
}

static void check_square(scratch *self, const char *line)
{
    att_transform_options options = att_transform_options_defaults(224, 224, 3);
    options.crop_pct = 0.9;
    check_photograph(self, line, &options);
}

static void check_wide(scratch *self, const char *line)
{
    att_transform_options options = att_transform_options_defaults(160, 224, 3);
    options.crop_pct = 0.9;
    options.interpolation = ATT_BILINEAR;
    check_photograph(self, line, &options);
}

SCRATCH_TEST(photographs_are_transformed_as_by_torchvision)
{
    char path[SHARED_PATH];
    if (!shared_path(SHARED_PHOTOGRAPHS, path))
        skip();
    assert_int_equal(golden_each(self, "photo", check_square), 10);
    assert_int_equal(golden_each(self, "wide", check_wide), 10);
}

static att_crop crop_named(const char *mode)
{
    return strcmp(mode, "squash") == 0   ? ATT_CROP_SQUASH
           : strcmp(mode, "border") == 0 ? ATT_CROP_BORDER
                                         : ATT_CROP_CENTER;
}

/* The deviation is 1/255, so bytes are unchanged except for the mean. */
static void check_crop(scratch *self, const char *line)
{
    enum { MOST = 40 * 40 * 3 };
    char mode[16], filter[16], hash[32], found[32];
    int width, height, channels, to_width, to_height;
    double crop_pct, mean;
    float out[MOST];
    uint8_t bytes[MOST];
    assert_int_equal(sscanf(line, "%15s %d %d %d %d %d %lf %15s %lf %31s", mode, &width, &height, &channels, &to_width,
                            &to_height, &crop_pct, filter, &mean, hash),
                     10);
    size_t count = (size_t)to_width * (size_t)to_height * (size_t)channels;
    assert_true(count <= MOST);
    att_transform_options options = att_transform_options_defaults(to_height, to_width, channels);
    options.crop = crop_named(mode);
    options.crop_pct = crop_pct;
    options.interpolation = strcmp(filter, "bilinear") == 0 ? ATT_BILINEAR : ATT_BICUBIC;
    for (int c = 0; c < 3; c++) {
        options.mean[c] = mean;
        options.std[c] = 1.0 / 255;
    }
    att_image image = golden_noise(width, height, channels);
    transform(self, &options, &image, 0, out);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)lrint((double)out[i] + 255 * mean);
    snprintf(found, sizeof(found), "%016" PRIx64, golden_hash(bytes, count));
    if (strcmp(found, hash) != 0)
        fail_msg("%s: found %s", line, found);
    free(image.pixels);
}

SCRATCH_TEST(crop_modes_equal_timms)
{
    assert_int_equal(golden_each(self, "crop", check_crop), 65);
}

enum { SIDE = 8, PAD = 2 };

static void fill_grid(uint8_t *pixels)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (uint8_t)(i + 1);
}

/* Mean 0 and deviation 1/255, so bytes are unchanged. */
static att_transform_options plain_options(void)
{
    att_transform_options options = att_transform_options_defaults(SIDE, SIDE, 1);
    options.mean[0] = 0;
    options.std[0] = 1.0f / 255.0f;
    return options;
}

/* 3 columns are left: 1.5 on either side. */
SCRATCH_TEST(offsets_of_crops_are_rounded_half_to_even_or_down)
{
    enum { HEIGHT = 4, WIDTH = 7 };
    uint8_t pixels[HEIGHT * WIDTH];
    float out[HEIGHT * HEIGHT];
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        pixels[i] = (uint8_t)(i % WIDTH);
    const att_image image = {WIDTH, HEIGHT, 1, pixels};
    att_transform_options options = plain_options();
    options.height = options.width = HEIGHT;
    options.crop_pct = 1;
    options.crop = ATT_CROP_CENTER;
    transform(self, &options, &image, 0, out);
    assert_int_equal(lrintf(out[0]), 2);
    options.crop = ATT_CROP_FLOOR;
    transform(self, &options, &image, 0, out);
    assert_int_equal(lrintf(out[0]), 1);
}

/* An image of 3 x 3 pixels after resizing; 5 rows and columns are missing. */
SCRATCH_TEST(an_image_smaller_than_the_crop_lies_in_its_middle)
{
    enum { SMALL = 3 };
    static const att_crop crops[] = {ATT_CROP_CENTER, ATT_CROP_SQUASH, ATT_CROP_BORDER, ATT_CROP_FLOOR};
    uint8_t pixels[5 * 5];
    float out[SIDE * SIDE];
    memset(pixels, 100, sizeof pixels);
    const att_image image = {5, 5, 1, pixels};
    att_transform_options options = plain_options();
    options.crop_pct = 2.5;
    for (int i = 0; i < 8; i++) {
        const int begin = crops[i / 2] == ATT_CROP_FLOOR ? 3 : 2;
        double x = 0, y = 0;
        att_geometry geometry;
        options.crop = crops[i / 2];
        options.interpolation = i % 2 ? ATT_BILINEAR_FLOAT : ATT_BILINEAR;
        transform(self, &options, &image, 0, out);
        for (int at = 0; at < SIDE * SIDE; at++) {
            const int row = at / SIDE - begin, column = at % SIDE - begin;
            const bool inside = row >= 0 && row < SMALL && column >= 0 && column < SMALL;
            assert_int_equal(lrintf(out[at]), inside ? 100 : 0);
        }
        CHECK(self->context, att_transform_geometry(self->context, &options, 5, 5, &geometry));
        att_geometry_move(&geometry, &x, &y);
        assert_true(x == begin && y == begin);
    }
}

SCRATCH_TEST(the_nearest_pixel_is_that_at_the_centre)
{
    enum { BIG = 8, SMALL = 4 };
    uint8_t pixels[BIG * BIG];
    float out[SMALL * SMALL];
    for (int i = 0; i < BIG * BIG; i++)
        pixels[i] = (uint8_t)i;
    const att_image image = {BIG, BIG, 1, pixels};
    att_transform_options options = plain_options();
    options.height = options.width = SMALL;
    options.crop_pct = 1;
    options.crop = ATT_CROP_SQUASH;
    options.interpolation = ATT_NEAREST;
    transform(self, &options, &image, 0, out);
    for (int i = 0; i < SMALL * SMALL; i++)
        assert_int_equal(lrintf(out[i]), (2 * (i / SMALL) + 1) * BIG + 2 * (i % SMALL) + 1);
}

/* Bytes round twice: after each pass. Bicubic sums would be clipped, too. */
static void check_floats(scratch *self, const att_transform_options *bytes, const att_image *image)
{
    enum { MOST = 24 * 24 * 3 };
    static float of_bytes[MOST], of_floats[MOST];
    att_transform_options floats = *bytes;
    const int count = bytes->height * bytes->width * bytes->channels;
    int fractions = 0;
    floats.interpolation = ATT_BILINEAR_FLOAT;
    assert_true(count <= MOST);
    transform(self, bytes, image, 0, of_bytes);
    transform(self, &floats, image, 0, of_floats);
    for (int i = 0; i < count; i++) {
        fractions += fabsf(of_floats[i] - rintf(of_floats[i])) > 0.01f;
        if (!(fabsf(of_floats[i] - of_bytes[i]) <= 1.5f))
            fail_msg("crop %d: number %d is %g instead of %g", (int)bytes->crop, i, (double)of_floats[i],
                     (double)of_bytes[i]);
    }
    assert_true(fractions > count / 3);
}

SCRATCH_TEST(floats_are_placed_as_bytes_are)
{
    static const att_crop crops[] = {ATT_CROP_CENTER, ATT_CROP_RANDOM_RESIZED, ATT_CROP_PAD,  ATT_CROP_SQUASH,
                                     ATT_CROP_BORDER, ATT_CROP_SIMPLE,         ATT_CROP_KEEP, ATT_CROP_FLOOR};
    for (size_t i = 0; i < sizeof crops / sizeof *crops; i++)
        for (int channels = 1; channels <= 3; channels += 2) {
            att_image image = golden_noise(33, 50, channels);
            att_transform_options options = att_transform_options_defaults(20, 24, channels);
            options.crop = crops[i];
            options.interpolation = ATT_BILINEAR;
            options.flip = options.vertical_flip = 1;
            options.occlude = crops[i] == ATT_CROP_KEEP ? 0 : 4;
            for (int c = 0; c < 3; c++) {
                options.mean[c] = i < 4 ? 0 : 0.2; /* the colour of the border */
                options.std[c] = 1.0f / 255.0f;
            }
            check_floats(self, &options, &image);
            options.flip = 0;
            check_floats(self, &options, &image);
            free(image.pixels);
        }
}

/* What is augmented by value is resized in bytes. */
SCRATCH_TEST(augmented_images_are_resized_in_bytes)
{
    enum { COUNT = 20 * 24 * 3 };
    static float of_bytes[COUNT], of_floats[COUNT];
    att_image image = golden_noise(33, 50, 3);
    att_transform_options options = att_transform_options_defaults(20, 24, 3);
    options.color_jitter[0] = 0.4;
    transform(self, &options, &image, 0, of_bytes);
    options.interpolation = ATT_BICUBIC_FLOAT;
    transform(self, &options, &image, 0, of_floats);
    assert_memory_equal(of_floats, of_bytes, sizeof of_bytes);
    free(image.pixels);
}

SCRATCH_TEST(an_image_of_the_right_size_is_only_flipped)
{
    uint8_t pixels[SIDE * SIDE];
    float out[SIDE * SIDE];
    fill_grid(pixels);
    att_image image = {SIDE, SIDE, 1, pixels};
    att_transform_options options = plain_options();
    transform(self, &options, &image, 0, out);
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_int_equal(lrintf(out[i]), pixels[i]);
    options.flip = 1.0;
    transform(self, &options, &image, 0, out);
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_int_equal(lrintf(out[i]), pixels[i / SIDE * SIDE + SIDE - 1 - i % SIDE]);
}

/* Each pad-crop is the image shifted by some (dx, dy), with black pixels elsewhere. Over many crops, every shift
 * occurs. */
SCRATCH_TEST(pad_crops_make_every_shift_and_flip)
{
    uint8_t pixels[SIDE * SIDE];
    float out[SIDE * SIDE];
    int seen[2 * PAD + 1][2 * PAD + 1] = {{0}}, flips = 0;
    fill_grid(pixels);
    att_image image = {SIDE, SIDE, 1, pixels};
    att_transform_options options = plain_options();
    options.crop = ATT_CROP_PAD;
    options.pad = PAD;
    options.flip = 0.5;
    for (int index = 0; index < 1000; index++) {
        transform(self, &options, &image, index, out);
        int center = (int)lrintf(out[4 * SIDE + 4]) - 1, next = (int)lrintf(out[4 * SIDE + 5]) - 1;
        bool flipped = next < center;
        int dy = center / SIDE - 4, dx = center % SIDE - (flipped ? SIDE - 1 - 4 : 4);
        assert_true(dy >= -PAD && dy <= PAD && dx >= -PAD && dx <= PAD);
        seen[dy + PAD][dx + PAD]++;
        flips += flipped;
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                int from_y = y + dy, from_x = (flipped ? SIDE - 1 - x : x) + dx;
                bool inside = from_y >= 0 && from_y < SIDE && from_x >= 0 && from_x < SIDE;
                assert_int_equal(lrintf(out[y * SIDE + x]), inside ? pixels[from_y * SIDE + from_x] : 0);
            }
    }
    for (int i = 0; i < (2 * PAD + 1) * (2 * PAD + 1); i++)
        assert_true(seen[i / (2 * PAD + 1)][i % (2 * PAD + 1)] > 10); /* expected 40 +- 6 */
    assert_true(flips > 420 && flips < 580);                          /* expected 500 +- 16 */
}

enum { CROP_SIDE = 8, CROP_BYTES = CROP_SIDE * CROP_SIDE * 3, CROP_PLACES = 7 * 9 };

static void read_crops(char hashes[CROP_PLACES][32])
{
    char path[4096];
    int top, left, count = 0;
    golden_path("simple_crop.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (count < CROP_PLACES && fscanf(file, "%d %d %31s", &top, &left, hashes[count]) == 3)
        count++;
    fclose(file);
    assert_int_equal(count, CROP_PLACES);
}

/* Each simple random crop is one of torchvision's, and over many images every place occurs, with and without flips. */
SCRATCH_TEST(simple_crops_are_torchvisions)
{
    enum { TIMES = 3000 };
    uint8_t pixels[13 * 10 * 3], bytes[CROP_BYTES];
    float out[CROP_BYTES];
    char hashes[CROP_PLACES][32], found[32];
    int seen[CROP_PLACES] = {0}, flips = 0;
    att_image image = {13, 10, 3, pixels};
    att_transform_options options = att_transform_options_defaults(CROP_SIDE, CROP_SIDE, 3);
    golden_paint(&image);
    read_crops(hashes);
    options.crop = ATT_CROP_SIMPLE;
    options.pad = 3;
    options.crop_pct = 0.5; /* not used */
    options.flip = 0.5;
    for (int c = 0; c < 3; c++) {
        options.mean[c] = 0;
        options.std[c] = 1.0f / 255;
    }
    for (int index = 0; index < TIMES; index++) {
        int place = CROP_PLACES;
        transform(self, &options, &image, index, out);
        for (int flip = 0; flip < 2 && place == CROP_PLACES; flip++) {
            for (int i = 0; i < CROP_BYTES; i++) {
                int x = i / 3 % CROP_SIDE, mirrored = i + 3 * (CROP_SIDE - 1 - 2 * x);
                bytes[i] = (uint8_t)lrintf(out[flip ? mirrored : i]);
            }
            snprintf(found, sizeof found, "%016" PRIx64, golden_hash(bytes, sizeof bytes));
            for (place = 0; place < CROP_PLACES && strcmp(hashes[place], found) != 0;)
                place++;
            flips += flip && place < CROP_PLACES;
        }
        assert_true(place < CROP_PLACES);
        seen[place]++;
    }
    for (int i = 0; i < CROP_PLACES; i++)
        assert_true(seen[i] > 14 && seen[i] < 90); /* expected 48 +- 7; measured 30 to 63 */
    assert_true(abs(flips - TIMES / 2) < 110);     /* +- 27 */
}

/* The pixel that is seen at `at` between mirrors on the first and the last of SIDE pixels. */
static int mirrored(int at)
{
    return at < 0 ? -at : at >= SIDE ? 2 * (SIDE - 1) - at : at;
}

static bool is_shifted(const uint8_t *pixels, const float *out, int dy, int dx, bool upside_down)
{
    for (int i = 0; i < SIDE * SIDE; i++) {
        int y = upside_down ? SIDE - 1 - i / SIDE : i / SIDE;
        if (lrintf(out[i]) != pixels[mirrored(y + dy) * SIDE + mirrored(i % SIDE + dx)])
            return false;
    }
    return true;
}

/* Draws many crops. Each is the image shifted by some (dx, dy) between mirrors. Marks those dy and dx in `seen`. */
static void draw_reflected(scratch *self, int pad, bool upside_down, bool seen[2 * SIDE][2])
{
    uint8_t pixels[SIDE * SIDE];
    float out[SIDE * SIDE];
    const int places = 2 * pad + 1;
    fill_grid(pixels);
    att_image image = {SIDE, SIDE, 1, pixels};
    att_transform_options options = plain_options();
    options.crop = ATT_CROP_SIMPLE;
    options.pad = pad;
    options.vertical_flip = upside_down;
    for (int index = 0; index < 500; index++) {
        int place = 0;
        transform(self, &options, &image, index, out);
        while (place < places * places &&
               !is_shifted(pixels, out, place / places - pad, place % places - pad, upside_down))
            place++;
        assert_true(place < places * places);
        seen[place / places][0] = seen[place % places][1] = true;
    }
}

/* With the largest pad, all pixels of a crop but one row and column can be reflections. The shift to one end then shows
 * the same as that to the other, and an image upside down the same as another shift. */
SCRATCH_TEST(simple_crops_may_be_nearly_all_reflections)
{
    bool seen[2 * SIDE][2] = {{false}};
    draw_reflected(self, SIDE - 1, false, seen);
    for (int i = 0; i < 2 * (SIDE - 1); i++)
        assert_true(seen[i][0] && seen[i][1]);
    draw_reflected(self, PAD, true, seen);
}

/* A horizontal and a vertical ramp show which box was cropped: area and aspect must be in their ranges. */
SCRATCH_TEST(random_resized_crops_keep_to_area_and_aspect)
{
    enum { W = 200, H = 150, OUT = 32, TIMES = 2000 };
    static uint8_t across[W * H], down[W * H];
    static float a[OUT * OUT], d[OUT * OUT];
    double areas = 0, middle_x = 0, middle_y = 0;
    for (int i = 0; i < W * H; i++) {
        across[i] = (uint8_t)(i % W);
        down[i] = (uint8_t)(i / W);
    }
    att_image image_a = {W, H, 1, across}, image_d = {W, H, 1, down};
    att_transform_options options = att_transform_options_defaults(OUT, OUT, 1);
    options.crop = ATT_CROP_RANDOM_RESIZED;
    options.interpolation = ATT_BILINEAR;
    options.mean[0] = 0;
    options.std[0] = 1.0f / 255.0f;
    for (int index = 0; index < TIMES; index++) {
        transform(self, &options, &image_a, index, a);
        transform(self, &options, &image_d, index, d);
        /* The slope between two inner pixels is the box's side over OUT, except for the rounding of bytes. */
        double width = (a[16 * OUT + 28] - a[16 * OUT + 3]) / 25.0 * OUT;
        double height = (d[28 * OUT + 16] - d[3 * OUT + 16]) / 25.0 * OUT;
        double share = width * height / (W * H), aspect = width / height;
        assert_true(share > 0.08 * 0.93 && share < 1.02);
        assert_true(aspect > 0.75 * 0.95 && aspect < 4.0 / 3.0 * 1.05);
        areas += share / TIMES;
        middle_x += (a[15 * OUT + 15] + a[16 * OUT + 16]) / 2.0 / TIMES;
        middle_y += (d[15 * OUT + 15] + d[16 * OUT + 16]) / 2.0 / TIMES;
    }
    /* Boxes that do not fit are drawn again, which favours small boxes: timm's mean over 20,000 draws is 0.4360. */
    if (!(fabs(areas - 0.436) < 0.02))
        fail_msg("mean share of the area %g", areas); /* measured: 0.4356, standard error 0.006 */
    /* The centre of the image, with pixel centres counted from 0; standard errors are about 0.4. */
    if (!(fabs(middle_x - (W - 1) / 2.0) < 2) || !(fabs(middle_y - (H - 1) / 2.0) < 2))
        fail_msg("mean middle of the boxes %g, %g", middle_x, middle_y);
}

SCRATCH_TEST(draws_depend_on_seed_epoch_and_index)
{
    enum { W = 40, OUT = 16 };
    static uint8_t pixels[W * W];
    float first[OUT * OUT], other[OUT * OUT];
    for (int i = 0; i < W * W; i++)
        pixels[i] = (uint8_t)(i * 37);
    att_image image = {W, W, 1, pixels};
    att_transform_options options = att_transform_options_defaults(OUT, OUT, 1);
    options.crop = ATT_CROP_RANDOM_RESIZED;
    assert_int_equal(att_transform_image(self->context, &options, &image, 1, 2, 3, first), ATT_OK);
    assert_int_equal(att_transform_image(self->context, &options, &image, 1, 2, 3, other), ATT_OK);
    assert_memory_equal(first, other, sizeof(first));
    const int64_t keys[][3] = {{0, 2, 3}, {1, 0, 3}, {1, 2, 0}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            att_transform_image(self->context, &options, &image, (uint64_t)keys[i][0], keys[i][1], keys[i][2], other),
            ATT_OK);
        assert_memory_not_equal(first, other, sizeof(first));
    }
}

/* A wide image has borders of the mean colour; flips include them. */
SCRATCH_TEST(borders_are_flipped_with_the_image)
{
    uint8_t pixels[SIDE * 3];
    float out[SIDE * SIDE];
    for (int i = 0; i < SIDE * 3; i++)
        pixels[i] = (uint8_t)(100 + i);
    att_image image = {SIDE, 3, 1, pixels};
    att_transform_options options = plain_options();
    options.crop = ATT_CROP_BORDER;
    options.flip = options.vertical_flip = 1.0;
    transform(self, &options, &image, 0, out);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int from = SIDE - 1 - y - 2;
            int expected = from >= 0 && from < 3 ? pixels[from * SIDE + SIDE - 1 - x] : 0;
            assert_int_equal(lrintf(out[y * SIDE + x]), expected);
        }
}

/* If no pixel of the shorter side is left, the image is refused. */
SCRATCH_TEST(an_image_too_narrow_to_resize_is_refused)
{
    static uint8_t pixels[3000];
    static float out[SIDE * SIDE];
    att_image image = {1, 3000, 1, pixels};
    att_transform_options options = plain_options();
    options.crop = ATT_CROP_BORDER;
    assert_int_equal(att_transform_image(self->context, &options, &image, 0, 0, 0, out), ATT_ERR_UNSUPPORTED);
    assert_string_equal(att_context_message(self->context), "an image of 1 x 3000 pixels is too narrow to be resized");
}

SCRATCH_TEST(tiny_and_narrow_images_are_transformed)
{
    static uint8_t pixels[3000];
    static float out[SIDE * SIDE];
    const int sizes[][2] = {{1, 1}, {1, 3000}, {3000, 1}, {2, 900}};
    for (int i = 0; i < 4; i++)
        for (att_crop crop = ATT_CROP_CENTER; crop <= ATT_CROP_SQUASH; crop++) {
            att_image image = {sizes[i][0], sizes[i][1], 1, pixels};
            att_transform_options options = plain_options();
            options.crop = crop;
            transform(self, &options, &image, i, out);
            assert_true(isfinite(out[0]));
        }
}

/* What else is drawn makes other pixels every time. */
TEST(flips_alone_make_few_variants)
{
    att_transform_options flipped = plain_options(), drawn[7];
    flipped.flip = 0.5;
    assert_int_equal(att_transform_variants(&flipped), 2);
    flipped.vertical_flip = 1;
    assert_int_equal(att_transform_variants(&flipped), 2);
    flipped.vertical_flip = 0.5;
    assert_int_equal(att_transform_variants(&flipped), 4);
    for (int i = 0; i < 7; i++)
        drawn[i] = flipped;
    drawn[0].crop = ATT_CROP_SCALED;
    drawn[1].rand_augment.layers = 1;
    drawn[2].three_augment = true;
    drawn[3].color_jitter[2] = 0.1;
    drawn[4].photometric = true;
    drawn[5].erase = 0.1;
    drawn[6].interpolation = ATT_RANDOM_INTERPOLATION;
    for (int i = 0; i < 7; i++)
        assert_int_equal(att_transform_variants(&drawn[i]), 0);
}

SCRATCH_TEST(wrong_options_are_refused)
{
    uint8_t pixels[SIDE * SIDE * 3] = {0};
    float out[SIDE * SIDE];
    att_image image = {SIDE, SIDE, 1, pixels}, colour = {SIDE, SIDE, 3, pixels};
    att_transform_options wrong[12];
    for (int i = 0; i < 12; i++)
        wrong[i] = plain_options();
    wrong[0].height = 0;
    wrong[1].channels = 2;
    wrong[2].crop_pct = NAN;
    wrong[3].crop_pct = 10.1;
    wrong[11].crop = ATT_CROP_PAD;
    wrong[11].crop_pct = 1.1;
    wrong[4].scale[0] = 0;
    wrong[5].ratio[1] = 0.1;
    wrong[6].pad = -1;
    wrong[7].flip = 2;
    wrong[8].std[0] = 0;
    wrong[9].crop = wrong[10].crop = ATT_CROP_SIMPLE;
    wrong[9].width = wrong[10].height = SIDE / 2;
    wrong[9].pad = wrong[10].pad = SIDE / 2;
    for (int i = 0; i < 12; i++)
        assert_int_equal(att_transform_image(self->context, &wrong[i], &image, 0, 0, 0, out), ATT_ERR_ARGUMENT);
    att_transform_options options = plain_options();
    assert_int_equal(att_transform_image(self->context, &options, &colour, 0, 0, 0, out), ATT_ERR_ARGUMENT);
}

/* A window of the whole resized image is what a squashed image is, in bytes and in floats. */
SCRATCH_TEST(a_window_of_everything_is_the_squashed_image)
{
    enum { TO = 5, FROM = 7 };
    uint8_t pixels[FROM * FROM * 3];
    float whole[TO * TO * 3], window[TO * TO * 3];
    const att_image image = {FROM, FROM, 3, pixels};
    const att_transform_window of = {TO, TO, false, {0, 0, TO, TO}};
    att_transform_options options = att_transform_options_defaults(TO, TO, 3);
    options.crop = ATT_CROP_SQUASH;
    options.crop_pct = 1;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i * 7 + 31 * i);
    for (int floats = 0; floats < 2; floats++) {
        options.interpolation = floats ? ATT_BICUBIC_FLOAT : ATT_BICUBIC;
        transform(self, &options, &image, 0, whole);
        CHECK(self->context, att_transform_window_image(self->context, &options, &image, &of, window));
        assert_memory_equal(whole, window, sizeof whole);
    }
}
