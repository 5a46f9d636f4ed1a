/* train/trainer.h - a training in progress. */
#ifndef ATT_TRAIN_TRAINER_H
#define ATT_TRAIN_TRAINER_H

#include <attscope/evaluate.h>
#include <attscope/update.h>

#include "networks/tasks/task.h"
#include "study/train/alerts.h"
#include "study/train/checkpoint.h"
#include "study/train/layer_decay.h"
#include "study/train/optimizer.h"
#include "study/train/processes.h"
#include "study/train/schedule.h"
#include "study/train/teaching.h"

/* Measures speed from a start time on. images: images since the start; the other members: the start time, and the
 * counters of the loader and the teacher at that time. */
typedef struct att_pace {
    int64_t images, corrupt;
    double started, waited, taught;
} att_pace;

typedef struct att_trainer {
    att_context *context;
    const att_train_options *options;
    att_train_run run;
    att_train_state state;
    const att_optimizer *optimizer;
    const att_schedule *schedule;
    double base_lr;
    att_processes processes;
    const att_task *task;
    att_task_settings settings;
    att_field fields[ATT_MAX_TARGETS]; /* target fields of a sample */
    att_teaching teaching;
    int metric; /* index of the task's metric that selects the best epoch */

    att_graph *graph; /* copy of the model's graph, with the loss */
    att_plan *plan;
    size_t other_bytes; /* memory besides the weights and the session */
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    att_parameter_rates *rates; /* per parameter */
    bool *frozen;               /* per parameter: its rate says so */
    int frozen_parameters;      /* number of them, without buffers */
    att_layer_decay layer_decay;
    att_loader *loader;
    float *losses;          /* [batch_size] */
    int64_t batches;        /* per epoch */
    char *last_checkpoint;  /* path of the last checkpoint that was written or resumed from; NULL: none */
    bool checkpoint_finite; /* an update or evaluation with the weights of last_checkpoint gave finite results */

    double started;
    att_pace epoch_pace, update_pace;
    int64_t images; /* images that this call has trained on; seconds, waited: time for these images, and the part of it
                       spent waiting for data */
    double seconds, waited, taught; /* taught: part in which the teacher computed */
    double eval_seconds;            /* duration of the last evaluation */
    bool stop_requested;
    bool measuring;             /* the current or last update is observed */
    bool eval_corrupt_reported; /* the evaluation set's corrupt images have been reported */

    /* Updates of this call without its first, and their seconds: [1] those that instruments observe, [0] the others. */
    int64_t first_update; /* number of the update with which this call begins */
    int64_t timed[2];
    double timed_seconds[2];

    int64_t partial_images; /* images in the current update so far; partial_loss: sum of their losses */
    double partial_loss;
    double lr, grad_norm, update_loss; /* values of the last update */
    att_evaluation evaluation;         /* last evaluation; of the averaged weights if there is an average */
    att_evaluation plain;              /* last evaluation of the plain weights */
    att_train_result result;
} att_trainer;

att_pace att_pace_start(const att_trainer *trainer);
double att_pace_seconds(const att_pace *pace);
double att_pace_speed(const att_pace *pace);
int64_t att_pace_corrupt(const att_pace *pace, const att_loader *loader);
double att_pace_wait_share(const att_pace *pace, const att_loader *loader);
/* NaN without a teacher. */
double att_pace_teacher_share(const att_pace *pace, const att_teaching *teaching);

/* trainer_events.c: sends events to the sinks. */
att_status att_trainer_emit_begin(att_trainer *trainer);
att_status att_trainer_emit_step(att_trainer *trainer);
att_status att_trainer_emit_epoch(att_trainer *trainer);
/* Sends what the instruments observed in the last update. */
att_status att_trainer_emit_measure(att_trainer *trainer);
/* As att_evaluate_options.detailed; user: the trainer. */
att_status att_trainer_emit_details(void *user, const att_measurement *figures, int count);
/* As att_loader_options.corrupt_found; user: the trainer. */
att_status att_trainer_train_corrupt(void *user, int64_t index, const char *reason);
att_status att_trainer_eval_corrupt(void *user, int64_t index, const char *reason);
/* Returns `status` and leaves its message unchanged. If `status` is ATT_OK, returns the status of the sinks. */
att_status att_trainer_emit_end(att_trainer *trainer, att_status status);
/* Reports progress after a batch. */
void att_trainer_progress(att_trainer *trainer);

/* trainer_evaluate.c: fills `evaluation`, `plain` and state.metric. Requires an evaluation set. */
att_status att_trainer_evaluate(att_trainer *trainer);
/* Slot of the averaged weights, -1: none. */
int att_trainer_average_slot(const att_weights *weights);
/* If an average is kept, initialises it with the weights; before the first update the average would be zero. */
att_status att_trainer_begin_average(att_trainer *trainer);

/* trainer_processes.c. Whether this process writes files and sends events. */
bool att_trainer_writes(const att_trainer *trainer);
/* Fails in all processes if their settings, images or weights differ. */
att_status att_trainer_compare(att_trainer *trainer);
/* Logs what of the results depends on the number of processes. */
void att_trainer_log_processes(const att_trainer *trainer);
/* Gives all processes the running statistics of rank 0, if each takes statistics of batch norm over its own samples. */
att_status att_trainer_share_statistics(att_trainer *trainer);
/* Replaces the name by the first that is not empty among those of all processes. */
enum { ATT_NODE_TEXT = 256 };
att_status att_trainer_share_node(att_trainer *trainer, char node[ATT_NODE_TEXT]);

/* Makes the checks of att_train() that come before its first update: options, data, memory of training and evaluation
 * together, and whether the checkpoint to resume from belongs to a training with the same settings and images. The
 * contents of `weights` do not matter; they may be uninitialised. Errors: those of att_train(). */
ATT_FOR_LAB att_status att_train_check(const att_model *model, att_weights *weights, const att_train_data *data,
                                       const att_train_options *options);

#endif
