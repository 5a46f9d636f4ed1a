#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/spread.h"
#include "base/core/text.h"
#include "lab/papers/experiments/list.h"
#include "lab/papers/experiments/record.h"

static const att_experiment *const experiments[] = {
#define EXPERIMENT_ENTRY(name) &att_experiment_##name,
    ATT_EXPERIMENT_LIST(EXPERIMENT_ENTRY)
#undef EXPERIMENT_ENTRY
};
enum { EXPERIMENT_COUNT = sizeof experiments / sizeof *experiments };

static const double DROPOUT = 0.1;
static const char ALL[] = "all";

int att_experiment_count(void)
{
    return EXPERIMENT_COUNT;
}

const att_experiment_info *att_experiment_at(int index)
{
    return index >= 0 && index < EXPERIMENT_COUNT ? &experiments[index]->info : NULL;
}

static const char *name_at(const void *user, int index)
{
    (void)user;
    return experiments[index]->info.name;
}

static att_status find(att_context *context, const char *name, const att_experiment **found)
{
    ATT_TRY(att_require(context, name, "the name of the experiment"));
    for (int i = 0; i < EXPERIMENT_COUNT; i++) {
        *found = experiments[i];
        if (strcmp(name, (*found)->info.name) == 0)
            return ATT_OK;
    }
    const char *nearest = att_text_nearest(name, name_at, NULL, EXPERIMENT_COUNT);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no experiment \"%s\"%s%s%s", name,
                    nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

att_status att_experiment_find(att_context *context, const char *name, const att_experiment_info **info)
{
    const att_experiment *found = NULL;
    ATT_TRY(find(context, name, &found));
    *info = &found->info;
    return ATT_OK;
}

att_experiment_options att_experiment_options_defaults(void)
{
    return (att_experiment_options){.repeats = 5, .seeds = 1};
}

/* --- what experiments ask for ------------------------------------------------------------------------------------- */

uint64_t att_experiment_seed(const att_experiment_job *job)
{
    return job->options->seed + (uint64_t)job->network;
}

att_random att_experiment_random(const att_experiment_job *job, const char *set, int sample)
{
    return att_random_from(att_random_key(att_experiment_seed(job), att_random_hash(set), (uint64_t)sample));
}

att_experiment_score att_experiment_value(double value)
{
    return (att_experiment_score){value, NAN, 1};
}

static int count_quirks(const att_experiment_info *info)
{
    int count = 0;
    while (info->quirks && info->quirks[count].name)
        count++;
    return count;
}

/* The names that --quirk takes: those of the quirks, then "all". */
static const char *quirk_at(const void *user, int index)
{
    const att_experiment_info *info = user;
    return index < count_quirks(info) ? info->quirks[index].name : ALL;
}

static bool is_named(const att_experiment_options *options, const char *quirk)
{
    for (int i = 0; i < options->quirk_count; i++)
        if (strcmp(options->quirks[i], quirk) == 0)
            return true;
    return false;
}

bool att_experiment_has(const att_experiment_job *job, const char *quirk)
{
    const att_experiment_info *info = &job->experiment->info;
    for (int i = 0; i < count_quirks(info); i++)
        if (strcmp(info->quirks[i].name, quirk) == 0)
            return is_named(job->options, quirk) || is_named(job->options, ALL);
    return false;
}

att_san_spec att_experiment_spec(const att_experiment_job *job)
{
    const att_experiment *experiment = job->experiment;
    att_san_spec spec = experiment->spec;
    spec.depth = experiment->info.depth;
    spec.heads = experiment->info.heads;
    spec.width = experiment->info.width;
    spec.dropout = DROPOUT;
    spec.mlp = job->options->mlp;
    spec.padding = att_experiment_has(job, "padding");
    return spec;
}

att_learning att_experiment_learning(const att_experiment_job *job, const char *stage)
{
    const att_experiment *experiment = job->experiment;
    att_learning learning = {.optimizer = experiment->info.optimizer,
                             .lr = job->lr,
                             .weight_decay = experiment->weight_decay,
                             .clip_norm = experiment->clip_norm,
                             .schedule = experiment->schedule,
                             .batch_size = experiment->info.batch_size,
                             .epochs = job->epochs,
                             .shuffle = !att_experiment_has(job, "unshuffled"),
                             .mean = true,
                             .seed = att_experiment_seed(job),
                             .options = job->options};
    att_experiment_stage(job, stage, learning.stage);
    return learning;
}

void att_experiment_stage(const att_experiment_job *job, const char *what, char stage[ATT_LEARNING_STAGE])
{
    if (job->options->seeds > 1)
        snprintf(stage, ATT_LEARNING_STAGE, "network %d/%d, %s", job->network + 1, job->options->seeds, what);
    else
        snprintf(stage, ATT_LEARNING_STAGE, "%s", what);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static att_status check_quirk(att_context *context, const att_experiment_info *info, const char *name)
{
    int count = count_quirks(info) + 1;
    ATT_TRY(att_require(context, name, "the name of a quirk"));
    if (count == 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s has no quirks", info->name);
    for (int i = 0; i < count; i++)
        if (strcmp(name, quirk_at(info, i)) == 0)
            return ATT_OK;
    const char *nearest = att_text_nearest(name, quirk_at, info, count);
    if (nearest)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s has no quirk \"%s\"; did you mean %s?", info->name,
                        name, nearest);
    char names[256] = "";
    for (int i = 0; i < count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", quirk_at(info, i));
    return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s has no quirk \"%s\"; it has %s", info->name, name, names);
}

static att_status check(att_context *context, const att_experiment_info *info, const att_experiment_options *options)
{
    if (options->epochs < 0 || options->repeats < 1 || options->seeds < 1 || !(options->lr >= 0) ||
        !isfinite(options->lr))
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "experiment %s: epochs (%d) and the learning rate (%g) must be at least 0, repeats (%d) and seeds (%d) "
            "at least 1",
            info->name, options->epochs, options->lr, options->repeats, options->seeds);
    if (options->mlp && !info->paths)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s trains with and without an MLP in any case",
                        info->name);
    if (options->texts && !info->texts)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s reads no texts", info->name);
    if (options->tokenizer && !options->texts)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "experiment %s: a tokenizer divides the texts of a file, and none is given (--texts)",
                        info->name);
    for (int i = 0; i < options->quirk_count; i++)
        ATT_TRY(check_quirk(context, info, options->quirks[i]));
    return ATT_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

enum { MOST_SCORES = ATT_EXPERIMENT_SUMS * ATT_EXPERIMENT_LENGTHS + 3 + 3 * ATT_CIRCLE_VARIANTS };

/* Lists all scores of a result and returns their number. */
static int list_scores(att_experiment_result *result, att_experiment_score *scores[MOST_SCORES])
{
    int count = 0;
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
        for (int length = 0; length < ATT_EXPERIMENT_LENGTHS; length++)
            scores[count++] = &result->paths[sum][length];
    scores[count++] = &result->loss;
    scores[count++] = &result->whole;
    scores[count++] = &result->baseline;
    for (int i = 0; i < ATT_CIRCLE_VARIANTS; i++) {
        scores[count++] = &result->circle[i].loss;
        scores[count++] = &result->circle[i].radius_error;
        scores[count++] = &result->circle[i].distance;
    }
    return count;
}

static att_status run_network(att_experiment_job *job, att_experiment_result *result)
{
    att_arena arena = {.context = job->context};
    memset(result, 0, sizeof *result);
    result->epochs = job->epochs;
    result->lr = job->lr;
    job->arena = &arena;
    att_status status =
        job->experiment->run ? job->experiment->run(job, result) : att_experiment_run_paths(job, result);
    att_arena_free(&arena);
    return status;
}

/* Runs every network. The scores of several are those of the first with mean and deviation over the networks. */
static att_status run_networks(att_experiment_job *job, att_experiment_result *result)
{
    att_spread spreads[MOST_SCORES] = {{.count = 0}};
    att_experiment_score *scores[MOST_SCORES];
    att_experiment_result later;
    for (job->network = 0; job->network < job->options->seeds; job->network++) {
        att_experiment_result *own = job->network == 0 ? result : &later;
        ATT_TRY(run_network(job, own));
        int count = list_scores(own, scores);
        for (int i = 0; i < count; i++)
            att_spread_add(&spreads[i], scores[i]->mean);
    }
    int count = job->options->seeds > 1 ? list_scores(result, scores) : 0;
    for (int i = 0; i < count; i++)
        *scores[i] =
            (att_experiment_score){att_spread_mean(&spreads[i]), att_spread_deviation(&spreads[i]), spreads[i].count};
    return ATT_OK;
}

att_status att_experiment_run(att_context *context, const char *name, const att_experiment_options *options,
                              att_experiment_result *result)
{
    const att_experiment *found = NULL;
    att_experiment_record record = {.context = NULL};
    ATT_TRY(find(context, name, &found));
    ATT_TRY(check(context, &found->info, options));
    att_experiment_job job = {.context = context,
                              .experiment = found,
                              .options = options,
                              .epochs = options->epochs > 0 ? options->epochs : found->info.epochs,
                              .lr = options->lr > 0 ? options->lr : found->info.lr};
    ATT_TRY(att_experiment_record_open(&record, context, options->folder));
    att_status status = run_networks(&job, result);
    if (status == ATT_OK)
        status = att_experiment_record_write(&record, &found->info, options, result);
    att_experiment_record_close(&record);
    return status;
}
