#include "data/mask_layouts.h"

/* The first layout whose folders exist, and whose photographs have masks, is taken. So layouts with rules of their own
 * come before those that only pair folders. Sources: the data sets' own pages, mmsegmentation's "Prepare datasets" and
 * "Customize datasets", Ultralytics' and NVIDIA's formats for semantic segmentation, fastai's CamVid, Kaggle. */
const att_file_layout att_mask_layouts[] = {
    /* ADE20K */
    {.photographs = "images/*",
     .annotations = "annotations/*",
     .begin = "ADE_",
     .mask_end = "",
     .classes = "ade20k",
     .reduce_zero = true},
    /* Cityscapes */
    {.photographs = "leftImg8bit/*",
     .annotations = "gtFine/*",
     .photograph_end = "_leftImg8bit",
     .mask_end = "_gtFine_labelTrainIds",
     .classes = "cityscapes",
     .other_end = "_gtFine_labelIds",
     .other_classes = "34 classes, of which 19 are trained: createTrainIdLabelImgs.py of cityscapesScripts makes "
                      "*_gtFine_labelTrainIds.png"},
    /* Cityscapes */
    {.photographs = "leftImg8bit/*",
     .annotations = "gtCoarse/*",
     .photograph_end = "_leftImg8bit",
     .mask_end = "_gtCoarse_labelTrainIds",
     .classes = "cityscapes",
     .other_end = "_gtCoarse_labelIds",
     .other_classes = "34 classes, of which 19 are trained: createTrainIdLabelImgs.py of cityscapesScripts makes "
                      "*_gtCoarse_labelTrainIds.png"},
    /* Pascal VOC */
    {.photographs = "JPEGImages",
     .annotations = "SegmentationClass",
     .list = "ImageSets/Segmentation/*.txt",
     .mask_end = "",
     .classes = "voc"},
    /* Pascal Context */
    {.photographs = "JPEGImages",
     .annotations = "SegmentationClassContext",
     .list = "ImageSets/SegmentationContext/*.txt",
     .mask_end = ""},
    /* Oxford-IIIT Pet */
    {.photographs = "images",
     .annotations = "annotations/trimaps",
     .list = "annotations/*.txt",
     .mask_end = "",
     .reduce_zero = true},
    /* CamVid */
    {.photographs = "*", .annotations = "*annot", .mask_end = "", .classes = "camvid", .void_last = true},
    /* BDD100K */
    {.photographs = "images/10k/*", .annotations = "labels/sem_seg/masks/*", .mask_end = "", .classes = "cityscapes"},
    /* Roboflow: train/a.jpg, train/a_mask.png */
    {.photographs = "*", .annotations = "*", .mask_end = "_mask"},
    {.photographs = "@/*", .annotations = "@/*"}, /* images/train, masks/train */
    {.photographs = "*/@", .annotations = "*/@"}, /* train/images, train/masks */
    {.photographs = "*", .annotations = "*_@"},   /* train, train_masks */
    {.photographs = "*_@", .annotations = "*_@"}, /* train_images, train_masks */
    {.photographs = "@_*", .annotations = "@_*"}, /* images_train, masks_train */
    {.photographs = "@", .annotations = "@"},     /* images, masks */
};

const int att_mask_layouts_number = sizeof att_mask_layouts / sizeof *att_mask_layouts;

static const char *const mask_ends[] = {"_labelTrainIds", "",   "_mask", "_masks", "_label", "_labels", "_gt", "_seg",
                                        "_segmentation",  "_L", "_P"};

const char *att_mask_end(int index)
{
    return index < (int)(sizeof mask_ends / sizeof *mask_ends) ? mask_ends[index] : NULL;
}
