/* ops/batch_norm.h - attributes of batch_norm and what it is in training. */
#ifndef ATT_OPS_BATCH_NORM_H
#define ATT_OPS_BATCH_NORM_H

#include <stdbool.h>

#include "ops/activation.h"

/* batch_norm, and what it is in training: normalize and its gradients read eps and activation. */
typedef struct att_batch_norm_attrs {
    double eps, momentum;
    bool frozen;
    att_activation activation;
} att_batch_norm_attrs;

#endif
