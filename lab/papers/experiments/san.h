/* experiments/san.h - the self-attention network of Dong et al. (ICML 2021): BERT with post-norm layers that have an
 * MLP only on request, and a linear layer that classifies every token. */
#ifndef ATT_EXPERIMENTS_SAN_H
#define ATT_EXPERIMENTS_SAN_H

#include <attscope/graph.h>

/* The parameter that training leaves unchanged. */
#define ATT_SAN_PADDING "embed.padding"

enum {
    ATT_SAN_POINT = 2,        /* coordinates of a token that is a point */
    ATT_SAN_MOST_WIDTH = 1024 /* of att_san_spec.width */
};

typedef struct att_san_spec {
    int tokens, depth, heads; /* N, L, H */
    int64_t width, outputs;   /* C; outputs of each token */
    int vocabulary;           /* tokens are numbers in [0, vocabulary); 0: points in the plane */
    bool positions;           /* of the numbers: adds a learned vector for each position */
    bool padding;             /* of the numbers: the vector of number 0 is not trained, as of PyTorch's padding_idx 0 */
    bool deep_embedding;      /* of the points: linear layer, GELU, linear layer, instead of one linear layer */
    bool padded;              /* samples have keys that are left out, see below */
    bool mlp;                 /* linear layer to C channels, GELU, linear layer, residual, norm after each attention */
    double dropout;           /* of the embedding, the attention maps, the branches, and before the last layer */
} att_san_spec;

/* Adds the network. Inputs: "x" [N], I32, or points [N, 2] of the graph's type; with `padded` "keys" [N], added to all
 * scores of a key: 0, or minus infinity for a token that only pads the sample. Outputs: "embedded" [N, C], the input of
 * the first layer, and "result" [N, outputs], which the function returns.
 *
 * Parameters: embed.padding (with `padding` the row of number 0), embed.token (the other rows), embed.position,
 * embed.fc1, embed.fc2, embed.norm; layers.<l>.query, key, value, output, norm, fc1, fc2, mlp_norm; head. Value and
 * output weights are drawn from U(-1/sqrt(C), 1/sqrt(C)), all others from N(0, 0.02^2), biases are 0. Layer norms have
 * eps 1e-12. */
att_value att_san_build(att_graph *graph, const att_san_spec *spec);

/* Adds one layer of a path (attscope/lab/experiments.h). Inputs: "state" [N, C]; "layer" and "head", I32 scalars: the
 * layer l and l H + the number of the head; "keys" as above. Output: "next" [N, C]. With spec->mlp the layer's MLP,
 * with its residual and its norm, follows. The parameters are those of att_san_build(). */
void att_san_build_step(att_graph *graph, const att_san_spec *spec);

/* Adds the end of a path. Input: "state" [N, C], a sum of states. Output: "result" [N, outputs] of the normed state. */
void att_san_build_end(att_graph *graph, const att_san_spec *spec);

#endif
