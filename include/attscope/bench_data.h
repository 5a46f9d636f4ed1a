/* attscope/bench_data.h - how fast images come to a network here: from files, through transforms, by a loader.
 *
 * Decoding and transforms run on the calling thread alone, so that their figures are those of one core.
 */
#ifndef ATTSCOPE_BENCH_DATA_H
#define ATTSCOPE_BENCH_DATA_H

#include <attscope/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_bench_data_what {
    ATT_BENCH_DECODE,   /* files to pixels */
    ATT_BENCH_EVALUATE, /* files to evaluation's floats: resize, centre crop, normalise */
    ATT_BENCH_AUGMENT,  /* files to training's: random resized crop, flip, normalise */
    ATT_BENCH_LOADER    /* the same by a loader, in batches of 32 */
} att_bench_data_what;

typedef struct att_bench_data_case {
    const char *name; /* "data/decode" */
    att_bench_data_what what;
    int workers; /* of the loader */
} att_bench_data_case;
ATT_API int att_bench_data_case_count(void);
ATT_API att_bench_data_case att_bench_data_case_at(int index);

typedef struct att_bench_data_options {
    att_bench_data_what what;
    int workers; /* of the loader */
    int img_size;
    double crop_pct; /* of evaluation's transform */
    int repeats;     /* timed passes over the data set, 1..1000 */
    int warmup;      /* passes before, which also bring the files into the system's cache */
} att_bench_data_options;
/* 224 pixels, crop_pct 0.875 (resize to 256), 5 passes after 1. */
ATT_API att_bench_data_options att_bench_data_options_defaults(void);

/* Images a second, median over the passes. Errors: ERR_ARGUMENT, and what reading the images gives. */
ATT_API att_status att_bench_data(att_context *context, const att_dataset *dataset,
                                  const att_bench_data_options *options, double *images_per_second);

#ifdef __cplusplus
}
#endif
#endif
