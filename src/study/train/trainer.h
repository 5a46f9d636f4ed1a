/* train/trainer.h - a training run in progress. */
#ifndef ATT_TRAIN_TRAINER_H
#define ATT_TRAIN_TRAINER_H

#include <attscope/evaluate.h>
#include <attscope/update.h>

#include "engine/session/block.h"
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

/* What is compiled for images of one size. */
typedef struct att_trainer_shape {
    int height, width;
    att_graph *graph; /* copy of the model's graph, with the loss */
    att_plan *plan;
    att_session *session; /* NULL: no batch of this size was trained on */
} att_trainer_shape;

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
    int metric; /* index of the task's metric that selects the best checkpoint */

    att_trainer_shape *shapes; /* [shape_count], as those of the loader; the first is the largest */
    int shape_count;
    att_trainer_shape *shape; /* that of the last batch */
    att_session_block *block; /* memory of all sessions; NULL: there is one session only */
    size_t other_bytes;       /* memory besides weights and sessions */
    att_gradient *gradient;
    att_update *update;
    att_parameter_rates *rates; /* per parameter */
    bool *frozen;               /* per parameter: its rate says so */
    int frozen_parameters;      /* number of them, without buffers */
    att_layer_decay layer_decay;
    att_loader *loader;
    float *losses;          /* [batch_size] */
    int64_t batches;        /* per epoch */
    bool takes_short;       /* batches that are left at the end of an epoch, of which none takes statistics */
    int64_t updates;        /* of the whole training */
    int64_t interval;       /* updates between two evaluations; the last interval may be shorter */
    char *last_checkpoint;  /* path of the last checkpoint that was written or resumed from; NULL: none */
    bool checkpoint_finite; /* an update or evaluation with the weights of last_checkpoint gave finite results */

    double started;
    att_pace interval_pace, update_pace;
    int64_t images; /* images that this call has trained on; seconds, waited: time for these images, and the part of it
                       spent waiting for data */
    double seconds, waited, taught; /* taught: part in which the teacher computed */
    double eval_seconds;            /* duration of the last evaluation */
    bool loading;                   /* the loader gives the batches of the current epoch */
    bool stop_requested;
    bool measuring;             /* the current or last update is observed */
    bool nothing_to_learn;      /* a warning has said that masks have no pixel with a class: those of training, */
    bool nothing_to_compare;    /* those of the evaluation set */
    bool eval_corrupt_reported; /* the evaluation set's corrupt images have been reported */

    /* Updates of this call without its first, and their seconds: [1] those that instruments observe, [0] the others. */
    int64_t first_update; /* number of the update with which this call begins */
    int64_t timed[2];
    double timed_seconds[2];

    int64_t partial_images, partial_batches; /* in the current update so far */
    double partial_loss;                     /* sum of the losses of these images */
    double lr, grad_norm, update_loss;       /* values of the last update */
    att_evaluation evaluation;               /* last evaluation; of the averaged weights if there is an average */
    att_evaluation plain;                    /* last evaluation of the plain weights */
    att_train_result result;
} att_trainer;

/* Whether frozen parts run as in inference (--freeze). Layers that layer decay freezes run as others do, as in timm. */
static inline bool att_trainer_freezes(const att_trainer *trainer)
{
    return trainer->options->freeze && *trainer->options->freeze;
}

att_pace att_pace_start(const att_trainer *trainer);
double att_pace_seconds(const att_pace *pace);
double att_pace_speed(const att_pace *pace);
int64_t att_pace_corrupt(const att_pace *pace, const att_loader *loader);
double att_pace_wait_share(const att_pace *pace, const att_loader *loader);
/* NaN without a teacher. */
double att_pace_teacher_share(const att_pace *pace, const att_teaching *teaching);

/* trainer_shapes.c: images of several sizes. Lists the sizes of the loader's images and makes the graph of the first.
 */
att_status att_trainer_list_shapes(att_trainer *trainer);
void att_trainer_free_shapes(att_trainer *trainer);
/* Whether images have several sizes. */
bool att_trainer_varies(const att_trainer *trainer);
/* Compiles the plan of a size. lanes, parts: 0: automatic. memory: as in att_train_options. */
att_status att_trainer_compile(att_trainer *trainer, att_trainer_shape *shape, int lanes, int parts, int64_t memory);
/* With a limit of memory, compiles the other sizes, too, so that a lack of it shows before the first update: smaller
 * images are computed in larger groups, which can take more memory. Without one, they are compiled when they are used,
 * and what does not fit into the memory of the first is allocated then. */
att_status att_trainer_compile_further(att_trainer *trainer);
void att_trainer_drop_plans(att_trainer *trainer);
/* Of those that are compiled, the plan whose session needs the most memory. */
const att_plan *att_trainer_largest_plan(const att_trainer *trainer);
/* Creates the session of the first size, and memory for those of the others. */
att_status att_trainer_open_first(att_trainer *trainer);
/* Sets trainer->shape to that of the batch. Compiles at the first batch of a size. ERR_MISMATCH if the training that is
 * continued was compiled in another way for this size. */
att_status att_trainer_take_shape(att_trainer *trainer, const att_batch *batch);

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
/* Fills in where in the training it is: epoch, updates and learning rate. batch: finished batches of the epoch. */
void att_trainer_describe(const att_trainer *trainer, int64_t batch, att_progress *progress);

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
 * together, and whether the checkpoint to resume from belongs to a training run with the same settings and images. The
 * contents of `weights` do not matter; they may be uninitialised. Errors: those of att_train(). */
ATT_FOR_LAB att_status att_train_check(const att_model *model, att_weights *weights, const att_train_data *data,
                                       const att_train_options *options);

#endif
