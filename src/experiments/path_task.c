/* Tasks with paths: the training of a network, and the evaluation of paths through it. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "core/clock.h"
#include "core/spread.h"
#include "experiments/experiment.h"
#include "experiments/paths.h"

static const int sums[ATT_EXPERIMENT_SUMS] = {5, 20};
enum { MOST_PATHS = 20 };

/* --- samples ------------------------------------------------------------------------------------------------------ */

static att_status draw_samples(const att_experiment_job *job, const char *set, int count, att_samples *samples)
{
    const att_experiment *experiment = job->experiment;
    ATT_TRY(att_samples_create(job->arena, count, experiment->spec.tokens, experiment->x_bytes,
                               experiment->target_bytes, false, samples));
    for (int i = 0; i < count; i++) {
        att_random random = att_experiment_random(job, set, i);
        experiment->draw(&random, samples->x + (size_t)i * samples->x_bytes,
                         samples->target + (size_t)i * samples->target_bytes);
    }
    return ATT_OK;
}

att_status att_experiment_make(const att_experiment_job *job, att_san_spec *spec, att_samples *training,
                               att_samples *evaluation)
{
    const att_experiment *experiment = job->experiment;
    evaluation->count = 0;
    if (experiment->make)
        return experiment->make(job, spec, training);
    ATT_TRY(draw_samples(job, "training", experiment->training, training));
    return draw_samples(job, "evaluation", experiment->evaluation, evaluation);
}

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

/* --- evaluation --------------------------------------------------------------------------------------------------- */

/* A network under evaluation. */
typedef struct evaluation {
    const att_experiment_job *job;
    const att_samples *samples;
    att_walker *walker;
    att_experiment_result *result;
    double started;
} evaluation;

static void draw_paths(const evaluation *e, int sum, int length, int repeat, att_path *paths)
{
    uint64_t stream = att_random_key((uint64_t)sum, (uint64_t)length, (uint64_t)repeat);
    att_random random = att_random_from(att_random_key(att_experiment_seed(e->job), att_random_hash("paths"), stream));
    for (int p = 0; p < sums[sum]; p++)
        paths[p] = att_path_draw(&random, e->walker->spec->depth, e->walker->spec->heads, length);
}

/* The score of one length and one number of paths, over the repeats. */
static att_status score_paths(const evaluation *e, int sum, int length)
{
    att_spread spread = {.count = 0};
    for (int repeat = 0; repeat < e->job->options->repeats; repeat++) {
        att_path paths[MOST_PATHS];
        double share;
        draw_paths(e, sum, length, repeat, paths);
        ATT_TRY(att_walker_score(e->walker, e->samples, paths, sums[sum], &share));
        att_spread_add(&spread, share);
    }
    e->result->paths[sum][length] =
        (att_experiment_score){att_spread_mean(&spread), att_spread_deviation(&spread), spread.count};
    return ATT_OK;
}

/* Adds a path to the sampled ones unless it is among them. */
static att_status sample_path(const evaluation *e, const att_path *path)
{
    att_experiment_result *result = e->result;
    att_experiment_path sampled = {.length = path->length};
    for (int i = 0; i < path->length; i++)
        sampled.heads[path->layers[i]] = path->heads[i] + 1;
    for (int i = 0; i < result->sampled_count; i++)
        if (memcmp(result->sampled[i].heads, sampled.heads, sizeof sampled.heads) == 0)
            return ATT_OK;
    ATT_TRY(att_walker_score(e->walker, e->samples, path, 1, &sampled.accuracy));
    result->sampled[result->sampled_count++] = sampled;
    return ATT_OK;
}

/* Scores the paths of the first sum alone. */
static att_status sample_paths(const evaluation *e, int length)
{
    att_path paths[MOST_PATHS];
    draw_paths(e, 0, length, 0, paths);
    for (int p = 0; p < sums[0]; p++)
        ATT_TRY(sample_path(e, &paths[p]));
    return ATT_OK;
}

/* Reports after `done` of `all` combinations of length and number of paths. Returns ERR_STOPPED if the caller wants to
 * stop. */
static att_status report_paths(const evaluation *e, int done, int all)
{
    const att_experiment_options *options = e->job->options;
    double seconds = att_seconds_now() - e->started, scored = (double)done * options->repeats * e->samples->count;
    char stage[ATT_LEARNING_STAGE];
    att_experiment_stage(e->job, "paths", stage);
    const att_progress progress = {.stage = stage,
                                   .batch = done,
                                   .batches = all,
                                   .images_per_second = scored / seconds,
                                   .seconds_left = seconds / done * (all - done),
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .unit = "samples"};
    if (options->progress && !options->progress(options->user, &progress))
        return att_fail(e->job->context, ATT_ERR_STOPPED, "stopped while paths were evaluated");
    return ATT_OK;
}

static att_status evaluate(const evaluation *e)
{
    att_experiment_result *result = e->result;
    double whole;
    result->lengths = e->walker->spec->depth + 1;
    ATT_TRY(att_walker_score(e->walker, e->samples, NULL, 0, &whole));
    result->whole = att_experiment_value(whole);
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++) {
        result->sums[sum] = sums[sum];
        for (int length = 0; length < result->lengths; length++) {
            ATT_TRY(score_paths(e, sum, length));
            ATT_TRY(report_paths(e, sum * result->lengths + length + 1, ATT_EXPERIMENT_SUMS * result->lengths));
        }
    }
    /* Only those of the first network are shown. */
    for (int length = 0; e->job->network == 0 && length < result->lengths; length++)
        ATT_TRY(sample_paths(e, length));
    return ATT_OK;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* A network that is trained and evaluated. */
typedef struct path_task {
    att_san_spec spec;
    att_samples training, evaluation;
    att_graph *graph;
    att_weights *weights;
} path_task;

static att_status train(const att_experiment_job *job, path_task *task, att_experiment_result *result)
{
    att_learned learned;
    const att_learning learning = att_experiment_learning(job, "train");
    ATT_TRY(att_graph_create(job->context, ATT_F32, &task->graph));
    att_value logits = att_san_build(task->graph, &task->spec);
    att_value target = att_graph_input(task->graph, "target", ATT_I32, att_shape_of(task->spec.tokens));
    att_graph_output(task->graph, "loss", att_token_cross_entropy(task->graph, logits, target));
    ATT_TRY(att_weights_create(task->graph, "cpu", &task->weights));
    ATT_TRY(att_weights_initialise(task->weights, learning.seed));
    ATT_TRY(att_learn(job->context, task->graph, task->weights, &task->training, &learning, &learned));
    result->loss = att_experiment_value(learned.loss);
    result->updates = learned.updates;
    return ATT_OK;
}

static att_status run_task(const att_experiment_job *job, path_task *task, att_experiment_result *result)
{
    ATT_TRY(att_experiment_make(job, &task->spec, &task->training, &task->evaluation));
    const att_samples *evaluated = task->evaluation.count > 0 ? &task->evaluation : &task->training;
    ATT_TRY(train(job, task, result));
    result->training_samples = task->training.count;
    result->evaluation_samples = evaluated->count;
    result->vocabulary = task->spec.vocabulary;
    result->baseline = att_experiment_value(majority(evaluated, task->spec.outputs, &result->tokens));
    att_walker walker = {.context = NULL};
    const evaluation e = {job, evaluated, &walker, result, att_seconds_now()};
    att_status status = att_walker_open(job->context, task->graph, &task->spec, task->weights, &walker);
    if (status == ATT_OK)
        status = evaluate(&e);
    att_walker_close(&walker);
    return status;
}

att_status att_experiment_run_paths(const att_experiment_job *job, att_experiment_result *result)
{
    path_task task = {.spec = att_experiment_spec(job)};
    att_status status = run_task(job, &task, result);
    att_weights_destroy(&task.weights);
    att_graph_destroy(&task.graph);
    return status;
}
