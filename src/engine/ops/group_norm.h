/* ops/group_norm.h - attributes of group_norm and its gradients. */
#ifndef ATT_OPS_GROUP_NORM_H
#define ATT_OPS_GROUP_NORM_H

#include <stdint.h>

/* groups must divide the number of channels. */
typedef struct att_group_norm_attrs {
    int64_t groups;
    double eps;
} att_group_norm_attrs;

#endif
