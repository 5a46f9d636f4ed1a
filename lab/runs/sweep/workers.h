/* sweep/workers.h - the workers of a sweep: processes, on one or several machines, that share its runs.
 *
 * The folder .workers in the sweep's folder is a journal (io/journal.h). Its entries are the only state of the workers:
 *
 *   start     the first worker, and the definition of the sweep
 *   join      a further worker
 *   claim     a worker begins a run
 *   free      a worker gives back a run that it has not finished
 *   done      a run is measured
 *   failed    a run failed; it is not tried again while there are workers
 *   record    a worker begins to write sweep.json and the database
 *   recorded  it has written them, and they show all earlier entries
 *   leave     a worker ends
 *   dead      a worker has died, or did not renew its mark for the length of its lease
 *   end       the last worker has ended; the folder is removed
 *
 * Since an entry is appended only by a worker that has read all earlier ones, of several workers exactly one claims a
 * run, takes over the run of a dead worker, or records. After "leave" and "dead", the worker's runs are free.
 *
 * Ages of marks are computed from the file system's clock only. On the same machine, a worker whose process has ended
 * is dead at once.
 *
 * If this worker was declared dead, every function fails with ERR_IO, and att_workers_are_lost() returns true. */
#ifndef ATT_SWEEP_WORKERS_H
#define ATT_SWEEP_WORKERS_H

#include "lab/runs/sweep/plan.h"

typedef struct att_workers att_workers;

/* Joins the workers of the plan's folder, or becomes the first one. On success the caller ends with att_workers_leave()
 * or att_workers_abandon(). Errors: ERR_MISMATCH (workers of another sweep are at work); ERR_FORMAT (a damaged
 * journal); ERR_IO, ERR_MEMORY. */
att_status att_workers_join(att_sweep_plan *plan, att_workers **workers);
/* Ends: this worker's runs are free for others, and the last worker removes the folder. anyway: also if there are
 * entries that no worker has recorded or is recording. *left: false if there are; then *workers stays: record first. */
att_status att_workers_leave(att_workers **workers, bool anyway, bool *left);
/* Ends after a failure: the others find this worker dead at once. NULL is allowed. */
void att_workers_abandon(att_workers **workers);

/* Reads what the others have done, and looks for dead workers. */
att_status att_workers_look(att_workers *workers);

typedef enum att_claim_state { ATT_CLAIM_FREE, ATT_CLAIM_HELD, ATT_CLAIM_DONE, ATT_CLAIM_FAILED } att_claim_state;
typedef struct att_claim {
    att_claim_state state;
    bool own;           /* held by this worker */
    const char *worker; /* the name of the worker that holds the run, or finished it; for a free run, of the dead worker
                           that held it last; "" if there is none */
    const char *reason; /* why the run failed */
} att_claim;
/* The state of a run after the last call. The texts are valid until the next call. */
att_claim att_workers_claim(const att_workers *workers, int run);
/* Claims a run. *taken: false if it is not free. */
att_status att_workers_take(att_workers *workers, int run, bool *taken);
/* Ends the claim on a run. state: FREE, DONE or FAILED. reason: for FAILED. */
att_status att_workers_give(att_workers *workers, int run, att_claim_state state, const char *reason);

/* Begins to record, if there is anything to record and nobody else is recording: *begun. */
att_status att_workers_begin_record(att_workers *workers, bool *begun);
/* Ends recording. *ended: false if there were new entries, which att_workers_claim() then shows: record again. */
att_status att_workers_end_record(att_workers *workers, bool *ended);

/* Fails if this worker has been declared dead. Unlike the other functions, asks the file system at once. */
att_status att_workers_check(att_workers *workers);
bool att_workers_are_lost(const att_workers *workers);
/* Whether there are other workers. */
bool att_workers_are_several(const att_workers *workers);
/* The name of this worker, and the path of its mark. */
const char *att_workers_own_name(const att_workers *workers);
const char *att_workers_lease(const att_workers *workers);
/* How long to wait between two looks, in seconds. */
double att_workers_pause(const att_workers *workers);

#endif
