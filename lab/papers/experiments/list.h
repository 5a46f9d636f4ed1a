/* experiments/list.h - the experiments, in the order of help. A new experiment is one line here. */
#ifndef ATT_EXPERIMENTS_LIST_H
#define ATT_EXPERIMENTS_LIST_H

#include "lab/papers/experiments/experiment.h"

#define ATT_EXPERIMENT_LIST(X) \
    X(sort)                    \
    X(hull)                    \
    X(memorize)                \
    X(circle)

#define ATT_EXPERIMENT_DECLARE(name) extern const att_experiment att_experiment_##name;
ATT_EXPERIMENT_LIST(ATT_EXPERIMENT_DECLARE)
#undef ATT_EXPERIMENT_DECLARE

#endif
