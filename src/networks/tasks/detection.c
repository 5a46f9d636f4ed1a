/* The task "detect": boxes of objects, with a class and a score each. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/names.h"
#include "base/core/text.h"
#include "base/io/json.h"
#include "data/geometry.h"
#include "engine/graph/graph.h"
#include "networks/tasks/answer.h"
#include "networks/tasks/box_metrics.h"
#include "networks/tasks/detection.h"
#include "networks/tasks/draw.h"
#include "networks/tasks/found_boxes.h"
#include "networks/tasks/list.h"

static const char head_scope[] = ATT_DETECTION_SCOPE, size_name[] = ATT_DETECTION_SIZE;

enum { BOX = 4 };

/* --- head --------------------------------------------------------------------------------------------------------- */

static bool is_v2(const att_option_values *options)
{
    return strcmp(att_options_text(options, "head"), ATT_HEAD_RCNN_V2) == 0;
}

static bool is_on(const att_option_values *given, const char *key, bool otherwise)
{
    return att_options_number(given, key, otherwise) != 0;
}

/* With small_boxes, only proposals without an extent are left out. */
att_detector att_detection_head(const att_option_values *given, int classes)
{
    enum { CHANNELS = 256, BOX_CHANNELS = 1024, PROPOSALS = 1000, ANCHOR = 32, PARTS = 7, FINEST = 56, POINTS = 2 };
    return (att_detector){.channels = (int64_t)att_options_number(given, "head_channels", CHANNELS),
                          .box_channels = (int64_t)att_options_number(given, "box_channels", BOX_CHANNELS),
                          .classes = classes,
                          .norms = is_v2(given),
                          .background_first = is_on(given, "background_first", true),
                          .stride = (int)att_options_number(given, "anchor_stride", 0),
                          .proposals = {.anchors = {.size = att_options_number(given, "anchor_size", ANCHOR),
                                                    .rounded = is_on(given, "anchor_round", true)},
                                        .per_level = (int)att_options_number(given, "level_proposals", PROPOSALS),
                                        .most = (int)att_options_number(given, "proposals", PROPOSALS),
                                        .overlap = 0.7,
                                        .least = is_on(given, "small_boxes", false) ? DBL_MIN : 1e-3,
                                        .bounded = is_on(given, "box_bounded", false)},
                          .align = {.side = PARTS,
                                    .samples = (int)att_options_number(given, "roi_samples", POINTS),
                                    .finest = FINEST,
                                    .aligned = is_on(given, "roi_aligned", false)}};
}

static att_box_detections_options detections_of(const att_backbone *backbone, const att_detector *detector)
{
    enum { DETECTIONS = 100 };
    const att_option_values *given = backbone->options;
    return (att_box_detections_options){.weights = {ATT_DETECTOR_WEIGHTS},
                                        .score = att_options_number(given, "score_thresh", 0.05),
                                        .overlap = att_options_number(given, "nms_thresh", 0.5),
                                        .least = is_on(given, "small_boxes", false) ? 0 : 1e-2,
                                        .most = (int)att_options_number(given, "detections", DETECTIONS),
                                        .background_first = detector->background_first,
                                        .bounded = detector->proposals.bounded};
}

static bool can_be_built(att_graph *graph, const att_backbone *backbone)
{
    static const char *const keys[] = {"aux_channels"};
    const char *name = att_options_text(backbone->options, "head");
    if (backbone->image == ATT_NONE)
        att_graph_fail(
            graph, att_fail(graph->context, ATT_ERR_UNSUPPORTED, "detection needs a network whose input is an image"));
    else if (*name && strcmp(name, ATT_HEAD_RCNN) != 0 && strcmp(name, ATT_HEAD_RCNN_V2) != 0)
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                       "the head \"%s\" is that of a segmenter (--task segment); detection has "
                                       "\"" ATT_HEAD_RCNN "\" and \"" ATT_HEAD_RCNN_V2 "\"",
                                       name));
    return att_graph_status(graph) == ATT_OK &&
           att_head_lacks(graph, backbone->options, keys, sizeof keys / sizeof *keys, "segmenters (--task segment)");
}

/* Values between the parts, which runs return only on request. */
static void add_probes(att_graph *graph, const att_value *levels, const att_rpn *rpn, const att_proposals *proposals,
                       const att_box_answers *answers)
{
    char name[24];
    for (int l = 0; l < rpn->levels; l++) {
        snprintf(name, sizeof name, "pyramid%d", l);
        att_graph_probe(graph, name, levels[l]);
        snprintf(name, sizeof name, "objectness%d", l);
        att_graph_probe(graph, name, rpn->objectness[l]);
        snprintf(name, sizeof name, "deltas%d", l);
        att_graph_probe(graph, name, rpn->deltas[l]);
    }
    att_graph_probe(graph, "proposals", proposals->boxes);
    att_graph_probe(graph, "box_logits", answers->logits);
    att_graph_probe(graph, "box_deltas", answers->deltas);
}

static void head(att_graph *graph, const att_backbone *backbone)
{
    if (!can_be_built(graph, backbone))
        return;
    const att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "%s", head_scope),
                    fpn = att_scope_in(&scope, "fpn"), rpn_scope = att_scope_in(&scope, "rpn"),
                    roi = att_scope_in(&scope, "roi_heads"), end = att_scope_in(&roi, "detections");
    const att_detector detector = att_detection_head(backbone->options, backbone->classes);
    const att_box_detections_options options = detections_of(backbone, &detector);
    const att_shape image = att_value_shape(graph, backbone->image);
    att_value maps[ATT_FEATURE_STAGES], levels[ATT_BOX_LEVELS];
    att_proposals proposals;
    att_box_answers answers;
    att_detections found;
    att_rpn rpn;
    const int map_count = att_head_maps(&scope, backbone, maps);
    const int count = map_count > 0 ? att_head_fpn(&fpn, &detector, maps, map_count, levels) : 0;
    if (count == 0)
        return;
    att_value size = att_graph_input(graph, size_name, att_graph_dtype(graph), att_shape_of(2));
    att_head_rpn(&rpn_scope, &detector, levels, count, &rpn);
    att_head_proposals(&rpn_scope, &detector, &rpn, image, size, &proposals);
    att_head_boxes(&roi, &detector, levels, count, image, &proposals, &answers);
    att_scope_enter(&end);
    att_box_detections(graph, answers.logits, answers.deltas, proposals.boxes, proposals.count, size, &options, &found);
    add_probes(graph, levels, &rpn, &proposals, &answers);
    att_graph_output(graph, ATT_FOUND_BOXES, found.boxes);
    att_graph_output(graph, ATT_FOUND_SCORES, found.scores);
    att_graph_output(graph, ATT_FOUND_CLASSES, found.classes);
    att_graph_output(graph, ATT_FOUND_COUNT, found.count);
}

/* --- training and evaluation -------------------------------------------------------------------------------------- */

static int fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    out[0] = (att_field){.name = size_name, .dtype = ATT_F32, .shape = att_shape_of(2)};
    out[1] = settings->evaluated ? att_box_geometry_field() : att_detection_boxes_field(settings);
    return 2;
}

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *out)
{
    const att_task_settings *settings = user;
    (void)context;
    att_geometry_image_size(geometry, out[0]);
    if (settings->evaluated)
        memcpy(out[1], geometry, sizeof *geometry);
    else
        att_detection_fill_boxes(settings, dataset, index, geometry, out[1]);
    return ATT_OK;
}

static att_status check(att_context *context, const att_task_settings *settings, const att_dataset *dataset)
{
    const int classes = att_dataset_class_count(dataset);
    if (settings->classes == 0)
        return att_fail(context, ATT_ERR_MISMATCH, "the model has no head and so no classes to compare with boxes");
    if (classes != settings->classes)
        return att_fail(context, ATT_ERR_MISMATCH,
                        "the boxes have %d class%s, but the model has %d; --class-map FILE gives the names of the "
                        "model's classes in the order of their numbers, and --num-classes (num_classes) sets their "
                        "number in a new model",
                        classes, classes == 1 ? "" : "es", settings->classes);
    return settings->evaluated ? ATT_OK : att_detection_check_boxes(context, settings, dataset);
}

/* --- predictions -------------------------------------------------------------------------------------------------- */

/* Returns the id of a class: that in the data set of the training, else of COCO's 80 classes of objects that of the
 * category with its name, else its number plus one. */
static int64_t category_of(const att_answer_options *options, int class_number)
{
    const att_known_classes *objects = att_known_classes_find("coco"), *all = att_known_classes_find("coco-91");
    const char *label = att_answer_label(options, class_number);
    if (options->class_ids)
        return options->class_ids[class_number];
    if (options->label_count != objects->count || !label ||
        strcmp(label, att_known_classes_label(objects, class_number)) != 0)
        return class_number + 1;
    int category = 0;
    while (category + 1 < all->count && strcmp(att_known_classes_label(all, category), label) != 0)
        category++;
    return category;
}

/* COCO names images by their numbers: "val2017/000000000139.jpg". Returns false for other names. */
static bool read_image_id(const char *path, int64_t *id)
{
    const char *name = path ? att_path_last(path) : "";
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return false;
    *id = strtoll(name, &end, 10);
    return *end == '.';
}

static void write_box(att_json_writer *writer, const double box[BOX])
{
    att_json_put_array(writer, "bbox");
    att_json_number(writer, box[0]);
    att_json_number(writer, box[1]);
    att_json_number(writer, box[2] - box[0]);
    att_json_number(writer, box[3] - box[1]);
    att_json_end_array(writer);
}

static att_status write(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer)
{
    att_found_boxes found;
    int64_t image_id;
    ATT_TRY(att_found_boxes_of(context, answer, 0, &found));
    const bool has_id = read_image_id(options->image, &image_id);
    att_json_put_array(writer, "boxes");
    for (int i = 0; i < found.count; i++) {
        const char *label = att_answer_label(options, found.classes[i]);
        double box[BOX];
        att_found_box_place(&found, i, options->geometry, box);
        att_json_begin_object(writer);
        if (has_id)
            att_json_put_integer(writer, "image_id", image_id);
        att_json_put_integer(writer, "class", found.classes[i]);
        att_json_put_integer(writer, "category_id", category_of(options, found.classes[i]));
        write_box(writer, box);
        att_json_put_number(writer, "score", (double)found.scores[i]);
        if (label)
            att_json_put_string(writer, "label", label);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    return ATT_OK;
}

static att_status describe(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user)
{
    att_found_boxes found;
    att_text text = {.context = context};
    ATT_TRY(att_found_boxes_of(context, answer, 0, &found));
    if (found.count == 0)
        line(user, "no boxes");
    for (int i = 0; i < found.count && !text.failed; i++) {
        const char *label = att_answer_label(options, found.classes[i]);
        double box[BOX];
        att_found_box_place(&found, i, options->geometry, box);
        text.length = 0;
        att_text_append(&text, "%6.2f %%  %4.0f x %-4.0f at %4.0f, %-4.0f  %6d%s%s", 100 * (double)found.scores[i],
                        box[2] - box[0], box[3] - box[1], box[0], box[1], found.classes[i], label ? "  " : "",
                        label ? label : "");
        if (!text.failed)
            line(user, text.data);
    }
    att_status status = text.failed ? att_fail_memory(context, text.length, "the boxes of an image") : ATT_OK;
    att_text_free(&text);
    return status;
}

/* The best box is drawn last. */
static att_status draw(att_context *context, const att_batch *answer, const att_answer_options *options,
                       const att_geometry *geometry, att_drawing *drawing)
{
    att_found_boxes found;
    ATT_TRY(att_found_boxes_of(context, answer, 0, &found));
    for (int i = found.count; i-- > 0;) {
        double box[BOX];
        att_found_box_place(&found, i, geometry, box);
        att_draw_box(&drawing->image, box, drawing->colours + 3 * (size_t)found.classes[i],
                     att_answer_label(options, found.classes[i]));
    }
    return ATT_OK;
}

/* As torchvision's detectors. */
static const att_task_images images = {
    .height = 800, .width = 1333, .crop_mode = "within", .interpolation = "bilinear_plain"};

const att_task att_task_detection = {
    .info = {.name = "detect",
             .help = "boxes of objects, with a class and a score each (Faster R-CNN)",
             .head_scope = head_scope,
             .metrics = att_box_metrics,
             .metric_count = ATT_COCO_FIGURES,
             .best = 0,
             .options = att_detection_declared,
             .option_count = ATT_DETECTION_OPTIONS},
    .options_size = sizeof(att_detection_options),
    .defaults = att_detection_defaults,
    .taps = att_taps_last,
    .images = &images,
    .image_size = size_name,
    .head = head,
    .annotations = ATT_ANNOTATION_BOXES,
    .fields = fields,
    .fill = fill,
    .check = check,
    .loss = att_detection_loss,
    .state_size = sizeof(att_box_state),
    .observe = att_box_observe,
    .conclude = att_box_conclude,
    .report = att_box_report,
    .details = att_box_details,
    .end = att_box_end,
    .write = write,
    .describe = describe,
    .draw = draw,
};
