/* Segmentation: masks as targets, metrics against sets of pixels, pixels of photographs through a geometry, and how a
 * class map is told. */
#include <attscope/ops.h>

#include "base/core/random.h"
#include "base/io/json.h"
#include "base/io/png_write.h"
#include "base/io/scratch.h"
#include "engine/graph/graph.h"
#include "engine/ops/upsampled_cross_entropy.h"
#include "networks/tasks/confusion.h"
#include "networks/tasks/draw.h"
#include "networks/tasks/list.h"

static const att_task *const task = &att_task_segmentation;

enum { CLASSES = 11, HEIGHT = 6, WIDTH = 8 };

static att_task_settings settings_of(const att_dataset *evaluated)
{
    const att_task_setup setup = {.classes = CLASSES};
    att_task_settings settings;
    assert_int_equal(att_task_configure(NULL, task, &setup, &settings), ATT_OK);
    settings.evaluated = evaluated;
    return settings;
}

/* --- metrics ----------------------------------------------------------------------------------------------------- */

enum { PIXELS = 4096, TRIALS = 30 };

static double mean_of(double sum, int count)
{
    return count > 0 ? sum / count : (double)NAN;
}

/* mmsegmentation's definitions, by counting pixels of each class. */
static att_segmentation_scores expected_scores(const uint16_t *truth, const uint16_t *predicted, int classes)
{
    double iou = 0, accuracy = 0, right = 0, known = 0;
    int in_either = 0, in_truth = 0;
    for (int c = 0; c < classes; c++) {
        int both = 0, either = 0, own = 0;
        for (int i = 0; i < PIXELS; i++) {
            bool is = truth[i] == c, said = truth[i] != ATT_MASK_NONE && predicted[i] == c;
            both += is && said;
            either += is || said;
            own += is;
        }
        in_either += either > 0;
        in_truth += own > 0;
        iou += either > 0 ? (double)both / either : 0;
        accuracy += own > 0 ? (double)both / own : 0;
        right += both;
        known += own;
    }
    return (att_segmentation_scores){mean_of(iou, in_either), mean_of(accuracy, in_truth),
                                     known > 0 ? right / known : (double)NAN};
}

/* Classes below `first` do not occur in the masks. */
static void draw_masks(att_random *random, int first, int classes, double ignored, uint16_t *truth, uint16_t *predicted)
{
    for (int i = 0; i < PIXELS; i++) {
        truth[i] = (uint16_t)(first + (int)att_random_below(random, classes - first));
        predicted[i] =
            att_random_uniform(random) < 0.6 ? truth[i] : (uint16_t)att_random_below(random, classes / 2 + 1);
        truth[i] = att_random_uniform(random) < ignored ? ATT_MASK_NONE : truth[i];
    }
}

static void assert_same(double found, double expected)
{
    assert_true(isnan(expected) ? isnan(found) : fabs(found - expected) < 1e-12);
}

SCRATCH_TEST(metrics_are_those_of_the_sets_of_pixels)
{
    static uint16_t truth[PIXELS], predicted[PIXELS];
    att_random random = att_random_from(7);
    for (int trial = 0; trial < TRIALS; trial++) {
        const int classes = 2 + trial, first = trial % 4 == 3 ? classes / 2 : 0;
        att_confusion confusion = {0};
        draw_masks(&random, first, classes, trial % 5 == 4 ? 1 : 0.1 * (trial % 3), truth, predicted);
        CHECK(self->context, att_confusion_begin(self->context, &confusion, classes));
        CHECK(self->context, att_confusion_add(self->context, &confusion, truth, predicted, PIXELS));
        const att_segmentation_scores found = att_confusion_scores(&confusion),
                                      expected = expected_scores(truth, predicted, classes);
        assert_same(found.miou, expected.miou);
        assert_same(found.macc, expected.macc);
        assert_same(found.aacc, expected.aacc);
        att_confusion_free(self->context, &confusion);
    }
}

SCRATCH_TEST(a_class_that_the_network_lacks_is_refused)
{
    const uint16_t truth[] = {1, 3}, predicted[] = {1, 1};
    att_confusion confusion = {0};
    CHECK(self->context, att_confusion_begin(self->context, &confusion, 3));
    assert_fails(self->context, att_confusion_add(self->context, &confusion, truth, predicted, 2), ATT_ERR_MISMATCH,
                 "class 3, but the network has 3 classes");
    att_confusion_free(self->context, &confusion);
}

/* --- photographs ------------------------------------------------------------------------------------------------- */

enum { PHOTOGRAPHS = 2, PHOTO_HEIGHT = 10, PHOTO_WIDTH = 13, VOID = 11, GRID_H = 3, GRID_W = 4 };

static void write_png(const scratch *self, const char *name, uint8_t *pixels)
{
    char path[512];
    att_text text = {.context = self->context};
    const att_image image = {.width = PHOTO_WIDTH, .height = PHOTO_HEIGHT, .channels = 1, .pixels = pixels};
    CHECK(self->context, att_png_write(self->context, &image, &text));
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.length, file), text.length);
    fclose(file);
    att_text_free(&text);
}

/* Stored labels: 0..10, and 11 for no class, as in CamVid. */
static uint8_t label_at(int photograph, int i)
{
    return (uint8_t)((i * 7 + i / 5 + photograph) % (VOID + 1));
}

static att_dataset *open_photographs(const scratch *self)
{
    char path[256];
    uint8_t pixels[PHOTO_HEIGHT * PHOTO_WIDTH];
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    options.split = "train";
    for (int folder = 0; folder < 2; folder++) {
        snprintf(path, sizeof path, "%s/%s", self->folder, folder ? "trainannot" : "train");
        assert_int_equal(mkdir(path, 0777), 0);
        for (int p = 0; p < PHOTOGRAPHS; p++) {
            for (int i = 0; i < PHOTO_HEIGHT * PHOTO_WIDTH; i++)
                pixels[i] = folder ? label_at(p, i) : (uint8_t)i;
            snprintf(path, sizeof path, "%s/%d.png", folder ? "trainannot" : "train", p);
            write_png(self, path, pixels);
        }
    }
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    return dataset;
}

/* The photograph fills the network's image; `flips`: mirrored. */
static att_geometry geometry_of(bool flips)
{
    const double x = (double)WIDTH / PHOTO_WIDTH, y = (double)HEIGHT / PHOTO_HEIGHT;
    return (att_geometry){.map = {{flips ? -x : x, 0, flips ? WIDTH : 0}, {0, y, 0}},
                          .from_width = PHOTO_WIDTH,
                          .from_height = PHOTO_HEIGHT,
                          .width = WIDTH,
                          .height = HEIGHT};
}

/* PyTorch's bilinear interpolation of logits to the size of the photograph, and their largest. */
static int expected_class(const float *logits, int i, int j, bool flips)
{
    const double y = fmin(fmax((i + 0.5) * GRID_H / PHOTO_HEIGHT - 0.5, 0), GRID_H - 1);
    const double at = flips ? PHOTO_WIDTH - 1 - j : j;
    const double x = fmin(fmax((at + 0.5) * GRID_W / PHOTO_WIDTH - 0.5, 0), GRID_W - 1);
    const int top = (int)y, left = (int)x, bottom = top + (top < GRID_H - 1), right = left + (left < GRID_W - 1);
    int best = 0;
    double largest = -INFINITY;
    for (int c = 0; c < CLASSES; c++) {
        const double upper = (1 - (x - left)) * logits[(top * GRID_W + left) * CLASSES + c] +
                             (x - left) * logits[(top * GRID_W + right) * CLASSES + c];
        const double lower = (1 - (x - left)) * logits[(bottom * GRID_W + left) * CLASSES + c] +
                             (x - left) * logits[(bottom * GRID_W + right) * CLASSES + c];
        const double value = (1 - (y - top)) * upper + (y - top) * lower;
        best = value > largest ? c : best;
        largest = fmax(value, largest);
    }
    return best;
}

typedef struct answers {
    float logits[PHOTOGRAPHS][GRID_H * GRID_W * CLASSES];
    att_geometry geometry[PHOTOGRAPHS];
    int64_t expected[CLASSES * CLASSES];
} answers;

static void draw_answers(answers *made)
{
    att_random random = att_random_from(3);
    memset(made->expected, 0, sizeof made->expected);
    for (int p = 0; p < PHOTOGRAPHS; p++) {
        for (int i = 0; i < GRID_H * GRID_W * CLASSES; i++)
            made->logits[p][i] = (float)att_random_normal(&random);
        made->geometry[p] = geometry_of(p == 1);
        for (int i = 0; i < PHOTO_HEIGHT * PHOTO_WIDTH; i++) {
            const int label = label_at(p, i);
            const int said = expected_class(made->logits[p], i / PHOTO_WIDTH, i % PHOTO_WIDTH, p == 1);
            if (label != VOID)
                made->expected[label * CLASSES + said]++;
        }
    }
}

static att_status observe(const scratch *self, void *state, const att_dataset *dataset, const answers *made, int first,
                          int count)
{
    static const int64_t indices[] = {0, 1};
    const att_task_settings settings = settings_of(dataset);
    att_field fields[ATT_MAX_TARGETS];
    const int field_count = task->fields(&settings, fields);
    const void *targets[] = {NULL, made->geometry + first}, *rows = made->logits + first;
    const att_field answer = {.name = "pixel_logits", .dtype = ATT_F32, .shape = att_shape_of(GRID_H, GRID_W, CLASSES)};
    assert_int_equal(field_count, 2);
    assert_string_equal(fields[1].name, "geometry");
    const att_batch batch = {.count = count,
                             .rows = count,
                             .indices = indices + first,
                             .field_count = field_count,
                             .fields = fields,
                             .data = targets};
    const att_batch of = {.count = count, .field_count = 1, .fields = &answer, .data = &rows};
    return task->observe(self->context, state, &settings, &batch, &of);
}

enum { STATE = 128 };

/* In one call or image by image. */
SCRATCH_TEST(each_pixel_of_a_photograph_is_compared)
{
    static answers made;
    _Alignas(16) char whole[STATE] = {0}, parts[STATE] = {0};
    att_dataset *dataset = open_photographs(self);
    const att_task_settings settings = settings_of(dataset);
    int64_t *counts, count;
    assert_true(task->state_size <= STATE);
    draw_answers(&made);
    CHECK(self->context, observe(self, whole, dataset, &made, 0, PHOTOGRAPHS));
    CHECK(self->context, task->counts(self->context, whole, &settings, &counts, &count));
    assert_int_equal(count, CLASSES * CLASSES);
    assert_memory_equal(counts, made.expected, sizeof made.expected);
    for (int p = 0; p < 2; p++)
        CHECK(self->context, observe(self, parts, dataset, &made, p, 1));
    CHECK(self->context, task->counts(self->context, parts, &settings, &counts, &count));
    assert_memory_equal(counts, made.expected, sizeof made.expected);
    task->end(self->context, whole);
    task->end(self->context, parts);
    att_dataset_close(&dataset);
}

static int64_t pixels_of(const answers *made, int class_number)
{
    int64_t sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += made->expected[class_number * CLASSES + c];
    return sum;
}

SCRATCH_TEST(each_class_has_figures)
{
    static answers made;
    _Alignas(16) char state[STATE] = {0};
    double values[ATT_MAX_METRICS], sum = 0;
    const att_measurement *figures;
    int count, ious = 0;
    att_dataset *dataset = open_photographs(self);
    const att_task_settings settings = settings_of(dataset);
    task->report(state, values);
    assert_true(isnan(values[0]) && isnan(values[1]) && isnan(values[2]));
    draw_answers(&made);
    CHECK(self->context, observe(self, state, dataset, &made, 0, PHOTOGRAPHS));
    CHECK(self->context, task->details(self->context, state, &settings, &figures, &count));
    task->report(state, values);
    for (int i = 0; i < count; i++)
        if (strcmp(figures[i].statistic, "iou") == 0) {
            assert_string_equal(figures[i].node, att_dataset_class_name(dataset, ious));
            assert_int_equal(figures[i].count, pixels_of(&made, ious));
            assert_float_equal(figures[i].bound, 100, 0);
            sum += figures[i].mean;
            ious++;
        }
    assert_int_equal(ious, CLASSES);
    assert_float_equal(values[0], sum / CLASSES, 1e-10);
    task->end(self->context, state);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(a_mask_of_another_size_is_refused)
{
    static answers made;
    _Alignas(16) char state[STATE] = {0};
    att_dataset *dataset = open_photographs(self);
    draw_answers(&made);
    made.geometry[0].from_height = PHOTO_HEIGHT - 1;
    assert_fails(self->context, observe(self, state, dataset, &made, 0, 1), ATT_ERR_MISMATCH,
                 "a mask of 13 x 10 pixels does not fit a photograph of 13 x 9");
    task->end(self->context, state);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(failing_allocations_are_survived)
{
    static answers made;
    att_dataset *dataset = open_photographs(self);
    draw_answers(&made);
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        _Alignas(16) char state[STATE] = {0};
        of.status = observe(self, state, dataset, &made, 0, PHOTOGRAPHS);
        task->end(self->context, state);
    }
    att_dataset_close(&dataset);
}

/* --- targets ----------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_target_is_the_moved_mask)
{
    int32_t mask[HEIGHT * WIDTH];
    att_dataset *dataset = open_photographs(self);
    const att_task_settings settings = settings_of(NULL);
    const att_geometry geometry = geometry_of(false);
    att_field fields[ATT_MAX_TARGETS];
    assert_int_equal(task->fields(&settings, fields), 1);
    assert_true(att_shape_equal(fields[0].shape, att_shape_of(ATT_IMAGE_HEIGHT, ATT_IMAGE_WIDTH)));
    CHECK(self->context, task->fill(&settings, self->context, dataset, 1, &geometry, &(void *){mask}));
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        const int y = (int)((i / WIDTH + 0.5) * PHOTO_HEIGHT / HEIGHT),
                  x = (int)((i % WIDTH + 0.5) * PHOTO_WIDTH / WIDTH);
        const int label = label_at(1, y * PHOTO_WIDTH + x);
        assert_int_equal(mask[i], label == VOID ? ATT_NO_CLASS : label);
    }
    att_dataset_close(&dataset);
}

TEST(cutmix_moves_a_box_of_the_mask)
{
    int32_t own[HEIGHT * WIDTH], other[HEIGHT * WIDTH];
    const att_task_settings settings = settings_of(NULL);
    const att_mixing box = {.lambda = 0.5, .cuts = true, .top = 1, .bottom = 4, .left = 2, .right = 8, .width = WIDTH};
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        own[i] = i, other[i] = -i;
    task->mix(&settings, &(void *){own}, &(const void *){other}, &box);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        const int y = i / WIDTH, x = i % WIDTH;
        assert_int_equal(own[i], y >= 1 && y < 4 && x >= 2 && x < 8 ? -i : i);
    }
}

SCRATCH_TEST(data_that_does_not_fit_is_refused)
{
    att_dataset *dataset = open_photographs(self);
    att_task_settings settings = settings_of(dataset);
    CHECK(self->context, task->check(self->context, &settings, dataset));
    settings.classes = 12;
    assert_fails(self->context, task->check(self->context, &settings, dataset), ATT_ERR_MISMATCH,
                 "the masks have 11 classes, but the model has 12");
    settings.classes = 0;
    assert_fails(self->context, task->check(self->context, &settings, dataset), ATT_ERR_MISMATCH, "no head");
    att_dataset_close(&dataset);
}

/* --- loss -------------------------------------------------------------------------------------------------------- */

/* Adversarial images do not depend on the auxiliary head. */
TEST(the_plain_loss_has_no_auxiliary_part)
{
    att_option_values options = att_options_none();
    task->plain(&options);
    assert_float_equal(att_options_number(&options, "aux_weight", 1), 0, 0);
}

/* The number of cross entropies; *mean: of the last. */
static int losses_of(const att_graph *graph, int *mean)
{
    int count = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].op->name, "upsampled_cross_entropy") == 0) {
            *mean = ATT_ATTRS(&graph->nodes.items[i], upsampled_cross_entropy)->mean;
            count++;
        }
    return count;
}

SCRATCH_TEST(the_loss_reads_the_mask_of_the_whole_image)
{
    static const char *const means[] = {"labeled", "all"};
    for (int i = 0; i < 2; i++) {
        int mean;
        att_graph *graph;
        att_context *context;
        att_option_values options = att_options_none();
        assert_int_equal(att_context_create(NULL, &context), ATT_OK);
        CHECK(context, att_graph_create(context, ATT_F32, &graph));
        att_value logits = att_graph_input(graph, "x", ATT_F32, att_shape_of(GRID_H, GRID_W, CLASSES));
        att_options_set_text(&options, "pixel_mean", means[i]);
        att_options_set(&options, "aux_weight", i);
        const att_task_setup setup = {.classes = CLASSES, .options = &options};
        assert_fails(context, att_task_add_loss("segment", graph, &setup), ATT_ERR_NOT_FOUND, "with a head");
        att_graph_destroy(&graph);
        CHECK(context, att_graph_create(context, ATT_F32, &graph));
        logits = att_gelu(graph, att_graph_input(graph, "x", ATT_F32, att_shape_of(GRID_H, GRID_W, CLASSES)));
        att_graph_output(graph, "pixel_logits", logits);
        att_graph_probe(graph, "auxiliary_logits", logits);
        att_graph_output(graph, "class_map", att_upsampled_argmax(graph, logits, HEIGHT, WIDTH));
        CHECK(context, att_task_add_loss("segment", graph, &setup));
        assert_string_equal(graph->inputs.items[1].name, "mask");
        assert_true(att_shape_equal(att_value_shape(graph, graph->inputs.items[1].value), att_shape_of(HEIGHT, WIDTH)));
        assert_int_equal(att_value_shape(graph, att_graph_find_output(graph, "loss")).rank, 0);
        assert_int_equal(losses_of(graph, &mean), 1 + i); /* the weight 0 leaves the auxiliary one out */
        assert_int_equal(mean, i == 0 ? ATT_MEAN_OF_LABELED : ATT_MEAN_OF_ALL);
        att_graph_destroy(&graph);
        att_context_destroy(&context);
    }
}

/* --- predictions ------------------------------------------------------------------------------------------------- */

static const int32_t map[2][4] = {{2, 2, 0, 2}, {5, 2, 0, 2}};
static const char *const names[] = {"sky", "road", "car"};

static att_batch map_answer(att_field *field, const void **data)
{
    *field = (att_field){.name = "class_map", .dtype = ATT_I32, .shape = att_shape_of(2, 4)};
    *data = map;
    return (att_batch){.count = 1, .field_count = 1, .fields = field, .data = data};
}

static void keep_line(void *user, const char *text)
{
    strcat(user, text);
    strcat(user, "\n");
}

SCRATCH_TEST(a_class_map_is_told_as_shares)
{
    char lines[512] = "";
    att_field field;
    const void *data;
    const att_batch answer = map_answer(&field, &data);
    const uint8_t colours[CLASSES][3] = {[2] = {1, 2, 255}};
    const att_answer_options options = {.labels = names, .label_count = 3, .colours = *colours, .topk = 2};
    att_json_writer *writer = NULL;
    const char *json;
    size_t length;
    CHECK(self->context, att_json_writer_create(self->context, false, &writer));
    att_json_begin_object(writer);
    CHECK(self->context, task->write(self->context, &answer, &options, writer));
    att_json_end_object(writer);
    CHECK(self->context, att_json_writer_finish(writer, &json, &length));
    assert_string_equal(json,
                        "{\"classes\":[{\"class\":2,\"label\":\"car\",\"colour\":\"#0102ff\",\"share\":0.625},"
                        "{\"class\":0,\"label\":\"sky\",\"colour\":\"#000000\",\"share\":0.25},"
                        "{\"class\":5,\"colour\":\"#000000\",\"share\":0.125}]}");
    att_json_writer_destroy(&writer);
    CHECK(self->context, task->describe(self->context, &answer, &options, keep_line, lines));
    assert_string_equal(lines, " 62.50 % of the pixels       2  car\n 25.00 % of the pixels       0  sky\n");
    att_text text = {.context = self->context};
    CHECK(self->context, task->caption(self->context, &answer, &options, NULL, &text));
    assert_string_equal(text.data, "predicted: car 62.5 %, sky 25.0 %, class 5 12.5 %.");
    att_text_free(&text);
}

SCRATCH_TEST(a_caption_names_five_classes)
{
    static const int32_t many[7] = {6, 5, 4, 3, 2, 1, 6};
    const att_field field = {.name = "class_map", .dtype = ATT_I32, .shape = att_shape_of(1, 7)};
    const void *const data[] = {many};
    const att_batch answer = {.count = 1, .field_count = 1, .fields = &field, .data = data};
    const att_answer_options options = att_answer_options_defaults();
    att_text text = {.context = self->context};
    CHECK(self->context, task->caption(self->context, &answer, &options, NULL, &text));
    assert_string_equal(text.data,
                        "predicted: class 6 28.6 %, class 1 14.3 %, class 2 14.3 %, class 3 14.3 %, class 4 14.3 %.");
    att_text_free(&text);
}

/* Of a map of 4 x 2 pixels only the middle two columns show the photograph, of 1 x 1 pixels; the other are filled. */
SCRATCH_TEST(shares_leave_out_the_padding)
{
    char lines[512] = "";
    att_field field;
    const void *data;
    const att_batch answer = map_answer(&field, &data);
    const att_geometry geometry = {
        .map = {{2, 0, 1}, {0, 2, 0}}, .from_width = 1, .from_height = 1, .width = 4, .height = 2};
    const att_answer_options options = {.labels = names, .label_count = 3, .geometry = &geometry, .topk = 9};
    CHECK(self->context, task->describe(self->context, &answer, &options, keep_line, lines));
    assert_string_equal(lines, " 50.00 % of the pixels       0  sky\n 50.00 % of the pixels       2  car\n");
}

/* The network sees the middle half of the photograph, of 8 x 1, in 4 x 1 pixels; two places have logits. */
SCRATCH_TEST(a_photograph_is_drawn_in_its_own_size)
{
    static const uint16_t expected[8] = {ATT_MASK_NONE, ATT_MASK_NONE, 0, 0, 1, 1, ATT_MASK_NONE, ATT_MASK_NONE};
    static const float logits[2][CLASSES] = {{1, 0}, {0, 1}};
    static uint8_t grey[8];
    const att_image photograph = {8, 1, 1, grey};
    const att_geometry geometry = {
        .map = {{1, 0, -2}, {0, 1, 0}}, .from_width = 8, .from_height = 1, .width = 4, .height = 1};
    const att_field field = {.name = "pixel_logits", .dtype = ATT_F32, .shape = att_shape_of(1, 2, CLASSES)};
    const void *const data[] = {logits};
    const att_batch answer = {.count = 1, .field_count = 1, .fields = &field, .data = data}, none = {.count = 1};
    att_drawing drawing = {0};
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        of.status = att_task_draw(self->context, "segment", CLASSES, &answer, NULL, &photograph, &geometry, &drawing);
        if (of.status == ATT_OK)
            assert_memory_equal(drawing.classes.classes, expected, sizeof expected);
        att_drawing_free(self->context, &drawing);
    }
    assert_fails(self->context,
                 att_task_draw(self->context, "segment", CLASSES, &none, NULL, &photograph, &geometry, &drawing),
                 ATT_ERR_MISMATCH, "predicts no class for a pixel");
}

/* The class map of the network's image, alone, is not that of the photograph. */
SCRATCH_TEST(a_class_map_of_another_size_is_not_drawn)
{
    static uint8_t grey[8];
    const att_image photograph = {8, 1, 1, grey};
    att_field field;
    const void *data;
    const att_batch answer = map_answer(&field, &data);
    att_drawing drawing = {0};
    assert_fails(self->context,
                 att_task_draw(self->context, "segment", CLASSES, &answer, NULL, &photograph, NULL, &drawing),
                 ATT_ERR_MISMATCH, "the answer has no output \"pixel_logits\"");
}

/* As the argmax of the network's own map. */
SCRATCH_TEST(of_equal_logits_the_lowest_class_is_drawn)
{
    static const float logits[CLASSES] = {0, 3, 1, 3, 2, 3};
    static uint8_t grey[1];
    const att_image photograph = {1, 1, 1, grey};
    const att_field field = {.name = "pixel_logits", .dtype = ATT_F32, .shape = att_shape_of(1, 1, CLASSES)};
    const void *const data[] = {logits};
    const att_batch answer = {.count = 1, .field_count = 1, .fields = &field, .data = data};
    att_drawing drawing = {0};
    CHECK(self->context, att_task_draw(self->context, "segment", CLASSES, &answer, NULL, &photograph, NULL, &drawing));
    assert_int_equal(drawing.classes.classes[0], 1);
    att_drawing_free(self->context, &drawing);
}

SCRATCH_TEST(an_answer_without_a_class_map_is_refused)
{
    const att_batch answer = {.count = 1};
    const att_answer_options options = att_answer_options_defaults();
    assert_fails(self->context, task->describe(self->context, &answer, &options, keep_line, NULL), ATT_ERR_MISMATCH,
                 "predicts no class for a pixel");
    att_text text = {.context = self->context};
    CHECK(self->context, task->caption(self->context, &answer, &options, NULL, &text));
    assert_int_equal(text.length, 0);
}
