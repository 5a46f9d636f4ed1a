/* data/dataset.h - the descriptor of a data format, and what the formats share. */
#ifndef ATT_DATA_DATASET_H
#define ATT_DATA_DATASET_H

#include <attscope/data.h>

#include "base/core/memory.h"
#include "base/io/image_codec.h"
#include "data/classes.h"
#include "data/splits.h"

/* One data format. The source file of a format ends in a constant of this type. */
typedef struct att_data_format {
    /* Whether this format can open the file or folder at the data set's path, which exists. The first format that
     * returns true opens the data set. Only the data set's context and path are set. */
    bool (*accepts)(const att_dataset *dataset);
    /* Fills kind, source, classes, labels, count and split. The data set has its context, path and limits. After a
     * failure, `close` frees what `source` holds. */
    att_status (*open)(att_dataset *dataset, const att_dataset_options *options);
    void (*close)(att_dataset *dataset);
    /* As att_dataset_name() and att_dataset_read_needed(). index and channels have been checked. */
    void (*name)(const att_dataset *dataset, int64_t index, char *text, size_t size);
    att_status (*read)(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                       const att_image_need *need, att_image *image);
    /* What the samples have in place of a class, such as ATT_ANNOTATION_MASK; 0: classes. */
    unsigned annotation;
    /* Whether the path has such annotations; set if `annotation` is. Errors: ERR_STOPPED, ERR_MEMORY. */
    att_status (*exist)(att_context *context, const char *path, bool *found);
    /* As att_dataset_read_mask(); index has been checked. Set if the samples have masks. */
    att_status (*read_mask)(const att_dataset *dataset, att_context *context, int64_t index, att_mask *mask);
    /* Set if the samples have boxes; those of all samples. */
    const struct att_box_set *(*boxes)(const att_dataset *dataset);
    /* Optional, for a data set that consists of other data sets; it has no `name` and `read` of its own. Returns the
     * data set that the image belongs to, and sets *index to the image's index there. */
    const att_dataset *(*inner)(const att_dataset *dataset, int64_t *index);
    /* Optional: as att_dataset_expect(). */
    void (*expect)(const att_dataset *dataset, int64_t index);
    bool single_files; /* each image is a file of its own, whose name is the last part of its path */
} att_data_format;

enum { ATT_DATA_MAX_NAME = 8192 };

/* Images that EXIF data turn for display and that are read as they are stored. */
typedef struct att_turned_images {
    _Atomic int64_t first; /* one of them: its index + 1; 0: none was read */
    bool noted;            /* in the log */
} att_turned_images;

struct att_dataset {
    att_context *context;
    const att_data_format *format;
    const char *kind; /* "idx", "cifar10", "cifar100", "stl10", "image", "folder", "tar", "tar.gz", "zip", "shards",
                         "masks", "boxes"; several paths: "images" */
    char *path;
    size_t prefix_length; /* length of the prefix of image names that short names omit; at most that of the requested
                             path */
    att_image_limits limits;
    void *source; /* owned by the format */
    att_class_list classes;
    int64_t count;
    int32_t *labels;
    att_turned_images *turned;
    const char *split;               /* static string; "" if the data set has no splits */
    char flat_split[ATT_SPLIT_NAME]; /* folder of the requested split without class folders, if another split is used */
};

extern const att_data_format att_data_idx, att_data_cifar10, att_data_cifar100, att_data_stl10, att_data_split_archive,
    att_data_tars, att_data_image, att_data_folder, att_data_archive, att_data_masks, att_data_boxes;

/* Opens all paths as one data set. Fills it as att_data_format.open does. */
att_status att_data_images_open(att_dataset *dataset, const char *const *paths, int count,
                                const att_dataset_options *options);

/* As att_dataset_read(), but pixels outside of `need` may be undefined. need: NULL means the whole image. */
att_status att_dataset_read_needed(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                                   const att_image_need *need, att_image *image);

/* Reads the sides of an image, and how EXIF data turn it: where it is a file, from its headers alone. Errors: those of
 * att_dataset_read(). */
att_status att_dataset_look(const att_dataset *dataset, att_context *context, int64_t index, att_image_look *look);

/* Writes a line to the log of the data set's context, once, if an image was read that EXIF data would turn. Call it on
 * the thread that called the library. */
void att_dataset_note_turned(const att_dataset *dataset);

/* Says that the image will soon be read, so that the system can fetch its bytes in the meantime. Thread-safe. */
void att_dataset_expect(const att_dataset *dataset, int64_t index);

/* Whether the images are samples of WebDataset shards. */
bool att_data_is_shards(const att_dataset *dataset);
/* "classes", "masks" or "boxes": the first kind of several. */
ATT_FOR_LAB const char *att_annotation_name(unsigned annotations);
bool att_is_folder(const char *path);
/* Whether the folder `path` contains a folder that is not hidden. False if `path` is not a folder. */
bool att_holds_folder(const char *path);

/* Writes a hash of the list of images, as 16 hexadecimal digits, and returns `text`. For every image, in order, it
 * covers the class and, if the image is a file of its own, the file name without folders. It does not cover pixels. So
 * class folders and tars of the same images have the same hash. Shards have the same one only if their order and the
 * names of their files are the same, too. */
ATT_FOR_LAB char *att_dataset_listing(const att_dataset *dataset, char text[ATT_DATASET_LISTING]);

/* Writes a hash of the images, as 16 hexadecimal digits, that does not depend on where they lie. It covers the short
 * names of all images, in any order, and the pixels of 8 of them, but not the classes. An image that cannot be decoded
 * is not an error. Memory and messages come from `context`, as with att_dataset_read(). Errors: ERR_STOPPED,
 * ERR_MEMORY. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_dataset_contents(const att_dataset *dataset, att_context *context,
                                                           char text[ATT_DATASET_CONTENTS]);

/* Returns whether the labels can be the classes of a network with `classes` outputs: there are no more classes of
 * masks, or every label is less than `classes`, and either there are exactly as many classes, or the numbers come from
 * a class map, a training run or the data set's own files. */
ATT_FOR_LAB bool att_dataset_fits_classes(const att_dataset *dataset, int classes);
/* Returns ERR_MISMATCH if the data set has another number of classes than the network and its numbers come from sorted
 * folder names alone: an evaluation would compare different classes. The message goes to `context`. */
ATT_FOR_LAB att_status att_dataset_check_classes(const att_dataset *dataset, att_context *context, int classes);
/* Returns the first class name of the data set that is not among `names`; NULL if all are. */
ATT_FOR_LAB const char *att_dataset_unknown_class(const att_dataset *dataset, const char *const *names, int count);

#endif
