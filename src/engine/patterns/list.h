/* patterns/list.h - the algebraic rewritings of plans with gradients, in the order in which they are tried. */
#ifndef ATT_PATTERNS_LIST_H
#define ATT_PATTERNS_LIST_H

#include "engine/passes/pattern.h"

/* X(name) */
#define ATT_PATTERN_LIST(X) \
    X(affine_norm)          \
    X(mean_of_affine)       \
    X(split_gradient)       \
    X(pooled_gradient)

#define ATT_PATTERN_DECLARE(name) extern const att_pattern att_pattern_##name;
ATT_PATTERN_LIST(ATT_PATTERN_DECLARE)
#undef ATT_PATTERN_DECLARE

#define ATT_PATTERN_ONE(name) +1
enum { ATT_PATTERN_COUNT = 0 ATT_PATTERN_LIST(ATT_PATTERN_ONE) };
#undef ATT_PATTERN_ONE

/* NULL-terminated. */
extern const att_pattern *const att_patterns[];

#endif
