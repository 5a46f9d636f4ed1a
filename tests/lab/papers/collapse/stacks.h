/* collapse/stacks.h - for tests: runs stacks of self-attention. */
#ifndef TESTS_COLLAPSE_STACKS_H
#define TESTS_COLLAPSE_STACKS_H

#include <attscope/lab/collapse.h>

#include <math.h>

#include "base/io/scratch.h"

static inline void run(scratch *self, const att_stack_options *options, att_stack_layer *layers, double *output)
{
    CHECK(self->context, att_stack_run(self->context, options, layers, output));
}

static inline att_stack_options small(int depth)
{
    att_stack_options o = att_stack_options_defaults();
    o.depth = depth;
    o.width = 8;
    o.tokens = 6;
    o.heads = 2;
    return o;
}

/* The largest error is 3e-16. */
static inline void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.17g, expected %.17g", found, expected);
}

#endif
