/* train/optimizer.h - optimisers by timm's names: which update op runs, and with which numbers. */
#ifndef ATT_TRAIN_OPTIMIZER_H
#define ATT_TRAIN_OPTIMIZER_H

#include <attscope/train.h>
#include <attscope/update.h>

typedef struct att_optimizer {
    const char *name, *summary;
    const char *op; /* the update op of the plan */
    bool nesterov;
    bool adaptive; /* the default rate grows with the square root of the batch instead of linearly */
} att_optimizer;

/* ERR_NOT_FOUND with the nearest name. */
att_status att_optimizer_find(att_context *context, const char *name, const att_optimizer **optimizer);

/* The rate that the schedule starts from: options->lr, or timm's from the batch. */
double att_optimizer_lr(const att_optimizer *optimizer, const att_train_options *options);

/* What the update after `update` finished ones needs. */
att_hyper att_optimizer_hyper(const att_optimizer *optimizer, const att_train_options *options, double lr,
                              int64_t update);

#endif
