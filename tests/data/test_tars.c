/* Sets of tars: ImageNet's own files, a tar for each class, and the index of large sets. Shards: test_shards.c. */
#include <fcntl.h>
#include <sys/resource.h>
#include <utime.h>

#include "data/opened.h"
#include "data/tar_files.h"

static const char *const wnids[] = {"n01440764", "n01443537", "n03888257"};
enum { CLASSES = 3, EACH = 2 };

/* Writes the tar of a class; its pictures are filled with 10 class + 0, 1, ... */
static void write_class(const scratch *self, const char *tar, int class)
{
    char path[512], name[64];
    pack made = pack_open(scratch_path(self, tar, path), "ustar");
    for (int i = 0; i < EACH; i++) {
        snprintf(name, sizeof name, "%s_%d.JPEG", wnids[class], i);
        pack_picture(&made, name, 10 * class + i);
    }
    pack_close(&made);
}

/* Writes a tar of the tars of all classes. The classes come in another order than that of their names. */
static void write_outer(const scratch *self, const char *tar, const char *folder)
{
    char path[512], name[256];
    pack made = pack_open(scratch_path(self, tar, path), "pax");
    for (int i = 0; i < CLASSES; i++) {
        int class = (i + 1) % CLASSES;
        write_class(self, "inner.tar", class);
        snprintf(name, sizeof name, "%s%s.tar", folder, wnids[class]);
        pack_moved(&made, self, "inner.tar", name);
    }
    pack_entry(&made, "._n01440764.tar", AE_IFREG, NULL, "AppleDouble", 11);
    pack_entry(&made, "notes.txt", AE_IFREG, NULL, "x", 1);
    pack_close(&made);
}

static void assert_classes(scratch *self, const att_dataset *dataset)
{
    assert_int_equal(att_dataset_count(dataset), CLASSES * EACH);
    assert_int_equal(att_dataset_class_count(dataset), CLASSES);
    for (int i = 0; i < CLASSES * EACH; i++)
        assert_image(self, dataset, i, i / EACH, 10 * (i / EACH) + i % EACH);
    for (int c = 0; c < CLASSES; c++)
        assert_string_equal(att_dataset_class_name(dataset, c), wnids[c]);
}

static void write_folders(const scratch *self, const char *root)
{
    for (int class = 0; class < CLASSES; class ++)
        for (int i = 0; i < EACH; i++) {
            char name[128];
            snprintf(name, sizeof name, "%s/%s/%s_%d.JPEG", root, wnids[class], wnids[class], i);
            picture_write(self, name, 10 * class + i);
        }
}

/* All layouts of the same images have the same listing, and the same contents if the paths below the data set are
 * the same. */
SCRATCH_TEST(tars_of_classes_are_read)
{
    static const char *const layouts[] = {"outer.tar", "classes", "deep.tar",
                                          "pattern/{n01440764,n01443537,n03888257}.tar", "folders"};
    char path[512], text[128], listing[ATT_DATASET_LISTING], contents[ATT_DATASET_CONTENTS];
    static char first_listing[ATT_DATASET_LISTING], first_contents[ATT_DATASET_CONTENTS];
    char deep[240];
    memset(deep, 'd', 200);
    strcpy(deep + 200, "/");
    write_outer(self, layouts[0], "");
    write_outer(self, layouts[2], deep);
    write_folders(self, layouts[4]);
    for (int class = 0; class < CLASSES; class ++)
        for (int i = 0; i < 2; i++) {
            snprintf(text, sizeof text, "%s/%s.tar", i ? "classes" : "pattern", wnids[class]);
            write_class(self, text, class);
        }
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", self->folder, layouts[i]);
        att_dataset *dataset = open_set(self, path, i % 2 ? "val" : NULL, NULL);
        assert_string_equal(dataset->kind, i < 4 ? "tar" : "folder");
        assert_string_equal(att_dataset_split(dataset), "");
        assert_classes(self, dataset);
        assert_name_ends(dataset, 5, "/n03888257/n03888257_1.JPEG");
        att_dataset_listing(dataset, listing);
        assert_int_equal(att_dataset_contents(dataset, self->context, contents), ATT_OK);
        if (i == 0) {
            strcpy(first_listing, listing);
            strcpy(first_contents, contents);
            assert_short_name(dataset, 5, "n03888257/n03888257_1.JPEG");
        }
        assert_string_equal(listing, first_listing);
        if (i != 2)
            assert_string_equal(contents, first_contents);
        att_dataset_close(&dataset);
    }
}

SCRATCH_TEST(splits_of_tars_are_found)
{
    write_class(self, "data/train/n01440764.tar", 0);
    write_class(self, "data/train/n01443537.tar", 1);
    picture_write(self, "data/val/n01440764/a.png", 50);
    picture_write(self, "data/val/n01443537/b.png", 51);
    char data[128];
    snprintf(data, sizeof data, "%s/data", self->folder);
    att_dataset *dataset = open_set(self, data, "train", NULL);
    assert_string_equal(att_dataset_split(dataset), "train");
    assert_int_equal(att_dataset_count(dataset), 2 * EACH);
    assert_short_name(dataset, 0, "train/n01440764/n01440764_0.JPEG");
    att_dataset_close(&dataset);
    dataset = open_set(self, data, "val", NULL);
    assert_string_equal(dataset->kind, "folder");
    assert_string_equal(att_dataset_split(dataset), "val");
    assert_image(self, dataset, 1, 1, 51);
    att_dataset_close(&dataset);
    /* Neither tars nor a folder of the split. */
    write_class(self, "only/train/n01440764.tar", 0);
    snprintf(data, sizeof data, "%s/only", self->folder);
    expect_failure(self, data, "val", NULL, ATT_ERR_NOT_FOUND, "has tars, but none of the split \"val\"");
    /* Without labels, the tars of all splits count. */
    write_class(self, "both/train/n01440764.tar", 0);
    write_class(self, "both/val/n01443537.tar", 1);
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    snprintf(data, sizeof data, "%s/both", self->folder);
    assert_int_equal(att_dataset_open(self->context, data, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_count(dataset), 2 * EACH);
    assert_image(self, dataset, 2, -1, 10);
    att_dataset_close(&dataset);
    /* A folder of photographs that has a tar, too, is a folder of photographs. */
    picture_write(self, "photos/a.png", 1);
    write_class(self, "photos/old.tar", 0);
    snprintf(data, sizeof data, "%s/photos", self->folder);
    assert_int_equal(att_dataset_open(self->context, data, &options, &dataset), ATT_OK);
    assert_string_equal(dataset->kind, "folder");
    att_dataset_close(&dataset);
}

/* --- ImageNet's files --------------------------------------------------------------------------------------------- */

/* Writes the devkit, as a .tar.gz or a folder, with the classes of the images 1, 2, ... */
static void write_kit(const scratch *self, const char *truth, bool folder)
{
    char path[512];
    if (folder) {
        scratch_text(self, "imagenet/ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", truth);
        return;
    }
    pack made = pack_open(scratch_path(self, "imagenet/ILSVRC2012_devkit_t12.tar.gz", path), "ustar.gz");
    pack_entry(&made, "ILSVRC2012_devkit_t12/readme.txt", AE_IFREG, NULL, "x", 1);
    pack_entry(&made, "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", AE_IFREG, NULL, truth,
               strlen(truth));
    pack_close(&made);
}

SCRATCH_TEST(imagenets_own_files_are_read)
{
    static const char *const images[] = {"ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000002.JPEG",
                                         "ILSVRC2012_val_00000003.JPEG", "ILSVRC2012_val_00000004.JPEG"};
    char path[512], data[128];
    snprintf(data, sizeof data, "%s/imagenet", self->folder);
    write_outer(self, "imagenet/ILSVRC2012_img_train.tar", "");
    write_class(self, "imagenet/ILSVRC2012_img_train_t3.tar", 0);
    pictures_pack(scratch_path(self, "imagenet/ILSVRC2012_img_val.tar", path), "ustar", images, 4);
    expect_failure(self, data, "val", NULL, ATT_ERR_NOT_FOUND, "put this file beside them");
    for (int folder = 0; folder < 2; folder++) {
        /* The classes by ILSVRC2012_ID are n03888257, n01440764, n03888257, n01443537. */
        write_kit(self, "942\n449\n942\n450\n", folder);
        att_dataset *dataset = open_set(self, data, "train", NULL);
        assert_string_equal(att_dataset_split(dataset), "train");
        assert_classes(self, dataset);
        assert_name_ends(dataset, 0, "/ILSVRC2012_img_train.tar/n01440764/n01440764_0.JPEG");
        att_dataset_close(&dataset);
        dataset = open_set(self, data, "val", NULL);
        assert_string_equal(att_dataset_split(dataset), "val");
        assert_int_equal(att_dataset_class_count(dataset), CLASSES);
        static const int numbers[] = {1, 3, 0, 2}, labels[] = {0, 1, 2, 2};
        for (int i = 0; i < 4; i++)
            assert_image(self, dataset, i, labels[i], numbers[i]);
        assert_name_ends(dataset, 1, "/ILSVRC2012_img_val.tar/ILSVRC2012_val_00000004.JPEG");
        att_dataset_close(&dataset);
        dataset = open_set(self, path, NULL, NULL); /* the tar's own path */
        assert_image(self, dataset, 0, 0, 1);
        att_dataset_close(&dataset);
        char kit[512];
        assert_int_equal(remove(scratch_path(self, "imagenet/ILSVRC2012_devkit_t12.tar.gz", kit)), folder ? -1 : 0);
    }
    write_kit(self, "942\n449\n942\n", true);
    expect_failure(self, data, "val", NULL, ATT_ERR_MISMATCH, "has 3 images, but there is");
    write_kit(self, "942\n449\n942\n1001\n", true);
    expect_failure(self, data, "val", NULL, ATT_ERR_FORMAT, "line 4");
    /* Unpacked validation images in one folder. */
    write_kit(self, "942\n449\n", true);
    remove(path);
    picture_write(self, "imagenet/val/ILSVRC2012_val_00000001.JPEG", 5);
    picture_write(self, "imagenet/val/ILSVRC2012_val_00000002.JPEG", 6);
    att_dataset *dataset = open_set(self, data, "val", NULL);
    assert_string_equal(att_dataset_split(dataset), "val");
    assert_image(self, dataset, 0, 0, 6);
    assert_image(self, dataset, 1, 1, 5);
    att_dataset_close(&dataset);
}

/* FNV-1a; 0xcbf29ce484222325 begins it. */
static uint64_t hash_more(uint64_t hash, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

/* Images 1 to 1000 have the ILSVRC2012_IDs 1 to 1000. */
SCRATCH_TEST(every_id_of_the_devkit_has_its_class)
{
    enum { IDS = 1000 };
    char truth[8 * IDS] = "", path[512], name[64], data[128];
    uint8_t labels[2 * IDS];
    void *bytes;
    size_t size;
    picture_make(7, &bytes, &size);
    pack made = pack_open(scratch_path(self, "imagenet/ILSVRC2012_img_val.tar", path), "ustar");
    for (int i = 1, length = 0; i <= IDS; i++) {
        snprintf(name, sizeof name, "ILSVRC2012_val_%08d.JPEG", i);
        pack_entry(&made, name, AE_IFREG, NULL, bytes, size);
        length += snprintf(truth + length, sizeof truth - (size_t)length, "%d\n", i);
    }
    pack_close(&made);
    free(bytes);
    write_kit(self, truth, true);
    snprintf(data, sizeof data, "%s/imagenet", self->folder);
    att_dataset *dataset = open_set(self, data, "val", NULL);
    assert_int_equal(att_dataset_count(dataset), IDS);
    assert_int_equal(att_dataset_class_count(dataset), IDS);
    for (int i = 0; i < IDS; i++) {
        att_dataset_short_name(dataset, i, path, sizeof path);
        const int id = atoi(strstr(path, "_val_") + strlen("_val_")), label = att_dataset_label(dataset, i);
        labels[2 * id - 2] = (uint8_t)(label & 255);
        labels[2 * id - 1] = (uint8_t)(label >> 8);
    }
    assert_true(hash_more(0xcbf29ce484222325, labels, sizeof labels) ==
                0x36b0fed5da035d1d); /* of the table as released */
    att_dataset_close(&dataset);
}

/* --- the index ---------------------------------------------------------------------------------------------------- */

enum { MANY = 1000 };

static void write_many(const scratch *self, const char *tar)
{
    char path[512], name[64];
    void *bytes;
    size_t size;
    picture_make(7, &bytes, &size);
    pack made = pack_open(scratch_path(self, tar, path), "ustar");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%s/%d.png", i % 3 ? "cat" : "dog", i);
        pack_entry(&made, name, AE_IFREG, NULL, bytes, size);
    }
    pack_close(&made);
    free(bytes);
}

/* Returns the path of the only index in a folder; NULL if there is none. */
static const char *find_index(const char *folder, char path[512])
{
    DIR *entries = opendir(folder);
    int found = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 6, ".index") != 0)
            continue;
        snprintf(path, 512, "%.200s/%.200s", folder, entry->d_name);
        found++;
    }
    if (entries)
        closedir(entries);
    assert_true(found <= 1);
    return found ? path : NULL;
}

static void assert_many(scratch *self, const char *path)
{
    att_dataset *dataset = open_set(self, path, NULL, NULL);
    assert_int_equal(att_dataset_count(dataset), MANY);
    assert_image(self, dataset, MANY - 1, 1, 7);
    assert_name_ends(dataset, MANY - 1, "/dog/999.png");
    att_dataset_close(&dataset);
}

SCRATCH_TEST(a_large_listing_is_kept)
{
    char path[512], index[512], again[512];
    write_many(self, "many.tar");
    scratch_path(self, "many.tar", path);
    assert_many(self, path);
    assert_non_null(find_index(self->folder, index));
    /* The second listing does not read the headers: a damaged one does not matter. */
    damage(path, 512 * 2);
    assert_many(self, path);
    /* A damaged index is made again, which now fails for the tar. */
    damage(index, -5);
    expect_failure(self, path, NULL, NULL, ATT_ERR_FORMAT, "many.tar");
    damage(path, 512 * 2);
    assert_many(self, path);
    assert_many(self, path);
    /* So is one of a tar that has changed. */
    struct utimbuf earlier = {.actime = 1000, .modtime = 1000};
    assert_int_equal(utime(path, &earlier), 0);
    damage(path, 512 * 2);
    expect_failure(self, path, NULL, NULL, ATT_ERR_FORMAT, "many.tar");
    damage(path, 512 * 2);
    assert_many(self, path);
    assert_string_equal(find_index(self->folder, again), index);
    assert_int_equal(self->warnings, 0);
}

/* The test runs as another user if it runs as root, who may write everywhere. */
/* Replaces the class "cat" in an index, and makes the index's hash match again. */
static void forge(const char *path, const char *class_name)
{
    enum { MOST = 1 << 17, HEAD = 24 };
    static uint8_t bytes[MOST];
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, MOST, file);
    assert_true(size > HEAD && size < MOST);
    for (size_t i = HEAD; i + 4 < size; i++)
        if (memcmp(bytes + i, "\3cat", 4) == 0)
            memcpy(bytes + i + 1, class_name, 3);
    const uint64_t hash = hash_more(0xcbf29ce484222325, bytes + HEAD, size - HEAD);
    for (int i = 0; i < 8; i++)
        bytes[HEAD - 8 + i] = (uint8_t)(hash >> 8 * i);
    rewind(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* An index whose names could not be those of classes counts as damaged. */
SCRATCH_TEST(class_names_in_an_index_are_checked)
{
    static const struct {
        const char *forged, *read;
    } cases[] = {{"cow", "cow"}, {"..x", "cat"}, {"../", "cat"}, {"/ab", "cat"}, {"a/b", "cat"}, {"a\nb", "cat"}};
    char path[512], index[512], key[16];
    pack made = pack_open(scratch_path(self, "samples.tar", path), "ustar");
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "%d", i);
        pack_sample(&made, key, 7, "cls", "cat");
    }
    pack_close(&made);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_dataset *dataset = open_set(self, path, NULL, NULL);
        att_dataset_close(&dataset);
        assert_non_null(find_index(self->folder, index));
        forge(index, cases[i].forged);
        dataset = open_set(self, path, NULL, NULL);
        assert_int_equal(att_dataset_count(dataset), MANY);
        assert_int_equal(att_dataset_class_count(dataset), 1);
        assert_string_equal(att_dataset_class_name(dataset, 0), cases[i].read);
        att_dataset_close(&dataset);
        assert_int_equal(remove(index), 0);
    }
}

SCRATCH_TEST(an_index_that_cannot_lie_beside_the_tars_lies_in_the_cache)
{
    enum { NOBODY = 65534 };
    char path[512], index[512], cache[128], inside[160], data[128];
    uid_t user = geteuid();
    snprintf(cache, sizeof cache, "%s/cache", self->folder);
    snprintf(data, sizeof data, "%s/data", self->folder);
    write_many(self, "data/many.tar");
    scratch_path(self, "data/many.tar", path);
    assert_int_equal(mkdir(cache, 0777) | chmod(cache, 0777) | chmod(self->folder, 0755) | chmod(data, 0555), 0);
    setenv("XDG_CACHE_HOME", cache, 1);
    if (user == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    assert_many(self, path);
    assert_null(find_index(data, index));
    snprintf(inside, sizeof inside, "%s/attscope", cache);
    assert_non_null(find_index(inside, index));
    assert_int_equal(seteuid(user), 0);
    damage(path, 512 * 2);
    if (user == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    assert_many(self, path);
    /* Nowhere: the data set is opened all the same. */
    assert_int_equal(remove(index), 0);
    assert_int_equal(chmod(inside, 0555), 0);
    assert_int_equal(seteuid(user), 0);
    damage(path, 512 * 2);
    if (user == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    assert_many(self, path);
    assert_null(find_index(inside, index));
    assert_int_equal(seteuid(user), 0);
    assert_int_equal(chmod(data, 0755) | chmod(inside, 0755), 0);
    unsetenv("XDG_CACHE_HOME");
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_tar_that_changes_while_it_is_used_is_noticed)
{
    att_image image;
    write_class(self, "classes/n01440764.tar", 0);
    write_class(self, "classes/n01443537.tar", 1);
    char path[512], folder[128];
    snprintf(folder, sizeof folder, "%s/classes", self->folder);
    att_dataset *dataset = open_set(self, folder, NULL, NULL);
    assert_int_equal(truncate(scratch_path(self, "classes/n01440764.tar", path), 600), 0);
    assert_fails(self->context, att_dataset_read(dataset, self->context, 0, 3, &image), ATT_ERR_IO,
                 "n01440764.tar has changed");
    assert_image(self, dataset, 2, 1, 10);
    att_dataset_close(&dataset);
    expect_failure(self, folder, NULL, NULL, ATT_ERR_FORMAT, "n01440764.tar");
}

SCRATCH_TEST(tars_that_cannot_be_read_in_place_are_refused)
{
    char path[512], folder[128];
    snprintf(folder, sizeof folder, "%s/classes", self->folder);
    static const char *const names[] = {"1.png", "2.png"};
    /* A compressed tar among others, and inside a tar. */
    write_class(self, "classes/a.tar", 0);
    pictures_pack(scratch_path(self, "classes/b.tar", path), "ustar.gz", names, 2);
    expect_failure(self, folder, NULL, NULL, ATT_ERR_UNSUPPORTED, "b.tar is not an uncompressed tar");
    pack made = pack_open(self->path, "ustar");
    pack_moved(&made, self, "classes/b.tar", "b.tar");
    pack_close(&made);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_UNSUPPORTED, "file/b.tar is not an uncompressed tar");
    /* A compressed tar of tars. */
    made = pack_open(self->path, "ustar.gz");
    pack_moved(&made, self, "classes/a.tar", "a.tar");
    pack_close(&made);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_UNSUPPORTED, "holds tars, such as a.tar");
    /* A tar inside a tar inside a tar is not a class. */
    write_outer(self, "inner2.tar", "");
    made = pack_open(self->path, "ustar");
    pack_moved(&made, self, "inner2.tar", "inner2.tar");
    pack_close(&made);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "contains no .jpg");
    /* An inner tar that is cut off by the end of the outer one. */
    write_outer(self, "file", "");
    struct stat info;
    assert_int_equal(stat(self->path, &info), 0);
    for (off_t size = 1024; size < info.st_size - 1024; size += 512) {
        assert_int_equal(truncate(self->path, info.st_size), 0);
        write_outer(self, "file", "");
        assert_int_equal(truncate(self->path, size), 0);
        att_status status = open_and_read(self, self->path, NULL, NULL);
        if (status == ATT_OK)
            assert_true(self->warnings > 0); /* cut off between two tars */
        self->warnings = 0;
    }
    static const struct {
        const char *name, *part;
        att_status status;
    } patterns[] = {{"x{0..2}.tar", "does not exist, but is one of", ATT_ERR_NOT_FOUND},
                    {"x{2..0}.tar", "must not descend", ATT_ERR_ARGUMENT},
                    {"x{0..99999999}.tar", "too many", ATT_ERR_ARGUMENT},
                    {"x{a,{b}}.tar", "braces inside braces", ATT_ERR_ARGUMENT},
                    {"x{a}{b.tar", "counterpart", ATT_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        expect_failure(self, scratch_path(self, patterns[i].name, path), NULL, NULL, patterns[i].status,
                       patterns[i].part);
}

/* Writes the header of a file into a tar, in the format of ustar. */
static void put_header(FILE *tar, const char *name, unsigned long long size)
{
    char block[512] = {0};
    unsigned sum = 0;
    snprintf(block, 100, "%s", name);
    snprintf(block + 100, 8, "0000644");
    snprintf(block + 124, 12, "%011llo", size);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    assert_int_equal(fwrite(block, 1, sizeof block, tar), sizeof block);
}

/* The file is a hole, except for its headers and images. */
SCRATCH_TEST(images_behind_4_gib_are_read)
{
    static const off_t hole = (off_t)5 << 30;
    static const char end[1024];
    void *bytes;
    size_t size;
    picture_make(9, &bytes, &size);
    FILE *tar = fopen(self->path, "wb");
    assert_non_null(tar);
    put_header(tar, "cat/notes.bin", (unsigned long long)hole);
    assert_int_equal(fseeko(tar, hole, SEEK_CUR), 0);
    for (int i = 0; i < 2; i++) {
        put_header(tar, i ? "dog/1.png" : "cat/1.png", size);
        assert_int_equal(fwrite(bytes, 1, size, tar), size);
        fseeko(tar, 512 - (long)size % 512, SEEK_CUR);
    }
    assert_int_equal(fwrite(end, 1, sizeof end, tar), sizeof end);
    assert_int_equal(fclose(tar), 0);
    free(bytes);
    att_dataset *dataset = open_set(self, self->path, NULL, NULL);
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_image(self, dataset, 1, 1, 9);
    att_dataset_close(&dataset);
}

/* More tars than descriptors. */
SCRATCH_TEST(few_descriptors_are_enough)
{
    enum { TARS = 40 };
    char name[64], folder[128];
    snprintf(folder, sizeof folder, "%s/classes", self->folder);
    for (int i = 0; i < TARS; i++) {
        snprintf(name, sizeof name, "classes/c%02d.tar", i);
        write_class(self, name, i % CLASSES);
    }
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 24;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    att_dataset *dataset = open_set(self, folder, NULL, NULL);
    assert_int_equal(att_dataset_count(dataset), TARS * EACH);
    for (int i = 0; i < TARS; i++)
        assert_image(self, dataset, EACH * i + 1, i, 10 * (i % CLASSES) + 1);
    att_dataset_close(&dataset);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static att_status open_imagenet(scratch *self)
{
    char data[128];
    snprintf(data, sizeof data, "%s/imagenet", self->folder);
    att_status status = open_and_read(self, data, "val", NULL);
    return status == ATT_OK ? open_and_read(self, data, "train", NULL) : status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    static const char *const images[] = {"ILSVRC2012_val_00000001.JPEG"};
    char path[512];
    write_kit(self, "2\n", false);
    write_outer(self, "imagenet/ILSVRC2012_img_train.tar", "");
    pictures_pack(scratch_path(self, "imagenet/ILSVRC2012_img_val.tar", path), "ustar", images, 1);
    assert_survives_lack_of_memory(self, open_imagenet);
}
