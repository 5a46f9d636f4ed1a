#include "networks/tasks/box_metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/tasks/box_precision.h"
#include "networks/tasks/found_boxes.h"

#define METRIC(key, shown)                                                     \
    {                                                                          \
        .name = (key), .label = (shown), .unit = "%", .larger_is_better = true \
    }
const att_metric att_box_metrics[ATT_COCO_FIGURES] = {
    METRIC("ap", "AP"),       METRIC("ap50", "AP50"), METRIC("ap75", "AP75"), METRIC("aps", "APs"),
    METRIC("apm", "APm"),     METRIC("apl", "APl"),   METRIC("ar1", "AR1"),   METRIC("ar10", "AR10"),
    METRIC("ar100", "AR100"), METRIC("ars", "ARs"),   METRIC("arm", "ARm"),   METRIC("arl", "ARl"),
};

att_field att_box_geometry_field(void)
{
    return (att_field){.name = ATT_BOX_GEOMETRY, .dtype = ATT_U8, .shape = att_shape_of(sizeof(att_geometry))};
}

/* --- boxes of the images ------------------------------------------------------------------------------------------ */

static att_status add(att_context *context, const att_coco_box *box, att_coco_box **boxes, int *count, int *room)
{
    if (!att_list_grow(context, boxes, *count, room, sizeof *box))
        return att_fail_memory(context, sizeof *box, "the boxes of an evaluation");
    (*boxes)[(*count)++] = *box;
    return ATT_OK;
}

static att_status add_truth(att_context *context, att_box_state *s, const att_dataset *dataset, int64_t image)
{
    int count;
    const att_true_box *boxes = att_dataset_boxes(dataset, image, &count);
    for (int i = 0; i < count; i++) {
        const att_true_box *of = &boxes[i];
        const att_coco_box box = {.id = of->id,
                                  .image = image,
                                  .category = of->label,
                                  .x = of->x,
                                  .y = of->y,
                                  .width = of->width,
                                  .height = of->height,
                                  .area = of->area,
                                  .crowd = of->crowd};
        ATT_TRY(add(context, &box, &s->truth, &s->truth_count, &s->truth_room));
    }
    return ATT_OK;
}

static att_status add_found(att_context *context, att_box_state *s, const att_found_boxes *found,
                            const att_geometry *geometry, int64_t image)
{
    for (int i = 0; i < found->count; i++) {
        double edges[4];
        att_found_box_place(found, i, geometry, edges);
        att_coco_box box = {.id = -1,
                            .image = image,
                            .category = found->classes[i],
                            .x = edges[0],
                            .y = edges[1],
                            .width = edges[2] - edges[0],
                            .height = edges[3] - edges[1],
                            .score = (double)found->scores[i]};
        box.area = box.width * box.height;
        ATT_TRY(add(context, &box, &s->found, &s->found_count, &s->found_room));
    }
    return ATT_OK;
}

att_status att_box_observe(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                           const att_batch *answers)
{
    att_box_state *s = state;
    const char *geometries = att_batch_field(batch, ATT_BOX_GEOMETRY);
    s->concluded = false;
    for (int i = 0; i < batch->count; i++) {
        att_geometry geometry;
        att_found_boxes found;
        memcpy(&geometry, geometries + (size_t)i * sizeof geometry, sizeof geometry);
        ATT_TRY(att_found_boxes_of(context, answers, i, &found));
        ATT_TRY(add_truth(context, s, settings->evaluated, batch->indices[i]));
        ATT_TRY(add_found(context, s, &found, &geometry, batch->indices[i]));
    }
    return ATT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

att_status att_box_conclude(att_context *context, void *state, const att_task_settings *settings)
{
    att_box_state *s = state;
    att_free(context, s->classes);
    ATT_TRY(att_new(context, &s->classes, (size_t)settings->classes, "the figures of the classes"));
    ATT_TRY(att_box_precision(context, s->truth, s->truth_count, s->found, s->found_count, settings->classes, s->values,
                              s->classes));
    s->concluded = true;
    return ATT_OK;
}

/* In per cent; NaN where COCO has -1. */
static double shown(double figure)
{
    return figure < 0 ? (double)NAN : 100 * figure;
}

void att_box_report(const void *state, double *values)
{
    const att_box_state *s = state;
    for (int i = 0; i < ATT_COCO_FIGURES; i++)
        values[i] = s->concluded ? shown(s->values[i]) : (double)NAN;
}

static const char *class_name(att_box_state *s, const att_task_settings *settings, int class_number)
{
    const char *name = att_dataset_class_name(settings->evaluated, class_number);
    if (*name)
        return name;
    snprintf(s->names[class_number], sizeof *s->names, "class %d", class_number);
    return s->names[class_number];
}

static att_measurement detail(att_box_state *s, const att_task_settings *settings, int class_number,
                              const char *statistic, double figure)
{
    return (att_measurement){.instrument = "detection",
                             .node = class_name(s, settings, class_number),
                             .statistic = statistic,
                             .unit = "%",
                             .head = -1,
                             .mean = shown(figure),
                             .deviation = (double)NAN,
                             .count = s->classes[class_number].boxes,
                             .bound = 100};
}

att_status att_box_details(att_context *context, void *state, const att_task_settings *settings,
                           const att_measurement **figures, int *count)
{
    enum { FIGURES_OF_CLASS = 2 };
    att_box_state *s = state;
    const size_t classes = (size_t)settings->classes;
    *count = 0;
    if (!s->details)
        ATT_TRY(att_new(context, &s->details, FIGURES_OF_CLASS * classes, "the figures of the classes"));
    if (!s->names)
        ATT_TRY(att_new(context, &s->names, classes, "the names of the classes"));
    for (int c = 0; c < settings->classes; c++) {
        if (s->classes[c].ap < 0)
            continue;
        s->details[(*count)++] = detail(s, settings, c, "ap", s->classes[c].ap);
        s->details[(*count)++] = detail(s, settings, c, "ar", s->classes[c].ar);
    }
    *figures = s->details;
    return ATT_OK;
}

void att_box_end(att_context *context, void *state)
{
    att_box_state *s = state;
    att_free(context, s->truth);
    att_free(context, s->found);
    att_free(context, s->classes);
    att_free(context, s->details);
    att_free(context, s->names);
}
