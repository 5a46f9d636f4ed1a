/* attscope/plan.h - a graph compiled for a purpose, and sessions that run it.
 *
 * A plan is immutable and may be shared by threads. Its parts: the prologue runs once after the weights changed
 * (derived values, packing), the body once per group of samples (gradient lanes are summed in a fixed order), the
 * epilogue once per batch (gradients through derived values). Where values of the whole batch are needed (batch norm in
 * training), the body is cut into segments: threads meet after each. A session runs one plan; it holds the arenas and
 * belongs to one user thread. Running allocates nothing. An att_update (attscope/update.h) changes the weights
 * afterwards.
 *
 * Same bits: results of a training step depend on the graph, the samples and their order, the seed, the group size and
 * the number of lanes (all in att_plan_fingerprint()), not on threads or timing.
 */
#ifndef ATTSCOPE_PLAN_H
#define ATTSCOPE_PLAN_H

#include <attscope/field.h>
#include <attscope/gradient.h>
#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_plan att_plan;
typedef struct att_session att_session;

typedef enum att_purpose {
    ATT_INFER,   /* outputs only; dropout and drop path are identities */
    ATT_TRAIN,   /* outputs, and the gradient of the sample value named "loss" */
    ATT_GRADIENT /* the network of ATT_INFER (batch norm by its running statistics), with the gradient of ATT_TRAIN */
} att_purpose;

/* X(name, text) */
#define ATT_PRECISION_LIST(X) X(FULL, "f32") X(MIXED, "bf16")

/* ATT_MIXED: operands of matrix products and what lies between them are bf16; weights, the residual stream, statistics,
 * sums, softmax and gradients of weights stay f32. Where att_context_has_bf16() says no, the backend "cpu" widens the
 * operands: right, and slower than f32. */
typedef enum att_precision {
#define ATT_PRECISION_ENUM(name, text) ATT_##name,
    ATT_PRECISION_LIST(ATT_PRECISION_ENUM)
#undef ATT_PRECISION_ENUM
} att_precision;

/* "f32", "bf16"; never NULL. */
ATT_API const char *att_precision_name(att_precision precision);

typedef struct att_plan_options {
    att_purpose purpose;
    att_precision precision; /* ATT_MIXED needs a graph in f32 */
    const char *backend;     /* "cpu", "ref" */
    /* Names of the outputs and probes that are wanted, NULL after the last: the others, the nodes that only they need
     * and the inputs that nothing else reads are left out. NULL: all. */
    const char *const *outputs;
    const bool *frozen; /* with gradients, by parameter of the graph: it gets none; NULL: every one does */
    /* With gradients, names of inputs and outputs, NULL after the last: the loss's gradient by each is an output, too,
     * "NAME.grad", scaled as the loss is. NULL: none. Probes have none. */
    const char *const *gradients;
    bool plain;        /* training: without algebraic rewritings, see below */
    int group;         /* samples a body call works on, at most 64, rounded down to a power of two; 0: chosen from the
                          graph alone */
    int lanes;         /* gradient lanes, at most 1024, ignored by ATT_INFER; 0: the context's threads */
    int parts;         /* threads that share one group where there are fewer groups than threads, at most the context's
                          threads; 0: automatic */
    size_t keep_bytes; /* training: bytes of a sample to keep between segments at most, or as few as is possible;
                          what is not kept is computed again. Gaps may add 2 or 3 %. Decides no bit.
                          0: by a fixed rule of the graph */
} att_plan_options;

/* plain: a training plan rewrites convolutions, batch norms, means and gates where an identity gives the same results
 * from fewer operations or smaller values (docs/architecture.md, "Algebraic rewritings"). Results then differ from
 * those of the plain plan by rounding, and the fingerprints differ. A plain plan is meant for comparisons; inference
 * plans ignore the option. */

/* ATT_INFER on "cpu", everything else automatic. */
ATT_API att_plan_options att_plan_options_defaults(void);

/* Compiles. The graph is only read and may be freed after. On success *plan is the caller's. Errors: the graph's own
 * failure; ERR_UNSUPPORTED where the backend lacks a kernel (the message names op and type) or an op has no backward
 * rule; ERR_NOT_FOUND where there is none of a name in `outputs` or `gradients`, or gradients are wanted and there is
 * no output "loss"; ERR_ARGUMENT where the loss does not depend on such a one, or an option is out of range;
 * ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_plan_compile(const att_graph *graph, const att_plan_options *options,
                                                   att_plan **plan);
ATT_API void att_plan_destroy(att_plan **plan);

/* What decides the bits of a training step besides data and seed: "precision=f32 graph=<hash> purpose=train backend=cpu
 * group=4 lanes=2 parts=1 tier=avx512 onednn-2.6.3 attscope=0.1.0". Lives as long as the plan. */
ATT_API const char *att_plan_fingerprint(const att_plan *plan);

typedef struct att_plan_facts {
    int group, steps;      /* group: the largest of its segments; steps: kernel calls of the body */
    int lanes, parts;      /* parts: threads that share each lane */
    int segments;          /* 1, and one more each time the batch meets (batch norm in training) */
    size_t arena_bytes;    /* per team of threads */
    size_t kept_bytes;     /* per sample of a session's largest batch, between segments */
    size_t gradient_bytes; /* of all lanes but the first (which is the att_gradient), in the segment with most */
    size_t packed_bytes;
} att_plan_facts;
ATT_API att_plan_facts att_plan_describe(const att_plan *plan);

/* What a plan's sessions are bound to and what they answer, by name: one tensor of a sample each; probes are among the
 * outputs. Their names live as long as the plan; past the last the name is NULL. */
ATT_API att_field att_plan_input_at(const att_plan *plan, int index);
ATT_API att_field att_plan_output_at(const att_plan *plan, int index);

/* A session for a plan over weights that hold every parameter of its graph, found by name, in the same shape
 * (ERR_MISMATCH); they may hold others, too. Both must outlive it. max_batch: the most samples of one run; outputs for
 * so many are allocated here. */
ATT_API ATT_MUST_CHECK att_status att_session_create(const att_plan *plan, att_weights *weights, int max_batch,
                                                     att_session **session);
ATT_API void att_session_destroy(att_session **session);

/* Binds host memory with one row per sample to an input; it is read during runs and stays the caller's. */
ATT_API att_status att_session_bind(att_session *session, const char *input, const void *rows);

/* Runs the body of an ATT_INFER plan forward on `batch` samples (1..max_batch). Errors: ERR_ARGUMENT (nothing bound,
 * batch too large, a plan with gradients: att_session_accumulate() runs that), ERR_INTERNAL. */
ATT_API att_status att_session_run(att_session *session, int batch);

/* Copies rows [first, first + count) of an output of the last run to `rows`. */
ATT_API att_status att_session_output(att_session *session, const char *output, int first, int count, void *rows);

/* Whether the next runs fill the probes (att_graph_probe()); they do at first. A run that does not leaves out what only
 * probes need, and att_session_output() of a probe after it is ERR_ARGUMENT. */
ATT_API void att_session_observe(att_session *session, bool on);

/* Training: forward and backward on `batch` samples; adds to `gradient`, which is of the session's weights.
 *   scale     weight of each sample's loss; 1 / (samples of the whole update) makes the batch mean
 *   seed, step, first   dropout and drop path draw from (seed, step, position in the update's samples, the scope's name
 *             and the place among the drops of that scope); `first` is the position of this call's first sample
 * gradient may be NULL where every parameter is frozen. Errors: ERR_ARGUMENT (nothing bound, batch too large, a plan
 * that does not train), ERR_MISMATCH (a gradient of other weights). After a failure the
 * gradient holds a part of the batch: call att_gradient_begin(). */
ATT_API att_status att_session_accumulate(att_session *session, att_gradient *gradient, int batch, double scale,
                                          uint64_t seed, int64_t step, int64_t first);

/* Runs the last att_session_accumulate() again, node by node, and writes the name of the first node with a non-finite
 * result ("blocks.3.attn (attention), sample 17") to `text`; "" where every node is finite. Its gradient and bound
 * inputs must still exist and the weights be unchanged. The gradient is cleared, with everything that was added to it
 * before: call att_gradient_begin() before using it again. Weights and buffers stay as they are. */
ATT_API att_status att_session_find_nonfinite(att_session *session, char *text, size_t size);

/* Where the time of the runs since the last att_session_profile() went, one row per kernel name: each such call, on or
 * off, sets the figures to zero. Off at first. seconds: summed over the threads; bytes: inputs read and outputs
 * written by the calls, each value once. */
typedef struct att_profile_row {
    const char *op, *kernel;
    int64_t calls;
    double seconds, flops, bytes;
} att_profile_row;
ATT_API att_status att_session_profile(att_session *session, bool on);
ATT_API int att_session_profile_count(const att_session *session);
ATT_API att_profile_row att_session_profile_at(const att_session *session, int index);

#ifdef __cplusplus
}
#endif
#endif
