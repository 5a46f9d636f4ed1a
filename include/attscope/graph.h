/* attscope/graph.h - the description of a network, which a program or its modules, tasks and instruments build from
 * operations (attscope/ops.h).
 *
 * A graph describes ONE SAMPLE: there is no batch axis. Every value has a kind, which says how it relates to the batch:
 *
 *   sample   one per sample: images, activations, per-sample losses
 *   shared   one for all samples: parameters, buffers, constants, and the results of operations on shared values only.
 *            Such results are called derived values. They are computed once after the weights change, not once per
 *            sample. Their gradients are first summed over the samples and then propagated backward once
 *   summed   one for all samples, a sum of contributions of each sample: gradients of shared values
 *   batch    one for all samples of a run, computed from all of them: batch norm's statistics. An operation that reads
 *            such a value runs after every sample has been processed
 *
 * Operations (attscope/ops.h) add nodes and return values. Errors are sticky: the graph keeps its first failure, and
 * every later call does nothing and returns ATT_NONE. att_graph_status() or att_plan_compile() reports the failure, so
 * model code does not check every call. A graph can be compiled into plans (attscope/plan.h) any number of times, and
 * freed afterwards.
 */
#ifndef ATTSCOPE_GRAPH_H
#define ATTSCOPE_GRAPH_H

#include <attscope/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_graph att_graph;
/* Index of a value in its graph. */
typedef int32_t att_value;
enum { ATT_NONE = -1 };

/* X(name, text) */
#define ATT_KIND_LIST(X) X(SAMPLE, "sample") X(SHARED, "shared") X(SUMMED, "summed") X(BATCH, "batch")

typedef enum att_kind {
#define ATT_KIND_ENUM(name, text) ATT_##name,
    ATT_KIND_LIST(ATT_KIND_ENUM)
#undef ATT_KIND_ENUM
} att_kind;

/* Distribution of a parameter's initial values. Random numbers come from Philox, keyed by (seed, parameter's name);
 * they depend neither on the order of parameters nor on threads. */
typedef enum att_init_rule {
    ATT_INIT_CONSTANT,     /* every element = value */
    ATT_INIT_NORMAL,       /* N(0, value^2) */
    ATT_INIT_TRUNC_NORMAL, /* N(0, value^2), redrawn while outside [-2, 2] (absolute bounds, as timm's trunc_normal_) */
    ATT_INIT_UNIFORM,      /* U(-value, value) */
    /* N(0, value^2), plus 1 where the last two indices are equal; of a vector, plus 1 everywhere. */
    ATT_INIT_NEAR_IDENTITY,
    ATT_INIT_CENTERED, /* element i of n = value (i - (n - 1) / 2) */
    /* Frequencies [2, depth, heads, d / 2] of att_rotary_mixed(), as timm's init_random_2d_freqs(). For each block and
     * head an angle a is drawn from U(0, 2 pi). With f_i = value^(-4i / d), i < d / 4, frequencies i and d / 4 + i of
     * the first axis are f_i cos a and f_i cos(a + pi / 2), those of the second f_i sin a and f_i sin(a + pi / 2). */
    ATT_INIT_ROTARY
} att_init_rule;

typedef struct att_init {
    att_init_rule rule;
    double value;
} att_init;

/* Creates an empty graph. dtype: type of activations and parameters: ATT_F32, or ATT_F64 (backends "ref" and "f64",
 * for gradient checks and measurements). On success the caller owns *graph and frees it with att_graph_destroy().
 * Errors: ERR_ARGUMENT (dtype), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_graph_create(att_context *context, att_dtype dtype, att_graph **graph);
ATT_API void att_graph_destroy(att_graph **graph);

/* Returns ATT_OK or the first failure; the context received its message when it happened. */
ATT_API att_status att_graph_status(const att_graph *graph);
/* Makes the graph fail with `status` unless it has failed already, and returns ATT_NONE. The caller must have set the
 * context's message (att_fail()). For authors of modules and heads: return att_graph_fail(graph,
 * att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT, "...")). */
ATT_API att_value att_graph_fail(att_graph *graph, att_status status);
ATT_API att_dtype att_graph_dtype(const att_graph *graph);
ATT_API att_context *att_graph_context(const att_graph *graph);

/* Adds an input: a sample value of this type and shape that the caller binds before each run (att_session_bind()).
 * Names are unique among inputs. */
ATT_API att_value att_graph_input(att_graph *graph, const char *name, att_dtype dtype, att_shape shape);

/* Adds a parameter: a trained shared value of the graph's type. Its name is unique among parameters and buffers
 * ("blocks.0.attn.qkv.weight"). decay: whether weight decay applies to it (timm: false for one-dimensional tensors,
 * position embedding and class token). */
ATT_API att_value att_graph_parameter(att_graph *graph, const char *name, att_shape shape, att_init init, bool decay);

/* Adds a buffer: a shared value without a gradient, not updated by an optimiser, and stored with the parameters under
 * its name. Used for running statistics, which batch norm assigns in training. start: initial value of every element.
 */
ATT_API att_value att_graph_buffer(att_graph *graph, const char *name, att_shape shape, double start);

/* Adds a constant: a shared value that is never trained. `data` holds as many elements as the shape and is copied. */
ATT_API att_value att_graph_constant(att_graph *graph, att_dtype dtype, att_shape shape, const void *data);

/* Makes a value an output called `name`; each run returns one row per sample. The value must be a sample value made by
 * an operation, not an input. It may be an output under several names. Names are unique among outputs and probes. */
ATT_API void att_graph_output(att_graph *graph, const char *name, att_value value);

/* Adds a probe: an output that only observes. A probe, and the nodes that only probes need, change no bit of any other
 * result, and change neither the plan's group size nor its fingerprint. A session can skip them
 * (att_session_observe()). If the plan fuses the probed value into another operation (such as a convolution with the
 * ReLU that follows), the value is computed a second time for the probe. */
ATT_API void att_graph_probe(att_graph *graph, const char *name, att_value value);

/* Returns the output `name`, ATT_NONE if there is none. Probes are not searched. */
ATT_API att_value att_graph_find_output(const att_graph *graph, const char *name);

/* The nodes of the graph, in the order in which they were added: each comes after those that make its inputs. The
 * pointers are valid until the graph changes or is freed. */
typedef struct att_node_info {
    const char *op;            /* "attention", "add", "linear" */
    const char *scope;         /* "blocks.3.attn" */
    const att_value *in, *out; /* an input that is absent is ATT_NONE */
    int in_count, out_count;
} att_node_info;
ATT_API int att_graph_node_count(const att_graph *graph);
ATT_API att_node_info att_graph_node_at(const att_graph *graph, int node);

/* Sets the scope ("blocks.3.attn") of all nodes that are added afterwards. Probes and profiles name nodes by their
 * scopes. `scope` is copied. */
ATT_API void att_graph_scope(att_graph *graph, const char *scope);

/* Shape, type and kind of a value. For ATT_NONE and numbers outside the graph: rank 0, kind sample. */
ATT_API att_shape att_value_shape(const att_graph *graph, att_value value);
ATT_API att_dtype att_value_dtype(const att_graph *graph, att_value value);
ATT_API att_kind att_value_kind(const att_graph *graph, att_value value);

/* Parameters and buffers in order of declaration; index: 0..count-1. The name lives as long as the graph. */
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
/* Returns the number of elements of all parameters, without buffers. */
ATT_API int64_t att_graph_parameter_elements(const att_graph *graph);

/* Cost of the forward pass for one sample, without derived values. A multiply-add of a matrix product or of attention
 * counts as two operations. */
typedef struct att_cost {
    double flops; /* all floating-point operations */
    double macs;  /* multiply-adds of matrix products only: the figure that papers give */
    double bytes; /* bytes read and written, each value once */
} att_cost;
ATT_API att_cost att_graph_cost(const att_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
