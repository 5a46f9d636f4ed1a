#include <attscope/data.h>

#include "base/comm/threads.h"
#include "base/core/memory.h"
#include "base/io/jpeg.h"
#include "data/labels.h"
#include "data/loading.h"
#include "data/pictures.h"
#include "data/slot.h"

enum { IMAGES = 50, BATCH = 8, SIDE = PICTURE_SIDE, FLOATS = SIDE * SIDE };

static att_loader_options plain_options(int workers)
{
    att_loader_options options = att_loader_options_defaults(SIDE, SIDE, 1);
    options.transform.mean[0] = 0;
    options.transform.std[0] = 1.0f / 255.0f;
    options.batch_size = BATCH;
    options.workers = workers;
    options.prefetch = 3;
    options.seed = 5;
    options.targets = labels_rules();
    return options;
}

static void start(scratch *self, att_loader *loader, int64_t epoch, int64_t batch)
{
    CHECK(self->context, att_loader_start(loader, epoch, batch));
}

SCRATCH_TEST(batches_come_in_order)
{
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = open_folder(self);
    for (int workers = 0; workers < 4; workers++) {
        att_loader_options options = plain_options(workers);
        att_loader *loader = make_loader(self, dataset, &options);
        assert_int_equal(att_loader_batches(loader), 7);
        for (int epoch = 0; epoch < 2; epoch++) {
            int at = 0;
            start(self, loader, epoch, 0);
            for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader)) {
                assert_int_equal(batch.epoch, epoch);
                assert_int_equal(batch.number, at / BATCH);
                assert_int_equal(batch.count, IMAGES - at < BATCH ? IMAGES - at : BATCH);
                for (int i = 0; i < batch.count; i++, at++) {
                    assert_int_equal(batch.indices[i], at);
                    assert_int_equal(labels_of(&batch)[i], at % 7);
                    assert_true(images_of(&batch)[i * FLOATS] > (float)at - 0.1f);
                    assert_true(images_of(&batch)[i * FLOATS + FLOATS - 1] < (float)at + 0.1f);
                }
            }
            assert_int_equal(at, IMAGES);
            assert_int_equal(next(self, loader).count, 0);
        }
        assert_int_equal(att_loader_describe(loader).images, 2 * IMAGES);
        assert_true(att_loader_describe(loader).wait_seconds > 0);
        att_loader_destroy(&loader);
        assert_null(loader);
    }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(a_limit_spreads_over_the_data_set)
{
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = open_folder(self);
    static const int64_t limits[] = {1, 9, IMAGES - 1, IMAGES, 10 * IMAGES};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        const int64_t images = limits[l] < IMAGES ? limits[l] : IMAGES;
        att_loader_options options = plain_options(2);
        options.limit = limits[l];
        att_loader *loader = make_loader(self, dataset, &options);
        assert_int_equal(att_loader_batches(loader), (images + BATCH - 1) / BATCH);
        assert_int_equal(att_loader_shape_at(loader, 0).images, images);
        int64_t at = 0;
        for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader))
            for (int i = 0; i < batch.count; i++, at++) {
                assert_int_equal(batch.indices[i], at * IMAGES / images);
                assert_int_equal(labels_of(&batch)[i], batch.indices[i] % 7);
            }
        assert_int_equal(at, images);
        att_loader_destroy(&loader);
    }
    att_loader_options options = plain_options(0);
    att_loader *loader;
    options.limit = 3;
    options.shuffle = true;
    assert_fails(self->context, att_loader_create(self->context, dataset, &options, &loader), ATT_ERR_ARGUMENT,
                 "a limit needs images of one size, in their order");
    att_dataset_close(&dataset);
}

/* Records order and pixels of an epoch from batch `first` on, one after another. Returns the number of images. */
static int record(scratch *self, att_loader *loader, int64_t epoch, int64_t first, int64_t *indices, float *images)
{
    int count = 0;
    start(self, loader, epoch, first);
    for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader)) {
        memcpy(indices + count, batch.indices, (size_t)batch.count * sizeof(*indices));
        memcpy(images + count * FLOATS, images_of(&batch), (size_t)(batch.count * FLOATS) * sizeof(*images));
        count += batch.count;
    }
    return count;
}

SCRATCH_TEST(workers_change_no_bit)
{
    static int64_t first_order[IMAGES], order[IMAGES], next_order[IMAGES];
    static float first_images[IMAGES * FLOATS], images[IMAGES * FLOATS];
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = open_folder(self);
    for (int workers = 0; workers < 5; workers++) {
        att_loader_options options = plain_options(workers);
        options.shuffle = options.drop_last = true;
        options.transform.crop = ATT_CROP_PAD;
        options.transform.pad = 2;
        options.transform.flip = 0.5;
        att_loader *loader = make_loader(self, dataset, &options);
        assert_int_equal(att_loader_batches(loader), 6);
        assert_int_equal(record(self, loader, 4, 0, order, images), 48);
        if (workers == 0) {
            memcpy(first_order, order, sizeof(order));
            memcpy(first_images, images, sizeof(images));
        }
        assert_memory_equal(order, first_order, 48 * sizeof(*order));
        assert_memory_equal(images, first_images, 48 * FLOATS * sizeof(*images));
        bool seen[IMAGES] = {false};
        for (int i = 0; i < 48; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
        }
        record(self, loader, 5, 0, next_order, images);
        assert_memory_not_equal(order, next_order, 48 * sizeof(*order));
        /* Starting in the middle of an earlier epoch gives the same batches again. */
        assert_int_equal(record(self, loader, 4, 4, order, images), 16);
        assert_memory_equal(order, first_order + 32, 16 * sizeof(*order));
        assert_memory_equal(images, first_images + 32 * FLOATS, 16 * FLOATS * sizeof(*images));
        assert_int_equal(record(self, loader, 4, 6, order, images), 0);
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(a_loader_can_be_restarted_or_destroyed_at_any_time)
{
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = open_folder(self);
    for (int taken = 0; taken < 30; taken++) {
        att_loader_options options = plain_options(3);
        att_loader *loader = make_loader(self, dataset, &options);
        for (int i = 0; i < taken % 6; i++)
            next(self, loader);
        if (taken % 2)
            start(self, loader, 1, taken % 7);
        att_loader_destroy(&loader);
    }
    att_loader *none = NULL;
    att_loader_destroy(&none);
    att_loader_destroy(NULL);
    att_dataset_close(&dataset);
}

/* Writes 20 files, of which 3, 4 and the eight of the second batch are not images. */
static void write_damaged(const scratch *self)
{
    char name[64], path[256];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "%s/%d.png", i < 6 ? "cat" : "dog", i);
        picture_write(self, name, i);
        if (i == 3 || i == 4 || (i >= 8 && i < 16)) {
            snprintf(path, sizeof(path), "%s/%s", self->folder, name);
            assert_int_equal(truncate(path, 30), 0);
        }
    }
}

SCRATCH_TEST(corrupt_images_are_errors_by_default)
{
    write_damaged(self);
    att_dataset *dataset = open_folder(self);
    for (int workers = 0; workers < 4; workers++) {
        att_loader_options options = plain_options(workers);
        att_loader *loader = make_loader(self, dataset, &options);
        att_batch batch;
        for (int again = 0; again < 2; again++) {
            assert_fails(self->context, att_loader_next(loader, &batch), ATT_ERR_FORMAT, "cat/3.png");
        }
        start(self, loader, 0, 2);
        assert_int_equal(next(self, loader).count, 4);
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}

typedef struct heard {
    int64_t indices[16];
    int count;
} heard;

static att_status hear(void *user, int64_t index, const char *reason)
{
    heard *h = user;
    char name[32];
    snprintf(name, sizeof(name), "/%d.png: ", (int)index);
    assert_non_null(strstr(reason, name));
    h->indices[h->count++] = index;
    return ATT_OK;
}

SCRATCH_TEST(corrupt_images_can_be_left_out)
{
    write_damaged(self);
    att_dataset *dataset = open_folder(self);
    for (int workers = 0; workers < 4; workers++) {
        att_loader_options options = plain_options(workers);
        heard told = {.count = 0};
        options.corrupt = ATT_CORRUPT_LEFT_OUT;
        options.corrupt_found = hear;
        options.corrupt_user = &told;
        att_loader *loader = make_loader(self, dataset, &options);
        att_batch batch = next(self, loader);
        static const int64_t left[] = {0, 1, 2, 5, 6, 7};
        assert_int_equal(batch.count, 6);
        assert_memory_equal(batch.indices, left, sizeof(left));
        static const int32_t labels[] = {0, 0, 0, 0, 1, 1};
        assert_memory_equal(labels_of(&batch), labels, sizeof(labels));
        for (int i = 0; i < 6; i++)
            assert_true(images_of(&batch)[i * FLOATS] > (float)left[i] - 0.1f &&
                        images_of(&batch)[i * FLOATS] < (float)left[i] + 0.1f);
        batch = next(self, loader);
        assert_int_equal(batch.number, 2);
        assert_int_equal(batch.count, 4);
        assert_int_equal(next(self, loader).count, 0);
        assert_int_equal(att_loader_describe(loader).corrupt, 10);
        assert_int_equal(att_loader_describe(loader).images, 10);
        start(self, loader, 1, 0);
        next(self, loader);
        assert_int_equal(att_loader_describe(loader).corrupt, 12);
        static const int64_t corrupt[] = {3, 4, 8, 9, 10, 11, 12, 13, 14, 15};
        assert_int_equal(told.count, 10);
        assert_memory_equal(told.indices, corrupt, sizeof(corrupt));
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}

/* The next image in the order replaces a corrupt one. Batches are full, for any number of workers and any first batch
 * of the epoch. */
SCRATCH_TEST(corrupt_images_can_be_replaced_by_the_next)
{
    write_damaged(self);
    att_dataset *dataset = open_folder(self);
    static int64_t first_order[20], order[20];
    static float first_images[20 * FLOATS], images[20 * FLOATS];
    for (int workers = 0; workers < 4; workers++) {
        att_loader_options options = plain_options(workers);
        heard told = {.count = 0};
        options.corrupt = ATT_CORRUPT_REPLACED;
        options.corrupt_found = hear;
        options.corrupt_user = &told;
        options.batch_size = 5;
        att_loader *loader = make_loader(self, dataset, &options);
        static const int64_t expected[] = {0, 1, 2, 5, 5, 5, 6, 7, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17, 18, 19};
        assert_int_equal(record(self, loader, 0, 0, order, images), 20);
        assert_memory_equal(order, expected, sizeof(expected));
        assert_int_equal(told.count, 10);
        att_loader_destroy(&loader);

        options.shuffle = options.drop_last = true;
        options.batch_size = 6;
        options.corrupt_found = NULL;
        options.transform.crop = ATT_CROP_PAD;
        options.transform.pad = 2;
        loader = make_loader(self, dataset, &options);
        assert_int_equal(record(self, loader, 2, 0, order, images), 18);
        if (workers == 0) {
            memcpy(first_order, order, sizeof(order));
            memcpy(first_images, images, sizeof(images));
        }
        assert_memory_equal(order, first_order, 18 * sizeof(*order));
        assert_memory_equal(images, first_images, 18 * FLOATS * sizeof(*images));
        assert_int_equal(record(self, loader, 2, 1, order, images), 12);
        assert_memory_equal(images, first_images + 6 * FLOATS, 12 * FLOATS * sizeof(*images));
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(only_corrupt_images_give_an_error_or_no_batch)
{
    char path[256];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "cat/%d.png", i);
        picture_write(self, path, i);
        snprintf(path, sizeof(path), "%s/cat/%d.png", self->folder, i);
        assert_int_equal(truncate(path, 30), 0);
    }
    att_dataset *dataset = open_folder(self);
    for (int workers = 0; workers < 3; workers++) {
        att_loader_options options = plain_options(workers);
        att_batch batch;
        options.corrupt = ATT_CORRUPT_REPLACED;
        att_loader *loader = make_loader(self, dataset, &options);
        assert_fails(self->context, att_loader_next(loader, &batch), ATT_ERR_FORMAT, "cat/0.png");
        assert_message_has(self, "replace it");
        att_loader_destroy(&loader);
        options.corrupt = ATT_CORRUPT_LEFT_OUT;
        loader = make_loader(self, dataset, &options);
        assert_int_equal(next(self, loader).count, 0);
        att_loader_destroy(&loader);
    }
    assert_int_equal(unlink(path), 0);
    att_loader_options options = plain_options(1);
    options.corrupt = ATT_CORRUPT_LEFT_OUT;
    att_loader *loader = make_loader(self, dataset, &options);
    att_batch batch;
    assert_int_equal(att_loader_next(loader, &batch), ATT_ERR_NOT_FOUND);
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
}

/* --- several processes -------------------------------------------------------------------------------------------- */

/* What a rank receives in an epoch. */
typedef struct shared_epoch {
    const scratch *files;
    att_corrupt corrupt;
    int64_t order[20], told[16];
    int count, told_count;
} shared_epoch;

static att_status note(void *user, int64_t index, const char *reason)
{
    shared_epoch *epoch = user;
    (void)reason;
    epoch->told[epoch->told_count++] = index;
    return ATT_OK;
}

/* Batches have the indices and labels of all ranks, and the images of this one. */
static const char *check_shared(shared_epoch *epoch, const att_batch *batch)
{
    for (int i = 0; i < batch->count; i++) {
        if (labels_of(batch)[i] != (batch->indices[i] < 6 ? 0 : 1))
            return "a label belongs to another image";
        epoch->order[epoch->count++] = batch->indices[i];
    }
    for (int i = 0; i < batch->rows; i++) {
        float difference = images_of(batch)[i * FLOATS] - (float)batch->indices[batch->first_row + i];
        if (!(difference > -0.1f && difference < 0.1f))
            return "an image has another index";
    }
    return NULL;
}

static const char *load_shared(att_context *context, att_loader *loader, shared_epoch *epoch)
{
    att_batch batch = {.count = 1};
    const char *wrong = NULL;
    while (!wrong && batch.count > 0) {
        att_status status = att_loader_next(loader, &batch);
        if (epoch->corrupt == ATT_CORRUPT_FATAL)
            return status == ATT_ERR_FORMAT ? NULL : "not every rank fails";
        if (status != ATT_OK)
            return att_context_message(context);
        wrong = check_shared(epoch, &batch);
    }
    return wrong;
}

static const char *share_epoch(att_context *context, att_comm *comm, void *user)
{
    shared_epoch *epoch = user;
    att_dataset *dataset = NULL;
    att_loader *loader = NULL;
    att_loader_options options = plain_options(1);
    options.batch_size = 5;
    options.comm = comm;
    options.corrupt = epoch->corrupt;
    options.corrupt_found = note;
    options.corrupt_user = epoch;
    const char *wrong = NULL;
    if (att_dataset_open(context, epoch->files->folder, NULL, &dataset) != ATT_OK ||
        att_loader_create(context, dataset, &options, &loader) != ATT_OK)
        wrong = att_context_message(context);
    if (!wrong)
        wrong = load_shared(context, loader, epoch);
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
    return wrong;
}

SCRATCH_TEST(processes_agree_on_corrupt_images)
{
    static const int64_t replaced[] = {0, 1, 2, 5, 5, 5, 6, 7, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17, 18, 19};
    static const int64_t left_out[] = {0, 1, 2, 5, 6, 7, 16, 17, 18, 19};
    static const int64_t corrupt[] = {3, 4, 8, 9, 10, 11, 12, 13, 14, 15};
    static const struct {
        att_corrupt corrupt;
        const int64_t *order;
        int count, told;
    } cases[] = {{ATT_CORRUPT_LEFT_OUT, left_out, 10, 10},
                 {ATT_CORRUPT_REPLACED, replaced, 20, 10},
                 {ATT_CORRUPT_FATAL, left_out, 0, 0}};
    write_damaged(self);
    for (int i = 0; i < 3; i++)
        for (int size = 2; size <= MOST_RANKS; size++) {
            shared_epoch epochs[MOST_RANKS];
            for (int rank = 0; rank < size; rank++)
                epochs[rank] = (shared_epoch){.files = self, .corrupt = cases[i].corrupt};
            run_ranks(size, 1, share_epoch, epochs, sizeof *epochs);
            for (int rank = 0; rank < size; rank++) {
                assert_int_equal(epochs[rank].count, cases[i].count);
                assert_memory_equal(epochs[rank].order, cases[i].order, (size_t)cases[i].count * sizeof(int64_t));
                assert_int_equal(epochs[rank].told_count, cases[i].told);
                assert_memory_equal(epochs[rank].told, corrupt, (size_t)cases[i].told * sizeof(int64_t));
            }
        }
}

/* Only the part of an image that the transform reads is decoded: the result must be the same. */
SCRATCH_TEST(partly_decoded_photographs_equal_whole_ones)
{
    enum { TO = 48, TO_FLOATS = TO * TO * 3, PHOTOS = 4 };
    static float wanted[TO_FLOATS];
    for (int i = 0; i < PHOTOS; i++) {
        jpeg_kind kind = {.width = 150 + 31 * i,
                          .height = 211 - 17 * i,
                          .components = 3,
                          .across = 1 + i % 2,
                          .down = 1 + i / 2,
                          .progressive = i == 2};
        char path[256];
        uint8_t *bytes;
        size_t size;
        jpeg_make(&kind, &bytes, &size);
        snprintf(path, sizeof(path), "%s/cat", self->folder);
        mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/cat/%d.jpg", self->folder, i);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        free(bytes);
    }
    att_dataset *dataset = open_folder(self);
    for (int crop = ATT_CROP_CENTER; crop <= ATT_CROP_SIMPLE; crop++)
        for (int epoch = 0; epoch < 8; epoch++) {
            att_loader_options options = att_loader_options_defaults(TO, TO, 3);
            options.transform.crop = (att_crop)crop;
            options.transform.interpolation = epoch % 2 ? ATT_BILINEAR : ATT_BICUBIC;
            options.transform.crop_pct = epoch % 3 ? 0.6 : 1.0;
            options.transform.flip = 0.5;
            options.seed = 9;
            att_loader *loader = make_loader(self, dataset, &options);
            start(self, loader, epoch, 0);
            att_batch batch = next(self, loader);
            assert_int_equal(batch.count, PHOTOS);
            for (int i = 0; i < PHOTOS; i++) {
                att_image image;
                assert_int_equal(att_dataset_read(dataset, self->context, i, 3, &image), ATT_OK);
                assert_int_equal(att_transform_image(self->context, &options.transform, &image, 9, epoch, i, wanted),
                                 ATT_OK);
                assert_memory_equal(images_of(&batch) + i * TO_FLOATS, wanted, sizeof(wanted));
                att_image_free(self->context, &image);
            }
            att_loader_destroy(&loader);
        }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(many_workers_read_one_archive)
{
    static const char *const kinds[] = {"ustar", "zip", "ustar.gz"};
    char names[40][32];
    const char *list[40];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "%d/%d.png", i % 4, i);
        list[i] = names[i];
    }
    for (int k = 0; k < 3; k++) {
        att_dataset *dataset = NULL;
        pictures_pack(self->path, kinds[k], list, 40);
        assert_int_equal(att_dataset_open(self->context, self->path, NULL, &dataset), ATT_OK);
        att_loader_options options = plain_options(4);
        att_loader *loader = make_loader(self, dataset, &options);
        int count = 0;
        for (att_batch batch = next(self, loader); batch.count > 0; batch = next(self, loader))
            for (int i = 0; i < batch.count; i++, count++)
                assert_true((int)(images_of(&batch)[i * FLOATS] + 0.5f) % 4 == labels_of(&batch)[i]);
        assert_int_equal(count, 40);
        att_loader_destroy(&loader);
        att_dataset_close(&dataset);
    }
}

SCRATCH_TEST(wrong_options_are_refused)
{
    idx_write(self, "train", IMAGES, IMAGES);
    att_dataset *dataset = open_folder(self);
    att_loader_options wrong[5];
    for (int i = 0; i < 5; i++)
        wrong[i] = plain_options(1);
    wrong[0].batch_size = 0;
    wrong[1].workers = -1;
    wrong[2].prefetch = 1;
    wrong[3].transform.channels = 4;
    wrong[4].workers = 100000;
    att_loader *loader = NULL;
    for (int i = 0; i < 5; i++)
        assert_int_equal(att_loader_create(self->context, dataset, &wrong[i], &loader), ATT_ERR_ARGUMENT);
    att_loader_options options = plain_options(1);
    loader = make_loader(self, dataset, &options);
    assert_int_equal(att_loader_start(loader, 0, 8), ATT_ERR_ARGUMENT);
    assert_int_equal(att_loader_start(loader, -1, 0), ATT_ERR_ARGUMENT);
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(failures_without_a_message_are_told_by_status)
{
    att_slot_failure failure = {.status = ATT_ERR_MEMORY};
    assert_string_equal(att_slot_reason(&failure), "out of memory while an image was read");
    failure.status = ATT_ERR_FORMAT;
    assert_string_equal(att_slot_reason(&failure),
                        "an image could not be read, and there was no memory for the reason");
}

static att_dataset *memory_set;

static att_status load_all(scratch *self)
{
    att_loader_options options = plain_options(0);
    options.shuffle = true;
    return load_epoch(self, memory_set, &options);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    idx_write(self, "train", IMAGES, IMAGES);
    memory_set = open_folder(self);
    assert_survives_lack_of_memory(self, load_all);
    att_dataset_close(&memory_set);
}
