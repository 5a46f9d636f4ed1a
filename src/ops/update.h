/* ops/update.h - attributes of sgd and adamw. */
#ifndef ATT_OPS_UPDATE_H
#define ATT_OPS_UPDATE_H

/* sgd, adamw: factors of the hyperparameters of that name for the range. ema has none. */
typedef struct att_update_attrs {
    double lr, weight_decay;
} att_update_attrs;

#endif
