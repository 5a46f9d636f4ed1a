/* The files of CIFAR-10, CIFAR-100, STL-10 or CIFAR-10 for Python. The first byte chooses the format, the second is the
 * number of the following bytes that are class names; the rest is the file with the labels. */
#include "fuzz.h"

enum { STL10_IMAGE = 96 * 96 * 3 };

static const struct {
    const char *names, *labels;
} sets[] = {{"batches.meta.txt", "test_batch.bin"},
            {"fine_label_names.txt", "test.bin"},
            {"class_names.txt", "test_y.bin"},
            {"batches.meta", "test_batch"}};
enum { SETS = sizeof sets / sizeof *sets };

static void remove_files(void)
{
    char path[512];
    for (int i = 0; i < SETS; i++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), sets[i].names);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), sets[i].labels);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/test_X.bin", fuzz_folder());
    unlink(path);
}

static void read_all(const att_dataset *dataset)
{
    for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
        att_image image = {0};
        fuzz_require(att_dataset_read(dataset, fuzz_context(), i, i % 2 ? 3 : 1, &image) == ATT_OK,
                     "an image can be read");
        att_image_free(fuzz_context(), &image);
        int32_t label = att_dataset_label(dataset, i);
        fuzz_require(label >= 0 && label < att_dataset_class_count(dataset), "labels are indices of classes");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t picture[STL10_IMAGE];
    if (size < 2)
        return 0;
    size_t before = fuzz_begin(), names = data[1] < size - 2 ? data[1] : size - 2;
    int set = data[0] % SETS;
    remove_files();
    if (names > 0)
        fuzz_file(sets[set].names, data + 2, names);
    fuzz_file(sets[set].labels, data + 2 + names, size - 2 - names);
    if (set == 2)
        fuzz_file("test_X.bin", picture, sizeof picture);
    att_dataset_options options = att_dataset_options_defaults();
    options.split = "test";
    att_dataset *dataset = NULL;
    if (att_dataset_open(fuzz_context(), fuzz_folder(), &options, &dataset) == ATT_OK)
        read_all(dataset);
    att_dataset_close(&dataset);
    fuzz_end(before);
    return 0;
}
