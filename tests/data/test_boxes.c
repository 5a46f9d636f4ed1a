/* Photographs with boxes: layouts, coordinates, classes, and files that do not fit. */
#include "data/mask_files.h"
#include "data/opened.h"
#include "shared.h"

enum { SIDE = PICTURE_SIDE };

static att_status open_boxes(att_context *context, const char *path, const char *split, att_dataset **dataset)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = ATT_ANNOTATION_BOXES;
    options.split = split;
    return att_dataset_open(context, path, &options, dataset);
}

static void remove_files(const scratch *self)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'/*", self->folder);
    assert_int_equal(system(command), 0);
}

static void expect_not_opened(scratch *self, const char *split, att_status status, const char *part)
{
    att_dataset *dataset = NULL;
    size_t allocated = att_context_allocations(self->context).bytes_now;
    assert_fails(self->context, open_boxes(self->context, self->folder, split, &dataset), status, part);
    assert_null(dataset);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

/* Opens the data set once, and records what is said. */
static void open_said(const scratch *self, said *log)
{
    att_context *context = said_context(log);
    att_dataset *dataset = NULL;
    CHECK(context, open_boxes(context, self->folder, NULL, &dataset));
    att_dataset_close(&dataset);
    att_context_destroy(&context);
}

static void assert_box(const att_true_box *box, double x, double y, double width, double height, int class)
{
    assert_float_equal(box->x, x, 1e-12);
    assert_float_equal(box->y, y, 1e-12);
    assert_float_equal(box->width, width, 1e-12);
    assert_float_equal(box->height, height, 1e-12);
    assert_int_equal(box->label, class);
}

#define COCO(images, categories, annotations) \
    "{\"images\": [" images "], \"categories\": [" categories "], \"annotations\": [" annotations "]}"
#define IMAGE(id, name) "{\"id\": " #id ", \"file_name\": \"" name "\", \"width\": 4, \"height\": 4}"
#define DOG "{\"id\": 18, \"name\": \"dog\"}"
#define CAT "{\"id\": 17, \"name\": \"cat\"}"
#define BOX(id, image, category, box) \
    "{\"id\": " #id ", \"image_id\": " #image ", \"category_id\": " #category ", \"bbox\": " box "}"
#define XML(objects) "<annotation><size><width>4</width><height>4</height></size>" objects "</annotation>"
#define OBJECT(name, box, rest) "<object><name>" name "</name><bndbox>" box "</bndbox>" rest "</object>"
#define CORNERS(left, top, right, low) \
    "<xmin>" #left "</xmin><ymin>" #top "</ymin><xmax>" #right "</xmax><ymax>" #low "</ymax>"

/* --- layouts ------------------------------------------------------------------------------------------------------ */

static const char one_coco[] = COCO(IMAGE(1, "a.png"), DOG, BOX(1, 1, 18, "[1, 1, 2, 2]"));
static const char one_xml[] = XML(OBJECT("dog", CORNERS(2, 2, 3, 3), ""));
static const char one_line[] = "0 0.5 0.5 0.5 0.5\n";

SCRATCH_TEST(usual_layouts_are_recognised)
{
    static const struct {
        const char *photograph, *annotations, *list, *split, *found;
    } layouts[] = {
        {"train2017/a.png", "annotations/instances_train2017.json", NULL, "train", "train"},
        {"val2017/a.png", "annotations/instances_val2017.json", NULL, "val", "val"},
        {"coco/images/val2017/a.png", "coco/annotations/instances_val2017.json", NULL, "validation", "val"},
        {"images/a.png", "annotations/instances_train.json", NULL, NULL, "train"},
        {"images/train/a.png", "annotations/train.json", NULL, NULL, "train"},
        {"train/a.png", "train/_annotations.coco.json", NULL, NULL, "train"},
        {"valid/a.png", "valid/_annotations.coco.json", NULL, "val", "valid"},
        {"train/images/a.png", "train/annotations.json", NULL, NULL, "train"},
        {"train/data/a.png", "train/labels.json", NULL, NULL, "train"},
        {"images/test/a.png", "test.json", NULL, NULL, "test"},
        {"images/a.png", "annotations.json", NULL, "train", ""},
        {"data/a.png", "labels.json", NULL, NULL, ""},
        {"a.png", "_annotations.coco.json", NULL, NULL, ""},
        {"VOC2007/JPEGImages/a.png", "VOC2007/Annotations/a.xml", "VOC2007/ImageSets/Main/train.txt", NULL, "train"},
        {"JPEGImages/a.png", "Annotations/a.xml", "ImageSets/Main/trainval.txt", "trainval", "trainval"},
        {"JPEGImages/a.png", "Annotations/a.xml", NULL, "val", ""},
        {"images/a.png", "annotations/a.xml", NULL, NULL, ""},
        {"train/a.png", "train/a.xml", NULL, NULL, "train"},
        {"a.png", "a.xml", NULL, NULL, ""},
        {"images/train/a.png", "labels/train/a.txt", NULL, NULL, "train"},
        {"coco128/images/train2017/a.png", "coco128/labels/train2017/a.txt", NULL, "train2017", "train2017"},
        {"valid/images/a.png", "valid/labels/a.txt", NULL, "val", "valid"},
        {"images/a.png", "labels/a.txt", NULL, NULL, ""},
        {"obj_train_data/a.png", "obj_train_data/a.txt", NULL, NULL, "train"},
        {"train/a.png", "train/a.txt", NULL, NULL, "train"},
        {"a.png", "a.txt", NULL, NULL, ""},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const char *ending = strrchr(layouts[i].annotations, '.');
        att_dataset *dataset = NULL;
        char name[512];
        int count;
        picture_write(self, layouts[i].photograph, 7);
        scratch_text(self, layouts[i].annotations,
                     strcmp(ending, ".json") == 0  ? one_coco
                     : strcmp(ending, ".xml") == 0 ? one_xml
                                                   : one_line);
        if (layouts[i].list)
            scratch_text(self, layouts[i].list, "a\n");
        if (open_boxes(self->context, self->folder, layouts[i].split, &dataset) != ATT_OK)
            fail_msg("%s: %s", layouts[i].annotations, att_context_message(self->context));
        assert_int_equal(att_dataset_annotations(dataset), ATT_ANNOTATION_BOXES);
        assert_string_equal(att_dataset_split(dataset), layouts[i].found);
        assert_int_equal(att_dataset_count(dataset), 1);
        assert_int_equal(att_dataset_class_count(dataset), 1);
        assert_box(att_dataset_boxes(dataset, 0, &count), 1, 1, 2, 2, 0);
        assert_int_equal(count, 1);
        assert_int_equal(att_dataset_label(dataset, 0), -1);
        assert_string_equal(strrchr(att_dataset_name(dataset, 0, name, sizeof name), '/'), "/a.png");
        assert_image(self, dataset, 0, -1, 7);
        att_dataset_close(&dataset);
        remove_files(self);
    }
}

SCRATCH_TEST(splits_are_kept_apart)
{
    att_dataset *dataset = NULL;
    scratch_text(self, "annotations/instances_train2017.json", one_coco);
    scratch_text(self, "annotations/instances_val2017.json", COCO(IMAGE(9, "b.png"), DOG, ""));
    picture_write(self, "train2017/a.png", 1);
    picture_write(self, "val2017/b.png", 2);
    CHECK(self->context, open_boxes(self->context, self->folder, "val", &dataset));
    assert_image(self, dataset, 0, -1, 2);
    assert_int_equal(att_dataset_image_id(dataset, 0), 9);
    assert_int_equal(att_dataset_image_id(dataset, 1), -1);
    att_dataset_close(&dataset);
    scratch_text(self, "annotations/instances_train2014.json", one_coco);
    picture_write(self, "train2014/a.png", 1);
    expect_not_opened(self, "train", ATT_ERR_FORMAT, "can both be the split \"train\"");
    CHECK(self->context, open_boxes(self->context, self->folder, "train2014", &dataset));
    att_dataset_close(&dataset);
    remove_files(self);
    scratch_text(self, "annotations/instances_val2017.json", one_coco);
    picture_write(self, "val2017/a.png", 1);
    expect_not_opened(self, "train", ATT_ERR_NOT_FOUND, "has no split \"train\" with boxes, only \"val2017\"");
}

SCRATCH_TEST(other_annotations_are_refused)
{
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    picture_write(self, "images/train/a.png", 1);
    scratch_text(self, "labels/train/a.txt", one_line);
    expect_failure(self, self->folder, NULL, NULL, ATT_ERR_MISMATCH, "classes are needed; /tmp/");
    assert_message_has(self, " has boxes");
    options.annotations = ATT_ANNOTATION_MASK;
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_MISMATCH,
                 "masks are needed; ");
    assert_message_has(self, " has boxes");
    options.unlabelled = true;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_annotations(dataset), 0);
    att_dataset_close(&dataset);
    remove_files(self);
    picture_write(self, "images/train/a.png", 1);
    mask_fill(self, "masks/train/a.png", 0);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "boxes are needed; ");
    assert_message_has(self, " has masks");
    remove_files(self);
    picture_write(self, "train/cat/a.png", 1);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, " has no boxes: expected photographs with COCO's JSON");
    /* as iNaturalist's classes */
    scratch_text(self, "train.json",
                 COCO(IMAGE(1, "cat/a.png"), CAT, "{\"id\": 1, \"image_id\": 1, \"category_id\": 17}"));
    att_dataset_close(&(att_dataset *){open_set(self, self->folder, "train", NULL)});
    expect_not_opened(self, NULL, ATT_ERR_FORMAT, "annotations[0]: \"bbox\" must be four numbers");
    scratch_text(self, "train.json", COCO(IMAGE(1, "cat/a.png"), CAT, BOX(1, 1, 17, "[0, 0, 1, 1]")));
    expect_failure(self, self->folder, NULL, NULL, ATT_ERR_MISMATCH, " has boxes");
    idx_write(self, "train", 2, 2);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "boxes are needed; ");
    assert_message_has(self, " has classes");
}

/* --- COCO --------------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(coco_keeps_ids_areas_and_crowds)
{
    att_dataset *dataset = NULL;
    char text[256];
    int count;
    picture_write(self, "images/a.png", 1);
    picture_write(self, "images/deep/b.png", 2);
    picture_write(self, "images/c.png", 3);
    scratch_text(self, "annotations.json",
                 COCO(IMAGE(30, "deep/b.png") "," IMAGE(20, "a.png") "," IMAGE(40, "images/c.png"), DOG "," CAT,
                      "{\"id\": 5, \"image_id\": 30, \"category_id\": 18, \"bbox\": [0.5, 1, 2, 3], \"area\": 4.5},"
                      "{\"id\": 2, \"image_id\": 20, \"category_id\": 17, \"bbox\": [0, 0, 4, 4], \"iscrowd\": 1},"
                      "{\"id\": 9, \"image_id\": 30, \"category_id\": 17, \"bbox\": [1, 1, 1, 1]}"));
    CHECK(self->context, open_boxes(self->context, self->folder, NULL, &dataset));
    assert_int_equal(att_dataset_count(dataset), 3);
    assert_image(self, dataset, 0, -1, 1);
    assert_image(self, dataset, 2, -1, 3);
    assert_int_equal(att_dataset_image_id(dataset, 1), 30);
    const att_true_box *boxes = att_dataset_boxes(dataset, 1, &count);
    assert_int_equal(count, 2);
    assert_box(&boxes[0], 0.5, 1, 2, 3, 1);
    assert_float_equal(boxes[0].area, 4.5, 0);
    assert_int_equal(boxes[0].id, 5);
    assert_false(boxes[0].crowd);
    assert_box(&boxes[1], 1, 1, 1, 1, 0);
    assert_float_equal(boxes[1].area, 1, 0);
    assert_true(att_dataset_boxes(dataset, 0, &count)->crowd);
    assert_null(att_dataset_boxes(dataset, 2, &count));
    assert_int_equal(count, 0);
    assert_null(att_dataset_boxes(dataset, 3, &count));
    assert_int_equal(att_dataset_class_id(dataset, 0), 17);
    assert_int_equal(att_dataset_class_id(dataset, 1), 18);
    assert_int_equal(att_dataset_class_id(dataset, 2), -1);
    assert_int_equal(att_dataset_count_boxes(dataset).most, 2);
    assert_non_null(
        strstr(att_dataset_describe(dataset, text, sizeof text),
               ": 3 images, 3 boxes (1 of crowds), 1 image without boxes, 2 classes, numbered by the labels"));
    att_dataset_close(&dataset);
}

SCRATCH_TEST(bad_coco_files_are_refused)
{
    static const struct {
        const char *text;
        att_status status;
        const char *part;
    } cases[] = {
        {"{\"images\": [", ATT_ERR_FORMAT, "annotations.json ends in the middle"},
        {"{\"images\": [], \"categories\": []}", ATT_ERR_FORMAT, "has no list \"annotations\""},
        {COCO("", DOG, ""), ATT_ERR_FORMAT, "has no photographs with boxes"},
        {COCO("{\"id\": 3}", DOG, ""), ATT_ERR_FORMAT, "the image with the id 3 has no \"file_name\""},
        {COCO(IMAGE(3, "../a.png"), DOG, ""), ATT_ERR_FORMAT, "the image with the id 3 has the file_name \"../a.png\""},
        {COCO(IMAGE(3, "/a.png"), DOG, ""), ATT_ERR_FORMAT, "expected a path that begins in the folder"},
        {COCO(IMAGE(3, "a.png") "," IMAGE(4, "b.png"), DOG, ""), ATT_ERR_MISMATCH,
         "the image with the id 4 is \"b.png\", which "},
        {COCO(IMAGE(3, "a.png") "," IMAGE(3, "b.png"), DOG, ""), ATT_ERR_FORMAT, "two images have the id 3"},
        {COCO(IMAGE(3, "a.png"), DOG "," DOG, ""), ATT_ERR_FORMAT, "two categories have the id 18"},
        {COCO(IMAGE(3, "a.png"), DOG ", {\"id\": 1, \"name\": \"dog\"}", ""), ATT_ERR_FORMAT,
         "two classes are named \"dog\""},
        {COCO(IMAGE(3, "a.png"), "", ""), ATT_ERR_FORMAT, "has no boxes, and no list of classes"},
        {COCO(IMAGE(3, "a.png"), DOG, BOX(7, 3, 18, "[0, 0, 1, 1]") "," BOX(7, 3, 18, "[0, 0, 1, 1]")), ATT_ERR_FORMAT,
         "two annotations have the id 7"},
        {COCO(IMAGE(3, "a.png"), DOG, BOX(7, 3, 18, "[0, 0, 1]")), ATT_ERR_FORMAT,
         "annotations[0]: \"bbox\" must be four numbers"},
        {COCO(IMAGE(3, "a.png"), DOG, BOX(7, 3, 18, "[0, 0, 1, NaN]")), ATT_ERR_FORMAT, "annotations[0]"},
    };
    picture_write(self, "images/a.png", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_text(self, "annotations.json", cases[i].text);
        expect_not_opened(self, NULL, cases[i].status, cases[i].part);
    }
}

SCRATCH_TEST(what_is_left_out_is_counted)
{
    static const struct {
        int image, category;
        const char *box;
    } boxes[] = {{4, 18, "0, 0, 1, 1"},  {5, 18, "0, 0, 1, 1"}, {3, 1, "0, 0, 1, 1"},   {3, 18, "0, 0, 0, 1"},
                 {3, 18, "4, 0, 1, 1"},  {3, 18, "0, 4, 1, 1"}, {3, 18, "-1, 0, 1, 1"}, {3, 18, "0, -2, 1, 2"},
                 {3, 18, "1, -2, 2, 4"}, {3, 18, "0, 0, 4, 6"}, {3, 18, "0, 0, 4.5, 2"}};
    char text[2000] = "{\"images\": [" IMAGE(3, "a.png") "], \"categories\": [" DOG "], \"annotations\": [";
    said log;
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": [%s]}", i > 0 ? "," : "", (int)i + 1,
                 boxes[i].image, boxes[i].category, boxes[i].box);
    strcat(text, "]}");
    picture_write(self, "images/a.png", 1);
    scratch_text(self, "annotations.json", text);
    open_said(self, &log);
    assert_said(&log,
                "annotations.json: 2 annotations are left out: the file does not list their images; the first has "
                "the id 1");
    assert_said(&log, "1 annotation is left out: the file does not list its category; the first has the id 3");
    assert_said(&log, ": 1 box without an extent is left out; the first is annotation 4 of ");
    assert_said(&log, ": 4 boxes outside of their photographs are left out; the first is annotation 5 of ");
    assert_said(&log,
                ": 2 boxes reach out of their photographs; a training run cuts them off at the border; the first is "
                "annotation 9 of ");
}

SCRATCH_TEST(the_class_that_roboflow_adds_is_left_out)
{
    att_dataset *dataset = NULL;
    picture_write(self, "train/a.png", 1);
    scratch_text(self, "train/_annotations.coco.json",
                 COCO(IMAGE(0, "a.png"),
                      "{\"id\": 0, \"name\": \"pets\", \"supercategory\": \"none\"}, {\"id\": 1, \"name\": \"dog\", "
                      "\"supercategory\": \"pets\"}",
                      BOX(0, 0, 1, "[0, 0, 1, 1]")));
    CHECK(self->context, open_boxes(self->context, self->folder, NULL, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 1);
    assert_string_equal(att_dataset_class_name(dataset, 0), "dog");
    assert_int_equal(att_dataset_class_id(dataset, 0), 1);
    att_dataset_close(&dataset);
    /* here it has a box */
    scratch_text(self, "train/_annotations.coco.json",
                 COCO(IMAGE(0, "a.png"),
                      "{\"id\": 0, \"name\": \"pets\", \"supercategory\": \"none\"}, {\"id\": 1, \"name\": \"dog\", "
                      "\"supercategory\": \"pets\"}",
                      BOX(0, 0, 0, "[0, 0, 1, 1]")));
    CHECK(self->context, open_boxes(self->context, self->folder, NULL, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 2);
    att_dataset_close(&dataset);
}

/* --- Pascal VOC --------------------------------------------------------------------------------------------------- */

/* Classes of all splits are counted, so that both splits number them in the same way. */
SCRATCH_TEST(pascal_voc_is_read)
{
    att_dataset *dataset = NULL;
    said log;
    int count;
    picture_write(self, "JPEGImages/a.png", 1);
    picture_write(self, "JPEGImages/b.png", 2);
    picture_write(self, "JPEGImages/c.png", 3);
    picture_write(self, "JPEGImages/d.png", 4);
    scratch_text(self, "Annotations/a.xml",
                 XML(OBJECT("sofa", CORNERS(1, 2, 4, 3), "<difficult>1</difficult>") OBJECT(
                     " dog ", CORNERS(2, 2, 2.5, 4), "<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>")));
    scratch_text(self, "Annotations/b.xml", XML(OBJECT("cat", CORNERS(1, 1, 4, 4), "")));
    scratch_text(self, "Annotations/c.xml", "<?xml version=\"1.0\"?><annotation><!-- no object --></annotation>");
    scratch_text(self, "ImageSets/Main/train.txt", "c\na  1\nd\n");
    scratch_text(self, "ImageSets/Main/val.txt", "b\n");
    scratch_text(self, "ImageSets/Main/cat_train.txt", "c -1\na -1\n");
    CHECK(self->context, open_boxes(self->context, self->folder, "train", &dataset));
    assert_int_equal(att_dataset_count(dataset), 2);
    assert_image(self, dataset, 0, -1, 3);
    assert_int_equal(att_dataset_class_count(dataset), 3);
    assert_string_equal(att_dataset_class_name(dataset, 0), "cat");
    const att_true_box *boxes = att_dataset_boxes(dataset, 1, &count);
    assert_int_equal(count, 2);
    assert_box(&boxes[0], 0, 1, 4, 2, 2);
    assert_true(boxes[0].crowd);
    assert_float_equal(boxes[0].area, 8, 0);
    assert_box(&boxes[1], 1, 1, 1.5, 3, 1);
    assert_int_equal(boxes[1].id, 2);
    assert_int_equal(att_dataset_image_id(dataset, 1), 1);
    assert_int_equal(att_dataset_class_id(dataset, 2), 2);
    att_dataset_close(&dataset);
    open_said(self, &log);
    assert_said(&log, ": left out 1 photograph without a file of boxes; the first is ");
}

SCRATCH_TEST(bad_xml_is_refused)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"<annotation><object><name>dog</name>", "a.xml, line 1: not valid XML: no element found"},
        {"<annotation>\n<object></annotation>", "a.xml, line 2: not valid XML: mismatched tag"},
        {XML(OBJECT("dog", "<xmin>1</xmin>", "")), "an object without <ymin> in <bndbox>"},
        {XML("<object><bndbox>" CORNERS(1, 1, 2, 2) "</bndbox></object>"), "an object without a <name>"},
        {XML(OBJECT("dog", CORNERS(1, one, 2, 2), "")), "a.xml, line 1: ymin is \"one\"; expected a number"},
        {XML(OBJECT("dog", CORNERS(1, nan, 2, 2), "")), "ymin is \"nan\"; expected a number"},
        {"<annotations/>", "a.xml is no annotation of Pascal VOC"},
        {"<!DOCTYPE annotation [<!ENTITY a \"b\">]><annotation/>", "line 1: document types"},
        {"<annotation><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "too many elements inside each other"},
    };
    picture_write(self, "JPEGImages/a.png", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_text(self, "Annotations/a.xml", cases[i].text);
        expect_not_opened(self, NULL, ATT_ERR_FORMAT, cases[i].part);
    }
    scratch_text(self, "Annotations/a.xml", one_xml);
    scratch_text(self, "ImageSets/Main/train.txt", "a\nb\n");
    expect_not_opened(self, "train", ATT_ERR_MISMATCH, "train.txt: line 2 names \"b\", but ");
    scratch_text(self, "ImageSets/Main/train.txt", "a\n a 1\n");
    expect_not_opened(self, "train", ATT_ERR_MISMATCH, "train.txt: line 2 names \"a\", as does line 1");
    scratch_text(self, "ImageSets/Main/train.txt", "\n");
    expect_not_opened(self, "train", ATT_ERR_FORMAT, "train.txt is empty");
}

SCRATCH_TEST(photographs_and_files_without_partner_are_counted)
{
    said log;
    picture_write(self, "images/a.png", 1);
    picture_write(self, "images/b.png", 1);
    scratch_text(self, "annotations/a.xml", one_xml);
    scratch_text(self, "annotations/z.xml", one_xml);
    open_said(self, &log);
    assert_said(&log, ": left out 1 photograph without a file of boxes; the first is ");
    assert_said(&log, ": left out 1 file of boxes without a photograph; the first is ");
    picture_write(self, "images/b.jpg", 1);
    expect_not_opened(self, NULL, ATT_ERR_MISMATCH, "b.jpg and b.png would have the same boxes");
}

/* --- YOLO --------------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(yolo_is_read)
{
    att_dataset *dataset = NULL;
    said log;
    int count;
    picture_write_sized(self, "images/train/a.png", 1, 8, 4);
    picture_write(self, "images/train/b.png", 2);
    scratch_text(self, "labels/train/a.txt", "1 0.5 0.5 0.25 0.5\r\n\n0\t0.125 0.25 0.25 0.5\n");
    scratch_text(self, "labels/train/z.txt", one_line);
    scratch_text(self, "labels/train/classes.txt", "one\ntwo\nthree\n");
    CHECK(self->context, open_boxes(self->context, self->folder, NULL, &dataset));
    const att_true_box *boxes = att_dataset_boxes(dataset, 0, &count);
    assert_int_equal(count, 2);
    assert_box(&boxes[0], 3, 1, 2, 2, 1);
    assert_box(&boxes[1], 0, 0, 2, 2, 0);
    assert_float_equal(boxes[1].area, 4, 0);
    assert_int_equal(boxes[1].id, 3);
    assert_null(att_dataset_boxes(dataset, 1, &count));
    assert_int_equal(att_dataset_class_count(dataset), 3);
    assert_string_equal(att_dataset_class_name(dataset, 1), "two");
    att_dataset_close(&dataset);
    open_said(self, &log);
    assert_said(&log, ": 1 image without a text file counts as without objects");
    assert_said(&log, ": left out 1 text file without an image; the first is ");
}

SCRATCH_TEST(yolo_names_are_read)
{
    static const struct {
        const char *file, *text, *part; /* part: of a failure; NULL: the classes are "x" and "y" */
    } cases[] = {
        {"data.yaml", "path: ../a\ntrain: images/train\nnc: 2\nnames: ['x', 'y']\n", NULL},
        {"data.yaml", "names:\n  0: x\n  1: y\nroboflow:\n  license: MIT\n", NULL},
        {"dataset.yaml", "names:\n- x\n- y\n", NULL},
        {"classes.txt", "x\ny\n", NULL},
        {"obj.names", "x\r\ny\r\n", NULL},
        {"data.yaml", "names:\n  0: x\n  2: y\n", "data.yaml, line 3: expected the name of class 1"},
        {"data.yaml", "nc: 2\n", "data.yaml has no \"names\""},
        {"data.yaml", "names: [x]\n", "a.txt has the class 1, but there are names for 1 classes"},
        {"data.yaml", "names: [", "data.yaml, line "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_dataset *dataset = NULL;
        picture_write(self, "images/train/a.png", 1);
        scratch_text(self, "labels/train/a.txt", "1 0.5 0.5 0.5 0.5\n");
        scratch_text(self, cases[i].file, cases[i].text);
        if (cases[i].part) {
            expect_not_opened(self, NULL, ATT_ERR_FORMAT, cases[i].part);
        } else {
            CHECK(self->context, open_boxes(self->context, self->folder, NULL, &dataset));
            assert_int_equal(att_dataset_class_count(dataset), 2);
            assert_string_equal(att_dataset_class_name(dataset, 1), "y");
            att_dataset_close(&dataset);
        }
        remove_files(self);
    }
}

SCRATCH_TEST(bad_lines_are_refused)
{
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"0 0.5 0.5 0.5", "a.txt: line 2 is no box"},
        {"dog 0.5 0.5 0.5 0.5", "line 2 is no box"},
        {"-1 0.5 0.5 0.5 0.5", "line 2 is no box"},
        {"65536 0.5 0.5 0.5 0.5", "has a class beyond 65535"},
        {"0 320 240 64 64", "expected centre x, centre y, width and height from 0 to 1, not in pixels"},
        {"0 -1.5 0.5 0.5 0.5", "has numbers that are no shares"},
        {"0 0.5 nan 0.5 0.5", "has numbers that are no shares"},
        {"0 0.5 0.5 0.5 0.5 0.9", "has more than five numbers"},
        {"0 0.1 0.1 0.2 0.2 0.3 0.3", "has more than five numbers"},
    };
    picture_write(self, "images/train/a.png", 1);
    picture_write(self, "images/train/b.png", 1);
    scratch_text(self, "labels/train/b.txt", one_line);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s%s\n", one_line, cases[i].line);
        scratch_text(self, "labels/train/a.txt", text);
        expect_not_opened(self, NULL, ATT_ERR_FORMAT, cases[i].part);
    }
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

SCRATCH_TEST(class_maps_and_trainings_number_classes)
{
    static const char *const trained[] = {"bird", "dog", "cat"}, *const others[] = {"bird", "cat"},
                             *const strangers[] = {"x", "y"};
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    char map[512];
    int count;
    options.annotations = ATT_ANNOTATION_BOXES;
    picture_write(self, "images/a.png", 1);
    scratch_text(self, "annotations.json", COCO(IMAGE(1, "a.png"), DOG "," CAT, BOX(1, 1, 17, "[0, 0, 1, 1]")));
    options.trained = trained;
    options.trained_count = 3;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_TRAINING);
    assert_int_equal(att_dataset_class_count(dataset), 3);
    assert_int_equal(att_dataset_boxes(dataset, 0, &count)->label, 2);
    assert_int_equal(att_dataset_class_id(dataset, 2), 17);
    assert_int_equal(att_dataset_class_id(dataset, 0), -1);
    att_dataset_close(&dataset);
    options.trained = others;
    options.trained_count = 2;
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_MISMATCH,
                 "class \"dog\" is none of the 2 classes of the training, though \"cat\" is");
    scratch_text(self, "annotations.json",
                 COCO(IMAGE(1, "a.png"), "{\"id\": 1, \"name\": \"ant\"}, {\"id\": 2, \"name\": \"bee\"}," CAT,
                      BOX(1, 1, 17, "[0, 0, 1, 1]")));
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_MISMATCH,
                 "class \"ant\" is none of the 2 classes of the training, though \"cat\" is");
    scratch_text(self, "annotations.json", COCO(IMAGE(1, "a.png"), DOG "," CAT, BOX(1, 1, 17, "[0, 0, 1, 1]")));
    options.trained = strangers;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_numbering(dataset), ATT_NUMBERED_BY_LABELS);
    att_dataset_close(&dataset);
    options.class_map = scratch_path(self, "map.txt", map);
    scratch_text(self, "map.txt", "dog\ncat\n");
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_boxes(dataset, 0, &count)->label, 1);
    assert_int_equal(att_dataset_class_id(dataset, 0), 18);
    att_dataset_close(&dataset);
    scratch_text(self, "map.txt", "cat\n");
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_MISMATCH,
                 "class \"dog\" is not in the class map");
}

SCRATCH_TEST(numbers_without_names_take_those_that_are_given)
{
    static const char *const trained[] = {"x", "y", "z"};
    att_dataset *dataset = NULL;
    att_dataset_options options = att_dataset_options_defaults();
    char map[512];
    options.annotations = ATT_ANNOTATION_BOXES;
    picture_write(self, "images/train/a.png", 1);
    scratch_text(self, "labels/train/a.txt", "1 0.5 0.5 0.5 0.5\n");
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 2);
    assert_string_equal(att_dataset_class_name(dataset, 1), "1");
    att_dataset_close(&dataset);
    options.classes = 5;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_int_equal(att_dataset_class_count(dataset), 5);
    att_dataset_close(&dataset);
    options.trained = trained;
    options.trained_count = 3;
    said log;
    att_context *context = said_context(&log);
    CHECK(context, att_dataset_open(context, self->folder, &options, &dataset));
    assert_string_equal(att_dataset_class_name(dataset, 2), "z");
    assert_said(&log,
                ": the annotations have no names of classes; number n is taken for class n of the training, 0 for "
                "\"x\"");
    att_dataset_close(&dataset);
    att_context_destroy(&context);
    options.trained_count = 1;
    assert_fails(self->context, att_dataset_open(self->context, self->folder, &options, &dataset), ATT_ERR_MISMATCH,
                 "boxes have the class 1, but there are 1 classes");
    options.class_map = scratch_path(self, "map.txt", map);
    scratch_text(self, "map.txt", "one\ntwo\n");
    CHECK(self->context, att_dataset_open(self->context, self->folder, &options, &dataset));
    assert_string_equal(att_dataset_class_name(dataset, 1), "two");
    att_dataset_close(&dataset);
}

/* --- photographs -------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(sizes_and_orientations_that_do_not_fit_are_refused)
{
    static const struct {
        int width, height, orientation;
        const char *part; /* of the failure for COCO's 4 x 2 pixels; NULL: it is read */
        bool unsized;     /* whether YOLO's shares are refused */
    } cases[] = {{4, 2, 0, NULL, false},
                 {4, 2, 1, NULL, false},
                 {2, 4, 0, "the photograph has 2 x 4 pixels, but its annotations are for 4 x 2", false},
                 {4, 2, 3, "EXIF says to turn or mirror it (orientation 3)", true},
                 {4, 2, 6, NULL, true},
                 {2, 4, 6, "EXIF says to turn or mirror it (orientation 6)", true}};
    scratch_text(self, "coco/annotations.json",
                 COCO("{\"id\": 1, \"file_name\": \"a.jpg\", \"width\": 4, \"height\": 2}", DOG, ""));
    scratch_text(self, "yolo/labels/a.txt", one_line);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int yolo = 0; yolo < 2; yolo++) {
            const char *part = yolo && cases[i].unsized ? "EXIF says to turn" : yolo ? NULL : cases[i].part;
            char path[512];
            att_dataset *dataset = NULL;
            att_image image = {0};
            mask_jpeg(self, yolo ? "yolo/images/a.jpg" : "coco/images/a.jpg", cases[i].width, cases[i].height,
                      cases[i].orientation);
            CHECK(self->context,
                  open_boxes(self->context, scratch_path(self, yolo ? "yolo" : "coco", path), NULL, &dataset));
            att_status status = att_dataset_read(dataset, self->context, 0, 3, &image);
            if (part)
                assert_fails(self->context, status, ATT_ERR_FORMAT, part);
            else
                CHECK(self->context, status);
            att_image_free(self->context, &image);
            att_dataset_close(&dataset);
        }
}

/* An image that cannot be decoded is found when it is read. */
SCRATCH_TEST(corrupt_photographs_do_not_prevent_opening)
{
    att_dataset *dataset = NULL;
    att_image image = {0};
    scratch_text(self, "images/a.png", "none");
    scratch_text(self, "labels/a.txt", one_line);
    CHECK(self->context, open_boxes(self->context, self->folder, NULL, &dataset));
    assert_int_equal(att_dataset_read(dataset, self->context, 0, 3, &image), ATT_ERR_FORMAT);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(boxes_without_memory_leave_nothing_behind)
{
    static const char *const files[] = {"annotations.json", "Annotations/a.xml", "labels/a.txt"};
    static const char *const texts[] = {one_coco, one_xml, one_line};
    static const char *const trained[] = {"dog", "cat"};
    for (int i = 0; i < 3; i++) {
        att_dataset_options options = att_dataset_options_defaults();
        options.annotations = ATT_ANNOTATION_BOXES;
        options.trained = trained;
        options.trained_count = 2;
        remove_files(self);
        picture_write(self, i == 1 ? "JPEGImages/a.png" : "images/a.png", 1);
        scratch_text(self, files[i], texts[i]);
        lack of = lack_of_memory(self->context, &self->memory);
        while (lack_again(&of)) {
            att_dataset *dataset = NULL;
            of.status = att_dataset_open(self->context, self->folder, &options, &dataset);
            att_dataset_close(&dataset);
        }
    }
}

/* --- real data ---------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(photographs_of_coco_are_read)
{
    char path[SHARED_PATH], text[512];
    att_dataset *dataset = NULL;
    if (!shared_path("data/coco63", path))
        skip();
    CHECK(self->context, open_boxes(self->context, path, NULL, &dataset));
    assert_non_null(strstr(att_dataset_describe(dataset, text, sizeof text),
                           "coco63: 63 images, 429 boxes (2 of crowds), 80 classes"));
    for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
        att_image image;
        CHECK(self->context, att_dataset_read(dataset, self->context, i, 3, &image));
        att_image_free(self->context, &image);
    }
    att_dataset_close(&dataset);
}

SCRATCH_TEST(annotations_without_photographs_are_refused)
{
    char path[SHARED_PATH], link[512];
    if (!shared_path("data/coco_eval/instances_val2014_100.json", path))
        skip();
    scratch_text(self, "val2014/none.txt", "");
    assert_int_equal(symlink(path, scratch_path(self, "annotations/instances_val2014.json", link)), 0);
    expect_not_opened(self, "val", ATT_ERR_MISMATCH, "100 of 100 photographs are missing");
}
