#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/weights/weights.h"
#include "study/train/clock.h"
#include "study/train/trainer.h"

static bool forward_progress(void *user, const att_progress *stage)
{
    const att_trainer *trainer = user;
    if (!trainer->options->progress)
        return true;
    att_progress progress = *stage;
    att_trainer_describe(trainer, trainer->state.batch, &progress);
    const double intervals = ceil((double)(trainer->updates - trainer->state.update) / (double)trainer->interval);
    progress.seconds_left += intervals * att_pace_seconds(&trainer->interval_pace);
    return trainer->options->progress(trainer->options->progress_user, &progress);
}

/* The records get the figures of the weights whose metrics are called "eval_...". */
static att_status evaluate(att_trainer *trainer, att_weights *weights, const char *stage, att_evaluation *evaluation)
{
    const att_train_data *data = trainer->run.data;
    const bool recorded = weights != trainer->run.weights || !trainer->options->model_ema;
    att_evaluate_options options = {.task_options = trainer->options->task_options,
                                    .backend = trainer->options->backend,
                                    .precision = trainer->options->precision,
                                    .batch_size = trainer->options->batch_size,
                                    .workers = trainer->options->workers,
                                    .skip_corrupt = trainer->options->skip_corrupt,
                                    .corrupt_found = att_trainer_eval_corrupt,
                                    .corrupt_user = trainer,
                                    .comm = trainer->options->comm,
                                    .detailed = recorded ? att_trainer_emit_details : NULL,
                                    .detailed_user = trainer,
                                    .stage = stage,
                                    .progress = forward_progress,
                                    .progress_user = trainer};
    return att_evaluate(trainer->run.model, weights, data->eval, data->eval_transform, &options, evaluation);
}

int att_trainer_average_slot(const att_weights *weights)
{
    int slot = att_weights_slot_count(weights) - 1;
    while (slot >= 0 && strcmp(att_weights_slot_name(weights, slot), "ema") != 0)
        slot--;
    return slot;
}

/* Copies a slot of all parameters that the other one holds. Slot -1 is the weights. */
static att_status copy_slot(att_context *context, const att_weights *from, int from_slot, att_weights *to, int to_slot)
{
    for (int i = 0; i < att_weights_count(from); i++) {
        int64_t count = att_shape_count(att_weights_at(from, i).shape);
        if (to_slot >= 0 && !att_weights_in_slot(to, to_slot, i))
            continue;
        float *buffer = att_allocate_array(context, (size_t)count, sizeof *buffer);
        if (!buffer && count > 0)
            return att_fail_memory(context, (size_t)count * sizeof *buffer, "a tensor of the average");
        att_status status = att_weights_get(from, from_slot, i, buffer, count);
        if (status == ATT_OK)
            status = att_weights_set(to, to_slot, i, buffer, count);
        att_free(context, buffer);
        ATT_TRY(status);
    }
    return ATT_OK;
}

static att_status evaluate_average(att_trainer *trainer)
{
    att_weights *average = NULL;
    int slot = att_trainer_average_slot(trainer->run.weights);
    if (slot < 0)
        return att_fail(trainer->context, ATT_ERR_INTERNAL, "the plan keeps no average of the weights");
    ATT_TRY(att_weights_create(att_model_graph(trainer->run.model), trainer->options->backend, &average));
    att_status status = copy_slot(trainer->context, trainer->run.weights, slot, average, -1);
    if (status == ATT_OK)
        status = evaluate(trainer, average, "evaluate ema", &trainer->evaluation);
    att_weights_destroy(&average);
    return status;
}

att_status att_trainer_evaluate(att_trainer *trainer)
{
    double started = att_seconds_now();
    ATT_TRY(att_trainer_share_statistics(trainer));
    ATT_TRY(evaluate(trainer, trainer->run.weights, "evaluate", &trainer->plain));
    trainer->eval_corrupt_reported = true;
    if (att_trainer_writes(trainer) && !trainer->nothing_to_compare)
        trainer->nothing_to_compare = att_evaluation_warn(trainer->run.model, &trainer->plain);
    trainer->evaluation = trainer->plain;
    if (trainer->options->model_ema)
        ATT_TRY(evaluate_average(trainer));
    trainer->state.metric = trainer->evaluation.metrics[trainer->metric];
    trainer->eval_seconds = att_seconds_now() - started;
    return ATT_OK;
}

att_status att_trainer_begin_average(att_trainer *trainer)
{
    att_weights *weights = trainer->run.weights;
    int slot = att_trainer_average_slot(weights);
    return slot < 0 ? ATT_OK : copy_slot(trainer->context, weights, -1, weights, slot);
}
