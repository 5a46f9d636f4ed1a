/* Mixup and CutMix of images: with fixed draws against timm (tests/goldens/mix.txt), draws against their distributions,
 * and the batches of the loader. */
#include "base/io/golden.h"
#include "data/mix.h"
#include "data/pictures.h"

enum { HEIGHT = 6, WIDTH = 8, COUNT = 4, FLOATS = HEIGHT * WIDTH * 3, DRAWS = 20000 };

static att_mix_options both(void)
{
    return (att_mix_options){.mixup = 0.8, .cutmix = 1, .prob = 1, .switch_prob = 0.5};
}

/* Mixes targets that are weights by lambda. user: the number of weights. */
static void mix_weights(const void *user, void *const *own, const void *const *other, const att_mixing *mixing)
{
    float *mine = own[0];
    const float *others = other[0];
    for (int c = 0; c < *(const int *)user; c++)
        mine[c] = mine[c] * (float)mixing->lambda + others[c] * (float)(1 - mixing->lambda);
}

/* --- against timm ------------------------------------------------------------------------------------------------ */

static void fill_images(float images[COUNT * FLOATS])
{
    for (int k = 0; k < COUNT * FLOATS; k++)
        images[k] = (float)(7 * k % 101) / 8 - 5;
}

static void assert_hash(const void *bytes, size_t size, const char *expected, const char *line)
{
    char found[32];
    snprintf(found, sizeof found, "%016" PRIx64, golden_hash(bytes, size));
    if (strcmp(found, expected) != 0)
        fail_msg("%s: found %s", line, found);
}

static bool check_box(const char *line)
{
    int height, width, y, x, top, bottom, left, right;
    double lambda, expected;
    if (sscanf(line, "box %d %d %lf %d %d %d %d %d %d %lf", &height, &width, &lambda, &y, &x, &top, &bottom, &left,
               &right, &expected) != 10)
        return false;
    att_mixing mixing = att_mix_box(height, width, lambda, y, x);
    assert_true(mixing.top == top && mixing.bottom == bottom && mixing.left == left && mixing.right == right);
    assert_float_equal(mixing.lambda, expected, 1e-15); /* measured: 0 */
    return true;
}

static bool check_mixed(const char *line)
{
    int kind, y, x;
    double lambda;
    char image_hash[32];
    if (sscanf(line, "mixed %d %lf %d %d %31s", &kind, &lambda, &y, &x, image_hash) != 5)
        return false;
    float images[COUNT * FLOATS];
    fill_images(images);
    att_mixing mixing = kind ? att_mix_box(HEIGHT, WIDTH, lambda, y, x) : (att_mixing){.lambda = lambda};
    for (int i = 0; i < COUNT / 2; i++)
        att_mix_images(&mixing, &mixing, HEIGHT, WIDTH, 3, images + i * FLOATS, images + (COUNT - 1 - i) * FLOATS);
    assert_hash(images, sizeof images, image_hash, line);
    return true;
}

TEST(fixed_draws_give_timms_images)
{
    char path[4096], line[256];
    int count = 0;
    golden_path("mix.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); count++)
        assert_true(check_box(line) || check_mixed(line));
    fclose(file);
    assert_int_equal(count, 45 + 4);
}

/* --- draws ------------------------------------------------------------------------------------------------------- */

/* Expected: mean 1/2 and variance 1 / (4 (2 alpha + 1)). */
TEST(beta_draws_have_their_mean_and_variance)
{
    static const double alphas[] = {0.05, 0.2, 0.8, 1, 3};
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        att_random random = att_random_from(a + 1);
        double sum = 0, squares = 0, variance = 1 / (4 * (2 * alphas[a] + 1));
        for (int i = 0; i < DRAWS; i++) {
            double x = att_mix_draw_beta(&random, alphas[a]);
            assert_true(x >= 0 && x <= 1);
            sum += x;
            squares += (x - 0.5) * (x - 0.5);
        }
        /* Four deviations of the mean. The deviation of the variance is below 1.2 % at DRAWS; the limit is 4 %. */
        assert_float_equal(sum / DRAWS, 0.5, 4 * sqrt(variance / DRAWS));
        assert_float_equal(squares / DRAWS / variance, 1, 0.04);
    }
    att_random random = att_random_from(7); /* both draws underflow */
    for (int i = 0; i < 100; i++) {
        double x = att_mix_draw_beta(&random, 1e-309);
        assert_true(x == 0 || x == 1);
    }
}

/* What the pixels of image i show. Before mixing, image i is filled with i + 1. */
typedef struct fate {
    bool mixed, cut;
    double share; /* of its own pixels */
} fate;

static fate look(const float *image, float own, float other)
{
    int kept = 0, taken = 0;
    double sum = 0;
    for (int k = 0; k < FLOATS; k++) {
        kept += image[k] == own;
        taken += image[k] == other;
        sum += (double)(image[k] - other) / (double)(own - other);
    }
    fate seen = {kept < FLOATS, kept + taken == FLOATS && taken > 0, sum / FLOATS};
    return seen;
}

/* targets[i]: the share of each image in image i. */
static void run_batch(const att_mix_options *mix, int64_t epoch, int64_t number, float *images, float *targets)
{
    static const int count = COUNT;
    static const size_t row_bytes[2] = {FLOATS * sizeof(float), COUNT * sizeof(float)};
    float room[COUNT];
    void *data[2] = {images, targets}, *spare[1] = {room};
    att_loader_options options = att_loader_options_defaults(HEIGHT, WIDTH, 3);
    options.mix = *mix;
    options.seed = 5;
    options.targets = (att_target_rules){.count = 1, .mix = mix_weights, .user = &count};
    const att_field fields[] = {{"", ATT_F32, {3, {HEIGHT, WIDTH, 3}}}};
    att_batch batch = {.epoch = epoch, .number = number, .count = COUNT, .fields = fields};
    for (int k = 0; k < COUNT * FLOATS; k++)
        images[k] = (float)(k / FLOATS + 1);
    for (int k = 0; k < COUNT * COUNT; k++)
        targets[k] = k / COUNT == k % COUNT;
    const att_share share = {.size = COUNT, .end = COUNT};
    att_mix_batch(&options, &batch, &share, data, row_bytes, spare);
}

/* Checks that the targets are the shares of the pixels. */
static void assert_targets(const float *images, const float *targets, fate fates[COUNT])
{
    for (int i = 0; i < COUNT; i++) {
        int j = COUNT - 1 - i;
        fates[i] = look(images + i * FLOATS, (float)(i + 1), (float)(j + 1));
        for (int c = 0; c < COUNT; c++) {
            double expected = c == i ? fates[i].share : c == j ? 1 - fates[i].share : 0;
            assert_float_equal(targets[i * COUNT + c], expected, 1e-5); /* measured: 2e-7 */
        }
    }
}

TEST(batches_pairs_or_images_share_draws)
{
    float images[COUNT * FLOATS], targets[COUNT * COUNT];
    for (att_mix_mode mode = ATT_MIX_BATCH; mode <= ATT_MIX_ELEM; mode++) {
        att_mix_options options = both();
        int alike = 0, pairs_alike = 0, cuts = 0, mixed = 0;
        options.mode = mode;
        options.prob = 0.6;
        for (int number = 0; number < 2000; number++) {
            fate fates[COUNT];
            run_batch(&options, 1, number, images, targets);
            assert_targets(images, targets, fates);
            pairs_alike += fabs(fates[0].share - fates[3].share) < 1e-5;
            alike += fabs(fates[0].share - fates[1].share) < 1e-5;
            cuts += fates[0].cut;
            mixed += fates[0].mixed;
        }
        assert_int_equal(pairs_alike == 2000, mode != ATT_MIX_ELEM);
        assert_int_equal(alike == 2000, mode == ATT_MIX_BATCH);
        /* 1200 +- 22 images are drawn to be mixed; a few boxes are empty. Measured: 5.0 % */
        assert_true(mixed > 1200 - 60 - 88 && mixed < 1200 + 88);
        assert_true(abs(cuts - 570) < 80);
    }
}

TEST(cutmix_minmax_bounds_the_box)
{
    float images[COUNT * FLOATS], targets[COUNT * COUNT];
    att_mix_options options = {.cutmix_minmax = {0.25, 0.75}, .prob = 1};
    for (int number = 0; number < 500; number++) {
        fate fates[COUNT];
        run_batch(&options, 1, number, images, targets);
        assert_targets(images, targets, fates);
        /* heights int(6 / 4) = 1 to 3, widths 2 to 5 */
        double taken = (1 - fates[0].share) * HEIGHT * WIDTH;
        assert_true(fates[0].cut && taken > 1.99 && taken < 15.01);
    }
}

TEST(mixing_ends_at_off_epoch)
{
    float images[COUNT * FLOATS], targets[COUNT * COUNT];
    att_mix_options options = both();
    options.off_epoch = 3;
    for (int epoch = 2; epoch < 5; epoch++) {
        int mixed = 0;
        for (int number = 0; number < 20; number++) {
            fate fates[COUNT];
            run_batch(&options, epoch, number, images, targets);
            assert_targets(images, targets, fates);
            mixed += fates[0].mixed;
        }
        assert_int_equal(mixed > 0, epoch == 2);
    }
}

/* --- the loader -------------------------------------------------------------------------------------------------- */

enum { IMAGES = 300, BATCH = 8, PIXELS = PICTURE_SIDE * PICTURE_SIDE };

typedef struct seen {
    float images[IMAGES * PIXELS], targets[IMAGES * 7];
    int64_t indices[IMAGES];
    int count;
} seen;

static att_status fill_weights(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                               const att_geometry *geometry, void *const *fields)
{
    (void)context, (void)geometry;
    for (int c = 0; c < *(const int *)user; c++)
        ((float *)fields[0])[c] = c == att_dataset_label(dataset, index);
    return ATT_OK;
}

static void run_epoch(scratch *self, const att_dataset *dataset, int workers, int repeats, int64_t from, seen *all)
{
    att_loader_options options = att_loader_options_defaults(PICTURE_SIDE, PICTURE_SIDE, 1);
    options.transform.erase = 0.5;
    options.transform.flip = 0.5;
    options.transform.color_jitter[0] = 0.4;
    options.mix = both();
    static const int classes = 7;
    static const att_field field = {.name = "weights", .dtype = ATT_F32, .shape = {1, {7}}};
    options.targets =
        (att_target_rules){.fields = &field, .count = 1, .fill = fill_weights, .mix = mix_weights, .user = &classes};
    options.repeats = repeats;
    options.batch_size = BATCH;
    options.workers = workers;
    options.shuffle = options.drop_last = true;
    att_loader *loader = NULL;
    assert_int_equal(att_loader_create(self->context, dataset, &options, &loader), ATT_OK);
    assert_int_equal(att_loader_start(loader, 2, from), ATT_OK);
    att_batch batch = {.count = 1};
    *all = (seen){.count = 0};
    while (batch.count > 0) {
        CHECK(self->context, att_loader_next(loader, &batch));
        if (batch.count > 0) {
            memcpy(all->images + all->count * PIXELS, batch.data[0], (size_t)batch.count * PIXELS * sizeof(float));
            memcpy(all->targets + all->count * 7, batch.data[1], (size_t)batch.count * 7 * sizeof(float));
            memcpy(all->indices + all->count, batch.indices, (size_t)batch.count * sizeof(int64_t));
        }
        all->count += batch.count;
    }
    att_loader_destroy(&loader);
}

SCRATCH_TEST(workers_change_no_bit)
{
    static seen alone, several, rest;
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open(self->context, self->folder, NULL, &dataset), ATT_OK);
    run_epoch(self, dataset, 0, 3, 0, &alone);
    run_epoch(self, dataset, 3, 3, 0, &several);
    assert_memory_equal(&alone, &several, sizeof alone);
    run_epoch(self, dataset, 2, 3, 20, &rest);
    assert_int_equal(rest.count, alone.count - 20 * BATCH);
    assert_memory_equal(rest.images, alone.images + 20 * BATCH * PIXELS, (size_t)rest.count * PIXELS * sizeof(float));
    assert_memory_equal(rest.targets, alone.targets + 20 * BATCH * 7, (size_t)rest.count * 7 * sizeof(float));
    att_dataset_close(&dataset);
}

SCRATCH_TEST(each_image_is_repeated_in_a_row)
{
    static seen all;
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open(self->context, self->folder, NULL, &dataset), ATT_OK);
    run_epoch(self, dataset, 0, 3, 0, &all);
    assert_int_equal(all.count, 256); /* 300 rounded down to a multiple of 256 */
    bool used[IMAGES] = {false};
    for (int i = 0; i < all.count; i++) {
        assert_true(all.indices[i] == all.indices[i / 3 * 3]);
        if (i % 3 == 0) {
            assert_false(used[all.indices[i]]);
            used[all.indices[i]] = true;
        }
    }
    att_dataset_close(&dataset);
}

static void expect_wrong(scratch *self, att_mix_options options, const char *part)
{
    assert_fails(self->context, att_mix_check(self->context, &options), ATT_ERR_ARGUMENT, part);
}

SCRATCH_TEST(wrong_options_are_refused)
{
    att_mix_options options = both();
    options.prob = NAN;
    expect_wrong(self, options, "prob");
    options = both();
    options.mixup = -1;
    expect_wrong(self, options, "mixup");
    options = both();
    options.cutmix_minmax[0] = 0.5;
    expect_wrong(self, options, "cutmix_minmax");
    options.cutmix_minmax[1] = 0.5;
    expect_wrong(self, options, "cutmix_minmax");
    options = both();
    options.mode = (att_mix_mode)3;
    expect_wrong(self, options, "mode");
}
