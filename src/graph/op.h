/* graph/op.h - what an operation says about itself.
 *
 * An op is one file in ops/ that ends in one `const att_op`, plus its line in ops/list.h. It knows shapes, kinds, cost,
 * its backward rule and what it can swallow; it knows nothing of memory, threads or kernels.
 */
#ifndef ATT_GRAPH_OP_H
#define ATT_GRAPH_OP_H

#include <attscope/graph.h>

#include "core/export.h"

/* A value as ops and kernels see it: per sample for kind SAMPLE. rank -1: an optional input that is absent, or (for
 * kernels) an output that nobody reads, whose pointer is then NULL. */
typedef struct att_desc {
    att_dtype dtype;
    att_kind kind;
    att_shape shape;
} att_desc;

static inline bool att_desc_present(const att_desc *desc)
{
    return desc->shape.rank >= 0;
}

/* Shape rule: reads in[0..in_count) and attrs, writes the outputs by att_rule_out(): the first `room` of them to out[],
 * their number to out_count. A failure is reported with att_fail() in the op's own words (what it got, what it takes).
 */
typedef struct att_infer {
    att_context *context;
    const void *attrs;
    const att_desc *in;
    int in_count;
    att_desc *out;
    int room;
    int out_count;
    bool derived; /* every input is shared, so the node runs once: the rule accepts shared inputs where it takes sample
                     values, and its sample outputs become shared */
} att_infer;

typedef struct att_backward att_backward;
struct att_node;

/* One input a case draws for tests and benchmarks: N(0,1) times scale plus shift; for I32, whole numbers in
 * [0, limit). */
typedef struct att_case_input {
    att_desc desc;
    double scale, shift;
    int32_t limit;
} att_case_input;

enum { ATT_CASE_INPUTS = 9, ATT_CASE_OUTPUTS = 4 }; /* the most that a case has */

/* A test and benchmark case: the same inputs serve the comparison of kernels with the reference, the gradient check,
 * and the clock. */
typedef struct att_op_case {
    const char *name;                   /* "vit_tiny_qkv" */
    const void *attrs;                  /* as the op's own header says; NULL: all zero */
    att_case_input in[ATT_CASE_INPUTS]; /* absent ones: desc.shape.rank = -1 */
    int in_count;
    bool gradient; /* small enough for finite differences */
    bool bench;    /* a size that occurs in a real network */
} att_op_case;

enum {
    ATT_OP_RECOMPUTE = 1,            /* cheap: the backward pass computes it again instead of keeping its outputs */
    ATT_OP_RECOMPUTE_WITH_INPUT = 4, /* the same, where what makes in[0] is computed again too */
    ATT_OP_TRAIN_ONLY = 2,           /* the identity on in[0] in inference plans */
    ATT_OP_ABSORBS_FIRST = 8 /* absorbs before gradients are laid out: its backward rule covers what it absorbed */
};

typedef struct att_op {
    const char *name;
    const char *help;  /* one line with the formula */
    size_t attrs_size; /* of what a node carries besides its inputs; ops/<op>.h says what that is */
    unsigned flags;
    att_status (*infer)(att_infer *infer);
    /* Emits the nodes of the backward pass; NULL: gradients stop here with an error if one is wanted. */
    void (*backward)(att_backward *backward);
    /* What a training plan has in the op's place: emits nodes that stand for `node` and returns what stands for its
     * out[0]; ATT_NONE, having emitted nothing, where the node stays. Comes before gradients: it is the emitted nodes'
     * rules that are applied. NULL: it stays. */
    att_value (*in_training)(att_graph *graph, const struct att_node *node);
    /* Work for one sample (kind SAMPLE) or once (else). NULL: flops = elements of out[0]. bytes are derived from the
     * descriptions unless it sets them. */
    void (*cost)(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost);
    /* `producer` (this op) has one reader, `consumer`, through its out[0]. If it can do the consumer's work as well, it
     * changes its own attrs, which it does not share then, adds the consumer's other operand to its inputs, and returns
     * true; the producer then yields the consumer's out[0]. NULL: it swallows nothing. */
    bool (*absorb)(struct att_node *producer, const struct att_node *consumer);
    /* Mixed precision, a bit per input or output: inputs that may be bf16; those that should be (operands of matrix
     * products: a cast is put before them); outputs that may be, where every reader takes them so; inputs without which
     * no output is: a sum is as wide as its widest term. */
    unsigned autocast_in, autocast_wanted, autocast_out, autocast_with;
    const att_op_case *cases;
    int case_count;
    /* Optimisers: names of what is kept beside each parameter, NULL after the last; out[1..] of the op in this order.
     */
    const char *slots[3];
} att_op;

/* When a node runs. What is made of shared values alone is derived: it is the same for all samples. It runs in the
 * prologue, and what its gradient needs in the epilogue, on what the body has summed over the samples. */
typedef enum att_stage { ATT_BODY, ATT_PROLOGUE, ATT_EPILOGUE } att_stage;

/* A node of a graph; ops see it in absorb() and backward(). What its pointers point to lies in the graph, and a copy of
 * a node shares it: att_node_own() before one is changed. */
typedef struct att_node {
    const att_op *op;
    void *attrs;         /* op->attrs_size bytes; NULL: the op has none */
    att_value *in, *out; /* ATT_NONE: an absent input */
    int in_count, out_count;
    att_stage stage;
    int segment; /* of the body: passes/segment.c */
    const char *scope;
} att_node;

/* A case's attributes, zeros where it gives none; NULL where the op has none. */
ATT_FOR_LAB const void *att_op_case_attrs(const att_op *op, const att_op_case *definition);

/* The attributes of a node or of a problem, for reading. */
#define ATT_ATTRS(of, type) ((const att_##type##_attrs *)(of)->attrs)

/* Adds a node; returns out[0] (and all outputs in `out`, where that is not NULL and has room for them). attrs:
 * op->attrs_size bytes, copied; NULL where all are zero. Sticky as everything that builds. */
att_value att_emit(att_graph *graph, const char *op, const void *attrs, const att_value *in, int in_count,
                   att_value *out);

/* The node that makes a value, while none is added; NULL for inputs and parameters. */
const att_node *att_graph_maker(const att_graph *graph, att_value value);

/* The buffer takes over `value` (kind ATT_BATCH) at the end of each run of a training plan. */
void att_graph_assign(att_graph *graph, att_value buffer, att_value value);

/* --- for backward rules ----------------------------------------------------------------------------------------- */

att_graph *att_backward_graph(att_backward *backward);
const void *att_backward_attrs(const att_backward *backward);
/* Forward value of input or output i, computed again where its op is cheap to compute; ATT_NONE for an absent one. */
att_value att_backward_in(att_backward *backward, int i);
att_value att_backward_out(att_backward *backward, int i);
/* The description of forward input i. */
att_desc att_backward_in_desc(const att_backward *backward, int i);
/* The gradient that reaches output i; ATT_NONE where none does (never for i = 0). */
att_value att_backward_gradient(att_backward *backward, int i);
/* Whether a gradient for input i is asked for; a rule emits nothing for others. */
bool att_backward_wants(const att_backward *backward, int i);
/* Gives input i its gradient: kind SAMPLE for sample inputs, SUMMED for shared ones. Several are added. */
void att_backward_give(att_backward *backward, int i, att_value gradient);

#endif
