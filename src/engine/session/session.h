/* session/session.h - the memory that a plan runs in. */
#ifndef ATT_SESSION_SESSION_H
#define ATT_SESSION_SESSION_H

#include "base/core/threads.h"
#include "engine/plan/plan.h"
#include "engine/session/runner.h"
#include "engine/weights/gradient.h"

/* The batch of one run. Stored so that a failed run can be replayed. */
typedef struct att_body_batch {
    int count;           /* samples of all processes */
    int first_row, rows; /* those of this process */
    bool observed;       /* the run wrote probes */
    int64_t first;       /* position of the first sample in the update */
    att_run run;
} att_body_batch;

typedef struct att_exchange att_exchange;
typedef struct att_remembered att_remembered;

/* Everything that the calls of a body depend on besides the session itself. */
typedef struct att_body_key {
    int64_t count, first;
    double scale;
    const att_gradient *gradient;
    bool observed;
} att_body_key;

/* The calls of a body, recorded for runs that make the same ones. */
typedef struct att_recorded {
    att_body_key last; /* of the last run */
    void *recording;   /* of runs with the key `last`; NULL: none yet */
} att_recorded;

/* A parameter of the plan among the session's weights. */
typedef struct att_bound_parameter {
    int index;
    char *values;
} att_bound_parameter;

/* Time per node: trace() is called after each operation of the body, for each group of samples, on each of the threads
 * that share the group; part: its number, from 0. Other groups call it at the same time on other threads. scope: of the
 * node, which may have absorbed others (a linear layer the GELU after it). seconds: of this thread. NULL ends it. */
typedef void (*att_trace_fn)(void *user, int part, const char *scope, const char *op, const char *kernel,
                             double seconds);
void att_session_trace(att_session *session, att_trace_fn trace, void *user);

struct att_session {
    att_context *context;
    const att_plan *plan;
    const att_memory *memory;
    att_weights *weights;
    struct att_session_block *block; /* memory shared with other sessions; NULL: none */
    size_t block_used;               /* bytes of it */
    int max_batch, max_rows;         /* samples of all processes; of this one */
    char *room;                      /* the memory of segments (att_room) */
    size_t room_bytes;
    att_barrier *barriers;   /* where the threads of a team meet, if it does not have all threads */
    char *packed;            /* packs that do not belong to a segment */
    int *packs_of;           /* by parameter of the plan: packs that read it, if the body reads it in no other way */
    uint64_t packed_version; /* version of the weights that the prologue has read, plus 1; 0: it has not run */
    char *store;             /* values that are kept for the batch, for the largest batch */
    char *batch_values;      /* values of kind ATT_BATCH */
    char *scratch;           /* of reductions and steps that run once, per part or thread */
    att_barrier all_threads; /* where all threads meet between segments */
    const void **bound;      /* by input: the caller's rows */
    char **staged;           /* by input: a copy in the backend's memory; NULL if kernels read the caller's memory */
    char **outputs;
    att_bound_parameter *parameters; /* by parameter of the plan */
    char **sums;                     /* by index into att_plan.sums: the memory that the current run adds to */
    char *derived, *totals;          /* derived values, and the sums of their gradients */
    att_gradient *gradient;          /* the gradient of the last accumulation */
    char *spare;                     /* lanes 1, 2, ... of the gradients, for the current segment */
    char *gathered;                  /* sample values of all processes, for reductions */
    int64_t *starts;                 /* [processes + 1]: the first row of each process in the batch */
    bool *fetched;                   /* by output: it has the rows of all processes */
    bool alone;                      /* replay on this process: nothing is exchanged with others */
    att_exchange *exchange;          /* of gradients; NULL: there are no other processes */
    att_remembered *remembered;      /* NULL: the values of the frozen part are computed in every run */
    bool observing;                  /* runs write probes */
    bool stops;                      /* a run ends with ERR_STOPPED when the context is asked to stop */
    att_body_batch batch;
    atomic_int next_group;
    att_runner runner;
    att_recorded recorded;
    att_trace_fn trace; /* NULL: none */
    void *trace_user;
};

/* Memory that is needed besides the session's own. */
typedef struct att_memory_part {
    const char *what;
    size_t bytes;
} att_memory_part;
/* Lists the memory of a session for batches of up to `max_batch` samples by purpose, and returns the sum. */
enum {
    ATT_SESSION_LAYERS,
    ATT_SESSION_KEPT,
    ATT_SESSION_LANES,
    ATT_SESSION_PACKED,
    ATT_SESSION_OUTPUTS,
    ATT_SESSION_INPUTS,
    ATT_SESSION_PARTS
};
ATT_FOR_LAB size_t att_session_parts(const att_plan *plan, int max_batch, att_memory_part parts[ATT_SESSION_PARTS]);
/* The sum. */
size_t att_session_bytes(const att_plan *plan, int max_batch);
/* session/fit.c: compiles the plan that keeps the most values (att_plan_options.keep_bytes) such that its session, the
 * weights with their slots, and `extra` more bytes take at most `memory` bytes. memory 0: the default rule, no
 * limit. ERR_MEMORY with the least memory in the message if no plan fits. */
att_status att_session_fit(const att_graph *graph, const att_plan_options *options, const att_weights *weights,
                           int max_batch, size_t memory, size_t extra, att_plan **plan);
/* Checks all memory before the first of many allocations. ERR_MEMORY if a session and the parts in `extra` together
 * exceed the memory that is left; the message lists the parts that take at least 1/64 of the sum. */
att_status att_session_check_memory(const att_plan *plan, int max_batch, const att_memory_part *extra, int extra_count);

/* session/remember.c: lets later runs of a training plan compute the values of its frozen part (att_plan.frozen) once
 * for each of the first `samples` different samples that they get; the bits of the results stay the same. Samples are
 * equal if the inputs that the frozen part reads have equal bits (by a hash of 128 bits). Runs that observe probes
 * compute all values. Does nothing without a frozen part, and for memory that only kernels can read. Error: ERR_MEMORY.
 */
att_status att_session_remember(att_session *session, int64_t samples);
/* The most memory that this takes; 0: the plan has no frozen part. */
size_t att_session_remembered_bytes(const att_plan *plan, int64_t samples);
void att_remembered_destroy(att_session *session);
/* Called before and after a run, by one thread. */
void att_remembered_begin(att_session *session);
void att_remembered_end(att_session *session, att_status status);
/* Called for rows [first, first + count) of the first segment by the threads that share them. att_remembered_give()
 * returns whether the values of all these rows are known, and copies them into the session if `copies` is set, for one
 * of the threads. att_remembered_take() copies values that were computed, on one thread. */
bool att_remembered_give(att_session *session, int64_t first, int count, bool copies);
void att_remembered_take(att_session *session, int64_t first, int count);

/* session/give_back.c: finds the parameters that only packs read (session->packs_of). */
att_status att_session_find_packed(att_session *session);
/* Called by one thread before weights are packed, then after each pack, and at the end with NULL. Gives the memory of
 * parameters back that no other pack reads, at the end that of the others, if the weights allow it
 * (att_weights_give_back()). */
void att_session_begin_give_back(const att_session *session);
void att_session_give_back(const att_session *session, const att_pack *pack);
/* Bytes of the parameters that the session has given back. */
ATT_FOR_LAB size_t att_session_given_back(const att_session *session);

/* Writes the plan's constants to the session's derived values. */
void att_session_upload(att_session *session);

/* The arena of a team that runs the program. */
char *att_session_arena(const att_session *session, const att_program *program, int team);
/* Runs one step for the group whose first sample is row `row` of the batch. A failure is stored in the runner. */
void att_session_step(att_session *session, const att_program *program, const att_step *step, int team, int part,
                      int64_t row, int lane);
/* Computes this thread's share of the segment's packs; `threads` threads call it. */
void att_session_pack(att_session *session, const att_segment *segment, int thread, int threads);
/* Runs a step of the prologue or epilogue. First computes the pack that the step reads, if any. */
void att_session_once(att_session *session, const att_step *step, int thread);
/* Runs one thread's part of a reduction over the batch. */
void att_session_reduction(att_session *session, const att_step *step, int part);
/* session/run.c: runs the prologue if the weights have changed, then the body over session->batch, then the epilogue.
 */
att_status att_session_body(att_session *session);
/* session/recorded.c: calls work(session), or repeats the calls that it made in an earlier run with the same key. The
 * second of two equal runs is recorded. */
void att_session_repeat(att_session *session, void (*work)(att_session *session));
void att_recorded_release(att_session *session);
/* session/exchange.c: sums gradients over the processes on a thread of its own, segment after segment. */
att_status att_exchange_create(att_session *session, att_exchange **exchange);
void att_exchange_destroy(att_exchange **exchange);
/* Begins to sum the gradients of a segment, before the segment runs. Waits first until those of earlier segments that
 * use the same memory are complete. Called by one thread. */
void att_exchange_begin(att_exchange *exchange, const att_segment *segment);
/* A team has finished its lanes of the first `completed` gradients of the segment (att_segment.sums). */
void att_exchange_progress(att_exchange *exchange, const att_segment *segment, int team, int completed);
/* Waits until all gradients are complete. */
void att_exchange_wait(att_exchange *exchange);
/* Waits, and returns how the exchange ended since the last call. */
att_status att_exchange_finish(att_exchange *exchange);
/* session/share.c: splits a batch of `count` samples among the processes; sets count, first_row and rows of the batch.
 */
void att_session_split_batch(att_session *session, int count);
/* The other way round: joins the rows that each process has. */
att_status att_session_join_batch(att_session *session, int rows);
/* Fetches the rows of an output that other processes have. */
att_status att_session_fetch(att_session *session, int output);
/* Samples of the last run, of all processes. */
int att_session_samples(const att_session *session);
/* Copies this process's rows of an output of the last run to `rows`: of these it needs no other process. */
att_status att_session_own_output(const att_session *session, const char *output, void *rows);
/* This process's rows of a sample value. */
const char *att_session_rows(const att_session *session, const att_ref *ref);
/* Gathers what the segment's reductions read: the rows of all processes, or in a replay those of this one. */
void att_session_gather(att_session *session, const att_segment *segment);

/* Group `index` when `count` samples are split into groups of `group` and a remainder of smaller powers of two. Writes
 * its first sample to *row and returns its size; 0 after the last group. */
int att_session_group(int count, int group, int index, int64_t *row);

/* Finds where NaN or infinity first appeared: runs the last att_session_accumulate() again, node by node, and writes
 * the name of the first node with a non-finite result ("blocks.3.attn (attention), sample 17") to `text`, truncated to
 * `size` bytes; "" if every result is finite. The gradient and the bound inputs of that call must still exist, and the
 * weights must be unchanged. The whole gradient is lost, including earlier contributions: call att_gradient_begin()
 * before using it again. Weights and buffers are unchanged. */
att_status att_session_find_nonfinite(att_session *session, char *text, size_t size);

/* Time per kernel. att_session_profile() switches profiling on or off and sets all figures to zero; it is off at first.
 * There is one row per kernel. */
ATT_FOR_LAB att_status att_session_profile(att_session *session, bool on);
ATT_FOR_LAB int att_session_profile_count(const att_session *session);
ATT_FOR_LAB att_profile_row att_session_profile_at(const att_session *session, int index);

#endif
