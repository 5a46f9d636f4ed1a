/* weights/gradient.h - gradients, in the layout of their weights. */
#ifndef ATT_WEIGHTS_GRADIENT_H
#define ATT_WEIGHTS_GRADIENT_H

#include <attscope/gradient.h>

#include "base/core/export.h"
#include "engine/weights/weights.h"

struct att_gradient {
    att_context *context;
    att_weights *weights;
    const att_layout *layout;
    char *values;     /* of the trained elements of the layout; NULL if there are none */
    bool filled;      /* something was added since att_gradient_begin() */
    uint64_t changes; /* Counts changes, so that an update knows whether its norm is that of the current gradient; at
                         least 1 once filled. */
};

/* Records that something was added. */
void att_gradient_changed(att_gradient *gradient);

/* As att_gradient_create(), without memory for frozen parameters. frozen: by parameter; NULL: none. */
ATT_FOR_LAB ATT_MUST_CHECK att_status att_gradient_create_for(att_weights *weights, const bool *frozen,
                                                              att_gradient **gradient);
/* Bytes of such a gradient. */
ATT_FOR_LAB size_t att_gradient_bytes(const att_weights *weights, const bool *frozen);
/* The gradient of parameter `index`, which must be trained and not frozen. */
char *att_gradient_at(const att_gradient *gradient, int index);

#endif
