/* data/shards.h - WebDataset shards: tars in which the files of one sample follow each other.
 *
 * The files of a sample have the same key: the path up to the first dot of its last part. The rest of the name says
 * what a file is: jpg, jpeg, png or webp is the image; cls is the label, as a decimal number or as the name of a class;
 * json is an object, whose member "label" is the label if there is no cls. If both are numbers, or both are names, they
 * must be the same. So "2.5.png" has the key "2" and is no image of its sample, as in the webdataset library.
 */
#ifndef ATT_DATA_SHARDS_H
#define ATT_DATA_SHARDS_H

#include "base/io/archive.h"
#include "data/tar_index.h"

enum { ATT_SHARD_MOST_NAME = 255 }; /* bytes of a class name */

typedef struct att_shard_sample {
    int64_t image;      /* file of the archive; -1: the sample has no image */
    int64_t others;     /* number of further images: of another kind, such as "left.png", or after the first */
    int64_t other;      /* the first of these; -1: none */
    bool labelled;      /* there is a label, or a cls that should hold one, also of another kind, such as "5.cls" */
    bool others_beside; /* there are files that are neither images nor hidden */
    att_label_state state;
    int32_t label;                            /* -1: none, or a name */
    char class_name[ATT_SHARD_MOST_NAME + 1]; /* ATT_LABEL_READ: the name, or "". ATT_LABEL_NO_CLASS: what is there */
    int64_t begin, end; /* its first file, and that of the next sample; hidden files are skipped */
} att_shard_sample;

/* Reads the sample that begins with file `begin`. Errors: ERR_IO, ERR_MEMORY, ERR_STOPPED. */
att_status att_shard_sample_read(const att_archive *archive, att_context *context, int64_t begin,
                                 att_shard_sample *sample);
/* Whether a label could be the name of a class, and of the class's folder. */
bool att_shard_is_class_name(const char *text);

#endif
