/* ops/rollout_rule.h - the shape rule and the test cases of rollout and attention_flow. */
#ifndef ATT_OPS_ROLLOUT_RULE_H
#define ATT_OPS_ROLLOUT_RULE_H

#include "engine/ops/cases.h"
#include "engine/ops/rollout.h"

/* maps [L, N, N] give y [N]. */
att_status att_rollout_infer(att_infer *infer);

#define ATT_ROLLOUT_FROM(mean) ATT_CASE_ATTRS(rollout, .from_mean = (mean))
#define ATT_ROLLOUT_MAPS(scale, shift, ...) ATT_CASE_IN(ATT_CASE_DRAWN(ATT_SAMPLE, scale, shift, __VA_ARGS__))
#define ATT_ROLLOUT_CASES                                                                  \
    {.name = "odd", ATT_ROLLOUT_FROM(0), ATT_ROLLOUT_MAPS(0.05, 0.2, 3, 5, 5)},            \
        {.name = "from_mean", ATT_ROLLOUT_FROM(1), ATT_ROLLOUT_MAPS(0.05, 0.2, 2, 5, 5)},  \
        {.name = "one_layer", ATT_ROLLOUT_FROM(0), ATT_ROLLOUT_MAPS(0.03, 0.15, 1, 7, 7)}, \
        {.name = "one_token", ATT_ROLLOUT_FROM(0), ATT_ROLLOUT_MAPS(0, 1, 2, 1, 1)},       \
    {                                                                                      \
        .name = "identity", ATT_ROLLOUT_FROM(1), ATT_ROLLOUT_MAPS(0, 0, 3, 4, 4)           \
    }

#endif
