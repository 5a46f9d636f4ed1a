/* WebDataset shards, alone and in a loader. */
#include "data/labels.h"
#include "data/opened.h"
#include "data/tar_files.h"

#include "comm/threads.h"

enum { SHARDS = 3, EACH = 5, IMAGES = SHARDS * EACH, FLOATS = PICTURE_SIDE * PICTURE_SIDE };

/* Writes <folder>/<name>-<n>.tar for n = 0, 1, ...; image i of all is filled with i and has the label i % 4. */
static void write_shards(const scratch *self, const char *name, bool json)
{
    for (int shard = 0; shard < SHARDS; shard++) {
        char path[512], tar[128], key[160], text[64];
        snprintf(tar, sizeof tar, "%s-%04d.tar", name, shard);
        pack made = pack_open(tar_path(self, tar, path), "gnutar");
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
    assert_string_equal(att_dataset_format(dataset), "shards");
    assert_int_equal(att_dataset_count(dataset), IMAGES);
    assert_int_equal(att_dataset_class_count(dataset), 4);
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_LABELS);
    assert_string_equal(att_dataset_class_name(dataset, 3), "3");
    for (int i = 0; i < IMAGES; i++)
        assert_image(self, dataset, i, i % 4, i);
}

static void shards_are_found_and_read(void **state)
{
    scratch *self = *state;
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

static void an_info_file_lists_the_shards(void **state)
{
    scratch *self = *state;
    char path[128];
    write_shards(self, "wds/a", false);
    write_shards(self, "wds/b", true);
    text_write(self, "wds/_info.json",
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
    text_write(self, "wds/_info.json", "{\"splits\": {\"train\": {\"filenames\": [\"../a-0000.tar\"]}}}");
    expect_failure(self, path, "train", NULL, ATT_ERR_FORMAT, "entry 1 of the split \"train\"");
    text_write(self, "wds/_info.json", "{\"splits\": {\"train\": {\"filenames\": [\"c.tar\"]}}}");
    expect_failure(self, path, "train", NULL, ATT_ERR_NOT_FOUND, "lists c.tar");
    text_write(self, "wds/_info.json", "{\"splits\"");
    expect_failure(self, path, "train", NULL, ATT_ERR_FORMAT, "_info.json");
}

static void classes_of_shards_have_names(void **state)
{
    scratch *self = *state;
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
    text_write(self, "map.txt", "north\neast\nsouth\nwest\n");
    char map[128];
    snprintf(map, sizeof map, "%s/map.txt", self->folder);
    dataset = open_set(self, path, NULL, map);
    assert_string_equal(att_dataset_class_name(dataset, 3), "west");
    att_dataset_close(&dataset);
    text_write(self, "map.txt", "north\neast\nsouth\n");
    expect_failure(self, path, NULL, map, ATT_ERR_MISMATCH, "label 3, but the class map");
}

/* Files of a sample in any order; files that are neither image nor label; a sample without an image. */
static void samples_are_recognised(void **state)
{
    scratch *self = *state;
    static const char *const bad[] = {"", "x", "-1", "1048576", "3 4", "99999999999999999999"};
    pack made = pack_open(self->path, "ustar");
    pack_entry(&made, "a.cls", AE_IFREG, NULL, "2", 1);
    pack_entry(&made, "a.json", AE_IFREG, NULL, "{\"label\": 0}", 12);
    pack_picture(&made, "a.seg.png", 8);
    pack_picture(&made, "a.png", 9);
    pack_entry(&made, "b.cls", AE_IFREG, NULL, "1", 1);
    pack_entry(&made, "._c.cls", AE_IFREG, NULL, "1", 1);
    pack_entry(&made, "c.json", AE_IFREG, NULL, "{\"label\": 1, \"x\": [{}]}", 23);
    pack_entry(&made, "._c.png", AE_IFREG, NULL, "AppleDouble", 11);
    pack_picture(&made, "c.png", 10);
    pack_close(&made);
    att_dataset *dataset = open_set(self, self->path, NULL, NULL);
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_image(self, dataset, 0, 2, 9);
    assert_image(self, dataset, 1, 1, 10);
    att_dataset_close(&dataset);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made = pack_open(self->path, "ustar");
        pack_sample(&made, "a", 1, "cls", "1");
        pack_sample(&made, "b", 2, "cls", bad[i]);
        pack_close(&made);
        expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "file/b.png has no label; expected");
        att_dataset_options options = att_dataset_options_defaults();
        options.unlabelled = true;
        assert_int_equal(att_dataset_open(self->context, self->path, &options, &dataset), ATT_OK);
        assert_image(self, dataset, 1, -1, 2);
        att_dataset_close(&dataset);
    }
    made = pack_open(self->path, "ustar");
    pack_sample(&made, "a", 1, "json", "{\"label\": 1}");
    pack_sample(&made, "b", 2, "json", "{\"label\": \"1\"}");
    pack_sample(&made, "c", 2, "json", "{\"label\": 1");
    pack_close(&made);
    expect_failure(self, self->path, NULL, NULL, ATT_ERR_FORMAT, "file/b.png has no label");
}

static void compressed_shards_are_refused(void **state)
{
    scratch *self = *state;
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
static void any_number_of_processes_sees_one_order(void **state)
{
    scratch *self = *state;
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

static void lack_of_memory_is_reported_without_leaks(void **state)
{
    scratch *self = *state;
    write_shards(self, "train", true);
    text_write(self, "_info.json", "{\"splits\": {\"train\": {\"filenames\": [\"train-0001.tar\"]}}}");
    assert_survives_lack_of_memory(self, open_shards);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(shards_are_found_and_read),
        scratch_test(an_info_file_lists_the_shards),
        scratch_test(classes_of_shards_have_names),
        scratch_test(samples_are_recognised),
        scratch_test(compressed_shards_are_refused),
        scratch_test(any_number_of_processes_sees_one_order),
        scratch_test(lack_of_memory_is_reported_without_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
