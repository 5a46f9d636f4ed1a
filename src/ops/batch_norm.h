/* ops/batch_norm.h - attributes of batch_norm and what it is in training. */
#ifndef ATT_OPS_BATCH_NORM_H
#define ATT_OPS_BATCH_NORM_H

#include "graph/op.h"
#include "ops/activation.h"

/* batch_norm, and what it is in training: normalize and its gradients read eps and activation. */
typedef struct att_batch_norm_attrs {
    double eps, momentum;
    bool frozen;
    att_activation activation;
} att_batch_norm_attrs;

/* For what takes the place of the batch_norm `node` in training: the running mean and variance follow `stats`, the
 * batch's mean and variance of each channel, [2, C], over `rows` rows of each sample. */
void att_batch_norm_follow(att_graph *graph, const att_node *node, att_value stats, int64_t rows);

#endif
