/* Every augmentation of pixels against Pillow's bytes: tests/goldens/augment.txt. */
#include "base/io/golden.h"
#include "data/augment.h"
#include "data/pixels.h"

enum { MOST = 24 * 33 * 3 };

static uint8_t scratch_bytes[MOST];
static const uint8_t fill[3] = {124, 116, 104};

static void invert(const att_image *image, double argument)
{
    (void)argument;
    att_pixels_invert(image);
}

static void autocontrast(const att_image *image, double argument)
{
    (void)argument;
    att_pixels_autocontrast(image);
}

static void equalize(const att_image *image, double argument)
{
    (void)argument;
    att_pixels_equalize(image);
}

static void posterize(const att_image *image, double argument)
{
    att_pixels_posterize(image, (int)argument);
}

static void solarize(const att_image *image, double argument)
{
    att_pixels_solarize(image, (int)argument);
}

static void solarize_add(const att_image *image, double argument)
{
    att_pixels_solarize_add(image, (int)argument);
}

static void sharpness(const att_image *image, double argument)
{
    att_pixels_sharpness(image, argument, scratch_bytes);
}

static void grey(const att_image *image, double argument)
{
    (void)argument;
    att_three_augment_apply(&(att_three_draw){.change = ATT_THREE_GREY}, image, scratch_bytes);
}

static void blur(const att_image *image, double argument)
{
    att_three_augment_apply(&(att_three_draw){.change = ATT_THREE_BLUR, .radius = argument}, image, scratch_bytes);
}

static const struct {
    const char *name;
    void (*change)(const att_image *image, double argument);
} changes[] = {{"invert", invert},
               {"autocontrast", autocontrast},
               {"equalize", equalize},
               {"posterize", posterize},
               {"solarize", solarize},
               {"solarize_add", solarize_add},
               {"brightness", att_pixels_brightness},
               {"contrast", att_pixels_contrast},
               {"color", att_pixels_color},
               {"sharpness", sharpness},
               {"grey", grey},
               {"blur", blur}};

static att_affine map_of(const char *name, double argument, const att_image *image)
{
    if (strcmp(name, "rotate") == 0)
        return att_affine_rotation(argument, image->width, image->height);
    if (strcmp(name, "shear_x") == 0)
        return (att_affine){1, argument, 0, 0, 1, 0};
    if (strcmp(name, "shear_y") == 0)
        return (att_affine){1, 0, 0, argument, 1, 0};
    if (strcmp(name, "translate_x") == 0)
        return (att_affine){1, 0, argument * image->width, 0, 1, 0};
    assert_string_equal(name, "translate_y");
    return (att_affine){1, 0, 0, 0, 1, argument * image->height};
}

static void check_line(const char *line)
{
    static uint8_t pixels[MOST];
    char name[32], filter[16], expected[32], found[32];
    double argument;
    att_image image = {.pixels = pixels};
    assert_int_equal(sscanf(line, "%31s %d %d %d %lf %15s %31s", name, &image.width, &image.height, &image.channels,
                            &argument, filter, expected),
                     7);
    golden_paint(&image);
    bool changed = false;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strcmp(changes[i].name, name) == 0) {
            changes[i].change(&image, argument);
            changed = true;
        }
    if (!changed) {
        att_affine map = map_of(name, argument, &image);
        att_pixels_affine(&image, &map, strcmp(filter, "bilinear") == 0 ? ATT_BILINEAR : ATT_BICUBIC, fill,
                          scratch_bytes);
    }
    size_t count = (size_t)image.width * (size_t)image.height * (size_t)image.channels;
    snprintf(found, sizeof found, "%016" PRIx64, golden_hash(pixels, count));
    if (strcmp(found, expected) != 0) {
        print_error("%s: found %s\n", line, found);
        fail();
    }
}

TEST(pixel_operations_equal_pillows)
{
    char path[4096], line[256];
    golden_path("augment.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int count = 0;
    for (; fgets(line, sizeof line, file); count++) {
        line[strcspn(line, "\n")] = '\0';
        check_line(line);
    }
    fclose(file);
    assert_int_equal(count, 4 * (35 + 32 + 11));
}
