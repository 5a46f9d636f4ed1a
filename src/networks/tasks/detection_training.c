/* The training of the task "detect": its options, its target and its loss. */
#include "networks/tasks/detection.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"

static const char boxes_name[] = "true_boxes";

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char best_overlap[] = "overlap", best_box[] = "box";

static const char *choose_best(int index)
{
    static const char *const names[] = {best_overlap, best_box};
    return index < 2 ? names[index] : NULL;
}

enum { MOST = 100000 };

const att_option att_detection_declared[ATT_DETECTION_OPTIONS] = {
    {.key = "most_boxes",
     .kind = ATT_OPTION_WHOLE,
     .value = "N",
     .help = "largest number of true boxes of an image",
     .low = 1,
     .high = MOST,
     .training = true,
     ATT_OPTION_AT(att_detection_options, most_boxes)},
    {.key = "train_proposals",
     .kind = ATT_OPTION_WHOLE,
     .value = "N",
     .help = "proposals of an image in training, of which boxes are sampled: 2000 in torchvision, 1000 in mmdetection",
     .low = 1,
     .high = MOST,
     .training = true,
     ATT_OPTION_AT(att_detection_options, train_proposals)},
    {.key = "train_level_proposals",
     .kind = ATT_OPTION_WHOLE,
     .value = "N",
     .help = "proposals of each level in training before those that overlap are left out",
     .low = 1,
     .high = MOST,
     .training = true,
     ATT_OPTION_AT(att_detection_options, train_level_proposals)},
    {.key = "anchor_samples",
     .kind = ATT_OPTION_WHOLE,
     .value = "N",
     .help = "anchors of an image that the proposal network learns from, at most half of them with an object",
     .low = 1,
     .high = MOST,
     .training = true,
     ATT_OPTION_AT(att_detection_options, anchor_samples)},
    {.key = "anchor_best",
     .kind = ATT_OPTION_TEXT,
     .value = "NAME",
     .help =
         "an anchor that a true box overlaps most of all learns the box that it overlaps most (overlap, torchvision), "
         "or that true box (box, mmdetection)",
     .choice = choose_best,
     .training = true,
     ATT_OPTION_AT(att_detection_options, anchor_best)},
    {.key = "anchor_least",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "least overlap of such an anchor: 0 in torchvision, 0.3 in mmdetection",
     .low = 0,
     .high = 1,
     .training = true,
     ATT_OPTION_AT(att_detection_options, anchor_least)},
    {.key = "box_samples",
     .kind = ATT_OPTION_WHOLE,
     .value = "N",
     .help = "boxes of an image that the box head learns from, at most a quarter of them with an object",
     .low = 1,
     .high = MOST,
     .training = true,
     ATT_OPTION_AT(att_detection_options, box_samples)},
    {.key = "box_beta",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "difference from which on the loss of boxes is linear: 1/9 in torchvision, 0 in mmdetection",
     .low = 0,
     .high = 1e3,
     .training = true,
     ATT_OPTION_AT(att_detection_options, box_beta)},
    {.key = "crowd_share",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help =
         "anchors and proposals are not learned from if a crowd covers more than this share of them; 1: crowds have "
         "no effect, as in torchvision and mmdetection",
     .low = 0,
     .high = 1,
     .training = true,
     ATT_OPTION_AT(att_detection_options, crowd_share)},
};

void att_detection_defaults(att_option_values *options)
{
    att_options_set(options, "most_boxes", 128);
    att_options_set(options, "train_proposals", 2000);
    att_options_set(options, "train_level_proposals", 2000);
    att_options_set(options, "anchor_samples", 256);
    att_options_set_text(options, "anchor_best", best_overlap);
    att_options_set(options, "anchor_least", 0);
    att_options_set(options, "box_samples", 512);
    att_options_set(options, "box_beta", 1.0 / 9);
    att_options_set(options, "crowd_share", 0.5);
}

static const att_detection_options *options_of(const att_task_settings *settings)
{
    return (const void *)&settings->options;
}

static att_detector_training training_of(const att_detection_options *options)
{
    const bool of_box = strcmp(options->anchor_best, best_box) == 0;
    return (att_detector_training){.anchors = {.positive = 0.7,
                                               .negative = 0.3,
                                               .best = of_box ? ATT_BEST_OF_BOX : ATT_BEST_OF_CANDIDATE,
                                               .least = options->anchor_least,
                                               .crowd = options->crowd_share,
                                               .samples = options->anchor_samples,
                                               .share = 0.5},
                                   .boxes = {.positive = 0.5,
                                             .negative = 0.5,
                                             .best = ATT_BEST_NONE,
                                             .crowd = options->crowd_share,
                                             .samples = options->box_samples,
                                             .share = 0.25},
                                   .beta = options->box_beta};
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

att_field att_detection_boxes_field(const att_task_settings *settings)
{
    return (att_field){
        .name = boxes_name, .dtype = ATT_F32, .shape = att_shape_of(options_of(settings)->most_boxes, ATT_BOX_COLUMNS)};
}

void att_detection_fill_boxes(const att_task_settings *settings, const att_dataset *dataset, int64_t index,
                              const att_geometry *geometry, float *rows)
{
    int count;
    const att_true_box *boxes = att_dataset_boxes(dataset, index, &count);
    att_boxes_move(boxes, count, geometry, options_of(settings)->most_boxes, rows);
}

att_status att_detection_check_boxes(att_context *context, const att_task_settings *settings,
                                     const att_dataset *dataset)
{
    const int most = att_dataset_count_boxes(dataset).most;
    if (most > options_of(settings)->most_boxes)
        return att_fail(context, ATT_ERR_MISMATCH,
                        "an image has %d boxes, but --most-boxes (most_boxes) is %d; set it to %d or more", most,
                        options_of(settings)->most_boxes, most);
    return ATT_OK;
}

/* --- loss --------------------------------------------------------------------------------------------------------- */

/* What the loss reads of a network with a head. */
typedef struct parts {
    att_value levels[ATT_BOX_LEVELS];
    att_rpn rpn;
    att_shape image;
    att_value image_size;
} parts;

static att_value find_level(const att_graph *graph, const char *name, int level)
{
    char full[24];
    snprintf(full, sizeof full, "%s%d", name, level);
    return att_graph_find_probe(graph, full);
}

/* Returns false if the graph lacks one of the parts. */
static bool find_parts(const att_graph *graph, parts *found)
{
    *found = (parts){.image_size = ATT_NONE};
    for (int l = 0; l < ATT_BOX_LEVELS; l++) {
        found->levels[l] = find_level(graph, "pyramid", l);
        found->rpn.objectness[l] = find_level(graph, "objectness", l);
        found->rpn.deltas[l] = find_level(graph, "deltas", l);
        if (found->rpn.objectness[l] != ATT_NONE && found->rpn.deltas[l] != ATT_NONE && found->levels[l] != ATT_NONE)
            found->rpn.levels = l + 1;
    }
    for (int i = 0; i < graph->inputs.count; i++) {
        const att_named_value *input = &graph->inputs.items[i];
        const att_shape shape = att_value_shape(graph, input->value);
        if (shape.rank == 3)
            found->image = shape;
        if (strcmp(input->name, ATT_DETECTION_SIZE) == 0)
            found->image_size = input->value;
    }
    return found->rpn.levels > 0 && found->image.rank == 3 && found->image_size != ATT_NONE;
}

/* Drops the answers and the values between parts. The plan then drops the box head of all proposals, which would take
 * most of the time, and whose batch norms would count its boxes in their statistics. */
static void drop_answers(att_graph *graph)
{
    static const char answers[] =
        "boxes,scores,classes,count,proposals,box_logits,box_deltas,pyramid*,objectness*,deltas*";
    int kept = 0;
    for (int i = 0; i < graph->outputs.count; i++)
        if (!att_text_matches_any(answers, graph->outputs.items[i].name))
            graph->outputs.items[kept++] = graph->outputs.items[i];
    graph->outputs.count = kept;
}

/* The network's own proposals are those of a prediction. A training run has more of them, samples some, and reads the
 * pyramid there, with the parameters that the network's box head has: the same function builds it again. */
att_value att_detection_loss(att_graph *graph, const att_task_settings *settings)
{
    const att_detection_options *options = options_of(settings);
    const att_detector_training training = training_of(options);
    att_detector detector = att_detection_head(settings->network, settings->classes);
    att_scope root = att_scope_root(graph);
    root.again = true;
    const att_scope head = att_scope_in(&root, "%s", ATT_DETECTION_SCOPE), rpn = att_scope_in(&head, "rpn"),
                    roi = att_scope_in(&head, "roi_heads"), anchors = att_scope_in(&root, "loss.anchors"),
                    boxes = att_scope_in(&root, "loss.boxes");
    att_proposals proposals;
    parts found;
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    if (!find_parts(graph, &found))
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_NOT_FOUND,
                                              "detection needs a network with a head: there is no probe \"pyramid0\""));
    detector.proposals.per_level = options->train_level_proposals;
    detector.proposals.most = options->train_proposals;
    att_value truth =
        att_graph_input(graph, boxes_name, att_graph_dtype(graph), att_shape_of(options->most_boxes, ATT_BOX_COLUMNS));
    att_value of_anchors = att_head_anchor_loss(&anchors, &detector, &found.rpn, found.image, truth, &training);
    att_head_proposals(&rpn, &detector, &found.rpn, found.image, found.image_size, &proposals);
    att_value of_boxes = att_head_box_loss(&boxes, &roi, &detector, found.levels, found.rpn.levels, found.image,
                                           &proposals, truth, &training);
    drop_answers(graph);
    return att_combine(graph, 1, of_anchors, 1, of_boxes);
}
