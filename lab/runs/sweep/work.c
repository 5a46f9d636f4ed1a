/* Carries out the runs of a sweep as one of its workers. */
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/runs/sweep/steps.h"
#include "lab/runs/sweep/work.h"

/* --- one run ------------------------------------------------------------------------------------------------------ */

static att_status read_state(const att_sweep_plan *plan, att_plan_run *run)
{
    att_status status = att_plan_find_records(plan, run);
    if (status != ATT_OK)
        att_plan_advise_removal(plan, run);
    return status;
}

static att_status check_measured(const att_sweep_plan *plan, att_plan_run *run)
{
    ATT_TRY(read_state(plan, run));
    if (!run->found.measured)
        return att_fail(plan->context, ATT_ERR_FORMAT, "its records contain no measurement");
    att_status status = att_plan_check_records(plan, run);
    if (status != ATT_OK)
        att_plan_advise_removal(plan, run);
    return status;
}

static void log_run(const att_sweep_plan *plan, int index, const char *note)
{
    att_log(plan->context, ATT_LOG_INFO, "[%d/%d] %s%s", index + 1, plan->run_count, plan->runs[index].name, note);
}

/* Logs that this worker begins the run; if there are others, with its name. */
static void log_begin(const att_sweep_plan *plan, int index, const char *from)
{
    char note[3 * ATT_PROCESS_NAME] = "";
    if (att_workers_are_several(plan->workers))
        snprintf(note, sizeof note, ", worker %s", att_workers_own_name(plan->workers));
    if (*from)
        snprintf(note + strlen(note), sizeof note - strlen(note), ", taken over from %s", from);
    log_run(plan, index, note);
}

/* Carries out the steps that the run still lacks. reason: as in att_sweep_train(). */
static att_status run_steps(att_sweep_plan *plan, const att_sweep_steps *steps, int index,
                            char reason[ATT_SWEEP_REASON])
{
    att_plan_run *run = &plan->runs[index];
    const att_planned_run shown = att_plan_show(run);
    ATT_TRY(att_plan_build_recipe(plan, run));
    plan->recipe.files.resume = "auto";
    ATT_TRY(read_state(plan, run));
    if (!run->found.trained)
        ATT_TRY(att_sweep_train(plan->context, steps, &shown, &plan->recipe, reason));
    *reason = '\0'; /* a step that succeeded has none */
    if (!run->found.measured)
        ATT_TRY(att_sweep_measure(plan->context, steps, &shown, &plan->recipe, reason));
    *reason = '\0';
    ATT_TRY(check_measured(plan, run));
    run->status = "measured";
    plan->results_are_old = true;
    return ATT_OK;
}

static void mark_failed(att_sweep_plan *plan, att_plan_run *run, const char *reason)
{
    run->status = "failed";
    snprintf(run->failure, sizeof run->failure, "%s", reason);
    att_log(plan->context, ATT_LOG_WARNING, "%s failed (%s); the other runs continue", run->name, run->failure);
}

/* Carries out a run. Returns ATT_OK, also if it failed and others may continue, or ERR_STOPPED. */
static att_status run_one(att_sweep_plan *plan, const att_sweep_steps *steps, int index)
{
    att_plan_run *run = &plan->runs[index];
    char reason[ATT_SWEEP_REASON] = "";
    const uint64_t messages = att_message_count(plan->context);
    att_status status = run_steps(plan, steps, index, reason);
    ATT_TRY(att_workers_check(plan->workers));
    if (status == ATT_ERR_STOPPED)
        run->status = "stopped";
    else if (status != ATT_OK)
        mark_failed(plan, run,
                    *reason                                       ? reason
                    : att_message_count(plan->context) > messages ? att_context_message(plan->context)
                                                                  : att_status_meaning(status));
    return status == ATT_ERR_STOPPED ? status : ATT_OK;
}

/* --- runs of this worker ------------------------------------------------------------------------------------------ */

static void tell_done(att_sweep_plan *plan, int index)
{
    if (!plan->runs[index].told)
        log_run(plan, index, ": done already");
    plan->runs[index].told = true;
}

/* Prepares the folder of a run that this worker has claimed. Its recipe may be damaged; then the run has failed. */
static att_status begin_run(att_sweep_plan *plan, int index, const char *from)
{
    att_plan_run *run = &plan->runs[index];
    att_file_look_again(run->folder, att_path_last(att_workers_lease(plan->workers)));
    ATT_TRY(att_plan_find_state(plan, run)); /* another worker may have finished it before */
    if (att_plan_run_is_finished(run))
        return ATT_OK;
    ATT_TRY(att_plan_make_folder(plan, run));
    if (att_plan_run_is_finished(run))
        return ATT_OK;
    log_begin(plan, index, from);
    ATT_TRY(att_plan_begin(plan, run));
    run->status = "running";
    run->lease = att_workers_lease(plan->workers);
    snprintf(run->worker, sizeof run->worker, "%s", att_workers_own_name(plan->workers));
    return att_plan_record(plan);
}

static att_status end_run(att_sweep_plan *plan, att_plan_run *run, int index)
{
    const att_claim_state state = att_plan_run_is(run, "measured") ? ATT_CLAIM_DONE
                                  : att_plan_run_is(run, "failed") ? ATT_CLAIM_FAILED
                                                                   : ATT_CLAIM_FREE;
    run->lease = "";
    run->in_database = false;
    *run->worker = '\0';
    run->told = true;
    ATT_TRY(att_workers_give(plan->workers, index, state, run->failure));
    return att_plan_record(plan);
}

/* Carries out a run that this worker has claimed. */
static att_status carry_out_run(att_sweep_plan *plan, const att_sweep_steps *steps, int index, const char *from)
{
    att_plan_run *run = &plan->runs[index];
    ATT_TRY(begin_run(plan, index, from));
    if (att_plan_run_is(run, "measured"))
        tell_done(plan, index);
    att_status status = att_plan_run_is_finished(run) ? ATT_OK : run_one(plan, steps, index);
    if (status != ATT_OK && status != ATT_ERR_STOPPED)
        return status;
    ATT_TRY(end_run(plan, run, index));
    return status;
}

/* Claims the run and carries it out, if it is free. */
static att_status try_run(att_sweep_plan *plan, const att_sweep_steps *steps, int index)
{
    att_plan_run *run = &plan->runs[index];
    char from[ATT_PROCESS_NAME];
    bool taken;
    if (att_stop_asked(plan->context))
        return ATT_ERR_STOPPED;
    if (att_plan_run_is(run, "measured"))
        tell_done(plan, index);
    if (att_plan_run_is_finished(run))
        return ATT_OK;
    ATT_TRY(att_workers_look(plan->workers));
    snprintf(from, sizeof from, "%s", att_workers_claim(plan->workers, index).worker);
    ATT_TRY(att_workers_take(plan->workers, index, &taken));
    return taken ? carry_out_run(plan, steps, index, from) : att_plan_show_claims(plan);
}

/* --- waiting for others ------------------------------------------------------------------------------------------- */

typedef struct waiting {
    bool has_free;                  /* a run is free */
    int others;                     /* runs that others carry out */
    char names[4 * ATT_SWEEP_NAME]; /* "lr=0.1-seed1 (node7:4711), ..." */
} waiting;

static waiting find_waiting(const att_sweep_plan *plan)
{
    waiting w = {.others = 0};
    for (int i = 0; i < plan->run_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        const size_t length = strlen(w.names);
        const att_claim claim = att_workers_claim(plan->workers, i);
        w.has_free |= claim.state == ATT_CLAIM_FREE && !att_plan_run_is_finished(run);
        if (claim.state != ATT_CLAIM_HELD || att_plan_run_is_finished(run))
            continue;
        if (length < sizeof w.names - ATT_SWEEP_NAME)
            snprintf(w.names + length, sizeof w.names - length, "%s%s (%s)", length > 0 ? ", " : "", run->name,
                     claim.worker);
        else if (strcmp(w.names + length - 3, "...") != 0)
            snprintf(w.names + length, sizeof w.names - length, ", ...");
        w.others++;
    }
    return w;
}

/* Sleeps, unless a stop is requested. */
static att_status pause_for(const att_sweep_plan *plan, double seconds)
{
    const double slice = 0.05;
    for (double slept = 0; slept < seconds; slept += slice) {
        if (att_stop_asked(plan->context))
            return ATT_ERR_STOPPED;
        att_sleep(seconds - slept < slice ? seconds - slept : slice);
    }
    return att_stop_asked(plan->context) ? ATT_ERR_STOPPED : ATT_OK;
}

/* Returns when a run is free again (*more), or when all runs are finished. */
static att_status wait_for_others(att_sweep_plan *plan, bool *more)
{
    char told[sizeof(((waiting *)0)->names)] = "";
    for (;;) {
        ATT_TRY(att_plan_record(plan)); /* looks for news and dead workers, too */
        ATT_TRY(att_plan_show_claims(plan));
        const waiting w = find_waiting(plan);
        *more = w.has_free;
        if (w.has_free || w.others == 0)
            return ATT_OK;
        if (strcmp(told, w.names) != 0)
            att_log(plan->context, ATT_LOG_INFO, "waiting for %d run%s of other workers: %s", w.others,
                    w.others == 1 ? "" : "s", w.names);
        snprintf(told, sizeof told, "%s", w.names);
        ATT_TRY(pause_for(plan, att_workers_pause(plan->workers)));
    }
}

static att_status run_all(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    bool more = true;
    while (more) {
        for (int i = 0; i < plan->run_count; i++)
            ATT_TRY(try_run(plan, steps, i));
        ATT_TRY(wait_for_others(plan, &more));
    }
    return ATT_OK;
}

/* --- all runs ----------------------------------------------------------------------------------------------------- */

/* Prepares all folders before the first run, so that errors show at once. */
static att_status prepare_folders(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++) {
        att_plan_run *run = &plan->runs[i];
        ATT_TRY(att_plan_make_folder(plan, run));
        if (!att_plan_run_is(run, "measured"))
            continue;
        att_status status = att_plan_check_records(plan, run);
        if (status == ATT_ERR_MEMORY)
            return status;
        if (status != ATT_OK)
            att_plan_mark_damaged(plan, run);
    }
    return ATT_OK;
}

/* Works as a worker of the sweep until all runs are finished, or until a failure or stop. */
static att_status work_until_done(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    ATT_TRY(att_plan_find_states(plan)); /* an earlier call may have left failed and stopped runs */
    ATT_TRY(prepare_folders(plan));
    ATT_TRY(att_plan_record(plan));
    att_status status = run_all(plan, steps);
    if (status == ATT_ERR_STOPPED)
        return att_fail(plan->context, ATT_ERR_STOPPED, "stopped; %srepeat the command to continue",
                        att_workers_are_several(plan->workers) ? "other workers are still at work; " : "");
    return status;
}

static att_status fail_database(const att_sweep_plan *plan)
{
    return att_fail(plan->context, plan->database,
                    "all runs have ended, but runs.sqlite in %s could not be brought up to date; repeat the command",
                    plan->folder);
}

/* Leaves when everything is recorded, then reads the results of all runs. */
static att_status leave(att_sweep_plan *plan)
{
    bool left = false;
    while (!left) {
        ATT_TRY(att_plan_record(plan));
        ATT_TRY(att_workers_leave(&plan->workers, false, &left));
    }
    att_context_guard_writes(plan->context, NULL, NULL);
    if (!plan->results || plan->results_are_old)
        ATT_TRY(att_plan_read_measured(plan));
    return plan->database == ATT_OK ? ATT_OK : fail_database(plan);
}

/* Works as one worker, which ends in this function. *lost: it was declared dead; the context's message says so. */
static att_status work_once(att_sweep_plan *plan, const att_sweep_steps *steps, bool *lost)
{
    bool left;
    *lost = false;
    ATT_TRY(att_workers_join(plan, &plan->workers));
    att_context_guard_writes(plan->context, att_sweep_check_lease, att_workers_lease(plan->workers));
    att_status status = work_until_done(plan, steps);
    if (status == ATT_OK)
        status = leave(plan);
    *lost = plan->workers && att_workers_are_lost(plan->workers);
    if (*lost)
        status = att_workers_check(plan->workers);
    att_context_guard_writes(plan->context, NULL, NULL);
    if (plan->workers && !*lost && att_workers_leave(&plan->workers, true, &left) != ATT_OK && status == ATT_OK)
        status = ATT_ERR_IO;
    att_workers_abandon(&plan->workers);
    return status;
}

att_status att_plan_work(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    bool lost;
    att_status status = work_once(plan, steps, &lost);
    while (lost) {
        att_log(plan->context, ATT_LOG_WARNING, "%s; this process continues with the runs that are left",
                att_context_message(plan->context));
        status = pause_for(plan, plan->options.lease / 2);
        if (status == ATT_ERR_STOPPED)
            return att_fail(plan->context, status, "stopped; repeat the command to continue");
        status = work_once(plan, steps, &lost);
    }
    return status;
}
