/* Images that cannot be decoded, and the time spent waiting for images. */
#include "base/io/jpeg.h"
#include "data/picture.h"
#include "study/train/fixture.h"
#include "study/train/inference.h"

enum { PICTURES = 40, EVAL_PICTURES = 12 };

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Writes images of class c in the grey 60 c; every `each`-th one is truncated. */
static void write_split(const char *folder, const char *split, int count, int each)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, split);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < count; i++) {
        void *bytes;
        size_t size;
        snprintf(path, sizeof path, "%s/%s/%d", folder, split, i % CLASSES);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%s/%d/%d.png", folder, split, i % CLASSES, i);
        picture_make(60 * (i % CLASSES) + i % 5, &bytes, &size);
        write_file(path, bytes, i % each == 3 ? size / 2 : size);
        free(bytes);
    }
}

/* The fixture with images of which every seventh is corrupt in training, every fifth in evaluation. */
static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    strcpy(f->folder, "/tmp/att_train_XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    write_split(f->folder, "train", PICTURES, 7);
    write_split(f->folder, "val", EVAL_PICTURES, 5);
    fixture_open(f);
    return 0;
}
enum { TRAIN_CORRUPT = 6, EVAL_CORRUPT = 2 };

typedef struct heard {
    int warnings[2]; /* of training and of evaluation */
    double train_corrupt[4], eval_corrupt[4];
} heard;

static double field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0)
            return event->fields[i].number;
    return -1;
}

#define PICTURE_TEST(name) TEST_WITH(name, fixture *f, setup, fixture_teardown)

static att_status hear(void *user, const att_event *event)
{
    heard *h = user;
    if (event->kind == ATT_EVENT_WARNING) {
        assert_non_null(strstr(event->fields[0].text, ".png: not a PNG"));
        h->warnings[strcmp(event->fields[1].text, "eval") == 0]++;
    }
    if (event->kind == ATT_EVENT_EPOCH) {
        h->train_corrupt[event->epoch] = field(event, "train_corrupt");
        h->eval_corrupt[event->epoch] = field(event, "eval_corrupt");
    }
    return ATT_OK;
}

static att_train_options lenient_training(const att_sink *sink)
{
    att_train_options options = small_training();
    options.skip_corrupt = true;
    options.sinks = sink;
    options.sink_count = 1;
    return options;
}

PICTURE_TEST(corrupt_images_are_errors_by_default)
{
    att_train_options options = small_training();
    att_evaluation evaluation;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_FORMAT,
                 ".png: not a PNG");
    fixture_model(f, 0);
    assert_fails(f->context, att_evaluate(f->model, f->weights, f->eval, &f->eval_transform, NULL, &evaluation),
                 ATT_ERR_FORMAT, ".png: not a PNG");
}

/* 40 images are five batches of 8: each epoch visits every image. */
PICTURE_TEST(corrupt_images_are_replaced_and_counted)
{
    float *first = NULL;
    for (int workers = 0; workers < 4; workers++) {
        heard h = {.warnings = {0}};
        att_sink sink = {.emit = hear, .user = &h};
        att_train_options options = lenient_training(&sink);
        att_train_result result;
        int64_t count;
        options.workers = workers;
        fixture_model(f, 0.1);
        assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
        assert_int_equal(result.updates, 10);
        assert_int_equal(result.train_corrupt, TRAIN_CORRUPT);
        assert_int_equal(result.eval_corrupt, EVAL_CORRUPT);
        assert_int_equal(h.warnings[0], TRAIN_CORRUPT);
        assert_int_equal(h.warnings[1], EVAL_CORRUPT);
        assert_true(h.train_corrupt[0] == TRAIN_CORRUPT && h.train_corrupt[1] == TRAIN_CORRUPT);
        assert_true(h.eval_corrupt[0] == EVAL_CORRUPT && h.eval_corrupt[1] == EVAL_CORRUPT);
        float *values = values_of(f->weights, NULL, &count);
        if (!first)
            first = values;
        else
            assert_memory_equal(values, first, (size_t)count * sizeof *values);
        if (values != first)
            free(values);
    }
    free(first);
}

static bool stop_at_once(void *user, const att_progress *progress)
{
    (void)progress;
    return --*(int *)user != 0;
}

/* Also the count of an epoch that was interrupted. */
PICTURE_TEST(counts_of_corrupt_images_survive_a_resume)
{
    char whole[160], cut[160], last[160];
    heard at_once = {.warnings = {0}}, in_parts = {.warnings = {0}};
    att_sink sink = {.emit = hear, .user = &at_once};
    att_train_options options = lenient_training(&sink);
    options.output = path_in(f, "whole", whole);
    assert_trains(f, &options);
    sink.user = &in_parts;
    int calls = 3;
    options.output = path_in(f, "cut", cut);
    options.progress = stop_at_once;
    options.progress_user = &calls;
    fixture_model(f, 0.1);
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED);
    options.progress = NULL;
    options.resume = path_in(f, "cut/last.safetensors", last);
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    assert_same_file(f, "whole/last.safetensors", "cut/last.safetensors");
    assert_memory_equal(at_once.train_corrupt, in_parts.train_corrupt, sizeof at_once.train_corrupt);
}

PICTURE_TEST(corrupt_images_are_left_out_of_an_evaluation)
{
    att_evaluate_options options = att_evaluate_options_defaults();
    att_evaluation evaluation, other;
    options.skip_corrupt = true;
    options.batch_size = 4;
    fixture_model(f, 0);
    assert_int_equal(att_evaluate(f->model, f->weights, f->eval, &f->eval_transform, &options, &evaluation), ATT_OK);
    assert_int_equal(evaluation.count, EVAL_PICTURES - EVAL_CORRUPT);
    assert_int_equal(evaluation.corrupt, EVAL_CORRUPT);
    assert_true(fabs(evaluation.metrics[TOP1] / 100 * (EVAL_PICTURES - EVAL_CORRUPT) -
                     rint(evaluation.metrics[TOP1] / 100 * (EVAL_PICTURES - EVAL_CORRUPT))) < 1e-9);
    options.workers = 0;
    options.batch_size = 3;
    assert_int_equal(att_evaluate(f->model, f->weights, f->eval, &f->eval_transform, &options, &other), ATT_OK);
    assert_true(other.metrics[TOP1] == evaluation.metrics[TOP1] && other.count == evaluation.count);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static double share_of_waiting(fixture *f, const att_train_options *options)
{
    att_train_result result;
    CHECK(f->context, att_train(f->model, f->weights, &f->data, options, &result));
    assert_true(result.wait_share >= 0 && result.wait_share <= 1);
    return result.wait_share;
}

/* Makes a network that takes some milliseconds for a batch. */
static void slow_network(fixture *f)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    att_option_values options = tiny_options();
    att_options_set(&options, "patch_size", 1);
    att_options_set(&options, "embed_dim", 64);
    att_options_set(&options, "depth", 4);
    assert_int_equal(att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &f->model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(f->model), "cpu", &f->weights), ATT_OK);
    assert_int_equal(att_weights_initialise(f->weights, 1), ATT_OK);
}

/* Opens one large photograph under many names as the training set. */
static void open_photographs(fixture *f)
{
    jpeg_kind kind = {.width = 1600, .height = 1200, .components = 3, .across = 2, .down = 2};
    char folder[160], first[256], path[256];
    uint8_t *bytes;
    size_t size;
    jpeg_make(&kind, &bytes, &size);
    mkdir(path_in(f, "photographs", folder), 0700);
    for (int i = 0; i < 2 * BATCH; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i % CLASSES);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%d/%d.jpg", folder, i % CLASSES, i);
        if (i == 0)
            write_file(strcpy(first, path), bytes, size);
        else
            assert_int_equal(link(first, path), 0);
    }
    free(bytes);
    att_dataset_close(&f->train);
    assert_int_equal(att_dataset_open(f->context, folder, NULL, &f->train), ATT_OK);
    f->data.train = f->train;
}

/* The smallest network on large photographs spends most of its time waiting; a larger one on tiny images hardly waits.
 * */
PICTURE_TEST(waiting_is_measured)
{
    att_train_options options = small_training();
    options.skip_corrupt = true;
    slow_network(f);
    double fast = share_of_waiting(f, &options);
    open_photographs(f);
    fixture_model(f, 0.1);
    options.epochs = 1;
    double slow = share_of_waiting(f, &options);
    options.workers = 0;
    fixture_model(f, 0.1);
    double without = share_of_waiting(f, &options);
    printf("waiting: %.3f; %.3f, %.3f\n", fast, slow, without);
    assert_true(fast < 0.3);    /* measured: 0.007 */
    assert_true(slow > 0.7);    /* measured: 0.934 */
    assert_true(without > 0.7); /* measured: 0.997 */
}
