/* Runs a sweep. Its whole state between two calls is in the folders of the runs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <attscope/file.h>

#include "core/error.h"
#include "core/text.h"
#include "io/file.h"
#include "runs/given.h"
#include "sweep/plan.h"
#include "sweep/steps.h"

/* --- records ------------------------------------------------------------------------------------------------------ */

/* Reads the records of the measured runs. Ignores requests to stop, because sweep.json is also written after a stop. */
static att_status read_measured(att_sweep_plan *plan)
{
    att_sweep_run runs[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    for (int i = 0; i < plan->run_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        if (strcmp(run->status, "measured") == 0)
            runs[count++] = (att_sweep_run){run->folder, run->setting, run->seed};
    }
    att_sweep_destroy(&plan->results);
    att_hold_stop(plan->context, true);
    att_status status =
        att_sweep_read(plan->context, runs, count, plan->options.pairs, plan->options.pair_count, 0, &plan->results);
    att_hold_stop(plan->context, false);
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

/* Called before the first run and after each, so that the folder can be shown at any time. */
static att_status write_sweep(att_sweep_plan *plan)
{
    att_json_writer *writer;
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
                             .failure = run->failure};
}

/* Reads what the run's records show. Ignores requests to stop, which must not hide a finished step. */
static att_status find_records(const att_sweep_plan *plan, att_plan_run *run)
{
    att_hold_stop(plan->context, true);
    att_status status = att_run_state_read(plan->context, run->folder, run->measure, &run->found);
    att_hold_stop(plan->context, false);
    return status;
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

/* Carries out the steps that the run still lacks. reason: as in att_sweep_train(). */
static att_status run_steps(att_sweep_plan *plan, const att_sweep_steps *steps, int index,
                            char reason[ATT_SWEEP_REASON])
{
    att_plan_run *run = &plan->runs[index];
    const att_planned_run shown = show(run);
    ATT_TRY(att_plan_build_recipe(plan, run));
    plan->recipe.files.resume = "auto";
    ATT_TRY(read_state(plan, run));
    log_run(plan, index, "");
    if (!run->found.trained)
        ATT_TRY(att_sweep_train(plan->context, steps, &shown, &plan->recipe, reason));
    run->status = "trained";
    *reason = '\0'; /* a step that succeeded has none */
    if (!run->found.measured)
        ATT_TRY(att_sweep_measure(plan->context, steps, &shown, &plan->recipe, reason));
    *reason = '\0';
    ATT_TRY(check_measured(plan, run));
    run->status = "measured";
    return ATT_OK;
}

static void mark_failed(att_sweep_plan *plan, att_plan_run *run, const char *reason)
{
    run->status = "failed";
    snprintf(run->failure, sizeof run->failure, "%s", reason);
    att_log(plan->context, ATT_LOG_WARNING, "%s failed (%s); the other runs continue", run->name, run->failure);
}

/* Returns ATT_OK, also if the run failed and the others may continue, or ERR_STOPPED. */
static att_status run_one(att_sweep_plan *plan, const att_sweep_steps *steps, int index)
{
    att_plan_run *run = &plan->runs[index];
    char reason[ATT_SWEEP_REASON] = "";
    const uint64_t messages = att_message_count(plan->context);
    if (att_stop_asked(plan->context))
        return ATT_ERR_STOPPED;
    if (strcmp(run->status, "failed") == 0)
        return ATT_OK;
    if (strcmp(run->status, "measured") == 0) {
        log_run(plan, index, ": done already");
        return ATT_OK;
    }
    att_status status = run_steps(plan, steps, index, reason);
    if (status == ATT_ERR_STOPPED)
        run->status = "stopped";
    else if (status != ATT_OK)
        mark_failed(plan, run,
                    *reason                                       ? reason
                    : att_message_count(plan->context) > messages ? att_context_message(plan->context)
                                                                  : att_status_meaning(status));
    return status == ATT_ERR_STOPPED ? status : ATT_OK;
}

static att_status run_all(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    for (int i = 0; i < plan->run_count; i++) {
        att_status status = run_one(plan, steps, i), written = write_sweep(plan);
        if (status == ATT_ERR_STOPPED)
            return att_fail(plan->context, ATT_ERR_STOPPED, "stopped; repeat the command to continue");
        ATT_TRY(written);
    }
    return ATT_OK;
}

/* --- all runs ----------------------------------------------------------------------------------------------------- */

/* Gives every run the status that its records show. Damaged records are reported later, when the run is carried out. */
static att_status find_states(att_sweep_plan *plan)
{
    for (int i = 0; i < plan->run_count; i++) {
        att_plan_run *run = &plan->runs[i];
        att_status status = find_records(plan, run);
        if (status == ATT_ERR_MEMORY)
            return status;
        if (status != ATT_OK)
            run->found = (att_run_state){.trained = false};
        run->status = run->found.measured ? "measured" : run->found.trained ? "trained" : "waiting";
        *run->failure = '\0';
    }
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
        ATT_TRY(att_plan_write(plan, run));
        if (strcmp(run->status, "measured") != 0)
            continue;
        att_status status = att_plan_check_records(plan, run);
        if (status == ATT_ERR_MEMORY)
            return status;
        if (status != ATT_OK)
            att_plan_mark_damaged(plan, run);
    }
    return ATT_OK;
}

/* The caller holds the folder's lock. */
static att_status carry_out(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    ATT_TRY(find_states(plan)); /* an earlier call may have left failed and stopped runs */
    ATT_TRY(prepare_folders(plan));
    ATT_TRY(write_sweep(plan));
    return run_all(plan, steps);
}

att_status att_sweep_plan_run(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    const att_sweep_steps all_here = {.train = NULL};
    int lock;
    ATT_TRY(att_plan_lock(plan, &lock));
    att_status status = carry_out(plan, steps ? steps : &all_here);
    close(lock);
    return status;
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
