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

typedef struct att_experiment_info {
    const char *name;    /* "sort" */
    const char *summary; /* one line */
    const char *reading; /* data, network and training, and where they differ from the paper's; several sentences */
    int depth, heads, width;
    const char *optimizer; /* "adam", "adamw" */
    double lr;
    int batch_size, epochs;
    bool paths;                /* measures paths; false: circle */
    bool texts;                /* reads att_experiment_options.texts */
    double published_whole;    /* accuracy of the whole network in the public code; NaN if there is none */
    double published_baseline; /* and of its baseline */
} att_experiment_info;

/* Returns the number of experiments, and experiment `index`; NULL if there is none. */
ATT_API int att_experiment_count(void);
ATT_API const att_experiment_info *att_experiment_at(int index);
/* Errors: ERR_NOT_FOUND, whose message suggests a similar name. */
ATT_API att_status att_experiment_find(att_context *context, const char *name, const att_experiment_info **info);

typedef struct att_experiment_options {
    int epochs;               /* 0: as the experiment says */
    double lr;                /* 0: as the experiment says */
    int repeats;              /* draws of paths for each length */
    uint64_t seed;            /* of data, weights, order of samples, dropout and paths */
    const char *texts;        /* memorize: file with one text per line; NULL: generated texts */
    bool mlp;                 /* an MLP in every layer; refused for circle, which trains with and without */
    bool in_order;            /* do not shuffle the training samples */
    att_progress_fn progress; /* NULL: none */
    void *user;
} att_experiment_options;
/* Five repeats, seed 0. */
ATT_API att_experiment_options att_experiment_options_defaults(void);

enum { ATT_EXPERIMENT_LENGTHS = 7, ATT_EXPERIMENT_SUMS = 2, ATT_CIRCLE_VARIANTS = 3, ATT_CIRCLE_STEPS = 300 };

/* Mean and sample standard deviation; the latter is NaN for a single repeat. */
typedef struct att_experiment_score {
    double mean, deviation;
} att_experiment_score;

/* A variant of circle, after training. */
typedef struct att_circle_result {
    const char *name;                      /* "base", "skip", "mlp" */
    double loss;                           /* mean over the last epoch of the summed squared error of a sample */
    double points[ATT_CIRCLE_STEPS][2][2]; /* after step i: x and y of both points; step 0 is the start */
    double radius_error;                   /* mean over steps and points of | |p| - 0.3 | */
    double distance[2];                    /* between both points at the start and at the end */
} att_circle_result;

typedef struct att_experiment_result {
    int training_samples, evaluation_samples;
    int64_t tokens; /* evaluated tokens */
    int vocabulary; /* sort, memorize: number of different tokens; else 0 */
    int epochs;     /* of the training */
    double lr;
    int64_t updates;               /* of one training */
    double loss;                   /* mean per token over the last epoch, with dropout */
    int lengths;                   /* path lengths 0 .. lengths - 1; 0 for circle */
    int sums[ATT_EXPERIMENT_SUMS]; /* number of paths that are added: 5, 20 */
    att_experiment_score paths[ATT_EXPERIMENT_SUMS][ATT_EXPERIMENT_LENGTHS]; /* share of tokens that are right */
    double whole;                                                            /* the same for the whole network */
    double baseline; /* share of the most frequent class among the evaluated tokens */
    int circle_count;
    att_circle_result circle[ATT_CIRCLE_VARIANTS];
} att_experiment_result;

/* Makes the data, trains and measures. The result depends on the options and the processor, not on the number of
 * threads. Errors: ERR_NOT_FOUND (no such experiment; no such file); ERR_ARGUMENT (an option out of range, or not of
 * this experiment); ERR_FORMAT (no text in the file); ERR_NONFINITE (the training diverged); ERR_STOPPED;
 * ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_experiment_run(att_context *context, const char *name,
                                                     const att_experiment_options *options,
                                                     att_experiment_result *result);

#ifdef __cplusplus
}
#endif
#endif
