/* backend/kernel.h - what a kernel says about itself, and what it is called with.
 *
 * A kernel is one file in kernels/<backend>/ that ends in one `const att_kernel`, plus its line in that folder's list.
 * The first of the list that accepts a problem is taken.
 */
#ifndef ATT_BACKEND_KERNEL_H
#define ATT_BACKEND_KERNEL_H

#include <attscope/update.h>

#include "core/export.h"
#include "graph/op.h"

/* One node at one group size: what a kernel is prepared for. A sample value of shape s lies in memory as [group, s];
 * shared, summed and batch values as s. Everything is dense, row-major, and begins on a multiple of 64 bytes, except
 * bound inputs and outputs, which begin on a multiple of their element size only. */
typedef struct att_problem {
    att_context *context;
    const char *op;
    const void *attrs;
    const att_desc *in, *out;
    int in_count, out_count;
    int64_t group;
    int parts; /* threads that share each call */
} att_problem;

/* Elements of a value in one call: its own count, times the group for sample values. */
int64_t att_problem_count(const att_problem *problem, const att_desc *desc);

/* What a kernel asks for. Zeroed before prepare(). */
typedef struct att_prepared {
    void *state;          /* read only while running; freed by release() */
    size_t scratch_bytes; /* per part, aligned to 64, contents undefined at each call */
    size_t packed_bytes;  /* > 0: what pack() makes of the shared inputs is wanted in the kernel's own layout as well */
    uint64_t packed_key;  /* equal keys (of one kernel and its shared inputs) mean equal layouts: packed once */
} att_prepared;

/* What a run of a session says to its kernels. */
typedef struct att_run {
    uint64_t seed;
    int64_t step;
    double scale;           /* of each sample's loss */
    const att_hyper *hyper; /* updates only */
} att_run;

/* One call, on problem->group samples; where out[0] is of kind ATT_BATCH (a reduction), on all `samples` of the batch,
 * whose rows of a sample value lie one behind the other, whatever the group says. Part p of `parts` does its share;
 * shares are disjoint, and nothing that one part writes is read by another in the same call. Summed outputs are added
 * to, all others overwritten whole. Absent inputs and outputs that nobody reads are NULL. */
typedef struct att_call {
    const att_problem *problem;
    const void *const *in;
    void *const *out;
    const void *packed;
    void *state;
    void *scratch; /* this part's own */
    int part, parts;
    int64_t position; /* of the group's first sample among the samples of the update */
    const att_run *run;
    int64_t samples;
} att_call;

typedef struct att_kernel {
    const char *op;
    const char *name;                            /* "onednn", "simd", "plain": for profiles and tests */
    att_tier tier;                               /* lowest tier it runs on */
    bool (*accepts)(const att_problem *problem); /* NULL: every problem of the op */
    att_status (*prepare)(const att_problem *problem, att_prepared *prepared); /* NULL: nothing to prepare */
    /* in: the problem's shared inputs, NULL for others. */
    att_status (*pack)(const att_problem *problem, void *state, const void *const *in, void *packed);
    att_status (*run)(const att_call *call);
    void (*release)(att_context *context, void *state);
} att_kernel;

/* Share `part` of `count` items: [*begin, *end), cut at multiples of `grain`. */
ATT_FOR_LAB void att_share(int64_t count, int64_t grain, int part, int parts, int64_t *begin, int64_t *end);

#endif
