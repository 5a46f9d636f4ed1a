/* records/raw.h - values of single images, written to files while a network runs. */
#ifndef ATT_RECORDS_RAW_H
#define ATT_RECORDS_RAW_H

#include <attscope/lab/measuring.h>
#include <attscope/safetensors.h>

#include "base/core/memory.h"
#include "base/io/file.h"

/* An array [images, shape of one image]. Row i is that of image i of the data set. */
typedef struct att_raw_array {
    char name[256];
    att_safetensors_dtype dtype;
    att_shape shape; /* [images, ...] */
    size_t bytes;    /* of one image */
    /* Of raw_files.c: */
    att_file_writer *file; /* its own, or NULL: the common file */
    uint64_t offset;       /* of the first image in the file */
} att_raw_array;

/* What the files say about the arrays: values are JSON texts, or plain texts if `plain`. */
typedef struct att_raw_fact {
    const char *key, *value;
    bool plain;
} att_raw_fact;

typedef struct att_raw_files {
    att_context *context;
    const char *path;
    att_raw_array *arrays;
    int count;
    att_file_writer *common, *index; /* the safetensors file; index.json of a folder */
    bool folder_is_new;
} att_raw_files;

/* Whether the path names a kind of file that can be written; `count`: number of arrays, 0 if it is not known yet.
 * Errors: ERR_ARGUMENT. */
att_status att_raw_check_path(att_context *context, const char *path, int count);
/* Opens the files of `files->arrays` at files->path. On success the caller ends with att_raw_files_commit() or
 * att_raw_files_abort(). */
att_status att_raw_files_open(att_raw_files *files, const att_raw_fact *facts, int fact_count);
/* Writes an array's row of an image. */
att_status att_raw_files_put(att_raw_files *files, const att_raw_array *array, int64_t image, const void *row);
/* Puts the files into place. */
att_status att_raw_files_commit(att_raw_files *files);
/* Removes what was written. Does nothing after a commit. */
void att_raw_files_abort(att_raw_files *files);

/* The raw output of one measurement. */
typedef struct att_raw att_raw;
/* Adds probes to the graph of `observed` and reserves memory. which: a list of "zeta", "rows" and "weights"; NULL: zeta
 * and rows, as far as the network has them. nodes: pattern of names. Errors: ERR_ARGUMENT (another word in the list, or
 * nothing to write). */
att_status att_raw_create(const att_model *observed, const char *which, const char *nodes, att_raw **raw);
/* Opens the files. facts: what else they say. */
att_status att_raw_open(att_raw *raw, const char *path, const att_dataset *dataset, const att_raw_fact *facts,
                        int fact_count);
/* An att_evaluate_options.observed; user: the att_raw. Without att_raw_open(), as in processes that do not write, it
 * only reads the values. */
att_status att_raw_observe(void *user, att_session *session, const att_batch *batch);
/* Fills the rows of images that were left out with NaN, and puts the files into place. */
att_status att_raw_commit(att_raw *raw);
/* Frees everything, and removes files that were not committed. NULL is allowed. */
void att_raw_destroy(att_raw **raw);
/* Checks a list as att_raw_create() does. */
att_status att_raw_check_list(att_context *context, const char *which);

#endif
