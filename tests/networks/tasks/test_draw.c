/* Answers painted into photographs: the colours of classes, pixels, files. */
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/scratch.h"
#include "networks/tasks/draw.h"

/* --- colours ------------------------------------------------------------------------------------------------------ */

/* The expected colours were computed by a Python program of the same rule. */
TEST(colours_of_classes_are_the_same_at_every_call)
{
    static const uint8_t expected[][3] = {{0, 96, 255},  {255, 255, 0},  {255, 0, 0}, {0, 160, 0}, {96, 0, 64},
                                          {255, 0, 255}, {32, 224, 255}, {0, 96, 96}, {0, 0, 160}};
    uint8_t few[9 * 3], many[600 * 3];
    att_class_colours(9, few);
    att_class_colours(600, many);
    assert_memory_equal(few, expected, sizeof expected);
    assert_memory_equal(many, expected, sizeof expected);
}

TEST(the_first_255_colours_differ_and_then_they_repeat)
{
    uint8_t colours[300 * 3];
    att_class_colours(300, colours);
    for (int i = 0; i < 255; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(colours + 3 * i, colours + 3 * j, 3);
    assert_memory_equal(colours + 3 * 255, colours, 3 * 45);
}

TEST(colours_are_read_as_they_are_written)
{
    static const uint8_t colours[] = {1, 2, 3, 0, 171, 255};
    static const char *const wrong[] = {"", "#", "0060ff", "#0060f", "#0060F0", "#0060g0", "# 060ff"};
    char text[ATT_COLOUR_TEXT];
    uint8_t read[3];
    assert_string_equal(att_colour_text(colours, 1, text), "#00abff");
    assert_true(att_colour_read("#00abff and more", read));
    assert_memory_equal(read, colours + 3, 3);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(att_colour_read(wrong[i], read));
}

/* --- painting ----------------------------------------------------------------------------------------------------- */

/* The answers of the tests' task have the class of each pixel of the photograph. */
static att_status draw_map(att_context *context, const att_batch *answer, const att_answer_options *options,
                           const att_geometry *geometry, att_drawing *drawing)
{
    (void)options;
    return att_draw_classes(context, att_batch_field(answer, "map"), geometry, drawing);
}

static void head(att_graph *graph, const att_backbone *backbone)
{
    (void)graph, (void)backbone;
}
static int fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    (void)settings, (void)out;
    return 0;
}
static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *out)
{
    (void)user, (void)context, (void)dataset, (void)index, (void)geometry, (void)out;
    return ATT_OK;
}
static att_value loss(att_graph *graph, const att_task_settings *settings)
{
    (void)graph, (void)settings;
    return ATT_NONE;
}
static att_status observe(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers)
{
    (void)context, (void)state, (void)settings, (void)batch, (void)answers;
    return ATT_OK;
}
static void report(const void *state, double *values)
{
    (void)state;
    values[0] = 0;
}

static const att_metric metrics[] = {{.name = "none", .label = "none", .unit = ""}};
static const att_task mapping = {.info = {.name = "mapping", .help = "", .metrics = metrics, .metric_count = 1},
                                 .head = head,
                                 .fields = fields,
                                 .fill = fill,
                                 .loss = loss,
                                 .state_size = 1,
                                 .observe = observe,
                                 .report = report,
                                 .draw = draw_map};

/* A photograph of one grey value, which the network sees as it is. */
typedef struct scene {
    att_image photograph;
    uint8_t pixels[64];
    att_geometry geometry;
    uint16_t map[16];
} scene;

static scene scene_of(int width, int height, int channels, uint8_t value)
{
    scene s = {.geometry = {.map = {{1, 0, 0}, {0, 1, 0}},
                            .from_width = width,
                            .from_height = height,
                            .width = width,
                            .height = height}};
    s.photograph = (att_image){width, height, channels, NULL};
    memset(s.pixels, value, sizeof s.pixels);
    return s;
}

static att_status draw(att_context *context, scene *s, int classes, const att_answer_options *options,
                       att_drawing *drawing)
{
    const att_field field = {.name = "map", .dtype = ATT_I32, .shape = att_shape_of(1)};
    const att_batch answer = {
        .count = 1, .rows = 1, .field_count = 1, .fields = &field, .data = &(const void *){s->map}};
    s->photograph.pixels = s->pixels;
    return att_task_draw(context, "mapping", classes, &answer, options, &s->photograph, &s->geometry, drawing);
}

static void add_mapping(scratch *self)
{
    assert_int_equal(att_task_register(self->context, &mapping), ATT_OK);
}

static void check_classes(const att_drawing *drawing, const uint16_t *expected, size_t count)
{
    assert_int_equal(drawing->classes.width * drawing->classes.height, count);
    for (size_t i = 0; i < count; i++)
        if (drawing->classes.classes[i] != expected[i])
            fail_msg("pixel %zu has class %d, expected %d", i, drawing->classes.classes[i], expected[i]);
}

enum { NONE = ATT_MASK_NONE };

SCRATCH_TEST(a_pixel_is_half_photograph_and_half_class)
{
    static const uint8_t painted[] = {50, 98, 178, 178, 178, 50, 100, 100, 100, 100, 100, 100};
    att_drawing drawing = {0};
    scene s = scene_of(4, 1, 3, 100);
    add_mapping(self);
    memcpy(s.map, (uint16_t[]){0, 1, NONE, 2}, sizeof(uint16_t[4])); /* class 2 of 2 classes does not exist */
    CHECK(self->context, draw(self->context, &s, 2, NULL, &drawing));
    check_classes(&drawing, (uint16_t[]){0, 1, NONE, NONE}, 4);
    assert_memory_equal(drawing.image.pixels, painted, sizeof painted);
    assert_int_equal(s.pixels[0], 100); /* the photograph itself is unchanged */
    att_drawing_free(self->context, &drawing);
    assert_null(drawing.colours);
}

SCRATCH_TEST(a_grey_photograph_is_painted_in_the_given_colours)
{
    static const uint8_t colours[] = {1, 3, 5}, painted[] = {6, 7, 8, 20, 20, 20};
    const att_answer_options options = {.colours = colours};
    att_drawing drawing = {0};
    scene s = scene_of(2, 1, 1, 10);
    add_mapping(self);
    s.pixels[1] = 20, s.map[1] = NONE;
    CHECK(self->context, draw(self->context, &s, 1, &options, &drawing));
    assert_int_equal(drawing.image.channels, 3);
    assert_memory_equal(drawing.image.pixels, painted, sizeof painted);
    assert_memory_equal(drawing.colours, colours, sizeof colours);
    att_drawing_free(self->context, &drawing);
}

/* Of the photograph of 4 x 3 pixels the network sees the middle two. */
SCRATCH_TEST(pixels_that_the_network_did_not_see_have_no_class)
{
    att_drawing drawing = {0};
    scene s = scene_of(4, 3, 3, 9);
    add_mapping(self);
    s.geometry.map[0][2] = s.geometry.map[1][2] = -1;
    s.geometry.width = 2, s.geometry.height = 1;
    memcpy(s.map, (uint16_t[]){0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, sizeof(uint16_t[12]));
    CHECK(self->context, draw(self->context, &s, 2, NULL, &drawing));
    check_classes(&drawing, (uint16_t[]){NONE, NONE, NONE, NONE, NONE, 1, 0, NONE, NONE, NONE, NONE, NONE}, 12);
    assert_int_equal(drawing.image.pixels[3], 9);
    att_drawing_free(self->context, &drawing);
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

/* Frames of two pixels, that of the box with the larger score on top. */
SCRATCH_TEST(the_best_box_is_drawn_last)
{
    enum { SIDE = 12, BOXES = 2 };
    static const char frames[SIDE][SIDE + 1] = {"            ", " 1111111    ", " 1111111    ", " 11   11    ",
                                                " 11 00000000", " 11 00000000", " 11 0011  00", " 1110011  00",
                                                " 1110011  00", "    00    00", "    00000000", "    00000000"};
    static const float boxes[BOXES][4] = {{4, 4, 12, 12}, {1, 1, 8, 9}}, scores[BOXES] = {0.9f, 0.8f};
    static const int32_t classes[BOXES] = {0, 1}, count = BOXES;
    static const att_field fields[] = {{"boxes", ATT_F32, {2, {BOXES, 4}}},
                                       {"scores", ATT_F32, {1, {BOXES}}},
                                       {"classes", ATT_I32, {1, {BOXES}}},
                                       {"count", ATT_I32, {0}}};
    const att_batch answer = {.count = 1,
                              .rows = 1,
                              .field_count = 4,
                              .fields = fields,
                              .data = (const void *const[]){boxes, scores, classes, &count}};
    static uint8_t pixels[SIDE * SIDE * 3];
    const att_geometry geometry = {
        .map = {{1, 0, 0}, {0, 1, 0}}, .from_width = SIDE, .from_height = SIDE, .width = SIDE, .height = SIDE};
    const att_image photograph = {SIDE, SIDE, 3, pixels};
    att_drawing drawing = {0};
    CHECK(self->context, att_task_draw(self->context, "detect", 2, &answer, NULL, &photograph, &geometry, &drawing));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            static const uint8_t nothing[3];
            const uint8_t *expected = frames[y][x] == ' ' ? nothing : drawing.colours + 3 * (frames[y][x] - '0');
            if (memcmp(drawing.image.pixels + 3 * (y * SIDE + x), expected, 3) != 0)
                fail_msg("row %d, column %d has another colour than that of '%c'", y, x, frames[y][x]);
        }
    att_drawing_free(self->context, &drawing);
}

/* Names lie above their boxes but within the image: moved to the left at its right side, inside at its top. */
SCRATCH_TEST(names_lie_within_the_image)
{
    enum { HEIGHT = 11, WIDTH = 13, SIDE = 40 };
    static const char name[HEIGHT][WIDTH + 1] = {"             ", "             ", "             ", "  ###  ####  ",
                                                 "     # #   # ", "  #### #   # ", " #   # #   # ", "  #### ####  ",
                                                 "       #     ", "       #     ", "             "};
    static const struct {
        double box[4];
        int row, column;
    } cases[] = {{{10, 25, 30, 35}, 14, 10}, {{33, 25, 60, 35}, 14, SIDE - WIDTH}, {{-9, -5, 20, 30}, 0, 0}};
    static const uint8_t colour[3] = {200, 200, 0}, black[3];
    (void)self;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t pixels[SIDE * SIDE * 3];
        att_image image = {SIDE, SIDE, 3, pixels};
        memset(pixels, 90, sizeof pixels);
        att_draw_box(&image, cases[i].box, colour, "aP");
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                const int at = 3 * ((cases[i].row + y) * SIDE + cases[i].column + x);
                if (memcmp(pixels + at, name[y][x] == '#' ? black : colour, 3) != 0)
                    fail_msg("box %zu: row %d, column %d of the name", i, y, x);
            }
    }
}

SCRATCH_TEST(what_cannot_be_drawn_is_refused)
{
    att_drawing drawing = {0};
    scene s = scene_of(2, 2, 3, 0);
    const att_batch answer = {0};
    add_mapping(self);
    assert_fails(self->context,
                 att_task_draw(self->context, "classification", 2, &answer, NULL, &s.photograph, &s.geometry, &drawing),
                 ATT_ERR_UNSUPPORTED, "predictions of the task \"classification\" cannot be drawn");
    assert_null(drawing.image.pixels);
    assert_true(att_task_draws(self->context, "mapping"));
    assert_false(att_task_draws(self->context, "classification"));
    assert_fails(self->context, att_drawing_write_index(self->context, &drawing, "x.png"), ATT_ERR_ARGUMENT,
                 "x.png: the answer gives no class to each pixel");
}

SCRATCH_TEST(a_drawing_survives_lack_of_memory)
{
    att_drawing drawing = {0};
    scene s = scene_of(2, 2, 3, 0);
    add_mapping(self);
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        of.status = draw(self->context, &s, 2, NULL, &drawing);
        if (of.status == ATT_OK)
            att_drawing_free(self->context, &drawing);
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Returns the content of the first chunk of this type; NULL if there is none. */
static const uint8_t *find_chunk(const uint8_t *png, size_t size, const char *type, uint32_t *length)
{
    for (size_t at = 8; at + 8 <= size; at += 12 + *length) {
        *length = big_endian(png + at);
        if (memcmp(png + at + 4, type, 4) == 0)
            return png + at + 8;
    }
    return NULL;
}

/* Writes the index and checks the depth of its pixels and whether they are palette indices (type 3) or grey (0). */
static char *write_index(scratch *self, const att_drawing *drawing, int depth, int type, size_t *size)
{
    char *bytes;
    uint32_t length;
    CHECK(self->context, att_drawing_write_index(self->context, drawing, self->path));
    CHECK(self->context, att_file_read(self->context, self->path, 1 << 20, &bytes, size));
    const uint8_t *header = find_chunk((const uint8_t *)bytes, *size, "IHDR", &length);
    assert_int_equal(big_endian(header), drawing->classes.width);
    assert_int_equal(header[8], depth);
    assert_int_equal(header[9], type);
    return bytes;
}

/* Other programs show the index in the colours of the classes. */
SCRATCH_TEST(an_index_has_a_palette_of_the_classes_colours)
{
    att_drawing drawing = {0};
    att_image shown = {0};
    size_t size;
    uint32_t length;
    scene s = scene_of(3, 1, 3, 0);
    add_mapping(self);
    memcpy(s.map, (uint16_t[]){1, NONE, 254}, sizeof(uint16_t[3]));
    CHECK(self->context, draw(self->context, &s, 255, NULL, &drawing));
    char *bytes = write_index(self, &drawing, 8, 3, &size);
    const uint8_t *palette = find_chunk((const uint8_t *)bytes, size, "PLTE", &length);
    assert_int_equal(length, 3 * 256);
    assert_memory_equal(palette, drawing.colours, 3 * 255);
    CHECK(self->context, att_image_decode(self->context, bytes, size, 3, NULL, &shown));
    assert_memory_equal(shown.pixels, drawing.colours + 3, 3);
    assert_memory_equal(shown.pixels + 3, ((uint8_t[]){0, 0, 0}), 3); /* "no class" is black */
    assert_memory_equal(shown.pixels + 6, drawing.colours + 3 * 254, 3);
    att_image_free(self->context, &shown);
    att_free(self->context, bytes);
    att_drawing_free(self->context, &drawing);
}

SCRATCH_TEST(an_index_of_more_than_255_classes_has_16_bits)
{
    att_drawing drawing = {0};
    att_image high = {0};
    size_t size;
    uint32_t length;
    scene s = scene_of(3, 1, 3, 0);
    add_mapping(self);
    memcpy(s.map, (uint16_t[]){0x0102, NONE, 1}, sizeof(uint16_t[3]));
    CHECK(self->context, draw(self->context, &s, 256, NULL, &drawing));
    att_free(self->context, write_index(self, &drawing, 16, 0, &size));
    att_drawing_free(self->context, &drawing);
    CHECK(self->context, draw(self->context, &s, 300, NULL, &drawing));
    char *bytes = write_index(self, &drawing, 16, 0, &size);
    assert_null(find_chunk((const uint8_t *)bytes, size, "PLTE", &length));
    CHECK(self->context, att_image_decode(self->context, bytes, size, 1, NULL, &high)); /* the high bytes */
    assert_memory_equal(high.pixels, ((uint8_t[]){1, 255, 0}), 3);
    att_image_free(self->context, &high);
    att_free(self->context, bytes);
    att_drawing_free(self->context, &drawing);
}

SCRATCH_TEST(a_painted_photograph_is_a_png_of_its_pixels)
{
    att_drawing drawing = {0};
    att_image read = {0};
    scene s = scene_of(3, 2, 3, 77);
    add_mapping(self);
    CHECK(self->context, draw(self->context, &s, 4, NULL, &drawing));
    CHECK(self->context, att_drawing_write_image(self->context, &drawing, self->path));
    CHECK(self->context, att_image_read(self->context, self->path, 3, NULL, &read));
    assert_int_equal(read.width, 3);
    assert_memory_equal(read.pixels, drawing.image.pixels, 3 * 2 * 3);
    assert_int_equal(scratch_file_count(self), 1); /* no temporary file is left */
    att_image_free(self->context, &read);
    att_drawing_free(self->context, &drawing);
}

SCRATCH_TEST(writing_drawings_survives_lack_of_memory)
{
    att_drawing drawing = {0};
    scene s = scene_of(3, 2, 3, 77);
    add_mapping(self);
    CHECK(self->context, draw(self->context, &s, 4, NULL, &drawing));
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        of.status = att_drawing_write_image(self->context, &drawing, self->path);
        if (of.status == ATT_OK)
            of.status = att_drawing_write_index(self->context, &drawing, self->path);
    }
    att_drawing_free(self->context, &drawing);
}
