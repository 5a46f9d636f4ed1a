#include "sweep/steps.h"

#include <stdio.h>

#include <attscope/lab/measuring.h>
#include <attscope/lab/training.h>
#include <attscope/network.h>

#include "core/error.h"
#include "io/file.h"

enum { SAMPLES = 64 }; /* of which the report draws a line each */

static bool go_on(void *user, const att_progress *progress)
{
    (void)progress;
    return !att_stop_asked(user);
}

static att_status say_why(const att_context *context, att_status status, char reason[ATT_SWEEP_REASON])
{
    if (status != ATT_OK)
        snprintf(reason, ATT_SWEEP_REASON, "%s", att_context_message(context));
    return status;
}

static att_status train(void *user, const att_planned_run *run, const att_recipe *recipe, char reason[ATT_SWEEP_REASON])
{
    att_context *context = user;
    const att_training_observer observer = {.progress = go_on, .progress_user = context};
    att_recipe going_on = *recipe;
    att_training *training = NULL;
    (void)run; /* the recipe names its folder */
    going_on.files.resume = "auto";
    att_status status = att_training_open(context, &going_on, &training);
    if (status == ATT_OK)
        status = att_training_run(training, &observer, NULL);
    att_training_close(&training);
    return say_why(context, status, reason);
}

static att_status measure_network(att_context *context, att_network *network, const att_planned_run *run,
                                  const att_recipe *recipe)
{
    att_measuring_options options = att_measuring_options_defaults();
    att_measured measured = {0};
    options.with = run->measure;
    options.samples = SAMPLES;
    options.split = "test";
    options.class_map = recipe->data.class_map;
    options.coarse_labels = recipe->data.coarse_labels;
    if (recipe->data.cache_bytes > 0)
        options.cache_bytes = (size_t)recipe->data.cache_bytes;
    options.workers = recipe->train.workers;
    options.skip_corrupt = recipe->train.skip_corrupt;
    options.progress = go_on;
    options.progress_user = context;
    att_status status = att_measure_checkpoint(network, &recipe->data.data_dir, 1, &options, &measured);
    att_measured_free(&measured);
    return status;
}

/* The last checkpoint: the best one would be chosen by the images that it is measured on, where there is no third
 * split. */
static att_status measure(void *user, const att_planned_run *run, const att_recipe *recipe,
                          char reason[ATT_SWEEP_REASON])
{
    att_context *context = user;
    att_network_options options = att_network_options_defaults();
    att_network *network = NULL;
    char last[ATT_RUN_PATH];
    options.backend = recipe->engine.backend;
    att_status status = att_path_join(context, run->folder, "last.safetensors", last, sizeof last);
    if (status == ATT_OK)
        status = att_network_open(context, last, &options, &network);
    if (status == ATT_OK)
        status = measure_network(context, network, run, recipe);
    att_network_close(&network);
    return say_why(context, status, reason);
}

att_sweep_steps att_sweep_own_steps(att_context *context)
{
    return (att_sweep_steps){.train = train, .measure = measure, .user = context};
}
