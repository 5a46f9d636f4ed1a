/* The task "segment": a class for each pixel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/core/threads.h"
#include "base/io/json.h"
#include "data/geometry.h"
#include "engine/graph/graph.h"
#include "networks/heads/heads.h"
#include "networks/tasks/answer.h"
#include "networks/tasks/caption.h"
#include "networks/tasks/confusion.h"
#include "networks/tasks/draw.h"
#include "networks/tasks/list.h"
#include "networks/tasks/pixels.h"

static const char head_scope[] = "segmenter", logits_name[] = "pixel_logits", map_name[] = "class_map",
                  mask_name[] = "mask", geometry_name[] = "geometry";
/* The auxiliary head's logits. They are a probe: an evaluation or a prediction does not compute them. */
static const char auxiliary_name[] = "auxiliary_logits";

/* --- options ----------------------------------------------------------------------------------------------------- */

typedef struct segmentation_options {
    char pixel_mean[16];
    double aux_weight;
} segmentation_options;
ATT_ASSERT_SETTINGS_FIT(segmentation_options);

static const char labeled[] = "labeled", all[] = "all";

static const char *choose_mean(int index)
{
    static const char *const names[] = {labeled, all};
    return index < 2 ? names[index] : NULL;
}

static const att_option declared[] = {
    {.key = "pixel_mean",
     .kind = ATT_OPTION_TEXT,
     .value = "NAME",
     .help =
         "the loss of an image is the mean over its pixels that have a class (labeled), or over all pixels, of which "
         "those without a class count as 0 (all)",
     .choice = choose_mean,
     .training = true,
     ATT_OPTION_AT(segmentation_options, pixel_mean)},
    {.key = "aux_weight",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "the loss of UPerNet's auxiliary head counts this much; 0: that head is not trained",
     .high = 1e3,
     .training = true,
     ATT_OPTION_AT(segmentation_options, aux_weight)},
};

static void defaults(att_option_values *options)
{
    att_options_set_text(options, "pixel_mean", labeled);
    att_options_set(options, "aux_weight", 0.4);
}

static void plain(att_option_values *options)
{
    att_options_set(options, "aux_weight", 0);
}

static const segmentation_options *options_of(const att_task_settings *settings)
{
    return (const void *)&settings->options;
}

/* --- head -------------------------------------------------------------------------------------------------------- */

static bool is_uper(const att_option_values *options)
{
    return strcmp(att_options_text(options, "head"), ATT_HEAD_UPER) == 0;
}

/* With UPerNet, XCiT's: a third, a half, two thirds and all of the blocks; 3, 5, 7, 11 of 12. */
static int taps(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES])
{
    static const int twelfths[ATT_FEATURE_STAGES] = {4, 6, 8, 12};
    if (!is_uper(options))
        return att_taps_last(options, block_count, blocks);
    for (int i = 0; i < ATT_FEATURE_STAGES; i++)
        blocks[i] = (block_count < 3 ? 1 : block_count * twelfths[i] / 12) - 1;
    blocks[ATT_FEATURE_STAGES - 1] = block_count - 1;
    return ATT_FEATURE_STAGES;
}

/* Refuses options that the linear head does not have. */
static bool has_own_options(att_graph *graph, const att_option_values *options)
{
    static const char *const keys[] = {"head_channels", "aux_channels", "neck"};
    return att_head_lacks(graph, options, keys, sizeof keys / sizeof *keys, "the head \"uper\" (--head uper)");
}

/* The map that the auxiliary head reads: the third; of blocks without pyramid the last one. mmsegmentation's in_index 2
 * and 3. */
static int auxiliary_index(const att_backbone *backbone, int count)
{
    const bool of_blocks = backbone->features.block_count > 0 &&
                           strcmp(att_options_text(backbone->options, "neck"), ATT_NECK_PYRAMID) != 0;
    return count < 3 || of_blocks ? count - 1 : 2;
}

static att_value build_uper(const att_scope *scope, const att_backbone *backbone)
{
    att_value maps[ATT_FEATURE_STAGES];
    const int count = att_head_maps(scope, backbone, maps), outputs = backbone->classes;
    const att_scope beside = att_scope_in(scope, "auxiliary_head");
    const att_conv_head_options options = {(int64_t)att_options_number(backbone->options, "head_channels", 512),
                                           backbone->drop_rate},
                                auxiliary = {(int64_t)att_options_number(backbone->options, "aux_channels", 256),
                                             backbone->drop_rate};
    if (count == 0)
        return ATT_NONE;
    att_value logits = att_head_uper(scope, maps, count, &options, outputs);
    if (auxiliary.channels > 0)
        att_graph_probe(scope->graph, auxiliary_name,
                        att_head_fcn(&beside, maps[auxiliary_index(backbone, count)], &auxiliary, outputs));
    return logits;
}

static att_value build_linear(const att_scope *scope, const att_backbone *backbone)
{
    return has_own_options(scope->graph, backbone->options) ? att_head_linear(scope, backbone, backbone->classes)
                                                            : ATT_NONE;
}

/* Refuses options and heads of detectors. */
static bool has_segmenter_options(att_graph *graph, const att_option_values *options)
{
    const char *name = att_options_text(options, "head");
    if (*name && strcmp(name, ATT_HEAD_LINEAR) != 0 && strcmp(name, ATT_HEAD_UPER) != 0) {
        att_graph_fail(
            graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                            "the head \"%s\" is that of a detector (--task detect); segmentation has \"" ATT_HEAD_LINEAR
                            "\" and \"" ATT_HEAD_UPER "\"",
                            name));
        return false;
    }
    return att_head_lacks(graph, options, att_detector_keys, att_detector_key_count, "detectors (--task detect)");
}

static void head(att_graph *graph, const att_backbone *backbone)
{
    if (!has_segmenter_options(graph, backbone->options))
        return;
    if (backbone->classes > ATT_MASK_NONE || backbone->image == ATT_NONE) {
        att_graph_fail(
            graph,
            backbone->image == ATT_NONE
                ? att_fail(graph->context, ATT_ERR_UNSUPPORTED, "segmentation needs a network whose input is an image")
                : att_fail(graph->context, ATT_ERR_ARGUMENT, "%d classes are more than a mask can hold (%d)",
                           backbone->classes, ATT_MASK_NONE));
        return;
    }
    const att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "%s", head_scope);
    const att_shape image = att_value_shape(graph, backbone->image);
    att_value logits = (is_uper(backbone->options) ? build_uper : build_linear)(&scope, backbone);
    att_graph_output(graph, logits_name, logits);
    att_graph_output(graph, map_name, att_upsampled_argmax(graph, logits, (int)image.dims[0], (int)image.dims[1]));
}

/* --- targets ----------------------------------------------------------------------------------------------------- */

/* In an evaluation observe() reads the photograph's own mask, and needs to know where the photograph went. */
static int fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    out[0] = (att_field){.name = mask_name, .dtype = ATT_I32, .shape = att_shape_of(ATT_IMAGE_HEIGHT, ATT_IMAGE_WIDTH)};
    out[1] = (att_field){.name = geometry_name, .dtype = ATT_U8, .shape = att_shape_of(sizeof(att_geometry))};
    return settings->evaluated ? 2 : 1;
}

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *out)
{
    const att_task_settings *settings = user;
    att_mask mask;
    ATT_TRY(att_dataset_read_mask(dataset, context, index, &mask));
    att_mask_move(&mask, geometry, out[0]);
    att_mask_free(context, &mask);
    if (settings->evaluated)
        memcpy(out[1], geometry, sizeof *geometry);
    return ATT_OK;
}

/* CutMix: the loader refuses Mixup. */
static void mix(const void *user, void *const *own, const void *const *other, const att_mixing *mixing)
{
    (void)user;
    att_mask_cut(mixing, other[0], own[0]);
}

static att_status check(att_context *context, const att_task_settings *settings, const att_dataset *dataset)
{
    const int classes = att_dataset_class_count(dataset);
    if (settings->classes == 0)
        return att_fail(context, ATT_ERR_MISMATCH, "the model has no head and so no classes to compare with masks");
    if (classes != settings->classes)
        return att_fail(
            context, ATT_ERR_MISMATCH,
            "the masks have %d classes, but the model has %d; --num-classes (num_classes) sets those of the "
            "model",
            classes, settings->classes);
    return ATT_OK;
}

/* --- loss -------------------------------------------------------------------------------------------------------- */

static att_value loss(att_graph *graph, const att_task_settings *settings)
{
    att_value logits = att_graph_find_output(graph, logits_name), map = att_graph_find_output(graph, map_name);
    if (logits == ATT_NONE || map == ATT_NONE)
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_NOT_FOUND,
                                              "segmentation needs a network with a head: there is no output \"%s\"",
                                              logits_name));
    const segmentation_options *options = options_of(settings);
    const att_pixel_mean mean = strcmp(options->pixel_mean, all) == 0 ? ATT_MEAN_OF_ALL : ATT_MEAN_OF_LABELED;
    att_value mask = att_graph_input(graph, mask_name, ATT_I32, att_value_shape(graph, map));
    att_value sum = att_upsampled_cross_entropy(graph, logits, mask, ATT_NO_CLASS, mean);
    att_value auxiliary = att_graph_find_probe(graph, auxiliary_name);
    if (auxiliary == ATT_NONE || options->aux_weight == 0)
        return sum;
    return att_combine(graph, 1, sum, options->aux_weight,
                       att_upsampled_cross_entropy(graph, auxiliary, mask, ATT_NO_CLASS, mean));
}

/* --- metrics ----------------------------------------------------------------------------------------------------- */

static const att_metric metrics[] = {
    {.name = "miou", .label = "mIoU", .unit = "%", .larger_is_better = true},
    {.name = "macc", .label = "mAcc", .unit = "%", .larger_is_better = true},
    {.name = "aacc", .label = "aAcc", .unit = "%", .larger_is_better = true},
};
enum { METRICS = sizeof metrics / sizeof *metrics, FIGURES_OF_CLASS = 2, CLASS_NAME = 24 };

/* figures and names are made by details(). */
typedef struct segmentation_state {
    att_confusion confusion;
    att_measurement *figures;  /* [FIGURES_OF_CLASS * classes] */
    char (*names)[CLASS_NAME]; /* [classes], of those that the data set gives no name */
} segmentation_state;

/* One photograph, whose pixels are predicted in rows. */
typedef struct photograph {
    att_pixel_logits logits;
    const att_geometry *geometry;
    uint16_t *predicted; /* [from_height][from_width] */
    float *sums;         /* [threads][classes] */
    int threads;
} photograph;

/* The class with the largest logit at (x, y) of the network's image; sums: space for the logits. */
static uint16_t predict_pixel(const photograph *of, double x, double y, float *sums)
{
    att_pixel_logits_at(&of->logits, of->geometry->width, of->geometry->height, x, y, sums);
    return att_pixel_class(sums, of->logits.classes);
}

/* As att_work_fn. */
static void predict_rows(void *user, int thread)
{
    const photograph *of = user;
    const att_geometry *g = of->geometry;
    for (int i = thread; i < g->from_height; i += of->threads)
        for (int j = 0; j < g->from_width; j++) {
            double x = j + 0.5, y = i + 0.5;
            att_geometry_move(g, &x, &y);
            of->predicted[(int64_t)i * g->from_width + j] =
                predict_pixel(of, x, y, of->sums + (int64_t)thread * of->logits.classes);
        }
}

/* Sets of->predicted, which the caller frees. */
static att_status predict(att_context *context, photograph *of)
{
    const size_t pixels = (size_t)of->geometry->from_width * (size_t)of->geometry->from_height;
    of->threads = att_context_threads(context);
    of->predicted = att_allocate_array(context, pixels, sizeof *of->predicted);
    of->sums = att_allocate_array(context, (size_t)(of->threads * of->logits.classes), sizeof *of->sums);
    const bool enough = of->predicted && of->sums;
    if (enough)
        att_threads_run(context, of->threads, predict_rows, of);
    att_free(context, of->sums);
    return enough ? ATT_OK : att_fail_memory(context, pixels * sizeof *of->predicted, "the classes of a photograph");
}

/* Compares the classes of a photograph's own pixels, [height][width]. */
static att_status compare(att_context *context, att_confusion *confusion, const att_mask *mask, int width, int height,
                          const uint16_t *predicted)
{
    if (mask->width != width || mask->height != height)
        return att_fail(context, ATT_ERR_MISMATCH, "a mask of %d x %d pixels does not fit a photograph of %d x %d",
                        mask->width, mask->height, width, height);
    return att_confusion_add(context, confusion, mask->classes, predicted, (int64_t)width * height);
}

static att_status observe(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers)
{
    att_confusion *confusion = &((segmentation_state *)state)->confusion;
    const void *geometries = att_batch_field(batch, geometry_name);
    ATT_TRY(att_confusion_begin(context, confusion, settings->classes));
    for (int i = 0; i < batch->count; i++) {
        att_geometry geometry;
        att_mask mask;
        photograph of = {.geometry = &geometry};
        memcpy(&geometry, (const char *)geometries + (size_t)i * sizeof geometry, sizeof geometry);
        att_pixel_logits_find(answers, logits_name, i, &of.logits);
        ATT_TRY(att_dataset_read_mask(settings->evaluated, context, batch->indices[i], &mask));
        att_status status = predict(context, &of);
        if (status == ATT_OK)
            status = compare(context, confusion, &mask, geometry.from_width, geometry.from_height, of.predicted);
        att_free(context, of.predicted);
        att_mask_free(context, &mask);
        ATT_TRY(status);
    }
    return ATT_OK;
}

static att_status observe_pixels(att_context *context, void *state, const att_task_settings *settings, int64_t index,
                                 const att_mask *classes)
{
    att_confusion *confusion = &((segmentation_state *)state)->confusion;
    att_mask mask;
    ATT_TRY(att_confusion_begin(context, confusion, settings->classes));
    ATT_TRY(att_dataset_read_mask(settings->evaluated, context, index, &mask));
    att_status status = compare(context, confusion, &mask, classes->width, classes->height, classes->classes);
    att_mask_free(context, &mask);
    return status;
}

static att_status counts(att_context *context, void *state, const att_task_settings *settings, int64_t **values,
                         int64_t *count)
{
    att_confusion *confusion = &((segmentation_state *)state)->confusion;
    ATT_TRY(att_confusion_begin(context, confusion, settings->classes));
    *values = confusion->counts;
    *count = (int64_t)confusion->classes * confusion->classes;
    return ATT_OK;
}

static void report(const void *state, double *values)
{
    const att_segmentation_scores scores = att_confusion_scores(&((const segmentation_state *)state)->confusion);
    values[0] = 100 * scores.miou;
    values[1] = 100 * scores.macc;
    values[2] = 100 * scores.aacc;
}

static const char *class_name(segmentation_state *s, const att_task_settings *settings, int class_number)
{
    const char *name = att_dataset_class_name(settings->evaluated, class_number);
    if (*name)
        return name;
    snprintf(s->names[class_number], CLASS_NAME, "class %d", class_number);
    return s->names[class_number];
}

static att_status details(att_context *context, void *state, const att_task_settings *settings,
                          const att_measurement **figures, int *count)
{
    segmentation_state *s = state;
    const size_t classes = (size_t)settings->classes;
    *count = 0;
    ATT_TRY(att_confusion_begin(context, &s->confusion, settings->classes));
    if (!s->figures)
        ATT_TRY(att_new(context, &s->figures, FIGURES_OF_CLASS * classes, "the scores of the classes"));
    if (!s->names)
        ATT_TRY(att_new(context, &s->names, classes, "the names of the classes"));
    for (int c = 0; c < settings->classes; c++) {
        const att_class_score score = att_confusion_class(&s->confusion, c);
        const double values[FIGURES_OF_CLASS] = {score.iou, score.accuracy};
        static const char *const names[FIGURES_OF_CLASS] = {"iou", "accuracy"};
        for (int i = 0; i < FIGURES_OF_CLASS; i++)
            if (!isnan(values[i]))
                s->figures[(*count)++] = (att_measurement){.instrument = "segmentation",
                                                           .node = class_name(s, settings, c),
                                                           .statistic = names[i],
                                                           .unit = "%",
                                                           .head = -1,
                                                           .mean = 100 * values[i],
                                                           .deviation = (double)NAN,
                                                           .count = score.pixels,
                                                           .bound = 100};
    }
    *figures = s->figures;
    return ATT_OK;
}

static void end(att_context *context, void *state)
{
    segmentation_state *s = state;
    att_confusion_free(context, &s->confusion);
    att_free(context, s->figures);
    att_free(context, s->names);
}

/* --- predictions ------------------------------------------------------------------------------------------------- */

/* A class that occurs in a class map. */
typedef struct area {
    int class_number;
    int64_t pixels;
} area;

typedef struct areas {
    int count;
    int64_t pixels; /* of the map, that show the photograph */
    area *items;    /* [count], the largest first; of equal ones the lowest class. Freed by att_free() */
} areas;

static int by_size(const void *a, const void *b)
{
    const area *x = a, *y = b;
    if (x->pixels != y->pixels)
        return x->pixels < y->pixels ? 1 : -1;
    return (x->class_number > y->class_number) - (x->class_number < y->class_number);
}

static att_status fail_headless(att_context *context)
{
    return att_answer_fail_headless(context, "so it predicts no class for a pixel");
}

/* Whether pixel `index` of a class map of this width shows the photograph. */
static bool is_shown(const att_answer_options *options, int64_t index, int64_t width)
{
    return !options->geometry ||
           att_geometry_shows(options->geometry, (double)(index % width) + 0.5, (double)(index / width) + 0.5);
}

static att_status find_areas(att_context *context, const att_batch *answer, const att_answer_options *options,
                             areas *found)
{
    const void *data = NULL;
    const att_field *field = att_answer_field(answer, map_name, &data);
    if (!field)
        return fail_headless(context);
    const int32_t *map = data;
    int32_t last = 0;
    const int64_t count = att_shape_count(field->shape), width = field->shape.dims[1];
    *found = (areas){0};
    for (int64_t i = 0; i < count; i++)
        last = map[i] > last ? map[i] : last;
    ATT_TRY(att_new(context, &found->items, (size_t)last + 1, "the classes of an image"));
    for (int32_t c = 0; c <= last; c++)
        found->items[c].class_number = c;
    for (int64_t i = 0; i < count; i++)
        if (is_shown(options, i, width)) {
            found->items[map[i]].pixels++;
            found->pixels++;
        }
    qsort(found->items, (size_t)last + 1, sizeof *found->items, by_size);
    while (found->count <= last && found->items[found->count].pixels > 0)
        found->count++;
    return ATT_OK;
}

static double share_of(const areas *found, int index)
{
    return (double)found->items[index].pixels / (double)found->pixels;
}

static att_status write(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer)
{
    areas found;
    char colour[ATT_COLOUR_TEXT];
    ATT_TRY(find_areas(context, answer, options, &found));
    att_json_put_array(writer, "classes");
    for (int i = 0; i < found.count; i++) {
        const char *label = att_answer_label(options, found.items[i].class_number);
        att_json_begin_object(writer);
        att_json_put_integer(writer, "class", found.items[i].class_number);
        if (label)
            att_json_put_string(writer, "label", label);
        if (options->colours)
            att_json_put_string(writer, "colour",
                                att_colour_text(options->colours, found.items[i].class_number, colour));
        att_json_put_number(writer, "share", share_of(&found, i));
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    att_free(context, found.items);
    return ATT_OK;
}

static att_status describe(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user)
{
    areas found;
    att_text text = {.context = context};
    ATT_TRY(find_areas(context, answer, options, &found));
    for (int i = 0; i < found.count && i < options->topk && !text.failed; i++) {
        const char *label = att_answer_label(options, found.items[i].class_number);
        text.length = 0;
        att_text_append(&text, "%6.2f %% of the pixels  %6d%s%s", 100 * share_of(&found, i),
                        found.items[i].class_number, label ? "  " : "", label ? label : "");
        if (!text.failed)
            line(user, text.data);
    }
    att_free(context, found.items);
    att_status status = text.failed ? att_fail_memory(context, text.length, "the classes of an image") : ATT_OK;
    att_text_free(&text);
    return status;
}

enum { CAPTION_CLASSES = 5 };

static att_status caption(att_context *context, const att_batch *answer, const att_answer_options *options,
                          const att_task_image *image, att_text *text)
{
    areas found;
    (void)image;
    if (!att_batch_field(answer, map_name))
        return ATT_OK;
    ATT_TRY(find_areas(context, answer, options, &found));
    for (int i = 0; i < found.count && i < CAPTION_CLASSES; i++) {
        const char *label = att_answer_label(options, found.items[i].class_number);
        att_text_append(text, "%s", i == 0 ? "predicted: " : ", ");
        if (label)
            att_text_append(text, "%.*s", (int)ATT_CAPTION_BYTES, label);
        else
            att_text_append(text, "class %d", found.items[i].class_number);
        att_text_append(text, " %.1f %%", 100 * share_of(&found, i));
    }
    att_text_append(text, ".");
    att_free(context, found.items);
    return ATT_OK;
}

/* Draws a class map of the photograph's size. */
static att_status draw_map(att_context *context, const att_batch *answer, const att_geometry *geometry,
                           att_drawing *drawing)
{
    const void *map = NULL;
    const att_field *field = att_answer_field(answer, map_name, &map);
    uint16_t *classes;
    if (!field)
        return fail_headless(context);
    if (!att_shape_equal(field->shape, att_shape_of(geometry->from_height, geometry->from_width)))
        return att_fail(context, ATT_ERR_MISMATCH,
                        "the answer has no output \"%s\", from which the classes of the photograph's pixels are drawn",
                        logits_name);
    const int64_t pixels = att_shape_count(field->shape);
    ATT_TRY(att_new(context, &classes, (size_t)pixels, "the classes of a photograph"));
    for (int64_t i = 0; i < pixels; i++)
        classes[i] = (uint16_t)((const int32_t *)map)[i];
    att_status status = att_draw_classes(context, classes, geometry, drawing);
    att_free(context, classes);
    return status;
}

/* Draws the classes that an evaluation compares with the photograph's mask. Answers of passes have no logits. */
static att_status draw(att_context *context, const att_batch *answer, const att_answer_options *options,
                       const att_geometry *geometry, att_drawing *drawing)
{
    photograph of = {.geometry = geometry};
    (void)options;
    if (!att_pixel_logits_find(answer, logits_name, 0, &of.logits))
        return draw_map(context, answer, geometry, drawing);
    att_status status = predict(context, &of);
    if (status == ATT_OK)
        status = att_draw_classes(context, of.predicted, geometry, drawing);
    att_free(context, of.predicted);
    return status;
}

static const char *const observed[] = {logits_name, NULL};
/* Metrics count every pixel of a photograph, so that the network should see all of them. */
static const att_task_images images = {.crop_mode = "squash"};

const att_task att_task_segmentation = {
    .info = {.name = "segment",
             .help = "a class for each pixel; cross-entropy of the upsampled logits",
             .head_scope = head_scope,
             .metrics = metrics,
             .metric_count = METRICS,
             .best = 0,
             .options = declared,
             .option_count = sizeof declared / sizeof *declared},
    .options_size = sizeof(segmentation_options),
    .defaults = defaults,
    .taps = taps,
    .images = &images,
    .head = head,
    .annotations = ATT_ANNOTATION_MASK,
    .fields = fields,
    .fill = fill,
    .choose_crop = att_mask_choose_crop,
    .mix = mix,
    .check = check,
    .loss = loss,
    .plain = plain,
    .observed = observed,
    .state_size = sizeof(segmentation_state),
    .observe = observe,
    .counts = counts,
    .report = report,
    .details = details,
    .end = end,
    .pixel_logits = logits_name,
    .pixel_classes = map_name,
    .observe_pixels = observe_pixels,
    .write = write,
    .describe = describe,
    .caption = caption,
    .draw = draw,
};
