/* attscope/coco.h - COCO's evaluation of detected boxes. */
#ifndef ATTSCOPE_COCO_H
#define ATTSCOPE_COCO_H

#include <stdbool.h>
#include <stdint.h>

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The figures of COCO's evaluation (Lin et al. 2014; cocodataset.org/#detection-eval), in the order of pycocotools. */
enum { ATT_COCO_FIGURES = 12 };
typedef struct att_coco_figure {
    const char *name;   /* "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl" */
    const char *iou;    /* thresholds of the overlap: "0.50:0.95", "0.50", "0.75" */
    const char *area;   /* of the true boxes, in pixels: "all"; "small": up to 32^2; "medium": up to 96^2; "large" */
    int max_detections; /* of an image and category, those with the highest scores */
    bool recall;
} att_coco_figure;
/* index: 0..ATT_COCO_FIGURES-1. */
ATT_API att_coco_figure att_coco_figure_at(int index);

/* The figures of a category. -1: it has no true boxes, or only those of crowds. */
typedef struct att_coco_class {
    int64_t id;
    const char *name; /* owned by the evaluation */
    int64_t boxes;    /* true boxes, without those of crowds */
    double ap, ap50, ap75, ar;
} att_coco_class;

typedef struct att_coco_evaluation att_coco_evaluation;

/* Compares detections with annotations. Both are read one element at a time.
 * annotations: JSON with the lists "images", "categories" and "annotations", whose elements have image_id, category_id,
 * bbox [left, top, width, height], and may have area and iscrowd. results: a JSON list of detections with image_id,
 * category_id, bbox and score.
 * The figures are those of pycocotools 2.0, except that an annotation with the id 0 counts as any other. Annotations of
 * images or categories that the file does not list are left out, as are detections of other categories; a warning in
 * the context's log says how many. After success the caller destroys *evaluation. Errors: ERR_FORMAT for malformed
 * files, with file, list and index; ERR_MISMATCH for detections in an image that the annotations do not list;
 * ERR_UNSUPPORTED for masks and keypoints; ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_coco_evaluate(att_context *context, const char *annotations, const char *results,
                                                    att_coco_evaluation **evaluation);
/* NULL and pointers to NULL are allowed. */
ATT_API void att_coco_evaluation_destroy(att_coco_evaluation **evaluation);

/* A figure from 0 to 1; -1 if no true box is in its range of areas. */
ATT_API double att_coco_evaluation_figure(const att_coco_evaluation *evaluation, int index);
ATT_API int64_t att_coco_evaluation_images(const att_coco_evaluation *evaluation);
/* Detections that were compared. */
ATT_API int64_t att_coco_evaluation_detections(const att_coco_evaluation *evaluation);
ATT_API int att_coco_evaluation_classes(const att_coco_evaluation *evaluation);
/* index: in the order of the categories' ids. */
ATT_API att_coco_class att_coco_evaluation_class(const att_coco_evaluation *evaluation, int index);

#ifdef __cplusplus
}
#endif

#endif
