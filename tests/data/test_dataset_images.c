/* Images without classes, from folders, files and archives, and their names. */
#include "data/opened.h"

/* Images in folders, beside folders and in splits are listed in order; other files are left out. */
SCRATCH_TEST(unlabelled_images_are_found_in_every_folder)
{
    static const char *const names[] = {"7.png", "cat/1.png", "test/a/2.png", "train/a/b/3.png"};
    for (int i = 0; i < 4; i++)
        picture_write(self, names[i], i);
    scratch_write(self, "no image", 8);
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    char archive[256];
    snprintf(archive, sizeof(archive), "%s.zip", self->path);
    pictures_pack(archive, "zip", names, 4);
    const char *const paths[] = {self->folder, archive};
    for (int p = 0; p < 2; p++) {
        att_dataset *dataset = NULL;
        CHECK(self->context, att_dataset_open(self->context, paths[p], &options, &dataset));
        assert_int_equal(att_dataset_count(dataset), 4);
        assert_int_equal(att_dataset_class_count(dataset), 0);
        assert_string_equal(att_dataset_split(dataset), "");
        for (int i = 0; i < 4; i++) {
            assert_int_equal(att_dataset_label(dataset, i), -1);
            assert_name_ends(dataset, i, names[i]);
            assert_image(self, dataset, i, -1, i);
        }
        att_dataset_close(&dataset);
    }
}

/* Files, folders and archives together, in the order of the paths. */
SCRATCH_TEST(images_of_several_paths_come_in_their_order)
{
    static const char *const packed[] = {"train/a/5.png", "2.png"};
    char file[200], folder[200], archive[220], missing[200];
    picture_write(self, "one/7.png", 7);
    picture_write(self, "two/cat/3.png", 3);
    picture_write(self, "two/1.png", 1);
    snprintf(file, sizeof(file), "%s/one/7.png", self->folder);
    snprintf(folder, sizeof(folder), "%s/two/", self->folder);
    snprintf(archive, sizeof(archive), "%s/more.zip", self->folder);
    snprintf(missing, sizeof(missing), "%s/none.png", self->folder);
    pictures_pack(archive, "zip", packed, 2);
    const char *const paths[] = {file, folder, archive, file};
    static const char *const names[] = {"7.png", "1.png", "cat/3.png", "2.png", "train/a/5.png", "7.png"};
    static const int values[] = {7, 1, 3, 1, 0, 7}; /* the numbers that pictures_pack() gave the images */
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open_images(self->context, paths, 4, NULL, &dataset), ATT_OK);
    assert_string_equal(dataset->kind, "images");
    assert_int_equal(att_dataset_count(dataset), 6);
    assert_int_equal(att_dataset_class_count(dataset), 0);
    for (int i = 0; i < 6; i++) {
        assert_name_ends(dataset, i, names[i]);
        assert_short_name(dataset, i, names[i]);
        assert_image(self, dataset, i, -1, values[i]);
    }
    att_image image;
    assert_int_equal(att_dataset_read(dataset, self->context, 6, 1, &image), ATT_ERR_ARGUMENT);
    att_dataset_close(&dataset);
    att_dataset_options small = att_dataset_options_defaults();
    small.limits.side = PICTURE_SIDE - 1;
    assert_int_equal(att_dataset_open_images(self->context, paths, 4, &small, &dataset), ATT_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(att_dataset_read(dataset, self->context, i, 3, &image), ATT_ERR_UNSUPPORTED);
    att_dataset_close(&dataset);
    assert_fails(self->context,
                 att_dataset_open_images(self->context, (const char *[]){file, missing}, 2, NULL, &dataset),
                 ATT_ERR_NOT_FOUND, "none.png does not exist");
    assert_int_equal(att_dataset_open_images(self->context, paths, 0, NULL, &dataset), ATT_ERR_ARGUMENT);
    assert_int_equal(att_dataset_open_images(self->context, (const char *[]){NULL}, 1, NULL, &dataset),
                     ATT_ERR_ARGUMENT);
    assert_int_equal(att_dataset_open_images(self->context, NULL, 1, NULL, &dataset), ATT_ERR_ARGUMENT);
    assert_fails(self->context, att_dataset_open(self->context, NULL, NULL, &dataset), ATT_ERR_ARGUMENT,
                 "the path of a data set is missing: the pointer is NULL");
    expect_failure(self, file, NULL, NULL, ATT_ERR_FORMAT, "7.png is an image, not a data set");
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    assert_int_equal(att_dataset_open(self->context, file, &options, &dataset), ATT_OK);
    assert_string_equal(dataset->kind, "image");
    assert_int_equal(att_dataset_count(dataset), 1);
    assert_image(self, dataset, 0, -1, 7);
    att_dataset_close(&dataset);
}

/* If short names would be equal, all begin with the parts of their paths that differ. */
SCRATCH_TEST(short_names_tell_images_apart)
{
    static const char *const pictures[] = {"a/0.png", "b/0.png", "0.png", "b/x/1.png", "a/x/1.png", "c/8.png"};
    static const struct {
        const char *paths[4], *names[4]; /* each path holds one image; NULL: the test's folder and 0.png */
    } sets[] = {{{"a/0.png", "b/0.png", "c/8.png"}, {"a/0.png", "b/0.png", "8.png"}},
                {{"a/0.png", "c/8.png", "a/0.png"}, {"0.png", "8.png", "0.png"}},
                {{"a/0.png", "b/0.png", "a/0.png", "0.png"}, {"a/0.png", "b/0.png", "a/0.png", NULL}},
                {{"a/x/", "b/x", "c/8.png"}, {"a/x/1.png", "b/x/1.png", "8.png"}},
                {{"a/x", "c//"}, {"1.png", "8.png"}}};
    char paths[4][128], outer[128];
    const char *operands[4];
    snprintf(outer, sizeof outer, "%s/0.png", strrchr(self->folder, '/') + 1);
    for (int i = 0; i < 6; i++)
        picture_write(self, pictures[i], i);
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        int count = 0;
        for (; count < 4 && sets[s].paths[count]; count++) {
            snprintf(paths[count], sizeof paths[count], "%s/%s", self->folder, sets[s].paths[count]);
            operands[count] = paths[count];
        }
        att_dataset *dataset = NULL;
        assert_int_equal(att_dataset_open_images(self->context, operands, count, NULL, &dataset), ATT_OK);
        for (int i = 0; i < count; i++)
            assert_short_name(dataset, i, sets[s].names[i] ? sets[s].names[i] : outer);
        att_dataset_close(&dataset);
    }
    /* One path is the end of another. */
    assert_int_equal(chdir(self->folder), 0);
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open_images(self->context, (const char *[]){"0.png", "b/0.png"}, 2, NULL, &dataset),
                     ATT_OK);
    assert_short_name(dataset, 0, "0.png");
    assert_short_name(dataset, 1, "b/0.png");
    att_dataset_close(&dataset);
    assert_int_equal(chdir("/"), 0);
}

static att_status use_images(scratch *self)
{
    att_dataset *dataset = NULL;
    att_status status =
        att_dataset_open_images(self->context, (const char *[]){self->folder, self->path}, 2, NULL, &dataset);
    att_dataset_close(&dataset);
    return status;
}

static void contents_of(scratch *self, const char *name, char text[ATT_DATASET_CONTENTS])
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    att_dataset *dataset = open_set(self, path, NULL, NULL);
    assert_int_equal(att_dataset_contents(dataset, self->context, text), ATT_OK);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(contents_are_of_names_and_pixels_alone)
{
    char one[ATT_DATASET_CONTENTS], other[ATT_DATASET_CONTENTS];
    picture_write(self, "a/cat/1.png", 1);
    picture_write(self, "a/dog/2.png", 2);
    picture_write(self, "b/cat/1.png", 1);
    picture_write(self, "b/dog/2.png", 2);
    contents_of(self, "a", one);
    contents_of(self, "b", other);
    assert_string_equal(one, other);
    assert_int_equal(strlen(one), ATT_DATASET_CONTENTS - 1);
    picture_write(self, "b/dog/2.png", 3);
    contents_of(self, "b", other);
    assert_string_not_equal(one, other);
    picture_write(self, "a/dog/3.png", 2);
    contents_of(self, "a", other);
    assert_string_not_equal(one, other);
}

SCRATCH_TEST(a_data_set_says_what_it_is)
{
    char text[256], expected[256];
    picture_write(self, "train/cat/1.png", 1);
    picture_write(self, "train/dog/2.png", 2);
    att_dataset *dataset = open_set(self, self->folder, "train", NULL);
    snprintf(expected, sizeof expected, "%s, train: 2 images, 2 classes, numbered by the sorted folder names",
             self->folder);
    assert_string_equal(att_dataset_describe(dataset, text, sizeof text), expected);
    assert_int_equal(att_dataset_colours(dataset, self->context), ATT_COLOURS_GREY);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(classes_of_a_network_fit_or_do_not)
{
    static const char *const names[] = {"cat", "bird"};
    picture_write(self, "data/cat/1.png", 1);
    picture_write(self, "data/dog/2.png", 2);
    char path[256];
    snprintf(path, sizeof path, "%s/data", self->folder);
    att_dataset *dataset = open_set(self, path, NULL, NULL);
    assert_true(att_dataset_fits_classes(dataset, 2));
    assert_false(att_dataset_fits_classes(dataset, 3));
    assert_false(att_dataset_fits_classes(dataset, 1));
    assert_int_equal(att_dataset_check_classes(dataset, self->context, 2), ATT_OK);
    assert_fails(self->context, att_dataset_check_classes(dataset, self->context, 3), ATT_ERR_MISMATCH,
                 "the network has 3 classes, the data 2, numbered by their sorted names");
    assert_string_equal(att_dataset_unknown_class(dataset, names, 2), "dog");
    assert_null(att_dataset_unknown_class(dataset, att_dataset_class_names(dataset), 2));
    att_dataset_close(&dataset);

    scratch_write(self, "dog\ncat\nbird\n", 13);
    dataset = open_set(self, path, NULL, self->path);
    assert_true(att_dataset_fits_classes(dataset, 5));
    assert_false(att_dataset_fits_classes(dataset, 1));
    assert_int_equal(att_dataset_check_classes(dataset, self->context, 5), ATT_OK);
    att_dataset_close(&dataset);
}

TEST(coloured_and_grey_images_are_distinguished)
{
    uint8_t pixels[] = {7, 7, 7, 9, 9, 9};
    const att_image image = {.width = 2, .height = 1, .channels = 3, .pixels = pixels};
    assert_true(att_image_is_grey(&image));
    pixels[5] = 8;
    assert_false(att_image_is_grey(&image));
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    static const char *const names[] = {"dog/1.png", "cat/1.png"};
    picture_write(self, "dog/1.png", 1);
    picture_write(self, "cat/1.png", 1);
    pictures_pack(self->path, "zip", names, 2);
    assert_survives_lack_of_memory(self, use_images);
}
