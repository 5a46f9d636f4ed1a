/* data/dataset.h - what the data formats share, and their descriptor. */
#ifndef ATT_DATA_DATASET_H
#define ATT_DATA_DATASET_H

#include <attscope/data.h>

#include "core/memory.h"
#include "data/classes.h"
#include "io/image_codec.h"

/* One format: a file that ends in one of these. */
typedef struct att_data_format {
    /* Whether what the data set's path names, which exists, is of this format; the first that says so opens it. The
     * data set has its context and path. */
    bool (*accepts)(const att_dataset *dataset);
    /* Fills kind, source, classes, labels, count and split of a data set that has its context, path and limits. What it
     * leaves in `source` after a failure is given to close. */
    att_status (*open)(att_dataset *dataset, const att_dataset_options *options);
    void (*close)(att_dataset *dataset);
    /* As att_dataset_name(), att_dataset_read_needed(); index and channels are valid. */
    void (*name)(const att_dataset *dataset, int64_t index, char *text, size_t size);
    att_status (*read)(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                       const att_image_need *need, att_image *image);
    /* Only where images belong to data sets inside this one, which has neither name nor read then: the data set of the
     * image at *index, which becomes its index in there. */
    const att_dataset *(*inner)(const att_dataset *dataset, int64_t *index);
} att_data_format;

enum { ATT_DATA_MAX_NAME = 8192 };

struct att_dataset {
    att_context *context;
    const att_data_format *format;
    const char *kind; /* "idx", "folder", ... */
    char *path;
    size_t opened; /* length of what short names leave out of images' names: of the path that was asked for, or less */
    att_image_limits limits;
    void *source; /* the format's own */
    att_class_list classes;
    int64_t count;
    int32_t *labels;
    const char *split; /* static, "" where there are none */
};

extern const att_data_format att_data_idx, att_data_cifar10, att_data_cifar100, att_data_stl10, att_data_split_archive,
    att_data_image, att_data_folder, att_data_archive;

/* Fills a data set as att_data_format's open does, with the images of all paths. */
att_status att_data_images_open(att_dataset *dataset, const char *const *paths, int count,
                                const att_dataset_options *options);

/* As att_dataset_read(); pixels that are not needed may be undefined. need: NULL means all. */
att_status att_dataset_read_needed(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                                   const att_image_need *need, att_image *image);

/* Whether the folder `path` has a folder in it that is not hidden; false where it is none. */
bool att_holds_folder(const char *path);

/* Splits that stand for `wanted` (NULL: any), best first, ending in NULL; NULL where there is no such split. */
const char *const *att_split_names(const char *wanted);
/* ERR_ARGUMENT, naming the splits there are. */
att_status att_split_unknown(att_context *context, const char *wanted);

#endif
