/* The files of a data set with masks in the layout of Pascal VOC: the list of a split, the classes, and a mask. The
 * first byte says which of them the other bytes are. */
#include <sys/stat.h>

#include "fuzz.h"

/* A grey PNG of 2 x 1 pixels. */
static const uint8_t png[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
                              0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
                              0x00, 0xd1, 0x49, 0x20, 0x56, 0x00, 0x00, 0x00, 0x0b, 0x49, 0x44, 0x41, 0x54, 0x78,
                              0x9c, 0x63, 0x60, 0x64, 0x02, 0x00, 0x00, 0x07, 0x00, 0x04, 0x76, 0x49, 0xe3, 0x28,
                              0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const char list[] = "a\n";

static void make_folders(void)
{
    static const char *const folders[] = {"voc", "voc/JPEGImages", "voc/SegmentationClass", "voc/ImageSets",
                                          "voc/ImageSets/Segmentation"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), folders[i]);
        mkdir(path, 0700);
    }
}

static void read_masks(const att_dataset *dataset)
{
    for (int64_t i = 0; i < att_dataset_count(dataset) && i < 2; i++) {
        att_mask mask = {0};
        const int classes = att_dataset_class_count(dataset);
        if (att_dataset_read_mask(dataset, fuzz_context(), i, &mask) == ATT_OK)
            for (int64_t k = 0; k < (int64_t)mask.width * mask.height; k++)
                fuzz_require(mask.classes[k] < classes || mask.classes[k] == ATT_MASK_NONE, "a class of the data set");
        att_mask_free(fuzz_context(), &mask);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LIST, CLASSES, TABLE, MASK, PHOTOGRAPH, KINDS };
    static const char *const names[KINDS] = {"voc/ImageSets/Segmentation/train.txt", "voc/classes.txt",
                                             "voc/objectInfo150.txt", "voc/SegmentationClass/a.png",
                                             "voc/JPEGImages/a.jpg"};
    const size_t before = fuzz_begin();
    const int kind = size > 0 ? *data % KINDS : LIST;
    make_folders();
    for (int i = 0; i < KINDS; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), names[i]);
        unlink(path);
    }
    (void)fuzz_file(names[LIST], list, sizeof list - 1);
    (void)fuzz_file(names[MASK], png, sizeof png);
    (void)fuzz_file(names[PHOTOGRAPH], png, sizeof png);
    (void)fuzz_file(names[kind], size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0);
    char path[512];
    snprintf(path, sizeof path, "%s/voc", fuzz_folder());
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_MASK;
    options.limits =
        (att_image_limits){.side = 512, .pixels = 1 << 16, .file_bytes = 1 << 20, .memory = (size_t)8 << 20};
    if (att_dataset_open(fuzz_context(), path, &options, &dataset) == ATT_OK)
        read_masks(dataset);
    att_dataset_close(&dataset);
    fuzz_end(before);
    return 0;
}
