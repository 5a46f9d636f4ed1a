/* weights/gradient.h - gradients, in the layout of their weights. */
#ifndef ATT_WEIGHTS_GRADIENT_H
#define ATT_WEIGHTS_GRADIENT_H

#include <attscope/gradient.h>

#include "base/core/export.h"
#include "engine/weights/weights.h"

struct att_gradient {
    att_context *context;
    att_weights *weights;
    char *values;     /* of the trained elements of weights->own; NULL if there are none */
    bool filled;      /* something was added since att_gradient_begin() */
    uint64_t changes; /* Counts changes, so that an update knows whether its norm is that of the current gradient; at
                         least 1 once filled. */
};

/* Records that something was added. */
void att_gradient_changed(att_gradient *gradient);

ATT_FOR_LAB size_t att_gradient_bytes(const att_weights *weights);
/* The gradient of parameter `index`, which must be trained. */
char *att_gradient_at(const att_gradient *gradient, int index);

#endif
