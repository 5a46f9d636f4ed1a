/* ops/activation.h - the activation that some operations apply to their result. */
#ifndef ATT_OPS_ACTIVATION_H
#define ATT_OPS_ACTIVATION_H

typedef enum att_activation { ATT_ACT_NONE, ATT_ACT_GELU, ATT_ACT_RELU } att_activation;

#endif
