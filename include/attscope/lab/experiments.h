/* attscope/lab/experiments.h - the four tasks of "Attention is not all you need: pure attention loses rank doubly
 * exponentially with depth" (Dong, Cordonnier, Loukas, ICML 2021).
 *
 * Sorting, convex hull and memorisation train a self-attention network of L layers and H heads, and then ask how well
 * single paths through it do. A path of length k uses k of the L layers and one head in each; it bypasses all other
 * layers. Which layers and which heads is drawn uniformly. In a layer of the path with head h
 *
 *     x <- norm(P_h(x) (x V_h' + v_h) O_h' + o),   P_h(x) = softmax((x Q_h' + q_h)(x K_h' + k_h)' / sqrt(d)),
 *
 * where V_h are the rows of the layer's value weight that belong to head h, O_h the columns of its output weight, o its
 * whole output bias, and norm the layer norm without weight and bias. So every layer computes its attention from the
 * state of the path itself, and no skip connection is left. The states of several paths are added, normed and
 * classified. (The paper's public code; in the paper itself a path takes its attention from the whole network.)
 *
 * Circle trains one layer to move two points along a circle, and then applies it to its own output.
 */
#ifndef ATTSCOPE_LAB_EXPERIMENTS_H
#define ATTSCOPE_LAB_EXPERIMENTS_H

#include <attscope/context.h>
#include <attscope/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A way in which the public code differs from the experiment's description; off by default. */
typedef struct att_experiment_quirk {
    const char *name;    /* "padding" */
    const char *summary; /* what it does */
} att_experiment_quirk;

typedef struct att_experiment_info {
    const char *name;    /* "sort" */
    const char *summary; /* one line */
    const char *reading; /* data, network and training, and where they differ from the paper's; several sentences */
    int depth, heads, width;
    const char *optimizer; /* "adam", "adamw" */
    double lr;
    int batch_size, epochs;
    bool paths;                         /* measures paths; false: circle */
    bool texts;                         /* reads att_experiment_options.texts */
    const att_experiment_quirk *quirks; /* the last has no name; NULL: none */
    double published_whole;             /* accuracy of the whole network in the public code; NaN if there is none */
    double published_baseline;          /* and of its baseline */
} att_experiment_info;

/* Returns the number of experiments, and experiment `index`; NULL if there is none. */
ATT_API int att_experiment_count(void);
ATT_API const att_experiment_info *att_experiment_at(int index);
/* Errors: ERR_NOT_FOUND, whose message suggests a similar name. */
ATT_API att_status att_experiment_find(att_context *context, const char *name, const att_experiment_info **info);

typedef struct att_experiment_options {
    int epochs;                /* 0: as the experiment says */
    double lr;                 /* 0: as the experiment says */
    int repeats;               /* draws of paths for each length, for each network */
    int seeds;                 /* networks that are trained, with the seeds seed, seed + 1, .. */
    uint64_t seed;             /* of data, weights, order of samples, dropout and paths */
    const char *texts;         /* memorize: file with one text per line; NULL: generated texts */
    const char *tokenizer;     /* divides `texts`, as for att_tokenizer_open() (attscope/tokenizer.h); NULL: words and
                                  single other characters */
    bool mlp;                  /* an MLP in every layer; refused for circle, which trains with and without */
    const char *const *quirks; /* names of the experiment's quirks to turn on; "all": all of them */
    int quirk_count;
    const char *folder;       /* of the record, which is created if missing (att_experiment_run()); NULL: no record */
    att_progress_fn progress; /* NULL: none */
    void *user;
} att_experiment_options;
/* Five repeats, one network with seed 0. */
ATT_API att_experiment_options att_experiment_options_defaults(void);

enum {
    ATT_EXPERIMENT_LENGTHS = 7,
    ATT_EXPERIMENT_SUMS = 2,
    ATT_EXPERIMENT_SAMPLED = 5 * ATT_EXPERIMENT_LENGTHS,
    ATT_CIRCLE_VARIANTS = 3,
    ATT_CIRCLE_STEPS = 300
};

/* Mean and sample standard deviation (n - 1) of n values; the deviation is NaN for a single one. Values are those of
 * the draws of paths through one network; with several seeds those of the networks, each the mean over its draws. */
typedef struct att_experiment_score {
    double mean, deviation;
    int64_t n;
} att_experiment_score;

/* A path, and how well it does alone. heads: for each layer 0 if the path bypasses it, else 1 + the head's number. */
typedef struct att_experiment_path {
    int length, heads[ATT_EXPERIMENT_LENGTHS - 1];
    double accuracy;
} att_experiment_path;

/* A variant of circle, after training. */
typedef struct att_circle_result {
    const char *name;                      /* "base", "skip", "mlp" */
    att_experiment_score loss;             /* mean over the last epoch of the summed squared error of a sample */
    double points[ATT_CIRCLE_STEPS][2][2]; /* first network, after step i: x and y of both points; step 0: the start */
    att_experiment_score radius_error;     /* mean over steps and points of | |p| - 0.3 | */
    att_experiment_score distance;         /* between both points at the end; 0.6 at the start */
} att_circle_result;

typedef struct att_experiment_result {
    int training_samples, evaluation_samples;
    int64_t tokens; /* evaluated tokens */
    int vocabulary; /* sort, memorize: number of different tokens; else 0 */
    int epochs;     /* of each training run */
    double lr;
    int64_t updates;               /* of one training run */
    att_experiment_score loss;     /* mean per token over the last epoch, with dropout */
    int lengths;                   /* path lengths 0 .. lengths - 1; 0 for circle */
    int sums[ATT_EXPERIMENT_SUMS]; /* number of paths that are added: 5, 20 */
    att_experiment_score paths[ATT_EXPERIMENT_SUMS][ATT_EXPERIMENT_LENGTHS]; /* share of tokens that are right */
    att_experiment_score whole;                                              /* the same for the whole network */
    att_experiment_score baseline; /* share of the most frequent class among the evaluated tokens */
    int sampled_count;             /* the different paths of the first network's first sum of 5 of each length */
    att_experiment_path sampled[ATT_EXPERIMENT_SAMPLED];
    int circle_count;
    att_circle_result circle[ATT_CIRCLE_VARIANTS];
} att_experiment_result;

/* Makes the data, trains and measures. The result depends on the options and the processor, not on the number of
 * threads.
 *
 * options->folder gets measure.jsonl, which att_report_write() shows (att_store_open_measured()): "path_accuracy" is
 * the accuracy of sums of paths ("sum.5.length.2"), of the sampled paths alone ("length.1.path.0-2-0-0-0-0", as in
 * att_experiment_path), and the figures "whole" and "baseline"; "circle" is the figures of its variants, whose samples
 * are the trajectories ("base.first" and "base.second", x and y).
 *
 * Errors: ERR_NOT_FOUND (no such experiment; no such file); ERR_ARGUMENT (an option out of range, or not of this
 * experiment; a tokenizer without texts); ERR_FORMAT (no text in the file); those of att_tokenizer_open();
 * ERR_NONFINITE (the training diverged); ERR_STOPPED; ERR_MEMORY; those of the record. After a failure an earlier
 * record is unchanged. */
ATT_API ATT_MUST_CHECK att_status att_experiment_run(att_context *context, const char *name,
                                                     const att_experiment_options *options,
                                                     att_experiment_result *result);

#ifdef __cplusplus
}
#endif
#endif
