/* The sweep of the fine-tunings of an advice. */
#include <string.h>

#include <attscope/file.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/runs/advise/advice.h"

static const char with_batch_norm[] =
    "# The fine-tunings of attscope advise: networks with batch norm.\n"
    "updates: 400\n"
    "batch_size: 128\n"
    "opt: momentum\n"
    "lr: 0.01\n"
    "momentum: 0.9\n"
    "weight_decay: 0.0005\n"
    "sched: cosine\n"
    "sched_on_updates: true\n"
    "warmup_epochs: 0\n"
    "min_lr: 0\n"
    "no_aug: true\n";
static const char with_layer_norm[] =
    "# The fine-tunings of attscope advise: networks without batch norm.\n"
    "updates: 400\n"
    "batch_size: 128\n"
    "opt: adamw\n"
    "lr: 0.0001\n"
    "weight_decay: 0.05\n"
    "sched: cosine\n"
    "sched_on_updates: true\n"
    "warmup_epochs: 0\n"
    "min_lr: 0\n"
    "no_aug: true\n";

/* Writes the default recipe to the sweep's folder, and returns its path in *path. */
static att_status write_recipe(att_advice *advice, const char **path)
{
    char folder[ATT_RUN_PATH], file[ATT_RUN_PATH];
    const char *text = advice->batch_norm ? with_batch_norm : with_layer_norm;
    ATT_TRY(att_path_join(advice->context, advice->options.output, advice->experiment, folder, sizeof folder));
    ATT_TRY(att_path_join(advice->context, folder, "recipe.yaml", file, sizeof file));
    ATT_TRY(att_file_make_folders(advice->context, folder));
    ATT_TRY(att_file_replace(advice->context, file, text, strlen(text)));
    *path = att_arena_string(&advice->texts, file);
    return *path ? ATT_OK : att_fail_memory(advice->context, strlen(file), "the path of a recipe");
}

/* Appends a value of the list, in which a comma is "\,". */
static void append_value(att_text *list, const char *value)
{
    for (; *value; value++)
        att_text_append(list, *value == ',' ? "\\%c" : "%c", *value);
}

/* "modules=none,se:start=identity@after_branch:3,..." */
static att_status list_settings(att_advice *advice, const char **vary)
{
    att_text list = {.context = advice->context};
    att_text_append(&list, "modules=");
    append_value(&list, advice->base);
    for (int i = 0; i < advice->tested; i++) {
        att_text_append(&list, ",");
        append_value(&list, advice->blocks[i].shown.modules);
        advice->blocks[i].shown.tested = true;
    }
    *vary = list.failed ? NULL : att_arena_string(&advice->texts, list.data);
    att_text_free(&list);
    return *vary ? ATT_OK : att_fail_memory(advice->context, ATT_OPTION_TEXT_BYTES, "the settings of a sweep");
}

/* The caller's settings, after those of the checkpoint. */
static att_status list_sets(att_advice *advice, const char *sets[ATT_MOST_TEXTS], int *count)
{
    const att_advise_options *options = &advice->options;
    *count = 0;
    if (options->set_count > ATT_MOST_TEXTS - 2)
        return att_fail(advice->context, ATT_ERR_ARGUMENT, "--set is given more than %d times", ATT_MOST_TEXTS - 2);
    sets[(*count)++] = att_advice_text(advice, "initial_checkpoint=%s", options->checkpoint);
    if (options->model)
        sets[(*count)++] = att_advice_text(advice, "model=%s", options->model);
    for (int i = 0; i < *count; i++)
        if (!sets[i])
            return att_fail_memory(advice->context, strlen(options->checkpoint), "the settings of a sweep");
    for (int i = 0; i < options->set_count; i++)
        sets[(*count)++] = options->set[i];
    return ATT_OK;
}

att_status att_advice_open_plan(att_advice *advice)
{
    const att_advise_options *options = &advice->options;
    const char *vary, **sets = att_arena_allocate(&advice->texts, ATT_MOST_TEXTS * sizeof *sets);
    if (!sets)
        return att_fail_memory(advice->context, ATT_MOST_TEXTS * sizeof *sets, "the settings of a sweep");
    const char **varied = att_arena_allocate(&advice->texts, sizeof *varied);
    if (!varied)
        return att_fail_memory(advice->context, sizeof *varied, "the settings of a sweep");
    att_sweep_options sweep = {.recipe = options->recipe,
                               .data = options->data,
                               .seeds = options->seeds,
                               .seed_count = options->seed_count,
                               .vary = varied,
                               .vary_count = 1,
                               .set = sets,
                               .output = options->output,
                               .experiment = advice->experiment,
                               .measure = advice->instrument};
    if (!sweep.recipe)
        ATT_TRY(write_recipe(advice, &sweep.recipe));
    ATT_TRY(list_settings(advice, &vary));
    *varied = vary;
    ATT_TRY(list_sets(advice, sets, &sweep.set_count));
    return att_sweep_plan_open(advice->context, &sweep, &advice->plan);
}
