/* ops/update.h - attributes of sgd, adamw and adam. */
#ifndef ATT_OPS_UPDATE_H
#define ATT_OPS_UPDATE_H

/* Attributes of sgd, adamw and adam: factors of the hyperparameters of the same name. ema has no attributes. */
typedef struct att_update_attrs {
    double lr, weight_decay;
} att_update_attrs;

#endif
