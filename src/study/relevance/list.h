/* relevance/list.h - all methods, one line each, in the order in which they are shown. */
#ifndef ATT_RELEVANCE_LIST_H
#define ATT_RELEVANCE_LIST_H

#include "study/relevance/method.h"

#define ATT_RELEVANCE_LIST(X) \
    X(chefer)                 \
    X(attention_gradient)     \
    X(grad_cam)               \
    X(integrated_gradients)   \
    X(occlusion)              \
    X(rollout)                \
    X(flow)                   \
    X(random)                 \
    X(centre)

#define ATT_RELEVANCE_DECLARE(name) extern const att_relevance_method att_relevance_##name;
ATT_RELEVANCE_LIST(ATT_RELEVANCE_DECLARE)
#undef ATT_RELEVANCE_DECLARE

#endif
