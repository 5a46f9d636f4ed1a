/* Metrics of detectors: boxes in pixels of the photographs, figures of classes, undefined ones. */
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/png_write.h"
#include "base/io/scratch.h"
#include "networks/tasks/list.h"

static const att_task *const task = &att_task_detection;

enum { IMAGES = 2, CLASSES = 2, MOST = 2, WIDTH = 40, HEIGHT = 30, AP = 0, APL = 5, AR100 = 8 };

/* A box of each class in both images, and a crowd in the first. */
static const char annotations[] =
    "{\"images\": [{\"id\": 3, \"file_name\": \"0.png\"}, {\"id\": 4, \"file_name\": \"1.png\"}],"
    "\"categories\": [{\"id\": 7, \"name\": \"bee\"}, {\"id\": 9, \"name\": \"cow\"}], \"annotations\": ["
    "{\"id\": 1, \"image_id\": 3, \"category_id\": 7, \"bbox\": [2, 4, 10, 6], \"area\": 60},"
    "{\"id\": 2, \"image_id\": 4, \"category_id\": 9, \"bbox\": [0, 0, 20, 20], \"area\": 400},"
    "{\"id\": 3, \"image_id\": 3, \"category_id\": 9, \"bbox\": [0, 0, 30, 30], \"area\": 900, \"iscrowd\": 1}]}";

static void write_file(const scratch *self, const char *name, const char *bytes, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    CHECK(self->context, att_file_replace(self->context, path, bytes, size));
}

static att_dataset *open_boxes(const scratch *self)
{
    char path[160];
    static uint8_t pixels[WIDTH * HEIGHT];
    const att_image image = {.width = WIDTH, .height = HEIGHT, .channels = 1, .pixels = pixels};
    att_text png = {.context = self->context};
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_BOXES;
    snprintf(path, sizeof path, "%s/images", self->folder);
    assert_int_equal(mkdir(path, 0777), 0);
    CHECK(self->context, att_png_write(self->context, &image, &png));
    write_file(self, "images/0.png", png.data, png.length);
    write_file(self, "images/1.png", png.data, png.length);
    write_file(self, "annotations.json", annotations, sizeof annotations - 1);
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    att_text_free(&png);
    return dataset;
}

/* The network sees the photographs in double size. */
static const att_geometry twice = {.map = {{2, 0, 0}, {0, 2, 0}},
                                   .from_width = WIDTH,
                                   .from_height = HEIGHT,
                                   .width = 2 * WIDTH,
                                   .height = 2 * HEIGHT};
static const float boxes[IMAGES][MOST][4] = {{{4, 8, 24, 20}, {0, 0, 0, 0}}, {{4, 8, 24, 20}, {0, 0, 40, 40}}};
static const float scores[IMAGES][MOST] = {{0.9f, 0}, {0.95f, 0.5f}};
static const int32_t classes[IMAGES][MOST] = {{0, 0}, {0, 1}}, counts[IMAGES] = {1, 2};

static void observe(const scratch *self, att_task_settings *settings, void *state, int first, int count)
{
    const int64_t indices[IMAGES] = {first, first + 1};
    const att_geometry geometries[IMAGES] = {twice, twice};
    const att_field target = {.name = "geometry", .dtype = ATT_U8, .shape = att_shape_of(sizeof(att_geometry))};
    const void *const targets[] = {geometries};
    const att_batch batch = {
        .count = count, .rows = count, .indices = indices, .field_count = 1, .fields = &target, .data = targets};
    const att_field fields[] = {{"boxes", ATT_F32, att_shape_of(MOST, 4)},
                                {"scores", ATT_F32, att_shape_of(MOST)},
                                {"classes", ATT_I32, att_shape_of(MOST)},
                                {.name = "count", .dtype = ATT_I32}};
    const void *const data[] = {boxes[first], scores[first], classes[first], &counts[first]};
    const att_batch answers = {.count = count, .field_count = 4, .fields = fields, .data = data};
    CHECK(self->context, task->observe(self->context, state, settings, &batch, &answers));
}

static void conclude(const scratch *self, att_task_settings *settings, void *state, double values[ATT_MAX_METRICS])
{
    task->report(state, values);
    assert_true(isnan(values[AP])); /* not before the end */
    CHECK(self->context, task->conclude(self->context, state, settings));
    task->report(state, values);
}

SCRATCH_TEST(boxes_are_compared_in_the_photographs)
{
    att_dataset *dataset = open_boxes(self);
    att_task_settings settings = {.classes = CLASSES, .evaluated = dataset};
    double values[ATT_MAX_METRICS], again[ATT_MAX_METRICS];
    void *states[3];
    const att_measurement *figures;
    int count;
    for (int s = 0; s < 3; s++)
        assert_non_null(states[s] = calloc(1, task->state_size));
    observe(self, &settings, states[0], 0, IMAGES);
    conclude(self, &settings, states[0], values);
    /* "bee": wrong, because its box is in the other image, then right; "cow": right. */
    assert_true(fabs(values[AP] - 75) < 1e-9 && values[AR100] == 100 && isnan(values[APL]));
    CHECK(self->context, task->details(self->context, states[0], &settings, &figures, &count));
    assert_int_equal(count, 2 * CLASSES);
    assert_string_equal(figures[2].node, "cow");
    assert_string_equal(figures[3].statistic, "ar");
    assert_true(figures[2].count == 1 && fabs(figures[2].mean - 100) < 1e-9 && figures[3].mean == 100);

    observe(self, &settings, states[1], 0, 1);
    for (int image = IMAGES; image-- > 0;)
        observe(self, &settings, states[2], image, 1);
    conclude(self, &settings, states[2], again);
    for (int i = 0; i < task->info.metric_count; i++)
        assert_true(again[i] == values[i] || (isnan(again[i]) && isnan(values[i])));
    conclude(self, &settings, states[1], values); /* without "cow" */
    CHECK(self->context, task->details(self->context, states[1], &settings, &figures, &count));
    assert_int_equal(count, 2);
    for (int s = 0; s < 3; s++) {
        task->end(self->context, states[s]);
        free(states[s]);
    }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(data_that_do_not_fit_are_refused)
{
    att_dataset *dataset = open_boxes(self);
    att_task_settings settings = {.classes = CLASSES + 1, .evaluated = dataset};
    assert_fails(self->context, task->check(self->context, &settings, dataset), ATT_ERR_MISMATCH,
                 "the boxes have 2 classes, but the model has 3");
    settings.classes = 0;
    assert_fails(self->context, task->check(self->context, &settings, dataset), ATT_ERR_MISMATCH, "no head");
    settings.classes = CLASSES;
    CHECK(self->context, task->check(self->context, &settings, dataset));
    att_dataset_close(&dataset);
}
