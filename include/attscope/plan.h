/* attscope/plan.h - plans (compiled graphs) and sessions (which run them).
 *
 * A plan is immutable and can be shared by threads. It has three parts. The prologue runs once after the weights
 * change, and for each batch if derived values are dropped: it computes derived values and packs weights. The body runs
 * once for each group of samples. For gradients, the samples of a batch are divided among lanes; each lane sums the
 * gradients of its samples, then the lanes are added in a fixed order. The epilogue runs once per batch: it propagates
 * gradients through derived values. Values of the whole batch (batch norm in training) split the body into segments:
 * all threads wait at the end of each segment.
 *
 * A session runs one plan. It owns the memory for activations and belongs to one user thread. Running allocates no
 * memory. After the runs of a training step, an att_update (attscope/update.h) changes the weights.
 *
 * Reproducibility: the bits of a training step depend on the samples and their order, the seed and
 * att_plan_fingerprint(), which contains the graph, the group sizes and the number of lanes. They do not depend on
 * timing.
 */
#ifndef ATTSCOPE_PLAN_H
#define ATTSCOPE_PLAN_H

#include <attscope/comm.h>
#include <attscope/field.h>
#include <attscope/gradient.h>
#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_plan att_plan;
typedef struct att_session att_session;

typedef enum att_purpose {
    ATT_INFER,   /* outputs only; dropout and drop path do nothing */
    ATT_TRAIN,   /* outputs, and the gradient of the output "loss" */
    ATT_GRADIENT /* the gradient of "loss" for the network of ATT_INFER: batch norm uses its running statistics */
} att_purpose;

#define ATT_PRECISION_LIST(X) X(FULL, "f32") X(MIXED, "bf16")

/* ATT_MIXED is mixed precision: operands of matrix products, and the values between matrix products, are bf16. Weights,
 * the residual stream of transformers, statistics, sums, softmax and gradients of weights stay f32. Where
 * att_context_has_bf16() returns false, the backend "cpu" converts operands to f32 before it multiplies them. */
typedef enum att_precision {
#define ATT_PRECISION_ENUM(name, text) ATT_##name,
    ATT_PRECISION_LIST(ATT_PRECISION_ENUM)
#undef ATT_PRECISION_ENUM
} att_precision;

/* Returns "f32" or "bf16"; never NULL. */
ATT_API const char *att_precision_name(att_precision precision);

enum { ATT_MOST_LANES = 1 << 16 };

typedef struct att_plan_options {
    att_purpose purpose;
    att_precision precision; /* ATT_MIXED requires a graph in f32 */
    const char *backend;     /* "cpu", "ref", "cuda" (docs/cuda.md) */
    /* Names of the outputs and probes to compute, NULL after the last. All other outputs are dropped, with the nodes
     * and inputs that only they need. NULL: all. */
    const char *const *outputs;
    /* With gradients: one flag for each parameter of the graph; a frozen parameter gets no gradient. With ATT_TRAIN,
     * frozen parts run as in inference, see below. NULL: none is frozen */
    const bool *frozen;
    bool frozen_as_trained; /* frozen parts keep their dropout, drop path and batch statistics */
    /* With gradients: names of inputs, else of outputs (not probes), NULL after the last. For each there is an output
     * "NAME.grad": the gradient of the loss with respect to it, scaled as the loss is. NULL: none. */
    const char *const *gradients;
    bool plain; /* training: compile without algebraic rewritings, see below */
    int group;  /* samples per call of the body, at most 64 (512 on "cuda"), rounded down to a power of two; 0: chosen
                   from the graph alone */
    int lanes;  /* gradient lanes, at most ATT_MOST_LANES, ignored by ATT_INFER; 0: the number of the context's threads
                 */
    int parts;  /* threads that share one group when there are fewer groups than threads, at most the context's threads;
                   0: automatic */
    size_t keep_bytes; /* training: upper bound for the bytes per sample that are kept between segments, or the least
                          possible if that is more. Other values are recomputed. Alignment may add 2 to 3 %. Changes no
                          bit of the results. 0: a fixed rule that depends on the graph only */
    att_comm *comm;    /* the processes that share each batch, see below; must outlive the plan; NULL: this one alone */
    bool sync_statistics; /* training with comm: batch norm takes statistics over the samples of all processes; false:
                             each process takes them over its own samples */
} att_plan_options;

/* Several processes: all of them compile the same graph with the same options, and make the same calls in the same
 * order. `lanes` is the total of all processes (0: the context's threads times the processes) and a multiple of their
 * number: process r of P computes lanes [lanes r / P, lanes (r + 1) / P). In training a batch is that of all processes,
 * and process r binds rows [batch r / P, batch (r + 1) / P) of each input. In inference each process runs the rows that
 * it has, possibly none, and at most max_batch / P rounded up. Lanes are summed in the order of their numbers,
 * whichever process computes them; so gradients do not depend on the number of processes, and every process receives
 * the sum. The same holds for batch norm with sync_statistics. Outputs have the rows of all processes:
 * att_session_output() fetches those of the others. If another process fails, calls return ERR_IO. */

/* frozen: a node is in a frozen part if all trained parameters of the innermost scope around it that has any are
 * frozen: of "blocks.3.attn" for a node of the scope "blocks.3.attn.drop". If only the whole network has parameters
 * around a node, as around a pooling, it is in a frozen part if no trained parameter lies before it. Dropout and drop
 * path do nothing in frozen parts, and batch norm uses its running statistics and does not change them; so does, in
 * other parts, a batch norm whose running statistics are flagged, while its weight and bias are trained. The backward
 * pass ends where no trained parameter lies before a value. */

/* plain: by default a training plan rewrites convolutions, batch norms, means and gates by identities that give the
 * same results with fewer operations or smaller values (docs/architecture/engine.md, "Algebraic rewritings"). Its
 * results differ from those of the plain plan by rounding, and so does its fingerprint. Use plain plans for
 * comparisons. Inference plans ignore the option. */

/* ATT_INFER on "cpu", all else automatic. */
ATT_API att_plan_options att_plan_options_defaults(void);

/* Compiles a graph, which is only read and may be freed afterwards. On success the caller owns *plan. Errors: the
 * graph's own failure; ERR_UNSUPPORTED if the backend lacks a kernel (the message names operation and type) or cannot
 * be used ("cuda" is not installed, or there is no GPU), or an operation has no backward rule; ERR_NOT_FOUND if a name
 * in `outputs` or `gradients` does not exist, or gradients are requested and there is no output "loss"; ERR_ARGUMENT
 * if the loss does not depend on a value in `gradients`, if such a value is named twice or holds integers, or if an
 * option is out of range; ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_plan_compile(const att_graph *graph, const att_plan_options *options,
                                                   att_plan **plan);
ATT_API void att_plan_destroy(att_plan **plan);

/* Everything that determines the bits of a training step besides data and seed: "precision=f32 graph=<hash>
 * purpose=train backend=cpu group=4 lanes=2 parts=1 tier=avx512 onednn-2.6.3 attscope=0.2.0". Lives as long as the
 * plan. */
ATT_API const char *att_plan_fingerprint(const att_plan *plan);

typedef struct att_plan_facts {
    int group, steps;      /* group: largest of all segments; steps: kernel calls of the body */
    int lanes, parts;      /* parts: threads that share one group */
    int segments;          /* 1, plus one for each point where the whole batch is needed (batch norm in training) */
    size_t arena_bytes;    /* activations, for each team of `parts` threads */
    size_t kept_bytes;     /* kept between segments, per sample of a session's largest batch */
    size_t gradient_bytes; /* gradient lanes in the segment that needs the most memory for them. The first lane is not
                              counted: it is the att_gradient itself */
    size_t packed_bytes;   /* packed weights; with several segments on a CPU, of the segment that needs most */
} att_plan_facts;
ATT_API att_plan_facts att_plan_describe(const att_plan *plan);
/* Cost of the body for one sample: with gradients, of the forward and the backward pass, without the prologue, the
 * epilogue and the optimiser. A value that is computed again for the backward pass counts once. Operations that the
 * plan has fused into others are not counted. */
ATT_API att_cost att_plan_cost(const att_plan *plan);

/* Inputs that sessions bind: name, type and shape per sample. Names live as long as the plan. For an index past the
 * last, the name is NULL. */
ATT_API att_field att_plan_input_at(const att_plan *plan, int index);

/* Creates a session that runs `plan` on `weights`. Plan and weights must outlive it. The weights must hold every
 * parameter of the plan's graph, found by name, with the same shape; they may hold more. max_batch: the largest number
 * of samples per run; all memory of the runs is allocated here. On success the caller owns *session. Errors:
 * ERR_ARGUMENT (max_batch less than 1), ERR_MISMATCH (a missing parameter, another shape, type or memory), ERR_MEMORY.
 */
ATT_API ATT_MUST_CHECK att_status att_session_create(const att_plan *plan, att_weights *weights, int max_batch,
                                                     att_session **session);
ATT_API void att_session_destroy(att_session **session);

/* Binds an input to host memory with one row per sample. The memory is read during runs and stays the caller's. Errors:
 * ERR_NOT_FOUND (no such input). */
ATT_API att_status att_session_bind(att_session *session, const char *input, const void *rows);

/* Runs an ATT_INFER plan on `batch` samples (1..max_batch). Errors: ERR_ARGUMENT (an input is not bound, batch is out
 * of range, the plan has gradients: use att_session_accumulate()), ERR_INTERNAL. */
ATT_API att_status att_session_run(att_session *session, int batch);

/* Copies rows [first, first + count) of an output of the last run to `rows`. Errors: ERR_NOT_FOUND (no such output),
 * ERR_ARGUMENT (rows beyond the batch of the last run; a probe, if the last run did not compute probes). */
ATT_API att_status att_session_output(att_session *session, const char *output, int first, int count, void *rows);

/* Sets whether later runs compute the probes (att_graph_probe()); at first they do. Runs with `on` false skip the
 * probes and the nodes that only probes need. */
ATT_API void att_session_observe(att_session *session, bool on);

/* Training: runs forward and backward on `batch` samples and adds to `gradient`, which must belong to the session's
 * weights.
 *   scale     factor of each sample's loss; 1 / (number of samples of the whole update) gives the mean
 *   seed, step, first
 *             dropout and drop path draw from (seed, step, position of the sample in the update, scope, index of the
 *             dropout within that scope), without the position for derived values; `first` is the position of this
 *             call's first sample in the update
 * gradient may be NULL if every parameter is frozen. Errors: ERR_ARGUMENT (an input is not bound, batch out of range,
 * `first` negative, a plan without gradients), ERR_MISMATCH (a gradient of other weights), ERR_INTERNAL. After a
 * failure the gradient may hold a part of the batch: call att_gradient_begin(). */
ATT_API att_status att_session_accumulate(att_session *session, att_gradient *gradient, int batch, double scale,
                                          uint64_t seed, int64_t step, int64_t first);

/* Calls of a kernel. seconds: summed over the threads; bytes: inputs read and outputs written by the calls, each value
 * once. */
typedef struct att_profile_row {
    const char *op, *kernel;
    int64_t calls;
    double seconds, flops, bytes;
} att_profile_row;

#ifdef __cplusplus
}
#endif
#endif
