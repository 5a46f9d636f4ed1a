/* data/packed.h - data sets of small colour images of equal size, in a few binary files without a header (or in pickles
 * with the same contents). The files are in a folder, in a folder of the official name inside that folder, in an
 * archive, or in the official archive inside a folder.
 *
 * A file consists of records of equal length. A record consists of the label (unless a separate file holds the labels)
 * and the image's three planes. */
#ifndef ATT_DATA_PACKED_H
#define ATT_DATA_PACKED_H

#include "data/dataset.h"

enum { ATT_PACKED_FILES = 5 };

typedef struct att_packed_split {
    const char *name;                    /* "train" */
    const char *files[ATT_PACKED_FILES]; /* image files, in order; NULL past the last */
    const char *labels;                  /* file with one byte per image; NULL: labels are in the records */
} att_packed_split;

/* One of the file formats in which the same images are distributed. */
typedef struct att_packed_version {
    const char *archive;     /* name of the official archive, "cifar-10-binary.tar.gz"; NULL: no such version */
    const char *folder;      /* name of the folder in the archive */
    const char *class_names; /* file with one name per line; without the file, the numbers are the names */
    bool unique_names; /* no other data set has files of these names; otherwise the folder's name or the file of class
                     names must match as well */
} att_packed_version;

enum { ATT_PACKED_BINARY, ATT_PACKED_PYTHON, ATT_PACKED_VERSIONS };

typedef struct att_packed_layout {
    const char *kind; /* "cifar10" */
    /* Files of the Python version have the binary version's names without ".bin" (data/packed_pickle.h). */
    att_packed_version versions[ATT_PACKED_VERSIONS];
    att_packed_split splits[2];         /* training, evaluation */
    const char *labels_key, *names_key; /* dictionary keys in the Python version */
    int side, classes;
    int label_bytes, label_at; /* label bytes in front of the planes, and the index of the label byte that is used */
    int first_label;           /* label of class 0 */
    bool column_major;         /* planes are stored column by column instead of row by row */
} att_packed_layout;

/* Implement the functions of an att_data_format for a layout. Files whose length is not a multiple of the record
 * length, and labels out of range, are refused. */
bool att_packed_accepts(const att_packed_layout *layout, const att_dataset *dataset);
att_status att_packed_open(const att_packed_layout *layout, att_dataset *dataset, const att_dataset_options *options);
void att_packed_close(att_dataset *dataset);
void att_packed_name(const att_dataset *dataset, int64_t index, char *text, size_t size);
att_status att_packed_read(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                           const att_image_need *need, att_image *image);

#endif
