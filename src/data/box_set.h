/* data/box_set.h - photographs and the boxes of their objects, as the formats of boxes (box_layouts.h) read them. */
#ifndef ATT_DATA_BOX_SET_H
#define ATT_DATA_BOX_SET_H

#include "data/file_layouts.h"

typedef struct att_boxed_photograph {
    const char *path;
    int width, height; /* as stored; 0: its headers cannot be read, and its boxes are left out */
    bool sized;        /* the annotations say this size, not the photograph */
    int64_t id;
    int first, count; /* boxes[first .. first + count - 1] */
} att_boxed_photograph;

/* Boxes that are left out because they have no extent, or no part of them is inside the photograph; boxes of which a
 * pixel or more is outside. */
enum { ATT_BOX_EMPTY, ATT_BOX_OUTSIDE, ATT_BOX_REACHES_OUT, ATT_BOX_REMARKS };
typedef struct att_box_remark {
    int64_t count, id; /* id: of the first box */
    const char *file;  /* that has the first box */
} att_box_remark;

/* Zero-initialise, then set the context of the arena. The caller calls att_box_set_free(). */
typedef struct att_box_set {
    att_arena arena; /* owns paths and names */
    att_file_place place;
    const att_image_limits *limits;
    att_boxed_photograph *photographs;
    att_true_box *boxes; /* those of a photograph follow each other */
    int count, room, box_count, box_room;
    att_box_remark remarks[ATT_BOX_REMARKS];
    const char **names; /* of classes, by the numbers that the boxes have */
    int64_t *class_ids; /* of classes; NULL: their numbers */
    int class_count;
    bool unnamed; /* `names` are numbers, which the annotations give classes */
} att_box_set;

void att_box_set_free(att_box_set *set);
/* Adds a photograph without boxes. path: in the arena. A size of 0 is read from its headers. Errors: those of reading
 * the file, but not ERR_FORMAT and ERR_UNSUPPORTED: att_dataset_read() will say so. */
att_status att_box_set_photograph(att_box_set *set, const char *path, int64_t id, int width, int height);
/* Adds a box to the last photograph, unless it is empty or outside. file: in the arena, for messages. Errors:
 * ERR_MEMORY. */
att_status att_box_set_add(att_box_set *set, const char *file, const att_true_box *box);
/* Logs a warning for each kind of box in `remarks`. unit: what an id counts: "annotation". */
void att_box_set_warn(const att_box_set *set, const char *unit);

/* A format of annotations with boxes. */
typedef struct att_box_format {
    const char *unit; /* what the id of a box counts in its file */
    /* Whether files at a place, whose folders and list exist, look like this format. */
    bool (*is)(const att_file_place *place);
    /* Whether these files have boxes. NULL: files that look like the format have. */
    bool (*has_boxes)(att_context *context, const att_file_place *place);
    /* Reads all photographs and boxes of set->place, and the classes. */
    att_status (*read)(att_box_set *set);
} att_box_format;

extern const att_box_format att_box_coco, att_box_voc, att_box_yolo;
extern const att_file_layout att_box_layouts[];
extern const int att_box_layouts_number;

#endif
