/* Photographs with masks: layouts, stored labels, classes, and files that do not fit. */
#include "base/core/memory.h"
#include "data/mask_files.h"
#include "data/opened.h"
#include "shared.h"

static att_status open_masks(scratch *self, const char *path, const char *split, att_dataset **dataset)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    options.split = split;
    return att_dataset_open(self->context, path, &options, dataset);
}

/* Opens a data set, and checks that reading a mask fails. */
static void expect_bad_mask(scratch *self, int64_t index, const char *part)
{
    att_dataset *dataset = NULL;
    att_mask mask = {0};
    CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
    assert_fails(self->context, att_dataset_read_mask(dataset, self->context, index, &mask), ATT_ERR_FORMAT, part);
    assert_null(mask.classes);
    att_dataset_close(&dataset);
}

static void expect_not_opened(scratch *self, const char *split, att_status status, const char *part)
{
    att_dataset *dataset = NULL;
    size_t allocated = att_context_allocations(self->context).bytes_now;
    assert_fails(self->context, open_masks(self, self->folder, split, &dataset), status, part);
    assert_null(dataset);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

/* Returns the class of the mask's first pixel; -1 for none. */
static int first_class(scratch *self, const att_dataset *dataset, int64_t index)
{
    att_mask mask;
    CHECK(self->context, att_dataset_read_mask(dataset, self->context, index, &mask));
    const int class = mask.classes[0] == ATT_MASK_NONE ? -1 : mask.classes[0];
    att_mask_free(self->context, &mask);
    assert_null(mask.classes);
    return class;
}

/* Opens the data set once, and records what is said. */
static void open_said(const scratch *self, const char *split, said *log)
{
    att_context *context = said_context(log);
    att_dataset_options options = att_dataset_options_defaults();
    att_dataset *dataset = NULL;
    options.annotations = ATT_ANNOTATION_MASK;
    options.split = split;
    CHECK(context, att_dataset_open(context, self->folder, &options, &dataset));
    att_dataset_close(&dataset);
    att_context_destroy(&context);
}

static void remove_files(const scratch *self)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'/*", self->folder);
    assert_int_equal(system(command), 0);
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

/* Each layout: a photograph and its mask in the training and in the validation part, and what label 1 then is. */
SCRATCH_TEST(usual_layouts_are_recognised)
{
    static const struct {
        const char *photograph, *mask, *other_photograph, *other_mask, *list, *split;
        int classes, label_1;
    } layouts[] = {
        {"images/training/ADE_train_1.png", "annotations/training/ADE_train_1.png", "images/validation/ADE_val_1.png",
         "annotations/validation/ADE_val_1.png", NULL, "training", 150, 0},
        {"leftImg8bit/train/aachen/a_leftImg8bit.png", "gtFine/train/aachen/a_gtFine_labelTrainIds.png",
         "leftImg8bit/val/ulm/b_leftImg8bit.png", "gtFine/val/ulm/b_gtFine_labelTrainIds.png", NULL, "train", 19, 1},
        {"VOCdevkit/VOC2012/JPEGImages/a.png", "VOCdevkit/VOC2012/SegmentationClass/a.png",
         "VOCdevkit/VOC2012/JPEGImages/b.png", "VOCdevkit/VOC2012/SegmentationClass/b.png",
         "VOCdevkit/VOC2012/ImageSets/Segmentation", "train", 21, 1},
        {"train/a.png", "trainannot/a.png", "val/b.png", "valannot/b.png", NULL, "train", 11, 1},
        {"images/train/a.png", "masks/train/a.png", "images/val/b.png", "masks/val/b.png", NULL, "train", 3, 1},
        {"outer/img_dir/train/a.png", "outer/ann_dir/train/a.png", "outer/img_dir/val/b.png", "outer/ann_dir/val/b.png",
         NULL, "train", 3, 1},
        {"images/train2017/a.png", "annotations/train2017/a_labelTrainIds.png", "images/val2017/b.png",
         "annotations/val2017/b_labelTrainIds.png", NULL, "train", 3, 1},
        {"train/images/a.png", "train/masks/a.png", "val/images/b.png", "val/masks/b.png", NULL, "train", 3, 1},
        {"train/a.png", "train_labels/a_L.png", "val/b.png", "val_labels/b_L.png", NULL, "train", 3, 1},
        {"train_images/a.png", "train_masks/a.png", "val_images/b.png", "val_masks/b.png", NULL, "train", 3, 1},
        {"images/a.png", "annotations/trimaps/a.png", "images/b.png", "annotations/trimaps/b.png", "annotations",
         "train", 2, 0},
        {"images/10k/train/a.png", "labels/sem_seg/masks/train/a.png", "images/10k/val/b.png",
         "labels/sem_seg/masks/val/b.png", NULL, "train", 19, 1},
        {"train/a.png", "train/a_mask.png", "valid/b.png", "valid/b_mask.png", NULL, "train", 3, 1},
        {"images/deep/a.png", "labels/deep/a_P.png", NULL, NULL, NULL, "", 3, 1},
        {"imgs/a.png", "masks/a_mask.png", NULL, NULL, NULL, "", 3, 1},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char name[256];
        att_dataset *dataset;
        uint8_t labels[PICTURE_SIDE * PICTURE_SIDE] = {1, 2, 0, 255};
        picture_write(self, layouts[i].photograph, 7);
        mask_write(self, layouts[i].mask, PICTURE_SIDE, PICTURE_SIDE, memcpy(labels, (uint8_t[4]){1, 2, 0, 255}, 4));
        if (layouts[i].other_photograph) {
            picture_write(self, layouts[i].other_photograph, 8);
            mask_fill(self, layouts[i].other_mask, 2);
        }
        if (layouts[i].list) {
            snprintf(name, sizeof name, "%s/train.txt", layouts[i].list);
            scratch_text(self, name, "a\n");
            snprintf(name, sizeof name, "%s/val.txt", layouts[i].list);
            scratch_text(self, name, "b\n");
            snprintf(name, sizeof name, "%s/trainval.txt", layouts[i].list);
            scratch_text(self, name, "b 1 2 3\na\n");
        }
        CHECK(self->context, open_masks(self, self->folder, *layouts[i].split ? "train" : NULL, &dataset));
        assert_string_equal(dataset->kind, "masks");
        assert_string_equal(att_dataset_split(dataset), layouts[i].split);
        assert_int_equal(att_dataset_count(dataset), 1);
        assert_int_equal(att_dataset_annotations(dataset), ATT_ANNOTATION_MASK);
        assert_int_equal(att_dataset_class_count(dataset), layouts[i].classes);
        assert_name_ends(dataset, 0, layouts[i].photograph);
        assert_image(self, dataset, 0, -1, 7);
        assert_int_equal(first_class(self, dataset, 0), layouts[i].label_1);
        att_dataset_close(&dataset);
        if (layouts[i].other_photograph) {
            CHECK(self->context, open_masks(self, self->folder, "val", &dataset));
            assert_name_ends(dataset, 0, layouts[i].other_photograph);
            att_dataset_close(&dataset);
        }
        if (layouts[i].list) {
            CHECK(self->context, open_masks(self, self->folder, "trainval", &dataset));
            assert_string_equal(att_dataset_split(dataset), "trainval");
            assert_int_equal(att_dataset_count(dataset), 2);
            assert_name_ends(dataset, 0, layouts[i].other_photograph);
            att_dataset_close(&dataset);
        }
        expect_not_opened(self, "trainvla", *layouts[i].split ? ATT_ERR_NOT_FOUND : ATT_ERR_ARGUMENT, "trainvla");
        expect_failure(self, self->folder, NULL, NULL, ATT_ERR_MISMATCH, "classes are needed");
        remove_files(self);
    }
}

/* Every end of a mask's name that is looked for where the layout leaves it open. */
SCRATCH_TEST(usual_ends_of_the_names_of_masks_are_recognised)
{
    static const char *const ends[] = {"_labelTrainIds", "",   "_mask", "_masks", "_label", "_labels", "_gt", "_seg",
                                       "_segmentation",  "_L", "_P"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        att_dataset *dataset;
        char mask[64];
        snprintf(mask, sizeof mask, "masks/a%s.png", ends[i]);
        picture_write(self, "images/a.png", 7);
        mask_fill(self, mask, 2);
        CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
        assert_int_equal(att_dataset_count(dataset), 1);
        assert_int_equal(first_class(self, dataset, 0), 2);
        att_dataset_close(&dataset);
        remove_files(self);
    }
    picture_write(self, "images/a.png", 7);
    mask_fill(self, "masks/a_other.png", 2);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "has no masks: expected");
}

/* Outer folders with nothing beside them but what macOS puts into archives. */
SCRATCH_TEST(layouts_are_looked_for_in_three_outer_folders)
{
    att_dataset *dataset;
    picture_write(self, "a/b/c/images/1.png", 7);
    mask_fill(self, "a/b/c/masks/1.png", 2);
    scratch_text(self, "a/__MACOSX/b/._c", "attributes");
    scratch_text(self, "a/.hidden/file", "");
    CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
    assert_int_equal(first_class(self, dataset, 0), 2);
    att_mask mask;
    for (int64_t index = -1; index < 2; index += 2)
        assert_fails(self->context, att_dataset_read_mask(dataset, self->context, index, &mask), ATT_ERR_ARGUMENT,
                     index < 0 ? "mask -1 of 1" : "mask 1 of 1");
    att_dataset_close(&dataset);
    remove_files(self);
    picture_write(self, "a/b/c/d/images/1.png", 7);
    mask_fill(self, "a/b/c/d/masks/1.png", 2);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "with at most 3 folders around them");
}

SCRATCH_TEST(a_split_without_photographs_is_reported)
{
    picture_write(self, "train/1.png", 1);
    mask_fill(self, "trainannot/1.png", 1);
    scratch_text(self, "val/readme", "");
    scratch_text(self, "valannot/readme", "");
    expect_not_opened(self, "val", ATT_ERR_NOT_FOUND,
                      "has photographs with masks, but the folders of its split \"val\" have none");
}

SCRATCH_TEST(masks_in_archives_are_refused)
{
    scratch_text(self, "all.zip", "PK");
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "has no masks beside the archive all.zip; masks are read from");
    remove_files(self);
    scratch_text(self, "all.tar.gz", "");
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "the archive all.tar.gz;");
    remove_files(self);
    scratch_text(self, "train.zip", "PK");
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH,
                      "masks are needed, which are read from folders only: give a folder, and unpack");
    char path[512];
    att_dataset *dataset = NULL;
    snprintf(path, sizeof path, "%s/train.zip", self->folder);
    assert_fails(self->context, open_masks(self, path, NULL, &dataset), ATT_ERR_MISMATCH, "read from folders only");
    remove_files(self);
    picture_write(self, "one.png", 1);
    snprintf(path, sizeof path, "%s/one.png", self->folder);
    assert_fails(self->context, open_masks(self, path, NULL, &dataset), ATT_ERR_MISMATCH, "one.png has one image");
}

SCRATCH_TEST(a_data_set_without_masks_is_refused_where_masks_are_needed)
{
    picture_write(self, "train/cat/1.png", 1);
    picture_write(self, "images/cat/1.png", 1);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "has no masks: expected");
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    att_mask mask = {0};
    assert_int_equal(att_dataset_annotations(dataset), ATT_ANNOTATION_CLASS);
    assert_fails(self->context, att_dataset_read_mask(dataset, self->context, 0, &mask), ATT_ERR_MISMATCH,
                 "has no masks");
    att_dataset_close(&dataset);
    remove_files(self);
    idx_write(self, "train", 3, 3);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "masks are needed");
}

/* Class folders whose names are words of the layouts stay class folders. */
SCRATCH_TEST(class_folders_are_not_taken_for_masks)
{
    picture_write(self, "images/training/1.png", 1);
    picture_write(self, "annotations/training/2.png", 2);
    picture_write(self, "masks/1.jpg", 2);
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    assert_int_equal(att_dataset_class_count(dataset), 3);
    att_dataset_close(&dataset);
    remove_files(self);
    picture_write(self, "JPEGImages/1.png", 1);
    picture_write(self, "SegmentationClass/2.png", 2);
    scratch_text(self, "ImageSets/Segmentation/train.txt", "1\n");
    dataset = open_set(self, self->folder, NULL, NULL);
    assert_int_equal(att_dataset_class_count(dataset), 2);
    att_dataset_close(&dataset);
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

static void assert_classes(scratch *self, const char *classes_text, int reduce_zero, int ignore, const int *expected,
                           int count)
{
    att_dataset_options options = att_dataset_options_defaults();
    att_dataset *dataset;
    att_mask mask;
    scratch_text(self, "classes.txt", classes_text);
    options.annotations = ATT_ANNOTATION_MASK;
    options.reduce_zero_label = reduce_zero;
    options.ignore_label = ignore;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    CHECK(self->context, att_dataset_read_mask(dataset, self->context, 0, &mask));
    for (int i = 0; i < count; i++)
        assert_int_equal(mask.classes[i], expected[i] < 0 ? ATT_MASK_NONE : expected[i]);
    att_mask_free(self->context, &mask);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(labels_are_mapped_to_classes)
{
    enum { SIDE = PICTURE_SIDE };
    uint8_t labels[SIDE * SIDE] = {0, 1, 2, 255};
    picture_write(self, "images/a.png", 1);
    mask_write(self, "masks/a.png", SIDE, SIDE, labels);
    assert_classes(self, "a\nb\nc\n", ATT_BY_LAYOUT, ATT_BY_LAYOUT, (int[]){0, 1, 2, -1}, 4);
    assert_classes(self, "a\nb\n", 1, ATT_BY_LAYOUT, (int[]){-1, 0, 1, -1}, 4);
    assert_classes(self, "a\nb\n", 0, 2, (int[]){0, 1, -1, -1}, 4);
    assert_classes(self, "a\nb\nc\n", 0, 0, (int[]){-1, 1, 2, -1}, 4);
    remove_files(self);
    picture_write(self, "train/a.png", 1); /* CamVid: the label after the last class is void */
    mask_write(self, "trainannot/a.png", SIDE, SIDE, labels);
    assert_classes(self, "a\nb\n", ATT_BY_LAYOUT, ATT_BY_LAYOUT, (int[]){0, 1, -1, -1}, 4);
    remove_files(self);
    picture_write(self, "images/training/ADE_1.png", 1);
    mask_write(self, "annotations/training/ADE_1.png", SIDE, SIDE, labels);
    assert_classes(self, "a\nb\n", ATT_BY_LAYOUT, ATT_BY_LAYOUT, (int[]){-1, 0, 1, -1}, 4);
    assert_classes(self, "a\nb\nc\n", 0, ATT_BY_LAYOUT, (int[]){0, 1, 2, -1}, 4);
}

/* Masks are stored values of any depth; neither grey levels are scaled nor palette indices replaced. 255 and 65535 are
 * classes if there are as many. */
SCRATCH_TEST(stored_values_of_every_depth_are_labels)
{
    enum { SIDE = PICTURE_SIDE };
    struct spng_plte palette = {.n_entries = 256};
    for (int i = 0; i < 256; i++)
        palette.entries[i] = (struct spng_plte_entry){(uint8_t)(255 - i), 0, 0, 255};
    char classes[4096] = "";
    for (int i = 0; i < 300; i++)
        snprintf(classes + strlen(classes), sizeof classes - strlen(classes), "c%d\n", i);
    picture_write(self, "images/a.png", 1);
    for (int type = 0; type <= SPNG_COLOR_TYPE_INDEXED; type += SPNG_COLOR_TYPE_INDEXED)
        for (int depth = 1; depth <= (type ? 8 : 16); depth *= 2) {
            uint8_t rows[SIDE * SIDE * 2] = {0};
            int expected[SIDE];
            for (int x = 0; x < SIDE; x++) {
                const int value = depth == 16 ? 255 + x : depth == 8 ? 255 - x : x & ((1 << depth) - 1);
                expected[x] = value;
                if (depth == 16) {
                    memcpy(rows + 2 * x, &(uint16_t){(uint16_t)value}, 2);
                } else {
                    rows[x * depth / 8] |= (uint8_t)(value << (8 - depth - x * depth % 8));
                }
            }
            const size_t bytes = (size_t)SIDE * ((SIDE * depth + 7) / 8);
            palette.n_entries = depth < 16 ? 1u << depth : 0;
            mask_png(self, "masks/a.png", SIDE, SIDE, depth, type, type ? &palette : NULL, rows, bytes);
            assert_classes(self, classes, ATT_BY_LAYOUT, ATT_BY_LAYOUT, expected, SIDE);
        }
}

SCRATCH_TEST(without_a_list_the_largest_label_counts_the_classes)
{
    att_dataset *dataset;
    picture_write(self, "images/a.png", 1);
    picture_write(self, "images/b.png", 1);
    mask_fill(self, "masks/a.png", 6);
    mask_fill(self, "masks/b.png", 255);
    CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 7);
    assert_string_equal(att_dataset_class_name(dataset, 6), "6");
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_LABELS);
    char text[256], listing[ATT_DATASET_LISTING], other[ATT_DATASET_LISTING];
    assert_non_null(strstr(att_dataset_describe(dataset, text, sizeof text),
                           ": 2 images with masks, 7 classes, numbered by the "
                           "labels"));
    att_dataset_listing(dataset, listing);
    att_dataset_close(&dataset);
    picture_write(self, "images/c.png", 1);
    mask_fill(self, "masks/c.png", 6);
    CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
    assert_string_not_equal(att_dataset_listing(dataset, other), listing);
    att_dataset_close(&dataset);
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    options.reduce_zero_label = 1;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 6);
    att_dataset_close(&dataset);
    options.ignore_label = 6;
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_FORMAT,
                 "fewer than two classes");
    mask_fill(self, "masks/a.png", 0);
    mask_fill(self, "masks/c.png", 0);
    expect_not_opened(self, NULL, ATT_ERR_FORMAT, "fewer than two classes");
}

/* --- lists of classes --------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_list_gives_names_and_colours)
{
    static const struct {
        const char *text, *part; /* part: of the message; NULL: the list is read */
        bool colours;
    } lists[] = {{"road\ntraffic light\n", NULL, false},
                 {"\xEF\xBB\xBFroad 128 64 128\r\ntraffic light\t250 170  30\r\n\r\n", NULL, true},
                 {"road\ntraffic light 250 170\n", NULL, false},
                 {"road 1 2 3\ntraffic light\n", "line 2 has no colour", true},
                 {"road\ntraffic light 1 2 3\n", "line 2 has a colour, but the lines before have none", true},
                 {"road 1 2 256\nsky 1 2 3\n", "line 1 has a colour beyond 255", true},
                 {"road 99999999999999999999 0 255\nsky 1 2 3\n", "line 1 has a colour beyond 255", true},
                 {"road,0,0,255\nsky,1,2,3\n", "line 1 ends in numbers that are no colour", true},
                 {"road 0 255\nsky -1 0 255 \n", "line 1 ends in numbers that are no colour", true},
                 {"road\ntraffic light,1,2,3\n", NULL, false},
                 {"road\n\nsky\n", "line 2 names no class", false},
                 {"road\nroad\n", "\"road\"", false},
                 {"\n", "names no class", false}};
    picture_write(self, "images/a.png", 1);
    mask_fill(self, "masks/a.png", 1);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        att_dataset *dataset;
        scratch_text(self, "classes.txt", lists[i].text);
        if (lists[i].part) {
            expect_not_opened(self, NULL, ATT_ERR_FORMAT, lists[i].part);
            expect_not_opened(self, NULL, ATT_ERR_FORMAT, "/classes.txt");
            continue;
        }
        CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
        assert_int_equal(att_dataset_class_count(dataset), 2);
        assert_string_equal(att_dataset_class_name(dataset, 0), "road");
        const uint8_t(*colours)[3] = att_dataset_class_colours(dataset);
        assert_int_equal(colours != NULL, lists[i].colours);
        if (colours) {
            assert_string_equal(att_dataset_class_name(dataset, 1), "traffic light");
            assert_memory_equal(colours, ((uint8_t[2][3]){{128, 64, 128}, {250, 170, 30}}), 6);
        }
        att_dataset_close(&dataset);
    }
}

SCRATCH_TEST(numbers_before_all_names_are_reported)
{
    static const struct {
        const char *text;
        bool reported;
    } lists[] = {
        {"0 road\n1 sky\n", true}, {"0: road 1 2 3\n1: sky 4 5 6\n", true}, {"0 road\nsky\n", false}, {"0\n1\n", false},
        {"0:\n1:\n", false},       {"lane1 2\nlane1 3\n", false},           {"2nd\n3rd\n", false}};
    picture_write(self, "images/a.png", 1);
    mask_fill(self, "masks/a.png", 1);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        said log;
        scratch_text(self, "classes.txt", lists[i].text);
        open_said(self, NULL, &log);
        assert_int_equal(strstr(log.text, "classes.txt: every line begins with a number") != NULL, lists[i].reported);
    }
}

SCRATCH_TEST(the_table_of_ade20k_gives_names)
{
    att_dataset *dataset;
    picture_write(self, "images/training/1.png", 1);
    mask_fill(self, "annotations/training/1.png", 2);
    scratch_text(self, "objectInfo150.txt", "Idx\tRatio\tName\n1\t0.5\twall \n2\t0.25\tbuilding, edifice\n");
    CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 2);
    assert_string_equal(att_dataset_class_name(dataset, 0), "wall");
    assert_string_equal(att_dataset_class_name(dataset, 1), "building");
    assert_int_equal(first_class(self, dataset, 0), 1);
    att_dataset_close(&dataset);
    scratch_text(self, "objectInfo150.txt", "Idx\tRatio\tName\n1\t0.5\twall\n3\t0.25\tbuilding, edifice\n");
    expect_not_opened(self, NULL, ATT_ERR_FORMAT, "line 3: expected the number 2 of a class");
    scratch_text(self, "objectInfo150.txt", "Idx\tRatio\tName\n");
    expect_not_opened(self, NULL, ATT_ERR_FORMAT, "names no class");
}

/* With the names of CamVid alone, in its layout, classes have its colours. */
SCRATCH_TEST(a_layout_gives_colours)
{
    static const char names[] = "sky\nbuilding\npole\nroad\npavement\ntree\nsign_symbol\nfence\ncar\npedestrian\n";
    char text[sizeof names + sizeof "bicyclist\n"];
    att_dataset *dataset;
    picture_write(self, "train/1.png", 1);
    mask_fill(self, "trainannot/1.png", 2);
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%s%s\n", names, i == 1 ? "bicyclist" : "cyclist");
        if (i > 0)
            scratch_text(self, "classes.txt", text);
        CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
        assert_int_equal(att_dataset_class_count(dataset), 11);
        if (i < 2)
            assert_memory_equal(att_dataset_class_colours(dataset)[3], ((uint8_t[]){128, 64, 128}), 3);
        else
            assert_null(att_dataset_class_colours(dataset));
        att_dataset_close(&dataset);
    }
}

SCRATCH_TEST(a_class_map_and_a_training_give_names)
{
    static const char *const trained[] = {"sky", "road", "car"};
    att_dataset_options options = att_dataset_options_defaults();
    att_dataset *dataset;
    char map[128];
    picture_write(self, "images/a.png", 1);
    mask_fill(self, "masks/a.png", 1);
    options.annotations = ATT_ANNOTATION_MASK;
    options.trained = trained;
    options.trained_count = 3;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_string_equal(att_dataset_class_name(dataset, 2), "car");
    att_dataset_close(&dataset);

    /* label 1 is the sky, which is class 0 of the training; the car has no colour */
    scratch_text(self, "classes.txt", "road 1 2 3\nsky 4 5 6\n");
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_null(att_dataset_class_colours(dataset));
    assert_int_equal(att_dataset_class_count(dataset), 3);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_TRAINING);
    assert_int_equal(first_class(self, dataset, 0), 0);
    att_dataset_close(&dataset);

    scratch_text(self, "classes.txt", "road 1 2 3\ncar 7 8 9\nsky 4 5 6\n"); /* colours keep to their classes */
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_memory_equal(att_dataset_class_colours(dataset), ((uint8_t[3][3]){{4, 5, 6}, {1, 2, 3}, {7, 8, 9}}), 9);
    assert_int_equal(first_class(self, dataset, 0), 2);
    att_dataset_close(&dataset);

    scratch_text(self, "classes.txt", "road\nboat\n"); /* a training run that does not know all names */
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 2);
    assert_int_equal(first_class(self, dataset, 0), 1);
    att_dataset_close(&dataset);

    scratch_text(self, "names", "road\nsky\n"); /* the numbers are those of the map */
    snprintf(map, sizeof map, "%s/names", self->folder);
    options.class_map = map;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 2);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_MAP);
    assert_int_equal(first_class(self, dataset, 0), 1);
    att_dataset_close(&dataset);
}

/* --- files that do not fit ---------------------------------------------------------------------------------------- */

SCRATCH_TEST(photographs_and_masks_must_be_pairs)
{
    picture_write(self, "images/train/a.png", 1);
    picture_write(self, "images/train/b.png", 1);
    mask_fill(self, "masks/train/a.png", 1);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "images/train/b.png has no mask: expected");
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "1 of 2 photographs have one");
    mask_fill(self, "masks/train/b.png", 1);
    mask_fill(self, "masks/train/c.png", 1);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "masks/train/c.png is a mask without a photograph");
    remove_files(self);
    picture_write(self, "images/a.png", 1);
    picture_write(self, "images/a.webp", 1);
    mask_fill(self, "masks/a.png", 1);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "would have the same mask");
}

SCRATCH_TEST(lists_must_name_photographs)
{
    static const char list[] = "ImageSets/Segmentation/train.txt";
    picture_write(self, "JPEGImages/a.png", 1);
    picture_write(self, "JPEGImages/b.png", 1);
    mask_fill(self, "SegmentationClass/a.png", 1);
    scratch_text(self, list, "a\nc\n");
    expect_not_opened(self, "train", ATT_ERR_MISMATCH, "ImageSets/Segmentation/train.txt: line 2 names \"c\"");
    scratch_text(self, list, "a.png\n");
    expect_not_opened(self, "train", ATT_ERR_MISMATCH,
                      "line 1 names \"a.png\"; expected the name without its extension, \"a\"");
    scratch_text(self, list, "c.png\n");
    expect_not_opened(self, "train", ATT_ERR_MISMATCH, "line 1 names \"c.png\", but ");
    said log;
    scratch_text(self, list, " a\n");
    open_said(self, "train", &log);
    assert_null(strstr(log.text, "again"));
    scratch_text(self, list, "a\na\na\n");
    open_said(self, "train", &log);
    assert_said(&log, "train.txt names 2 photographs again, such as that of line 1 in line 2;");
    scratch_text(self, list, "a\nb\n");
    expect_not_opened(self, "train", ATT_ERR_MISMATCH, "JPEGImages/b.png has no mask");
    scratch_text(self, list, "\n\n");
    expect_not_opened(self, "train", ATT_ERR_FORMAT, "train.txt is empty");
}

SCRATCH_TEST(label_ids_of_cityscapes_are_refused)
{
    picture_write(self, "leftImg8bit/train/ulm/a_leftImg8bit.png", 1);
    mask_fill(self, "gtFine/train/ulm/a_gtFine_labelIds.png", 26);
    expect_not_opened(self, NULL, ATT_ERR_FORMAT, "a_gtFine_labelIds.png has labels of 34 classes, of which 19");
    expect_not_opened(self, NULL, ATT_ERR_FORMAT, "createTrainIdLabelImgs.py");
    mask_fill(self, "gtFine/train/ulm/a_gtFine_labelTrainIds.png", 26);
    expect_bad_mask(self, 0, "a_gtFine_labelTrainIds.png: label 26 in row 0, column 0 is no class: there are 19");
    expect_bad_mask(self, 0, "createTrainIdLabelImgs.py");
}

SCRATCH_TEST(masks_must_be_labels_of_the_size_of_the_photograph)
{
    static const uint8_t pixels[4 * PICTURE_SIDE * PICTURE_SIDE] = {1, 2, 3};
    enum { SIDE = PICTURE_SIDE };
    picture_write(self, "images/a.png", 1);
    scratch_text(self, "classes.txt", "one\ntwo\n");
    mask_write(self, "masks/a.png", SIDE, SIDE - 1, (uint8_t[SIDE * SIDE]){0});
    expect_bad_mask(self, 0, "masks/a.png: the mask has 4 x 3 pixels, but the photograph ");
    mask_png(self, "masks/a.png", SIDE, SIDE, 8, SPNG_COLOR_TYPE_TRUECOLOR, NULL, pixels, 3 * SIDE * SIDE);
    expect_bad_mask(self, 0, "masks/a.png: a PNG of colours (RGB)");
    mask_png(self, "masks/a.png", SIDE, SIDE, 8, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, NULL, pixels, 4 * SIDE * SIDE);
    expect_bad_mask(self, 0, "(RGB with alpha)");
    mask_png(self, "masks/a.png", SIDE, SIDE, 8, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, NULL, pixels, 2 * SIDE * SIDE);
    expect_bad_mask(self, 0, "(grey with alpha)");
    mask_write(self, "masks/a.png", SIDE, SIDE, (uint8_t[SIDE * SIDE]){0, 0, 0, 0, 0, 0, 7});
    expect_bad_mask(self, 0, "masks/a.png: label 7 in row 1, column 2 is no class: there are 2 classes");
    scratch_text(self, "masks/a.png", "not an image");
    expect_bad_mask(self, 0, "masks/a.png is no PNG");
    remove_files(self);
    picture_write(self, "images/a.png", 1);
    scratch_text(self, "classes.txt", "one\ntwo\n");
    mask_jpeg(self, "masks/a.jpg", SIDE, SIDE, 0);
    expect_bad_mask(self, 0, "masks/a.jpg is no PNG");
}

/* Photographs are read as they are stored. A mask of that size is right if turning changes the size; otherwise nobody
 * knows. */
SCRATCH_TEST(a_turned_photograph_must_not_be_ambiguous)
{
    static const uint8_t labels[8 * 8] = {0};
    static const struct {
        int width, height, orientation, mask_width, mask_height;
        const char *part; /* NULL: the mask is read */
    } cases[] = {{8, 4, 0, 8, 4, NULL},
                 {8, 4, 1, 8, 4, NULL},
                 {8, 4, 6, 8, 4, NULL},
                 {8, 4, 9, 8, 4, NULL},
                 {8, 4, 6, 4, 8, "which EXIF says to turn (orientation 6), is stored with 8 x 4"},
                 {8, 4, 3, 8, 4, "EXIF says to turn or mirror it (orientation 3)"},
                 {8, 8, 8, 8, 8, "EXIF says to turn or mirror it (orientation 8)"},
                 {8, 4, 1, 4, 8, "the mask has 4 x 8 pixels, but the photograph "},
                 {8, 4, 3, 4, 8, "the mask has 4 x 8 pixels, but the photograph "}};
    scratch_text(self, "classes.txt", "one\ntwo\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_dataset *dataset;
        mask_jpeg(self, "images/a.jpg", cases[i].width, cases[i].height, cases[i].orientation);
        mask_write(self, "masks/a.png", cases[i].mask_width, cases[i].mask_height, labels);
        if (cases[i].part) {
            expect_bad_mask(self, 0, cases[i].part);
            continue;
        }
        CHECK(self->context, open_masks(self, self->folder, NULL, &dataset));
        assert_int_equal(first_class(self, dataset, 0), 0);
        att_dataset_close(&dataset);
    }
}

/* With exif_transpose, masks are those of the turned photographs. */
SCRATCH_TEST(masks_fit_photographs_that_are_turned)
{
    static const uint8_t labels[8 * 4] = {0};
    static const struct {
        int orientation, mask_width, mask_height;
        const char *part; /* NULL: the mask is read */
    } cases[] = {{6, 4, 8, NULL}, {3, 8, 4, NULL}, {1, 8, 4, NULL}, {6, 8, 4, "the mask has 8 x 4 pixels"}};
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    options.limits.exif_transpose = true;
    scratch_text(self, "classes.txt", "one\ntwo\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_dataset *dataset;
        att_mask mask = {0};
        att_image image;
        int width, height;
        mask_jpeg(self, "images/a.jpg", 8, 4, cases[i].orientation);
        mask_write(self, "masks/a.png", cases[i].mask_width, cases[i].mask_height, labels);
        CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
        const att_status status = att_dataset_read_mask(dataset, self->context, 0, &mask);
        if (cases[i].part)
            assert_fails(self->context, status, ATT_ERR_FORMAT, cases[i].part);
        else
            CHECK(self->context, status);
        const bool swaps = cases[i].orientation > 4;
        CHECK(self->context, att_dataset_image_size(dataset, self->context, 0, &width, &height));
        CHECK(self->context, att_dataset_read(dataset, self->context, 0, 3, &image));
        assert_true(width == (swaps ? 4 : 8) && height == (swaps ? 8 : 4));
        assert_true(image.width == width && image.height == height);
        att_image_free(self->context, &image);
        att_mask_free(self->context, &mask);
        att_dataset_close(&dataset);
    }
}

SCRATCH_TEST(masks_without_memory_leave_nothing_behind)
{
    enum { SIDE = PICTURE_SIDE };
    picture_write(self, "JPEGImages/a.png", 1);
    mask_fill(self, "SegmentationClass/a.png", 1);
    scratch_text(self, "ImageSets/Segmentation/train.txt", "a\n");
    scratch_text(self, "classes.txt", "one 1 2 3\ntwo 4 5 6\n");
    static const char *const trained[] = {"two", "one"};
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    options.trained = trained;
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        att_dataset *dataset = NULL;
        att_mask mask = {0};
        options.trained_count = 2;
        of.status = att_dataset_open(self->context, self->folder, &options, &dataset);
        if (of.status == ATT_OK)
            of.status = att_dataset_read_mask(dataset, self->context, 0, &mask);
        att_mask_free(self->context, &mask);
        att_dataset_close(&dataset);
    }
    remove_files(self);
    picture_write(self, "images/a.png", 1);
    mask_fill(self, "masks/a.png", 1);
    of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        att_dataset *dataset = NULL;
        of.status = open_masks(self, self->folder, NULL, &dataset);
        att_dataset_close(&dataset);
    }
}

/* --- real data ---------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(camvid_and_ade20k_are_read)
{
    char path[SHARED_PATH];
    att_dataset *dataset;
    if (shared_path("data/camvid", path)) {
        CHECK(self->context, open_masks(self, path, "val", &dataset));
        assert_int_equal(att_dataset_count(dataset), 40);
        assert_int_equal(att_dataset_class_count(dataset), 11);
        assert_string_equal(att_dataset_class_name(dataset, 10), "bicyclist");
        for (int64_t i = 0; i < att_dataset_count(dataset); i++)
            assert_in_range(first_class(self, dataset, i) + 1, 0, 11);
        att_dataset_close(&dataset);
    }
    if (shared_path("data/ade20k", path)) {
        CHECK(self->context, open_masks(self, path, "validation", &dataset));
        assert_int_equal(att_dataset_count(dataset), 3);
        assert_int_equal(att_dataset_class_count(dataset), 150);
        assert_string_equal(att_dataset_class_name(dataset, 0), "wall");
        assert_int_equal(first_class(self, dataset, 0), 2); /* sky */
        assert_memory_equal(att_dataset_class_colours(dataset)[2], ((uint8_t[]){6, 230, 230}), 3);
        att_dataset_close(&dataset);
    }
}
