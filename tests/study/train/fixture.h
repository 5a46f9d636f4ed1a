/* train/fixture.h - for tests of training: a tiny network, and images of four classes in a temporary folder. */
#ifndef TESTS_TRAIN_FIXTURE_H
#define TESTS_TRAIN_FIXTURE_H

#include <sys/stat.h>
#include <unistd.h>

#include <attscope/attscope.h>

#include "engine/weights/weights.h"
#include "failing.h"

/* Indices of the metrics of classification. */
enum { LOSS, TOP1, TOP5 };

enum { SIDE = 8, CLASSES = 4, TRAIN_IMAGES = 43, EVAL_IMAGES = 10, BATCH = 8 };

/* A context whose n-th allocation from now on can be made to fail, and the folder of a test. */
typedef struct fixture {
    char folder[64];
    int threads; /* 0: two */
    failing memory;
    size_t bytes_at_first; /* of the context itself */
    att_context *context;
    att_dataset *train, *eval;
    att_transform_options train_transform, eval_transform;
    att_train_data data;
    att_model *model;
    att_weights *weights;
} fixture;

static inline void put_u32(FILE *file, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(value >> shift & 255), file);
}

/* Writes images of class c: quadrant c is bright, the rest is dark and noisy. */
static inline void write_idx(const char *folder, const char *name, int count, uint32_t noise)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, name);
    FILE *images = fopen(path, "wb");
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, name);
    FILE *labels = fopen(path, "wb");
    assert_true(images && labels);
    put_u32(images, 0x803);
    put_u32(images, (uint32_t)count);
    put_u32(images, SIDE);
    put_u32(images, SIDE);
    put_u32(labels, 0x801);
    put_u32(labels, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        fputc(i % CLASSES, labels);
        for (int at = 0; at < SIDE * SIDE; at++) {
            int quadrant = at / SIDE / (SIDE / 2) * 2 + at % SIDE / (SIDE / 2);
            noise = noise * 1664525 + 1013904223;
            fputc((quadrant == i % CLASSES ? 160 : 40) + (int)(noise >> 26), images);
        }
    }
    assert_int_equal(fclose(images), 0);
    assert_int_equal(fclose(labels), 0);
}

/* Returns options of the task. */
static inline att_option_values smoothing_of(double smoothing)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "smoothing", smoothing);
    return options;
}

static inline att_option_values tiny_options(void)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "patch_size", SIDE / 2);
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 16);
    att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 2);
    return options;
}

/* Creates model and weights again with these rates of dropout, also of the maps of attention, and drop path. */
static inline void fixture_model_with(fixture *f, double drop_rate, double drop_path_rate)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    att_option_values options = tiny_options();
    att_options_set(&options, "drop_rate", drop_rate);
    att_options_set(&options, "attn_drop_rate", drop_rate);
    att_options_set(&options, "drop_path_rate", drop_path_rate);
    assert_int_equal(att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &f->model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(f->model), "cpu", &f->weights), ATT_OK);
    assert_int_equal(att_weights_initialise(f->weights, 1), ATT_OK);
}

static inline void fixture_model(fixture *f, double drops)
{
    fixture_model_with(f, drops, drops);
}

/* Opens everything but the folder, which stays; also for a child process. */
static inline void fixture_open(fixture *f)
{
    att_settings settings = failing_settings(&f->memory);
    settings.threads = f->threads ? f->threads : 2;
    assert_int_equal(att_context_create(&settings, &f->context), ATT_OK);
    f->bytes_at_first = att_context_allocations(f->context).bytes_now;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = "train";
    assert_int_equal(att_dataset_open(f->context, f->folder, &options, &f->train), ATT_OK);
    options.split = "val";
    assert_int_equal(att_dataset_open(f->context, f->folder, &options, &f->eval), ATT_OK);
    f->train_transform = f->eval_transform = att_transform_options_defaults(SIDE, SIDE, 1);
    f->train_transform.crop = ATT_CROP_PAD;
    f->train_transform.pad = 1;
    f->data = (att_train_data){f->train, f->eval, &f->train_transform, &f->eval_transform};
    fixture_model(f, 0.1);
}

static inline void fixture_close(fixture *f)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    att_dataset_close(&f->train);
    att_dataset_close(&f->eval);
    assert_int_equal(att_context_allocations(f->context).bytes_now, f->bytes_at_first);
    att_context_destroy(&f->context);
}

static inline int fixture_setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    strcpy(f->folder, "/tmp/att_train_XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    write_idx(f->folder, "train", TRAIN_IMAGES, 1);
    write_idx(f->folder, "t10k", EVAL_IMAGES, 2);
    fixture_open(f);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture *f = *state;
    char command[128];
    fixture_close(f);
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    int result = system(command);
    free(f);
    return result;
}

/* A test with a fixture, `f`. */
#define FIXTURE_TEST(name) TEST_WITH(name, fixture *f, fixture_setup, fixture_teardown)

/* Two epochs of five batches with AdamW, with every feature that has a state. */
static inline att_train_options small_training(void)
{
    att_train_options options = att_train_options_defaults();
    options.epochs = 2;
    options.batch_size = BATCH;
    options.optimizer = "adamw";
    options.lr = 1e-3;
    options.weight_decay = 0.05;
    options.warmup_epochs = 1;
    options.sched_on_updates = true;
    options.clip_grad = 1;
    options.model_ema = true;
    options.model_ema_decay = 0.9;
    options.workers = 1;
    return options;
}

static inline char *path_in(const fixture *f, const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", f->folder, name);
    return path;
}

static inline bool exists(const fixture *f, const char *name)
{
    char path[160];
    return access(path_in(f, name, path), F_OK) == 0;
}

/* Returns the whole file of *size bytes; the caller frees it. */
static inline char *read_all(const fixture *f, const char *name, size_t *size)
{
    char path[160];
    FILE *file = fopen(path_in(f, name, path), "rb");
    if (!file)
        fail_msg("%s is missing", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline void assert_same_file(const fixture *f, const char *a, const char *b)
{
    size_t a_size, b_size;
    char *a_bytes = read_all(f, a, &a_size), *b_bytes = read_all(f, b, &b_size);
    assert_int_equal(a_size, b_size);
    if (memcmp(a_bytes, b_bytes, a_size) != 0)
        fail_msg("%s and %s differ", a, b);
    free(a_bytes);
    free(b_bytes);
}

static inline void assert_same_checkpoint(const fixture *f, const char *a, const char *b, const char *name)
{
    char a_name[96], b_name[96];
    snprintf(a_name, sizeof a_name, "%s/%s.safetensors", a, name);
    snprintf(b_name, sizeof b_name, "%s/%s.safetensors", b, name);
    assert_int_equal(exists(f, a_name), exists(f, b_name));
    if (exists(f, a_name))
        assert_same_file(f, a_name, b_name);
}

/* The checkpoints of two training runs of at most 20 updates in the folders a and b. */
static inline void assert_same_run(const fixture *f, const char *a, const char *b)
{
    assert_same_checkpoint(f, a, b, "last");
    assert_same_checkpoint(f, a, b, "model_best");
    for (int number = 0; number <= 20; number++) {
        char name[32];
        snprintf(name, sizeof name, "checkpoint-%d", number);
        assert_same_checkpoint(f, a, b, name);
    }
}

static inline void assert_trains(fixture *f, const att_train_options *options)
{
    att_status status = att_train(f->model, f->weights, &f->data, options, NULL);
    if (status != ATT_OK)
        fail_msg("%s: %s", att_status_name(status), att_context_message(f->context));
}

/* Returns all parameters, or all values of a slot, one after another; the caller frees them. */
static inline float *values_of(const att_weights *weights, const char *slot_name, int64_t *count)
{
    int slot = -1;
    for (int i = 0; slot_name && i < att_weights_slot_count(weights); i++)
        if (strcmp(att_weights_slot_name(weights, i), slot_name) == 0)
            slot = i;
    assert_true(!slot_name || slot >= 0);
    *count = 0;
    for (int i = 0; i < att_weights_count(weights); i++)
        *count += att_shape_count(att_weights_at(weights, i).shape);
    float *values = calloc((size_t)*count, sizeof *values), *at = values;
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t part = att_shape_count(att_weights_at(weights, i).shape);
        assert_int_equal(att_weights_get(weights, slot, i, at, part), ATT_OK);
        at += part;
    }
    return values;
}

#endif
