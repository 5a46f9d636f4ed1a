/* train/optimizer.h - the optimisers by timm's names: their update operation and hyperparameters. */
#ifndef ATT_TRAIN_OPTIMIZER_H
#define ATT_TRAIN_OPTIMIZER_H

#include <attscope/train.h>
#include <attscope/update.h>

typedef struct att_optimizer {
    const char *name, *summary;
    const char *op; /* name of the update operation */
    bool nesterov;
    bool adaptive; /* the default learning rate is proportional to the square root of the batch size, not to the batch
                      size */
} att_optimizer;

/* Optimiser `index`, in the order of help; NULL past the last. */
const att_optimizer *att_optimizer_at(int index);
/* name: of att_optimizer_at(). */
const att_optimizer *att_optimizer_find(const char *name);

/* The base learning rate of the schedule: options->lr, or timm's default for the batch size. */
double att_optimizer_lr(const att_optimizer *optimizer, const att_train_options *options);

/* Hyperparameters of the next update after `update` finished ones. */
att_hyper att_optimizer_hyper(const att_optimizer *optimizer, const att_train_options *options, double lr,
                              int64_t update);

#endif
