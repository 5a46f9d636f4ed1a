/* Tasks with paths: the training of a network, and the evaluation of paths through it. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/clock.h"
#include "base/core/spread.h"
#include "lab/papers/experiments/experiment.h"
#include "lab/papers/experiments/paths.h"

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

/* A network under evaluation. Sums are numbered by length, by the number of their paths, and by repeat; sums of one of
 * the sampled paths follow. */
typedef struct evaluation {
    const att_experiment_job *job;
    const att_san_spec *spec;
    const att_samples *samples;
    att_experiment_result *result;
    att_path_sums sums;
    int64_t *right; /* of each sum: tokens that it classifies correctly */
    att_walker walker;
    double started;
} evaluation;

static int number_of_sum(const evaluation *e, int length, int sum, int repeat)
{
    return (length * ATT_EXPERIMENT_SUMS + sum) * e->job->options->repeats + repeat;
}

static void draw_paths(const evaluation *e, int sum, int length, int repeat, att_path *paths)
{
    uint64_t stream = att_random_key((uint64_t)sum, (uint64_t)length, (uint64_t)repeat);
    att_random random = att_random_from(att_random_key(att_experiment_seed(e->job), att_random_hash("paths"), stream));
    for (int p = 0; p < sums[sum]; p++)
        paths[p] = att_path_draw(&random, e->spec->depth, e->spec->heads, length);
}

static void draw_sum(evaluation *e, int sum, int length, int repeat)
{
    att_path paths[MOST_PATHS];
    draw_paths(e, sum, length, repeat, paths);
    for (int p = 0; p < sums[sum]; p++)
        e->sums.terms[e->sums.term_count++] = (att_path_term){paths[p], number_of_sum(e, length, sum, repeat)};
}

/* Adds a path to the sampled ones unless it is among them. */
static void sample_path(evaluation *e, const att_path *path)
{
    att_experiment_result *result = e->result;
    att_experiment_path sampled = {.length = path->length};
    for (int i = 0; i < path->length; i++)
        sampled.heads[path->layers[i]] = path->heads[i] + 1;
    for (int i = 0; i < result->sampled_count; i++)
        if (memcmp(result->sampled[i].heads, sampled.heads, sizeof sampled.heads) == 0)
            return;
    result->sampled[result->sampled_count++] = sampled;
    e->sums.terms[e->sums.term_count++] = (att_path_term){*path, e->sums.count++};
}

/* Samples the paths of the first sum. */
static void sample_paths(evaluation *e, int length)
{
    att_path paths[MOST_PATHS];
    draw_paths(e, 0, length, 0, paths);
    for (int p = 0; p < sums[0]; p++)
        sample_path(e, &paths[p]);
}

static att_status draw_all(evaluation *e)
{
    const int repeats = e->job->options->repeats, lengths = e->result->lengths;
    const size_t drawn = (size_t)(lengths * ATT_EXPERIMENT_SUMS * repeats), sampled = (size_t)(lengths * sums[0]);
    const size_t terms = (drawn * MOST_PATHS + sampled) * sizeof *e->sums.terms;
    e->sums.terms = att_arena_allocate(e->job->arena, terms);
    e->right = att_arena_allocate(e->job->arena, (drawn + sampled) * sizeof *e->right);
    if (!e->sums.terms || !e->right)
        return att_fail_memory(e->job->context, terms, "paths");
    for (int length = 0; length < lengths; length++)
        for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
            for (int repeat = 0; repeat < repeats; repeat++)
                draw_sum(e, sum, length, repeat);
    e->sums.count = (int)drawn;
    /* Only those of the first network are shown. */
    for (int length = 0; e->job->network == 0 && length < lengths; length++)
        sample_paths(e, length);
    return ATT_OK;
}

/* Reports after `done` samples. Returns ERR_STOPPED if the caller wants to stop. */
static att_status report_paths(const evaluation *e, int done)
{
    const att_experiment_options *options = e->job->options;
    double seconds = att_seconds_now() - e->started;
    char stage[ATT_LEARNING_STAGE];
    att_experiment_stage(e->job, "paths", stage);
    const att_progress progress = {.stage = stage,
                                   .batch = done,
                                   .batches = e->samples->count,
                                   .images_per_second = done / seconds,
                                   .seconds_left = seconds / done * (e->samples->count - done),
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .unit = "samples"};
    if (options->progress && !options->progress(options->user, &progress))
        return att_fail(e->job->context, ATT_ERR_STOPPED, "stopped while paths were evaluated");
    return ATT_OK;
}

static att_status score_whole(evaluation *e)
{
    const att_samples *samples = e->samples;
    int64_t right = 0, all = 0;
    for (int first = 0; first < samples->count; first += ATT_CHUNK) {
        int left = samples->count - first, count = left < ATT_CHUNK ? left : ATT_CHUNK;
        ATT_TRY(att_walker_ask_whole(&e->walker, samples, first, count, e->walker.logits));
        att_samples_score(samples, first, count, e->walker.logits, e->spec->outputs, &right, &all);
    }
    e->result->whole = att_experiment_value((double)right / (double)all);
    return ATT_OK;
}

/* Counts what all sums classify correctly. */
static att_status score_sums(evaluation *e)
{
    const att_samples *samples = e->samples;
    for (int first = 0; first < samples->count; first += e->walker.chunk) {
        int left = samples->count - first, count = left < e->walker.chunk ? left : e->walker.chunk;
        ATT_TRY(att_walker_walk(&e->walker, samples, first, count));
        for (int sum = 0; sum < e->sums.count; sum++) {
            int64_t all = 0;
            ATT_TRY(att_walker_ask(&e->walker, sum, count, e->walker.logits));
            att_samples_score(samples, first, count, e->walker.logits, e->spec->outputs, &e->right[sum], &all);
        }
        ATT_TRY(report_paths(e, first + count));
    }
    return ATT_OK;
}

static double share_of(const evaluation *e, int sum)
{
    return (double)e->right[sum] / (double)e->result->tokens;
}

/* The scores of one length and one number of paths, over the repeats. */
static void put_score(const evaluation *e, int length, int sum)
{
    att_spread spread = {.count = 0};
    for (int repeat = 0; repeat < e->job->options->repeats; repeat++)
        att_spread_add(&spread, share_of(e, number_of_sum(e, length, sum, repeat)));
    e->result->paths[sum][length] =
        (att_experiment_score){att_spread_mean(&spread), att_spread_deviation(&spread), spread.count};
}

static void put_scores(const evaluation *e)
{
    att_experiment_result *result = e->result;
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++) {
        result->sums[sum] = sums[sum];
        for (int length = 0; length < result->lengths; length++)
            put_score(e, length, sum);
    }
    for (int i = 0; i < result->sampled_count; i++)
        result->sampled[i].accuracy = share_of(e, e->sums.count - result->sampled_count + i);
}

static att_status evaluate(evaluation *e, const att_graph *graph, att_weights *weights)
{
    e->result->lengths = e->spec->depth + 1;
    ATT_TRY(draw_all(e));
    ATT_TRY(att_walker_open(e->job->context, graph, e->spec, weights, &e->sums, &e->walker));
    ATT_TRY(score_whole(e));
    ATT_TRY(score_sums(e));
    put_scores(e);
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
    att_value target = att_graph_input(task->graph, "expected", ATT_I32, att_shape_of(task->spec.tokens));
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
    evaluation e = {
        .job = job, .spec = &task->spec, .samples = evaluated, .result = result, .started = att_seconds_now()};
    att_status status = evaluate(&e, task->graph, task->weights);
    att_walker_close(&e.walker);
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
