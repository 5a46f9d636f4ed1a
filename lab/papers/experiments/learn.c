#include "lab/papers/experiments/learn.h"

#include <math.h>
#include <string.h>

#include <attscope/ops.h>
#include <attscope/update.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/random.h"
#include "lab/papers/experiments/san.h"

/* Lanes of the gradient: fixed, so that the result does not depend on the number of threads. */
enum { LANES = 4 };

att_status att_samples_create(att_arena *arena, int count, int tokens, size_t x_bytes, size_t target_bytes, bool padded,
                              att_samples *samples)
{
    size_t rows = (size_t)count, keys = padded ? att_size_product(rows, (size_t)tokens * sizeof(float)) : 0;
    size_t x = att_size_product(rows, x_bytes), target = att_size_product(rows, target_bytes);
    *samples = (att_samples){.count = count, .tokens = tokens, .x_bytes = x_bytes, .target_bytes = target_bytes};
    samples->x = att_arena_allocate(arena, x);
    samples->target = att_arena_allocate(arena, target);
    samples->keys = padded ? att_arena_allocate(arena, keys) : NULL;
    if (!samples->x || !samples->target || (padded && !samples->keys))
        return att_fail_memory(arena->context, att_size_sum(x, att_size_sum(target, keys)), "the samples");
    return ATT_OK;
}

void att_samples_score(const att_samples *samples, int first, int count, const float *logits, int64_t classes,
                       int64_t *right, int64_t *all)
{
    for (int i = 0; i < count; i++) {
        const int32_t *target = (const int32_t *)(samples->target + (size_t)(first + i) * samples->target_bytes);
        for (int n = 0; n < samples->tokens; n++) {
            const float *row = logits + ((int64_t)i * samples->tokens + n) * classes;
            int32_t best = 0;
            for (int32_t c = 1; c < classes; c++)
                best = row[c] > row[best] ? c : best;
            *all += target[n] != ATT_NO_CLASS;
            *right += target[n] != ATT_NO_CLASS && target[n] == best && !isnan(row[best]);
        }
    }
}

att_status att_predictor_open(const att_graph *graph, att_weights *weights, const char *output,
                              att_predictor *predictor)
{
    const char *const outputs[] = {output, NULL};
    att_plan_options options = att_plan_options_defaults();
    options.outputs = outputs;
    ATT_TRY(att_plan_compile(graph, &options, &predictor->plan));
    return att_session_create(predictor->plan, weights, ATT_CHUNK, &predictor->session);
}

void att_predictor_close(att_predictor *predictor)
{
    att_session_destroy(&predictor->session);
    att_plan_destroy(&predictor->plan);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

typedef struct trainer {
    att_context *context;
    const att_samples *samples;
    const att_learning *learning;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    att_samples batch; /* the rows that the session reads */
    int64_t *order;
    float *losses; /* of the samples of a batch */
    double loss;   /* sums of the epoch so far */
    int64_t terms; /* tokens or samples in that sum */
    int64_t updates;
    double started;
} trainer;

/* PyTorch's Adam and AdamW decay every parameter. */
static att_status create_update(trainer *t, att_arena *arena)
{
    int count = att_weights_count(t->weights);
    att_parameter_rates *rates = att_arena_allocate(arena, (size_t)count * sizeof *rates);
    if (!rates)
        return att_fail_memory(t->context, (size_t)count * sizeof *rates, "a training run");
    for (int i = 0; i < count; i++)
        rates[i] = (att_parameter_rates){
            .lr = 1, .weight_decay = 1, .frozen = strcmp(att_weights_at(t->weights, i).name, ATT_SAN_PADDING) == 0};
    att_update_options options = {.backend = "cpu", .optimizer = t->learning->optimizer, .rates = rates};
    ATT_TRY(att_gradient_create(t->weights, &t->gradient));
    return att_update_create(t->gradient, &options, &t->update);
}

static att_status open_trainer(trainer *t, att_arena *arena, const att_graph *graph)
{
    const att_samples *samples = t->samples;
    int batch = t->learning->batch_size;
    static const char *const outputs[] = {"loss", NULL};
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.outputs = outputs;
    options.lanes = LANES;
    ATT_TRY(att_plan_compile(graph, &options, &t->plan));
    ATT_TRY(att_session_create(t->plan, t->weights, batch, &t->session));
    ATT_TRY(create_update(t, arena));
    ATT_TRY(att_samples_create(arena, batch, samples->tokens, samples->x_bytes, samples->target_bytes,
                               samples->keys != NULL, &t->batch));
    t->order = att_arena_allocate(arena, (size_t)samples->count * sizeof *t->order);
    t->losses = att_arena_allocate(arena, (size_t)batch * sizeof *t->losses);
    if (!t->order || !t->losses)
        return att_fail_memory(t->context, (size_t)samples->count * sizeof *t->order, "a training run");
    ATT_TRY(att_session_bind(t->session, "x", t->batch.x));
    ATT_TRY(att_session_bind(t->session, "expected", t->batch.target));
    return samples->keys ? att_session_bind(t->session, "keys", t->batch.keys) : ATT_OK;
}

static void close_trainer(trainer *t)
{
    att_update_destroy(&t->update);
    att_gradient_destroy(&t->gradient);
    att_session_destroy(&t->session);
    att_plan_destroy(&t->plan);
}

static void order_samples(trainer *t, int epoch)
{
    for (int64_t i = 0; i < t->samples->count; i++)
        t->order[i] = i;
    att_random random = att_random_from(att_random_key(t->learning->seed, att_random_hash("order"), (uint64_t)epoch));
    if (t->learning->shuffle)
        att_random_permutation(&random, t->order, t->samples->count);
}

/* Copies the samples order[first], order[first + 1], .. to the batch. */
static void gather(trainer *t, int first, int count)
{
    const att_samples *all = t->samples;
    for (int i = 0; i < count; i++) {
        size_t from = (size_t)t->order[first + i], to = (size_t)i, tokens = (size_t)all->tokens;
        memcpy(t->batch.x + to * all->x_bytes, all->x + from * all->x_bytes, all->x_bytes);
        memcpy(t->batch.target + to * all->target_bytes, all->target + from * all->target_bytes, all->target_bytes);
        if (all->keys)
            memcpy(t->batch.keys + to * tokens, all->keys + from * tokens, tokens * sizeof *all->keys);
    }
}

/* The tokens of the batch that have a class. */
static int64_t classes_in(const trainer *t, int count)
{
    const int32_t *targets = (const int32_t *)t->batch.target;
    int64_t tokens = 0;
    for (int64_t i = 0; i < (int64_t)count * t->samples->tokens; i++)
        tokens += targets[i] != ATT_NO_CLASS;
    return tokens;
}

static int64_t updates_of(const trainer *t)
{
    int64_t batch = t->learning->batch_size;
    return t->learning->epochs * ((t->samples->count + batch - 1) / batch);
}

static double rate(const trainer *t, int epoch)
{
    static const int milestones[] = {15, 30, 40, 50, 60};
    double lr = t->learning->lr;
    if (t->learning->schedule == ATT_RATE_LINEAR)
        return lr * (1 - (double)t->updates / (double)updates_of(t));
    for (size_t i = 0; t->learning->schedule == ATT_RATE_STEPS && i < sizeof milestones / sizeof *milestones; i++)
        lr *= epoch >= milestones[i] ? 0.91 : 1;
    return lr;
}

static att_status step(trainer *t, int epoch, int first, int count)
{
    const att_learning *learning = t->learning;
    gather(t, first, count);
    int64_t terms = learning->mean ? classes_in(t, count) : count;
    double scale = learning->mean ? 1 / (double)(terms > 0 ? terms : 1) : 1;
    att_gradient_begin(t->gradient);
    ATT_TRY(att_session_accumulate(t->session, t->gradient, count, scale, learning->seed, t->updates, 0));
    ATT_TRY(att_session_output(t->session, "loss", 0, count, t->losses));
    for (int i = 0; i < count; i++)
        t->loss += (double)t->losses[i];
    t->terms += terms;
    att_status status = att_update_reduce(t->update, NULL);
    if (status == ATT_ERR_NONFINITE)
        return att_fail(t->context, status, "epoch %d: the gradient is not finite at update %lld; try a smaller --lr",
                        epoch, (long long)t->updates);
    ATT_TRY(status);
    const att_hyper hyper = {.lr = rate(t, epoch),
                             .weight_decay = learning->weight_decay,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .eps = 1e-8,
                             .clip_norm = learning->clip_norm,
                             .update = ++t->updates};
    return att_update_apply(t->update, &hyper);
}

/* Reports after `done` samples of the epoch. Returns ERR_STOPPED if the caller wants to stop. */
static att_status report(const trainer *t, int epoch, int done)
{
    const att_learning *learning = t->learning;
    int64_t batch = learning->batch_size, all = t->samples->count;
    double seconds = att_seconds_now() - t->started, samples = (double)epoch * (double)all + done;
    double left = (double)learning->epochs * (double)all - samples;
    const att_progress progress = {.stage = learning->stage,
                                   .epoch = epoch,
                                   .epochs = learning->epochs,
                                   .batch = (done + batch - 1) / batch,
                                   .batches = (all + batch - 1) / batch,
                                   .images_per_second = samples / seconds,
                                   .seconds_left = seconds / samples * left,
                                   .loss = t->loss / (double)(t->terms > 0 ? t->terms : 1),
                                   .lr = rate(t, epoch),
                                   .slowest_rank = -1,
                                   .unit = "samples"};
    const att_experiment_options *options = learning->options;
    if (att_stop_asked(t->context) || (options->progress && !options->progress(options->user, &progress)))
        return att_fail(t->context, ATT_ERR_STOPPED, "stopped in epoch %d of the training", epoch);
    return ATT_OK;
}

static att_status train_epoch(trainer *t, int epoch)
{
    t->loss = 0, t->terms = 0;
    order_samples(t, epoch);
    for (int first = 0; first < t->samples->count; first += t->learning->batch_size) {
        int left = t->samples->count - first, count = left < t->learning->batch_size ? left : t->learning->batch_size;
        ATT_TRY(step(t, epoch, first, count));
        ATT_TRY(report(t, epoch, first + count));
    }
    return ATT_OK;
}

att_status att_learn(att_context *context, const att_graph *graph, att_weights *weights, const att_samples *samples,
                     const att_learning *learning, att_learned *learned)
{
    trainer t = {
        .context = context, .samples = samples, .learning = learning, .weights = weights, .started = att_seconds_now()};
    att_arena arena = {.context = context};
    att_status status = open_trainer(&t, &arena, graph);
    for (int epoch = 0; status == ATT_OK && epoch < learning->epochs; epoch++)
        status = train_epoch(&t, epoch);
    *learned = (att_learned){.loss = t.terms > 0 ? t.loss / (double)t.terms : NAN, .updates = t.updates};
    close_trainer(&t);
    att_arena_free(&arena);
    return status;
}
