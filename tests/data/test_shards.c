/* WebDataset shards, alone and in a loader. */
#include "data/labels.h"
#include "data/opened.h"
#include "data/tar_files.h"

#include "base/comm/threads.h"

enum { SHARDS = 3, EACH = 5, IMAGES = SHARDS * EACH, FLOATS = PICTURE_SIDE * PICTURE_SIDE };

/* Writes <folder>/<name>-<n>.tar for n = 0, 1, ...; image i of all is filled with i and has the label i % 4. */
static void write_shards(const scratch *self, const char *name, bool json)
{
    for (int shard = 0; shard < SHARDS; shard++) {
        char path[512], tar[128], key[160], text[64];
        snprintf(tar, sizeof tar, "%s-%04d.tar", name, shard);
        pack made = pack_open(scratch_path(self, tar, path), "gnutar");
        for (int i = 0; i < EACH; i++) {
            int image = shard * EACH + i;
            snprintf(text, sizeof text, json ? "{\"width\": 4, \"label\": %d}" : " %d\n", image % 4);
            snprintf(key, sizeof key, "%s%04d",
                     i == 2 ? "a.folder/with-a-long-name-that-does-not-fit-into-the-hundred-"
                              "bytes-of-the-first-field-of-a-header/of-a-tar/"
                            : "",
                     i);
            pack_sample(&made, key, image, json ? "json" : "cls", text);
        }
        pack_close(&made);
    }
}

static void assert_shards(scratch *self, const att_dataset *dataset)
{
    assert_string_equal(dataset->kind, "shards");
    assert_int_equal(att_dataset_count(dataset), IMAGES);
    assert_int_equal(att_dataset_class_count(dataset), 4);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_LABELS);
    assert_string_equal(att_dataset_class_name(dataset, 3), "3");
    for (int i = 0; i < IMAGES; i++)
        assert_image(self, dataset, i, i % 4, i);
}

SCRATCH_TEST(shards_are_found_and_read)
{
    write_shards(self, "wds/imagenet-train", false);
    write_shards(self, "wds/imagenet-validation", true);
    write_shards(self, "plain/part", true);
    static const struct {
        const char *path, *split, *found, *first;
    } ways[] = {{"wds", "train", "train", "imagenet-train-0000.tar/0000.png"},
                {"wds", NULL, "train", "imagenet-train-0000.tar/0000.png"},
                {"wds", "val", "validation", "imagenet-validation-0000.tar/0000.png"},
                {"wds/imagenet-train-{0000..0002}.tar", NULL, "", "imagenet-train-0000.tar/0000.png"},
                {"wds/imagenet-{train,validation}-000{0,1,2}.tar", NULL, "", NULL},
                {"wds", "imagenet-validation-{0000..0002}.tar", "validation", "imagenet-validation-0000.tar/0000.png"},
                {"plain", "part-{0000..0002}.tar", "tars", "part-0000.tar/0000.png"},
                {"plain", "val", "", "part-0000.tar/0000.png"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", self->folder, ways[i].path);
        att_dataset *dataset = open_set(self, path, ways[i].split, NULL);
        assert_string_equal(att_dataset_split(dataset), ways[i].found);
        if (ways[i].first) {
            assert_shards(self, dataset);
            assert_name_ends(dataset, 0, ways[i].first);
            if (!ways[i].split || !strchr(ways[i].split, '.'))
                assert_short_name(dataset, 0, ways[i].first);
        } else {
            assert_int_equal(att_dataset_count(dataset), 2 * IMAGES);
            assert_image(self, dataset, IMAGES + 3, 3, 3);
        }
        att_dataset_close(&dataset);
    }
    assert_int_equal(self->warnings, 0);
    char path[256];
    snprintf(path, sizeof path, "%s/wds", self->folder);
    expect_failure(self, path, "imagenet-test-{0..1}.tar", NULL, ATT_ERR_NOT_FOUND, "imagenet-test-0.tar does not");
    snprintf(path, sizeof path, "%s/wds/imagenet-train-0001.tar", self->folder);
    att_dataset *dataset = open_set(self, path, NULL, NULL);
    assert_int_equal(att_dataset_count(dataset), EACH);
    assert_image(self, dataset, 4, 1, 9);
    assert_name_ends(dataset, 4, "/wds/imagenet-train-0001.tar/0004.png");
    att_dataset_close(&dataset);
}

SCRATCH_TEST(an_info_file_lists_the_shards)
{
    char path[128];
    write_shards(self, "wds/a", false);
    write_shards(self, "wds/b", true);
    scratch_text(self, "wds/_info.json",
                 "{\"name\": \"x\", \"splits\": {\"train\": {\"name\": \"train\", \"num_samples\": 10, \"filenames\": "
                 "[\"b-0002.tar\", \"a-0000.tar\"]}, \"validation\": {\"filenames\": [\"a-0001.tar\"]}}}");
    snprintf(path, sizeof path, "%s/wds", self->folder);
    att_dataset *dataset = open_set(self, path, "train", NULL);
    assert_int_equal(att_dataset_count(dataset), 2 * EACH);
    assert_image(self, dataset, 0, 2, 10);
    assert_image(self, dataset, EACH, 0, 0);
    att_dataset_close(&dataset);
    dataset = open_set(self, path, "val", NULL);
    assert_string_equal(att_dataset_split(dataset), "validation");
    assert_image(self, dataset, 0, 1, 5);
    att_dataset_close(&dataset);
    scratch_text(self, "wds/_info.json", "{\"splits\": {\"train\": {\"filenames\": [\"../a-0000.tar\"]}}}");
    expect_failure(self, path, "train", NULL, ATT_ERR_FORMAT, "entry 1 of the split \"train\"");
    scratch_text(self, "wds/_info.json", "{\"splits\": {\"train\": {\"filenames\": [\"c.tar\"]}}}");
    expect_failure(self, path, "train", NULL, ATT_ERR_NOT_FOUND, "lists c.tar");
    scratch_text(self, "wds/_info.json", "{\"splits\"");
    expect_failure(self, path, "train", NULL, ATT_ERR_FORMAT, "_info.json");
}

SCRATCH_TEST(classes_of_shards_have_names)
{
    static const char *const trained[] = {"ape", "bee", "cat", "dog", "elk"};
    char path[128];
    write_shards(self, "wds/train", false);
    snprintf(path, sizeof path, "%s/wds", self->folder);
    att_dataset *dataset;
    att_dataset_options options = att_dataset_options_defaults();
    options.trained = trained;
    options.trained_count = 5;
    assert_int_equal(att_dataset_open(self->context, path, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_class_count(dataset), 5);
    assert_string_equal(att_dataset_class_name(dataset, 3), "dog");
    att_dataset_close(&dataset);
    scratch_text(self, "map.txt", "north\neast\nsouth\nwest\n");
    char map[128], text[256];
    snprintf(map, sizeof map, "%s/map.txt", self->folder);
    dataset = open_set(self, path, NULL, map);
    assert_string_equal(att_dataset_class_name(dataset, 3), "west");
    att_dataset_describe(dataset, text, sizeof text);
    assert_true(strstr(text, "4 classes, numbered by the labels, named by the class map"));
    att_dataset_close(&dataset);
    scratch_text(self, "map.txt", "north\neast\nsouth\n");
    expect_failure(self, path, NULL, map, ATT_ERR_MISMATCH, "label 3, but the class map");
}

/* Files of a sample in any order, and files of samples that are neither image nor label. */
SCRATCH_TEST(samples_are_recognised)
{
    pack made = pack_open(self->path, "ustar");
    pack_entry(&made, "a.cls", AE_IFREG, NULL, "2", 1);
    pack_entry(&made, "a.json", AE_IFREG, NULL, "{\"label\": \"x\"}", 14);
    pack_entry(&made, "a.txt", AE_IFREG, NULL, "a dog", 5);
    pack_picture(&made, "a.png", 9);
    pack_entry(&made, "._c.cls", AE_IFREG, NULL, "1", 1);
    pack_entry(&made, "c.json", AE_IFREG, NULL, "{\"label\": 1, \"x\": [{}]}", 23);
    pack_entry(&made, "._c.png", AE_IFREG, NULL, "AppleDouble", 11);
    pack_picture(&made, "c.png", 10);
    pack_sample(&made, "d", 11, "json", "{\"label\": \"3\"}");
    pack_sample(&made, "e", 12, "cls",
                "\xEF\xBB\xBF"
                "0\r\n");
    pack_close(&made);
    att_dataset *dataset = open_set(self, self->path, NULL, NULL);
    static const int labels[] = {2, 1, 3, 0};
    assert_int_equal(att_dataset_count(dataset), 4);
    for (int i = 0; i < 4; i++)
        assert_image(self, dataset, i, labels[i], 9 + i);
    assert_int_equal(self->warnings, 0);
    att_dataset_close(&dataset);
}

/* Each sample is a line of files, of which those that end in ".png" are pictures. The sentence names all that is not
 * used. */
SCRATCH_TEST(what_cannot_be_used_is_named)
{
    enum { FILES = 6 };
    static const struct {
        const char *files[FILES][2];
        int used;
        const char *sentence;
    } cases[] = {
#define NO_CLASS(kind, text, shown)                             \
    {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b." kind, text}}, \
     1,                                                         \
     "1 of 2 samples can be used; samples with a label that is no class: 1 (first: file/b.png with " shown ")"}
        {{{"1.png"}, {"1.cls", "1"}, {"2.5.png"}, {"2.5.cls", "2"}},
         1,
         "1 of 2 samples can be used; samples without an image: 1 (first: file/2.5.png); images other than that of "
         "their "
         "sample: 1 (first: file/2.5.png); a sample is KEY.jpg"},
        {{{"2.5.png"}, {"2.5.cls", "2"}},
         0,
         "file: 0 of 1 samples can be used; samples without an image: 1 (first: file/2.5.png); images other"},
        {{{"2.5.png"}, {"2.5.json", "{\"label\": 2}"}}, 0, "file: 0 of 1 samples can be used; samples without an"},
        {{{"in/2.5.png"}, {"in/2.5.cls", "2"}}, 0, "file: 0 of 1 samples can be used; samples without an image"},
        {{{"a.left.png"}, {"a.right.png"}, {"a.cls", "3"}},
         0,
         "0 of 1 samples can be used; samples without an image: 1 (first: file/a.left.png); images other than that "
         "of their sample: 2 (first: file/a.left.png)"},
        {{{"a.png"}, {"a.jpg"}, {"a.seg.png"}, {"a.cls", "3"}},
         1,
         "1 of 1 samples can be used; images other than that of their sample: 2 (first: file/a.jpg); a sample"},
        {{{"a.png"}, {"b.png"}, {"a.cls", "3"}, {"b.cls", "4"}},
         0,
         "0 of 4 samples can be used; samples without an image: 2 (first: file/a.cls); samples without a label: 2 "
         "(first: file/a.png); a sample is KEY.jpg, .jpeg, .png or .webp with its label"},
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.json", "{\"label\": 1"}, {"c.png"}, {"c.json", "{}"}},
         1,
         "1 of 3 samples can be used; samples without a label: 1 (first: file/c.png); samples with a label that is no "
         "class: 1 "
         "(first: file/b.png with {\"label\": 1); a sample"},
        {{{"a.png"}, {"a.cls", "1"}, {"b.cls", "1"}},
         1,
         "1 of 2 samples can be used; samples without an image: 1 (first"},
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.cls", ""}}, 1, "samples without a label: 1 (first: file/b.png)"},
        /* Labels that are no class. */
        NO_CLASS("cls", "-1", "-1"),
        NO_CLASS("cls", "1048576", "1048576"),
        NO_CLASS("cls", "99999999999999999999", "99999999999999999999"),
        NO_CLASS("cls", "3.0\n", "3.0"),
        NO_CLASS("cls", "a/b", "a/b"),
        NO_CLASS("cls", "3\n6\n", "3\\n6"),
        NO_CLASS("cls", "a\nb", "a\\nb"),
        NO_CLASS("json", "{\"label\": 3.0}", "3.0"),
        NO_CLASS("json", "{\"label\": -1}", "-1"),
        NO_CLASS("json", "{\"label\": [3]}", "[3]"),
        NO_CLASS("json", "{\"label\": true}", "true"),
        NO_CLASS("json", "{\"class\": 3}", "{\"class\": 3}"),
        NO_CLASS("json", "{\"label\": 1, \"label\": 2}", "{\"label\": 1, \"label\": 2}"),
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.json", "{\"label\": null}"}}, 1, "without a label: 1 (first: f"},
        {{{"a.png"}, {"a.cls", "3.0"}},
         0,
         "0 of 1 samples can be used; samples with a label that is no class: 1 (first: file/a.png with 3.0); a sample"},
        {{{"a.png"}, {"a.json", "{\"class\": 3}"}, {"b.png"}, {"b.json", "{\"class\": 4}"}},
         0,
         "file: 0 of 2 samples can be used; samples with a label that is no class: 2 (first: file/a.png with {\"cla"},
        {{{"a.png"}, {"a.txt", "cat"}}, 0, "file: 0 of 1 samples can be used; samples without a label: 1 (first: f"},
        /* Two labels or images. */
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.cls", "1"}, {"b.json", "{\"label\": 2}"}},
         1,
         "1 of 2 samples can be used; samples with two labels, one in .cls and another in .json: 1 (first: "
         "file/b.png)"},
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.cls", "1"}, {"b.png"}, {"b.cls", "2"}},
         1,
         "1 of 2 samples can be used; samples with the same file twice, so that images and labels cannot be paired: 1 "
         "(first: file/b.png); images other"},
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.cls", "1"}, {"b.CLS", "1"}}, 1, "same file twice, so"},
        {{{"a.png"}, {"a.cls", "1"}, {"b.png"}, {"b.json", "{\"label\": 1}"}, {"b.json", "{}"}}, 1, "same file twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pack made = pack_open(self->path, "ustar");
        for (int f = 0; f < FILES && cases[i].files[f][0]; f++) {
            const char *name = cases[i].files[f][0], *text = cases[i].files[f][1];
            if (text)
                pack_entry(&made, name, AE_IFREG, NULL, text, strlen(text));
            else
                pack_picture(&made, name, 7 + f);
        }
        pack_close(&made);
        if (cases[i].used == 0) {
            expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, cases[i].sentence);
            continue;
        }
        said log;
        att_dataset *dataset;
        att_context *context = said_context(&log);
        assert_int_equal(att_dataset_open(context, self->path, NULL, &dataset), ATT_OK);
        if (att_dataset_count(dataset) != cases[i].used)
            fail_msg("case %zu: %lld samples used, expected %d", i, (long long)att_dataset_count(dataset),
                     cases[i].used);
        assert_said(&log, cases[i].sentence);
        att_dataset_close(&dataset);
        att_context_destroy(&context);
    }
}

/* Images without a label count where no labels are needed. */
SCRATCH_TEST(samples_without_labels_are_images)
{
    att_dataset *dataset;
    pack made = pack_open(self->path, "ustar");
    pack_sample(&made, "a", 1, "cls", "1");
    pack_sample(&made, "b", 2, "cls", "");
    pack_sample(&made, "c", 3, "cls", "dog");
    pack_close(&made);
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
    assert_int_equal(att_dataset_count(dataset), 3);
    for (int i = 0; i < 3; i++)
        assert_image(self, dataset, i, -1, 1 + i);
    att_dataset_close(&dataset);
    assert_int_equal(self->warnings, 0);
}

SCRATCH_TEST(labels_can_be_names)
{
    static const char *const trained[] = {"ape", "bird of paradise", "cat", "dog"};
    static const int labels[] = {1, 0, 2, 1}, trained_labels[] = {2, 1, 3, 2}, values[] = {1, 2, 3, 4};
    char map[128], path[512];
    pack made = pack_open(scratch_path(self, "set/names-0.tar", path), "ustar");
    pack_sample(&made, "a", 1, "cls", "cat\n");
    pack_sample(&made, "b", 2, "json", "{\"label\": \"bird of paradise\"}");
    pack_close(&made);
    made = pack_open(scratch_path(self, "set/names-1.tar", path), "ustar");
    pack_sample(&made, "c", 3, "cls", "dog");
    pack_sample(&made, "d", 4, "cls", " cat\r\n");
    pack_close(&made);
    snprintf(path, sizeof path, "%s/set", self->folder);
    for (int with = 0; with < 2; with++) {
        att_dataset *dataset;
        att_dataset_options options = att_dataset_options_defaults();
        options.trained = with ? trained : NULL;
        options.trained_count = with ? 4 : 0;
        assert_int_equal(att_dataset_open(self->context, path, &options, &dataset), ATT_OK);
        assert_string_equal(dataset->kind, "shards");
        assert_int_equal(att_dataset_count(dataset), 4);
        assert_int_equal(att_dataset_class_count(dataset), with ? 4 : 3);
        assert_string_equal(att_dataset_class_name(dataset, with), "bird of paradise");
        char text[256];
        att_dataset_describe(dataset, text, sizeof text);
        assert_true(strstr(text, with ? "by the class names of the training"
                                      : "4 images, 3 classes, numbered by the sorted labels"));
        /* by class: b, a, d, c */
        static const int order[] = {1, 0, 3, 2};
        for (int i = 0; i < 4; i++)
            assert_image(self, dataset, i, (with ? trained_labels : labels)[order[i]], values[order[i]]);
        assert_name_ends(dataset, 3, "/set/names-1.tar/c.png");
        att_dataset_close(&dataset);
    }
    scratch_text(self, "map.txt", "cat\n");
    snprintf(map, sizeof map, "%s/map.txt", self->folder);
    expect_failure(self, path, NULL, map, ATT_ERR_MISMATCH, ": label \"bird of paradise\" is not in the class map");
    made = pack_open(scratch_path(self, "set/names-1.tar", path), "ustar");
    pack_sample(&made, "c", 3, "cls", "3");
    pack_close(&made);
    snprintf(path, sizeof path, "%s/set", self->folder);
    expect_failure(self, path, NULL, NULL, ATT_ERR_FORMAT, "names-0.tar/a.png has the label \"cat\", and ");
    assert_int_equal(self->warnings, 0);
}

/* Numbers are those of the classes, unless the training has numbers as names. */
SCRATCH_TEST(labels_can_be_numbers_without_zero)
{
    enum { MOST = 3 };
    static const struct {
        const char *labels[2], *trained[MOST];
        int classes, numbers[2];
        const char *message; /* NULL: none; a failure if classes is 0 */
    } cases[] = {
        {{"1", "2"}, {NULL}, 3, {1, 2}, "no sample has the label 0, so class 0 has no image"},
        {{"1", "2"}, {"ape", "bee", "cat"}, 3, {1, 2}, "no sample has the label 0"},
        {{"0", "2"}, {NULL}, 3, {0, 2}, NULL},
        {{"1", "2"}, {"0", "1", "2"}, 3, {1, 2}, NULL},
        {{"1", "3"}, {"1", "2", "3"}, 3, {0, 2}, NULL},
        {{"0", "2"},
         {"1", "2", "3"},
         0,
         {0, 0},
         "label \"0\" is not among the class names of the training (\"1\", \"2\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        said log;
        att_dataset *dataset = NULL;
        att_dataset_options options = att_dataset_options_defaults();
        att_context *context = said_context(&log);
        pack made = pack_open(self->path, "ustar");
        pack_sample(&made, "a", 1, "cls", cases[i].labels[0]);
        pack_sample(&made, "b", 2, "cls", cases[i].labels[1]);
        pack_close(&made);
        options.trained = cases[i].trained;
        options.trained_count = cases[i].trained[0] ? MOST : 0;
        att_status status = att_dataset_open(context, self->path, &options, &dataset);
        assert_int_equal(status, cases[i].classes ? ATT_OK : ATT_ERR_FORMAT);
        if (!dataset) {
            assert_message(context, cases[i].message);
        } else {
            assert_int_equal(att_dataset_class_count(dataset), cases[i].classes);
            for (int n = 0; n < 2; n++)
                assert_int_equal(att_dataset_label(dataset, n), cases[i].numbers[n]);
            if (cases[i].message)
                assert_said(&log, cases[i].message);
            else
                assert_string_equal(log.text, "");
        }
        att_dataset_close(&dataset);
        att_context_destroy(&context);
    }
}

SCRATCH_TEST(compressed_shards_are_refused)
{
    pack made = pack_open(self->path, "ustar.gz");
    pack_sample(&made, "a", 1, "cls", "1");
    pack_close(&made);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_UNSUPPORTED, "uncompressed tars only: decompress it");
}

/* --- in a loader -------------------------------------------------------------------------------------------------- */

/* The order of images as one rank sees it, and its own pixels. */
typedef struct seen {
    const char *folder;
    int64_t indices[2][IMAGES];
    int32_t labels[2][IMAGES];
    int own;
} seen;

/* Records epoch 3 from its begin, and then again from batch 2 on. */
static const char *record(att_loader *loader, seen *to)
{
    for (int pass = 0; pass < 2; pass++) {
        int at = pass == 0 ? 0 : 2 * 4;
        if (att_loader_start(loader, 3, pass == 0 ? 0 : 2) != ATT_OK)
            return "the loader does not start";
        for (;;) {
            att_batch batch;
            if (att_loader_next(loader, &batch) != ATT_OK)
                return "the loader fails";
            if (batch.count == 0)
                break;
            for (int i = 0; i < batch.count; i++, at++) {
                to->indices[pass][at] = batch.indices[i];
                to->labels[pass][at] = labels_of(&batch)[i];
            }
            for (int i = 0; i < batch.rows; i++, to->own++)
                if ((int)(images_of(&batch)[i * FLOATS] + 0.5f) != batch.indices[batch.first_row + i])
                    return "an image is another one";
        }
        if (at != IMAGES)
            return "images are missing";
    }
    return NULL;
}

static const char *load(att_context *context, att_comm *comm, void *user)
{
    seen *to = user;
    att_dataset *dataset = NULL;
    att_loader *loader = NULL;
    att_loader_options options = att_loader_options_defaults(PICTURE_SIDE, PICTURE_SIDE, 1);
    options.transform.mean[0] = 0;
    options.transform.std[0] = 1.0f / 255.0f;
    options.batch_size = 4;
    options.shuffle = true;
    options.seed = 9;
    options.targets = labels_rules();
    options.comm = comm;
    const char *wrong = att_dataset_open(context, to->folder, NULL, &dataset) == ATT_OK &&
                                att_loader_create(context, dataset, &options, &loader) == ATT_OK
                            ? record(loader, to)
                            : "the data set cannot be opened";
    att_loader_destroy(&loader);
    att_dataset_close(&dataset);
    return wrong;
}

/* The order does not depend on the number of processes, and an epoch can be continued in its middle. */
SCRATCH_TEST(any_number_of_processes_sees_one_order)
{
    static seen by_rank[MOST_RANKS], one;
    write_shards(self, "shard", false);
    for (int size = 1; size <= MOST_RANKS; size++) {
        int own = 0;
        for (int i = 0; i < size; i++)
            by_rank[i] = (seen){.folder = self->folder};
        run_ranks(size, 1, load, by_rank, sizeof *by_rank);
        if (size == 1)
            one = by_rank[0];
        for (int i = 0; i < size; i++) {
            own += by_rank[i].own;
            assert_memory_equal(by_rank[i].indices[0], one.indices[0], sizeof one.indices[0]);
            assert_memory_equal(by_rank[i].labels[0], one.labels[0], sizeof one.labels[0]);
            assert_memory_equal(by_rank[i].indices[1] + 8, one.indices[0] + 8, (IMAGES - 8) * sizeof(int64_t));
        }
        assert_int_equal(own, IMAGES + IMAGES - 8);
    }
    int moved = 0;
    bool found[IMAGES] = {false};
    for (int i = 0; i < IMAGES; i++) {
        moved += one.indices[0][i] != i;
        assert_int_equal(one.labels[0][i], one.indices[0][i] % 4);
        found[one.indices[0][i]] = true;
    }
    assert_true(moved > IMAGES / 2);
    for (int i = 0; i < IMAGES; i++)
        assert_true(found[i]);
}

static att_status open_shards(scratch *self)
{
    return open_and_read(self, self->folder, "train", NULL);
}

/* Writes a shard whose labels are names, with a sample that has no image and one that has no label. */
static void write_named(const scratch *self, const char *name, int count)
{
    char path[512], key[16];
    pack made = pack_open(scratch_path(self, name, path), "gnutar");
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "%04d", i);
        pack_sample(&made, key, i % 100, "cls", i % 2 ? "odd" : "even");
    }
    pack_sample(&made, "x.y", 7, "cls", "odd");
    pack_picture(&made, "z.png", 7);
    pack_close(&made);
}

SCRATCH_TEST(an_index_keeps_names_and_what_cannot_be_used)
{
    enum { COUNT = 1000 };
    char path[512], tar[512];
    write_named(self, "set/train.tar", COUNT);
    snprintf(path, sizeof path, "%s/set", self->folder);
    for (int pass = 0; pass < 2; pass++) {
        said log;
        att_dataset *dataset;
        att_context *context = said_context(&log);
        assert_int_equal(att_dataset_open(context, path, NULL, &dataset), ATT_OK);
        assert_int_equal(att_dataset_count(dataset), COUNT);
        assert_string_equal(att_dataset_class_name(dataset, 1), "odd");
        for (int i = 0; i < COUNT; i += 333)
            assert_image(self, dataset, i, i >= COUNT / 2, 2 * i % COUNT % 100 + (i >= COUNT / 2));
        assert_said(&log,
                    "1000 of 1002 samples can be used; samples without an image: 1 (first: train.tar/x.y.png); "
                    "samples without a label: 1 (first: train.tar/z.png); images other than that of their "
                    "sample: 1 (first: train.tar/x.y.png)");
        att_dataset_close(&dataset);
        att_context_destroy(&context);
        if (pass == 0) /* a listing would fail now */
            damage(scratch_path(self, "set/train.tar", tar), 512 * 2);
    }
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    write_shards(self, "train", true);
    scratch_text(self, "_info.json", "{\"splits\": {\"train\": {\"filenames\": [\"train-0001.tar\"]}}}");
    assert_survives_lack_of_memory(self, open_shards);
    write_named(self, "train-0001.tar", 3);
    assert_survives_lack_of_memory(self, open_shards);
}
