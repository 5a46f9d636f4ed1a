/* train/trainer.h - a training while it runs. */
#ifndef ATT_TRAIN_TRAINER_H
#define ATT_TRAIN_TRAINER_H

#include <attscope/evaluate.h>
#include <attscope/update.h>

#include "tasks/task.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/schedule.h"

/* Images, seconds and seconds spent waiting for data since some moment; the loader's count of corrupt images at it. */
typedef struct att_pace {
    int64_t images, corrupt;
    double started, waited;
} att_pace;

typedef struct att_trainer {
    att_context *context;
    const att_train_options *options;
    att_train_run run;
    att_train_state state;
    const att_optimizer *optimizer;
    const att_schedule *schedule;
    double base_lr;
    const att_task *task;
    att_task_settings settings;
    att_field fields[ATT_MAX_TARGETS]; /* the targets of a sample */
    int metric;                        /* of the task's, decides which epoch is best */

    att_graph *graph; /* the model's, with the loss */
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    att_parameter_rates *rates; /* by parameter */
    att_loader *loader;
    float *losses;   /* [batch_size] */
    int64_t batches; /* of an epoch */
    char *kept;      /* path of the last checkpoint written or resumed from; NULL: none */
    bool proven;     /* an evaluation or an update since found its weights' answers finite */

    double started;
    att_pace epoch_pace, update_pace;
    int64_t images; /* trained on by this call, with the seconds and the waiting that took */
    double seconds, waited;
    double eval_seconds; /* of the last epoch's evaluation */
    bool stop_asked;
    bool measuring;  /* the update in progress, or just made, is observed */
    bool eval_named; /* the evaluation set's corrupt images were told of */

    int64_t partial_images; /* of the update in progress, with the sum of their losses */
    double partial_loss;
    double lr, grad_norm, update_loss; /* of the last update */
    att_evaluation evaluation;         /* of the last epoch; of the averaged weights where there are any */
    att_evaluation plain;              /* of the weights themselves, where `evaluation` is not */
    const char *stage;                 /* of the evaluation in progress */
    att_train_result result;
} att_trainer;

att_pace att_pace_start(const att_loader *loader);
double att_pace_seconds(const att_pace *pace);
double att_pace_speed(const att_pace *pace);
int64_t att_pace_corrupt(const att_pace *pace, const att_loader *loader);
double att_pace_wait_share(const att_pace *pace, const att_loader *loader);

/* trainer_events.c: what others are told. */
att_status att_trainer_emit_begin(att_trainer *trainer);
att_status att_trainer_emit_step(att_trainer *trainer);
att_status att_trainer_emit_epoch(att_trainer *trainer);
/* What the instruments saw of the last update. */
att_status att_trainer_emit_measure(att_trainer *trainer);
/* As att_loader_options.corrupt_found; user: the trainer. */
att_status att_trainer_train_corrupt(void *user, int64_t index, const char *reason);
att_status att_trainer_eval_corrupt(void *user, int64_t index, const char *reason);
/* Returns `status`, whose message stays, or where that is ATT_OK what a sink answers. */
att_status att_trainer_emit_end(att_trainer *trainer, att_status status);
/* After a batch of the update in progress. */
void att_trainer_progress(att_trainer *trainer);

/* trainer_evaluate.c: fills `evaluation`, `plain` and state.metric; needs an evaluation set. */
att_status att_trainer_evaluate(att_trainer *trainer);
/* Makes the average of the weights, where one is kept, the weights themselves: before the first update it is zero. */
att_status att_trainer_begin_average(att_trainer *trainer);

#endif
