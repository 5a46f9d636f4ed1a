#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/family.h"
#include "study/train/clock.h"
#include "study/train/options.h"
#include "study/train/prepare.h"
#include "study/train/trainer.h"

enum { FIELDS_MAX = 96, MESSAGE_SIZE = 2048, METRIC_NAME = 64 };

att_pace att_pace_start(const att_trainer *trainer)
{
    att_loader_stats stats = att_loader_describe(trainer->loader);
    return (att_pace){.corrupt = stats.corrupt,
                      .started = att_seconds_now(),
                      .waited = stats.wait_seconds,
                      .taught = trainer->teaching.seconds};
}

double att_pace_seconds(const att_pace *pace)
{
    return att_seconds_now() - pace->started;
}

double att_pace_speed(const att_pace *pace)
{
    return att_ratio((double)pace->images, att_pace_seconds(pace));
}

int64_t att_pace_corrupt(const att_pace *pace, const att_loader *loader)
{
    return att_loader_describe(loader).corrupt - pace->corrupt;
}

double att_pace_wait_share(const att_pace *pace, const att_loader *loader)
{
    return att_ratio(att_loader_describe(loader).wait_seconds - pace->waited, att_pace_seconds(pace));
}

double att_pace_teacher_share(const att_pace *pace, const att_teaching *teaching)
{
    return teaching->field.name ? att_ratio(teaching->seconds - pace->taught, att_pace_seconds(pace)) : NAN;
}

/* Sends an event to one sink. If the sink returns an error without a message, sets one. */
static att_status send_to(const att_trainer *trainer, const att_sink *sink, const att_event *event)
{
    static const char *const names[] = {
        [ATT_EVENT_RUN_BEGIN] = "ATT_EVENT_RUN_BEGIN", [ATT_EVENT_STEP] = "ATT_EVENT_STEP",
        [ATT_EVENT_MEASURE] = "ATT_EVENT_MEASURE",     [ATT_EVENT_EPOCH] = "ATT_EVENT_EPOCH",
        [ATT_EVENT_RUN_END] = "ATT_EVENT_RUN_END",     [ATT_EVENT_WARNING] = "ATT_EVENT_WARNING",
        [ATT_EVENT_ALERT] = "ATT_EVENT_ALERT"};
    uint64_t messages = att_message_count(trainer->context);
    att_status status = sink->emit(sink->user, event);
    if (status == ATT_OK || att_message_count(trainer->context) != messages)
        return status;
    return att_fail(trainer->context, status,
                    "the sink ended the training: it returned %s at %s, epoch %lld, update %lld",
                    att_status_name(status), names[event->kind], (long long)event->epoch, (long long)event->step);
}

/* Only to the sinks of the process that writes. */
static att_status send(const att_trainer *trainer, const att_event *event)
{
    for (int i = 0; att_trainer_writes(trainer) && i < trainer->options->sink_count; i++)
        ATT_TRY(send_to(trainer, &trainer->options->sinks[i], event));
    return ATT_OK;
}

static att_event event_of(const att_trainer *trainer, att_event_kind kind, const att_event_field *fields, int count)
{
    return (att_event){.kind = kind,
                       .epoch = trainer->state.epoch,
                       .step = trainer->state.update,
                       .seconds = att_seconds_now() - trainer->started,
                       .fields = fields,
                       .field_count = count};
}

static att_status emit(const att_trainer *trainer, att_event_kind kind, const att_event_field *fields, int count)
{
    att_event event = event_of(trainer, kind, fields, count);
    return send(trainer, &event);
}

/* As att_alerts_check() calls it; user: the trainer. */
static att_status emit_alert(void *user, const att_alert *alert)
{
    const att_trainer *trainer = user;
    char message[MESSAGE_SIZE], head[32] = "";
    if (alert->head >= 0)
        snprintf(head, sizeof head, ", head %d", alert->head);
    snprintf(message, sizeof message, "%s in %s%s at update %lld: %s; try %s", alert->rule, alert->node, head,
             (long long)trainer->state.update, alert->found, alert->advice);
    const att_event_field fields[] = {
        {.name = "message", .text = message},      {.name = "set", .text = "train"},
        {.name = "rule", .text = alert->rule},     {.name = "node", .text = alert->node},
        {.name = "value", .number = alert->value}, {.name = "threshold", .number = alert->threshold},
        {.name = "head", .number = alert->head}};
    const int count = sizeof fields / sizeof *fields;
    if (att_trainer_writes(trainer))
        att_log(trainer->context, ATT_LOG_WARNING, "%s", message);
    return emit(trainer, ATT_EVENT_ALERT, fields, alert->head >= 0 ? count : count - 1);
}

att_status att_trainer_emit_measure(att_trainer *trainer)
{
    att_measure *measure = trainer->options->measure;
    const att_event_field fields[] = {
        {.name = "split", .text = "train"},
        {.name = "images", .number = (double)trainer->update_pace.images},
    };
    att_event event = event_of(trainer, ATT_EVENT_MEASURE, fields, sizeof fields / sizeof *fields);
    event.measurements = att_measure_observed(measure, &event.measurement_count);
    if (event.measurement_count == 0)
        return ATT_OK;
    ATT_TRY(send(trainer, &event));
    return trainer->state.alerts ? att_alerts_check(trainer->state.alerts, event.measurements, event.measurement_count,
                                                    emit_alert, trainer)
                                 : ATT_OK;
}

att_status att_trainer_emit_details(void *user, const att_measurement *figures, int count)
{
    const att_trainer *trainer = user;
    const att_event_field fields[] = {
        {.name = "split", .text = "validation"},
        {.name = "images", .number = (double)att_dataset_count(trainer->run.data->eval)},
    };
    att_event event = event_of(trainer, ATT_EVENT_MEASURE, fields, sizeof fields / sizeof *fields);
    event.measurements = figures;
    event.measurement_count = count;
    return send(trainer, &event);
}

/* Epochs of the training, with the last one if it ends early. */
static int64_t epochs_of(const att_trainer *trainer)
{
    const int64_t per_epoch = att_trainer_updates_per_epoch(trainer);
    return trainer->options->updates > 0 ? (trainer->updates + per_epoch - 1) / per_epoch : trainer->options->epochs;
}

/* The value of a setting. That of the options can be automatic (lr), or replaced by another one (epochs, updates). */
static char *setting_text(const att_trainer *trainer, const att_flag *row, char text[ATT_TRAIN_OPTION_TEXT])
{
    if (strcmp(row->member, "lr") == 0)
        return att_format_number(trainer->base_lr, text);
    if (strcmp(row->member, "epochs") == 0)
        return att_format_number((double)epochs_of(trainer), text);
    if (strcmp(row->member, "updates") == 0)
        return att_format_number((double)trainer->updates, text);
    return att_train_option_text(trainer->options, row, text);
}

att_status att_trainer_emit_begin(att_trainer *trainer)
{
    const att_train_run *run = &trainer->run;
    att_event_field fields[FIELDS_MAX] = {
        {.name = "model", .text = att_model_name(run->model)},
        {.name = "task", .text = trainer->task->info.name},
        {.name = "parameters", .number = (double)att_graph_parameter_elements(att_model_graph(run->model))},
        {.name = "train_images", .number = (double)att_dataset_count(run->data->train)},
        {.name = "epoch_images", .number = (double)att_trainer_images_of(trainer, trainer->batches)},
        {.name = "epoch_updates", .number = (double)att_trainer_updates_per_epoch(trainer)},
        {.name = "listing", .text = run->listing},
        {.name = "fingerprint", .text = run->fingerprint},
    };
    int count = 8;
    if (att_comm_size(trainer->options->comm) > 1)
        fields[count++] =
            (att_event_field){.name = "processes", .number = (double)att_comm_size(trainer->options->comm)};
    if (trainer->layer_decay.layers > 0) {
        fields[count++] = (att_event_field){.name = "lr_layers", .number = trainer->layer_decay.layers};
        fields[count++] = (att_event_field){.name = "lr_scale_min", .number = trainer->layer_decay.smallest};
    }
    if (trainer->layer_decay.layers > 0 || trainer->frozen_parameters > 0)
        fields[count++] = (att_event_field){.name = "frozen_parameters", .number = trainer->frozen_parameters};
    int64_t tokens = att_model_tokens(run->model);
    if (tokens > 0)
        fields[count++] = (att_event_field){.name = "tokens", .number = (double)tokens};
    if (trainer->teaching.field.name)
        fields[count++] = (att_event_field){.name = "teacher", .text = att_teacher_name(trainer->options->teacher)};
    if (trainer->state.loss_count > 0)
        fields[count++] = (att_event_field){.name = "unevaluated", .number = 1};
    char texts[FIELDS_MAX][ATT_TRAIN_OPTION_TEXT];
    const att_flag *row;
    for (int i = 0; (row = att_train_option_at(i)) && count < FIELDS_MAX; i++, count++) {
        fields[count].name = row->member;
        fields[count].text = setting_text(trainer, row, texts[count]);
    }
    return emit(trainer, ATT_EVENT_RUN_BEGIN, fields, count);
}

att_status att_trainer_emit_step(att_trainer *trainer)
{
    const att_event_field fields[] = {
        {.name = "loss", .number = trainer->update_loss},
        {.name = "lr", .number = trainer->lr},
        {.name = "grad_norm", .number = trainer->grad_norm},
        {.name = "images_per_second", .number = att_pace_speed(&trainer->update_pace)},
        {.name = "wait_share", .number = att_pace_wait_share(&trainer->update_pace, trainer->loader)},
        {.name = "teacher_share", .number = att_pace_teacher_share(&trainer->update_pace, &trainer->teaching)},
    };
    const int count = sizeof fields / sizeof *fields;
    return emit(trainer, ATT_EVENT_STEP, fields, trainer->teaching.field.name ? count : count - 1);
}

/* Buffers for the names of an evaluation's event fields. */
typedef char metric_names[ATT_MAX_METRICS][METRIC_NAME];

static int put_evaluation(const att_task_info *task, const char *prefix, const att_evaluation *evaluation,
                          metric_names names, att_event_field *fields)
{
    for (int i = 0; i < task->metric_count; i++) {
        snprintf(names[i], METRIC_NAME, "%s%s", prefix, task->metrics[i].name);
        fields[i] = (att_event_field){.name = names[i], .number = evaluation->metrics[i]};
    }
    return task->metric_count;
}

att_status att_trainer_emit_epoch(att_trainer *trainer)
{
    const att_task_info *task = &trainer->task->info;
    metric_names names, plain_names;
    att_event_field fields[FIELDS_MAX] = {{.name = "train_loss", .number = trainer->result.train_loss}};
    int count = 1;
    if (trainer->run.data->eval)
        count += put_evaluation(task, "eval_", &trainer->evaluation, names, fields + count);
    if (trainer->run.data->eval && trainer->options->model_ema)
        count += put_evaluation(task, "eval_plain_", &trainer->plain, plain_names, fields + count);
    fields[count++] = (att_event_field){.name = "lr", .number = trainer->lr};
    fields[count++] = (att_event_field){.name = "images_per_second", .number = trainer->result.images_per_second};
    fields[count++] = (att_event_field){.name = "wait_share", .number = trainer->result.wait_share};
    if (trainer->teaching.field.name)
        fields[count++] = (att_event_field){.name = "teacher_share", .number = trainer->result.teacher_share};
    if (trainer->options->skip_corrupt)
        fields[count++] = (att_event_field){.name = "train_corrupt", .number = (double)trainer->result.train_corrupt};
    if (trainer->options->skip_corrupt && trainer->run.data->eval)
        fields[count++] = (att_event_field){.name = "eval_corrupt", .number = (double)trainer->result.eval_corrupt};
    return emit(trainer, ATT_EVENT_EPOCH, fields, count);
}

static att_status emit_corrupt(att_trainer *trainer, const char *set, const char *what, const char *reason)
{
    const att_event_field fields[] = {{.name = "message", .text = reason}, {.name = "set", .text = set}};
    if (att_trainer_writes(trainer))
        att_log(trainer->context, ATT_LOG_WARNING, "image %s: %s", what, reason);
    return emit(trainer, ATT_EVENT_WARNING, fields, sizeof fields / sizeof *fields);
}

att_status att_trainer_train_corrupt(void *user, int64_t index, const char *reason)
{
    (void)index;
    return emit_corrupt(user, "train", "replaced", reason);
}

att_status att_trainer_eval_corrupt(void *user, int64_t index, const char *reason)
{
    (void)index;
    const att_trainer *trainer = user;
    return trainer->eval_corrupt_reported ? ATT_OK : emit_corrupt(user, "eval", "left out", reason);
}

att_status att_trainer_emit_end(att_trainer *trainer, att_status status)
{
    char message[MESSAGE_SIZE] = "";
    if (status != ATT_OK)
        snprintf(message, sizeof message, "%s", att_context_message(trainer->context));
    const att_event_field fields[] = {{.name = "status", .text = att_status_name(status)},
                                      {.name = "message", .text = message}};
    att_status sink_status = emit(trainer, ATT_EVENT_RUN_END, fields, 2);
    return status == ATT_OK ? sink_status : att_fail(trainer->context, status, "%s", message);
}

/* Estimated time until the end of the training, from the speed so far. batch: finished batches of the epoch. */
static double seconds_left(const att_trainer *trainer, int64_t batch)
{
    const att_train_state *state = &trainer->state;
    int64_t images = trainer->images + trainer->interval_pace.images;
    double seconds = trainer->seconds + att_pace_seconds(&trainer->interval_pace);
    const int64_t to_come = att_trainer_images_of(trainer, att_trainer_batches_of(trainer, trainer->updates)) -
                            att_trainer_images_of(trainer, state->epoch * trainer->batches + batch);
    double of_training = images > 0 ? seconds / (double)images * (double)to_come : NAN;
    double evaluations =
        ceil((double)trainer->updates / (double)trainer->interval) - (double)(state->update / trainer->interval);
    return of_training + evaluations * trainer->eval_seconds;
}

void att_trainer_describe(const att_trainer *trainer, int64_t batch, att_progress *progress)
{
    const int64_t per_epoch = att_trainer_updates_per_epoch(trainer);
    const int epoch = trainer->state.epoch;
    progress->epoch = epoch;
    progress->epochs = (int)epochs_of(trainer);
    progress->update =
        epoch * per_epoch + (batch == trainer->batches ? per_epoch : batch / trainer->options->grad_accum_steps);
    progress->updates = trainer->updates;
    progress->lr = trainer->lr;
}

/* Batches of the current epoch, of which the last one of the training may have fewer. */
static int64_t epoch_batches(const att_trainer *trainer)
{
    const int64_t left = att_trainer_batches_of(trainer, trainer->updates) - trainer->state.epoch * trainer->batches;
    return left < trainer->batches ? left : trainer->batches;
}

void att_trainer_progress(att_trainer *trainer)
{
    const att_train_options *options = trainer->options;
    const att_train_state *state = &trainer->state;
    if (!options->progress)
        return;
    int64_t batch = state->batch + trainer->partial_batches;
    att_progress progress = {.stage = "train",
                             .batch = batch,
                             .batches = epoch_batches(trainer),
                             .images_per_second = att_pace_speed(&trainer->interval_pace),
                             .seconds_left = seconds_left(trainer, batch),
                             .loss = (state->loss_sum + trainer->partial_loss) /
                                     (double)(state->loss_count + trainer->partial_images)};
    att_trainer_describe(trainer, batch, &progress);
    att_processes_describe(&trainer->processes, &progress);
    if (!options->progress(options->progress_user, &progress))
        trainer->stop_requested = true;
}
