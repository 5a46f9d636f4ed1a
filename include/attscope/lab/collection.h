/* attscope/lab/collection.h - all measured runs of a database, sorted by the images on which they were measured. */
#ifndef ATTSCOPE_LAB_COLLECTION_H
#define ATTSCOPE_LAB_COLLECTION_H

#include <attscope/lab/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The runs that OUTPUT/runs.sqlite lists. Their figures are read from the files in their folders. */
typedef struct att_collection att_collection;

/* Runs that were measured on the same images with the same precision. Figures of other images are not comparable. */
typedef struct att_collection_part {
    const char *data, *split; /* path of the data and split, as the first run recorded them; "" if not recorded */
    double images;            /* number of images; NaN if not recorded */
    int runs, settings;
} att_collection_part;

/* Reads the runs of the database whose folder, relative to that of the database, matches `pattern` ('*' and '?'
 * allowed; NULL: all). Left out, with a line in the log: runs whose folder is missing or has no measurement of a
 * checkpoint. On success the caller owns *collection and frees it with att_collection_destroy(). Errors: ERR_NOT_FOUND
 * (there is no such file); ERR_ARGUMENT (`path` is NULL; more than ATT_SWEEP_MOST_RUNS runs); ERR_FORMAT (the database
 * or a record is damaged); ERR_UNSUPPORTED in a library without SQLite; ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_collection_read(att_context *context, const char *path, const char *pattern,
                                                      att_collection **collection);
ATT_API void att_collection_destroy(att_collection **collection);

ATT_API int att_collection_count(const att_collection *collection);
/* Part 0..count-1, in the order of their first runs; all zero for another index. Texts live as long as `collection`. */
ATT_API att_collection_part att_collection_at(const att_collection *collection, int part);

/* Statistics over the runs of a part. Runs that differ in nothing but the seed and in options without influence on the
 * result (threads, folders, ...) are one setting. A setting is called by the options in which settings differ. pairs,
 * pair_count: the figures to correlate, at most ATT_SWEEP_MOST_PAIRS; pair_count 0 means each instrument's predictor,
 * in each reading, with each instrument's score (att_instrument_info). seed: for permutations and resamples. On success
 * the caller owns *sweep and frees it with att_sweep_destroy(); it may outlive the collection. Errors: ERR_ARGUMENT
 * (part or pair_count out of range, NULL), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_collection_sweep(const att_collection *collection, int part,
                                                       const att_sweep_pair *pairs, int pair_count, uint64_t seed,
                                                       att_sweep **sweep);

#ifdef __cplusplus
}
#endif
#endif
