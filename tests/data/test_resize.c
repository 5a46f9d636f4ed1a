#include "data/resize.h"

#include <math.h>

#include "base/core/context.h"
#include "base/core/memory.h"
#include "base/core/processor.h"
#include "base/io/golden.h"

static void check_line(scratch *self, const char *line)
{
    int width, height, channels, to_width, to_height;
    char filter[16], hash[32], found[32];
    assert_int_equal(
        sscanf(line, "%d %d %d %d %d %15s %31s", &width, &height, &channels, &to_width, &to_height, filter, hash), 7);
    att_interpolation method = strcmp(filter, "bicubic") == 0 ? ATT_BICUBIC : ATT_BILINEAR;
    att_image image = golden_noise(width, height, channels);
    size_t count = (size_t)to_width * (size_t)to_height * (size_t)channels;
    uint8_t *out = malloc(count);
    assert_int_equal(att_resize(self->context, &image, (att_box){0, 0, width, height}, method, to_width, to_height,
                                (att_box){0, 0, to_width, to_height}, out),
                     ATT_OK);
    snprintf(found, sizeof(found), "%016" PRIx64, golden_hash(out, count));
    if (strcmp(found, hash) != 0)
        fail_msg("%s: found %s", line, found);
    free(out);
    free(image.pixels);
}

SCRATCH_TEST(resized_pixels_equal_pillows)
{
    assert_int_equal(golden_each(self, "resize", check_line), 34);
}

/* Of values in 0..255. Measured: 1.3e-4, where torchvision computes weights of 500 columns in single precision. */
static const double FLOAT_TOLERANCE = 1e-3;

static void check_floats(scratch *self, const char *line)
{
    int width, height, channels, to_width, to_height, begin;
    char filter[16];
    assert_int_equal(
        sscanf(line, "%d %d %d %d %d %15s%n", &width, &height, &channels, &to_width, &to_height, filter, &begin), 6);
    att_interpolation method = strcmp(filter, "bicubic") == 0 ? ATT_BICUBIC_FLOAT
                               : strcmp(filter, "plain") == 0 ? ATT_BILINEAR_PLAIN
                                                              : ATT_BILINEAR_FLOAT;
    att_image image = golden_noise(width, height, channels);
    const int count = to_width * to_height * channels;
    float *out = malloc((size_t)count * sizeof *out);
    CHECK(self->context, att_resize(self->context, &image, (att_box){0, 0, width, height}, method, to_width, to_height,
                                    (att_box){0, 0, to_width, to_height}, out));
    const char *at = line + begin;
    for (int i = 0; i < count; i++) {
        char *end;
        const float expected = strtof(at, &end);
        assert_ptr_not_equal(end, at);
        if (!(fabs((double)out[i] - (double)expected) <= FLOAT_TOLERANCE))
            fail_msg("%.60s: number %d is %.8g instead of %.8g", line, i, (double)out[i], (double)expected);
        at = end;
    }
    free(out);
    free(image.pixels);
}

SCRATCH_TEST(pixels_resized_in_floats_equal_torchvisions)
{
    assert_int_equal(golden_each(self, "floats", check_floats), 12);
}

/* A window of the result equals that part of the whole result; a box of the source equals an image of its own. */
SCRATCH_TEST(a_box_or_window_equals_that_part_of_the_whole)
{
    enum { W = 61, H = 47, TO_W = 37, TO_H = 90, CHANNELS = 3 };
    att_box box = {5, 9, 40, 30}, window = {7, 50, 11, 23}, all = {0, 0, TO_W, TO_H};
    att_image image = golden_noise(W, H, CHANNELS), part = golden_noise(box.width, box.height, CHANNELS);
    for (int y = 0; y < box.height; y++)
        memcpy(part.pixels + y * box.width * CHANNELS, image.pixels + ((box.y + y) * W + box.x) * CHANNELS,
               (size_t)(box.width * CHANNELS));
    static const att_interpolation methods[] = {ATT_BILINEAR, ATT_BICUBIC, ATT_BILINEAR_FLOAT, ATT_BICUBIC_FLOAT};
    static float whole_room[TO_W * TO_H * CHANNELS], piece_room[23 * 11 * CHANNELS];
    char *const whole = (char *)whole_room, *const piece = (char *)piece_room;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        const att_interpolation method = methods[m];
        const int pixel = CHANNELS * (int)(att_resizes_in_floats(method) ? sizeof(float) : 1);
        assert_int_equal(
            att_resize(self->context, &part, (att_box){0, 0, box.width, box.height}, method, TO_W, TO_H, all, whole),
            ATT_OK);
        assert_int_equal(att_resize(self->context, &image, box, method, TO_W, TO_H, window, piece), ATT_OK);
        for (int y = 0; y < window.height; y++)
            assert_memory_equal(piece + y * window.width * pixel, whole + ((window.y + y) * TO_W + window.x) * pixel,
                                (size_t)(window.width * pixel));
    }
    assert_int_equal(att_resize(self->context, &image, box, ATT_BICUBIC, box.width, box.height,
                                (att_box){0, 0, box.width, box.height}, whole),
                     ATT_OK);
    assert_memory_equal(whole, part.pixels, (size_t)(box.width * box.height * CHANNELS));
    free(image.pixels);
    free(part.pixels);
}

static void resize_with(unsigned features, const att_image *image, int width, int height, uint8_t *out)
{
    att_settings settings = att_settings_defaults();
    settings.features = features;
    att_context *context;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    assert_int_equal(att_resize(context, image, (att_box){0, 0, image->width, image->height}, ATT_BICUBIC, width,
                                height, (att_box){0, 0, width, height}, out),
                     ATT_OK);
    att_context_destroy(&context);
}

/* Sizes around the lanes of a vector. If this processor lacks a tier, the tier below is used. */
SCRATCH_TEST(processor_tiers_agree)
{
    enum { MOST = 40 * 40 * 3 };
    static uint8_t wanted[MOST], found[MOST];
    static const int sizes[][4] = {{1, 1, 40, 39},  {3, 2, 1, 1},    {61, 47, 37, 15},
                                   {16, 5, 17, 33}, {300, 7, 5, 31}, {21, 90, 40, 37}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int channels = 1; channels <= 3; channels += 2) {
            int width = sizes[s][2], height = sizes[s][3];
            att_image image = golden_noise(sizes[s][0], sizes[s][1], channels);
            resize_with(0, &image, width, height, wanted);
            for (const att_tier *tier = att_tiers; tier->name; tier++) {
                resize_with(tier->features, &image, width, height, found);
                assert_memory_equal(found, wanted, (size_t)(width * height * channels));
            }
            free(image.pixels);
        }
}

static att_status resize_once(scratch *self, att_interpolation method)
{
    float out[5 * 4];
    att_image image = golden_noise(9, 8, 1);
    att_status status =
        att_resize(self->context, &image, (att_box){0, 0, 9, 8}, method, 5, 4, (att_box){0, 0, 5, 4}, out);
    free(image.pixels);
    return status;
}

static att_status resize_bytes(scratch *self)
{
    return resize_once(self, ATT_BICUBIC);
}

static att_status resize_floats(scratch *self)
{
    return resize_once(self, ATT_BICUBIC_FLOAT);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, resize_bytes);
    assert_survives_lack_of_memory(self, resize_floats);
}
