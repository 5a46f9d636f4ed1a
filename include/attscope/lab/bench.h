/* attscope/lab/bench.h - how fast networks and attention run here, beside what the machine's matrix products and memory
 * reach.
 *
 *   images/s          median over the repeats
 *   GEMM rate         operations per second of oneDNN's matmul on all threads, weights packed, no post-ops, over the
 *                     network's matrix products with the whole batch's forward shapes; Q K' and P V as products per
 *                     head; in bf16 where the network's are
 *   share             images/s (operations per image) / (GEMM rate). A convolution's product has each pixel's window
 *                     as a row, far more bytes than the convolution reads, and few columns: there GEMM is no ceiling
 *   operations        2 multiply-adds of those products; training counts three times the forward pass (forward,
 *                     gradient to the data, gradient to the weights)
 *   memory rate       bytes per second of a[i] = b[i] + s c[i] on all threads, arrays far beyond every cache, each
 *                     counted once (McCalpin's STREAM triad, 1995)
 *   floor             no less than operations / GEMM rate, and no less than bytes / memory rate. What stays in a cache
 *                     can be faster than the second
 */
#ifndef ATTSCOPE_LAB_BENCH_H
#define ATTSCOPE_LAB_BENCH_H

#include <attscope/data.h>
#include <attscope/models.h>
#include <attscope/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- networks ----------------------------------------------------------------------------------------------------- */

/* A standard case. */
typedef struct att_bench_case {
    const char *name; /* "seresnet164/train" */
    const char *model;
    const char *modules; /* the option of that name */
    bool training;
} att_bench_case;
ATT_API int att_bench_case_count(void);
ATT_API att_bench_case att_bench_case_at(int index);

typedef struct att_bench_options {
    const char *model;
    const att_option_values *network; /* NULL: the variant as it is */
    bool training;                    /* one AdamW update per batch; otherwise inference */
    const char *backend;              /* "cpu", "ref" */
    att_precision precision;          /* of the network and of the matrix products beside it */
    int batch_size;
    int repeats; /* timed runs of one batch, 1..1000 */
    int warmup;  /* runs before, 1 or more */
    bool profile;
    const char *instruments; /* that observe every run, and take its figures (attscope/measure.h); NULL: none */
    /* Called with each row of the profile where one is asked for, the costliest first. */
    void (*row)(void *user, const att_profile_row *row);
    void *row_user;
} att_bench_options;
/* "cpu", ATT_FULL, batch 32, 5 repeats after 2, no profile, no instruments. */
ATT_API att_bench_options att_bench_options_defaults(void);

typedef struct att_bench_result {
    int height, width; /* of an image */
    int64_t parameters;
    double gmacs;             /* of one image's forward pass */
    double images_per_second; /* median */
    double step_seconds;      /* median, one batch */
    double all_seconds;       /* of all timed runs together: what a profile's rows are parts of */
    double gemm_rate;         /* operations per second, median */
    double share;             /* of the GEMM rate; above 1 where convolutions pass over the products' rows */
    double memory_rate;       /* bytes per second, median */
    int64_t peak_bytes;       /* VmHWM of this process before the matrix products were made; 0: not known */
    att_plan_facts plan;
} att_bench_result;

/* Runs one case on random images in memory. The network's runs and the matrix products take turns, so that both meet
 * the same machine; the memory's follow. A process that only does this gives a meaningful peak_bytes. options->model,
 * network as in att_model_create(). Errors: ERR_ARGUMENT (an option out of range, a "ref" backend where the build lacks
 * it) and what making and running the network gives. */
ATT_API att_status att_bench_run(att_context *context, const att_bench_options *options, att_bench_result *result);

/* The seconds on all threads below which the work of a profile's row cannot be had: the larger of flops / gemm_rate and
 * bytes / memory_rate. */
ATT_API double att_bench_floor(const att_bench_result *result, const att_profile_row *row);

/* A case that is timed run by run, where several take turns: batch sizes, numbers of threads. Takes batches up to
 * options->batch_size; repeats, warmup and profile are ignored. On success *bench is the caller's. Errors as
 * att_bench_run(). */
typedef struct att_bench att_bench;
ATT_API ATT_MUST_CHECK att_status att_bench_create(att_context *context, const att_bench_options *options,
                                                   att_bench **bench);
ATT_API void att_bench_destroy(att_bench **bench);
/* One run of `batch` images. */
ATT_API att_status att_bench_time(att_bench *bench, int batch, double *seconds);

typedef struct att_bench_size {
    int64_t parameters;
    int64_t peak_bytes; /* VmHWM of this process up to now; 0: not known */
} att_bench_size;
ATT_API att_bench_size att_bench_size_of(const att_bench *bench);

/* --- attention alone ---------------------------------------------------------------------------------------------- */

typedef struct att_bench_attention_options {
    int64_t tokens; /* 1..1048576 */
    int heads, width;
    bool training;   /* forward and backward; otherwise forward */
    bool statistics; /* of every row, ATT_ATTENTION_STATS each */
    const char *backend;
    att_precision precision;
    int repeats, warmup; /* as in att_bench_options */
} att_bench_attention_options;
/* 1024 tokens, 3 heads of 64, forward without statistics; the rest as att_bench_options_defaults(). */
ATT_API att_bench_attention_options att_bench_attention_options_defaults(void);

typedef struct att_bench_attention_result {
    int images;           /* of one run: each thread's share has 2048 tokens or is one image */
    double image_seconds; /* median over the runs, a run's seconds over its images */
    double flops;         /* of an image: 4 N^2 heads width, three times that in training */
    double gemm_rate;     /* of Q K' and P V per head, for as many tokens but 1024 at most: maps are not stored */
    double share;         /* flops / image_seconds / gemm_rate */
    int64_t peak_bytes;   /* as in att_bench_result: of a run's images together */
} att_bench_attention_result;

/* Times attention with as little as possible around it: a bias before it, so that gradients reach it, and a mean over
 * tokens behind it. ATT_MIXED: the bias gives bf16. Errors: as att_bench_run(). */
ATT_API att_status att_bench_attention(att_context *context, const att_bench_attention_options *options,
                                       att_bench_attention_result *result);

/* --- kernels, one by one ------------------------------------------------------------------------------------------ */

typedef struct att_bench_kernel_row {
    const char *op, *name; /* name: of the op's case, "tiny_qkv" */
    const char *kernel;
    att_tier tier;
    bool taken;                   /* the one that plans take */
    double seconds, flops, bytes; /* of a call; bytes read and written, each value once */
} att_bench_kernel_row;

typedef struct att_bench_kernel_options {
    const char *backend;
    att_precision precision;                                     /* ATT_MIXED: every operand bf16 that may be */
    int repeats;                                                 /* 1..1000, each a millisecond of calls or more */
    bool (*wants)(void *user, const char *op, const char *name); /* NULL: all */
    void (*row)(void *user, const att_bench_kernel_row *row);
    void *row_user;
} att_bench_kernel_options;
/* "cpu", ATT_FULL, 5 repeats, all cases. */
ATT_API att_bench_kernel_options att_bench_kernel_options_defaults(void);

/* Times, on the calling thread alone and with a group of one, each kernel that takes a case which an op calls its
 * benchmark; kernels of one case follow each other, the one that plans take first. Median over the repeats. Errors:
 * ERR_ARGUMENT, ERR_NOT_FOUND, ERR_MEMORY and what the kernels give. */
ATT_API att_status att_bench_kernels(att_context *context, const att_bench_kernel_options *options);

/* --- the way of images to the network ---------------------------------------------------------------------------- */

typedef enum att_bench_data_what {
    ATT_BENCH_DECODE,   /* files to pixels */
    ATT_BENCH_EVALUATE, /* the same, then evaluation's transform: resize, centre crop, normalise */
    ATT_BENCH_AUGMENT,  /* the same with training's: random resized crop, flip, normalise */
    ATT_BENCH_LOADER    /* training's, by a loader in batches of 32 */
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
    int workers; /* of the loader; everything else runs on the calling thread */
    int height, width;
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
