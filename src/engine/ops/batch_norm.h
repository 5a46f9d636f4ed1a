/* ops/batch_norm.h - attributes of batch_norm and of its training form. */
#ifndef ATT_OPS_BATCH_NORM_H
#define ATT_OPS_BATCH_NORM_H

#include "engine/graph/op.h"
#include "engine/ops/activation.h"

/* Attributes of batch_norm, and of normalize and its gradients, which read only eps and activation. */
typedef struct att_batch_norm_attrs {
    double eps, momentum;
    int32_t frozen; /* bool */
    att_activation activation;
} att_batch_norm_attrs;

/* For training forms of the batch_norm `node`: emits the update of the running mean and variance. stats: the batch's
 * mean and variance per channel, [2, C], over `rows` rows of each sample. */
void att_batch_norm_follow(att_graph *graph, const att_node *node, att_value stats, int64_t rows);

#endif
