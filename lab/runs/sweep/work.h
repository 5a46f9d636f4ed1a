/* sweep/work.h - carrying out the runs of a sweep, as one of its workers. */
#ifndef ATT_SWEEP_WORK_H
#define ATT_SWEEP_WORK_H

#include "lab/runs/sweep/workers.h"

/* --- record.c ----------------------------------------------------------------------------------------------------- */

bool att_plan_run_is(const att_plan_run *run, const char *status);
/* Whether the run is measured or has failed. */
bool att_plan_run_is_finished(const att_plan_run *run);
att_planned_run att_plan_show(const att_plan_run *run);

/* Reads what the run's records show. Ignores requests to stop, which must not hide a finished step. */
att_status att_plan_find_records(const att_sweep_plan *plan, att_plan_run *run);
/* Gives the run the status that its records show. Damaged records are reported when the run is carried out. */
att_status att_plan_find_state(att_sweep_plan *plan, att_plan_run *run);
att_status att_plan_find_states(att_sweep_plan *plan);
/* Gives the runs the statuses that the workers' journal shows. */
att_status att_plan_show_claims(att_sweep_plan *plan);

/* Reads the records of the measured runs into plan->results. */
att_status att_plan_read_measured(att_sweep_plan *plan);
/* Writes sweep.json and the database, unless another worker is writing them: that one sees the same entries. */
att_status att_plan_record(att_sweep_plan *plan);

/* --- work.c ------------------------------------------------------------------------------------------------------- */

/* What att_sweep_plan_run() does. If this worker was declared dead, works on as a new worker, but first gives the
 * others time to renew their claims: this machine or the file system may have stood still for all of them. */
att_status att_plan_work(att_sweep_plan *plan, const att_sweep_steps *steps);

#endif
