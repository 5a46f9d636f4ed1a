/* backend/kernel.h - the descriptor of a kernel, and the arguments of a call.
 *
 * A kernel is one file in kernels/<backend>/ that ends in one `const att_kernel`, plus a line in that folder's list.h.
 * Of the kernels of an op, the first in the list that accepts the problem is used.
 */
#ifndef ATT_BACKEND_KERNEL_H
#define ATT_BACKEND_KERNEL_H

#include <attscope/update.h>

#include "base/core/export.h"
#include "engine/graph/op.h"

/* The problem that a kernel is prepared for: one node at one group size. A sample value of shape s lies in memory as
 * [group, s]; shared, summed and batch values as s. All values are dense and row-major, and aligned to 64 bytes.
 * Exception: inputs and outputs that a caller binds may be aligned only to their element size. */
typedef struct att_problem {
    att_context *context;
    const char *op;
    const void *attrs;
    const att_desc *in, *out;
    int in_count, out_count;
    int64_t group;
    int parts; /* number of threads that share each call */
} att_problem;

/* Makes R samples of each sample of R maps, if the op is marked ATT_OP_MAPS: [group, R, h, w, C] in memory is [group R,
 * h, w, C]. in, out: the descriptions of the problem, which are changed. */
ATT_FOR_LAB void att_problem_divide(const att_op *op, att_problem *problem, att_desc *in, att_desc *out);

/* Number of elements of a value in one call: the elements of desc, times the group for sample values. */
ATT_FOR_LAB int64_t att_problem_count(const att_problem *problem, const att_desc *desc);

/* The requirements of a prepared kernel. Zeroed before prepare(). */
typedef struct att_prepared {
    void *state;          /* read-only while running; freed by release() */
    size_t scratch_bytes; /* scratch per part, aligned to 64 bytes; contents are undefined at the start of each call */
    size_t packed_bytes;  /* > 0: size of the packed copy of the shared inputs, which pack() writes in the kernel's own
                             layout */
    uint64_t packed_key;  /* for the same kernel and shared inputs, equal keys mean equal layouts, so that one packed
                             copy is shared */
} att_prepared;

/* Parameters of a session's run that kernels read. */
typedef struct att_run {
    uint64_t seed;
    int64_t step;
    double scale;           /* factor of each sample's loss */
    const att_hyper *hyper; /* updates only, else NULL */
} att_run;

/* Arguments of one call, on problem->group samples. Exception: a reduction (out[0] of kind ATT_BATCH) is called once
 * for all `samples` of the batch, whose rows of a sample value lie one after the other. Part p of `parts` computes its
 * share. Shares are disjoint, and no part reads what another part writes in the same call. Kernels add to summed
 * outputs and overwrite all others entirely. Absent inputs and outputs that nobody reads are NULL. */
typedef struct att_call {
    const att_problem *problem;
    const void *const *in;
    void *const *out;
    const void *packed;
    void *state;
    void *scratch; /* this part's own scratch */
    int part, parts;
    int64_t position; /* index of the group's first sample among the samples of the update */
    const att_run *run;
    int64_t samples;
} att_call;

typedef struct att_kernel {
    const char *op;
    const char *name;  /* "onednn", "simd", "plain": shown in profiles and tests */
    unsigned features; /* features of the processor that the kernel needs */
    /* If f32: whether floats must be f32, except inputs and outputs whose bit is set here, which may also be bf16. Of
     * the inputs, only input 0 is checked for f64, because sums of losses are f64. Otherwise every type will do. */
    bool f32;
    unsigned bf16_in, bf16_out;
    bool (*accepts)(const att_problem *problem); /* what else the problem must be; NULL: nothing */
    att_status (*prepare)(const att_problem *problem, att_prepared *prepared); /* NULL: nothing to prepare */
    /* Writes the packed copy. in: pointers to the problem's shared inputs, NULL for other inputs. */
    att_status (*pack)(const att_problem *problem, void *state, const void *const *in, void *packed);
    unsigned packed_in; /* inputs (bits) of which run() reads the packed copy only, wherever there is one */
    att_status (*run)(const att_call *call);
    void (*release)(att_context *context, void *state);
} att_kernel;

/* The first kernel of a NULL-terminated list that computes the problem on the context's processor; NULL: none. */
const att_kernel *att_kernel_for(const att_kernel *const *kernels, const att_problem *problem);
/* Whether the kernel does. */
ATT_FOR_LAB bool att_kernel_fits(const att_kernel *kernel, const att_problem *problem);
/* Whether it computes the problem on a processor with the features it needs. */
bool att_kernel_accepts(const att_kernel *kernel, const att_problem *problem);

/* The share [*begin, *end) of `part` among `count` items, with boundaries at multiples of `grain`. */
ATT_FOR_LAB void att_share(int64_t count, int64_t grain, int part, int parts, int64_t *begin, int64_t *end);

#endif
