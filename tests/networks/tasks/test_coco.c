/* COCO's evaluation of boxes: pycocotools' figures, boxes whose figures follow by hand, and files that do not fit. */
#include <attscope/coco.h>

#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/scratch.h"
#include "golden_path.h"
#include "shared.h"

static const char image[] =
    "\"images\": [{\"id\": 5}], \"categories\": [{\"id\": 3, \"name\": \"dog\"}], \"annotations\": ";

static const char *file_in(const scratch *self, const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", self->folder, name);
    return path;
}

static void write_text(const scratch *self, const char *name, const char *text)
{
    char path[160];
    CHECK(self->context, att_file_replace(self->context, file_in(self, name, path), text, strlen(text)));
}

static att_status evaluate(const scratch *self, att_coco_evaluation **evaluation)
{
    char truth[160], results[160];
    return att_coco_evaluate(self->context, file_in(self, "truth.json", truth), file_in(self, "results.json", results),
                             evaluation);
}

/* Evaluates detections of the category 3 in the image 5. */
static att_coco_evaluation *evaluate_boxes(const scratch *self, const char *annotations, const char *results)
{
    char text[2048];
    att_coco_evaluation *evaluation = NULL;
    snprintf(text, sizeof text, "{%s[%s]}", image, annotations);
    write_text(self, "truth.json", text);
    snprintf(text, sizeof text, "[%s]", results);
    write_text(self, "results.json", text);
    CHECK(self->context, evaluate(self, &evaluation));
    return evaluation;
}

static void expect_figures(const att_coco_evaluation *evaluation, const double expected[ATT_COCO_FIGURES])
{
    for (int i = 0; i < ATT_COCO_FIGURES; i++)
        if (!(fabs(att_coco_evaluation_figure(evaluation, i) - expected[i]) <= 1e-12)) /* measured: 3e-16 */
            fail_msg("%s is %.17g instead of %.17g", att_coco_figure_at(i).name,
                     att_coco_evaluation_figure(evaluation, i), expected[i]);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static void write_json(const scratch *self, const char *name, const json_t *value)
{
    char *text = json_dumps(value, 0);
    write_text(self, name, text);
    free(text);
}

static void compare_case(const scratch *self, const json_t *golden)
{
    double figures[ATT_COCO_FIGURES];
    att_coco_evaluation *evaluation = NULL;
    for (int i = 0; i < ATT_COCO_FIGURES; i++)
        figures[i] = json_number_value(json_array_get(json_object_get(golden, "figures"), (size_t)i));
    write_json(self, "truth.json", json_object_get(golden, "truth"));
    write_json(self, "results.json", json_object_get(golden, "results"));
    CHECK(self->context, evaluate(self, &evaluation));
    expect_figures(evaluation, figures);
    att_coco_evaluation_destroy(&evaluation);
}

SCRATCH_TEST(figures_are_those_of_pycocotools)
{
    char path[512], *text;
    size_t size;
    json_t *cases;
    golden_path("coco.json", path, sizeof path);
    CHECK(self->context, att_file_read(self->context, path, 1 << 20, &text, &size));
    CHECK(self->context, att_json_parse(self->context, path, text, size, &cases));
    att_free(self->context, text);
    assert_int_equal(json_array_size(cases), 5);
    for (size_t i = 0; i < json_array_size(cases); i++)
        compare_case(self, json_array_get(cases, i));
    json_decref(cases);
}

SCRATCH_TEST(figures_of_the_public_fixture)
{
    static const double figures[ATT_COCO_FIGURES] = {0.5045806987249628,  0.6969727247299577, 0.5729816669904824,
                                                     0.5856257209410443,  0.5193996948036719, 0.5013978986347466,
                                                     0.38681277964578054, 0.5936795762842003, 0.595352982877607,
                                                     0.6398109626113442,  0.5664205978994309, 0.5642905982905982};
    char truth[SHARED_PATH], results[SHARED_PATH];
    att_coco_evaluation *evaluation = NULL;
    if (!shared_path("data/coco_eval/instances_val2014_100.json", truth) ||
        !shared_path("data/coco_eval/instances_val2014_fakebbox100_results.json", results))
        skip();
    CHECK(self->context, att_coco_evaluate(self->context, truth, results, &evaluation));
    expect_figures(evaluation, figures);
    assert_int_equal(att_coco_evaluation_images(evaluation), 100);
    assert_int_equal(att_coco_evaluation_classes(evaluation), 80);
    assert_int_equal(att_coco_evaluation_detections(evaluation), 734);
    att_coco_evaluation_destroy(&evaluation);
}

#define TRUE_BOX(id, box, more) "{\"id\": " #id ", \"image_id\": 5, \"category_id\": 3, \"bbox\": [" box "]" more "}"
#define FOUND(box, score) "{\"image_id\": 5, \"category_id\": 3, \"bbox\": [" box "], \"score\": " score "}"

/* One of two boxes is found by the second of three detections: precision 1/2 up to recall 1/2. */
SCRATCH_TEST(precision_counts_wrong_detections_before)
{
    att_coco_evaluation *evaluation =
        evaluate_boxes(self, TRUE_BOX(1, "0, 0, 10, 10", "") ", " TRUE_BOX(2, "50, 50, 10, 10", ""),
                       FOUND("0, 0, 10, 10", "0.5") ", " FOUND("80, 0, 9, 9", "0.9") ", " FOUND("0, 80, 9, 9", "0.1"));
    const double ap = 0.5 * 51 / 101; /* recalls 0, 0.01, ... 0.5 */
    const double figures[ATT_COCO_FIGURES] = {ap, ap, ap, ap, -1, -1, 0, 0.5, 0.5, 0.5, -1, -1};
    expect_figures(evaluation, figures);
    const att_coco_class dog = att_coco_evaluation_class(evaluation, 0);
    assert_string_equal(dog.name, "dog");
    assert_int_equal(dog.id, 3);
    assert_int_equal(dog.boxes, 2);
    assert_true(dog.ap == att_coco_evaluation_figure(evaluation, 0) && dog.ar == 0.5);
    att_coco_evaluation_destroy(&evaluation);
}

/* An overlap of 0.6 counts at three thresholds of ten; a crowd takes any number of detections, and none is wrong. An
 * annotation with the id 0 counts. */
SCRATCH_TEST(overlaps_and_crowds)
{
    att_coco_evaluation *evaluation =
        evaluate_boxes(self, TRUE_BOX(0, "0, 0, 10, 10", ""), FOUND("0, 0, 10, 6", "0.5"));
    assert_float_equal(att_coco_evaluation_figure(evaluation, 0), 0.3, 1e-12); /* measured: 2e-16 */
    assert_float_equal(att_coco_evaluation_figure(evaluation, 1), 1, 1e-12);
    assert_float_equal(att_coco_evaluation_figure(evaluation, 2), 0, 0);
    att_coco_evaluation_destroy(&evaluation);
    evaluation =
        evaluate_boxes(self, TRUE_BOX(1, "0, 0, 10, 10", "") ", " TRUE_BOX(2, "20, 0, 50, 50", ", \"iscrowd\": true"),
                       FOUND("0, 0, 10, 10", "0.1") ", " FOUND("25, 0, 9, 9", "0.9") ", " FOUND("40, 20, 9, 9", "0.8"));
    assert_float_equal(att_coco_evaluation_figure(evaluation, 0), 1, 1e-12); /* measured: 2e-16 */
    assert_int_equal(att_coco_evaluation_class(evaluation, 0).boxes, 1);
    att_coco_evaluation_destroy(&evaluation);
}

/* Both ends belong to a range of areas. */
SCRATCH_TEST(a_box_at_the_end_of_a_range_is_in_both)
{
    att_coco_evaluation *evaluation = evaluate_boxes(self, TRUE_BOX(1, "0, 0, 32, 32", ", \"area\": 1024"),
                                                     FOUND("0, 0, 32, 32", "0.5") ", " FOUND("50, 0, 32, 32", "0.9"));
    for (int small = 3; small <= 4; small++)
        assert_float_equal(att_coco_evaluation_figure(evaluation, small), 0.5, 1e-12); /* measured: 1e-16 */
    att_coco_evaluation_destroy(&evaluation);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* What does not fit is left out and counted: each line is a warning. */
SCRATCH_TEST(what_can_be_left_out_is_counted)
{
    att_coco_evaluation *evaluation = evaluate_boxes(
        self,
        TRUE_BOX(1, "0, 0, 10, 10", ", \"area\": 50") ", " TRUE_BOX(2, "0, 0, 0, 4", ", \"area\": 1") ", "
        "{\"id\": 3, \"image_id\": 6, \"category_id\": 3, \"bbox\": [0, 0, 1, 1], \"area\": 1}, "
        "{\"id\": 4, \"image_id\": 5, \"category_id\": 4, \"bbox\": [0, 0, 1, 1], \"area\": 1}",
        FOUND("0, 0, 10, 10", "0.5") ", {\"image_id\": 5, \"category_id\": 9, \"bbox\": [0, 0, 1, 1], \"score\": 1}, " FOUND(
            "0, 0, -1, 2", "0.25"));
    assert_int_equal(self->warnings, 5);
    assert_int_equal(att_coco_evaluation_detections(evaluation), 2);
    assert_int_equal(att_coco_evaluation_class(evaluation, 0).boxes, 2);
    att_coco_evaluation_destroy(&evaluation);
    evaluation = evaluate_boxes(self, TRUE_BOX(1, "0, 0, 10, 10", ""), "");
    assert_int_equal(self->warnings, 6); /* no area */
    assert_float_equal(att_coco_evaluation_figure(evaluation, 0), 0, 0);
    att_coco_evaluation_destroy(&evaluation);
}

static void refuse_truth(const scratch *self, const char *text, att_status status, const char *part)
{
    att_coco_evaluation *evaluation = NULL;
    write_text(self, "truth.json", text);
    write_text(self, "results.json", "[]");
    assert_fails(self->context, evaluate(self, &evaluation), status, part);
    assert_null(evaluation);
}

#define LISTS(images, categories, annotations) \
    "{\"images\": [" images "], \"categories\": [" categories "], \"annotations\": [" annotations "]}"

SCRATCH_TEST(malformed_annotations_are_refused)
{
    refuse_truth(self, "{\"images\": [], \"categories\": []}", ATT_ERR_FORMAT, "has no list \"annotations\"");
    refuse_truth(self, "[]", ATT_ERR_FORMAT, "an object in {} was expected");
    refuse_truth(self, "", ATT_ERR_FORMAT, "ends in the middle, at byte 0");
    refuse_truth(self, "{\"images\": [{\"id\": 1}, {\"id\": ", ATT_ERR_FORMAT, "ends in the middle, at byte 23");
    refuse_truth(self, "{\"images\": {}, \"categories\": []}", ATT_ERR_FORMAT, "'[' was expected");
    refuse_truth(self, LISTS("{\"id\": 7}, {\"id\": 7}", "", ""), ATT_ERR_FORMAT, "two images have the id 7");
    refuse_truth(self, LISTS("", "{\"id\": 7}, {\"id\": 7}", ""), ATT_ERR_FORMAT, "two categories have the id 7");
    refuse_truth(self, LISTS("{\"id\": \"a\"}", "", ""), ATT_ERR_FORMAT, "images[0]: \"id\" must be a whole number");
    refuse_truth(self, LISTS("{\"id\": 1.5}", "", ""), ATT_ERR_FORMAT, "images[0]: \"id\" must be a whole number");
    refuse_truth(self, LISTS("1", "", ""), ATT_ERR_FORMAT, "images[0]: not valid JSON: expected an object");
    refuse_truth(self, LISTS("[]", "", ""), ATT_ERR_FORMAT, "images[0] is a list; expected an object");
    refuse_truth(self, LISTS("", "", "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [0, 1, 2]}"), ATT_ERR_FORMAT,
                 "annotations[0]: \"bbox\" must be four numbers");
    refuse_truth(self, LISTS("", "", "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [0, 1, 2, 3, 4]}"),
                 ATT_ERR_FORMAT, "annotations[0]: \"bbox\" must be four numbers");
    refuse_truth(self, "{\"info\": , \"images\": []}", ATT_ERR_FORMAT, "at byte 9: a value was expected");
    refuse_truth(self, LISTS("", "", "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [0, 1, 2, NaN]}"), ATT_ERR_FORMAT,
                 "annotations[0]: not valid JSON");
    refuse_truth(self, LISTS("", "", "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [0, 1, 2, 3], \"area\": \"x\"}"),
                 ATT_ERR_FORMAT, "annotations[0]: \"area\" must be a number");
    refuse_truth(self, LISTS("", "", "") " x", ATT_ERR_FORMAT, "the end of the file was expected");
    refuse_truth(self, "{\"images\": [], \"images\": []}", ATT_ERR_FORMAT, "has \"images\" twice");
}

static void refuse_results(const scratch *self, const char *text, att_status status, const char *part)
{
    att_coco_evaluation *evaluation = NULL;
    write_text(self, "truth.json", LISTS("{\"id\": 5}", "{\"id\": 3}", ""));
    write_text(self, "results.json", text);
    assert_fails(self->context, evaluate(self, &evaluation), status, part);
    assert_null(evaluation);
}

SCRATCH_TEST(malformed_detections_are_refused)
{
    refuse_results(self, "{\"image_id\": 5}", ATT_ERR_FORMAT, "'[' was expected");
    refuse_results(self, "[{\"image_id\": 5, \"category_id\": 3, \"bbox\": [0, 1, 2, 3]}]", ATT_ERR_FORMAT,
                   "results.json: [0]: \"score\" must be a number");
    refuse_results(
        self,
        "[" FOUND("0, 0, 1, 1", "1") ", {\"image_id\": 6, \"category_id\": 3, \"bbox\": [0, 1, 2, 3], \"score\": 1}]",
        ATT_ERR_MISMATCH, "results.json: [1]: the annotations have no image with the id 6");
    refuse_results(self, "[{\"image_id\": 5, \"category_id\": 3, \"segmentation\": [], \"score\": 1}]",
                   ATT_ERR_UNSUPPORTED, "has \"segmentation\" and no \"bbox\"");
    refuse_results(self, "[{\"image_id\": 5, \"category_id\": 3, \"keypoints\": [], \"score\": 1}]",
                   ATT_ERR_UNSUPPORTED, "has \"keypoints\" and no \"bbox\"");
    refuse_results(self, "[{\"image\": \"5.jpg\", \"boxes\": []}]", ATT_ERR_FORMAT, "jq '[.[].boxes[]]' makes");
    refuse_results(self, "[" FOUND("0, 0, 1, 1", "1"), ATT_ERR_FORMAT, "is it truncated?");
    refuse_results(self, "[" FOUND("0, 0, 1, 1", "1") FOUND("0, 0, 1, 1", "1") "]", ATT_ERR_FORMAT,
                   "',' or ']' was expected");
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    att_coco_evaluation *evaluation = NULL;
    write_text(self, "truth.json", LISTS("{\"id\": 5}", "{\"id\": 3}", TRUE_BOX(1, "0, 0, 10, 10", ", \"area\": 9")));
    write_text(self, "results.json", "[" FOUND("0, 0, 1, 1", "1") "]");
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of)) {
        of.status = evaluate(self, &evaluation);
        att_coco_evaluation_destroy(&evaluation);
    }
}

/* Elements are longer than what is read at once, and the parts that are skipped, too. */
SCRATCH_TEST(long_files_are_read_in_pieces)
{
    enum { LONG = 600 << 10 };
    static char text[3 * LONG];
    char *at = text;
    att_coco_evaluation *evaluation = NULL;
    at += sprintf(at, "{\"version\": 1\n, \"info\": {\"y\": \"\\\"}\", \"x\": \"");
    memset(at, '}', LONG), at += LONG;
    at +=
        sprintf(at, "\\\\\"}, %s[{\"id\": 1, \"image_id\": 5, \"category_id\": 3, \"area\": 100, \"note\": \"", image);
    memset(at, ']', LONG), at += LONG;
    sprintf(at, "\", \"bbox\": [0, 0, 10, 10]}]}");
    write_text(self, "truth.json", text);
    write_text(self, "results.json", "\xEF\xBB\xBF [" FOUND("0, 0, 10, 10", "1") "] \n");
    CHECK(self->context, evaluate(self, &evaluation));
    assert_float_equal(att_coco_evaluation_figure(evaluation, 0), 1, 1e-12); /* measured: 2e-16 */
    att_coco_evaluation_destroy(&evaluation);
}

/* A file with this text between quotes, as a key or as a value of an element. */
static void refuse_long(scratch *self, const char *before, size_t length, const char *after, const char *part)
{
    char *text = malloc(length + 256), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", before);
    memset(at, 'x', length);
    sprintf(at + length, "%s", after);
    refuse_truth(self, text, ATT_ERR_FORMAT, part);
    free(text);
}

SCRATCH_TEST(keys_and_elements_have_a_limit)
{
    refuse_long(self, "{\"", 1 << 16, "\": 1}", "a shorter key was expected");
    if (!is_sanitized())
        refuse_long(self, "{\"images\": [{\"id\": \"", 64 << 20, "\"}]}", "images[0] has more than 67108864 bytes");
}
