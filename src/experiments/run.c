#include <math.h>
#include <string.h>
#include <time.h>

#include <attscope/lab/names.h>
#include <attscope/ops.h>

#include "core/spread.h"
#include "experiments/list.h"
#include "experiments/paths.h"

static const att_experiment *const experiments[] = {
#define EXPERIMENT_ENTRY(name) &att_experiment_##name,
    ATT_EXPERIMENT_LIST(EXPERIMENT_ENTRY)
#undef EXPERIMENT_ENTRY
};
enum { EXPERIMENT_COUNT = sizeof experiments / sizeof *experiments };

static const double DROPOUT = 0.1;
static const int sums[ATT_EXPERIMENT_SUMS] = {5, 20};
enum { MOST_PATHS = 20 };

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
    return (att_experiment_options){.repeats = 5};
}

att_random att_experiment_random(const att_experiment_job *job, const char *set, int sample)
{
    return att_random_from(att_random_key(job->options->seed, att_random_hash(set), (uint64_t)sample));
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
    return spec;
}

att_learning att_experiment_learning(const att_experiment_job *job, const char *stage)
{
    const att_experiment *experiment = job->experiment;
    return (att_learning){.optimizer = experiment->info.optimizer,
                          .lr = job->lr,
                          .weight_decay = experiment->weight_decay,
                          .clip_norm = experiment->clip_norm,
                          .schedule = experiment->schedule,
                          .batch_size = experiment->info.batch_size,
                          .epochs = job->epochs,
                          .shuffle = !job->options->in_order,
                          .mean = true,
                          .stage = stage,
                          .seed = job->options->seed,
                          .options = job->options};
}

/* --- tasks with paths --------------------------------------------------------------------------------------------- */

/* The share of the most frequent class. */
static double majority(const att_samples *samples, int64_t classes, int64_t *tokens)
{
    int64_t counts[64] = {0}, most = 0;
    const int32_t *targets = (const int32_t *)samples->target;
    *tokens = 0;
    for (int64_t i = 0; i < (int64_t)samples->count * samples->tokens; i++) {
        if (targets[i] == ATT_NO_CLASS)
            continue;
        counts[targets[i]]++;
        ++*tokens;
    }
    for (int64_t c = 0; c < classes; c++)
        most = counts[c] > most ? counts[c] : most;
    return (double)most / (double)*tokens;
}

/* The score of one length and one number of paths, over the repeats. */
static att_status score_paths(const att_experiment_job *job, att_walker *walker, const att_samples *samples, int sum,
                              int length, att_experiment_score *score)
{
    att_spread spread = {.count = 0};
    for (int repeat = 0; repeat < job->options->repeats; repeat++) {
        uint64_t stream = att_random_key((uint64_t)sum, (uint64_t)length, (uint64_t)repeat);
        att_random random = att_random_from(att_random_key(job->options->seed, att_random_hash("paths"), stream));
        att_path paths[MOST_PATHS];
        double share;
        for (int p = 0; p < sums[sum]; p++)
            paths[p] = att_path_draw(&random, walker->spec->depth, walker->spec->heads, length);
        ATT_TRY(att_walker_score(walker, samples, paths, sums[sum], &share));
        att_spread_add(&spread, share);
    }
    *score = (att_experiment_score){att_spread_mean(&spread), att_spread_deviation(&spread)};
    return ATT_OK;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reports after `done` of `all` combinations of length and number of paths. Returns ERR_STOPPED if the caller wants to
 * stop. */
static att_status report_paths(const att_experiment_job *job, const att_samples *samples, int done, int all,
                               double started)
{
    double seconds = now() - started, scored = (double)done * job->options->repeats * samples->count;
    const att_progress progress = {.stage = "paths",
                                   .batch = done,
                                   .batches = all,
                                   .images_per_second = scored / seconds,
                                   .seconds_left = seconds / done * (all - done),
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1};
    if (job->options->progress && !job->options->progress(job->options->user, &progress))
        return att_fail(job->context, ATT_ERR_STOPPED, "stopped while paths were evaluated");
    return ATT_OK;
}

static att_status evaluate(const att_experiment_job *job, att_walker *walker, const att_samples *samples,
                           att_experiment_result *result)
{
    double started = now();
    result->lengths = walker->spec->depth + 1;
    ATT_TRY(att_walker_score(walker, samples, NULL, 0, &result->whole));
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++) {
        result->sums[sum] = sums[sum];
        for (int length = 0; length < result->lengths; length++) {
            ATT_TRY(score_paths(job, walker, samples, sum, length, &result->paths[sum][length]));
            ATT_TRY(report_paths(job, samples, sum * result->lengths + length + 1,
                                 ATT_EXPERIMENT_SUMS * result->lengths, started));
        }
    }
    return ATT_OK;
}

/* A network that is trained and evaluated. */
typedef struct path_task {
    att_san_spec spec;
    att_samples training, evaluation;
    att_graph *graph;
    att_weights *weights;
} path_task;

static att_status train_task(const att_experiment_job *job, path_task *task, att_experiment_result *result)
{
    att_learned learned;
    const att_learning learning = att_experiment_learning(job, "train");
    ATT_TRY(att_graph_create(job->context, ATT_F32, &task->graph));
    att_value logits = att_san_build(task->graph, &task->spec);
    att_value target = att_graph_input(task->graph, "target", ATT_I32, att_shape_of(task->spec.tokens));
    att_graph_output(task->graph, "loss", att_token_cross_entropy(task->graph, logits, target));
    ATT_TRY(att_weights_create(task->graph, "cpu", &task->weights));
    ATT_TRY(att_weights_initialise(task->weights, job->options->seed));
    ATT_TRY(att_learn(job->context, task->graph, task->weights, &task->training, &learning, &learned));
    result->loss = learned.loss;
    result->updates = learned.updates;
    return ATT_OK;
}

static att_status run_task(const att_experiment_job *job, path_task *task, att_experiment_result *result)
{
    ATT_TRY(job->experiment->make(job, &task->spec, &task->training, &task->evaluation));
    const att_samples *evaluation = task->evaluation.count > 0 ? &task->evaluation : &task->training;
    ATT_TRY(train_task(job, task, result));
    result->training_samples = task->training.count;
    result->evaluation_samples = evaluation->count;
    result->vocabulary = task->spec.vocabulary;
    result->baseline = majority(evaluation, task->spec.outputs, &result->tokens);
    att_walker walker = {.context = NULL};
    att_status status = att_walker_open(job->context, task->graph, &task->spec, task->weights, &walker);
    if (status == ATT_OK)
        status = evaluate(job, &walker, evaluation, result);
    att_walker_close(&walker);
    return status;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static att_status check(att_context *context, const att_experiment *experiment, const att_experiment_options *options)
{
    if (options->epochs < 0 || options->repeats < 1 || !(options->lr >= 0) || !isfinite(options->lr))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "experiment %s: %d epochs, learning rate %g and %d repeats are not possible",
                        experiment->info.name, options->epochs, options->lr, options->repeats);
    if (options->mlp && !experiment->info.paths)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s trains with and without an MLP in any case",
                        experiment->info.name);
    if (options->texts && !experiment->info.texts)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment %s reads no texts", experiment->info.name);
    return ATT_OK;
}

static att_status run_with(const att_experiment_job *job, att_experiment_result *result)
{
    result->epochs = job->epochs;
    result->lr = job->lr;
    if (job->experiment->run)
        return job->experiment->run(job, result);
    path_task task = {.spec = att_experiment_spec(job)};
    att_status status = run_task(job, &task, result);
    att_weights_destroy(&task.weights);
    att_graph_destroy(&task.graph);
    return status;
}

att_status att_experiment_run(att_context *context, const char *name, const att_experiment_options *options,
                              att_experiment_result *result)
{
    const att_experiment *found = NULL;
    att_arena arena = {.context = context};
    memset(result, 0, sizeof *result);
    ATT_TRY(find(context, name, &found));
    ATT_TRY(check(context, found, options));
    const att_experiment_job job = {.context = context,
                                    .experiment = found,
                                    .options = options,
                                    .arena = &arena,
                                    .epochs = options->epochs > 0 ? options->epochs : found->info.epochs,
                                    .lr = options->lr > 0 ? options->lr : found->info.lr};
    att_status status = run_with(&job, result);
    att_arena_free(&arena);
    return status;
}
