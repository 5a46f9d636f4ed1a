/* Random crops are chosen by the classes in their masks. */
#include "base/core/memory.h"
#include "data/loading.h"
#include "data/mask_files.h"
#include "data/transform.h"

enum { WIDE = 64, TALL = 48, SIDE = 16, TIMES = 300 };

/* Class 1 in the right quarter, class 2 in one corner of it, else class 0; the frame of 4 pixels has no class. */
static att_dataset *open_masks(scratch *self)
{
    uint8_t labels[WIDE * TALL];
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    for (int i = 0; i < WIDE * TALL; i++) {
        const int x = i % WIDE, y = i / WIDE;
        const bool frame = x < 4 || x >= WIDE - 4 || y < 4 || y >= TALL - 4;
        labels[i] = (uint8_t)(frame ? 255 : x < WIDE * 3 / 4 ? 0 : y < TALL / 4 ? 2 : 1);
    }
    mask_jpeg(self, "JPEGImages/0.jpg", WIDE, TALL, 0);
    mask_write(self, "SegmentationClass/0.png", WIDE, TALL, labels);
    scratch_text(self, "ImageSets/Segmentation/train.txt", "0\n");
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    return dataset;
}

static att_geometry crop_at(double x, double y)
{
    return (att_geometry){
        .map = {{1, 0, -x}, {0, 1, -y}}, .from_width = WIDE, .from_height = TALL, .width = SIDE, .height = SIDE};
}

static int choose(scratch *self, const att_dataset *dataset, const att_geometry crops[ATT_CROP_CHOICES], double most)
{
    int chosen = -1;
    CHECK(self->context, att_mask_choose_crop(NULL, self->context, dataset, 0, crops, most, &chosen));
    return chosen;
}

SCRATCH_TEST(the_first_crop_with_a_mixed_mask_is_chosen)
{
    att_dataset *dataset = open_masks(self);
    att_geometry crops[ATT_CROP_CHOICES];
    for (int i = 0; i < ATT_CROP_CHOICES; i++)
        crops[i] = crop_at(8, 16); /* class 0 alone */
    assert_int_equal(choose(self, dataset, crops, 0.75), ATT_CROP_CHOICES - 1);
    assert_int_equal(choose(self, dataset, crops, 1), ATT_CROP_CHOICES - 1); /* two classes are asked for */
    crops[7] = crop_at(40, 16);                                              /* half of each */
    crops[5] = crop_at(36, 16);                                              /* three quarters are class 0 */
    assert_int_equal(choose(self, dataset, crops, 0.75), 7);
    assert_int_equal(choose(self, dataset, crops, 0.76), 5);
    crops[3] = crop_at(0, 0); /* 12 x 12 pixels of class 0, the others have none */
    assert_int_equal(choose(self, dataset, crops, 0.76), 5);
    att_dataset_close(&dataset);
}

/* As a task does: the mask of the sample, with the sides of its image. */
static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields)
{
    (void)user;
    att_mask mask = {0};
    att_status status = att_dataset_read_mask(dataset, context, index, &mask);
    if (status == ATT_OK)
        att_mask_move(&mask, geometry, fields[0]);
    att_mask_free(context, &mask);
    return status;
}

static att_loader_options scaled_options(void)
{
    static const att_field field = {"mask", ATT_I32, {2, {ATT_IMAGE_HEIGHT, ATT_IMAGE_WIDTH}}};
    att_loader_options options = att_loader_options_defaults(SIDE, SIDE, 3);
    options.transform.crop = ATT_CROP_SCALED;
    options.transform.longer = WIDE;
    options.transform.shorter = TALL;
    options.workers = 0;
    options.batch_size = 1;
    options.targets =
        (att_target_rules){.fields = &field, .count = 1, .fill = fill, .choose_crop = att_mask_choose_crop};
    return options;
}

/* Epochs in which one class has at least three quarters of the mask. */
static int count_uniform(scratch *self, const att_dataset *dataset, double most)
{
    att_loader_options options = scaled_options();
    int uniform = 0;
    options.transform.cat_max_ratio = most;
    att_loader *loader = make_loader(self, dataset, &options);
    for (int epoch = 0; epoch < TIMES; epoch++) {
        int counts[3] = {0}, largest = 0, all = 0;
        CHECK(self->context, att_loader_start(loader, epoch, 0));
        const att_batch batch = next(self, loader);
        const int32_t *mask = att_batch_field(&batch, "mask");
        for (int i = 0; i < SIDE * SIDE; i++)
            if (mask[i] >= 0)
                counts[mask[i]]++;
        for (int c = 0; c < 3; c++) {
            all += counts[c];
            largest = counts[c] > largest ? counts[c] : largest;
        }
        uniform += 4 * largest >= 3 * all;
    }
    att_loader_destroy(&loader);
    return uniform;
}

SCRATCH_TEST(chosen_crops_seldom_show_one_class)
{
    att_dataset *dataset = open_masks(self);
    const int any = count_uniform(self, dataset, 1), chosen = count_uniform(self, dataset, 0.75);
    print_message("one class has three quarters in %d of %d crops, in %d of chosen ones\n", any, TIMES, chosen);
    assert_true(any > 220 && chosen < 110); /* measured: 261 and 66 */
    att_dataset_close(&dataset);
}

static att_dataset *memory_set;

static att_status load_once(scratch *self)
{
    att_loader_options options = scaled_options();
    options.transform.cat_max_ratio = 0.75;
    return load_epoch(self, memory_set, &options);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    memory_set = open_masks(self);
    assert_survives_lack_of_memory(self, load_once);
    att_dataset_close(&memory_set);
}
