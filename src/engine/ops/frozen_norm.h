/* ops/frozen_norm.h - attributes and inputs of frozen_norm. */
#ifndef ATT_OPS_FROZEN_NORM_H
#define ATT_OPS_FROZEN_NORM_H

#include <stdint.h>

/* centred: the mean is subtracted, as by layer norm. */
typedef struct att_frozen_norm_attrs {
    int32_t centred; /* bool */
} att_frozen_norm_attrs;

/* The statistics are the second output of layer_norm, mean and rstd of each row, or of rms_norm, only rstd. */
#define ATT_FROZEN_NUMBERS(attrs) ((attrs)->centred ? 2 : 1)

/* Beta may be absent. */
enum { ATT_FROZEN_X, ATT_FROZEN_GAMMA, ATT_FROZEN_STATS, ATT_FROZEN_BETA, ATT_FROZEN_INPUTS };

#endif
