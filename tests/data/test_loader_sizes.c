/* Loaders whose images keep their aspect ratio: each batch holds images of one size. */
#include <attscope/data.h>

#include "base/comm/threads.h"
#include "base/core/memory.h"
#include "data/buckets.h"
#include "data/loading.h"
#include "data/pictures.h"

/* Image i has sides of sizes[i % SIZES] and is filled with i + 1. Longer side at most 16, filled up to multiples of 4:
 * 16 x 12, 12 x 16, 16 x 8 and 16 x 16 (a square of 10 is scaled up to 12, so it has a shape of its own). */
enum { IMAGES = 41, BATCH = 4, SIZES = 5, MOST = 16 * 16 };
static const int sizes[SIZES][2] = {{8, 6}, {12, 16}, {30, 12}, {10, 10}, {16, 12}};
static const int results[SIZES][2] = {{16, 12}, {12, 16}, {16, 8}, {12, 12}, {16, 12}};

static void write_images(const scratch *self)
{
    char name[64];
    for (int i = 0; i < IMAGES; i++) {
        snprintf(name, sizeof name, "%s/%02d.png", i < 20 ? "cat" : "dog", i);
        picture_write_sized(self, name, i + 1, sizes[i % SIZES][0], sizes[i % SIZES][1]);
    }
}

/* A target that has the sides of the image: 1000 index + the sum of coordinates. */
static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields)
{
    (void)user, (void)context, (void)dataset;
    int32_t *to = fields[0];
    for (int y = 0; y < geometry->height; y++)
        for (int x = 0; x < geometry->width; x++)
            *to++ = (int32_t)(1000 * index + x + y);
    return ATT_OK;
}

static const att_field mask = {"mask", ATT_I32, {2, {ATT_IMAGE_HEIGHT, ATT_IMAGE_WIDTH}}};

static att_loader_options sized_options(int workers)
{
    att_loader_options options = att_loader_options_defaults(0, 0, 1);
    options.transform.crop = ATT_CROP_KEEP;
    options.transform.interpolation = ATT_BILINEAR;
    options.transform.longer = 16;
    options.transform.shorter = 12;
    options.transform.divisor = 4;
    options.transform.mean[0] = 0;
    options.transform.std[0] = 1.0f / 255.0f;
    options.batch_size = BATCH;
    options.workers = workers;
    options.prefetch = 3;
    options.seed = 5;
    options.targets = (att_target_rules){.fields = &mask, .count = 1, .fill = fill};
    return options;
}

/* Returns what is wrong with a sample, or NULL. `row`: among those of this process. */
static const char *check_sample(const att_batch *batch, int row)
{
    const int64_t *sides = batch->fields[0].shape.dims, count = sides[0] * sides[1];
    const int64_t index = batch->indices[batch->first_row + row];
    const int *result = results[index % SIZES];
    const float *image = (const float *)att_batch_rows(batch, "") + row * count;
    const int32_t *target = (const int32_t *)att_batch_rows(batch, "mask") + row * count;
    if (sides[1] != result[0] || sides[0] != result[1] || sides[2] != 1)
        return "an image has another size than its batch";
    if (batch->fields[1].shape.dims[0] != sides[0] || batch->fields[1].shape.dims[1] != sides[1])
        return "a target has another size than its image";
    if (lrintf(image[0]) != index + 1)
        return "an image has another index";
    for (int64_t i = 0; i < count; i++)
        if (target[i] != 1000 * index + i % sides[1] + i / sides[1])
            return "a target has another index";
    return NULL;
}

static void assert_sample(const att_batch *batch, int row)
{
    const char *wrong = check_sample(batch, row);
    if (wrong)
        fail_msg("%s", wrong);
}

SCRATCH_TEST(batches_hold_images_of_one_size)
{
    write_images(self);
    att_dataset *dataset = open_folder(self);
    att_loader_options options = sized_options(2);
    options.shuffle = true;
    att_loader *loader = make_loader(self, dataset, &options);
    static const att_loader_shape shapes[] = {
        {16, 12, 8, 2}, {12, 16, 17, 5}, {12, 12, 8, 2}, {8, 16, 8, 2}, {0, 0, 0, 0}};
    assert_int_equal(att_loader_shape_count(loader), 4);
    for (int i = 0; i < 5; i++) {
        const att_loader_shape shape = att_loader_shape_at(loader, i);
        assert_memory_equal(&shape, &shapes[i], sizeof shape);
    }
    assert_int_equal(att_loader_batches(loader), 11);
    for (int epoch = 0; epoch < 3; epoch++) {
        bool seen[IMAGES] = {false};
        int batches = 0;
        CHECK(self->context, att_loader_start(loader, epoch, 0));
        for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader)) {
            assert_int_equal(batch.count, batches == 10 ? 1 : BATCH);
            assert_int_equal(batch.number, batches++);
            for (int i = 0; i < batch.count; i++) {
                assert_sample(&batch, i);
                assert_false(seen[batch.indices[i]]);
                seen[batch.indices[i]] = true;
            }
        }
        assert_int_equal(batches, 11);
    }
    assert_int_equal(att_loader_describe(loader).images, 3 * IMAGES);
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
}

/* Without shuffling, size after size: an evaluation needs the memory of one size at a time. */
SCRATCH_TEST(images_in_their_order_come_size_after_size)
{
    static const int64_t expected[] = {1,  6,  11, 16, 21, 26, 31, 36, 0,  4,  5,  9,  10, 14,
                                       15, 19, 20, 24, 25, 29, 30, 34, 35, 39, 40, 3,  8,  13,
                                       18, 23, 28, 33, 38, 2,  7,  12, 17, 22, 27, 32, 37};
    write_images(self);
    att_dataset *dataset = open_folder(self);
    for (int drop = 0; drop < 2; drop++) {
        att_loader_options options = sized_options(0);
        options.drop_last = drop;
        att_loader *loader = make_loader(self, dataset, &options);
        int64_t at = 0;
        assert_int_equal(att_loader_batches(loader), drop ? 10 : 11);
        for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader))
            for (int i = 0; i < batch.count; i++) {
                at += drop && expected[at] == 40; /* alone in its batch */
                assert_int_equal(batch.indices[i], expected[at++]);
            }
        assert_int_equal(at, IMAGES);
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}

/* A bucket is the next batch when it is full. */
TEST(full_buckets_come_first_and_short_ones_by_size)
{
    static const int64_t order[] = {7, 0, 1, 2, 3, 4, 5, 6};
    int64_t filled[8], counts[] = {4, 4}, begins[6] = {0}, seen[2], first[] = {0, 2}, batch_of[5];
    int32_t shape_of[] = {0, 1, 0, 1, 0, 1, 0, 1}, batch_shape[6];
    att_buckets buckets = {.batch_size = 2,
                           .images = 8,
                           .shape_count = 2,
                           .counts = counts,
                           .shape_of = shape_of,
                           .batches = 4,
                           .begins = begins,
                           .batch_shape = batch_shape,
                           .seen = seen,
                           .first = first,
                           .batch_of = batch_of};
    att_buckets_fill(&buckets, order, filled);
    /* 7, 1 is full first, then 0, 2, then 3, 5 and 4, 6. */
    static const int64_t wanted[] = {7, 1, 0, 2, 3, 5, 4, 6};
    assert_memory_equal(filled, wanted, sizeof wanted);
    /* Short batches come last, the first shape first. */
    static const int64_t five[] = {1, 0, 3, 2, 4}, short_last[] = {1, 3, 0, 2, 4};
    counts[0] = 3;
    counts[1] = 2;
    buckets.images = 5;
    buckets.batches = 3;
    att_buckets_fill(&buckets, five, filled);
    assert_memory_equal(filled, short_last, sizeof short_last);
    assert_int_equal(begins[3] - begins[2], 1);
}

/* --- the same for any number of threads and processes ------------------------------------------------------------- */

typedef struct epoch_record {
    const scratch *files;
    int workers;
    int64_t epoch, first;
    int64_t order[IMAGES];
    int count;
} epoch_record;

static const char *record(att_context *context, att_comm *comm, void *user)
{
    epoch_record *it = user;
    att_dataset *dataset = NULL;
    att_loader *loader = NULL;
    att_batch batch = {.count = 1};
    const char *wrong = NULL;
    att_loader_options options = sized_options(it->workers);
    options.shuffle = true;
    options.comm = comm;
    options.targets.local = comm && att_comm_size(comm) % 2;
    it->count = 0;
    if (att_dataset_open(context, it->files->folder, NULL, &dataset) != ATT_OK ||
        att_loader_create(context, dataset, &options, &loader) != ATT_OK ||
        att_loader_start(loader, it->epoch, it->first) != ATT_OK)
        wrong = att_context_message(context);
    while (!wrong && batch.count > 0) {
        if (att_loader_next(loader, &batch) != ATT_OK)
            wrong = att_context_message(context);
        for (int i = 0; !wrong && i < batch.rows; i++)
            wrong = check_sample(&batch, i);
        for (int i = 0; !wrong && i < batch.count; i++)
            it->order[it->count++] = batch.indices[i];
    }
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
    return wrong;
}

SCRATCH_TEST(order_depends_on_seed_and_epoch_only)
{
    epoch_record alone = {.files = self, .epoch = 3}, other = {.files = self, .epoch = 4};
    write_images(self);
    assert_null(record(self->context, NULL, &alone));
    assert_null(record(self->context, NULL, &other));
    assert_int_equal(alone.count, IMAGES);
    assert_memory_not_equal(alone.order, other.order, sizeof alone.order);
    for (int workers = 0; workers < 4; workers++) {
        epoch_record again = {.files = self, .epoch = 3, .workers = workers};
        assert_null(record(self->context, NULL, &again));
        assert_memory_equal(again.order, alone.order, sizeof alone.order);
        again.first = 6; /* in the middle of the epoch */
        assert_null(record(self->context, NULL, &again));
        assert_int_equal(again.count, IMAGES - 6 * BATCH);
        assert_memory_equal(again.order, alone.order + 6 * BATCH, (size_t)again.count * sizeof *again.order);
    }
    for (int size = 2; size <= MOST_RANKS; size++) {
        epoch_record ranks[MOST_RANKS];
        for (int rank = 0; rank < size; rank++)
            ranks[rank] = (epoch_record){.files = self, .epoch = 3, .workers = 1};
        run_ranks(size, 1, record, ranks, sizeof *ranks);
        for (int rank = 0; rank < size; rank++)
            assert_memory_equal(ranks[rank].order, alone.order, sizeof alone.order);
    }
}

/* CutMix: every pixel is the image's or its partner's, of the same batch. */
SCRATCH_TEST(images_of_one_size_are_mixed)
{
    write_images(self);
    att_dataset *dataset = open_folder(self);
    att_loader_options options = sized_options(2);
    options.mix.cutmix = 1;
    options.targets.count = 0;
    int cut = 0;
    att_loader *loader = make_loader(self, dataset, &options);
    for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader)) {
        const int64_t count = att_shape_count(batch.fields[0].shape);
        for (int i = 0; i < batch.count; i++)
            for (int64_t k = 0; k < count; k++) {
                const int64_t value = lrintf(((const float *)batch.data[0])[i * count + k]) - 1;
                assert_true(value == -1 || value == batch.indices[i] || value == batch.indices[batch.count - 1 - i]);
                cut += value >= 0 && value != batch.indices[i];
            }
    }
    assert_true(cut > 200); /* measured: 2286 */
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
}

/* --- corrupt images ----------------------------------------------------------------------------------------------- */

static void cut_file(const scratch *self, const char *name, int bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    assert_int_equal(truncate(path, bytes), 0);
}

/* 06 (12 x 16) lacks its pixels, 07 (30 x 12) its header, too. */
SCRATCH_TEST(corrupt_images_are_replaced_by_some_of_their_size)
{
    write_images(self);
    cut_file(self, "cat/06.png", 40);
    cut_file(self, "cat/07.png", 10);
    att_dataset *dataset = open_folder(self);
    for (int workers = 0; workers < 3; workers++) {
        att_loader_options options = sized_options(workers);
        options.corrupt = ATT_CORRUPT_REPLACED;
        att_loader *loader = make_loader(self, dataset, &options);
        int seen[IMAGES] = {0}, count = 0;
        for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader))
            for (int i = 0; i < batch.count; i++, count++) {
                assert_sample(&batch, i);
                seen[batch.indices[i]]++;
            }
        assert_int_equal(count, IMAGES);
        assert_int_equal(seen[6] + seen[7], 0);
        assert_int_equal(seen[11], 2); /* the next of the size of 06 */
        assert_int_equal(att_loader_describe(loader).corrupt, 2);
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(an_image_without_a_header_is_refused)
{
    write_images(self);
    cut_file(self, "cat/07.png", 10);
    att_dataset *dataset = open_folder(self);
    const att_loader_options options = sized_options(1);
    att_loader *loader = NULL;
    assert_fails(self->context, att_loader_create(self->context, dataset, &options, &loader), ATT_ERR_FORMAT,
                 "cat/07.png");
    att_dataset_close(&dataset);
}

/* --- choosing a crop ---------------------------------------------------------------------------------------------- */

typedef struct choice {
    int chosen, calls;
    double left[ATT_CROP_CHOICES], taken;
} choice;

static att_status choose(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                         const att_geometry crops[ATT_CROP_CHOICES], double most, int *chosen)
{
    choice *it = *(choice *const *)user;
    (void)dataset, (void)index;
    assert_float_equal(most, 0.75, 0);
    for (int i = 0; i < ATT_CROP_CHOICES; i++)
        it->left[i] = crops[i].map[0][2];
    *chosen = it->chosen;
    it->calls++;
    return it->chosen < ATT_CROP_CHOICES ? ATT_OK : att_fail(context, ATT_ERR_FORMAT, "its mask is wrong");
}

static att_status note_geometry(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                                const att_geometry *geometry, void *const *fields)
{
    (void)context, (void)dataset, (void)index, (void)fields;
    (*(choice *const *)user)->taken = geometry->map[0][2];
    return ATT_OK;
}

SCRATCH_TEST(targets_choose_the_crop)
{
    static const att_field none = {"none", ATT_I32, {0}};
    choice made = {0}, *of = &made;
    picture_write_sized(self, "cat/0.png", 7, 200, 100);
    att_dataset *dataset = open_folder(self);
    att_loader_options options = att_loader_options_defaults(20, 20, 1);
    options.transform.crop = ATT_CROP_SCALED;
    options.transform.longer = 200;
    options.transform.shorter = 100;
    options.transform.cat_max_ratio = 0.75;
    options.workers = 0;
    options.targets =
        (att_target_rules){.fields = &none, .count = 1, .fill = note_geometry, .choose_crop = choose, .user = &of};
    att_loader *loader = make_loader(self, dataset, &options);
    att_batch batch;
    for (made.chosen = 0; made.chosen < ATT_CROP_CHOICES; made.chosen++) {
        CHECK(self->context, att_loader_start(loader, 0, 0));
        next(self, loader);
        assert_int_equal(made.calls, made.chosen + 1);
        assert_true(made.taken == made.left[made.chosen]);
    }
    CHECK(self->context, att_loader_start(loader, 0, 0));
    assert_fails(self->context, att_loader_next(loader, &batch), ATT_ERR_FORMAT, "its mask is wrong");
    att_loader_destroy(&loader);
    options.targets.choose_crop = NULL;
    assert_fails(
        self->context, att_loader_create(self->context, dataset, &options, &loader), ATT_ERR_UNSUPPORTED,
        "--cat-max-ratio (cat_max_ratio) 0.75 limits the share of a class in the mask of a crop, but the targets of "
        "this task are no masks; leave it out");
    att_dataset_close(&dataset);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(repeats_of_images_of_several_sizes_are_refused)
{
    write_images(self);
    att_dataset *dataset = open_folder(self);
    att_loader_options options = sized_options(1);
    att_loader *loader = NULL;
    options.repeats = 2;
    assert_fails(self->context, att_loader_create(self->context, dataset, &options, &loader), ATT_ERR_ARGUMENT,
                 "loader: repeated augmentation needs images of one size");
    att_dataset_close(&dataset);
}

static att_dataset *memory_set;

static att_status load_all(scratch *self)
{
    att_loader_options options = sized_options(0);
    options.shuffle = true;
    return load_epoch(self, memory_set, &options);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    picture_write_sized(self, "cat/0.png", 1, 8, 6);
    picture_write_sized(self, "cat/1.png", 2, 6, 8);
    memory_set = open_folder(self);
    assert_survives_lack_of_memory(self, load_all);
    att_dataset_close(&memory_set);
}
