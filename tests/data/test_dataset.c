/* Data sets in folders: class folders, splits, class maps, Tiny ImageNet and IDX files. */
#include "data/classes.h"
#include "data/opened.h"
#include "shared.h"

/* Opens and closes a data set of `count` images and records the warnings. */
static void open_logged(const char *path, const char *split, bool unlabelled, int64_t count, said *log)
{
    att_context *context = said_context(log);
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.unlabelled = unlabelled;
    CHECK(context, att_dataset_open(context, path, &options, &dataset));
    assert_int_equal(att_dataset_count(dataset), count);
    att_dataset_close(&dataset);
    att_context_destroy(&context);
}

/* Writes the text to <folder>/<name>. */
static void write_bytes(const scratch *self, const char *name, const char *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void write_text(const scratch *self, const char *name, const char *text)
{
    write_bytes(self, name, text, strlen(text));
}

SCRATCH_TEST(files_are_sorted_as_by_timm)
{
    /* Sorted by natural_key() of timm 1.0: [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", name.lower())] */
    static const char *const sorted[] = {"",   "1", "2",    "10",  "a",  "a2",  "A3",  "a10", "a10b",
                                         "ab", "B", "b01c", "b1d", "c1", "c/1", "c/9", "c/10"};
    int count = sizeof(sorted) / sizeof(*sorted);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            int order = att_natural_compare(sorted[i], sorted[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

SCRATCH_TEST(class_folders_are_numbered_by_name)
{
    picture_write(self, "dog/2.png", 12);
    picture_write(self, "dog/10.PNG", 13);
    picture_write(self, "cat/deep/x.jpeg", 11);
    picture_write(self, "cat/a.png", 10);
    picture_write(self, "stray.png", 99);
    picture_write(self, "dog/.hidden.png", 99);
    picture_write(self, "dog/readme.txt", 99);
    picture_write(self, "empty/readme.txt", 99);
    picture_write(self, "dog/x.png/y.txt", 99); /* a folder whose name looks like an image, and a pipe */
    char pipe[512];
    snprintf(pipe, sizeof pipe, "%s/dog/pipe.png", self->folder);
    assert_int_equal(mkfifo(pipe, 0666), 0);
    att_dataset *dataset = open_set(self, self->folder, "train", NULL);
    assert_string_equal(dataset->kind, "folder");
    assert_string_equal(att_dataset_split(dataset), "");
    assert_int_equal(att_dataset_count(dataset), 4);
    assert_int_equal(att_dataset_class_count(dataset), 2);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_FOLDERS);
    assert_string_equal(att_dataset_class_name(dataset, 0), "cat");
    assert_string_equal(att_dataset_class_name(dataset, 1), "dog");
    assert_string_equal(att_dataset_class_name(dataset, 2), "");
    assert_image(self, dataset, 0, 0, 10);
    assert_image(self, dataset, 1, 0, 11);
    assert_image(self, dataset, 2, 1, 12);
    assert_image(self, dataset, 3, 1, 13);
    assert_name_ends(dataset, 1, "/cat/deep/x.jpeg");
    att_image image;
    assert_int_equal(att_dataset_label(dataset, 4), -1);
    assert_int_equal(att_dataset_read(dataset, self->context, 4, 3, &image), ATT_ERR_ARGUMENT);
    assert_int_equal(att_dataset_read(dataset, self->context, -1, 3, &image), ATT_ERR_ARGUMENT);
    att_dataset_close(&dataset);
    assert_null(dataset);
}

SCRATCH_TEST(folders_of_splits_are_found)
{
    picture_write(self, "train/cat/1.png", 1);
    picture_write(self, "train/dog/1.png", 2);
    picture_write(self, "validation/dog/1.png", 3);
    static const struct {
        const char *wanted, *taken;
        int count;
    } splits[] = {{NULL, "train", 2},
                  {"train", "train", 2},
                  {"val", "validation", 1},
                  {"test", "validation", 1},
                  {"validation", "validation", 1}};
    for (int i = 0; i < 5; i++) {
        att_dataset *dataset = open_set(self, self->folder, splits[i].wanted, NULL);
        assert_string_equal(att_dataset_split(dataset), splits[i].taken);
        assert_int_equal(att_dataset_count(dataset), splits[i].count);
        att_dataset_close(&dataset);
    }
    said log;
    open_logged(self->folder, "test", false, 1, &log);
    assert_said(&log, "has no split \"test\"; using \"validation\" instead");
    open_logged(self->folder, "val", false, 1, &log);
    assert_int_equal(log.length, 0);
    expect_failure(self, self->folder, "tarin", NULL, ATT_ERR_ARGUMENT, "tarin");
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s/train'", self->folder);
    assert_int_equal(system(command), 0);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_NOT_FOUND, "validation");
}

/* If the classes of a training run contain all folders, they give the labels of the folders. */
SCRATCH_TEST(a_training_numbers_the_folders_that_it_knows)
{
    picture_write(self, "validation/dog/1.png", 3);
    static const char *const trained[] = {"bird", "dog", "cat"};
    att_dataset_options options = att_dataset_options_defaults();
    options.split = "val";
    options.trained = trained;
    for (options.trained_count = 1; options.trained_count <= 3; options.trained_count++) {
        att_dataset *dataset;
        assert_int_equal(att_dataset_open(self->context, self->folder, &options, &dataset), ATT_OK);
        bool knows = options.trained_count >= 2;
        assert_int_equal(att_dataset_numbering(dataset), knows ? ATT_NUMBERED_BY_TRAINING : ATT_NUMBERED_BY_FOLDERS);
        assert_int_equal(att_dataset_class_count(dataset), knows ? options.trained_count : 1);
        assert_string_equal(att_dataset_class_names(dataset)[0], knows ? "bird" : "dog");
        assert_image(self, dataset, 0, knows ? 1 : 0, 3);
        att_dataset_close(&dataset);
    }
}

/* ImageNet-V2 names its folders 0 to 999. Other names, also 010, and numbers beyond the network's classes do not count.
 */
SCRATCH_TEST(numbers_of_folders_are_those_of_the_networks_classes)
{
    att_dataset *dataset;
    att_dataset_options options = att_dataset_options_defaults();
    picture_write(self, "2/1.png", 2);
    picture_write(self, "11/1.png", 11);
    picture_write(self, "0/1.png", 0);
    for (options.classes = 0; options.classes <= 1000;
         options.classes = options.classes ? options.classes * 10 + 1 : 1) {
        bool numbers = options.classes >= 12;
        assert_int_equal(att_dataset_open(self->context, self->folder, &options, &dataset), ATT_OK);
        assert_int_equal(att_dataset_numbering(dataset), numbers ? ATT_NUMBERED_BY_NAMES : ATT_NUMBERED_BY_FOLDERS);
        assert_int_equal(att_dataset_class_count(dataset), numbers ? options.classes : 3);
        assert_image(self, dataset, 1, numbers ? 2 : 1, 2);
        assert_image(self, dataset, 2, numbers ? 11 : 2, 11);
        att_dataset_close(&dataset);
    }
    options.classes = 1000;
    picture_write(self, "010/1.png", 10);
    assert_int_equal(att_dataset_open(self->context, self->folder, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_FOLDERS);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(a_class_map_numbers_the_classes)
{
    static const char map[] = "\xEF\xBB\xBFn03\r\nbird of paradise\r\nbird cherry\n \r\n\n";
    picture_write(self, "bird of paradise/1.png", 2);
    picture_write(self, "bird cherry/1.png", 1);
    scratch_write(self, map, sizeof map - 1);
    att_dataset *dataset = open_set(self, self->folder, NULL, self->path);
    assert_int_equal(att_dataset_class_count(dataset), 3);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_MAP);
    assert_string_equal(att_dataset_class_name(dataset, 0), "n03");
    assert_string_equal(att_dataset_class_name(dataset, 1), "bird of paradise");
    assert_image(self, dataset, 0, 2, 1);
    assert_image(self, dataset, 1, 1, 2);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(a_class_map_that_does_not_fit_is_refused)
{
    picture_write(self, "n02/1.png", 2);
    picture_write(self, "n01/1.png", 1);
    scratch_write(self, "n01\nm02\n", 8);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "\"n02\" is not in");
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "did you mean");
    scratch_write(self, "n01\nn02 tench, Tinca tinca\n", 27);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "did you mean \"n02 tench, Tinca tinca\"");
    scratch_write(self, "n01\nn02\nn01\n", 12);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_FORMAT, "lines 1 and 3");
    scratch_write(self, "n01\n\nn02\n", 9);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_FORMAT, "line 2");
    scratch_write(self, "\n \n", 3);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_FORMAT, "1 to");
    scratch_write(self, "n01\0n02\n", 8);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_FORMAT, "zero bytes");
    expect_failure(self, self->folder, NULL, "/no/such/map", ATT_ERR_NOT_FOUND, "/no/such/map");
}

/* Images that belong to no class are reported in a warning, wherever they lie. */
SCRATCH_TEST(images_beside_class_folders_cause_a_warning)
{
    static const char *const beside[] = {"0.png", "1.png", "sub/3.png"},
                             *const outer[] = {"0.png", "y/jan/1.png", "y/feb/2.png"},
                             *const splits[] = {"0.png", "train/1.png", "train/cat/2.png", "val/cat/3.png"};
    static const struct {
        const char *const *names;
        int count, kept;
        const char *warning;
    } sets[] = {{beside, 3, 1, "skipped 2 images outside of the class folders, which have no class"},
                {outer, 3, 2, "skipped 1 image outside of the class folders, which has no class"},
                {splits, 4, 1, "skipped 2 images outside of the class folders, which have no class"}};
    char command[128], archive[160];
    snprintf(archive, sizeof archive, "%s.archive", self->folder);
    snprintf(command, sizeof command, "rm -r '%s'/*", self->folder);
    for (int i = 0; i < 3; i++) {
        said log;
        for (int k = 0; k < sets[i].count; k++)
            picture_write(self, sets[i].names[k], k);
        open_logged(self->folder, NULL, false, sets[i].kept, &log);
        assert_said(&log, sets[i].warning);
        open_logged(self->folder, NULL, true, sets[i].count, &log);
        assert_string_equal(log.text, "");
        pictures_pack(archive, "ustar", sets[i].names, sets[i].count);
        open_logged(archive, NULL, false, sets[i].kept, &log);
        assert_said(&log, sets[i].warning);
        unlink(archive);
        assert_int_equal(system(command), 0);
    }
}

/* A link to a parent folder is not followed. Folders nested too deeply are counted in a warning. */
SCRATCH_TEST(loops_of_links_and_deep_folders_are_left_out)
{
    said log;
    char path[512], name[256] = "deep";
    picture_write(self, "a/1.png", 1);
    picture_write(self, "b/2.png", 2);
    snprintf(path, sizeof path, "%s/a/up", self->folder);
    assert_int_equal(symlink("..", path), 0);
    snprintf(path, sizeof path, "%s/b/self", self->folder);
    assert_int_equal(symlink(".", path), 0);
    for (int unlabelled = 0; unlabelled < 2; unlabelled++) {
        open_logged(self->folder, NULL, unlabelled, 2, &log);
        assert_said(&log, "skipped 2 links to a parent folder");
    }
    /* A link to another folder is another class. */
    snprintf(path, sizeof path, "%s/c", self->folder);
    assert_int_equal(symlink("b", path), 0);
    open_logged(self->folder, NULL, false, 3, &log);
    for (int i = 1; i < 32; i++)
        strcat(name, "/d");
    strcat(name, "/1.png");
    picture_write(self, name, 3);
    open_logged(self->folder, NULL, false, 4, &log);
    assert_null(strstr(log.text, "nested"));
    strcpy(strrchr(name, '/'), "/e/2.png");
    picture_write(self, name, 3);
    open_logged(self->folder, NULL, false, 4, &log);
    assert_said(&log, "skipped folders that are nested more than 32 deep: 1");
}

static const char *const tiny_pictures[] = {"tiny/test/images/test_0.png",     "tiny/train/n02/images/n02_0.png",
                                            "tiny/train/n01/images/n01_0.png", "tiny/val/images/val_0.png",
                                            "tiny/val/images/val_1.png",       "tiny/val/images/val_10.png"};
enum { TINY_PICTURES = sizeof tiny_pictures / sizeof *tiny_pictures };
static const char tiny_list_name[] = "tiny/val/val_annotations.txt";
static const char tiny_list[] =
    "val_1.png\tn02\t0\t0\t3\t3\r\nval_0.png\tn01\t0\t0\t3\t3\n\nval_10.png n01\nval_7.png n01\n";

/* The images of val have the classes in the list. The split test has no classes and is not used. */
static void check_tiny(scratch *self, const char *path)
{
    att_dataset *dataset = open_set(self, path, "train", NULL);
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_string_equal(att_dataset_class_name(dataset, 1), "n02");
    assert_image(self, dataset, 0, 0, 2);
    assert_image(self, dataset, 1, 1, 1);
    att_dataset_close(&dataset);
    static const char *const evaluated[] = {"val", "validation", "test"};
    for (int i = 0; i < 3; i++) {
        dataset = open_set(self, path, evaluated[i], NULL);
        assert_string_equal(att_dataset_split(dataset), "val");
        assert_int_equal(att_dataset_count(dataset), 3);
        assert_int_equal(att_dataset_class_count(dataset), 2);
        assert_image(self, dataset, 0, 0, 3);
        assert_image(self, dataset, 1, 0, 5);
        assert_image(self, dataset, 2, 1, 4);
        assert_name_ends(dataset, 1, "val/images/val_10.png");
        att_dataset_close(&dataset);
    }
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    assert_int_equal(att_dataset_open(self->context, path, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_count(dataset), TINY_PICTURES);
    att_dataset_close(&dataset);
}

/* Writes <folder>/tiny. */
static void write_tiny(const scratch *self)
{
    for (int i = 0; i < TINY_PICTURES; i++)
        picture_write(self, tiny_pictures[i], i);
    write_text(self, tiny_list_name, tiny_list);
}

SCRATCH_TEST(the_layout_of_tiny_imagenet_is_read)
{
    char inner[128];
    write_tiny(self);
    write_text(self, "tiny/train/n01/n01_boxes.txt", "n01_0.png\t0\t0\t3\t3\n");
    write_text(self, "tiny/wnids.txt", "n02\nn01\n");
    snprintf(inner, sizeof inner, "%s/tiny", self->folder);
    check_tiny(self, self->folder);
    check_tiny(self, inner);
    said log;
    open_logged(inner, "train", false, 2, &log);
    assert_null(strstr(log.text, "left out"));
    write_text(self, "tiny/train/n01/n02_boxes.txt", "");
    write_text(self, "tiny/train/n01/01_boxes.txt", "");
    open_logged(inner, "train", false, 2, &log);
    assert_said(&log, "skipped files that are not .jpg, .jpeg, .png or .webp: .txt 2");
    static const char *const kinds[] = {"zip", "pax.gz", "ustar"};
    for (int k = 0; k < 3; k++) {
        char archive[160];
        snprintf(archive, sizeof archive, "%s.archive", self->folder);
        pack made = pack_open(archive, kinds[k]);
        for (int i = 0; i < TINY_PICTURES; i++)
            pack_picture(&made, tiny_pictures[i], i);
        pack_entry(&made, tiny_list_name, AE_IFREG, NULL, tiny_list, strlen(tiny_list));
        pack_close(&made);
        check_tiny(self, archive);
        unlink(archive);
    }
}

SCRATCH_TEST(a_list_of_annotations_must_name_a_class_for_each_image)
{
    said log;
    char inner[128], command[256];
    snprintf(inner, sizeof inner, "%s/tiny", self->folder);
    write_tiny(self);
    write_text(self, "tiny/val/images/val_7.gif", "GIF8");
    write_text(self, "tiny/val/images/other.gif", "GIF8");
    open_logged(inner, "val", false, 3, &log);
    assert_said(&log, ".gif 2"); /* with a line in the list, and without one */
    assert_null(strstr(log.text, "no class"));
    write_text(self, tiny_list_name, "\xEF\xBB\xBFval_0.png n01\nval_1.png n01\nval_10.png n01\nval_7.gif n01\n");
    open_logged(inner, "val", false, 3, &log);
    assert_said(&log, ".gif 2");
    assert_null(strstr(log.text, "no class"));
    static const struct {
        const char *list;
        att_status status;
        const char *reason;
    } wrong[] = {
        {"val_0.png\t.n01\n", ATT_ERR_FORMAT, "line 1 of val_annotations.txt: \".n01\" is not a valid class"},
        {"val_0.png\t..\n", ATT_ERR_FORMAT, "line 1 of val_annotations.txt: \"..\" is not a valid class"},
        {"val_0.png\tn/01\n", ATT_ERR_FORMAT, "line 1 of val_annotations.txt: \"n/01\" is not a valid class"},
        {"val_0.png\t/n01\n", ATT_ERR_FORMAT, "line 1 of val_annotations.txt: \"/n01\" is not a valid class"},
        {"val_0.png\t../n01\n", ATT_ERR_FORMAT, "line 1 of val_annotations.txt: \"../n01\" is not a valid class"},
        {"val_0.png\tn01\nval_10.png\n", ATT_ERR_FORMAT, "line 2 of val_annotations.txt names no class"},
        {"val_0.png\tn01\nval_0.png\tn02\n", ATT_ERR_FORMAT, "gives val_0.png two classes, n0"},
        {"val_0.png\tn01\nval_10.png n01\n", ATT_ERR_MISMATCH, "no line for the image val/images/val_1.png"},
        {"", ATT_ERR_MISMATCH, "no line for the image"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text(self, tiny_list_name, wrong[i].list);
        expect_failure(self, inner, "val", NULL, wrong[i].status, wrong[i].reason);
    }
    static const char zero[] = "val_0.png\tn01\n\0val_1.png\tn02\n";
    write_bytes(self, tiny_list_name, zero, sizeof zero - 1);
    expect_failure(self, inner, "val", NULL, ATT_ERR_FORMAT, "val_annotations.txt holds zero bytes");
    /* Without the list, "images" is an ordinary class. */
    snprintf(command, sizeof command, "cd '%s/tiny/val' && rm val_annotations.txt && mkfifo val_annotations.txt",
             self->folder);
    assert_int_equal(system(command), 0);
    open_logged(inner, "val", false, 3, &log);
    assert_said(&log, "val/val_annotations.txt: not a regular file, so no class is read from it");
    att_dataset *dataset = open_set(self, inner, "val", NULL);
    assert_string_equal(att_dataset_class_name(dataset, 0), "images");
    att_dataset_close(&dataset);
}

SCRATCH_TEST(idx_files_are_read)
{
    idx_write(self, "train", 20, 20);
    idx_write(self, "t10k", 9, 9);
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    assert_string_equal(dataset->kind, "idx");
    assert_string_equal(att_dataset_split(dataset), "train");
    assert_int_equal(att_dataset_count(dataset), 20);
    assert_int_equal(att_dataset_class_count(dataset), 7);
    assert_string_equal(att_dataset_class_name(dataset, 6), "6");
    assert_image(self, dataset, 17, 3, 17);
    assert_name_ends(dataset, 17, "/train-images-idx3-ubyte[17]");
    assert_short_name(dataset, 17, "train-images-idx3-ubyte[17]");
    att_dataset_close(&dataset);
    dataset = open_set(self, self->folder, "test", NULL);
    assert_string_equal(att_dataset_split(dataset), "t10k");
    assert_int_equal(att_dataset_count(dataset), 9);
    att_dataset_close(&dataset);
    scratch_write(self, "a\nb\nc\nd\ne\nf\n", 12);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "label 6, but the class map ");
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "has 6 classes");
    scratch_write(self, "a\n", 2);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "has 1 class");
    assert_null(strstr(att_context_message(self->context), "classes"));
    idx_write(self, "train", 20, 19);
    expect_failure(self, self->folder, NULL, NULL, ATT_ERR_MISMATCH, "19 labels for 20 images");
}

SCRATCH_TEST(fashion_mnist_is_read)
{
    static const char folder[] = "/usr/share/datasets/fashion-mnist";
    if (access(folder, R_OK) != 0) {
        print_message("skipped: %s is absent (Debian package dataset-fashion-mnist)\n", folder);
        skip();
    }
    att_dataset *dataset = open_set(self, folder, "val", NULL);
    assert_int_equal(att_dataset_count(dataset), 10000);
    assert_int_equal(att_dataset_class_count(dataset), 10);
    int counts[10] = {0};
    for (int64_t i = 0; i < 10000; i++)
        counts[att_dataset_label(dataset, i)]++;
    for (int c = 0; c < 10; c++)
        assert_int_equal(counts[c], 1000);
    assert_string_equal(att_dataset_class_name(dataset, 0), "T-shirt/top");
    assert_string_equal(att_dataset_class_name(dataset, 9), "Ankle boot");
    att_dataset_close(&dataset);
}

SCRATCH_TEST(imagenet_is_read_with_a_class_map)
{
    char folder[SHARED_PATH], map[SHARED_PATH];
    if (!shared_path("data/imagenet200", folder) || !shared_path(SHARED_SYNSETS, map))
        skip();
    att_dataset *dataset = open_set(self, folder, "val", map);
    assert_string_equal(att_dataset_split(dataset), "val");
    assert_int_equal(att_dataset_count(dataset), 200);
    assert_int_equal(att_dataset_class_count(dataset), 1000);
    assert_string_equal(att_dataset_class_name(dataset, att_dataset_label(dataset, 0)), "n01440764");
    att_dataset_close(&dataset);
}

SCRATCH_TEST(missing_and_damaged_data_are_refused)
{
    att_image image;
    expect_failure(self, "/no/such/folder", NULL, NULL, ATT_ERR_NOT_FOUND, "/no/such/folder");
    expect_failure(self, self->folder, NULL, NULL, ATT_ERR_FORMAT, "no .jpg, .jpeg, .png or .webp");
    scratch_write(self, "text", 4);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, self->path);
    picture_write(self, "cat/1.png", 1);
    char path[256];
    snprintf(path, sizeof(path), "%s/cat/2.png", self->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no image", file);
    fclose(file);
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    assert_fails(self->context, att_dataset_read(dataset, self->context, 1, 3, &image), ATT_ERR_FORMAT, "cat/2.png");
    att_dataset_close(&dataset);
}

static att_status use_folder(scratch *self)
{
    return open_and_read(self, self->folder, NULL, NULL);
}

static att_status use_map(scratch *self)
{
    return open_and_read(self, self->folder, NULL, self->path);
}

static att_status use_tiny(scratch *self)
{
    char path[128];
    snprintf(path, sizeof path, "%s/tiny", self->folder);
    return open_and_read(self, path, "val", NULL);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    picture_write(self, "dog/1.png", 1);
    picture_write(self, "cat/1.png", 1);
    assert_survives_lack_of_memory(self, use_folder);
    scratch_write(self, "cat\ndog\n", 8);
    assert_survives_lack_of_memory(self, use_map);
    write_tiny(self);
    assert_survives_lack_of_memory(self, use_tiny);
    idx_write(self, "train", 20, 20);
    assert_survives_lack_of_memory(self, use_folder);
}

/* Opening a data set asks for each file whether to stop. */
SCRATCH_TEST(opening_stops_when_asked)
{
    enum { IMAGES = 10 };
    char name[16];
    for (int i = 0; i < IMAGES; i++) {
        snprintf(name, sizeof name, "cat/%d.png", i);
        picture_write(self, name, i);
    }
    assert_true(assert_stops(self, use_folder) >= IMAGES);
    idx_write(self, "train", 20, 20);
    assert_true(assert_stops(self, use_folder) >= 4);
}
