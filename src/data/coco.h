/* data/coco.h - boxes in COCO's JSON: the annotations of images, and detections.
 *
 *     {"images": [{"id": 1, "file_name": "1.jpg", "width": 640, "height": 480}],
 *      "categories": [{"id": 18, "name": "dog", "supercategory": "animal"}],
 *      "annotations": [{"id": 7, "image_id": 1, "category_id": 18, "bbox": [x, y, width, height], "area": 1200,
 *                       "iscrowd": 0}]}
 *     [{"image_id": 1, "category_id": 18, "bbox": [x, y, width, height], "score": 0.9}]
 */
#ifndef ATT_DATA_COCO_H
#define ATT_DATA_COCO_H

#include "base/core/memory.h"

/* A box in pixels of its image. */
typedef struct att_coco_box {
    int64_t id;              /* of an annotation; -1: it has none */
    int64_t image, category; /* indices into the lists of att_coco */
    double x, y, width, height;
    double area;  /* of an annotation: that of the object's mask if the file has it */
    double score; /* of a detection */
    bool crowd;   /* an annotation of many objects */
} att_coco_box;

/* Texts are "" and numbers 0 where the file has none, or another type. */
typedef struct att_coco_image {
    int64_t id;
    const char *file;
    int width, height;
} att_coco_image;

typedef struct att_coco_category {
    int64_t id;
    const char *name, *parent; /* parent: "supercategory" */
} att_coco_category;

/* Annotations that are left out: how many, and the id of the first (-1: it has none). */
typedef struct att_coco_left_out {
    int64_t count, first;
} att_coco_left_out;

/* The annotations of a file. Lists of images and categories are in the order of their ids, boxes in that of the file.
 */
typedef struct att_coco {
    att_arena arena;
    att_coco_image *images;
    att_coco_category *categories;
    att_coco_box *boxes;
    int image_count, category_count, box_count;
    att_coco_left_out without_image, without_category; /* the file does not list the annotation's image or category */
    int64_t without_area;                              /* annotations without an area, which have that of their box */
    int64_t empty;                                     /* boxes without an extent */
} att_coco;

/* Reads annotations. After success the caller calls att_coco_free(). Errors: ERR_FORMAT, also for an id of images or
 * categories that is there twice; those of att_json_read_arrays(). */
att_status att_coco_read(att_context *context, const char *path, att_coco *coco);
void att_coco_free(att_coco *coco);

/* Detections in the images of `coco`. */
typedef struct att_coco_results {
    att_coco_box *boxes;
    int box_count;
    int64_t without_category; /* detections that are left out, because the annotations do not list their category */
    int64_t empty;            /* boxes without an extent */
} att_coco_results;
/* Reads detections. After success the caller frees results->boxes with att_free(). Errors: as of att_coco_read();
 * ERR_MISMATCH if an image is not one of coco's; ERR_UNSUPPORTED for masks and keypoints without a box. */
att_status att_coco_read_results(att_context *context, const char *path, const att_coco *coco,
                                 att_coco_results *results);

#endif
