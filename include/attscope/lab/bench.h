/* attscope/lab/bench.h - benchmarks of networks, attention, kernels and image loading, compared with the speed of the
 * machine's matrix products and memory.
 *
 *   images/s          median over the repeats
 *   GEMM rate         operations per second of oneDNN's matmul on all threads, with packed weights and no
 *                     post-ops, over the network's matrix products in their forward shapes for the whole batch.
 *                     Q K' and P V are one product per head. The products are in bf16 if the network's are
 *   share             images/s (operations per image) / (GEMM rate). Convolutions can exceed the GEMM rate: as a
 *                     matrix product, a convolution has one row for the window of each output pixel, so that it
 *                     reads far more bytes than the convolution itself, and it has few columns
 *   operations        two per multiply-add of these products. Training counts three times the forward pass:
 *                     forward, gradient with respect to the data, gradient with respect to the weights
 *   memory rate       bytes per second of a[i] = b[i] + s c[i] on all threads, with arrays much larger than the
 *                     caches; each array is counted once (McCalpin's STREAM triad, 1995)
 *   floor             the larger of operations / GEMM rate and bytes / memory rate. A kernel can be faster than
 *                     bytes / memory rate if its data stays in a cache
 */
#ifndef ATTSCOPE_LAB_BENCH_H
#define ATTSCOPE_LAB_BENCH_H

#include <attscope/comm.h>
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
    const char *modules; /* the network's option "modules" */
    bool training;
} att_bench_case;
ATT_API int att_bench_case_count(void);
ATT_API att_bench_case att_bench_case_at(int index);

typedef struct att_bench_options {
    const char *model;
    const att_option_values *network; /* options of the network; NULL: the variant's own */
    bool training;                    /* one AdamW update per batch; otherwise inference */
    const char *backend;              /* "cpu", "ref" */
    att_precision precision;          /* of the network and of the matrix products beside it */
    int batch_size;
    int repeats; /* timed runs of one batch, 1..1000 */
    int warmup;  /* runs before the timed ones, at least 1 */
    bool profile;
    const char *instruments; /* instruments that observe every run, timed too (attscope/measure.h); NULL: none */
    att_comm *comm;       /* training: the processes that share each batch of batch_size images; NULL: this one alone */
    bool sync_statistics; /* as in att_plan_options */
    const char *freeze;   /* training: parameters that are not trained, as in att_train_options; NULL: none */
    /* If `profile` is set, called with each row of the profile, the most expensive first. */
    void (*row)(void *user, const att_profile_row *row);
    void *row_user;
} att_bench_options;
/* "cpu", ATT_FULL, batch 32, 5 repeats after 2 warm-up runs, no profile, no instruments. */
ATT_API att_bench_options att_bench_options_defaults(void);

/* Memory in bytes that a network reserves. Of what it reserves, it uses what its batches need. */
typedef struct att_bench_memory {
    size_t weights;   /* without those that are given back when they are packed */
    size_t trained;   /* training: gradients and the optimiser's slots */
    size_t packed;    /* packed and derived weights */
    size_t layers;    /* values between layers, and scratch */
    size_t kept;      /* values that are kept for the batch */
    size_t transfers; /* inputs and outputs of the batch */
} att_bench_memory;

typedef struct att_bench_result {
    int height, width; /* of the images */
    int64_t parameters;
    double gmacs;             /* billions of multiply-adds of the forward pass of one image */
    double images_per_second; /* median */
    double step_seconds;      /* median, one batch */
    double all_seconds;       /* sum over the timed runs; the rows of a profile are parts of it */
    double gemm_rate;         /* operations per second, median; like the next two, 0 for the backend "cuda" */
    double share;             /* share of the GEMM rate; can exceed 1 with convolutions, see above */
    double memory_rate;       /* bytes per second, median */
    int64_t peak_bytes;       /* VmHWM of this process before the matrix products are timed; 0: unknown */
    double compile_seconds;   /* of the plan and its session, which packs no weights yet */
    att_bench_memory memory;
    att_plan_facts plan;
} att_bench_result;

/* Benchmarks one network on random images in memory. Runs of the network and matrix products alternate, so that both
 * see the same state of the machine; the memory rate is measured afterwards. peak_bytes is meaningful only if the
 * process does nothing else. options->model, options->network: as in att_model_create(). Errors: ERR_ARGUMENT (an
 * option out of range; "ref" in a build without that backend); those of building and running the network. */
ATT_API att_status att_bench_run(att_context *context, const att_bench_options *options, att_bench_result *result);

/* Returns a lower bound for the seconds that the work of a profile's row takes on all threads: the larger of
 * flops / gemm_rate and bytes / memory_rate. */
ATT_API double att_bench_floor(const att_bench_result *result, const att_profile_row *row);

/* A network that the caller times run by run, to alternate between several cases, such as batch sizes or numbers of
 * threads. Batches may have up to options->batch_size images; repeats, warmup and profile are ignored. On success the
 * caller owns *bench and frees it with att_bench_destroy(). Errors: those of att_bench_run(). */
typedef struct att_bench att_bench;
ATT_API ATT_MUST_CHECK att_status att_bench_create(att_context *context, const att_bench_options *options,
                                                   att_bench **bench);
ATT_API void att_bench_destroy(att_bench **bench);
/* Times one run with `batch` images, 1..options->batch_size, and writes the time to *seconds. Errors: those of running
 * the network. */
ATT_API att_status att_bench_time(att_bench *bench, int batch, double *seconds);

typedef struct att_bench_size {
    int64_t parameters;
    int64_t peak_bytes; /* VmHWM of this process so far; 0: unknown */
} att_bench_size;
ATT_API att_bench_size att_bench_size_of(const att_bench *bench);

/* --- algebraic rewritings ----------------------------------------------------------------------------------------- */

/* A network, in training, that uses some of the algebraic rewritings of plans (docs/architecture.md). */
typedef struct att_bench_pattern_case {
    const char *model, *modules; /* modules: the network's option "modules" */
    int batch_size;
} att_bench_pattern_case;
ATT_API int att_bench_pattern_case_count(void);
ATT_API att_bench_pattern_case att_bench_pattern_case_at(int index);

typedef struct att_bench_pattern_row {
    const char *pattern;
    int turns;                /* options->repeats, or more for half a second each on average */
    double seconds;           /* of a batch with all rewritings, median over the turns */
    double gain, least, most; /* time without the rewriting / time with it - 1: median and range over the turns */
    double kept_gain;         /* the same of the bytes kept between segments; 0 if none are kept with it */
} att_bench_pattern_row;

/* Trains a network with all rewritings and with all but one, in turns, for each rewriting that changes its plan and
 * that wants() accepts (NULL: all), and calls row(). Before them, "none" compares two equal plans: its gain is noise.
 * With one thread on "cpu" times are processor times, which other programs hardly change. options->training, profile
 * and instruments are ignored. Errors: those of att_bench_run(). */
ATT_API att_status att_bench_patterns(att_context *context, const att_bench_options *options,
                                      bool (*wants)(void *user, const char *pattern),
                                      void (*row)(void *user, const att_bench_pattern_row *row), void *user);

/* --- several processes -------------------------------------------------------------------------------------------- */

/* What one process did in a step, the mean over the timed steps. See att_comm_figures. */
typedef struct att_bench_rank {
    int threads;
    double bytes_sent, bytes_received;
    double sum_seconds, sum_wait_seconds, wait_seconds;
} att_bench_rank;

typedef struct att_bench_processes_result {
    int lanes;
    double step_seconds, images_per_second; /* medians, of all processes together */
    /* Of all gradients. They are summed once per step: the chain and the broadcast of P processes send 2 (P - 1) times
     * as many bytes, each process at most twice as many. */
    int64_t gradient_bytes;
    double overlap;       /* share of the time of all sums that is hidden behind computation, 0..1; 0 for one process */
    double alone_seconds; /* median of a sum of gradient_bytes while nothing is computed; 0 for one process */
    int slowest;          /* the rank that waits least for the others */
} att_bench_processes_result;

/* Benchmarks training with the processes of options->comm, all of which make this call with the same options. Every
 * process receives the same results. options->training, profile and instruments are ignored. ranks: has one element
 * for each process. Errors: those of att_bench_run(); ERR_IO if another process fails. */
ATT_API att_status att_bench_processes(att_context *context, const att_bench_options *options,
                                       att_bench_processes_result *result, att_bench_rank *ranks);

/* --- attention alone ---------------------------------------------------------------------------------------------- */

typedef struct att_bench_attention_options {
    int64_t tokens;   /* 1..1048576 */
    int heads, width; /* width: of a head */
    bool training;    /* forward and backward; otherwise forward */
    bool statistics;  /* also ATT_ATTENTION_STATS statistics of every row */
    const char *backend;
    att_precision precision;
    int repeats, warmup; /* as in att_bench_options */
} att_bench_attention_options;
/* 1024 tokens, 3 heads of 64, forward without statistics; the rest as att_bench_options_defaults(). */
ATT_API att_bench_attention_options att_bench_attention_options_defaults(void);

typedef struct att_bench_attention_result {
    int images;           /* images of one run: enough for 2048 tokens per thread, at least one image per thread */
    double image_seconds; /* seconds of a run / images; median over the runs */
    double flops;         /* of an image: 4 N^2 heads width, three times that in training */
    double gemm_rate;     /* of Q K' and P V per head, at most 1024 tokens, because attention stores no whole maps */
    double share;         /* flops / image_seconds / gemm_rate */
    int64_t peak_bytes;   /* as in att_bench_result, for all images of a run */
} att_bench_attention_result;

/* Times attention in a minimal network: a bias before it, so that it gets gradients, and a mean over tokens after it.
 * With ATT_MIXED the bias outputs bf16. Errors: those of att_bench_run(). */
ATT_API att_status att_bench_attention(att_context *context, const att_bench_attention_options *options,
                                       att_bench_attention_result *result);

/* --- kernels, one by one ------------------------------------------------------------------------------------------ */

typedef struct att_bench_kernel_row {
    const char *op, *name; /* name: the op's benchmark case, "tiny_qkv" */
    const char *kernel;
    const char *tier;             /* name of the features that the kernel needs (context.h) */
    bool taken;                   /* plans select this kernel */
    double seconds, flops, bytes; /* per call; bytes: read and written, each value once */
} att_bench_kernel_row;

typedef struct att_bench_kernel_options {
    const char *backend;
    att_precision precision; /* ATT_MIXED: every operand is bf16 where the kernel allows it */
    int repeats;             /* 1..1000, each at least a millisecond of calls */
    bool (*wants)(void *user, const char *op, const char *name); /* whether to time this case; NULL: all */
    void (*row)(void *user, const att_bench_kernel_row *row);
    void *row_user;
} att_bench_kernel_options;
/* "cpu", ATT_FULL, 5 repeats, all cases. */
ATT_API att_bench_kernel_options att_bench_kernel_options_defaults(void);

/* Times each kernel on each benchmark case of its op that the kernel supports, on the calling thread, with groups of
 * one sample. Kernels of one case follow each other, the one that plans select first. Times are medians over the
 * repeats. Errors: ERR_ARGUMENT, ERR_NOT_FOUND, ERR_MEMORY, and those of the kernels. */
ATT_API att_status att_bench_kernels(att_context *context, const att_bench_kernel_options *options);

/* --- loading images ----------------------------------------------------------------------------------------------- */

typedef enum att_bench_data_what {
    ATT_BENCH_DECODE,   /* decode files to pixels */
    ATT_BENCH_EVALUATE, /* decode, then the transform of evaluation: resize, centre crop, normalise */
    ATT_BENCH_AUGMENT,  /* decode, then the transform of training: random resized crop, flip, normalise */
    ATT_BENCH_LOADER    /* as ATT_BENCH_AUGMENT, by a loader in batches of 32 */
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
    double crop_pct; /* of the transform of evaluation */
    int repeats;     /* timed passes over the data set, 1..1000 */
    int warmup;      /* passes before the timed ones, which also load the files into the page cache */
} att_bench_data_options;
/* 224 pixels, crop_pct 0.875 (resize to 256), 5 passes after 1 warm-up pass. */
ATT_API att_bench_data_options att_bench_data_options_defaults(void);

/* Measures images per second, the median over the passes. Errors: ERR_ARGUMENT; those of reading the images. */
ATT_API att_status att_bench_data(att_context *context, const att_dataset *dataset,
                                  const att_bench_data_options *options, double *images_per_second);

#ifdef __cplusplus
}
#endif
#endif
