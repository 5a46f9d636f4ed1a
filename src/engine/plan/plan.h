/* plan/plan.h - a compiled plan: which kernels to call, in which order, on which memory.
 *
 * The body is a sequence of segments (passes/segment.h). A segment has one program for each pair of group size and
 * parts: the segment's nodes, prepared for that size. A batch is split into groups of the segment's size; the remainder
 * is split into smaller powers of two. All of these sizes are prepared at compile time.
 */
#ifndef ATT_PLAN_PLAN_H
#define ATT_PLAN_PLAN_H

#include "base/core/export.h"
#include "engine/graph/graph.h"
#include "engine/plan/units.h"

typedef enum att_place {
    ATT_AT_NONE,     /* an absent input, or an output that nobody reads */
    ATT_AT_ARENA,    /* offset in bytes */
    ATT_AT_STORE,    /* kept for the batch: offset in bytes per sample of the largest batch */
    ATT_AT_BATCH,    /* offset in bytes */
    ATT_AT_WEIGHTS,  /* index of the parameter */
    ATT_AT_GRADIENT, /* index into att_plan.sums; lanes other than the first: see spare and row_bytes */
    ATT_AT_DERIVED,  /* offset in bytes */
    ATT_AT_INPUT,    /* index of the input */
    ATT_AT_OUTPUT,   /* index of the output */
    ATT_AT_GATHERED  /* rows of all processes: offset in bytes per sample of the largest batch */
} att_place;

typedef struct att_ref {
    att_place place;
    bool observed; /* a probe, or read by observers only */
    int64_t offset;
    int64_t row_bytes; /* inputs, outputs and kept values: bytes per sample; gradients: bytes from lane to lane */
    size_t spare;      /* gradients: offset of the first spare lane in the session's spare lanes */
} att_ref;

typedef struct att_step {
    int completed; /* gradients of the segment, att_segment.sums, that are complete behind this step of its last group
                    */
    const att_unit *unit;
    att_ref *in, *out; /* one for each input and output of the unit */
    int packed;        /* index of the pack; -1: none */
    size_t scratch;    /* steps of a program: offset of the parts' scratch in the arena */
    bool observer;     /* only probes need the step */
    const char *scope;
} att_step;

/* Shared values in a kernel's own layout. Computed in the prologue, or, if `once`, just before the only step that uses
 * them, or, if `segment` is not -1, before this segment runs: packs of different segments share memory then. */
typedef struct att_pack {
    bool once;
    int segment;
    const att_unit *unit;
    const att_ref *in; /* the unit's inputs */
    size_t offset;     /* in the session's packed memory, or among the packs of the segment */
} att_pack;

typedef struct att_program {
    int group, parts;
    att_step *steps;
    int step_count;
    size_t arena_bytes; /* values and scratch */
    size_t base;        /* of the first team's arena in the segment's memory */
} att_program;

/* Steps that run once, on values that are the same for all samples. Steps of one chain run in order; different chains
 * are independent. */
typedef struct att_once_steps {
    att_step *steps;
    int *chains; /* chain of each step */
    int count;
} att_once_steps;

/* A constant's contents, which each session copies. */
typedef struct att_upload {
    int64_t offset; /* among the derived values */
    const void *data;
    size_t bytes;
} att_upload;

/* A gradient that a segment adds to. Lane 0 adds to the gradient itself. The sums of this process's other lanes, the
 * spare lanes, lie one after the other. */
typedef struct att_lane_sum {
    int last;            /* node that is the last to add */
    int index;           /* into att_plan.sums */
    size_t spare, bytes; /* spare: offset of the first spare lane; bytes: size of one lane */
    const att_unit *sum; /* adds the spare lanes to the gradient; NULL: this process has no spare lanes */
} att_lane_sum;

/* A sample value that reductions read with the rows of all processes. */
typedef struct att_gather {
    att_ref from;   /* this process's rows */
    int64_t offset; /* of ATT_AT_GATHERED */
} att_gather;

/* Nodes [first, end) of the rewritten graph run for each group, on a team of `parts` threads. Then all threads sum the
 * lanes and run the reductions together. */
typedef struct att_segment {
    int first, end, group, parts;
    att_program *programs;
    int program_count;
    att_lane_sum *sums;     /* in the order in which they are complete */
    bool repeats;           /* with other processes: it adds to gradients that the last segment before it adds to */
    bool reductions_repeat; /* with other processes: reductions add to gradients in `sums`, though not as lanes do */
    int turn;               /* with other processes: which half of the spare lanes */
    int sum_count;          /* 0 if there is only one lane */
    att_gather *gathers;    /* before the reductions */
    int gather_count;
    att_step *reductions;
    int reduction_count;
    int first_pack, pack_count;    /* packs that are computed before the segment runs */
    size_t lane_bytes, pack_bytes; /* in the memory of segments */
} att_segment;

typedef struct att_port {
    const char *name;
    att_desc desc;
    int64_t row_bytes;
    bool probe;
    int holder; /* index of the first port of the same value, which has the memory */
} att_port;

typedef struct att_sum {
    int64_t elements;
    bool used;     /* the graph adds to the gradient */
    size_t offset; /* totals: offset in the session's memory for totals */
} att_sum;

/* The scope that was copied last, and its copy. */
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
    att_cost cost;  /* of the body, for one sample */
    att_comm *comm; /* NULL: this process is on its own */
    bool sync_statistics;
    int lanes;                   /* of all processes: partial sums of each gradient, each over a share of the batch */
    int first_lane, local_lanes; /* those of this process */
    /* The body runs on teams x parts threads; a team computes one lane at a time. Segments whose arenas are large have
     * one team of all threads (att_segment.parts). */
    int teams, parts;
    att_segment *segments;
    int segment_count;
    size_t store_bytes, batch_bytes; /* store: per sample; batch values: once */
    size_t scratch_bytes;            /* of reductions and steps that run once, per part or thread */
    ATT_LIST(att_pack) packs;
    size_t packed_bytes;
    const att_parameter_info *parameters;
    int parameter_count;
    int *assigned; /* indices of the parameters (buffers) that a run changes */
    int assigned_count;
    bool prologue_reads_assigned;
    bool prologue_draws; /* it has random draws, which differ between updates */
    bool draws;          /* the body has */
    att_once_steps prologue, epilogue;
    size_t derived_bytes, total_bytes; /* derived: values of prologue, epilogue and constants; total: sums of the
                                          gradients of derived values */
    att_upload *uploads;
    int upload_count;
    /* The gradients: one for each parameter, then one for each total. */
    att_sum *sums;
    int sum_count;
    att_port *inputs, *outputs;
    int input_count, output_count;
    size_t gathered_bytes; /* per sample of the largest batch, for the segment that needs most */
    size_t spare_bytes;    /* spare lanes of the segment that needs most; with other processes, of two */
    /* The first segment holds what is the same for a sample in every update, so that its values can be remembered: it
     * reads no trained parameter and draws nothing. frozen: the values that later segments read, frozen_bytes per
     * sample; frozen_reads: by input. frozen_count 0: there is no such segment. */
    att_ref *frozen;
    int frozen_count;
    size_t frozen_bytes;
    bool *frozen_reads;
    uint64_t graph_hash;
    att_scope_copy last_scope;
    char *fingerprint;
};

/* The first lane that does not add to the gradient itself. */
static inline int att_first_spare_lane(const att_plan *plan)
{
    return plan->first_lane > 0 ? plan->first_lane : 1;
}

static inline int att_spare_lanes(const att_plan *plan)
{
    return plan->first_lane + plan->local_lanes - att_first_spare_lane(plan);
}

static inline int att_plan_threads(const att_plan *plan)
{
    return plan->teams * plan->parts;
}

static inline int att_segment_teams(const att_plan *plan, const att_segment *segment)
{
    return att_plan_threads(plan) / segment->parts;
}

/* The memory of segments, of which one runs at a time: spare lanes (without other processes), packs, then an arena for
 * each team. */
typedef struct att_room {
    size_t lanes, packs, arenas;
} att_room;
/* Of the segment that needs most. */
att_room att_plan_room(const att_plan *plan);

static inline size_t att_room_bytes(att_room room)
{
    return room.lanes + room.packs + room.arenas;
}

/* Whether the reference is to a value that is the same for all samples. */
static inline bool att_is_shared(const att_ref *ref)
{
    return ref->place == ATT_AT_WEIGHTS || ref->place == ATT_AT_DERIVED;
}

/* The program for groups of `group` samples with `parts` threads; NULL if there is none. */
const att_program *att_segment_program(const att_segment *segment, int group, int parts);

/* A rewritten graph, its nodes in order of segments. */
typedef struct att_rewritten {
    const att_graph *graph;
    const int *owner;      /* by value: index of the sum it adds to, or -1; NULL: no gradients */
    const bool *observers; /* by node */
    const int *readers;    /* by value, counted for kernels (count_readers() in plan.c) */
    bool first_is_frozen;  /* see att_plan.frozen */
} att_rewritten;

/* plan/frozen.c: finds the nodes that cannot be in a first segment that is the same in every update. frozen: by
 * parameter; late: by node; *found: the segment would have a node that reads a parameter. */
att_status att_find_late(const att_graph *graph, const bool *frozen, bool *late, bool *found);
/* Sets plan->frozen and what belongs to it. */
att_status att_list_frozen(att_plan *plan, const att_rewritten *from, const att_ref *refs);
/* plan/lowering.c: whether the node's results depend on the seed and the update. */
bool att_node_draws(const att_node *node);

/* plan/sizes.c: chooses lanes, teams and parts, and the group of each segment. */
att_status att_choose_sizes(att_plan *plan, const att_rewritten *from, const att_plan_options *options);
/* plan/lowering.c: places values, chooses and prepares kernels, for all segments, the prologue and the epilogue. */
att_status att_plan_lower(att_plan *plan, const att_rewritten *from);
/* plan/once.c: lowers the prologue and the epilogue. refs: of all values. */
att_status att_lower_once(att_plan *plan, const att_rewritten *from, const att_ref *refs);
/* plan/lowering.c: prepares the kernel of a node. The step's refs must be set before. */
att_status att_prepare_step(att_plan *plan, const att_rewritten *from, int node, int group, int parts, att_step *step);
/* Bytes of a part's scratch. */
size_t att_unit_scratch(const att_unit *unit);
/* Raises *scratch to the scratch bytes that the unit needs, if they are more. */
void att_grow_scratch(size_t *scratch, const att_unit *unit);
/* plan/fingerprint.c: att_hash_graph() sets plan->graph_hash; call it before copies for recomputation are inserted.
 * att_write_fingerprint() sets plan->fingerprint. */
att_status att_hash_graph(att_plan *plan, const att_rewritten *from);
att_status att_write_fingerprint(att_plan *plan);

/* plan/memory_planner.c: places every value that is not local to a segment, and sets the plan's store_bytes,
 * batch_bytes and derived_bytes. The caller frees *refs. */
att_status att_place_shared(att_plan *plan, const att_rewritten *from, att_ref **refs);
/* Places every local value of the segment: sets the refs of the steps of *program, and its arena_bytes. Changes the
 * offsets of local values in `refs`. If the steps have their units, it places their scratch, too. */
att_status att_place_local(att_plan *plan, const att_rewritten *from, const att_segment *segment, att_ref *refs,
                           att_program *program);
/* plan/lanes.c: lists the gradients that each segment adds to, and places their spare lanes. */
att_status att_place_lanes(att_plan *plan, const att_rewritten *from, att_ref *refs);
/* Sets the refs of one step. */
/* Whether the node only gives a shared value another shape, in its place, and needs no step. */
bool att_node_is_view(const att_node *node, const att_ref *refs);
att_status att_place_node(att_plan *plan, const att_node *node, const att_ref *refs, att_step *step);
/* The arena_bytes of the segment without its observers, for groups of `group`. */
att_status att_measure_arena(const att_plan *plan, const att_rewritten *from, const att_segment *segment,
                             const att_ref *refs, int group, size_t *arena_bytes);

/* As att_plan_compile(), but leaves out the algebraic rewriting `pattern` (patterns/list.h); NULL: none. */
ATT_FOR_LAB att_status att_plan_compile_without(const att_graph *graph, const att_plan_options *options,
                                                const char *pattern, att_plan **plan);

/* As att_plan_input_at(), for the outputs that sessions return, probes included. */
att_field att_plan_output_at(const att_plan *plan, int index);

#endif
