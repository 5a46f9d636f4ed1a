/* ops/mixing_rule.h - parts of the shape rules of mix_tokens and mix_axes, and macros for their cases. */
#ifndef ATT_OPS_MIXING_RULE_H
#define ATT_OPS_MIXING_RULE_H

#include "base/core/error.h"
#include "engine/ops/mixing.h"

/* Input i has a row for each token of the grid, with `heads` heads side by side. */
att_status att_mixing_check_rows(const att_infer *infer, int i, const char *name, int64_t heads);

#define MIXING(h, vh, prefix_, gh, gw)                                                                         \
    ATTRS(attention, .heads = (h), .key_heads = (h), .value_heads = (vh), .prefix = (prefix_), .grid_h = (gh), \
          .grid_w = (gw), .step_h = 1, .step_w = 1)

#endif
