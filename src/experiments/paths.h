/* experiments/paths.h - how well sums of random paths through a network do (attscope/lab/experiments.h). */
#ifndef ATT_EXPERIMENTS_PATHS_H
#define ATT_EXPERIMENTS_PATHS_H

#include "core/random.h"
#include "experiments/learn.h"
#include "experiments/san.h"

/* A path: in ascending order, the layers that it uses, and the head of each. */
enum { ATT_PATH_MOST = ATT_EXPERIMENT_LENGTHS - 1 };
typedef struct att_path {
    int length;
    int layers[ATT_PATH_MOST], heads[ATT_PATH_MOST];
} att_path;

/* Draws a path of `length` of `depth` layers, at most ATT_PATH_MOST. */
att_path att_path_draw(att_random *random, int depth, int heads, int length);

/* Evaluates paths through a network. Zero-initialise. */
typedef struct att_walker {
    att_context *context;
    const att_san_spec *spec;
    att_predictor embedding, step, end, whole;
    att_arena arena;
    float *state, *sum, *logits; /* of ATT_CHUNK samples */
    int32_t layers[ATT_CHUNK], heads[ATT_CHUNK];
} att_walker;

/* graph: that of att_san_build(). The weights and `spec` must outlive the walker. After a failure, too, the caller
 * closes it. */
att_status att_walker_open(att_context *context, const att_graph *graph, const att_san_spec *spec, att_weights *weights,
                           att_walker *walker);
void att_walker_close(att_walker *walker);

/* Copies to `logits` [count, N, outputs] what the sum of the paths says about `count` samples, at most ATT_CHUNK, from
 * sample `first`. path_count 0: what the whole network says. */
att_status att_walker_ask(att_walker *walker, const att_samples *samples, int first, int count, const att_path *paths,
                          int path_count, float *logits);

/* The share of tokens that have a class and whose class the sum of the paths names; path_count 0: the whole network. */
att_status att_walker_score(att_walker *walker, const att_samples *samples, const att_path *paths, int path_count,
                            double *share);

#endif
