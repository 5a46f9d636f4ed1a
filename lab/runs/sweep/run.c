/* Opens a sweep, whose whole state between two calls is in the folders of the runs. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "lab/runs/records/given.h"
#include "lab/runs/sweep/work.h"

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
    ATT_TRY(att_plan_find_states(plan));
    ATT_TRY(att_plan_check(plan));
    ATT_TRY(att_plan_find_states(plan)); /* again, because att_plan_check() may have left out instruments */
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
    att_sweep_plan *p;
    ATT_TRY(att_new(context, &p, 1, "a sweep"));
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

att_status att_sweep_plan_run(att_sweep_plan *plan, const att_sweep_steps *steps)
{
    const att_sweep_steps all_here = {.train = NULL};
    for (int i = 0; i < plan->run_count; i++)
        plan->runs[i].told = false;
    plan->results_are_old = true;
    return att_plan_work(plan, steps ? steps : &all_here);
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
    return run >= 0 && run < plan->run_count ? att_plan_show(&plan->runs[run]) : (att_planned_run){.setting = NULL};
}

const att_sweep *att_sweep_plan_results(const att_sweep_plan *plan)
{
    return plan->results;
}
