#include <attscope/data.h>

#include "core/memory.h"
#include "data/classes.h"
#include "data/pictures.h"

static att_dataset *open_set(scratch *self, const char *path, const char *split, const char *map)
{
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = map;
    if (att_dataset_open(self->context, path, &options, &dataset) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return dataset;
}

static void expect_failure(scratch *self, const char *path, const char *split, const char *map, att_status status,
                           const char *part)
{
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = map;
    size_t allocated = att_context_allocations(self->context).bytes_now;
    assert_int_equal(att_dataset_open(self->context, path, &options, &dataset), status);
    assert_null(dataset);
    assert_message_has(self, part);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

/* What a context says in its log. */
typedef struct said {
    char text[2000];
    size_t length;
} said;

static void keep_line(void *user, att_log_level level, const char *line)
{
    said *log = user;
    if (level == ATT_LOG_WARNING && log->length < sizeof log->text)
        log->length += (size_t)snprintf(log->text + log->length, sizeof log->text - log->length, "%s\n", line);
}

/* Opens and closes a data set of `count` images; what was warned of meanwhile. */
static void open_logged(const char *path, const char *split, bool unlabelled, int64_t count, said *log)
{
    att_settings settings = att_settings_defaults();
    att_context *context = NULL;
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    *log = (said){.length = 0};
    settings.threads = 1;
    settings.log = keep_line;
    settings.log_user = log;
    options.split = split;
    options.unlabelled = unlabelled;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    if (att_dataset_open(context, path, &options, &dataset) != ATT_OK)
        fail_msg("%s", att_context_message(context));
    assert_int_equal(att_dataset_count(dataset), count);
    att_dataset_close(&dataset);
    att_context_destroy(&context);
}

static void assert_said(const said *log, const char *part)
{
    if (!strstr(log->text, part))
        fail_msg("the log \"%s\" lacks \"%s\"", log->text, part);
}

/* Image `index` has this label and is filled with this value, in grey and in colour. */
static void assert_image(scratch *self, const att_dataset *dataset, int64_t index, int label, int value)
{
    assert_int_equal(att_dataset_label(dataset, index), label);
    for (int channels = 1; channels <= 3; channels += 2) {
        att_image image;
        if (att_dataset_read(dataset, self->context, index, channels, &image) != ATT_OK)
            fail_msg("%s", att_context_message(self->context));
        assert_int_equal(image.width, PICTURE_SIDE);
        assert_int_equal(image.height, PICTURE_SIDE);
        assert_int_equal(image.channels, channels);
        for (int i = 0; i < PICTURE_SIDE * PICTURE_SIDE * channels; i++)
            assert_int_equal(image.pixels[i], value);
        att_image_free(self->context, &image);
    }
}

static void assert_name_ends(const att_dataset *dataset, int64_t index, const char *end)
{
    char name[1024];
    att_dataset_name(dataset, index, name, sizeof(name));
    size_t length = strlen(name);
    assert_true(length >= strlen(end));
    assert_string_equal(name + length - strlen(end), end);
}

static void test_order_is_timms(void **state)
{
    (void)state;
    /* By natural_key() of timm 1.0: [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", name.lower())] */
    static const char *const sorted[] = {"",   "1", "2",    "10",  "a",  "a2",  "A3",  "a10", "a10b",
                                         "ab", "B", "b01c", "b1d", "c1", "c/1", "c/9", "c/10"};
    int count = sizeof(sorted) / sizeof(*sorted);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            int order = att_natural_compare(sorted[i], sorted[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

static void test_folder(void **state)
{
    scratch *self = *state;
    picture_write(self, "dog/2.png", 12);
    picture_write(self, "dog/10.PNG", 13);
    picture_write(self, "cat/deep/x.jpeg", 11);
    picture_write(self, "cat/a.png", 10);
    picture_write(self, "stray.png", 99);
    picture_write(self, "dog/.hidden.png", 99);
    picture_write(self, "dog/readme.txt", 99);
    picture_write(self, "empty/readme.txt", 99);
    picture_write(self, "dog/x.png/y.txt", 99); /* a folder, whatever it is called; and a pipe */
    char pipe[512];
    snprintf(pipe, sizeof pipe, "%s/dog/pipe.png", self->folder);
    assert_int_equal(mkfifo(pipe, 0666), 0);
    att_dataset *dataset = open_set(self, self->folder, "train", NULL);
    assert_string_equal(att_dataset_format(dataset), "folder");
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

static void test_split_folders(void **state)
{
    scratch *self = *state;
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
    expect_failure(self, self->folder, "tarin", NULL, ATT_ERR_ARGUMENT, "tarin");
    /* By the names of a training's classes where it has them all; a class map, and formats with labels, come first. */
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
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s/train'", self->folder);
    assert_int_equal(system(command), 0);
    expect_failure(self, self->folder, "train", NULL, ATT_ERR_NOT_FOUND, "validation");
}

static void test_class_map(void **state)
{
    scratch *self = *state;
    picture_write(self, "n02/1.png", 2);
    picture_write(self, "n01/1.png", 1);
    scratch_write(self, "n03 tench, Tinca\n n02\tgoldfish\r\nn01\n\n", 37);
    att_dataset *dataset = open_set(self, self->folder, NULL, self->path);
    assert_int_equal(att_dataset_class_count(dataset), 3);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_MAP);
    assert_string_equal(att_dataset_class_name(dataset, 1), "n02");
    assert_image(self, dataset, 0, 2, 1);
    assert_image(self, dataset, 1, 1, 2);
    att_dataset_close(&dataset);
    scratch_write(self, "\xEF\xBB\xBFn02\nn01\n", 11);
    dataset = open_set(self, self->folder, NULL, self->path);
    assert_string_equal(att_dataset_class_name(dataset, 0), "n02");
    att_dataset_close(&dataset);
    scratch_write(self, "n01\nm02\n", 8);
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "\"n02\" is not in");
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "did you mean");
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

static void test_archives(void **state)
{
    scratch *self = *state;
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
    expect_failure(self, self->path, "val", NULL, ATT_ERR_NOT_FOUND, "but \"train\"");
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

static void test_an_archive_for_each_split(void **state)
{
    scratch *self = *state;
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
    assert_string_equal(att_dataset_format(dataset), "zip");
    assert_string_equal(att_dataset_split(dataset), "test");
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_image(self, dataset, 1, 1, 1);
    assert_name_ends(dataset, 1, "/test.zip/dog/9.png");
    att_dataset_close(&dataset);
    /* Beside class folders they are taken for what these were unpacked from. */
    picture_write(self, "train/ape/1.png", 4);
    dataset = open_set(self, self->folder, NULL, NULL);
    assert_string_equal(att_dataset_format(dataset), "folder");
    assert_int_equal(att_dataset_count(dataset), 1);
    att_dataset_close(&dataset);
}

static void write_text(const scratch *self, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *const tiny_pictures[] = {"tiny/test/images/test_0.png",     "tiny/train/n02/images/n02_0.png",
                                            "tiny/train/n01/images/n01_0.png", "tiny/val/images/val_0.png",
                                            "tiny/val/images/val_1.png",       "tiny/val/images/val_10.png"};
enum { TINY_PICTURES = sizeof tiny_pictures / sizeof *tiny_pictures };
static const char tiny_list[] =
    "val_1.png\tn02\t0\t0\t3\t3\r\nval_0.png\tn01\t0\t0\t3\t3\n\nval_10.png n01\nval_7.png n01\n";

/* Images of val have the classes of the list; test, which has none, is not taken. */
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

static void test_tiny_imagenets_own_layout(void **state)
{
    scratch *self = *state;
    char inner[128], command[256];
    for (int i = 0; i < TINY_PICTURES; i++)
        picture_write(self, tiny_pictures[i], i);
    write_text(self, "tiny/val/val_annotations.txt", tiny_list);
    write_text(self, "tiny/train/n01/n01_boxes.txt", "n01_0.png\t0\t0\t3\t3\n");
    write_text(self, "tiny/wnids.txt", "n02\nn01\n");
    snprintf(inner, sizeof inner, "%s/tiny", self->folder);
    check_tiny(self, self->folder);
    check_tiny(self, inner);
    static const char *const kinds[] = {"zip", "pax.gz", "ustar"};
    for (int k = 0; k < 3; k++) {
        char archive[160];
        snprintf(archive, sizeof archive, "%s.archive", self->folder);
        pack made = pack_open(archive, kinds[k]);
        for (int i = 0; i < TINY_PICTURES; i++)
            pack_picture(&made, tiny_pictures[i], i);
        pack_entry(&made, "tiny/val/val_annotations.txt", AE_IFREG, NULL, tiny_list, strlen(tiny_list));
        pack_close(&made);
        check_tiny(self, archive);
        unlink(archive);
    }
    said log;
    write_text(self, "tiny/val/images/val_7.gif", "GIF8");
    write_text(self, "tiny/val/images/other.gif", "GIF8");
    open_logged(inner, "val", false, 3, &log);
    assert_null(strstr(log.text, "no class"));
    write_text(self, "tiny/val/val_annotations.txt",
               "\xEF\xBB\xBFval_0.png n01\nval_1.png n01\nval_10.png n01\nval_7.gif n01\n");
    open_logged(inner, "val", false, 3, &log);
    assert_said(&log, ".gif 1");
    assert_null(strstr(log.text, "no class"));
    static const char *const no_names[] = {".n01", "..", "n/01", "/n01"};
    for (int i = 0; i < 4; i++) {
        char line[64];
        snprintf(line, sizeof line, "val_0.png\t%s\n", no_names[i]);
        write_text(self, "tiny/val/val_annotations.txt", line);
        expect_failure(self, inner, "val", NULL, ATT_ERR_FORMAT, "line 1 of val_annotations.txt names no class");
    }
    write_text(self, "tiny/val/val_annotations.txt", "val_0.png\tn01\nval_10.png n01\n");
    expect_failure(self, inner, "val", NULL, ATT_ERR_MISMATCH, "no line for the image val/images/val_1.png");
    write_text(self, "tiny/val/val_annotations.txt", "val_0.png\tn01\nval_10.png\n");
    expect_failure(self, inner, "val", NULL, ATT_ERR_FORMAT, "line 2 of val_annotations.txt names no class");
    write_text(self, "tiny/val/val_annotations.txt", "val_0.png\t../n01\n");
    expect_failure(self, inner, "val", NULL, ATT_ERR_FORMAT, "line 1 of val_annotations.txt names no class");
    write_text(self, "tiny/val/val_annotations.txt", "val_0.png\tn01\nval_0.png\tn02\n");
    expect_failure(self, inner, "val", NULL, ATT_ERR_FORMAT, "gives val_0.png two classes, n0");
    write_text(self, "tiny/val/val_annotations.txt", "");
    expect_failure(self, inner, "val", NULL, ATT_ERR_MISMATCH, "no line for the image");
    /* Without the list, "images" is a class like any other. */
    snprintf(command, sizeof command, "cd '%s/tiny/val' && rm val_annotations.txt && mkfifo val_annotations.txt",
             self->folder);
    assert_int_equal(system(command), 0);
    open_logged(inner, "val", false, 3, &log);
    assert_said(&log, "val/val_annotations.txt: not a regular file, so that no image has its class from it");
    att_dataset *dataset = open_set(self, inner, "val", NULL);
    assert_string_equal(att_dataset_class_name(dataset, 0), "images");
    att_dataset_close(&dataset);
}

/* A tar begins with a file's name, which may begin as an image or a compressed file does. */
static void test_a_tar_is_known_by_its_header(void **state)
{
    scratch *self = *state;
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
        att_dataset *dataset = open_set(self, self->path, NULL, NULL);
        assert_string_equal(att_dataset_format(dataset), "tar");
        assert_int_equal(att_dataset_count(dataset), 2);
        att_dataset_close(&dataset);
    }
    scratch_write(self, "P6 is a name", 12);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "is an image");
    scratch_write(self, "P6x", 3);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "not a .tar");
}

/* Images that belong to no class are named in a warning, wherever they lie. */
static void test_images_beside_class_folders_are_named(void **state)
{
    scratch *self = *state;
    static const char *const beside[] = {"0.png", "1.png", "sub/3.png"},
                             *const outer[] = {"0.png", "y/jan/1.png", "y/feb/2.png"},
                             *const splits[] = {"0.png", "train/1.png", "train/cat/2.png", "val/cat/3.png"};
    static const struct {
        const char *const *names;
        int count, kept;
        const char *warning;
    } sets[] = {{beside, 3, 1, "left out 2 images beside the class folders, which have no class"},
                {outer, 3, 2, "left out 1 image beside the class folders, which has no class"},
                {splits, 4, 1, "left out 2 images beside the class folders, which have no class"}};
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

/* A link to a folder around it is not followed; folders nested too deep are counted. */
static void test_loops_and_depth_of_folders(void **state)
{
    scratch *self = *state;
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
        assert_said(&log, "links to a folder that they lie in are not followed, so that no image is taken twice: 2");
    }
    /* A link to another folder is one more class. */
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
    assert_said(&log, "left out folders that are nested more than 32 deep: 1");
}

/* Pictures in folders, beside them and in splits, in order; other files are left out. */
static void test_unlabelled(void **state)
{
    scratch *self = *state;
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
        if (att_dataset_open(self->context, paths[p], &options, &dataset) != ATT_OK)
            fail_msg("%s", att_context_message(self->context));
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

static void assert_short_name(const att_dataset *dataset, int64_t index, const char *wanted)
{
    char name[300];
    assert_string_equal(att_dataset_short_name(dataset, index, name, sizeof(name)), wanted);
}

/* Where short names would be equal, all begin with the parts of their paths that tell these apart. */
static void test_short_names_tell_images_apart(void **state)
{
    scratch *self = *state;
    static const char *const pictures[] = {"a/0.png", "b/0.png", "0.png", "b/x/1.png", "a/x/1.png", "c/8.png"};
    static const struct {
        const char *paths[4], *names[4]; /* the paths hold one image each; NULL: the test's folder and 0.png */
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
    /* A path that another one ends in. */
    assert_int_equal(chdir(self->folder), 0);
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open_images(self->context, (const char *[]){"0.png", "b/0.png"}, 2, NULL, &dataset),
                     ATT_OK);
    assert_short_name(dataset, 0, "0.png");
    assert_short_name(dataset, 1, "b/0.png");
    att_dataset_close(&dataset);
    assert_int_equal(chdir("/"), 0);
}

/* Files, folders and archives together, in the order of their paths. */
static void test_images_from_several_paths(void **state)
{
    scratch *self = *state;
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
    static const int values[] = {7, 1, 3, 1, 0, 7}; /* pictures_pack() numbers what it packs */
    att_dataset *dataset = NULL;
    assert_int_equal(att_dataset_open_images(self->context, paths, 4, NULL, &dataset), ATT_OK);
    assert_string_equal(att_dataset_format(dataset), "images");
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
    assert_int_equal(att_dataset_open_images(self->context, (const char *[]){file, missing}, 2, NULL, &dataset),
                     ATT_ERR_NOT_FOUND);
    assert_message_has(self, "none.png does not exist");
    assert_int_equal(att_dataset_open_images(self->context, paths, 0, NULL, &dataset), ATT_ERR_ARGUMENT);
    expect_failure(self, file, NULL, NULL, ATT_ERR_FORMAT, "7.png is an image, not a data set");
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    assert_int_equal(att_dataset_open(self->context, file, &options, &dataset), ATT_OK);
    assert_string_equal(att_dataset_format(dataset), "image");
    assert_int_equal(att_dataset_count(dataset), 1);
    assert_image(self, dataset, 0, -1, 7);
    att_dataset_close(&dataset);
}

static void test_idx(void **state)
{
    scratch *self = *state;
    idx_write(self, "train", 20, 20);
    idx_write(self, "t10k", 9, 9);
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    assert_string_equal(att_dataset_format(dataset), "idx");
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
    expect_failure(self, self->folder, NULL, self->path, ATT_ERR_MISMATCH, "label 6");
    idx_write(self, "train", 20, 19);
    expect_failure(self, self->folder, NULL, NULL, ATT_ERR_MISMATCH, "19 labels for 20 images");
}

static void test_fashion_mnist(void **state)
{
    static const char folder[] = "/usr/share/datasets/fashion-mnist";
    if (access(folder, R_OK) != 0) {
        print_message("skipped: %s is absent (Debian package dataset-fashion-mnist)\n", folder);
        skip();
    }
    att_dataset *dataset = open_set(*state, folder, "val", NULL);
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

static void test_photographs(void **state)
{
    const char *shared = getenv("ATT_SHARED");
    char folder[1024], map[1100];
    snprintf(folder, sizeof(folder), "%s/data/imagenet200", shared ? shared : "");
    snprintf(map, sizeof(map), "%s/synsets.txt", folder);
    if (access(map, R_OK) != 0) {
        print_message("skipped: %s is absent\n", map);
        skip();
    }
    att_dataset *dataset = open_set(*state, folder, "val", map);
    assert_string_equal(att_dataset_split(dataset), "val");
    assert_int_equal(att_dataset_count(dataset), 200);
    assert_int_equal(att_dataset_class_count(dataset), 1000);
    assert_string_equal(att_dataset_class_name(dataset, att_dataset_label(dataset, 0)), "n01440764");
    att_dataset_close(&dataset);
}

static void test_what_is_wrong_is_said(void **state)
{
    scratch *self = *state;
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
    assert_int_equal(att_dataset_read(dataset, self->context, 1, 3, &image), ATT_ERR_FORMAT);
    assert_message_has(self, "cat/2.png");
    att_dataset_close(&dataset);
}

static att_status open_and_read(scratch *self, const char *path, const char *split, const char *map)
{
    att_dataset *dataset;
    att_image image;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = map;
    att_status status = att_dataset_open(self->context, path, &options, &dataset);
    if (status != ATT_OK)
        return status;
    status = att_dataset_read(dataset, self->context, 0, 3, &image);
    if (status == ATT_OK)
        att_image_free(self->context, &image);
    att_dataset_close(&dataset);
    return status;
}

static void test_one_file_twice_in_an_archive(void **state)
{
    static const char *const names[] = {"dog/1.png", "cat/2.png", "cat/1.png", "./cat//./2.png"};
    scratch *self = *state;
    att_dataset *dataset = NULL;
    for (int unlabelled = 0; unlabelled < 2; unlabelled++) {
        att_dataset_options options = att_dataset_options_defaults();
        options.unlabelled = unlabelled;
        pictures_pack(self->path, "ustar", names, 4);
        assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_ERR_FORMAT);
        assert_message_has(self, "two files of one name, both \"cat/2.png\"");
        pictures_pack(self->path, "ustar", names, 3);
        assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
        att_dataset_close(&dataset);
    }
}

/* Of a gzipped archive: no file that is no image, and no image that is larger than images may be. */
static void test_only_images_are_kept(void **state)
{
    scratch *self = *state;
    static char large[1 << 18];
    void *bytes;
    size_t size;
    picture_make(7, &bytes, &size);
    pack made = pack_open(self->path, "ustar.gz");
    pack_entry(&made, "cat/notes.txt", AE_IFREG, NULL, large, sizeof large);
    pack_entry(&made, "cat/1.png", AE_IFREG, NULL, bytes, size);
    pack_entry(&made, "cat/2.png", AE_IFREG, NULL, large, sizeof large);
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
    assert_int_equal(att_dataset_read(dataset, self->context, 1, 3, &image), ATT_ERR_UNSUPPORTED);
    assert_message_has(self, "more than the limit");
    att_dataset_close(&dataset);
}

static att_status use_folder(scratch *self)
{
    return open_and_read(self, self->folder, NULL, NULL);
}

static att_status use_val(scratch *self)
{
    return open_and_read(self, self->folder, "val", NULL);
}

static att_status use_file(scratch *self)
{
    return open_and_read(self, self->path, NULL, NULL);
}

static att_status use_images(scratch *self)
{
    att_dataset *dataset = NULL;
    att_status status =
        att_dataset_open_images(self->context, (const char *[]){self->folder, self->path}, 2, NULL, &dataset);
    att_dataset_close(&dataset);
    return status;
}

static att_status use_map(scratch *self)
{
    return open_and_read(self, self->folder, NULL, self->path);
}

static void test_lack_of_memory(void **state)
{
    scratch *self = *state;
    static const char *const names[] = {"dog/1.png", "cat/1.png"};
    picture_write(self, "dog/1.png", 1);
    picture_write(self, "cat/1.png", 1);
    assert_survives_lack_of_memory(self, use_folder);
    scratch_write(self, "cat\ndog\n", 8);
    assert_survives_lack_of_memory(self, use_map);
    pictures_pack(self->path, "zip", names, 2);
    assert_survives_lack_of_memory(self, use_file);
    assert_survives_lack_of_memory(self, use_images);
    pictures_pack(self->path, "ustar.gz", names, 2);
    assert_survives_lack_of_memory(self, use_file);
    for (int i = 0; i < TINY_PICTURES; i++)
        picture_write(self, tiny_pictures[i] + strlen("tiny/"), i);
    write_text(self, "val/val_annotations.txt", tiny_list);
    assert_survives_lack_of_memory(self, use_val);
    idx_write(self, "train", 20, 20);
    assert_survives_lack_of_memory(self, use_folder);
}

/* Opening a data set asks whether to stop for each file, and after each block that is unpacked. */
static void test_stop(void **state)
{
    scratch *self = *state;
    enum { IMAGES = 10, NOISE = 1 << 18 };
    static char noise[NOISE];
    const char *names[IMAGES];
    char texts[IMAGES][16];
    for (int i = 0; i < IMAGES; i++) {
        snprintf(texts[i], sizeof texts[i], "cat/%d.png", i);
        names[i] = texts[i];
        picture_write(self, names[i], i);
    }
    assert_true(assert_stops(self, use_folder) >= IMAGES);
    static const char *const kinds[] = {"ustar", "zip", "ustar.gz"};
    for (int i = 0; i < 3; i++) {
        pictures_pack(self->path, kinds[i], names, IMAGES);
        assert_true(assert_stops(self, use_file) >= IMAGES);
    }
    /* One large file that no image is. */
    for (int i = 0; i < NOISE; i++)
        noise[i] = (char)((unsigned)i * (unsigned)i >> 7);
    pack made = pack_open(self->path, "ustar.gz");
    pack_entry(&made, "cat/notes.txt", AE_IFREG, NULL, noise, sizeof noise);
    pack_entry(&made, "cat/1.png", AE_IFREG, NULL, noise, 1);
    pack_close(&made);
    self->questions_left = 3;
    assert_int_equal(use_file(self), ATT_ERR_STOPPED);
    self->questions_left = -1;
    idx_write(self, "train", 20, 20);
    assert_true(assert_stops(self, use_folder) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(test_order_is_timms),
        scratch_test(test_folder),
        scratch_test(test_split_folders),
        scratch_test(test_class_map),
        scratch_test(test_archives),
        scratch_test(test_an_archive_for_each_split),
        scratch_test(test_one_file_twice_in_an_archive),
        scratch_test(test_only_images_are_kept),
        scratch_test(test_tiny_imagenets_own_layout),
        scratch_test(test_a_tar_is_known_by_its_header),
        scratch_test(test_images_beside_class_folders_are_named),
        scratch_test(test_loops_and_depth_of_folders),
        scratch_test(test_unlabelled),
        scratch_test(test_images_from_several_paths),
        scratch_test(test_short_names_tell_images_apart),
        scratch_test(test_idx),
        scratch_test(test_fashion_mnist),
        scratch_test(test_photographs),
        scratch_test(test_lack_of_memory),
        scratch_test(test_stop),
        scratch_test(test_what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
