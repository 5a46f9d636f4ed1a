/* graph/op.h - the descriptor of an operation.
 *
 * An op is one file in ops/ that ends in one `const att_op`, plus a line in ops/list.h. The descriptor holds the shape
 * rule, the cost, the backward rule, and what the op can absorb. It knows nothing of memory, threads or kernels.
 */
#ifndef ATT_GRAPH_OP_H
#define ATT_GRAPH_OP_H

#include <attscope/graph.h>

#include "base/core/export.h"

/* Type and shape of a value, as ops and kernels see it; the shape of one sample for kind SAMPLE. rank -1 marks an
 * optional input that is absent or, for kernels, an output that nobody reads; its pointer is then NULL. */
typedef struct att_desc {
    att_dtype dtype;
    att_kind kind;
    att_shape shape;
} att_desc;

static inline bool att_desc_present(const att_desc *desc)
{
    return desc->shape.rank >= 0;
}

typedef struct att_op att_op;

/* Arguments of a shape rule. The rule reads in[0..in_count) and attrs, and reports each output with att_rule_out():
 * out[] stores the first `room` of them, and out_count counts all of them. It reports errors with att_fail(); the
 * message says which input the rule got and which it expects. */
typedef struct att_infer {
    att_context *context;
    const att_op *op; /* the node's op: ops may share a rule */
    const void *attrs;
    const att_desc *in;
    int in_count;
    att_desc *out;
    int room;
    int out_count;
    bool derived; /* All inputs are shared, so the node runs once. The rule accepts shared inputs in place of sample
                     values, and its sample outputs become shared. */
} att_infer;

typedef struct att_backward att_backward;
struct att_node;

/* How a test case draws one input: N(0, 1) times scale, plus shift; for I32, integers in [0, limit). */
typedef struct att_case_input {
    att_desc desc;
    double scale, shift;
    int32_t limit;
} att_case_input;

enum { ATT_CASE_INPUTS = 10, ATT_CASE_OUTPUTS = 6 }; /* the most inputs and outputs of any case */

/* A test and benchmark case. Kernel tests, gradient checks and benchmarks use the same inputs. */
typedef struct att_op_case {
    const char *name;                   /* for example "vit_tiny_qkv" */
    const void *attrs;                  /* the op's attributes, declared in ops/<op>.h; NULL: all zero */
    att_case_input in[ATT_CASE_INPUTS]; /* an absent input has desc.shape.rank = -1 */
    int in_count;
    bool gradient; /* small enough for finite differences */
    bool bench;    /* a size that occurs in a real network */
} att_op_case;

enum {
    ATT_OP_RECOMPUTE = 1,            /* cheap: the backward pass recomputes the outputs instead of keeping them */
    ATT_OP_RECOMPUTE_WITH_INPUT = 4, /* the same, but only if the node that computes in[0] is recomputed, too */
    ATT_OP_TRAIN_ONLY = 2,           /* in inference plans, the identity on in[0] */
    ATT_OP_ABSORBS_FIRST = 8, /* absorbs before differentiation: the op's backward rule covers what it absorbed */
    ATT_OP_NEEDS_SAMPLES =
        16,               /* has no meaning for shared values: it draws for samples, or computes their statistics */
    ATT_OP_CONSTANT = 32, /* the outputs are constants for differentiation, such as the boxes of proposals */
    ATT_OP_DRAWS = 64,    /* the outputs depend on random draws, in training */
    ATT_OP_MAPS = 128     /* samples are maps [h, w, C], or R maps [R, h, w, C], which kernels get as R samples each */
};

struct att_op {
    const char *name;
    const char *help; /* one line with the formula */
    /* Size of the node's attributes, which ops/<op>.h declares. They have no padding bytes, because equal nodes are
     * found by comparing bytes. */
    size_t attrs_size;
    unsigned flags;
    att_status (*infer)(att_infer *infer);
    /* Emits the nodes of the backward pass. NULL: differentiating through the op is an error. */
    void (*backward)(att_backward *backward);
    /* The training form of the op. Emits nodes that replace `node` in training plans and returns the value that
     * replaces its out[0]; returns ATT_NONE and emits nothing if the node stays. If the op has more outputs, the value
     * must be out[0] of an emitted node with the same outputs, which replace the others. Runs before differentiation,
     * so gradients follow the backward rules of the emitted nodes. NULL: the node stays. */
    att_value (*in_training)(att_graph *graph, const struct att_node *node);
    /* Work for one sample if outputs are of kind SAMPLE, else for one evaluation. Bytes that cost() does not set follow
     * from the shapes and types, flops that it does not set are 2 macs. NULL: flops = flops_per_in for each element of
     * in[0], or, if flops_per_in is 0, flops_per_out for each element of out[0]; 0 there means 1. */
    void (*cost)(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost);
    double flops_per_in, flops_per_out;
    /* `producer` is a node of this op, and `consumer` is the only reader of its out[0]. If the op can also do the
     * consumer's work, absorb() changes the producer's attrs (which no other node shares then), appends the consumer's
     * other operands to its inputs, and returns true. The producer then yields the consumer's out[0]. NULL: the op
     * absorbs nothing. */
    bool (*absorb)(struct att_node *producer, const struct att_node *consumer);
    /* Mixed precision, one bit per input or output. autocast_in: inputs that may be bf16. autocast_cast: inputs that
     * are cast to bf16 (operands of matrix products). autocast_out: outputs that may be bf16 if every reader accepts
     * bf16. autocast_promote: inputs that, if f32, keep the outputs f32 (a sum is as wide as its widest term). */
    unsigned autocast_in, autocast_cast, autocast_out, autocast_promote;
    const att_op_case *cases;
    int case_count;
    /* Optimisers: names of the slots kept for each parameter, NULL after the last. Slot i is output out[1 + i] of the
     * op. */
    const char *slots[3];
};

/* When a node runs. The body runs for every group of samples. Derived values depend on shared values alone: the
 * prologue computes them once, before the body. The epilogue propagates the gradients of derived values once, after the
 * body has summed these gradients over the samples. */
typedef enum att_stage { ATT_BODY, ATT_PROLOGUE, ATT_EPILOGUE } att_stage;

/* A node of a graph. Its pointers point into the graph, and a copy of the struct shares them: call att_node_own()
 * before changing what they point to. */
typedef struct att_node {
    const att_op *op;
    void *attrs;         /* op->attrs_size bytes; NULL if the op has none */
    att_value *in, *out; /* ATT_NONE marks an absent input */
    int in_count, out_count;
    att_stage stage;
    int segment; /* for nodes of the body, see passes/segment.h */
    const char *scope;
    bool frozen; /* runs in training as in inference, see att_graph_freeze() (passes/passes.h) */
    bool copy;   /* added for probes, such as a copy of a part of the graph (measure/clone.h): instruments ignore it */
} att_node;

/* The case's attributes: zeros if the case gives none, NULL if the op has none. */
ATT_FOR_LAB const void *att_op_case_attrs(const att_op *op, const att_op_case *definition);

/* Adds the op's work to `cost`, whose flops and macs must be 0. If out[0] is absent, as in problems of kernels, an op
 * whose flops follow from out[0] costs nothing. */
ATT_FOR_LAB void att_op_cost(const att_op *op, const att_desc *in, const att_desc *out, const void *attrs,
                             att_cost *cost);

/* The attributes of a node or of a problem, read-only. */
#define ATT_ATTRS(of, type) ((const att_##type##_attrs *)(of)->attrs)

/* Adds a node. Returns out[0], and writes all outputs to `out` unless that is NULL. attrs: op->attrs_size bytes,
 * copied; NULL: all zero. After the first failure of the graph it does nothing and returns ATT_NONE. */
att_value att_emit(att_graph *graph, const char *op, const void *attrs, const att_value *in, int in_count,
                   att_value *out);

/* The node that computes `value`; NULL for inputs and parameters. The pointer is valid until a node is added. */
const att_node *att_graph_producer(const att_graph *graph, att_value value);

/* Sets the buffer to `value` (kind ATT_BATCH) at the end of each run of a training plan. */
void att_graph_assign(att_graph *graph, att_value buffer, att_value value);

/* --- for backward rules ----------------------------------------------------------------------------------------- */

att_graph *att_backward_graph(att_backward *backward);
/* The op of the forward node, and its attributes. */
const att_op *att_backward_op(const att_backward *backward);
const void *att_backward_attrs(const att_backward *backward);
/* The forward value of input or output i, or its recomputed copy if the op is marked ATT_OP_RECOMPUTE. ATT_NONE if
 * absent. */
att_value att_backward_in(att_backward *backward, int i);
att_value att_backward_out(att_backward *backward, int i);
/* Type and shape of forward input i. */
att_desc att_backward_in_desc(const att_backward *backward, int i);
/* The gradient of output i; ATT_NONE if there is none (never for i = 0). */
att_value att_backward_gradient(att_backward *backward, int i);
/* Whether input i needs a gradient. A rule emits nothing for other inputs. */
bool att_backward_needs_gradient(const att_backward *backward, int i);
/* Adds `gradient` to the gradient of input i. Kind SAMPLE for sample inputs, SUMMED for shared inputs. */
void att_backward_add_gradient(att_backward *backward, int i, att_value gradient);

#endif
