#include "lab/runs/sweep/steps.h"

#include <errno.h>
#include <string.h>

#include <attscope/lab/measuring.h>
#include <attscope/lab/training.h>
#include <attscope/network.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/io/file.h"
#include "base/io/journal.h"

enum { SAMPLES = 64 }; /* number of images whose own figures are recorded, a line each in the report */

/* --- the lease ---------------------------------------------------------------------------------------------------- */

att_status att_sweep_check_lease(const void *user, att_context *context, const char *path)
{
    const char *mark = user;
    const att_mark found = att_mark_renew(mark);
    if (found == ATT_MARK_RENEWED)
        return ATT_OK;
    if (found == ATT_MARK_UNKNOWN)
        return att_fail(context, ATT_ERR_IO, "%s is not written: the claim on the run could not be renewed: %s: %s",
                        path, mark, strerror(errno));
    return att_fail(context, ATT_ERR_IO,
                    "%s is not written: the claim on the run was not renewed in time, and another worker of the sweep "
                    "took the run over",
                    path);
}

att_status att_sweep_guard_step(att_context *context, const char *lease)
{
    ATT_TRY(att_require(context, lease, "the lease of a run"));
    att_context_guard_writes(context, att_sweep_check_lease, lease);
    return ATT_OK;
}

/* --- steps in this process ---------------------------------------------------------------------------------------- */

/* The progress callback of the steps in this process. */
typedef struct step_observer {
    const att_context *context;
    const att_sweep_steps *steps;
} step_observer;

static bool watch(void *user, const att_progress *progress)
{
    const step_observer *w = user;
    const bool goes_on = !w->steps->progress || w->steps->progress(w->steps->progress_user, progress);
    return goes_on && !att_stop_asked(w->context);
}

static att_status train_here(att_context *context, const att_sweep_steps *steps, const att_recipe *recipe)
{
    step_observer w = {context, steps};
    const att_training_observer observer = {.progress = watch, .progress_user = &w};
    att_training *training = NULL;
    att_status status = att_training_open(context, recipe, &training);
    if (status == ATT_OK)
        status = att_training_run(training, &observer, NULL);
    att_training_close(&training);
    return status;
}

att_status att_sweep_train(att_context *context, const att_sweep_steps *steps, const att_planned_run *run,
                           const att_recipe *recipe, char reason[ATT_SWEEP_REASON])
{
    return steps->train ? steps->train(steps->user, run, recipe, reason) : train_here(context, steps, recipe);
}

static att_status measure_network(att_context *context, att_network *network, const att_sweep_steps *steps,
                                  const att_planned_run *run, const att_recipe *recipe)
{
    step_observer w = {context, steps};
    att_measuring_options options = att_measuring_options_defaults();
    att_measured measured = {0};
    options.with = run->measure;
    options.samples = SAMPLES;
    options.split = "test";
    options.class_map = recipe->data.class_map;
    options.coarse_labels = recipe->data.coarse_labels;
    options.reduce_zero_label = recipe->data.reduce_zero_label;
    options.ignore_label = recipe->data.ignore_label;
    if (recipe->data.cache_bytes > 0)
        options.cache_bytes = (size_t)recipe->data.cache_bytes;
    options.workers = recipe->train.workers;
    options.skip_corrupt = recipe->train.skip_corrupt;
    options.progress = watch;
    options.progress_user = &w;
    att_status status = att_measure_checkpoint(network, &recipe->data.data_dir, 1, &options, &measured);
    att_measured_free(&measured);
    return status;
}

/* Measures the last checkpoint, not the best one: in a data set without a third split, the best one was selected on the
 * images that are measured. */
static att_status measure_here(att_context *context, const att_sweep_steps *steps, const att_planned_run *run,
                               const att_recipe *recipe)
{
    att_network_options options = att_network_options_defaults();
    att_network *network = NULL;
    char last[ATT_RUN_PATH];
    options.backend = recipe->engine.backend;
    att_status status = att_path_join(context, run->folder, "last.safetensors", last, sizeof last);
    if (status == ATT_OK)
        status = att_network_open(context, last, &options, &network);
    if (status == ATT_OK)
        status = measure_network(context, network, steps, run, recipe);
    att_network_close(&network);
    return status;
}

att_status att_sweep_measure(att_context *context, const att_sweep_steps *steps, const att_planned_run *run,
                             const att_recipe *recipe, char reason[ATT_SWEEP_REASON])
{
    return steps->measure ? steps->measure(steps->user, run, recipe, reason)
                          : measure_here(context, steps, run, recipe);
}
