#include "data/box_set.h"

/* The first layout whose folders exist, with files of its format, is taken. Sources: cocodataset.org, Roboflow's,
 * FiftyOne's and CVAT's exports, mmdetection's and Ultralytics' pages about data sets, Pascal VOC's development kit,
 * labelImg. */
const att_file_layout att_box_layouts[] = {
    /* COCO: train2017, val2017, annotations/instances_train2017.json */
    {.boxes = &att_box_coco, .photographs = "*", .annotations = "*", .list = "annotations/instances_*.json"},
    {.boxes = &att_box_coco,
     .photographs = "images/*",
     .annotations = "images/*",
     .list = "annotations/instances_*.json"},
    {.boxes = &att_box_coco, .photographs = "images", .annotations = "images", .list = "annotations/instances_*.json"},
    /* Roboflow: train/_annotations.coco.json beside train/a.jpg */
    {.boxes = &att_box_coco, .photographs = "*", .annotations = "*", .list = "*/_annotations.coco.json"},
    {.boxes = &att_box_coco, .photographs = "images/*", .annotations = "images/*", .list = "annotations/*.json"},
    {.boxes = &att_box_coco, .photographs = "*", .annotations = "*", .list = "annotations/*.json"},
    {.boxes = &att_box_coco, .photographs = "images", .annotations = "images", .list = "annotations/*.json"},
    {.boxes = &att_box_coco, .photographs = "*/images", .annotations = "*/images", .list = "*/annotations.json"},
    {.boxes = &att_box_coco, .photographs = "*/data", .annotations = "*/data", .list = "*/labels.json"},
    {.boxes = &att_box_coco, .photographs = "*", .annotations = "*", .list = "*/annotations.json"},
    {.boxes = &att_box_coco, .photographs = "images/*", .annotations = "images/*", .list = "*.json"},
    {.boxes = &att_box_coco, .photographs = "*", .annotations = "*", .list = "*.json"},
    {.boxes = &att_box_coco, .photographs = "images", .annotations = "images", .list = "*.json"},
    {.boxes = &att_box_coco, .photographs = "images", .annotations = "images", .list = "annotations.json"},
    {.boxes = &att_box_coco, .photographs = "data", .annotations = "data", .list = "labels.json"},
    {.boxes = &att_box_coco, .photographs = "", .annotations = "", .list = "_annotations.coco.json"},
    {.boxes = &att_box_coco, .photographs = "", .annotations = "", .list = "annotations.json"},
    /* Pascal VOC */
    {.boxes = &att_box_voc, .photographs = "JPEGImages", .annotations = "Annotations", .list = "ImageSets/Main/*.txt"},
    {.boxes = &att_box_voc, .photographs = "JPEGImages", .annotations = "Annotations"},
    {.boxes = &att_box_voc, .photographs = "images/*", .annotations = "annotations/*"},
    {.boxes = &att_box_voc, .photographs = "*/images", .annotations = "*/annotations"},
    {.boxes = &att_box_voc, .photographs = "images", .annotations = "annotations"},
    {.boxes = &att_box_voc, .photographs = "*", .annotations = "*"},
    {.boxes = &att_box_voc, .photographs = "", .annotations = ""},
    /* YOLO: images/train, labels/train; of CVAT: obj_train_data */
    {.boxes = &att_box_yolo, .photographs = "images/*", .annotations = "labels/*"},
    {.boxes = &att_box_yolo, .photographs = "*/images", .annotations = "*/labels"},
    {.boxes = &att_box_yolo, .photographs = "images", .annotations = "labels"},
    {.boxes = &att_box_yolo, .photographs = "obj_*_data", .annotations = "obj_*_data"},
    {.boxes = &att_box_yolo, .photographs = "*", .annotations = "*"},
    {.boxes = &att_box_yolo, .photographs = "", .annotations = ""},
};

const int att_box_layouts_number = sizeof att_box_layouts / sizeof *att_box_layouts;
