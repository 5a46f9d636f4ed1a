/* data/tar_index.h - where the files of a set of plain tars lie, and the index file that keeps this list.
 *
 * Listing the tars of ImageNet reads 1.28 million headers. The index file makes this necessary only once. It is bound
 * to the names, sizes and modification times of the tars.
 *
 * The index file begins with 16 bytes, "attscope tars 3\n". Then follow the FNV-1a hash of the rest (8 bytes, least
 * significant first) and the rest, a sequence of numbers in LEB128 and of bytes. A text is its length and its bytes:
 *
 *     number of tars; of each: name, size, modification time (seconds, nanoseconds)
 *     1 if the tars are shards (data/shards.h), else 0; number of skipped members
 *     number and first path of the samples without an image; the same of the further images of samples
 *     number of entries
 *     of each entry: tar; offset; size; state of its label; label + 1; class name; number of bytes that its path shares
 *     with the path before; the other bytes of the path as a text
 */
#ifndef ATT_DATA_TAR_INDEX_H
#define ATT_DATA_TAR_INDEX_H

#include <attscope/context.h>

#include "base/core/memory.h"

typedef struct att_tar_file {
    const char *name; /* path relative to the folder of the set */
    uint64_t size;
    int64_t seconds; /* modification time; 0 or later */
    int64_t nanoseconds;
} att_tar_file;

/* Whether a sample of a shard can be used with its label. */
typedef enum att_label_state {
    ATT_LABEL_READ, /* also that of a file that is no sample */
    ATT_LABEL_MISSING,
    ATT_LABEL_NO_CLASS, /* neither a number from 0 to ATT_TAR_MOST_LABEL nor the name of a class */
    ATT_LABEL_TWO,      /* the cls and the json file have different labels */
    ATT_LABEL_REPEATED, /* an image, a cls or a json is there twice, so that it is unknown which belong together */
    ATT_LABEL_STATES
} att_label_state;

typedef struct att_tar_entry {
    const char *path;
    uint64_t offset, size; /* of its data in the tar */
    int32_t tar;           /* number of the tar */
    att_label_state state;
    int32_t label;          /* -1: none */
    const char *class_name; /* in shards whose labels are names, or ATT_LABEL_NO_CLASS: the label; "": none */
} att_tar_entry;

/* Things that the data set does not use. */
typedef struct att_tar_unused {
    int64_t count;
    const char *first; /* path of the first of them; "": there is none */
} att_tar_unused;

/* Zero-initialise, then set `arena.context`. The arena owns all texts. */
typedef struct att_tar_index {
    att_arena arena;
    att_tar_file *tars;
    int tar_count;
    bool shards;
    att_tar_entry *entries;
    int64_t count, capacity;
    int64_t skipped; /* links, devices, sparse files and unsafe names in the tars */
    /* Of shards: samples without an image, and images that are not the image of their sample. */
    att_tar_unused imageless, further;
} att_tar_index;

enum { ATT_TAR_MOST = 1 << 20, ATT_TAR_MOST_PATH = 8191, ATT_TAR_MOST_LABEL = (1 << 20) - 1 };

/* Adds an entry; copies its path, which has at most ATT_TAR_MOST_PATH bytes, and its class name, which has at most
 * ATT_SHARD_MOST_NAME. */
att_status att_tar_index_add(att_tar_index *index, const att_tar_entry *entry);
/* Adds `count` things to `unused`, one of the lists of the index, the first of which has this path. */
att_status att_tar_index_count(att_tar_index *index, att_tar_unused *unused, int64_t count, const char *path);
/* Writes the index file atomically. */
att_status att_tar_index_write(const att_tar_index *index, const char *path);
/* Adds the entries of the index file to an index with the same tars and without entries. After a failure the index has
 * no entries. Errors: ERR_MISMATCH (the file is about other tars, or the tars have changed), ERR_FORMAT (damaged, or of
 * another version), ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_tar_index_read(att_tar_index *index, const char *path);
/* Frees the index, including its tars. */
void att_tar_index_free(att_tar_index *index);

#endif
