/* Records a sweep: sweep.json, the database, and what the workers' journal shows. */
#include <string.h>

#include <attscope/file.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/report/sweep.h"
#include "lab/runs/records/folder.h"
#include "lab/runs/sweep/work.h"
#include "study/store/import.h"

/* --- sweep.json --------------------------------------------------------------------------------------------------- */

/* Ignores requests to stop, because sweep.json is also written after a stop. */
att_status att_plan_read_measured(att_sweep_plan *plan)
{
    att_sweep_run runs[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    for (int i = 0; i < plan->run_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        if (att_plan_run_is(run, "measured"))
            runs[count++] = (att_sweep_run){run->folder, run->setting, run->seed};
    }
    att_sweep_destroy(&plan->results);
    att_hold_stop(plan->context, true);
    att_status status =
        att_sweep_read(plan->context, runs, count, plan->options.pairs, plan->options.pair_count, 0, &plan->results);
    att_hold_stop(plan->context, false);
    plan->results_are_old = status != ATT_OK;
    return status;
}

static att_status write_text(att_sweep_plan *plan, att_json_writer *writer)
{
    char path[ATT_RUN_PATH];
    att_text lines = {.context = plan->context};
    const char *text;
    size_t length;
    ATT_TRY(att_path_join(plan->context, plan->folder, "sweep.json", path, sizeof path));
    ATT_TRY(att_json_writer_finish(writer, &text, &length));
    att_text_append_bytes(&lines, text, length);
    att_text_append_bytes(&lines, "\n", 1);
    att_status status = lines.failed ? att_fail_memory(plan->context, length, path)
                                     : att_file_replace(plan->context, path, lines.data, lines.length);
    att_text_free(&lines);
    return status;
}

/* Called before the first run, and when a run begins or ends, so that the folder can be shown at any time. */
static att_status write_sweep(att_sweep_plan *plan)
{
    att_json_writer *writer;
    if (!plan->results || plan->results_are_old)
        ATT_TRY(att_plan_read_measured(plan));
    ATT_TRY(att_json_writer_create(plan->context, true, &writer));
    att_sweep_plan_write_json(plan, writer);
    att_status status = write_text(plan, writer);
    att_json_writer_destroy(&writer);
    return status;
}

/* --- states of runs ----------------------------------------------------------------------------------------------- */

bool att_plan_run_is(const att_plan_run *run, const char *status)
{
    return strcmp(run->status, status) == 0;
}

bool att_plan_run_is_finished(const att_plan_run *run)
{
    return att_plan_run_is(run, "measured") || att_plan_run_is(run, "failed");
}

att_planned_run att_plan_show(const att_plan_run *run)
{
    return (att_planned_run){.setting = run->setting,
                             .name = run->name,
                             .folder = run->folder,
                             .seed = run->seed,
                             .status = run->status,
                             .measure = run->measure,
                             .failure = run->failure,
                             .worker = run->worker,
                             .lease = run->lease};
}

att_status att_plan_find_records(const att_sweep_plan *plan, att_plan_run *run)
{
    att_hold_stop(plan->context, true);
    att_status status = att_run_state_read(plan->context, run->folder, run->measure, &run->found);
    att_hold_stop(plan->context, false);
    return status;
}

att_status att_plan_find_state(att_sweep_plan *plan, att_plan_run *run)
{
    att_status status = att_plan_find_records(plan, run);
    if (status == ATT_ERR_MEMORY)
        return status;
    if (status != ATT_OK)
        run->found = (att_run_state){.trained = false};
    run->status = run->found.measured ? "measured" : run->found.trained ? "trained" : "waiting";
    *run->failure = *run->worker = '\0';
    run->in_database = false;
    plan->results_are_old |= run->found.measured;
    return ATT_OK;
}

att_status att_plan_find_states(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++)
        ATT_TRY(att_plan_find_state(plan, &plan->runs[i]));
    return ATT_OK;
}

/* --- recording ---------------------------------------------------------------------------------------------------- */

static att_status show_claim(att_sweep_plan *plan, att_plan_run *run, const att_claim *claim)
{
    if (claim->state == ATT_CLAIM_HELD && !att_plan_run_is_finished(run)) {
        run->status = "running";
        snprintf(run->worker, sizeof run->worker, "%s", claim->worker);
    } else if (claim->state == ATT_CLAIM_FAILED && !att_plan_run_is(run, "failed")) {
        run->status = "failed";
        snprintf(run->failure, sizeof run->failure, "%s", claim->reason);
        *run->worker = '\0';
        run->in_database = false;
    } else if ((claim->state == ATT_CLAIM_DONE && !att_plan_run_is_finished(run)) ||
               (claim->state == ATT_CLAIM_FREE && att_plan_run_is(run, "running"))) {
        att_file_look_again(run->folder, att_path_last(att_workers_lease(plan->workers)));
        ATT_TRY(att_plan_find_state(plan, run));
    }
    return ATT_OK;
}

att_status att_plan_show_claims(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++) {
        const att_claim claim = att_workers_claim(plan->workers, i);
        ATT_TRY(show_claim(plan, &plan->runs[i], &claim));
    }
    return ATT_OK;
}

static bool is_to_import(const att_plan_run *run)
{
    return !run->in_database && !att_plan_run_is(run, "waiting") && !att_plan_run_is(run, "running");
}

/* Brings the database up to date with the runs that have ended. Creates it if it does not exist. */
static att_status write_database(att_sweep_plan *plan)
{
    const char *folders[ATT_SWEEP_MOST_RUNS];
    char database[ATT_RUN_PATH];
    int count = 0;
    for (int i = 0; i < plan->run_count; i++)
        if (is_to_import(&plan->runs[i]))
            folders[count++] = plan->runs[i].folder;
    if (count == 0 && plan->has_database)
        return ATT_OK;
    ATT_TRY(att_run_database(plan->context, plan->runs[0].folder, database, sizeof database));
    ATT_TRY(att_store_import(plan->context, database, folders, count));
    plan->has_database = true;
    for (int i = 0; i < plan->run_count; i++)
        plan->runs[i].in_database |= is_to_import(&plan->runs[i]);
    return ATT_OK;
}

/* Writes the database. If another program locks it for too long, the sweep goes on and tries again later: hours of
 * training do not end for it. plan->database is the status of the last attempt. */
static att_status try_database(att_sweep_plan *plan)
{
    const bool must_succeed = !plan->has_database; /* a database that can never be written shows at once */
    plan->database = write_database(plan);
    if (must_succeed || plan->database != ATT_ERR_IO || att_workers_check(plan->workers) != ATT_OK)
        return plan->database;
    att_log(plan->context, ATT_LOG_WARNING, "%s; it is brought up to date later", att_context_message(plan->context));
    return ATT_OK;
}

static att_status record_all(att_sweep_plan *plan)
{
    ATT_TRY(att_plan_show_claims(plan));
    ATT_TRY(write_sweep(plan));
    return try_database(plan);
}

att_status att_plan_record(att_sweep_plan *plan)
{
    bool begun, ended = false;
    ATT_TRY(att_workers_begin_record(plan->workers, &begun));
    if (begun)
        ATT_TRY(att_plan_remove_unfinished(plan, plan->folder));
    while (begun && !ended) {
        ATT_TRY(record_all(plan));
        ATT_TRY(att_workers_end_record(plan->workers, &ended));
    }
    return ATT_OK;
}
