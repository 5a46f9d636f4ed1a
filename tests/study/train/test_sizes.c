/* Training and evaluation on images of several sizes: one plan for each size, the same bits for any number of threads
 * and processes, and after a resume. */
#include "study/train/fixture.h"

#include "base/comm/threads.h"
#include "base/core/error.h"
#include "data/picture.h"
#include "sanitized.h"
#include "study/train/inference.h"
#include "test.h"

/* Sides of images: 8 x 16, 16 x 8 and 16 x 16. Longer side at most 16; 12 x 8 becomes 16 x 11, filled up to 16 x 12. */
enum { KINDS = 4, IMAGES = 38, SIZED_EVAL = 11, SIZED_BATCH = 4, BATCHES = 7, WITH_SHORT = 11 };
static const int kinds[KINDS][2] = {{8, 16}, {16, 8}, {16, 16}, {12, 8}};

static void write_sized(const char *folder, const char *split, int count)
{
    char path[256];
    snprintf(path, sizeof path, "%s/sized", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/sized/%s", folder, split);
    mkdir(path, 0777);
    for (int i = 0; i < count; i++) {
        void *bytes;
        size_t size;
        snprintf(path, sizeof path, "%s/sized/%s/%d", folder, split, i % 2);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/sized/%s/%d/%02d.png", folder, split, i % 2, i);
        const int *sides = kinds[i % 3 == 0 ? 0 : i % KINDS];
        picture_make_sized(i % 2 ? 60 + i : 190 - i, sides[0], sides[1], &bytes, &size);
        FILE *file = fopen(path, "wb");
        assert_true(file && fwrite(bytes, 1, size, file) == size);
        assert_int_equal(fclose(file), 0);
        free(bytes);
    }
}

static att_transform_options sized_transform(bool training)
{
    att_transform_options transform = att_transform_options_defaults(0, 0, 1);
    transform.crop = ATT_CROP_KEEP;
    transform.longer = transform.shorter = 16;
    transform.divisor = 4;
    transform.flip = training ? 0.5 : 0;
    return transform;
}

/* What one process does. */
typedef struct process {
    const char *folder, *network;
    att_train_options options;
    att_transform_options train_transform, eval_transform;
    att_status expected;
    bool may_lack_memory; /* ERR_MEMORY is expected, too */
    int stops_at;         /* call of progress that stops the training; 0: none */
    int calls;
    char message[512];
    char digest[ATT_WEIGHTS_DIGEST];
    att_train_result result;
    size_t peak;
} process;

static bool count_calls(void *user, const att_progress *progress)
{
    process *p = user;
    (void)progress;
    return ++p->calls != p->stops_at;
}

/* What a process opens, closed together. */
typedef struct opened {
    att_dataset *train, *eval;
    att_model *model;
    att_weights *weights;
} opened;

static att_status open_all(att_context *context, const process *p, opened *all)
{
    char path[160];
    att_dataset_options data = att_dataset_options_defaults();
    att_option_values options = att_options_none();
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", 2);
    att_options_set(&options, "img_size", 16);
    if (strstr(p->network, "vit"))
        att_options_set(&options, "patch_size", 4);
    snprintf(path, sizeof path, "%s/sized", p->folder);
    data.split = "train";
    ATT_TRY(att_dataset_open(context, path, &data, &all->train));
    data.split = "val";
    ATT_TRY(att_dataset_open(context, path, &data, &all->eval));
    ATT_TRY(att_model_create(context, p->network, &options, ATT_F32, &all->model));
    ATT_TRY(att_weights_create(att_model_graph(all->model), "cpu", &all->weights));
    return att_weights_initialise(all->weights, 1);
}

static const char *train_rank(att_context *context, att_comm *comm, void *user)
{
    process *p = user;
    opened all = {0};
    att_train_options options = p->options;
    options.comm = comm;
    options.progress = count_calls;
    options.progress_user = p;
    att_status status = open_all(context, p, &all);
    if (status == ATT_OK) {
        const att_train_data data = {all.train, all.eval, &p->train_transform, &p->eval_transform};
        status = att_train(all.model, all.weights, &data, &options, &p->result);
    }
    snprintf(p->message, sizeof p->message, "%s", att_context_message(context));
    if (status == ATT_OK)
        status = att_weights_digest(all.weights, p->digest);
    att_weights_destroy(&all.weights);
    att_model_destroy(&all.model);
    att_dataset_close(&all.eval);
    att_dataset_close(&all.train);
    p->peak = att_context_allocations(context).bytes_peak;
    return status == p->expected || (p->may_lack_memory && status == ATT_ERR_MEMORY) ? NULL
           : status == ATT_OK                                                        ? "the training succeeded"
                                                                                     : p->message;
}

/* Runs the same in `count` processes of `threads` threads. */
static process run_all(const process *same, int count, int threads)
{
    process ranks[MOST_RANKS];
    for (int i = 0; i < count; i++)
        ranks[i] = *same;
    run_ranks(count, threads, train_rank, ranks, sizeof *ranks);
    return ranks[count - 1];
}

static process process_in(const fixture *f, const char *folder, char output[160])
{
    process p = {.folder = f->folder, .network = "resnet20", .options = small_training()};
    p.options.batch_size = SIZED_BATCH;
    p.options.grad_accum_steps = 2; /* batches of two sizes in an update */
    p.options.checkpoint_hist = 1;
    p.options.sync_bn = true;
    p.options.lanes = 4;
    p.options.output = folder ? path_in(f, folder, output) : NULL;
    p.train_transform = sized_transform(true);
    p.eval_transform = sized_transform(false);
    write_sized(f->folder, "train", IMAGES);
    write_sized(f->folder, "val", SIZED_EVAL);
    return p;
}

FIXTURE_TEST(threads_and_processes_change_no_bit)
{
    const process whole = process_in(f, NULL, NULL);
    process first = run_all(&whole, 1, 2);
    assert_int_equal(first.result.epochs, 2);
    assert_int_equal(first.result.updates, 2 * ((BATCHES + 1) / 2));
    assert_true(isfinite(first.result.eval[LOSS]));
    for (int count = 1; count <= 4; count *= 2) {
        process again = run_all(&whole, count, count == 1 ? 4 : 1);
        assert_string_equal(again.digest, first.digest);
        assert_memory_equal(again.result.eval, first.result.eval, 2 * sizeof(double));
    }
}

/* Norms that take no statistics of the batch let what is left of each size train, too. With four processes, some have
 * no image of a short batch. */
FIXTURE_TEST(short_batches_train_without_statistics_of_the_batch)
{
    process whole = process_in(f, NULL, NULL);
    whole.options.freeze = "*.running_*";
    process first = run_all(&whole, 1, 2);
    assert_int_equal(first.result.updates, 2 * ((WITH_SHORT + 1) / 2));
    for (int count = 1; count <= 4; count *= 2) {
        process again = run_all(&whole, count, count == 1 ? 4 : 1);
        assert_string_equal(again.digest, first.digest);
    }
}

/* Stops at every `every`-th call. */
static void expect_same_bits_after_stops(const fixture *f, process whole, int every)
{
    char output[160], last[160];
    process first = run_all(&whole, 1, 2);
    for (int calls = 1; calls < first.calls; calls += every) {
        char name[32], last_name[64];
        snprintf(name, sizeof name, "stopped-%d", calls);
        snprintf(last_name, sizeof last_name, "%s/last.safetensors", name);
        process stopped = whole;
        stopped.options.output = path_in(f, name, output);
        stopped.stops_at = calls;
        stopped.expected = ATT_ERR_STOPPED;
        run_all(&stopped, 1, 2);
        stopped.options.resume = path_in(f, last_name, last);
        stopped.stops_at = 0;
        stopped.expected = ATT_OK;
        run_all(&stopped, 1, 2);
        assert_same_run(f, "whole", name);
    }
}

FIXTURE_TEST(a_stopped_training_continues_to_the_same_bits)
{
    char output[160];
    expect_same_bits_after_stops(f, process_in(f, "whole", output), 5);
}

FIXTURE_TEST(a_stopped_training_with_short_batches_continues_to_the_same_bits)
{
    char output[160];
    process whole = process_in(f, "whole", output);
    whole.options.freeze = "*.running_*";
    expect_same_bits_after_stops(f, whole, is_sanitized() ? 11 : 5);
}

static bool replace_in_file(const fixture *f, const char *name, const char *from, const char *to)
{
    size_t size, length = strlen(from);
    char path[160], *bytes = read_all(f, name, &size);
    bool found = false;
    for (size_t i = 0; i + length <= size && !found; i++)
        if (memcmp(bytes + i, from, length) == 0) {
            memcpy(bytes + i, to, length);
            found = true;
        }
    FILE *file = fopen(path_in(f, name, path), "wb");
    assert_true(file && fwrite(bytes, 1, size, file) == size);
    assert_int_equal(fclose(file), 0);
    free(bytes);
    return found;
}

/* The file's fingerprint of a size is compared when a batch of this size comes. */
FIXTURE_TEST(another_plan_for_a_size_is_refused_when_it_is_used)
{
    char output[160], last[160];
    process p = process_in(f, "whole", output);
    p.stops_at = 8; /* in the second epoch's evaluation or later, after batches of every size */
    p.expected = ATT_ERR_STOPPED;
    run_all(&p, 1, 2);
    assert_true(replace_in_file(f, "whole/last.safetensors", "8x16 precision=f32", "8x16 precision=f23"));
    p.options.resume = path_in(f, "whole/last.safetensors", last);
    p.stops_at = 0;
    p.expected = ATT_ERR_MISMATCH;
    process refused = run_all(&p, 1, 2);
    if (!strstr(refused.message,
                "last.safetensors cannot be resumed exactly: it computes images of 8 x 16 pixels by \"precision=f23 "))
        fail_msg("%s", refused.message);
}

/* Every size keeps to the memory, which is checked before the first update. Less of it changes no bit. */
FIXTURE_TEST(memory_counts_every_size)
{
    if (is_sanitized()) {
        print_message("skipped: several training runs; the same plans are made in the tests above\n");
        skip();
    }
    process p = process_in(f, NULL, NULL);
    process first = run_all(&p, 1, 2);
    p.options.memory = 1000;
    process least = {.calls = 0};
    for (int tries = 0; tries < KINDS && least.calls == 0; tries++) { /* a size can need more than those before it */
        p.may_lack_memory = true;
        least = run_all(&p, 1, 2);
        const char *named = strchr(least.message, '(');
        if (least.calls == 0 && named)
            p.options.memory = atoll(named + 1);
    }
    assert_int_equal(least.calls, first.calls);
    assert_string_equal(least.digest, first.digest);
    assert_true(least.peak < first.peak);
}

FIXTURE_TEST(what_needs_one_size_is_refused)
{
    process p = process_in(f, NULL, NULL);
    p.network = "vit_tiny_patch16_224";
    p.expected = ATT_ERR_UNSUPPORTED;
    process refused = run_all(&p, 1, 2);
    if (!strstr(refused.message,
                "vit_tiny_patch16_224 cannot take images of 16 x 12 pixels beside others: its \"pos_embed\" depends on "
                "their size") &&
        !strstr(refused.message, "its \"pos_embed\" depends on their size"))
        fail_msg("%s", refused.message);
    p.network = "resnet20";
    p.options.batch_size = 30;
    p.expected = ATT_ERR_ARGUMENT;
    refused = run_all(&p, 1, 2);
    if (!strstr(refused.message, "no size of images fills a batch of 30: the 38 training images have 4 sizes"))
        fail_msg("%s", refused.message);
}

/* An evaluation of several sizes gives the figures of evaluations of each image alone. */
FIXTURE_TEST(evaluations_take_every_size)
{
    char output[160];
    const process p = process_in(f, NULL, output);
    opened all = {0};
    att_evaluation together, halves[2];
    att_evaluate_options options = att_evaluate_options_defaults();
    CHECK(f->context, open_all(f->context, &p, &all));
    for (int i = 0; i < 2; i++) {
        options.batch_size = i ? 1 : 3;
        CHECK(f->context, att_evaluate(all.model, all.weights, all.eval, &p.eval_transform, &options, &halves[i]));
    }
    options.batch_size = 16;
    CHECK(f->context, att_evaluate(all.model, all.weights, all.eval, &p.eval_transform, &options, &together));
    assert_int_equal(together.count, SIZED_EVAL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(halves[i].count, SIZED_EVAL);
        assert_float_equal(halves[i].metrics[LOSS], together.metrics[LOSS], 1e-6); /* measured: 6e-9 */
        assert_true(halves[i].metrics[TOP1] == together.metrics[TOP1]);
    }
    options.fgsm = 0.1;
    assert_fails(f->context, att_evaluate(all.model, all.weights, all.eval, &p.eval_transform, &options, NULL),
                 ATT_ERR_UNSUPPORTED,
                 "adversarial images and images of several sizes (crop mode \"keep\") cannot be combined");
    att_weights_destroy(&all.weights);
    att_model_destroy(&all.model);
    att_dataset_close(&all.eval);
    att_dataset_close(&all.train);
}

TEST(large_images_are_evaluated_in_smaller_batches)
{
    att_transform_options transform = att_transform_options_defaults(224, 224, 3);
    assert_int_equal(att_evaluate_batch(&transform, 256, NULL), 256);
    assert_int_equal(att_evaluate_batch(&transform, 1000, NULL), 334);
    transform = att_transform_options_defaults(800, 1333, 3);
    assert_int_equal(att_evaluate_batch(&transform, 256, NULL), 15);
    transform.crop = ATT_CROP_WITHIN;
    transform.height = transform.width = 0;
    assert_int_equal(att_evaluate_batch(&transform, 256, NULL), 15);
    assert_int_equal(att_evaluate_batch(&transform, 4, NULL), 4);
    transform = att_transform_options_defaults(16384, 16384, 3);
    assert_int_equal(att_evaluate_batch(&transform, 256, NULL), 1);
}
