#include <attscope/train.h>

#include <math.h>
#include <stdio.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "engine/session/session.h"
#include "study/train/clock.h"
#include "study/train/prepare.h"

/* --- one update --------------------------------------------------------------------------------------------------- */

/* Text that introduces the last checkpoint's path in a message. */
static const char *introduce_checkpoint(const att_trainer *trainer)
{
    return !trainer->last_checkpoint    ? "no checkpoint has been written"
           : trainer->checkpoint_finite ? "the last good checkpoint is "
                                        : "the weights are those of ";
}

/* Reports a loss or gradient that is not finite. The weights are still those before the update. Messages count epochs
 * from 1, as the command does. */
static att_status fail_nonfinite(att_trainer *trainer)
{
    char node[ATT_NODE_TEXT] = "";
    if (att_session_find_nonfinite(trainer->shape->session, node, sizeof node) != ATT_OK)
        node[0] = '\0';
    ATT_TRY(att_trainer_share_node(trainer, node));
    if (!node[0])
        snprintf(node, sizeof node, "the sum of the gradients, but in no node of the last batch");
    return att_fail(trainer->context, ATT_ERR_NONFINITE,
                    "update %lld (epoch %d) was not applied: NaN or infinity, first in %s; %s%s",
                    (long long)trainer->state.update + 1, trainer->state.epoch + 1, node, introduce_checkpoint(trainer),
                    trainer->last_checkpoint ? trainer->last_checkpoint : "");
}

/* Fails if an evaluation of the weights or of their average gave outputs that are not finite. No checkpoint of these
 * weights is then written. */
static att_status check_evaluation(const att_trainer *trainer)
{
    if (trainer->plain.not_finite == 0 && trainer->evaluation.not_finite == 0)
        return ATT_OK;
    return att_fail(trainer->context, ATT_ERR_NONFINITE,
                    "the evaluation after update %lld (epoch %d) gave NaN or infinity; %s%s",
                    (long long)trainer->state.update, trainer->state.epoch + 1, introduce_checkpoint(trainer),
                    trainer->last_checkpoint ? trainer->last_checkpoint : "");
}

static att_status next_batch(att_trainer *trainer, int64_t number, att_batch *batch)
{
    const int64_t expected = att_trainer_images_of(trainer, number + 1) - att_trainer_images_of(trainer, number);
    ATT_TRY(att_loader_next(trainer->loader, batch));
    if (batch->count == expected && batch->number == number)
        return ATT_OK;
    return att_fail(trainer->context, ATT_ERR_INTERNAL, "batch %lld of epoch %d has %d images, expected %lld",
                    (long long)number, trainer->state.epoch + 1, batch->count, (long long)expected);
}

/* Binds the input of the loss that depends on the teacher, which answers this process's images. */
static att_status bind_teacher(att_trainer *trainer, const att_batch *batch)
{
    att_teaching *teaching = &trainer->teaching;
    const void *answers;
    if (!teaching->field.name)
        return ATT_OK;
    ATT_TRY(att_teaching_run(teaching, batch, &answers));
    return att_session_bind(trainer->shape->session, teaching->field.name, answers);
}

/* Binds every other input of the graph to this process's rows of the batch's field of the same name. */
static att_status bind_batch(att_trainer *trainer, const att_batch *batch)
{
    const att_graph *graph = trainer->shape->graph;
    for (int i = 0; i < graph->inputs.count; i++) {
        const char *name = graph->inputs.items[i].name;
        const void *rows = att_batch_rows(batch, name);
        if (att_teaching_gives(&trainer->teaching, name))
            continue;
        if (!rows)
            return att_fail(trainer->context, ATT_ERR_INTERNAL, "the input \"%s\" is not a field of the batch", name);
        ATT_TRY(att_session_bind(trainer->shape->session, name, rows));
    }
    return ATT_OK;
}

/* Forward and backward pass of one batch. images: number of images in the whole update. */
static att_status accumulate(att_trainer *trainer, int64_t images)
{
    const att_train_options *options = trainer->options;
    att_batch batch;
    ATT_TRY(next_batch(trainer, trainer->state.batch + trainer->partial_batches, &batch));
    const int size = batch.count;
    ATT_TRY(att_trainer_take_shape(trainer, &batch));
    ATT_TRY(bind_batch(trainer, &batch));
    ATT_TRY(bind_teacher(trainer, &batch));
    ATT_TRY(att_session_accumulate(trainer->shape->session, trainer->gradient, size, 1.0 / (double)images,
                                   options->seed, trainer->state.update, trainer->partial_images));
    ATT_TRY(att_session_output(trainer->shape->session, "loss", 0, size, trainer->losses));
    if (trainer->measuring)
        ATT_TRY(att_measure_observe(options->measure, trainer->shape->session, size,
                                    att_task_classes(trainer->task, &batch)));
    for (int i = 0; i < size; i++)
        trainer->partial_loss += trainer->losses[i];
    trainer->partial_images += size;
    trainer->partial_batches++;
    trainer->interval_pace.images += size;
    trainer->update_pace.images += size;
    return isfinite(trainer->partial_loss) ? ATT_OK : fail_nonfinite(trainer);
}

static att_status apply(att_trainer *trainer)
{
    att_status status = att_update_reduce(trainer->update, &trainer->grad_norm);
    if (status == ATT_ERR_NONFINITE)
        return fail_nonfinite(trainer);
    ATT_TRY(status);
    att_hyper hyper = att_optimizer_hyper(trainer->optimizer, trainer->options, trainer->lr, trainer->state.update);
    return att_update_apply(trainer->update, &hyper);
}

static void count_update(att_trainer *trainer)
{
    att_train_state *state = &trainer->state;
    state->batch += trainer->partial_batches;
    state->update++;
    trainer->checkpoint_finite = true;
    state->loss_sum += trainer->partial_loss;
    state->loss_count += trainer->partial_images;
    state->corrupt += att_pace_corrupt(&trainer->update_pace, trainer->loader);
    trainer->update_loss = trainer->partial_loss / (double)trainer->partial_images;
    trainer->partial_images = trainer->partial_batches = 0;
    trainer->partial_loss = 0;
}

static bool is_due(int64_t update, int64_t interval)
{
    return interval > 0 && update % interval == 0;
}

/* Starts or stops observation for the next update. */
static void start_measuring(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    trainer->measuring = options->measure && is_due(trainer->state.update, options->measure_every);
    if (trainer->measuring)
        att_measure_clear(options->measure);
}

/* Turns to the next epoch if all batches of the current one are done. */
static void turn_epoch(att_trainer *trainer)
{
    att_train_state *state = &trainer->state;
    if (state->batch < trainer->batches)
        return;
    state->epoch++;
    state->batch = 0;
    trainer->loading = false;
}

/* Lets the loader give the next batch of the training. */
static att_status prepare_loader(att_trainer *trainer)
{
    turn_epoch(trainer);
    if (trainer->loading)
        return ATT_OK;
    trainer->loading = true;
    return att_loader_start(trainer->loader, trainer->state.epoch, trainer->state.batch);
}

static att_status run_update(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    int64_t left = trainer->batches - trainer->state.batch;
    int64_t steps = left < options->grad_accum_steps ? left : options->grad_accum_steps;
    const int64_t images = att_trainer_images_of(trainer, trainer->state.batch + steps) -
                           att_trainer_images_of(trainer, trainer->state.batch);
    trainer->update_pace = att_pace_start(trainer);
    start_measuring(trainer);
    trainer->lr = att_schedule_lr(trainer->schedule, options, trainer->base_lr, att_trainer_updates_per_epoch(trainer),
                                  trainer->state.epoch, trainer->state.update);
    att_gradient_begin(trainer->gradient);
    for (int64_t step = 0; step < steps; step++) {
        ATT_TRY(accumulate(trainer, images));
        att_trainer_progress(trainer);
    }
    ATT_TRY(apply(trainer));
    count_update(trainer);
    return att_processes_meet(&trainer->processes, &trainer->stop_requested);
}

/* --- intervals: the updates up to an evaluation ------------------------------------------------------------------- */

static att_status record_last(att_trainer *trainer)
{
    char *path = NULL;
    ATT_TRY(att_checkpoint_path(trainer->context, trainer->options->output, "last", &path));
    att_status status = att_trainer_set_checkpoint(trainer, path);
    att_free(trainer->context, path);
    return status;
}

static att_status write_last(const att_trainer *trainer)
{
    char *path = NULL;
    ATT_TRY(att_checkpoint_path(trainer->context, trainer->options->output, "last", &path));
    att_status status = att_checkpoint_write(&trainer->run, &trainer->state, path);
    att_free(trainer->context, path);
    return status;
}

/* Writes the checkpoint "last" within an interval. */
static att_status save(att_trainer *trainer)
{
    if (!trainer->options->output)
        return ATT_OK;
    if (att_trainer_writes(trainer))
        ATT_TRY(write_last(trainer));
    return record_last(trainer);
}

static att_status stop(att_trainer *trainer)
{
    ATT_TRY(save(trainer));
    return att_fail(
        trainer->context, ATT_ERR_STOPPED, "the training was stopped on request after update %lld (epoch %d)%s%s",
        (long long)trainer->state.update, trainer->state.epoch + 1, trainer->options->output ? "; resume from " : "",
        trainer->options->output ? trainer->last_checkpoint : "");
}

/* The first update of a call also pays for memory that is touched for the first time. */
static void count_time(att_trainer *trainer, int64_t first)
{
    if (trainer->state.update == first + 1)
        return;
    trainer->timed[trainer->measuring]++;
    trainer->timed_seconds[trainer->measuring] += att_pace_seconds(&trainer->update_pace);
}

/* Whether the updates since the last evaluation are those of a whole interval. */
static bool interval_is_done(const att_trainer *trainer)
{
    const att_train_state *state = &trainer->state;
    return state->loss_count > 0 && (state->update % trainer->interval == 0 || state->update == trainer->updates);
}

static att_status run_updates(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const att_train_state *state = &trainer->state;
    while (!interval_is_done(trainer)) {
        ATT_TRY(prepare_loader(trainer));
        ATT_TRY(run_update(trainer));
        if (trainer->measuring)
            ATT_TRY(att_trainer_emit_measure(trainer));
        count_time(trainer, trainer->first_update);
        if (is_due(state->update, options->log_interval))
            ATT_TRY(att_trainer_emit_step(trainer));
        if (trainer->stop_requested)
            return stop(trainer);
        if (!interval_is_done(trainer) && is_due(state->update, options->checkpoint_every_updates))
            ATT_TRY(save(trainer));
    }
    return ATT_OK;
}

/* Stores the interval's speed and shares of time in the result, and adds them to the totals of this call. */
static void count_interval(att_trainer *trainer)
{
    const att_pace *pace = &trainer->interval_pace;
    double seconds = att_pace_seconds(pace);
    trainer->result.images_per_second = att_pace_speed(pace);
    trainer->result.wait_share = att_pace_wait_share(pace, trainer->loader);
    trainer->images += pace->images;
    trainer->seconds += seconds;
    trainer->waited += trainer->result.wait_share * seconds;
    trainer->result.teacher_share = att_pace_teacher_share(pace, &trainer->teaching);
    trainer->taught += trainer->teaching.seconds - pace->taught;
}

/* Without a class no pixel counts, so that the loss is exactly 0. */
static void warn_without_classes(att_trainer *trainer)
{
    if (trainer->nothing_to_learn || trainer->result.train_loss != 0 || !att_trainer_writes(trainer) ||
        !(trainer->task->annotations & ATT_ANNOTATION_MASK))
        return;
    trainer->nothing_to_learn = true;
    att_log(trainer->context, ATT_LOG_WARNING,
            "the loss up to update %lld is exactly 0: no pixel of the training masks has a class; do the numbers in "
            "the masks fit the list of classes?",
            (long long)trainer->state.update);
}

static att_status finish_interval(att_trainer *trainer)
{
    att_train_state *state = &trainer->state;
    trainer->result.train_loss = state->loss_sum / (double)state->loss_count;
    warn_without_classes(trainer);
    trainer->result.train_corrupt = state->corrupt;
    trainer->result.eval_corrupt = trainer->evaluation.corrupt;
    ATT_TRY(att_trainer_emit_epoch(trainer));
    att_history_add(&state->history, att_train_state_number(trainer->options, state), state->metric);
    turn_epoch(trainer);
    state->loss_sum = 0;
    state->loss_count = 0;
    state->corrupt = 0;
    if (!trainer->options->output)
        return ATT_OK;
    if (att_trainer_writes(trainer))
        ATT_TRY(att_checkpoint_publish(&trainer->run, state));
    ATT_TRY(record_last(trainer));
    trainer->checkpoint_finite = trainer->run.data->eval;
    return ATT_OK;
}

static att_status run_interval(att_trainer *trainer)
{
    trainer->interval_pace = att_pace_start(trainer);
    att_processes_begin(&trainer->processes);
    ATT_TRY(run_updates(trainer));
    count_interval(trainer);
    if (trainer->run.data->eval) {
        att_status status = att_trainer_evaluate(trainer);
        ATT_TRY(status == ATT_ERR_STOPPED ? stop(trainer) : status);
        ATT_TRY(check_evaluation(trainer));
    }
    return finish_interval(trainer);
}

/* On a resume, repeats the linking and removal of checkpoints that a killed process may have left undone. Called after
 * the begin event, because a sink may refuse a second training in the same folder. */
static att_status finish_interrupted_interval(const att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const att_train_state *state = &trainer->state;
    if (!att_trainer_writes(trainer) || !options->resume || !options->output || state->update == 0 ||
        state->loss_count > 0)
        return ATT_OK;
    return att_checkpoint_link(&trainer->run, state, options->resume);
}

/* Writes "last" for a training run without updates. */
static att_status save_untrained(att_trainer *trainer)
{
    ATT_TRY(att_trainer_begin_average(trainer));
    return save(trainer);
}

static att_status run_intervals(att_trainer *trainer)
{
    const att_train_state *state = &trainer->state;
    ATT_TRY(finish_interrupted_interval(trainer));
    if (trainer->updates == 0 && !trainer->options->resume)
        return save_untrained(trainer);
    while (state->update < trainer->updates || state->loss_count > 0)
        ATT_TRY(run_interval(trainer));
    return ATT_OK;
}

/* What the updates that are observed took more than the others, as a share of all; NaN if that cannot be told. */
static double measure_share(const att_trainer *trainer)
{
    const double *seconds = trainer->timed_seconds, plain = (double)trainer->timed[0],
                 observed = (double)trainer->timed[1];
    if (plain < 1 || observed < 1)
        return NAN;
    return fmax(0, seconds[1] - observed * seconds[0] / plain) / (seconds[0] + seconds[1]);
}

static void log_measure_share(const att_trainer *trainer)
{
    const double share = measure_share(trainer);
    if (!isnan(share) && att_trainer_writes(trainer))
        att_log(trainer->context, ATT_LOG_INFO,
                "the instruments took %.2g %% of the time: %lld of %lld updates observed%s", 100 * share,
                (long long)trainer->timed[1], (long long)(trainer->timed[0] + trainer->timed[1]),
                share > 0.1 ? "; a larger measure_every takes less" : "");
}

/* The best checkpoint is numbered by its epoch, or by the updates done. */
static void find_best(const att_trainer *trainer, att_train_result *result)
{
    const int64_t best = trainer->state.history.best;
    result->best_epoch = -1;
    result->best_update = -1;
    if (best < 0)
        return;
    const int64_t per_epoch = att_trainer_updates_per_epoch(trainer), end = (best + 1) * per_epoch;
    const bool in_updates = trainer->options->eval_every > 0;
    result->best_epoch = (int)(in_updates ? (best - 1) / per_epoch : best);
    result->best_update = in_updates ? best : end < trainer->updates ? end : trainer->updates;
}

static att_train_result result_of(const att_trainer *trainer)
{
    const att_train_state *state = &trainer->state;
    att_train_result result = trainer->result;
    bool evaluated = trainer->run.data->eval && !isnan(result.train_loss);
    result.epochs = state->epoch;
    result.updates = state->update;
    for (int i = 0; i < ATT_MAX_METRICS; i++)
        result.eval[i] = evaluated ? trainer->evaluation.metrics[i] : NAN;
    result.best_metric = state->history.best_metric;
    find_best(trainer, &result);
    result.images_per_second = att_ratio((double)trainer->images, trainer->seconds);
    result.wait_share = att_ratio(trainer->waited, trainer->seconds);
    result.measure_share = measure_share(trainer);
    result.teacher_share = trainer->teaching.field.name ? att_ratio(trainer->taught, trainer->seconds) : NAN;
    return result;
}

static att_trainer trainer_of(const att_model *model, att_weights *weights, const att_train_data *data,
                              const att_train_options *options)
{
    att_context *context = att_graph_context(att_model_graph(model));
    return (att_trainer){.context = context,
                         .options = options,
                         .run = {.context = context,
                                 .model = model,
                                 .weights = weights,
                                 .data = data,
                                 .options = options,
                                 .shapes = {.context = context}},
                         .state = {.metric = NAN, .history = {.best_metric = NAN, .best = -1}},
                         .started = att_seconds_now(),
                         .lr = NAN,
                         .result = {.train_loss = NAN}};
}

att_status att_train_check(const att_model *model, att_weights *weights, const att_train_data *data,
                           const att_train_options *options)
{
    att_trainer trainer = trainer_of(model, weights, data, options);
    att_status status = att_trainer_dry_run(&trainer);
    att_trainer_free(&trainer);
    return status;
}

static void log_alerts(const att_trainer *trainer)
{
    for (int i = 0; trainer->options->alert && att_alerts_rule(i) && att_trainer_writes(trainer); i++)
        att_log(trainer->context, ATT_LOG_INFO, "alert: %s", att_alerts_rule(i));
}

/* Says what batches of images of one size leave out. */
static void log_sizes(const att_trainer *trainer, int64_t left_out)
{
    int64_t never = 0;
    for (int i = 0; i < att_loader_shape_count(trainer->loader); i++) {
        const att_loader_shape shape = att_loader_shape_at(trainer->loader, i);
        never += shape.batches == 0 ? shape.images : 0;
    }
    char unused[96] = "";
    if (never > 0)
        snprintf(unused, sizeof unused, "; %lld image%s never used, being of sizes with fewer images than a batch",
                 (long long)never, never == 1 ? " is" : "s are");
    att_log(trainer->context, ATT_LOG_INFO,
            "each epoch leaves out %lld image%s: a batch holds %d images (--batch-size, batch_size) of one of the %d "
            "sizes, and those that are left do not fill one%s",
            (long long)left_out, left_out == 1 ? "" : "s", trainer->options->batch_size, trainer->shape_count, unused);
}

static void log_teacher(const att_trainer *trainer)
{
    if (trainer->settings.taught && trainer->task->log_teacher && att_trainer_writes(trainer))
        trainer->task->log_teacher(trainer->context, &trainer->settings);
}

/* Says if the warm-up lasts the whole training, as the default of five epochs can. */
static void log_warmup(const att_trainer *trainer)
{
    const att_schedule_span span = att_schedule_span_of(trainer->schedule, trainer->options, trainer->base_lr,
                                                        att_trainer_updates_per_epoch(trainer));
    if (span.warmup >= span.total)
        att_log(trainer->context, ATT_LOG_INFO,
                "the warm-up lasts the whole training: it has %g of %g %s, so the rate never reaches --lr; lower "
                "--warmup-epochs or --warmup-updates",
                span.warmup, span.total, att_schedule_on_updates(trainer->options) ? "updates" : "epochs");
}

/* Says what an epoch leaves out, and how many updates it makes. */
static void log_epoch_size(const att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const int64_t images = att_dataset_count(trainer->run.data->train),
                  used = att_trainer_images_of(trainer, trainer->batches);
    const int64_t updates = att_trainer_updates_per_epoch(trainer);
    const int64_t last = trainer->batches - (updates - 1) * options->grad_accum_steps;
    if (used < images && att_trainer_varies(trainer))
        log_sizes(trainer, images - used);
    else if (used < images)
        att_log(trainer->context, ATT_LOG_INFO,
                "each epoch trains on %lld of %lld %s, in %lld update%s: each batch has %d (--batch-size, "
                "batch_size), so the last %lld of the epoch's random order %s left out",
                (long long)used, (long long)images,
                options->aug_repeats > 1 ? "samples (several of each image: --aug-repeats, aug_repeats)" : "images",
                (long long)updates, updates == 1 ? "" : "s", options->batch_size, (long long)(images - used),
                images - used == 1 ? "is" : "are");
    if (last < options->grad_accum_steps)
        att_log(trainer->context, ATT_LOG_INFO,
                "the last update of each epoch has %lld batch%s, not %d (--grad-accum-steps, grad_accum_steps)",
                (long long)last, last == 1 ? "" : "es", options->grad_accum_steps);
}

att_status att_train(const att_model *model, att_weights *weights, const att_train_data *data,
                     const att_train_options *options, att_train_result *result)
{
    att_trainer trainer = trainer_of(model, weights, data, options);
    att_status status = att_trainer_prepare(&trainer);
    if (status == ATT_OK) {
        att_trainer_log_processes(&trainer);
        trainer.first_update = trainer.state.update;
        log_teacher(&trainer);
        log_alerts(&trainer);
        if (trainer.state.update < trainer.updates && att_trainer_writes(&trainer)) {
            log_warmup(&trainer);
            log_epoch_size(&trainer);
        }
        status = att_trainer_emit_begin(&trainer);
        if (status == ATT_OK)
            status = run_intervals(&trainer);
        log_measure_share(&trainer);
        status = att_trainer_emit_end(&trainer, status);
    }
    if (result)
        *result = result_of(&trainer);
    att_trainer_free(&trainer);
    return status;
}
