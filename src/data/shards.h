/* data/shards.h - WebDataset shards: tars in which the files of one sample follow each other.
 *
 * The files of a sample have the same key: the path up to the first dot of its last part. The rest of the name says
 * what a file is: jpg, jpeg, png or webp is the image; cls is its label as a decimal number; json is an object, whose
 * member "label" is the label if there is no cls.
 */
#ifndef ATT_DATA_SHARDS_H
#define ATT_DATA_SHARDS_H

#include "io/archive.h"

typedef struct att_shard_sample {
    int64_t image; /* file of the archive; -1: the sample has no image */
    int32_t label; /* -1: none that can be read */
    int64_t end;   /* first file of the next sample */
} att_shard_sample;

/* Reads the sample that begins with file `begin`. Errors: ERR_IO, ERR_MEMORY, ERR_STOPPED. */
att_status att_shard_sample_read(const att_archive *archive, att_context *context, int64_t begin,
                                 att_shard_sample *sample);

#endif
