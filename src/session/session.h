/* session/session.h - the memory a plan runs in. */
#ifndef ATT_SESSION_SESSION_H
#define ATT_SESSION_SESSION_H

#include "core/threads.h"
#include "plan/plan.h"
#include "session/runner.h"
#include "weights/gradient.h"

/* What one call of the body works on; kept, so that a failed one can be replayed. */
typedef struct att_body_batch {
    int count;
    bool observed; /* probes were filled */
    int64_t first; /* position of its first sample in the update */
    att_run run;
} att_body_batch;

typedef struct att_team {
    char *arena; /* the program's arena, then scratch per part */
    att_barrier barrier;
} att_team;

/* A parameter of the plan in the session's weights. */
typedef struct att_bound_parameter {
    int index;
    char *values;
} att_bound_parameter;

struct att_session {
    att_context *context;
    const att_plan *plan;
    const att_memory *memory;
    att_weights *weights;
    int max_batch;
    att_team *teams;
    size_t arena_bytes;
    char *packed;
    uint64_t packed_version; /* of the weights that the prologue saw, plus 1; 0: none yet */
    char *store;             /* what outlives a segment, for the largest batch */
    char *batch_values;      /* of the batch's reductions */
    char *scratch;           /* of reductions, per part */
    att_barrier meeting;     /* of all threads, between segments */
    const void **bound;      /* by input: the caller's rows */
    char **staged;           /* by input: copies where kernels cannot read the caller's memory, else NULL */
    char **outputs;
    att_bound_parameter *parameters; /* by parameter of the plan */
    char **sums;                     /* by sum of the plan: where the call at hand adds */
    char *derived, *totals;          /* what is made once, and sums of its gradient */
    att_gradient *gradient;          /* what the last accumulate added to */
    char *spare;                     /* gradients of the other lanes, of the segment that runs */
    bool observing;                  /* fills probes */
    att_body_batch batch;
    atomic_int next_group;
    att_runner runner;
};

/* Memory that will be asked for beside a session's own. */
typedef struct att_memory_part {
    const char *what;
    size_t bytes;
} att_memory_part;
/* What a session of that batch would take. */
size_t att_session_bytes(const att_plan *plan, int max_batch);
/* session/fit.c: compiles a plan that keeps as much as it can (att_plan_options.keep_bytes) so that its session, the
 * weights with their slots, and `beside` more bytes take at most `memory` bytes together; 0: by the default rule.
 * ERR_MEMORY, with what it takes at least, where that is more. */
att_status att_session_fit(const att_graph *graph, const att_plan_options *options, const att_weights *weights,
                           int max_batch, size_t memory, size_t beside, att_plan **plan);
/* Refuses before the first of many allocations what a later one would be refused: ERR_MEMORY where a session and what
 * is asked for beside it exceed what is left. The message says how much each part takes. */
att_status att_session_check_memory(const att_plan *plan, int max_batch, const att_memory_part *beside,
                                    int beside_count);

/* Runs one step for the group that begins at row `row` of the batch; a failure is the runner's. */
void att_session_step(att_session *session, const att_program *program, const att_step *step, int team, int part,
                      int64_t row, int lane);
/* A step of prologue or epilogue, with the pack that it needs. */
void att_session_once(att_session *session, const att_step *step, int thread);
/* A thread's part of a reduction over the batch. */
void att_session_reduction(att_session *session, const att_step *step, int part);
/* session/run.c: runs the prologue where it is due, then the body over session->batch. */
att_status att_session_body(att_session *session);
/* Group `index` of `count` samples in groups of at most `group`: its first sample and size; size 0 past the last. */
int att_session_group(int count, int group, int index, int64_t *row);

#endif
