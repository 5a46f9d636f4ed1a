/* plan/plan.h - a compiled plan: what to call, on what memory, in which order.
 *
 * The body is a sequence of segments (passes/segment.h). A segment has one program per (group size, parts): the same
 * nodes, prepared for that size. A batch is cut into groups of the segment's size and, for what is left, of the powers
 * of two below it, so that no size is met unprepared.
 */
#ifndef ATT_PLAN_PLAN_H
#define ATT_PLAN_PLAN_H

#include "graph/graph.h"
#include "plan/units.h"

typedef enum att_place {
    ATT_AT_NOTHING,  /* absent, or read by nobody */
    ATT_AT_ARENA,    /* offset in bytes */
    ATT_AT_STORE,    /* kept for the batch: offset in bytes for each sample of the largest batch */
    ATT_AT_BATCH,    /* offset in bytes */
    ATT_AT_WEIGHTS,  /* index of the parameter */
    ATT_AT_GRADIENT, /* index of the sum (att_plan.sums); of other lanes than the first: spare and row_bytes */
    ATT_AT_DERIVED,  /* offset in bytes */
    ATT_AT_INPUT,    /* index of the input */
    ATT_AT_OUTPUT    /* index of the output */
} att_place;

typedef struct att_ref {
    att_place place;
    bool observed; /* read by observers only, or a probe */
    int64_t offset;
    int64_t row_bytes; /* inputs, outputs and what is kept; gradients: from lane to lane */
    size_t spare;      /* gradients: of lane 1, in the session's spare lanes */
} att_ref;

typedef struct att_step {
    const att_unit *unit;
    att_ref *in, *out; /* as many as the unit has */
    int packed;        /* index of the pack; -1: none */
    bool observer;     /* nothing but probes needs it */
    const char *scope;
} att_step;

/* A shared value in a kernel's own layout, made in the prologue, or just before the one step that runs once and wants
 * it. */
typedef struct att_pack {
    bool once;
    const att_unit *unit;
    const att_ref *in; /* of the unit's inputs */
    size_t offset;     /* in the session's packed block */
} att_pack;

typedef struct att_program {
    int group, parts;
    att_step *steps;
    int step_count;
    size_t arena_bytes, scratch_bytes; /* scratch: per part */
} att_program;

/* Steps that run once, on values that are the same for all samples. Steps of one chain come one after the other;
 * chains know nothing of each other. */
typedef struct att_once {
    att_step *steps;
    int *chains; /* of each step */
    int count;
} att_once;

/* A constant's contents, which a session takes over. */
typedef struct att_upload {
    int64_t offset; /* among the derived values */
    const void *data;
    size_t bytes;
} att_upload;

/* A gradient to which a segment adds. Lane 0 adds to the gradient itself; what the other lanes sum lies one behind the
 * other in the session's spare lanes. */
typedef struct att_lane_sum {
    int index;           /* of the sum */
    size_t spare, bytes; /* where the spare lanes begin; of one lane */
    const att_unit *sum; /* of the spare lanes into the gradient */
} att_lane_sum;

/* Nodes [first, end) of the rewritten graph run on groups; then, once and shared by all threads, lanes are summed and
 * the reductions run. */
typedef struct att_segment {
    int first, end, group;
    att_program *programs;
    int program_count;
    att_lane_sum *sums;
    int sum_count; /* 0 where there is one lane */
    att_step *reductions;
    int reduction_count;
} att_segment;

typedef struct att_port {
    const char *name;
    att_desc desc;
    int64_t row_bytes;
    bool probe;
    int holder; /* the first port of the same value, whose memory has the rows */
} att_port;

typedef struct att_sum {
    int64_t elements;
    bool used;     /* something adds to it */
    size_t offset; /* of totals, in the session's own */
} att_sum;

/* The string of the graph that was copied last, and its copy. */
typedef struct att_scope_copy {
    const char *from, *to;
} att_scope_copy;

struct att_plan {
    att_context *context;
    att_arena arena;
    att_units units;
    att_purpose purpose;
    att_precision precision;
    att_dtype dtype;
    int lanes, teams, parts; /* teams x parts threads run the body */
    att_segment *segments;
    int segment_count;
    size_t store_bytes, batch_bytes; /* kept for each sample of a batch, and for all together */
    size_t scratch_bytes;            /* of a reduction, per part */
    ATT_LIST(att_pack) packs;
    size_t packed_bytes;
    const att_parameter_info *parameters;
    int parameter_count;
    int *assigned; /* buffers that a run changes: indices among the parameters */
    int assigned_count;
    bool prologue_reads_assigned;
    att_once prologue, epilogue;
    size_t derived_bytes, total_bytes; /* values of prologue and epilogue; sums of gradients of derived values */
    att_upload *uploads;
    int upload_count;
    /* What gradients are summed in: one for each parameter, then the totals. */
    att_sum *sums;
    int sum_count;
    att_port *inputs, *outputs;
    int input_count, output_count;
    size_t spare_bytes; /* of all lanes but the first, in the segment that needs most */
    uint64_t graph_hash;
    att_scope_copy last_scope;
    char *fingerprint;
};

/* Whether all samples read the same there. */
static inline bool att_is_shared(const att_ref *ref)
{
    return ref->place == ATT_AT_WEIGHTS || ref->place == ATT_AT_DERIVED;
}

/* The program for a group of `group` samples shared by `parts` threads; NULL where there is none. */
const att_program *att_segment_program(const att_segment *segment, int group, int parts);

/* A graph as plans see it after rewriting: nodes in order of segments. */
typedef struct att_rewritten {
    const att_graph *graph;
    const int *owner;      /* by value: the sum that it adds to, -1 for others; NULL: no gradients */
    const bool *observers; /* by node */
    const int *readers;    /* by value, as kernels should see them */
} att_rewritten;

/* plan/sizes.c: lanes, teams and parts, and the group of each segment. */
att_status att_choose_sizes(att_plan *plan, const att_rewritten *from, const att_plan_options *options);
/* plan/lowering.c: everything that runs samples. */
att_status att_plan_lower(att_plan *plan, const att_rewritten *from);
/* plan/once.c: prologue and epilogue. refs: of all values, placed. */
att_status att_make_once(att_plan *plan, const att_rewritten *from, const att_ref *refs);
/* plan/lowering.c: the step of a node, whose refs are placed. */
att_status att_prepare_step(att_plan *plan, const att_rewritten *from, int node, int group, int parts, att_step *step);
/* Makes it large enough for the unit, too. */
void att_widen_scratch(size_t *scratch, const att_unit *unit);
/* plan/fingerprint.c: plan->graph_hash, of a graph without copies of nodes; then the text. */
att_status att_hash_graph(att_plan *plan, const att_rewritten *from);
att_status att_write_fingerprint(att_plan *plan);

/* plan/memory_planner.c: the memory of every value that is not local to its segment, by value, and the plan's
 * store_bytes and batch_bytes. *refs is the caller's. */
att_status att_place_shared(att_plan *plan, const att_rewritten *from, att_ref **refs);
/* Gives every local value of the segment its memory: sets the refs of *program and its arena_bytes. In `refs` the
 * offsets of local values change. */
att_status att_place_local(att_plan *plan, const att_rewritten *from, const att_segment *segment, att_ref *refs,
                           att_program *program);
/* plan/lanes.c: the sums of each segment, and where its refs of gradients find other lanes than the first. */
att_status att_place_lanes(att_plan *plan, const att_rewritten *from, att_ref *refs);
/* The refs of one node. */
att_status att_place_node(att_plan *plan, const att_node *node, const att_ref *refs, att_step *step);
/* What arena_bytes would be without the observers. */
att_status att_place_measure(const att_plan *plan, const att_rewritten *from, const att_segment *segment,
                             const att_ref *refs, int group, size_t *arena_bytes);

#endif
