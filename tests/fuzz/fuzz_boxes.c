/* The files of data sets with boxes: COCO's JSON, Pascal VOC's XML and its list, YOLO's text file and its names. The
 * first byte says which of them the other bytes are. */
#include <math.h>
#include <sys/stat.h>

#include "fuzz.h"

/* A grey PNG of 2 x 1 pixels. */
static const uint8_t png[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
                              0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
                              0x00, 0xd1, 0x49, 0x20, 0x56, 0x00, 0x00, 0x00, 0x0b, 0x49, 0x44, 0x41, 0x54, 0x78,
                              0x9c, 0x63, 0x60, 0x64, 0x02, 0x00, 0x00, 0x07, 0x00, 0x04, 0x76, 0x49, 0xe3, 0x28,
                              0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const char xml[] =
    "<annotation><object><name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax>"
    "<ymax>1</ymax></bndbox></object></annotation>";
static const char list[] = "a\n", line[] = "1 0.5 0.5 0.5 0.5\n";

enum { JSON, XML, LIST, LINES, YAML, NAMES, KINDS };

static const struct {
    const char *set, *file;
} kinds[KINDS] = {
    {"coco", "coco/annotations.json"}, {"voc", "voc/Annotations/a.xml"}, {"voc", "voc/ImageSets/Main/train.txt"},
    {"yolo", "yolo/labels/a.txt"},     {"yolo", "yolo/data.yaml"},       {"yolo", "yolo/classes.txt"}};

static void make_files(void)
{
    static const char *const folders[] = {
        "coco",          "coco/images",        "voc",  "voc/JPEGImages", "voc/Annotations",
        "voc/ImageSets", "voc/ImageSets/Main", "yolo", "yolo/images",    "yolo/labels"};
    char path[512];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), folders[i]);
        mkdir(path, 0700);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), kinds[kind].file);
        unlink(path);
    }
    (void)fuzz_file("coco/images/a.png", png, sizeof png);
    (void)fuzz_file("voc/JPEGImages/a.png", png, sizeof png);
    (void)fuzz_file("yolo/images/a.png", png, sizeof png);
    (void)fuzz_file(kinds[XML].file, xml, sizeof xml - 1);
    (void)fuzz_file(kinds[LIST].file, list, sizeof list - 1);
    (void)fuzz_file(kinds[LINES].file, line, sizeof line - 1);
}

static void check_boxes(const att_dataset *dataset, int64_t index)
{
    int count;
    const att_true_box *boxes = att_dataset_boxes(dataset, index, &count);
    for (int i = 0; i < count; i++) {
        fuzz_require(boxes[i].label >= 0 && boxes[i].label < att_dataset_class_count(dataset), "a class");
        fuzz_require(isfinite(boxes[i].x) && isfinite(boxes[i].y), "a place");
        fuzz_require(boxes[i].width > 0 && boxes[i].height > 0, "an extent");
    }
}

static void move_boxes(const att_dataset *dataset, int64_t index)
{
    enum { MOST = 3 };
    const att_geometry geometry = {
        .map = {{4, 0, 0}, {0, 4, 0}}, .from_width = 2, .from_height = 1, .width = 8, .height = 8};
    float rows[MOST * ATT_BOX_COLUMNS];
    int count;
    const att_true_box *boxes = att_dataset_boxes(dataset, index, &count);
    for (int i = att_boxes_move(boxes, count, &geometry, MOST, rows); i-- > 0;) {
        const float *row = rows + i * ATT_BOX_COLUMNS;
        fuzz_require(row[0] >= 0 && row[0] < row[2] && row[2] <= 8 && row[1] >= 0 && row[1] < row[3] && row[3] <= 4,
                     "a box inside the image");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t before = fuzz_begin();
    const int kind = size > 0 ? *data % KINDS : JSON;
    char path[512];
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    make_files();
    (void)fuzz_file(kinds[kind].file, size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0);
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), kinds[kind].set);
    options.annotations = ATT_ANNOTATION_BOXES;
    if (att_dataset_open(fuzz_context(), path, &options, &dataset) == ATT_OK)
        for (int64_t i = 0; i < att_dataset_count(dataset) && i < 4; i++) {
            check_boxes(dataset, i);
            move_boxes(dataset, i);
        }
    att_dataset_close(&dataset);
    fuzz_end(before);
    return 0;
}
