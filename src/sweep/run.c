/* Runs a sweep, alone or together with other workers. Its whole state between two calls is in the folders of the runs.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <attscope/file.h>

#include "core/context.h"
#include "core/error.h"
#include "core/text.h"
#include "io/file.h"
#include "runs/given.h"
#include "store/import.h"
#include "sweep/steps.h"
#include "sweep/workers.h"

static bool has_status(const att_plan_run *run, const char *status)
{
    return strcmp(run->status, status) == 0;
}

static bool is_finished(const att_plan_run *run)
{
    return has_status(run, "measured") || has_status(run, "failed");
}

/* --- records ------------------------------------------------------------------------------------------------------ */

/* Reads the records of the measured runs. Ignores requests to stop, because sweep.json is also written after a stop. */
static att_status read_measured(att_sweep_plan *plan)
{
    att_sweep_run runs[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    for (int i = 0; i < plan->run_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        if (has_status(run, "measured"))
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
        ATT_TRY(read_measured(plan));
    ATT_TRY(att_json_writer_create(plan->context, true, &writer));
    att_sweep_plan_write_json(plan, writer);
    att_status status = write_text(plan, writer);
    att_json_writer_destroy(&writer);
    return status;
}

/* --- one run ------------------------------------------------------------------------------------------------------ */

static att_planned_run show(const att_plan_run *run)
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

/* Reads what the run's records show. Ignores requests to stop, which must not hide a finished step. */
static att_status find_records(const att_sweep_plan *plan, att_plan_run *run)
{
    att_hold_stop(plan->context, true);
    att_status status = att_run_state_read(plan->context, run->folder, run->measure, &run->found);
    att_hold_stop(plan->context, false);
    return status;
}

/* Gives the run the status that its records show. Damaged records are reported when the run is carried out. */
static att_status find_state(att_sweep_plan *plan, att_plan_run *run)
{
    att_status status = find_records(plan, run);
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

static att_status read_state(const att_sweep_plan *plan, att_plan_run *run)
{
    att_status status = find_records(plan, run);
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
    const att_planned_run shown = show(run);
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

/* --- recording ---------------------------------------------------------------------------------------------------- */

/* Gives the run the status that the workers' journal shows. */
static att_status show_claim(att_sweep_plan *plan, att_plan_run *run, const att_claim *claim)
{
    if (claim->state == ATT_CLAIM_HELD && !is_finished(run)) {
        run->status = "running";
        snprintf(run->worker, sizeof run->worker, "%s", claim->worker);
    } else if (claim->state == ATT_CLAIM_FAILED && !has_status(run, "failed")) {
        run->status = "failed";
        snprintf(run->failure, sizeof run->failure, "%s", claim->reason);
        *run->worker = '\0';
        run->in_database = false;
    } else if ((claim->state == ATT_CLAIM_DONE && !is_finished(run)) ||
               (claim->state == ATT_CLAIM_FREE && has_status(run, "running"))) {
        att_file_look_again(run->folder, att_path_last(att_workers_lease(plan->workers)));
        ATT_TRY(find_state(plan, run));
    }
    return ATT_OK;
}

static att_status show_claims(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++) {
        const att_claim claim = att_workers_claim(plan->workers, i);
        ATT_TRY(show_claim(plan, &plan->runs[i], &claim));
    }
    return ATT_OK;
}

static bool is_to_import(const att_plan_run *run)
{
    return !run->in_database && !has_status(run, "waiting") && !has_status(run, "running");
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
    ATT_TRY(show_claims(plan));
    ATT_TRY(write_sweep(plan));
    return try_database(plan);
}

/* Writes sweep.json and the database, unless another worker is writing them: that one sees the same entries. */
static att_status record(att_sweep_plan *plan)
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
    ATT_TRY(find_state(plan, run)); /* another worker may have finished it before */
    if (is_finished(run))
        return ATT_OK;
    ATT_TRY(att_plan_make_folder(plan, run));
    if (is_finished(run))
        return ATT_OK;
    log_begin(plan, index, from);
    ATT_TRY(att_plan_begin(plan, run));
    run->status = "running";
    run->lease = att_workers_lease(plan->workers);
    snprintf(run->worker, sizeof run->worker, "%s", att_workers_own_name(plan->workers));
    return record(plan);
}

static att_status end_run(att_sweep_plan *plan, att_plan_run *run, int index)
{
    const att_claim_state state = has_status(run, "measured") ? ATT_CLAIM_DONE
                                  : has_status(run, "failed") ? ATT_CLAIM_FAILED
                                                              : ATT_CLAIM_FREE;
    run->lease = "";
    run->in_database = false;
    *run->worker = '\0';
    run->told = true;
    ATT_TRY(att_workers_give(plan->workers, index, state, run->failure));
    return record(plan);
}

/* Carries out a run that this worker has claimed. */
static att_status carry_out_run(att_sweep_plan *plan, const att_sweep_steps *steps, int index, const char *from)
{
    att_plan_run *run = &plan->runs[index];
    ATT_TRY(begin_run(plan, index, from));
    if (has_status(run, "measured"))
        tell_done(plan, index);
    att_status status = is_finished(run) ? ATT_OK : run_one(plan, steps, index);
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
    if (has_status(run, "measured"))
        tell_done(plan, index);
    if (is_finished(run))
        return ATT_OK;
    ATT_TRY(att_workers_look(plan->workers));
    snprintf(from, sizeof from, "%s", att_workers_claim(plan->workers, index).worker);
    ATT_TRY(att_workers_take(plan->workers, index, &taken));
    return taken ? carry_out_run(plan, steps, index, from) : show_claims(plan);
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
        w.has_free |= claim.state == ATT_CLAIM_FREE && !is_finished(run);
        if (claim.state != ATT_CLAIM_HELD || is_finished(run))
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

static void sleep_for(double seconds)
{
    const struct timespec pause = {.tv_sec = (time_t)seconds,
                                   .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&pause, NULL);
}

/* Sleeps, unless a stop is requested. */
static att_status pause_for(const att_sweep_plan *plan, double seconds)
{
    const double slice = 0.05;
    for (double slept = 0; slept < seconds; slept += slice) {
        if (att_stop_asked(plan->context))
            return ATT_ERR_STOPPED;
        sleep_for(seconds - slept < slice ? seconds - slept : slice);
    }
    return att_stop_asked(plan->context) ? ATT_ERR_STOPPED : ATT_OK;
}

/* Returns when a run is free again (*more), or when all runs are finished. */
static att_status wait_for_others(att_sweep_plan *plan, bool *more)
{
    char told[sizeof(((waiting *)0)->names)] = "";
    for (;;) {
        ATT_TRY(record(plan)); /* looks for news and dead workers, too */
        ATT_TRY(show_claims(plan));
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

static att_status find_states(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++)
        ATT_TRY(find_state(plan, &plan->runs[i]));
    return ATT_OK;
}

/* Refuses runs that began with other settings. A damaged recipe.yaml is reported later. */
static att_status compare_begun(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++) {
        att_status status = att_plan_compare(plan, &plan->runs[i]);
        if (status == ATT_ERR_MISMATCH || status == ATT_ERR_MEMORY)
            return status;
    }
    return ATT_OK;
}

static att_status prepare(att_sweep_plan *plan)
{
    ATT_TRY(att_plan_lay_out(plan));
    ATT_TRY(compare_begun(plan));
    ATT_TRY(find_states(plan));
    ATT_TRY(att_plan_check(plan));
    ATT_TRY(find_states(plan)); /* again, because att_plan_check() may have left out instruments */
    return att_plan_check_images(plan);
}

static att_status check_count(att_context *context, int count, const char *name)
{
    return count >= 0 ? ATT_OK
                      : att_fail(context, ATT_ERR_ARGUMENT, "%s of a sweep is %d; expected 0 or more", name, count);
}

static att_status check_pairs(att_context *context, const att_sweep_pair *pairs, int count)
{
    if (count > 0)
        ATT_TRY(att_require(context, pairs, "the list of correlations of a sweep"));
    for (int i = 0; i < count; i++) {
        ATT_TRY(att_require(context, pairs[i].x, "the figure x of a correlation of a sweep"));
        ATT_TRY(att_require(context, pairs[i].y, "the figure y of a correlation of a sweep"));
    }
    return ATT_OK;
}

static att_status check_options(att_context *context, const att_sweep_options *options)
{
    ATT_TRY(att_require(context, options, "the options of a sweep"));
    ATT_TRY(att_require(context, options->recipe, "the recipe of a sweep"));
    ATT_TRY(att_require(context, att_given(options->output), "the output folder of a sweep"));
    ATT_TRY(check_count(context, options->vary_count, "vary_count"));
    ATT_TRY(check_count(context, options->set_count, "set_count"));
    ATT_TRY(check_count(context, options->pair_count, "pair_count"));
    if (!(options->lease >= 0 && options->lease <= ATT_SWEEP_MOST_LEASE))
        return att_fail(context, ATT_ERR_ARGUMENT, "the lease of a sweep is %g s; expected more than 0, at most %d",
                        options->lease, (int)ATT_SWEEP_MOST_LEASE);
    if (options->data && !*options->data)
        return att_fail(context, ATT_ERR_ARGUMENT, "DATA of a sweep is an empty text; expected the path of a data set");
    if (options->seed_count > 0)
        ATT_TRY(att_require(context, options->seeds, "the list of seeds of a sweep"));
    ATT_TRY(att_require_texts(context, options->vary, options->vary_count, "a varied setting of a sweep"));
    ATT_TRY(att_require_texts(context, options->set, options->set_count, "a setting for all runs of a sweep"));
    return check_pairs(context, options->pairs, options->pair_count);
}

att_status att_sweep_plan_open(att_context *context, const att_sweep_options *options, att_sweep_plan **plan)
{
    ATT_TRY(check_options(context, options));
    att_sweep_plan *p = att_allocate(context, sizeof *p);
    if (!p)
        return att_fail_memory(context, sizeof *p, "a sweep");
    p->context = p->texts.context = context;
    p->options = *options;
    p->options.experiment = att_given(options->experiment);
    p->options.lease = options->lease > 0 ? options->lease : ATT_SWEEP_LEASE;
    p->measure = att_given(options->measure) ? options->measure : ATT_SWEEP_MEASURE;
    att_status status = prepare(p);
    if (status != ATT_OK)
        att_sweep_plan_close(&p);
    else
        *plan = p;
    return status;
}

void att_sweep_plan_close(att_sweep_plan **plan)
{
    if (!plan || !*plan)
        return;
    att_sweep_plan *p = *plan;
    att_sweep_destroy(&p->results);
    att_flags_destroy(&p->flags);
    att_yaml_destroy(&p->yaml);
    att_free(p->context, p->runs);
    att_arena_free(&p->texts);
    att_free(p->context, p);
    *plan = NULL;
}

/* Prepares all folders before the first run, so that errors show at once. */
static att_status prepare_folders(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++) {
        att_plan_run *run = &plan->runs[i];
        ATT_TRY(att_plan_make_folder(plan, run));
        if (!has_status(run, "measured"))
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
static att_status work(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    ATT_TRY(find_states(plan)); /* an earlier call may have left failed and stopped runs */
    ATT_TRY(prepare_folders(plan));
    ATT_TRY(record(plan));
    att_status status = run_all(plan, steps);
    if (status == ATT_ERR_STOPPED)
        return att_fail(plan->context, ATT_ERR_STOPPED, "stopped; %srepeat the command to continue",
                        att_workers_are_several(plan->workers) ? "other workers are still at work; " : "");
    return status;
}

static att_status fail_database(const att_sweep_plan *plan)
{
    return att_fail(plan->context, plan->database,
                    "all runs are finished, but runs.sqlite in %s could not be brought up to date; repeat the command",
                    plan->folder);
}

/* Leaves when everything is recorded, then reads the results of all runs. */
static att_status leave(att_sweep_plan *plan)
{
    bool left = false;
    while (!left) {
        ATT_TRY(record(plan));
        ATT_TRY(att_workers_leave(&plan->workers, false, &left));
    }
    att_context_guard_writes(plan->context, NULL, NULL);
    if (!plan->results || plan->results_are_old)
        ATT_TRY(read_measured(plan));
    return plan->database == ATT_OK ? ATT_OK : fail_database(plan);
}

/* Works as one worker, which ends in this function. *lost: it was declared dead; the context's message says so. */
static att_status work_once(att_sweep_plan *plan, const att_sweep_steps *steps, bool *lost)
{
    bool left;
    *lost = false;
    ATT_TRY(att_workers_join(plan, &plan->workers));
    att_context_guard_writes(plan->context, att_sweep_check_lease, att_workers_lease(plan->workers));
    att_status status = work(plan, steps);
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

/* Works on as a new worker after this one was declared dead. First gives the others time to renew their claims: this
 * machine or the file system may have stood still for all of them. */
static att_status carry_out(att_sweep_plan *plan, const att_sweep_steps *steps)
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

att_status att_sweep_plan_run(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    const att_sweep_steps all_here = {.train = NULL};
    for (int i = 0; i < plan->run_count; i++)
        plan->runs[i].told = false;
    plan->results_are_old = true;
    return carry_out(plan, steps ? steps : &all_here);
}

bool att_sweep_plan_has_claim(const att_sweep_plan *plan)
{
    return plan->workers && !att_workers_are_lost(plan->workers);
}

const char *att_sweep_plan_folder(const att_sweep_plan *plan)
{
    return plan->folder;
}

int att_sweep_plan_count(const att_sweep_plan *plan)
{
    return plan->run_count;
}

att_planned_run att_sweep_plan_at(const att_sweep_plan *plan, int run)
{
    return run >= 0 && run < plan->run_count ? show(&plan->runs[run]) : (att_planned_run){.setting = NULL};
}

const att_sweep *att_sweep_plan_results(const att_sweep_plan *plan)
{
    return plan->results;
}
