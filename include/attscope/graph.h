/* attscope/graph.h - a network, declared once.
 *
 * A graph describes ONE SAMPLE: there is no batch axis. A value says how it relates to the batch:
 *
 *   sample   one per sample: images, activations, per-sample losses
 *   shared   one for all samples: parameters, buffers, constants, and whatever operations make of shared values
 *            alone. Such derived values are computed once after the weights changed, not once per sample; their
 *            gradients are summed over the samples first and then run backward once
 *   summed   one for all samples, the sum over them of what each contributes: gradients of shared values
 *   batch    one for the samples of a run, made from all of them: statistics of batch norm. What reads it waits until
 *            every sample has been there
 *
 * Operations (attscope/ops.h) add nodes and return values. Building is sticky: the first failure is kept in the graph,
 * every later call does nothing and returns ATT_NONE, and att_graph_status() or the compilation reports it; model code
 * needs no check per line. A graph is compiled into plans (attscope/plan.h); it may be compiled many times and freed
 * after.
 */
#ifndef ATTSCOPE_GRAPH_H
#define ATTSCOPE_GRAPH_H

#include <attscope/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_graph att_graph;
/* A value's number in its graph. */
typedef int32_t att_value;
enum { ATT_NONE = -1 };

/* X(name, text) */
#define ATT_KIND_LIST(X) X(SAMPLE, "sample") X(SHARED, "shared") X(SUMMED, "summed") X(BATCH, "batch")

typedef enum att_kind {
#define ATT_KIND_ENUM(name, text) ATT_##name,
    ATT_KIND_LIST(ATT_KIND_ENUM)
#undef ATT_KIND_ENUM
} att_kind;

/* How a parameter starts. Draws come from Philox keyed by (seed, parameter's name), so that they depend on neither
 * order nor threads. */
typedef enum att_init_rule {
    ATT_INIT_CONSTANT,     /* every element = value */
    ATT_INIT_NORMAL,       /* N(0, value^2) */
    ATT_INIT_TRUNC_NORMAL, /* N(0, value^2), redrawn outside [-2, 2] (absolute bounds, as timm's trunc_normal_) */
    ATT_INIT_UNIFORM       /* U(-value, value) */
} att_init_rule;

typedef struct att_init {
    att_init_rule rule;
    double value;
} att_init;

/* dtype: the type activations and parameters are computed in; ATT_F32, or ATT_F64 (reference kernels only, for
 * gradient checks). On success *graph is the caller's, freed by att_graph_destroy(). */
ATT_API ATT_MUST_CHECK att_status att_graph_create(att_context *context, att_dtype dtype, att_graph **graph);
ATT_API void att_graph_destroy(att_graph **graph);

/* ATT_OK, or the first failure while building (the message was put into the context then). */
ATT_API att_status att_graph_status(const att_graph *graph);
/* Makes the graph fail with `status`, whose sentence was put into the context, unless it has failed already; returns
 * ATT_NONE. For those who write modules and heads: return att_graph_fail(graph, att_fail(att_graph_context(graph),
 * ATT_ERR_ARGUMENT, "...")). */
ATT_API att_value att_graph_fail(att_graph *graph, att_status status);
ATT_API att_dtype att_graph_dtype(const att_graph *graph);
ATT_API att_context *att_graph_context(const att_graph *graph);

/* An input that the caller binds at each run: a sample value of the given type and shape per sample. Names of inputs
 * and outputs are unique. */
ATT_API att_value att_graph_input(att_graph *graph, const char *name, att_dtype dtype, att_shape shape);

/* A shared value with a name unique among the parameters ("blocks.0.attn.qkv.weight"), of the graph's type.
 * decay: whether weight decay applies to it (timm: false for one-dimensional tensors, position embedding and class
 * token). */
ATT_API att_value att_graph_parameter(att_graph *graph, const char *name, att_shape shape, att_init init, bool decay);

/* A shared value that no gradient reaches and no optimiser touches, kept with the parameters under their names: running
 * statistics. Training may assign it (batch norm does). */
ATT_API att_value att_graph_buffer(att_graph *graph, const char *name, att_shape shape, double start);

/* A shared value whose contents are known: `data` has as many elements as the shape, is copied, and is never trained.
 */
ATT_API att_value att_graph_constant(att_graph *graph, att_dtype dtype, att_shape shape, const void *data);

/* Makes a sample value that an operation made an output under a name, or under one name more; it comes back from each
 * run, one row per sample. An input cannot be an output. */
ATT_API void att_graph_output(att_graph *graph, const char *name, att_value value);

/* As att_graph_output(), for observing: a probe and what it alone needs leave every other result the same to the bit,
 * with the plan's group and fingerprint, and a session can leave them out (att_session_observe()). A value that a later
 * operation absorbs (attscope/ops.h says which) is computed once more for a probe of it. */
ATT_API void att_graph_probe(att_graph *graph, const char *name, att_value value);

/* The value of the output `name`, probes left aside; ATT_NONE where there is none. */
ATT_API att_value att_graph_find_output(const att_graph *graph, const char *name);

/* The operations of the graph, in the order in which they were added: each comes after those that make its inputs.
 * Everything that the pointers point to lives as long as the graph and until its next change. */
typedef struct att_node_info {
    const char *op;            /* "attention", "add", "linear" */
    const char *scope;         /* "blocks.3.attn" */
    const att_value *in, *out; /* ATT_NONE: an input that is absent */
    int in_count, out_count;
} att_node_info;
ATT_API int att_graph_node_count(const att_graph *graph);
ATT_API att_node_info att_graph_node_at(const att_graph *graph, int node);

/* Nodes made from now on are named `scope`, for probes and profiles ("blocks.3.attn"); copied. */
ATT_API void att_graph_scope(att_graph *graph, const char *scope);

/* Description of a value. ATT_NONE or another graph's number: rank 0, kind sample. */
ATT_API att_shape att_value_shape(const att_graph *graph, att_value value);
ATT_API att_dtype att_value_dtype(const att_graph *graph, att_value value);
ATT_API att_kind att_value_kind(const att_graph *graph, att_value value);

/* The parameters and buffers in order of declaration. name lives as long as the graph. */
typedef struct att_parameter_info {
    const char *name;
    att_value value;
    att_shape shape;
    att_init init;
    bool decay;
    bool buffer; /* not trained */
} att_parameter_info;
ATT_API int att_graph_parameter_count(const att_graph *graph);
ATT_API att_parameter_info att_graph_parameter_at(const att_graph *graph, int index);
/* Elements in all parameters together, buffers not counted. */
ATT_API int64_t att_graph_parameter_elements(const att_graph *graph);

/* Work for one sample, forward: multiply-adds of matrix products and attention counted as two operations each; other
 * ops as their descriptors say. Derived values are not counted. */
typedef struct att_cost {
    double flops; /* all floating-point operations */
    double macs;  /* multiply-adds of matrix products only, as peers count them */
    double bytes; /* read and written, each value once */
} att_cost;
ATT_API att_cost att_graph_cost(const att_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
