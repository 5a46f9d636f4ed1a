#include <attscope/data.h>

#include "base/core/memory.h"
#include "data/opened.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, BATCH_IMAGES = 2, STL_SIDE = 96, STL_PLANE = STL_SIDE * STL_SIDE };

/* The value of plane c of image `image` at (x, y). */
static uint8_t value_at(int image, int c, int x, int y)
{
    return (uint8_t)(image * 50 + c * 80 + 3 * x + 5 * y);
}

/* Writes records of `images` images from `first` on, each with before(image) bytes of labels. Returns the length. */
static size_t make_records(uint8_t *out, int first, int images, int coarse)
{
    uint8_t *to = out;
    for (int image = first; image < first + images; image++) {
        if (coarse)
            *to++ = 19;
        *to++ = (uint8_t)(image % 10);
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++)
                    *to++ = value_at(image, c, x, y);
    }
    return (size_t)(to - out);
}

static const char *const cifar10_names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

/* The files of CIFAR-10 with two images each. */
static int cifar10_files(pack_file files[7])
{
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    static uint8_t bytes[6][BATCH_IMAGES * (3 * PLANE + 1)];
    for (int i = 0; i < 6; i++)
        files[i] = (pack_file){names[i], bytes[i], make_records(bytes[i], i * BATCH_IMAGES, BATCH_IMAGES, 0)};
    files[6] = (pack_file){"batches.meta.txt", cifar10_names, strlen(cifar10_names)};
    return 7;
}

static void write_file(const scratch *self, const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->folder, folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", self->folder, folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void write_cifar10(const scratch *self, const char *folder)
{
    pack_file files[7];
    for (int i = 0; i < cifar10_files(files); i++)
        write_file(self, folder, files[i].name, files[i].bytes, files[i].size);
}

static void assert_pixels(scratch *self, const att_dataset *dataset, int64_t index, int image, int side)
{
    att_image read;
    assert_int_equal(att_dataset_read(dataset, self->context, index, 3, &read), ATT_OK);
    assert_int_equal(read.width, side);
    assert_int_equal(read.height, side);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(read.pixels[(y * side + x) * 3 + c], value_at(image, c, x, y));
    att_image_free(self->context, &read);
}

static void assert_cifar10(scratch *self, const char *path)
{
    att_dataset *dataset = open_set(self, path, "train", NULL);
    assert_string_equal(dataset->kind, "cifar10");
    assert_string_equal(att_dataset_split(dataset), "train");
    assert_int_equal(att_dataset_count(dataset), 10);
    assert_int_equal(att_dataset_class_count(dataset), 10);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_LABELS);
    assert_string_equal(att_dataset_class_name(dataset, 3), "cat");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(att_dataset_label(dataset, i), i);
        assert_pixels(self, dataset, i, i, SIDE);
    }
    char name[512];
    assert_non_null(strstr(att_dataset_name(dataset, 3, name, sizeof name), "data_batch_2.bin[1]"));
    assert_non_null(strstr(att_dataset_name(dataset, 9, name, sizeof name), "data_batch_5.bin[1]"));
    att_dataset_close(&dataset);
    dataset = open_set(self, path, "validation", NULL);
    assert_string_equal(att_dataset_split(dataset), "test");
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_pixels(self, dataset, 1, 11, SIDE);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(cifar10_is_read_from_its_folders)
{
    char path[256];
    write_cifar10(self, "plain");
    snprintf(path, sizeof path, "%s/plain", self->folder);
    assert_cifar10(self, path);
    write_cifar10(self, "cifar-10-batches-bin");
    assert_cifar10(self, self->folder);
}

SCRATCH_TEST(grey_pixels_are_the_luma_of_pillow)
{
    write_cifar10(self, "cifar-10-batches-bin");
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    att_image read;
    assert_int_equal(att_dataset_read(dataset, self->context, 0, 1, &read), ATT_OK);
    assert_int_equal(read.channels, 1);
    /* Pillow: (19595 R + 38470 G + 7471 B + 32768) >> 16 */
    assert_int_equal(read.pixels[0], (19595 * 0 + 38470 * 80 + 7471 * 160 + 32768) >> 16);
    att_image_free(self->context, &read);
    att_dataset_close(&dataset);
}

static void pack_cifar10(const char *path, const char *kind)
{
    pack_file files[7];
    int count = cifar10_files(files);
    pack made = pack_open(path, kind);
    pack_entry(&made, "cifar-10-batches-bin/", AE_IFDIR, NULL, NULL, 0);
    pack_entry(&made, "cifar-10-batches-bin/readme.html", AE_IFREG, NULL, "hi", 2);
    for (int k = count; k-- > 0;) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/%s", files[k].name);
        pack_entry(&made, name, AE_IFREG, NULL, files[k].bytes, files[k].size);
    }
    pack_close(&made);
}

SCRATCH_TEST(cifar10_is_read_from_archives)
{
    static const char *const kinds[] = {"ustar", "ustar.gz", "zip", "zip0"};
    for (int i = 0; i < 4; i++) {
        pack_cifar10(self->path, kinds[i]);
        assert_cifar10(self, self->path);
    }
}

SCRATCH_TEST(the_official_archive_is_found_in_a_folder)
{
    char path[256];
    snprintf(path, sizeof path, "%s/cifar-10-binary.tar.gz", self->folder);
    pack_cifar10(path, "ustar.gz");
    assert_cifar10(self, self->folder);
    att_dataset *dataset = open_set(self, self->folder, "test", NULL);
    char name[512], expected[300]; /* the same names as when the files lie in the folder itself */
    snprintf(expected, sizeof expected, "%s/test_batch.bin[0]", self->folder);
    assert_string_equal(att_dataset_name(dataset, 0, name, sizeof name), expected);
    att_dataset_close(&dataset);
    static uint8_t bytes[3 * (3 * PLANE + 2)];
    size_t size = make_records(bytes, 4, 3, 1);
    write_file(self, "cifar-100-binary", "train.bin", bytes, size);
    /* beside folders, the archive is ignored: they were probably extracted from it */
    dataset = open_set(self, self->folder, "train", NULL);
    assert_string_equal(dataset->kind, "cifar100");
    att_dataset_close(&dataset);
}

SCRATCH_TEST(class_folders_are_not_mistaken_for_cifar)
{
    static const char *const names[] = {"train/cat/train.bin.png", "train/class_names.txt/1.png", "test/cat/1.png"};
    pictures_pack(self->path, "ustar", names, 3);
    att_dataset *dataset = open_set(self, self->path, "train", NULL);
    assert_string_equal(dataset->kind, "tar");
    assert_int_equal(att_dataset_count(dataset), 2);
    att_dataset_close(&dataset);
}

/* Also checks that only the split's files of a gzipped archive count against the limit. */
SCRATCH_TEST(only_the_files_of_the_split_are_kept)
{
    pack_file files[7];
    int count = cifar10_files(files);
    pack_files(self->path, "ustar.gz", files, count);
    att_dataset_options options = att_dataset_options_defaults();
    options.split = "test";
    options.cache_bytes = files[5].size + files[6].size;
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
    att_dataset_close(&dataset);
    options.cache_bytes--;
    assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_ERR_UNSUPPORTED);
}

/* The header of a tar alone: the file in it is refused before a byte of it is read. */
SCRATCH_TEST(a_too_large_file_is_refused_unread)
{
    static char tar[512];
    strcpy(tar, "cifar-10-batches-bin/data_batch_1.bin");
    strcpy(tar + 100, "0100644");
    strcpy(tar + 124, "04000000001"); /* 512 MiB and 1 byte */
    strcpy(tar + 136, "00000000000");
    memset(tar + 148, ' ', 8);
    tar[156] = '0';
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += (uint8_t)tar[i];
    snprintf(tar + 148, 8, "%06o", sum);
    scratch_write(self, tar, sizeof tar);
    expect_failure(self, self->path, "train", NULL, ATT_ERR_FORMAT,
                   "536870913 bytes; expected at most the 536870912 that such a file can have");
}

SCRATCH_TEST(a_missing_file_is_reported_before_any_is_read)
{
    enum { IMAGES = 200 };
    static uint8_t bytes[IMAGES * (3 * PLANE + 1)];
    size_t size = make_records(bytes, 0, IMAGES, 0);
    const pack_file files[] = {{"data_batch_1.bin", bytes, size},
                               {"data_batch_2.bin", bytes, size},
                               {"data_batch_3.bin", bytes, size},
                               {"data_batch_4.bin", bytes, size}};
    pack_files(self->path, "ustar.gz", files, 4);
    expect_failure(self, self->path, "train", NULL, ATT_ERR_NOT_FOUND, "has no data_batch_5.bin");
    /* Memory for the archive's files and lists of names; decoded pixels would need as much again. */
    assert_in_range(att_context_allocations(self->context).bytes_peak, 4 * size, 5 * size);
}

SCRATCH_TEST(two_copies_of_one_file_are_refused)
{
    static const char *const kinds[] = {"ustar.gz", "ustar"};
    pack_file files[8];
    int count = cifar10_files(files);
    files[count] = (pack_file){"copy/data_batch_2.bin", files[1].bytes, files[1].size};
    for (int k = 0; k < 2; k++) {
        pack_files(self->path, kinds[k], files, count + 1);
        expect_failure(self, self->path, "train", NULL, ATT_ERR_FORMAT,
                       "two files data_batch_2.bin, data_batch_2.bin and copy/data_batch_2.bin");
        att_dataset *dataset = open_set(self, self->path, "test", NULL); /* the split test needs neither */
        att_dataset_close(&dataset);
    }
}

static size_t hundred_names(char *text, size_t size)
{
    size_t length = 0;
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(text + length, size - length, "class_%d\n", i);
    return length;
}

SCRATCH_TEST(cifar100_has_fine_labels)
{
    static uint8_t bytes[3 * (3 * PLANE + 2)];
    char names[2048];
    size_t size = make_records(bytes, 4, 3, 1);
    write_file(self, "cifar-100-binary", "train.bin", bytes, size);
    write_file(self, "cifar-100-binary", "test.bin", bytes, size / 3);
    att_dataset *dataset =
        open_set(self, self->folder, "train", NULL); /* the folder's name decides which data set it is */
    assert_string_equal(dataset->kind, "cifar100");
    assert_string_equal(att_dataset_class_name(dataset, 99), "99");
    att_dataset_close(&dataset);
    write_file(self, "cifar-100-binary", "fine_label_names.txt", names, hundred_names(names, sizeof names));
    dataset = open_set(self, self->folder, "train", NULL);
    assert_string_equal(dataset->kind, "cifar100");
    assert_int_equal(att_dataset_count(dataset), 3);
    assert_int_equal(att_dataset_class_count(dataset), 100);
    assert_string_equal(att_dataset_class_name(dataset, 99), "class_99");
    assert_int_equal(att_dataset_label(dataset, 2), 6);
    assert_pixels(self, dataset, 2, 6, SIDE);
    att_dataset_close(&dataset);
}

static att_dataset *open_coarse(scratch *self, const char *folder)
{
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.coarse = true;
    CHECK(self->context, att_dataset_open(self->context, folder, &options, &dataset));
    return dataset;
}

SCRATCH_TEST(cifar100_has_coarse_labels)
{
    static uint8_t bytes[3 * (3 * PLANE + 2)];
    char names[2048];
    size_t size = make_records(bytes, 4, 3, 1);
    write_file(self, "cifar-100-binary", "train.bin", bytes, size);
    write_file(self, "cifar-100-binary", "fine_label_names.txt", names, hundred_names(names, sizeof names));
    att_dataset *dataset = open_coarse(self, self->folder);
    assert_int_equal(att_dataset_class_count(dataset), 20);
    assert_string_equal(att_dataset_class_name(dataset, 19), "19");
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_dataset_label(dataset, i), 19);
    assert_pixels(self, dataset, 2, 6, SIDE);
    att_dataset_close(&dataset);
    hundred_names(names, sizeof names);
    write_file(self, "cifar-100-binary", "coarse_label_names.txt", names,
               (size_t)(strstr(names, "class_20\n") - names));
    dataset = open_coarse(self, self->folder);
    assert_string_equal(att_dataset_class_name(dataset, 19), "class_19");
    att_dataset_close(&dataset);
    bytes[0] = 20;
    write_file(self, "cifar-100-binary", "train.bin", bytes, size);
    att_dataset_options options = att_dataset_options_defaults();
    options.coarse = true;
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_FORMAT,
                 "image 0 has label 20, expected 0 to 19");
    write_cifar10(self, "other");
    char other[256];
    snprintf(other, sizeof other, "%s/other", self->folder);
    assert_fails(self->context, att_dataset_open(self->context, other, &options, &dataset), ATT_ERR_ARGUMENT,
                 "has no coarse labels: only CIFAR-100 has them");
}

static void write_stl10(const scratch *self, const char *images, const char *labels, int count, const uint8_t *numbers)
{
    static uint8_t bytes[3 * 3 * STL_PLANE];
    for (int image = 0; image < count; image++)
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < STL_SIDE; x++)
                for (int y = 0; y < STL_SIDE; y++)
                    bytes[((image * 3 + c) * STL_SIDE + x) * STL_SIDE + y] = value_at(image, c, x, y);
    write_file(self, "stl10_binary", images, bytes, (size_t)count * 3 * STL_PLANE);
    write_file(self, "stl10_binary", labels, numbers, (size_t)count);
}

SCRATCH_TEST(stl10_images_are_read_column_by_column)
{
    write_stl10(self, "train_X.bin", "train_y.bin", 3, (const uint8_t[]){1, 10, 5});
    write_stl10(self, "test_X.bin", "test_y.bin", 1, (const uint8_t[]){2});
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    assert_string_equal(dataset->kind, "stl10");
    assert_int_equal(att_dataset_count(dataset), 3);
    assert_string_equal(att_dataset_class_name(dataset, 9), "9");
    static const int labels[] = {0, 9, 4};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(att_dataset_label(dataset, i), labels[i]);
        assert_pixels(self, dataset, i, i, STL_SIDE);
    }
    att_dataset_close(&dataset);
    write_stl10(self, "train_X.bin", "train_y.bin", 2, (const uint8_t[]){1, 0});
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_FORMAT, "image 1 has label 0, expected 1 to 10");
    write_file(self, "stl10_binary", "train_y.bin", "\1\1\1", 3);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_MISMATCH, "3 labels for 2 images");
}

SCRATCH_TEST(a_class_map_renumbers_classes_by_name)
{
    write_cifar10(self, "cifar-10-batches-bin");
    const char *map = "dog\nsnake\ncat\nairplane\nautomobile\nbird\ndeer\nfrog\nhorse\nship\ntruck\n";
    scratch_write(self, map, strlen(map));
    att_dataset *dataset = open_set(self, self->folder, "train", self->path);
    assert_int_equal(att_dataset_class_count(dataset), 11);
    assert_int_equal(att_dataset_label(dataset, 5), 0);
    assert_int_equal(att_dataset_label(dataset, 3), 2);
    assert_int_equal(att_dataset_label(dataset, 9), 10);
    att_dataset_close(&dataset);
    scratch_write(self, "dog\ncat\n", 8);
    att_dataset_options options = att_dataset_options_defaults();
    options.class_map = self->path;
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_MISMATCH,
                 "\"airplane\" is not in the class map");
}

SCRATCH_TEST(damaged_files_are_refused_with_the_reason)
{
    static uint8_t bytes[BATCH_IMAGES * (3 * PLANE + 1)];
    static const char folder[] = "cifar-10-batches-bin";
    char path[256];
    size_t size = make_records(bytes, 0, BATCH_IMAGES, 0);
    write_cifar10(self, folder);
    write_file(self, folder, "data_batch_2.bin", bytes, size - 1);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_FORMAT, "data_batch_2.bin");
    write_file(self, folder, "data_batch_2.bin", bytes, 0);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_FORMAT,
                   "the size, 0 bytes, is not a multiple of the image size, 3073 bytes");
    bytes[3 * PLANE + 1] = 10;
    write_file(self, folder, "data_batch_2.bin", bytes, size);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_FORMAT, "image 1 has label 10, expected 0 to 9");
    snprintf(path, sizeof path, "%s/%s/data_batch_2.bin", self->folder, folder);
    assert_int_equal(remove(path), 0);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_NOT_FOUND, "data_batch_2.bin");
    write_file(self, folder, "batches.meta.txt", "a\nb\n", 4);
    expect_failure(self, self->folder, "test", NULL, ATT_ERR_MISMATCH, "names 2 classes, expected 10");
    write_file(self, folder, "batches.meta.txt", "a\0b\n", 4);
    expect_failure(self, self->folder, "test", NULL, ATT_ERR_FORMAT, "zero bytes");
}

static att_status open_and_close(scratch *self)
{
    att_dataset *dataset = NULL;
    att_status status = att_dataset_open(self->context, self->path, NULL, &dataset);
    att_dataset_close(&dataset);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    pack_file files[7];
    pack_files(self->path, "ustar.gz", files, cifar10_files(files));
    assert_survives_lack_of_memory(self, open_and_close);
}
