/* Which folders are splits and classes, and how classes are numbered: the same in folders and in archives. */
#include "data/opened.h"

enum { MOST_FILES = 6, MOST_NAMES = 3 };

/* The files of a data set, and what is read. Files that do not end in ".png" are texts. */
typedef struct layout {
    const char *files[MOST_FILES];
    const char *wanted;              /* split */
    int network;                     /* number of classes of the network; 0: none */
    const char *trained[MOST_NAMES]; /* names of the training's classes */
    /* Expected: the data set's split and the names of its images; or, if `split` is NULL, a failure with this status.
     */
    const char *split, *images;
    att_status status;
    const char *message; /* part of the failure's message, or of the notes and warnings; NULL: none */
} layout;

static const layout layouts[] = {
    /* Hidden files and folders. */
    {{"cat/1.png", "dog/2.png", ".ipynb_checkpoints/3.png", "dog/.cache/4.png", ".hidden/sub/5.png", "cat/._6.png"},
     .split = "",
     .images = "cat/1.png dog/2.png"},
    {{"d/train/cat/1.png", "d/train/dog/2.png", "d/train/.ipynb_checkpoints/3.png", ".x/val/cat/4.png"},
     .split = "train",
     .images = "cat/1.png dog/2.png"},
    {{".d/cat/1.png", ".d/dog/2.png"},
     .status = ATT_ERR_FORMAT,
     .message = "has no class folders: it contains no .jpg, .jpeg, .png or .webp file in a folder named after a class; "
                "files and folders whose names begin with a dot are not read"},
    /* Names of splits. */
    {{"Training/cat/1.png", "Training/dog/2.png", "Testing/cat/3.png"},
     .split = "training",
     .images = "cat/1.png dog/2.png"},
    {{"Training/cat/1.png", "Training/dog/2.png", "Testing/cat/3.png"},
     .wanted = "test",
     .split = "testing",
     .images = "cat/3.png"},
    {{"Train/cat/1.png", "Valid/cat/2.png", "TEST/cat/3.png"},
     .wanted = "val",
     .split = "valid",
     .images = "cat/2.png"},
    {{"a/Train/cat/1.png", "a/Test/cat/2.png"}, .wanted = "Train", .split = "train", .images = "cat/1.png"},
    {{"seg_train/seg_train/cat/1.png", "seg_train/seg_train/dog/2.png", "seg_test/seg_test/cat/3.png",
      "seg_pred/seg_pred/4.png"},
     .split = "train",
     .images = "cat/1.png dog/2.png"},
    {{"seg_train/seg_train/cat/1.png", "seg_test/seg_test/cat/3.png", "seg_test/seg_test/dog/4.png"},
     .wanted = "val",
     .split = "test",
     .images = "cat/3.png dog/4.png",
     .message = "has no split \"val\"; using \"test\" instead"},
    {{"training_set/training_set/cat/1.png", "test_set/test_set/cat/2.png"},
     .split = "training",
     .images = "cat/1.png"},
    {{"train/cat/a/1.png", "train/cat/b/2.png"},
     .split = "train",
     .images = "cat/a/1.png cat/b/2.png",
     .message = "images in folders of a class folder belong to that class: cat/b to \"cat\"; timm takes"},
    {{"train/cat/images/1.png", "train/dog/images/2.png", "train/dog/3.png"},
     .split = "train",
     .images = "cat/images/1.png dog/3.png dog/images/2.png"},
    /* Classes whose names have such a word. */
    {{"bullet train/a/1.png", "test tube/b/2.png"},
     .split = "",
     .images = "bullet train/a/1.png test tube/b/2.png",
     .message = "test tube/b to \"test tube\"; timm takes"},
    {{"trainer/1.png", "valley/2.png"}, .split = "", .images = "trainer/1.png valley/2.png"},
    {{"train/1.png", "bus/2.png"},
     .split = "",
     .images = "bus/2.png train/1.png",
     .message = "the folder \"train\" is read as a class"},
    {{"train/1.png", "Test/2.png"},
     .status = ATT_ERR_FORMAT,
     .message = "images lie in folders that are named as splits, such as \"Test\""},
    {{"my_train/1.png", "my_val/2.png"}, .status = ATT_ERR_FORMAT, .message = "named as splits"},
    {{"train/1.png"}, .status = ATT_ERR_FORMAT, .message = "expected class folders in them, or --class-map FILE"},
    {{"Train/cat/1.png", "train/cat/2.png"},
     .wanted = "train",
     .status = ATT_ERR_FORMAT,
     .message = "can both be the split \"train\"; expected one of them"},
    {{"train1/cat/1.png", "train2/cat/2.png", "test1/cat/3.png"},
     .status = ATT_ERR_FORMAT,
     .message = "the names \"train1\" and \"train2\" can both be the split \"train\""},
    {{"train1/cat/1.png", "train2/cat/2.png", "test1/cat/3.png"},
     .wanted = "train",
     .status = ATT_ERR_FORMAT,
     .message = "open one by its own path, or rename the other"},
    {{"train1/cat/1.png", "train2/cat/2.png", "test2/cat/3.png"},
     .wanted = "test",
     .split = "test",
     .images = "cat/3.png"},
    {{"seg_train/cat/1.png", "seg_test/cat/2.png", "seg_Test2/cat/3.png", "seg_Test/cat/4.png"},
     .status = ATT_ERR_FORMAT,
     .message = "the names \"seg_Test\" and \"seg_test\" can both be the split \"test\""},
    {{"x_train/cat/1.png", "x_val/cat/2.png", "y_train/cat/3.png", "y_val/cat/4.png"},
     .status = ATT_ERR_FORMAT,
     .message = "the names \"x_train\" and \"y_train\" can both be the split \"train\""},
    {{"bullet train/1.png", "train station/2.png", "test tube/3.png"},
     .split = "",
     .images = "bullet train/1.png test tube/3.png train station/2.png"},
    /* A split without class folders. */
    {{"train/cat/1.png", "train/dog/2.png", "val/3.png", "val/4.png"},
     .wanted = "validation",
     .status = ATT_ERR_NOT_FOUND,
     .message =
         "no split \"validation\": val/ exists, but its images (2) are not in class folders; only \"train\" has"},
    {{"train/cat/1.png", "Val/3.png", "test/cat/4.png"},
     .wanted = "val",
     .split = "test",
     .images = "cat/4.png",
     .message = "split \"val\" (Val/ exists, but holds no class folders); using \"test\" instead"},
    {{"train/1.png", "val/cat/2.png"},
     .wanted = "train",
     .status = ATT_ERR_NOT_FOUND,
     .message = "train/ exists, but its images (1) are not in class folders; only \"val\" has class folders"},
    {{"train/cat/1.png"}, .wanted = "val", .status = ATT_ERR_NOT_FOUND, .message = "no split \"val\", only \"train\""},
    {{"trian/cat/1.png", "valid/cat/2.png"},
     .wanted = "train",
     .status = ATT_ERR_NOT_FOUND,
     .message = "only \"valid\"; is its folder \"trian\" meant, whose name is no split's?"},
    /* Shards that are compressed. */
    {{"val-0.tar.gz", "val-1.tar.gz"},
     .status = ATT_ERR_UNSUPPORTED,
     .message = "holds no images, but val-0.tar.gz: t"},
    {{"val/0.tgz", "train/0.tgz"},
     .wanted = "val",
     .status = ATT_ERR_UNSUPPORTED,
     .message = "decompress them (to .tar)"},
    /* Numbers, as those of a network's classes. */
    {{"1/1.png", "2/2.png"},
     .network = 3,
     .status = ATT_ERR_FORMAT,
     .message = "\"1\" can be class 0 or class 1 of the network; say which by --class-map FILE"},
    {{"1/1.png", "2/2.png", "3/3.txt"}, .network = 3, .status = ATT_ERR_FORMAT, .message = "none is \"0\""},
    {{"1/1.png", "2/2.png"}, .network = 2, .split = "", .images = "1/1.png 2/2.png"},
    {{"1/1.png", "3/2.png"}, .split = "", .images = "1/1.png 3/2.png"}, /* a training run, which records these names */
    {{"0/1.png", "1/2.png", "3/3.png"}, .network = 4, .split = "", .images = "0/1.png 1/2.png 3/3.png"},
    /* Numbers as names of a run's classes. */
    {{"1/1.png", "2/2.png", "3/3.png"},
     .network = 3,
     .trained = {"1", "2", "3"},
     .split = "",
     .images = "1/1.png 2/2.png 3/3.png"},
    {{"1/1.png", "3/3.png"}, .network = 3, .trained = {"1", "2", "3"}, .split = "", .images = "1/1.png 3/3.png"},
    {{"0/0.png", "1/1.png", "2/2.png"},
     .network = 3,
     .trained = {"1", "2", "3"},
     .status = ATT_ERR_FORMAT,
     .message = "folder \"0\" is not among the class names of the training (\"1\", \"2\", \"3\"); pass --class-map"},
    {{"1/1.png", "2/2.png", "wolf/3.png"},
     .network = 3,
     .trained = {"0", "1", "2"},
     .status = ATT_ERR_FORMAT,
     .message = "folder \"wolf\" is not among"},
    {{"1/1.png", "2/2.png", "3/3.png"},
     .trained = {"0", "1", "2"},
     .status = ATT_ERR_FORMAT,
     .message = "\"3\" is not"},
    {{"cat/1.png", "dog/2.png"}, .network = 2, .trained = {"0", "1"}, .split = "", .images = "cat/1.png dog/2.png"},
    {{"0/1.png", "1/2.png"}, .network = 2, .trained = {"n01", "n02"}, .split = "", .images = "0/1.png 1/2.png"},
    /* Names that no list of classes can hold. */
    {{"cat\ndog/1.png", "cow/2.png"}, .status = ATT_ERR_FORMAT, .message = "has a line break"},
    {{"cat\r/1.png", "cow/2.png"}, .status = ATT_ERR_FORMAT, .message = "rename the class"},
};

static bool is_picture(const char *name)
{
    return strstr(name, ".png");
}

static void write_folder(const scratch *self, const layout *l, size_t folder)
{
    for (int i = 0; i < MOST_FILES && l->files[i]; i++) {
        char name[160];
        snprintf(name, sizeof name, "%zu/%s", folder, l->files[i]);
        picture_write(self, name, i);
    }
}

static void write_archive(const layout *l, const char *path, const char *kind)
{
    pack made = pack_open(path, kind);
    for (int i = 0; i < MOST_FILES && l->files[i]; i++)
        if (is_picture(l->files[i]))
            pack_picture(&made, l->files[i], i);
        else
            pack_entry(&made, l->files[i], AE_IFREG, NULL, "x", 1);
    pack_close(&made);
}

static void check_images(const att_dataset *dataset, const char *images)
{
    char all[512] = "";
    for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
        char name[256];
        att_dataset_short_name(dataset, i, name, sizeof name);
        /* From the class on. */
        const char *class = strstr(name, att_dataset_class_name(dataset, att_dataset_label(dataset, i)));
        assert_non_null(class);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", class);
    }
    assert_string_equal(all, images);
}

static void check(const layout *l, const char *path)
{
    said log;
    att_context *context = said_context(&log);
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.split = l->wanted;
    options.classes = l->network;
    options.trained = l->trained;
    while (options.trained_count < MOST_NAMES && l->trained[options.trained_count])
        options.trained_count++;
    att_status status = att_dataset_open(context, path, &options, &dataset);
    if (status != l->status)
        fail_msg("%s: %s", l->files[0], att_context_message(context));
    if (!l->split) {
        assert_message(context, l->message);
    } else {
        assert_string_equal(att_dataset_split(dataset), l->split);
        check_images(dataset, l->images);
        if (l->message)
            assert_said(&log, l->message);
        else
            assert_string_equal(log.text, "");
    }
    att_dataset_close(&dataset);
    att_context_destroy(&context);
}

SCRATCH_TEST(every_layout_is_read_alike_in_folders_and_archives)
{
    static const char *const kinds[] = {"ustar", "pax.gz", "zip"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%zu", self->folder, i);
        write_folder(self, &layouts[i], i);
        check(&layouts[i], path);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            snprintf(path, sizeof path, "%s/%zu.%s", self->folder, i, kinds[k]);
            write_archive(&layouts[i], path, kinds[k]);
            check(&layouts[i], path);
        }
    }
}

/* Archives, and folders of tars, that are named after splits. */
SCRATCH_TEST(splits_are_found_by_their_names_in_any_case)
{
    static const char *const names[] = {"cat/1.png", ".ipynb_checkpoints/2.png"}, *const flat[] = {"1.png", ".x/2.png"};
    static const struct {
        const char *folder, *archive, *kind;
        const char *const *files;
    } sets[] = {{"one", "Train.zip", "zip", names},
                {"two", "TRAINING.tar.gz", "pax.gz", names},
                {"three", "Train/cat.tar", "ustar", flat},
                {"four", "x_train/cat.tar", "ustar", flat},
                {"five", "Train000.tar", "ustar", names}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char path[256], data[160];
        snprintf(data, sizeof data, "%s/%s", self->folder, sets[i].folder);
        snprintf(path, sizeof path, "%s/x.txt", sets[i].folder);
        picture_write(self, path, 0);
        snprintf(path, sizeof path, "%s/%s", sets[i].folder, sets[i].archive);
        picture_write(self, path, 0); /* makes the folders */
        snprintf(path, sizeof path, "%s/%s", data, sets[i].archive);
        pictures_pack(path, sets[i].kind, sets[i].files, 2);
        if (i == 3) {
            snprintf(path, sizeof path, "%s/x_test", data);
            assert_int_equal(mkdir(path, 0777), 0);
        }
        att_dataset *dataset = open_set(self, data, "train", NULL);
        assert_true(strncmp(att_dataset_split(dataset), "train", 5) == 0);
        assert_int_equal(att_dataset_count(dataset), 1);
        assert_string_equal(att_dataset_class_name(dataset, 0), "cat");
        att_dataset_close(&dataset);
    }
}
