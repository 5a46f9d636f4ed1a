/* Passes over photographs by an open network: its answers, its evaluation in any number of processes and threads, and
 * what is refused. tests/study/train/test_passes.c compares the classes with PyTorch's. */
#include <attscope/attscope.h>

#include "base/comm/threads.h"
#include "data/mask_files.h"
#include "networks/tasks/confusion.h"
#include "networks/tasks/task.h"
#include "study/network/network.h"
#include "study/train/passes.h"

enum { SIDE = 8, CLASSES = 4, PHOTOGRAPHS = 5, MOST_PIXELS = 40 * 40, MIOU = 0, TEXT = 512 };

/* Widths and heights: smaller and larger than a window, and of its size. */
static const int sides[PHOTOGRAPHS][2] = {{20, 13}, {8, 8}, {5, 7}, {9, 31}, {16, 8}};

static void draw_pixels(int photograph, uint8_t *pixels)
{
    for (int i = 0; i < sides[photograph][0] * sides[photograph][1]; i++)
        pixels[i] = (uint8_t)(i * 29 + i / 5 * 17 + photograph * 77);
}

static void write_photographs(const scratch *self)
{
    for (int p = 0; p < PHOTOGRAPHS; p++) {
        uint8_t pixels[MOST_PIXELS];
        char name[32];
        draw_pixels(p, pixels);
        snprintf(name, sizeof name, "images/%d.png", p);
        mask_write(self, name, sides[p][0], sides[p][1], pixels);
        for (int i = 0; i < sides[p][0] * sides[p][1]; i++)
            pixels[i] = (uint8_t)((i * 5 + p) % (CLASSES + 1) == CLASSES ? 255 : i % CLASSES);
        snprintf(name, sizeof name, "masks/%d.png", p);
        mask_write(self, name, sides[p][0], sides[p][1], pixels);
    }
    scratch_text(self, "classes.txt", "a\nb\nc\nd\n");
}

/* What a test opens. */
typedef struct opened {
    att_context *context;
    att_dataset *dataset;
    att_model *model;
    att_weights *weights;
    att_network *network;
} opened;

static att_status open_all(att_context *context, const char *folder, const char *task, opened *all)
{
    att_option_values options = att_options_none();
    att_dataset_options data = att_dataset_options_defaults();
    *all = (opened){.context = context};
    data.annotations = ATT_ANNOTATION_MASK;
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "patch_size", SIDE / 4);
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 16);
    att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 2);
    att_options_set_text(&options, "task", task);
    att_status status = att_dataset_open(context, folder, &data, &all->dataset);
    if (status == ATT_OK)
        status = att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &all->model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(all->model), "cpu", &all->weights);
    if (status == ATT_OK)
        status = att_weights_initialise(all->weights, 1);
    if (status == ATT_OK)
        status = att_network_wrap(all->model, all->weights, NULL, &all->network);
    return status;
}

static void close_all(opened *all)
{
    att_network_close(&all->network);
    att_weights_destroy(&all->weights);
    att_model_destroy(&all->model);
    att_dataset_close(&all->dataset);
}

static opened open_alone(const scratch *self, const char *task)
{
    att_context *context;
    opened all;
    att_settings settings = att_settings_defaults();
    settings.threads = 2;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    CHECK(context, open_all(context, self->folder, task, &all));
    return all;
}

static void close_alone(opened *all)
{
    close_all(all);
    att_context_destroy(&all->context);
}

static att_pass_options usual_passes(void)
{
    return (att_pass_options){
        .longer = 24, .shorter = 9, .stride = {5, 6}, .scales = {0.5, 1, 1.5}, .scale_count = 3, .flips = true};
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static att_image photograph_at(int index, uint8_t *pixels)
{
    draw_pixels(index, pixels);
    return (att_image){sides[index][0], sides[index][1], 1, pixels};
}

/* The last photograph is two windows, which are seen as they are. */
SCRATCH_TEST(an_answer_is_the_class_of_each_pixel)
{
    uint8_t pixels[MOST_PIXELS], half[SIDE * SIDE];
    int32_t expected[SIDE][2 * SIDE];
    att_batch answer;
    write_photographs(self);
    opened all = open_alone(self, "segment");
    const att_image image = photograph_at(4, pixels);
    for (int window = 0; window < 2; window++) {
        const att_image part = {SIDE, SIDE, 1, half};
        for (int y = 0; y < SIDE; y++)
            memcpy(half + y * SIDE, pixels + y * 2 * SIDE + window * SIDE, SIDE);
        att_preprocess preprocess = att_network_identity(all.network)->preprocess;
        preprocess.crop_pct = 1;
        CHECK(all.context, att_network_set_preprocess(all.network, &preprocess));
        CHECK(all.context, att_network_run_images(all.network, &part, 1, &answer));
        const int32_t *map = att_batch_field(&answer, "class_map");
        for (int y = 0; y < SIDE; y++)
            memcpy(&expected[y][window * SIDE], map + y * SIDE, SIDE * sizeof *map);
    }
    const att_pass_options options = {.longer = 2 * SIDE, .shorter = SIDE, .stride = {SIDE, SIDE}};
    CHECK(all.context, att_network_set_passes(all.network, &options));
    CHECK(all.context, att_network_run_images(all.network, &image, 1, &answer));
    assert_int_equal(answer.field_count, 1);
    assert_string_equal(answer.fields[0].name, "class_map");
    assert_true(att_shape_equal(answer.fields[0].shape, att_shape_of(SIDE, 2 * SIDE)));
    assert_memory_equal(answer.data[0], expected, sizeof expected);
    close_alone(&all);
}

static void keep_line(void *user, const char *text)
{
    strcat(user, text);
    strcat(user, "\n");
}

/* Shares and drawing are those of the answer. */
SCRATCH_TEST(an_answer_is_told_and_drawn)
{
    uint8_t pixels[MOST_PIXELS];
    char told[TEXT], part[64];
    att_batch answer;
    write_photographs(self);
    opened all = open_alone(self, "segment");
    const att_pass_options options = usual_passes();
    CHECK(all.context, att_network_set_passes(all.network, &options));
    CHECK(all.context, att_network_select_outputs(all.network, "features")); /* has no effect */
    for (int p = 0; p < PHOTOGRAPHS; p++) {
        const att_image image = photograph_at(p, pixels);
        const int count = image.width * image.height;
        int found[CLASSES] = {0};
        att_drawing drawing = {0};
        *told = '\0';
        CHECK(all.context, att_network_run_images(all.network, &image, 1, &answer));
        CHECK(all.context, att_network_describe(all.network, &answer, NULL, keep_line, told));
        CHECK(all.context, att_network_draw(all.network, &answer, NULL, &image, &drawing));
        const int32_t *map = answer.data[0];
        for (int i = 0; i < count; i++) {
            assert_in_range(map[i], 0, CLASSES - 1);
            assert_int_equal(drawing.classes.classes[i], map[i]);
            found[map[i]]++;
        }
        for (int c = 0; c < CLASSES; c++) {
            snprintf(part, sizeof part, "%6.2f %% of the pixels  %6d", 100.0 * found[c] / count, c);
            assert_true(found[c] == 0 || strstr(told, part));
        }
        att_drawing_free(all.context, &drawing);
    }
    CHECK(all.context, att_network_set_passes(all.network, NULL));
    CHECK(all.context, att_network_select_outputs(all.network, NULL));
    const att_image image = photograph_at(0, pixels);
    CHECK(all.context, att_network_run_images(all.network, &image, 1, &answer));
    assert_non_null(att_batch_field(&answer, "pixel_logits"));
    close_alone(&all);
}

/* --- evaluation --------------------------------------------------------------------------------------------------- */

/* An evaluation by one of several processes. */
typedef struct process {
    const char *folder;
    att_evaluate_options options;
    att_status expected;
    const char *part; /* of the message */
    int reports;
    int64_t left_out; /* index of the last photograph that was left out; -1: none */
    att_evaluation found;
    char message[TEXT];
} process;

static bool count_reports(void *user, const att_progress *progress)
{
    process *own = user;
    own->reports++;
    return progress->done <= progress->total && progress->batch <= progress->batches;
}

static att_status keep_left_out(void *user, int64_t index, const char *reason)
{
    process *own = user;
    own->left_out = strstr(reason, "images/") ? index : -2;
    return ATT_OK;
}

static const char *evaluate(att_context *context, att_comm *comm, void *user)
{
    process *own = user;
    opened all;
    const att_pass_options passes = usual_passes();
    att_status status = open_all(context, own->folder, "segment", &all);
    own->options.comm = comm;
    own->options.progress = count_reports;
    own->options.progress_user = own->options.corrupt_user = own;
    own->options.corrupt_found = keep_left_out;
    if (status == ATT_OK)
        status = att_network_set_passes(all.network, &passes);
    if (status == ATT_OK)
        status = att_network_evaluate(all.network, all.dataset, &own->options, &own->found);
    snprintf(own->message, sizeof own->message, "%s", att_context_message(context));
    close_all(&all);
    if (status != own->expected)
        return status == ATT_OK ? "the evaluation succeeded" : own->message;
    return status == ATT_OK || strstr(own->message, own->part) ? NULL : own->message;
}

static process process_in(const scratch *self, int batch)
{
    process own = {.folder = self->folder, .options = att_evaluate_options_defaults(), .left_out = -1};
    own.options.batch_size = batch;
    return own;
}

/* The figures of the classes that the network answers. */
static att_segmentation_scores by_hand(const scratch *self)
{
    uint8_t pixels[MOST_PIXELS];
    uint16_t predicted[MOST_PIXELS];
    att_confusion confusion = {0};
    att_batch answer;
    opened all = open_alone(self, "segment");
    const att_pass_options passes = usual_passes();
    CHECK(all.context, att_network_set_passes(all.network, &passes));
    CHECK(all.context, att_confusion_begin(all.context, &confusion, CLASSES));
    for (int p = 0; p < PHOTOGRAPHS; p++) {
        att_mask mask;
        const att_image image = photograph_at(p, pixels);
        CHECK(all.context, att_network_run_images(all.network, &image, 1, &answer));
        CHECK(all.context, att_dataset_read_mask(all.dataset, all.context, p, &mask));
        for (int i = 0; i < mask.width * mask.height; i++)
            predicted[i] = (uint16_t)((const int32_t *)answer.data[0])[i];
        CHECK(all.context,
              att_confusion_add(all.context, &confusion, mask.classes, predicted, (int64_t)mask.width * mask.height));
        att_mask_free(all.context, &mask);
    }
    const att_segmentation_scores scores = att_confusion_scores(&confusion);
    att_confusion_free(all.context, &confusion);
    close_alone(&all);
    return scores;
}

SCRATCH_TEST(figures_are_those_of_the_answers_in_any_number_of_processes)
{
    write_photographs(self);
    const att_segmentation_scores expected = by_hand(self);
    assert_true(expected.miou > 0);
    for (int count = 1; count <= MOST_RANKS; count++) {
        process ranks[MOST_RANKS];
        for (int i = 0; i < count; i++)
            ranks[i] = process_in(self, count == 1 ? 256 : 1 + count);
        run_ranks(count, 0, evaluate, ranks, sizeof *ranks);
        for (int i = 0; i < count; i++) {
            assert_int_equal(ranks[i].found.count, PHOTOGRAPHS);
            assert_int_equal(ranks[i].found.judged, PHOTOGRAPHS);
            assert_int_equal(ranks[i].reports, (PHOTOGRAPHS + count - 1) / count);
            const double values[] = {100 * expected.miou, 100 * expected.macc, 100 * expected.aacc};
            assert_memory_equal(ranks[i].found.metrics, values, sizeof values);
        }
    }
}

SCRATCH_TEST(a_photograph_that_cannot_be_read_is_left_out_or_reported)
{
    write_photographs(self);
    scratch_text(self, "images/3.png", "no image");
    for (int count = 1; count <= 2; count++)
        for (int skip = 0; skip < 2; skip++) {
            process ranks[2];
            for (int i = 0; i < count; i++) {
                ranks[i] = process_in(self, 4);
                ranks[i].options.skip_corrupt = skip;
                ranks[i].expected = skip ? ATT_OK : ATT_ERR_FORMAT;
                ranks[i].part = "images/3.png";
            }
            run_ranks(count, 1, evaluate, ranks, sizeof *ranks);
            for (int i = 0; i < count && skip; i++) {
                assert_int_equal(ranks[i].left_out, 3);
                assert_int_equal(ranks[i].found.corrupt, 1);
                assert_int_equal(ranks[i].found.count, PHOTOGRAPHS - 1);
            }
        }
}

SCRATCH_TEST(numbers_that_are_not_finite_are_reported)
{
    static float weights[CLASSES * 1000];
    uint8_t pixels[MOST_PIXELS];
    att_batch answer;
    att_evaluation found;
    write_photographs(self);
    opened all = open_alone(self, "segment");
    const att_pass_options passes = usual_passes();
    const int last = att_weights_count(all.weights) - 1;
    const int64_t count = att_shape_count(att_weights_at(all.weights, last).shape);
    weights[0] = NAN;
    assert_true(count <= (int64_t)(sizeof weights / sizeof *weights));
    CHECK(all.context, att_weights_set(all.weights, -1, last, weights, count));
    CHECK(all.context, att_network_set_passes(all.network, &passes));
    const att_image image = photograph_at(0, pixels);
    assert_fails(all.context, att_network_run_images(all.network, &image, 1, &answer), ATT_ERR_NONFINITE, "NaN");
    assert_fails(all.context, att_network_evaluate(all.network, all.dataset, NULL, &found), ATT_ERR_NONFINITE, "NaN");
    assert_int_equal(found.not_finite, PHOTOGRAPHS);
    close_alone(&all);
}

/* Any number of windows in a run gives the same answer. */
SCRATCH_TEST(the_number_of_windows_in_a_run_is_the_option_s)
{
    uint8_t pixels[MOST_PIXELS];
    int32_t first[MOST_PIXELS];
    att_passes made;
    att_batch answer;
    write_photographs(self);
    opened all = open_alone(self, "segment");
    att_pass_options passes = usual_passes();
    const att_image image = photograph_at(3, pixels);
    for (int size = 0; size <= 3; size++) {
        passes.batch_size = size;
        CHECK(all.context, att_network_set_passes(all.network, &passes));
        assert_true(att_network_passes(all.network, 256, &made));
        assert_int_equal(made.most_windows, size == 0 ? 256 : size);
        CHECK(all.context, att_network_run_images(all.network, &image, 1, &answer));
        if (size == 0)
            memcpy(first, answer.data[0], (size_t)(sides[3][0] * sides[3][1]) * sizeof *first);
        assert_memory_equal(answer.data[0], first, (size_t)(sides[3][0] * sides[3][1]) * sizeof *first);
    }
    passes.batch_size = -1;
    assert_fails(all.context, att_network_set_passes(all.network, &passes), ATT_ERR_ARGUMENT, "runs of -1 windows");
    close_alone(&all);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

SCRATCH_TEST(what_passes_cannot_do_is_refused)
{
    uint8_t pixels[2][MOST_PIXELS];
    att_batch answer;
    write_photographs(self);
    opened all = open_alone(self, "segment");
    const att_pass_options passes = usual_passes(), wide = {.stride = {SIDE + 1, SIDE}};
    assert_fails(all.context, att_network_set_passes(all.network, &wide), ATT_ERR_ARGUMENT, "a stride of 9 x 8");
    CHECK(all.context, att_network_set_passes(all.network, &passes));
    const att_image images[] = {photograph_at(0, pixels[0]), photograph_at(1, pixels[1])};
    assert_fails(all.context, att_network_run_images(all.network, images, 2, &answer), ATT_ERR_ARGUMENT,
                 "passes over 2 photographs");
    att_evaluate_options options = att_evaluate_options_defaults();
    options.occlude = 2;
    assert_fails(all.context, att_network_evaluate(all.network, all.dataset, &options, NULL), ATT_ERR_UNSUPPORTED,
                 "an occluded square and passes over photographs");
    close_alone(&all);
    all = open_alone(self, "classification");
    assert_fails(all.context, att_network_set_passes(all.network, &passes), ATT_ERR_UNSUPPORTED,
                 "the task \"classification\" sees each image once");
    close_alone(&all);
}

SCRATCH_TEST(failing_allocations_are_survived)
{
    failing memory = {.left = -1};
    att_context *context;
    const att_settings settings = failing_settings(&memory);
    write_photographs(self);
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    opened all;
    const att_pass_options passes = {.stride = {5, 6}, .flips = true};
    CHECK(context, open_all(context, self->folder, "segment", &all));
    lack of = lack_of_memory(context, &memory);
    of.step = 7;
    while (lack_again(&of)) {
        att_network *network = NULL;
        of.status = att_network_wrap(all.model, all.weights, NULL, &network);
        if (of.status == ATT_OK)
            of.status = att_network_set_passes(network, &passes);
        if (of.status == ATT_OK)
            of.status = att_network_evaluate(network, all.dataset, NULL, NULL);
        att_network_close(&network);
    }
    close_all(&all);
    att_context_destroy(&context);
}
