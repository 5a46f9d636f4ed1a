/* Evaluates a file of detections. */
#include <inttypes.h>

#include <attscope/coco.h>

#include "base/core/error.h"
#include "networks/tasks/box_precision.h"

struct att_coco_evaluation {
    att_context *context;
    att_coco coco;
    att_coco_results results;
    double figures[ATT_COCO_FIGURES];
    att_coco_class *classes; /* [coco.category_count] */
};

/* one, many: what is said of one item, and of several. */
static void warn(att_context *context, int64_t count, const char *path, const char *one, const char *many)
{
    if (count > 0)
        att_log(context, ATT_LOG_WARNING, "%s: %" PRId64 " %s", path, count, count == 1 ? one : many);
}

static void warn_of_all(att_context *context, const att_coco_evaluation *e, const char *annotations,
                        const char *results)
{
    warn(context, e->coco.without_image.count, annotations, "annotation is left out: the file does not list its image",
         "annotations are left out: the file does not list their images");
    warn(context, e->coco.without_category.count, annotations,
         "annotation is left out: the file does not list its category",
         "annotations are left out: the file does not list their categories");
    warn(context, e->coco.without_area, annotations, "annotation has no area; that of its box is taken",
         "annotations have no area; that of their box is taken");
    warn(context, e->coco.empty, annotations, "annotation has a box of no extent, which no detection can find",
         "annotations have a box of no extent, which no detection can find");
    warn(context, e->results.without_category, results,
         "detection is left out: the annotations do not list its category",
         "detections are left out: the annotations do not list their categories");
    warn(context, e->results.empty, results, "detection has a box of no extent; it counts as wrong",
         "detections have a box of no extent; they count as wrong");
}

static att_status evaluate(att_context *context, const char *annotations, const char *results, att_coco_evaluation *e)
{
    ATT_TRY(att_coco_read(context, annotations, &e->coco));
    ATT_TRY(att_coco_read_results(context, results, &e->coco, &e->results));
    warn_of_all(context, e, annotations, results);
    ATT_TRY(att_new(context, &e->classes, (size_t)e->coco.category_count + 1, "the categories of a file"));
    for (int c = 0; c < e->coco.category_count; c++) {
        e->classes[c].id = e->coco.categories[c].id;
        e->classes[c].name = e->coco.categories[c].name;
    }
    return att_box_precision(context, e->coco.boxes, e->coco.box_count, e->results.boxes, e->results.box_count,
                             e->coco.category_count, e->figures, e->classes);
}

att_status att_coco_evaluate(att_context *context, const char *annotations, const char *results,
                             att_coco_evaluation **evaluation)
{
    att_coco_evaluation *e;
    ATT_TRY(att_new(context, &e, 1, "an evaluation of detections"));
    e->context = context;
    e->coco.arena.context = context;
    att_status status = evaluate(context, annotations, results, e);
    if (status == ATT_OK)
        *evaluation = e;
    else
        att_coco_evaluation_destroy(&e);
    return status;
}

void att_coco_evaluation_destroy(att_coco_evaluation **evaluation)
{
    if (!evaluation || !*evaluation)
        return;
    att_context *context = (*evaluation)->context;
    att_free(context, (*evaluation)->results.boxes);
    att_free(context, (*evaluation)->classes);
    att_coco_free(&(*evaluation)->coco);
    att_free(context, *evaluation);
    *evaluation = NULL;
}

double att_coco_evaluation_figure(const att_coco_evaluation *evaluation, int index)
{
    return evaluation->figures[index];
}

int64_t att_coco_evaluation_images(const att_coco_evaluation *evaluation)
{
    return evaluation->coco.image_count;
}

int64_t att_coco_evaluation_detections(const att_coco_evaluation *evaluation)
{
    return evaluation->results.box_count;
}

int att_coco_evaluation_classes(const att_coco_evaluation *evaluation)
{
    return evaluation->coco.category_count;
}

att_coco_class att_coco_evaluation_class(const att_coco_evaluation *evaluation, int index)
{
    return evaluation->classes[index];
}
