/* Writes sweep.json. */
#include <string.h>

#include "lab/runs/sweep/plan.h"

static void put_texts(att_json_writer *writer, const char *key, const char *const *texts, int count)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_string(writer, texts[i]);
    att_json_end_array(writer);
}

static void put_runs(att_json_writer *writer, const att_sweep_plan *plan)
{
    att_json_put_array(writer, "runs");
    for (int i = 0; i < plan->run_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        att_json_begin_object(writer);
        att_json_put_string(writer, "name", run->name);
        att_json_put_string(writer, "setting", run->setting);
        att_json_put_integer(writer, "seed", (int64_t)run->seed);
        att_json_put_string(writer, "status", run->status);
        if (*run->worker)
            att_json_put_string(writer, "worker", run->worker);
        if (*run->failure)
            att_json_put_string(writer, "failure", run->failure);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* The requested pairs of figures, for the page of the sweep's folder; left out if the default is requested. */
static void put_pairs(att_json_writer *writer, const att_sweep_options *options)
{
    if (options->pair_count == 0)
        return;
    att_json_put_array(writer, "correlate");
    for (int i = 0; i < options->pair_count; i++) {
        att_json_begin_object(writer);
        att_json_put_string(writer, "x", options->pairs[i].x);
        att_json_put_string(writer, "y", options->pairs[i].y);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* The split on which the runs were measured; NULL: no run is measured, or the runs' splits differ. */
static const char *split_of(const att_sweep_plan *plan)
{
    const char *split = NULL;
    for (int i = 0; i < plan->run_count; i++) {
        const att_plan_run *run = &plan->runs[i];
        if (strcmp(run->status, "measured") != 0)
            continue;
        if (split && strcmp(split, run->found.split) != 0)
            return NULL;
        split = run->found.split;
    }
    return split;
}

static bool has_instrument(const att_sweep *sweep, const char *name)
{
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++)
            if (strcmp(att_sweep_figure_at(sweep, i, f).instrument, name) == 0)
                return true;
    return false;
}

/* The results and their explanations. */
static void put_results(att_json_writer *writer, const att_sweep_plan *plan)
{
    const att_sweep *sweep = plan->results;
    att_sweep_write_json(sweep, writer);
    att_json_put_string(writer, "figures_are", ATT_SWEEP_FIGURES_NOTE);
    att_json_put_string(writer, "correlations_are", ATT_SWEEP_CORRELATIONS_ARE);
    att_json_put_array(writer, "instruments");
    for (int i = 0; i < att_instrument_count(plan->context); i++) {
        att_instrument_info info = att_instrument_at(plan->context, i);
        if (has_instrument(sweep, info.name))
            att_instrument_write_json(&info, writer);
    }
    att_json_end_array(writer);
}

void att_sweep_plan_write_json(const att_sweep_plan *plan, att_json_writer *writer)
{
    const att_sweep_options *options = &plan->options;
    att_json_begin_object(writer);
    att_json_put_string(writer, "attscope", att_version());
    att_json_put_string(writer, "folder", plan->folder);
    att_json_put_string(writer, "recipe", options->recipe);
    att_json_put_string(writer, "data", plan->recipe.data.data_dir);
    att_json_put_string(writer, "split", split_of(plan));
    att_json_put_string(writer, "measure", plan->measure);
    put_pairs(writer, options);
    put_texts(writer, "vary", options->vary, options->vary_count);
    put_texts(writer, "set", options->set, options->set_count);
    put_runs(writer, plan);
    if (plan->results)
        put_results(writer, plan);
    att_json_end_object(writer);
}
