/* experiments/paths.h - how well sums of random paths through a network do (attscope/lab/experiments.h). */
#ifndef ATT_EXPERIMENTS_PATHS_H
#define ATT_EXPERIMENTS_PATHS_H

#include "base/core/random.h"
#include "lab/papers/experiments/learn.h"
#include "lab/papers/experiments/san.h"

/* A path: in ascending order, the layers that it uses, and the head of each. */
enum { ATT_PATH_MOST = ATT_EXPERIMENT_LENGTHS - 1 };
typedef struct att_path {
    int length;
    int layers[ATT_PATH_MOST], heads[ATT_PATH_MOST];
} att_path;

/* Draws a path of `length` of `depth` layers, at most ATT_PATH_MOST. */
att_path att_path_draw(att_random *random, int depth, int heads, int length);

/* Sums of paths through a network. Each term belongs to the sum of this number, in [0, count); a path may be a term of
 * several sums, and of one sum several times. The paths of all sums are evaluated together, in lexical order, so that
 * every layer that several paths begin with runs once: there are only (1 + H)^L different paths. */
typedef struct att_path_term {
    att_path path;
    int sum;
} att_path_term;
typedef struct att_path_sums {
    att_path_term *terms;
    int term_count, count;
} att_path_sums;

/* Evaluates sums of paths. Zero-initialise. */
typedef struct att_walker {
    att_context *context;
    const att_san_spec *spec;
    const att_path_sums *sums;
    att_predictor embedding, step, end, whole;
    att_arena arena;
    int chunk;     /* samples that are evaluated together, at most ATT_CHUNK */
    float *states; /* [1 + ATT_PATH_MOST, chunk, N, C]: the states of a path after 0, 1, .. layers */
    float *added;  /* [sums, chunk, N, C] */
    float *logits; /* of ATT_CHUNK samples */
    int32_t layers[ATT_CHUNK], heads[ATT_CHUNK];
} att_walker;

/* graph: that of att_san_build(). The weights, `spec` and `sums`, whose terms are sorted, must outlive the walker.
 * After a failure, too, the caller closes it. */
att_status att_walker_open(att_context *context, const att_graph *graph, const att_san_spec *spec, att_weights *weights,
                           att_path_sums *sums, att_walker *walker);
void att_walker_close(att_walker *walker);

/* Evaluates all paths for `count` samples, at most walker->chunk, from sample `first`. Errors: ERR_STOPPED. */
att_status att_walker_walk(att_walker *walker, const att_samples *samples, int first, int count);

/* Copies to `logits` [count, N, outputs] what the sum says about the samples of the last walk, which had `count`. */
att_status att_walker_ask(att_walker *walker, int sum, int count, float *logits);

/* The same for the whole network and any samples, at most ATT_CHUNK. */
att_status att_walker_ask_whole(att_walker *walker, const att_samples *samples, int first, int count, float *logits);

#endif
