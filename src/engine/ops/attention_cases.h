/* ops/attention_cases.h - macros for the cases of attention and its gradient. */
#ifndef ATT_OPS_ATTENTION_CASES_H
#define ATT_OPS_ATTENTION_CASES_H

#include <math.h>

#include "engine/ops/attention.h"
#include "engine/ops/cases.h"

#define STEPPED(h, d, prefix_, gh, gw, sh, sw, ...)                                                             \
    ATTRS(attention, ATT_ATTENTION_HEADS(h), .prefix = (prefix_), .grid_h = (gh), .grid_w = (gw), .scale = (d), \
          .step_h = (sh), .step_w = (sw), __VA_ARGS__)
#define HEADS(h, d, prefix_, gh, gw, ...) STEPPED(h, d, prefix_, gh, gw, 1, 1, __VA_ARGS__)
#define GROUPED(h, kh, vh, scale_, prefix_, ...)                                                                   \
    ATTRS(attention, .heads = (h), .key_heads = (kh), .value_heads = (vh), .prefix = (prefix_), .scale = (scale_), \
          __VA_ARGS__)
#define DROPS(rate) .drop_rate = (rate), .drop_stream = 7, .drops = 1
#define GRID(h, prefix_, gh, gw, ...)                                                                           \
    ATTRS(attention, ATT_ATTENTION_HEADS(h), .prefix = (prefix_), .grid_h = (gh), .grid_w = (gw), .scale = 0.5, \
          .step_h = 1, .step_w = 1, __VA_ARGS__)
#define NO_TERMS ABSENT, ABSENT, ABSENT
#define NO_KEYS(n) DRAWN(ATT_SAMPLE, 0, -INFINITY, n)
#define PACKED(...) SAMPLE(__VA_ARGS__), ABSENT, ABSENT

#endif
