/* measure/paths.h - splits the tokens of a network with attention into contributions of paths.
 *
 * A path takes, in each attention layer, one head or the skip; its length is the number of heads. With all attention
 * maps P and the statistics of all norms taken from the full pass, the tokens after the last residual addition are a
 * sum: of the contributions P_hk ... P_h1 X W_h1 ... W_hk of all paths, of what the biases contribute, and of what
 * branches without attention (MLPs) contribute. A branch without attention is one more source of tokens, taken from the
 * full pass; later layers pass it on as they do X. (Dong et al., ICML 2021) */
#ifndef ATT_MEASURE_PATHS_H
#define ATT_MEASURE_PATHS_H

#include "engine/graph/graph.h"

enum { ATT_PATHS_MOST_LAYERS = 128, ATT_PATHS_REASON = 320 };

typedef struct att_paths {
    att_value begin, end; /* tokens before the first residual addition, and after the last */
    int layers;           /* attention layers, in the network's order */
    int heads[ATT_PATHS_MOST_LAYERS];
    int longest;                             /* heads of the longest path: `layers`, unless layers stand side by side */
    double count[ATT_PATHS_MOST_LAYERS + 1]; /* number of paths of each length: C(L, k) H^k with H heads in each of L
                                                layers */
    bool others;                             /* whether there are branches without attention */
} att_paths;

/* Finds the layers and counts the paths. Adds nothing to the graph. Returns false if the tokens are no sum over paths;
 * reason then says why, in a sentence. */
bool att_paths_find(att_graph *graph, att_paths *paths, char reason[ATT_PATHS_REASON]);

/* Values [N, C] of one sample; ATT_NONE: zero. */
typedef struct att_path_sums {
    att_value of_length[ATT_PATHS_MOST_LAYERS + 1]; /* the sum over all paths of that length */
    att_value biases, others;
} att_path_sums;

/* Adds nodes that compute the contributions. */
void att_paths_split(att_graph *graph, const att_paths *paths, att_path_sums *sums);
/* Adds nodes that compute the contribution of one path. choice[l]: 0 for the skip in layer l, 1..heads[l] for a head.
 * The layers must not stand side by side. */
att_value att_paths_follow(att_graph *graph, const att_paths *paths, const int *choice);

#endif
