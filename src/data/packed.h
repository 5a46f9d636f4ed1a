/* data/packed.h - data sets of small colour images of one size in a few binary files without a header, or in pickles of
 * the same: in a folder, in a folder of the official name inside that, in an archive, or in the official archive inside
 * a folder.
 *
 * A file holds records of one length; each is a label, unless a file of its own holds the labels, and the image's three
 * planes.
 */
#ifndef ATT_DATA_PACKED_H
#define ATT_DATA_PACKED_H

#include "data/dataset.h"

enum { ATT_PACKED_FILES = 5 };

typedef struct att_packed_split {
    const char *name;                    /* "train" */
    const char *files[ATT_PACKED_FILES]; /* of images, in order; NULL past the last */
    const char *labels;                  /* file of one byte an image; NULL: they stand in the records */
} att_packed_split;

/* The same images in other files. */
typedef struct att_packed_version {
    const char *archive;     /* the official one's name, "cifar-10-binary.tar.gz"; NULL: there is no such version */
    const char *folder;      /* the folder's in it */
    const char *class_names; /* file of one name a line; where it is missing the numbers are the names */
    bool telling; /* the files' names are found in no other data set; else the folder's or the list's must be */
} att_packed_version;

enum { ATT_PACKED_BINARY, ATT_PACKED_PYTHON, ATT_PACKED_VERSIONS };

typedef struct att_packed_layout {
    const char *kind; /* "cifar10" */
    /* The files of Python's version are called as the binary version's, without ".bin" (data/packed_pickle.h). */
    att_packed_version versions[ATT_PACKED_VERSIONS];
    att_packed_split splits[2];         /* for training, for evaluation */
    const char *labels_key, *names_key; /* in Python's version */
    int side, classes;
    int label_bytes, label_at; /* before the planes, and which of these counts */
    int first_label;           /* what class 0 is called */
    bool by_columns;           /* planes run from top to bottom first, not from left to right */
} att_packed_layout;

/* What an att_data_format needs, for one layout. Files whose length is no multiple of a record's are refused, as are
 * labels that are no classes. */
bool att_packed_accepts(const att_packed_layout *layout, const att_dataset *dataset);
att_status att_packed_open(const att_packed_layout *layout, att_dataset *dataset, const att_dataset_options *options);
void att_packed_close(att_dataset *dataset);
void att_packed_name(const att_dataset *dataset, int64_t index, char *text, size_t size);
att_status att_packed_read(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                           const att_image_need *need, att_image *image);

#endif
