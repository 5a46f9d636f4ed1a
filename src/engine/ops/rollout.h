/* ops/rollout.h - attributes of rollout and attention_flow. */
#ifndef ATT_OPS_ROLLOUT_H
#define ATT_OPS_ROLLOUT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct att_rollout_attrs {
    int64_t from_mean; /* a bool: begin at the mean over all tokens, not at token 0 */
} att_rollout_attrs;

/* The share of token i at the beginning, behind the last layer. */
static inline double att_rollout_start(const att_rollout_attrs *attrs, int64_t i, int64_t tokens)
{
    return attrs->from_mean ? 1.0 / (double)tokens : i == 0;
}

/* The weight of token j for token i of the next layer: half from attention a_ij, half from the skip connection. */
static inline double att_rollout_weight(double a, int64_t i, int64_t j)
{
    return 0.5 * a + (i == j ? 0.5 : 0);
}

#endif
