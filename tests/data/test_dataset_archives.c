/* Data sets in archives. */
#include "data/opened.h"

SCRATCH_TEST(class_folders_are_read_from_archives)
{
    static const char *const kinds[] = {"ustar", "pax.gz", "zip", "zip0"};
    static const char *const plain[] = {"dog/1.png", "cat/1.png", "readme.md", "stray.png", "cat/2.png"};
    static const char *const outer[] = {"data/train/dog/1.png", "data/val/dog/1.png", "data/val/ape/7.png",
                                        "data/train/ape/1.png", "data/train/stray.png"};
    for (int k = 0; k < 4; k++) {
        pictures_pack(self->path, kinds[k], plain, 5);
        att_dataset *dataset = open_set(self, self->path, "val", NULL);
        assert_int_equal(att_dataset_count(dataset), 3);
        assert_string_equal(att_dataset_class_name(dataset, 0), "cat");
        assert_image(self, dataset, 0, 0, 1);
        assert_image(self, dataset, 1, 0, 4);
        assert_image(self, dataset, 2, 1, 0);
        assert_name_ends(dataset, 2, "/file/dog/1.png");
        att_dataset_close(&dataset);

        pictures_pack(self->path, kinds[k], outer, 5);
        dataset = open_set(self, self->path, "val", NULL);
        assert_string_equal(att_dataset_split(dataset), "val");
        assert_int_equal(att_dataset_count(dataset), 2);
        assert_image(self, dataset, 0, 0, 2);
        assert_image(self, dataset, 1, 1, 1);
        att_dataset_close(&dataset);
        dataset = open_set(self, self->path, NULL, NULL);
        assert_string_equal(att_dataset_split(dataset), "train");
        assert_int_equal(att_dataset_count(dataset), 2);
        att_dataset_close(&dataset);
    }
    static const char *const train_only[] = {"train/dog/1.png", "train/cat/1.png"};
    pictures_pack(self->path, "ustar", train_only, 2);
    expect_failure(self, self->path, "val", NULL, ATT_ERR_NOT_FOUND, "only \"train\"");
    static const char *const a_class_called_train[] = {"train/1.png", "bus/1.png"};
    pictures_pack(self->path, "ustar", a_class_called_train, 2);
    att_dataset *dataset = open_set(self, self->path, "val", NULL);
    assert_int_equal(att_dataset_class_count(dataset), 2);
    att_dataset_close(&dataset);
}

static void pack_in_folder(scratch *self, const char *name, const char *format, const char *const *pictures, int count)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    pictures_pack(path, format, pictures, count);
}

SCRATCH_TEST(an_archive_for_each_split_is_found)
{
    static const char *const train[] = {"train/dog/1.png", "train/cat/1.png", "train/cat/2.png"};
    static const char *const test[] = {"cat/1.png", "dog/9.png"};
    pack_in_folder(self, "train.tar.gz", "pax.gz", train, 3);
    expect_failure(self, self->folder, "val", NULL, ATT_ERR_NOT_FOUND, "but train");
    pack_in_folder(self, "test.zip", "zip", test, 2);
    pack_in_folder(self, "other.zip", "zip", test, 1);
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    assert_string_equal(att_dataset_split(dataset), "train");
    assert_int_equal(att_dataset_count(dataset), 3);
    assert_image(self, dataset, 2, 1, 0);
    att_dataset_close(&dataset);
    dataset = open_set(self, self->folder, "val", NULL);
    assert_string_equal(dataset->kind, "zip");
    assert_string_equal(att_dataset_split(dataset), "test");
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_image(self, dataset, 1, 1, 1);
    assert_name_ends(dataset, 1, "/test.zip/dog/9.png");
    att_dataset_close(&dataset);
    /* Archives beside class folders are ignored: the folders were probably extracted from them. */
    picture_write(self, "train/ape/1.png", 4);
    dataset = open_set(self, self->folder, NULL, NULL);
    assert_string_equal(dataset->kind, "folder");
    assert_int_equal(att_dataset_count(dataset), 1);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(an_archive_with_one_file_twice_is_refused)
{
    static const char *const names[] = {"dog/1.png", "cat/2.png", "cat/1.png", "./cat//./2.png"};
    att_dataset *dataset = NULL;
    for (int unlabelled = 0; unlabelled < 2; unlabelled++) {
        att_dataset_options options = att_dataset_options_defaults();
        options.unlabelled = unlabelled;
        pictures_pack(self->path, "ustar", names, 4);
        assert_fails(self->context, att_dataset_open(self->context, self->path, &options, &dataset), ATT_ERR_FORMAT,
                     "two files have the same name, \"cat/2.png\"");
        pictures_pack(self->path, "ustar", names, 3);
        assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
        att_dataset_close(&dataset);
    }
}

/* Of a gzipped archive, only images are kept in memory, none that is hidden or larger than the limit for images. */
SCRATCH_TEST(only_images_within_the_limit_are_kept)
{
    static char large[1 << 18];
    void *bytes;
    size_t size;
    picture_make(7, &bytes, &size);
    pack made = pack_open(self->path, "ustar.gz");
    pack_entry(&made, "cat/notes.txt", AE_IFREG, NULL, large, sizeof large);
    pack_entry(&made, "cat/1.png", AE_IFREG, NULL, bytes, size);
    pack_entry(&made, "cat/2.png", AE_IFREG, NULL, large, sizeof large);
    pack_entry(&made, ".ipynb_checkpoints/3.png", AE_IFREG, NULL, bytes, size);
    pack_close(&made);
    free(bytes);
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.cache_bytes = size;
    options.limits.file_bytes = sizeof large - 1;
    assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_image(self, dataset, 0, 0, 7);
    att_image image;
    assert_fails(self->context, att_dataset_read(dataset, self->context, 1, 3, &image), ATT_ERR_UNSUPPORTED,
                 "more than the limit");
    att_dataset_close(&dataset);
}

/* A tar begins with a file name, which may look like the beginning of an image or a compressed file. */
SCRATCH_TEST(a_tar_is_known_by_its_header)
{
    static const char *const firsts[] = {"BMW", "P5",       "P6",      "P6 x", "GIF8", "8BPS",
                                         "II*", "\xff\x0a", "BZh_set", "BZh9", "LZIP", "\x1f\x8b"};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        pack made = pack_open(self->path, "gnutar");
        char name[32];
        pack_entry(&made, firsts[i], AE_IFDIR, NULL, NULL, 0);
        snprintf(name, sizeof name, "%s/1.png", firsts[i]);
        pack_picture(&made, name, 0);
        pack_picture(&made, "Fiat/1.png", 1);
        pack_close(&made);
        att_dataset *dataset = NULL;
        att_dataset_options options = att_dataset_options_defaults();
        options.unlabelled = true; /* one of the names has a line break, which that of a class must not have */
        assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
        assert_string_equal(dataset->kind, "tar");
        assert_int_equal(att_dataset_count(dataset), 2);
        att_dataset_close(&dataset);
    }
    scratch_write(self, "P6 is a name", 12);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "is an image");
    scratch_write(self, "P6x", 3);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "not a .tar");
}

static att_status use_file(scratch *self)
{
    return open_and_read(self, self->path, NULL, NULL);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    static const char *const names[] = {"dog/1.png", "cat/1.png"};
    pictures_pack(self->path, "zip", names, 2);
    assert_survives_lack_of_memory(self, use_file);
    pictures_pack(self->path, "ustar.gz", names, 2);
    assert_survives_lack_of_memory(self, use_file);
}

/* Opening an archive asks for each file, and after each decompressed block, whether to stop. */
SCRATCH_TEST(opening_stops_when_asked)
{
    enum { IMAGES = 10, NOISE = 1 << 18 };
    static char noise[NOISE];
    const char *names[IMAGES];
    char texts[IMAGES][16];
    for (int i = 0; i < IMAGES; i++) {
        snprintf(texts[i], sizeof texts[i], "cat/%d.png", i);
        names[i] = texts[i];
    }
    static const char *const kinds[] = {"ustar", "zip", "ustar.gz"};
    for (int i = 0; i < 3; i++) {
        pictures_pack(self->path, kinds[i], names, IMAGES);
        assert_true(assert_stops(self, use_file) >= IMAGES);
    }
    /* One large file that is not an image. */
    for (int i = 0; i < NOISE; i++)
        noise[i] = (char)((unsigned)i * (unsigned)i >> 7);
    pack made = pack_open(self->path, "ustar.gz");
    pack_entry(&made, "cat/notes.txt", AE_IFREG, NULL, noise, sizeof noise);
    pack_entry(&made, "cat/1.png", AE_IFREG, NULL, noise, 1);
    pack_close(&made);
    self->questions_left = 3;
    assert_int_equal(use_file(self), ATT_ERR_STOPPED);
    self->questions_left = -1;
}
