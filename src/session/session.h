/* session/session.h - the memory a plan runs in. */
#ifndef ATT_SESSION_SESSION_H
#define ATT_SESSION_SESSION_H

#include <stdatomic.h>

#include "core/threads.h"
#include "plan/plan.h"

/* What one call of the body works on; kept, so that a failed one can be replayed. */
typedef struct att_body_batch {
    int count;
    int64_t first; /* position of its first sample in the update */
    att_run run;
} att_body_batch;

typedef struct att_team {
    char *arena; /* the program's arena, then scratch per part */
    att_barrier barrier;
} att_team;

typedef struct att_counter {
    int64_t calls;
    double seconds, flops, bytes;
} att_counter;

struct att_session {
    att_context *context;
    const att_plan *plan;
    const att_memory *memory;
    att_weights *weights;
    int max_batch;
    att_team *teams;
    size_t arena_bytes;
    char *packed;
    uint64_t packed_version; /* of the weights that were packed; 0: none yet */
    char *store;             /* what outlives a segment, for the largest batch */
    char *batch_values;      /* of the batch's reductions */
    char *scratch;           /* of reductions, per part */
    att_barrier meeting;     /* of all threads, between segments */
    const void **bound;      /* by input: the caller's rows */
    char **staged;           /* by input: copies where kernels cannot read the caller's memory, else NULL */
    char **outputs;
    char *gradient; /* in the weights' layout: lane 0 */
    char *spare;    /* the other lanes, of the segment that runs */
    char *squares;  /* sums of squares of chunks of the gradient */
    double *squares_host;
    int64_t square_count;
    bool reduced;
    bool watching; /* fills probes */
    double norm;
    att_body_batch batch;
    atomic_int next_group, status;
    void **operands; /* of the call that a thread makes: plan->most_operands for each */
    bool profiling;
    att_counter *counters; /* by thread, then profile row */
};

/* What a session of that batch would take, slots that the weights lack included. */
size_t att_session_bytes(const att_plan *plan, const att_weights *weights, int max_batch);
/* session/fit.c: compiles a plan that keeps as much as it can (att_plan_options.keep_bytes) so that its session, the
 * weights with their slots, and `beside` more bytes take at most `memory` bytes together; 0: by the default rule.
 * ERR_MEMORY, with what it takes at least, where that is more. */
att_status att_session_fit(const att_graph *graph, const att_plan_options *options, const att_weights *weights,
                           int max_batch, size_t memory, size_t beside, att_plan **plan);
/* Refuses before the first of many allocations what a later one would be refused: ERR_MEMORY where a session and
 * `beside` more bytes, for `beside_what`, exceed what is left. The message says how much each part takes. */
att_status att_session_check_memory(const att_plan *plan, const att_weights *weights, int max_batch, size_t beside,
                                    const char *beside_what);

/* Runs a kernel, timed where a profile is wanted. */
att_status att_session_call(att_session *session, const att_unit *unit, const att_call *call, int thread);
/* Keeps the first failure of the threads that work at once. */
void att_session_fail(att_session *session, att_status status);
/* Runs one step for the group that begins at row `row` of the batch. */
att_status att_session_step(att_session *session, const att_program *program, const att_step *step, int team, int part,
                            int64_t row, int lane);
/* Runs a thread's part of what is shared by all and has neither groups nor scratch. */
void att_session_flat(att_session *session, const att_unit *unit, const void *const *in, void *const *out, int part);
void att_session_clear_gradient(att_session *session);
/* A thread's part of a reduction over the batch. */
att_status att_session_reduction(att_session *session, const att_step *step, int part);
/* session/run.c: runs the prologue where it is due, then the body over session->batch. */
att_status att_session_body(att_session *session);
/* Group `index` of `count` samples in groups of at most `group`: its first sample and size; size 0 past the last. */
int att_session_group(int count, int group, int index, int64_t *row);

#endif
