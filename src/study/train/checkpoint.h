/* train/checkpoint.h - writes the state of a training run to a file and reads it back. */
#ifndef ATT_TRAIN_CHECKPOINT_H
#define ATT_TRAIN_CHECKPOINT_H

#include <attscope/checkpoint.h>
#include <attscope/train.h>

#include "base/core/names.h"
#include "base/core/text.h"
#include "engine/weights/weights.h"
#include "study/train/alerts.h"
#include "study/train/history.h"

/* The state that changes with each update, except for weights and slots. */
typedef struct att_train_state {
    int epoch;       /* finished epochs */
    int64_t batch;   /* finished batches of the current epoch */
    int64_t update;  /* finished updates */
    double loss_sum; /* sum of the losses of the images since the last ATT_EVENT_EPOCH; loss_count: their number */
    int64_t loss_count;
    int64_t corrupt; /* images replaced since then */
    double metric;   /* of the last evaluation; NaN if there was none */
    att_history history;
    att_alerts *alerts; /* NULL: no alerts */
} att_train_state;

/* The content of checkpoints besides att_train_state. The members are constant during a training run; updates and
 * att_checkpoint_resume() change the values in `weights`. */
typedef struct att_train_run {
    att_context *context;
    const att_model *model;
    att_weights *weights;
    const att_train_data *data;
    const att_train_options *options;
    const char *metric;      /* name of the metric that selects the best checkpoint */
    const char *fingerprint; /* the plan's fingerprint; with images of several sizes: of the largest */
    att_text shapes;         /* a line "HEIGHTxWIDTH FINGERPRINT" for each other size that was trained on */
    int lanes, parts;
    int64_t memory; /* as in att_train_options */
    /* Digests of image names and classes, and of some images' pixels; eval_*: "" without evaluation. */
    char listing[ATT_DATASET_LISTING], eval_listing[ATT_DATASET_LISTING];
    char sample[ATT_DATASET_LISTING], eval_sample[ATT_DATASET_LISTING];
    const char *teacher;                     /* its name; NULL: no teacher */
    char teacher_digest[ATT_WEIGHTS_DIGEST]; /* "": no teacher */
} att_train_run;

/* Writes a checkpoint. Replaces the file at `path` atomically. */
att_status att_checkpoint_write(const att_train_run *run, const att_train_state *state, const char *path);

/* As att_checkpoint_export(), with the names of the classes (att_checkpoint_classes()), else the data set whose classes
 * they are (ATT_CLASSES_KEY). NULL: not known. projects: whether its head gives
 * features of a projection (ATT_PROJECTION_KEY). beside: as in att_safetensors_content. */
att_status att_checkpoint_export_named(const att_model *model, const att_weights *weights, const char *classes,
                                       const char *known, bool projects, const att_safetensors_beside *beside,
                                       const char *path);

/* Reads the engine settings of the file's training: the lanes, the threads that share a lane (`parts`), and the memory
 * limit. *parts and *memory are 0 if the file lacks them. Errors: ERR_MISMATCH (the file holds no training),
 * ERR_UNSUPPORTED (the training is of a version that cannot be resumed). */
att_status att_checkpoint_engine(att_context *context, const att_tensors *file, int *lanes, int *parts,
                                 int64_t *memory);

/* Fills weights, slots and state, including the history, which keeps its capacity. First compares all settings that
 * affect the results bit by bit: ERR_MISMATCH names the first difference, and nothing is changed. */
att_status att_checkpoint_resume(const att_train_run *run, const att_tensors *file, att_train_state *state);

/* Path of a checkpoint in a run's folder. name: "last", "model_best", "checkpoint-3". The caller frees *path with
 * att_free(). */
att_status att_checkpoint_path(att_context *context, const char *output, const char *name, char **path);

/* The number N of "checkpoint-N" in the state after an evaluation: the 0-based epoch, or with eval_every the updates.
 */
int64_t att_train_state_number(const att_train_options *options, const att_train_state *state);

/* After an evaluation: writes "last", links it as "checkpoint-N" and "model_best" if the history keeps it under these
 * names, and removes the checkpoint that the history evicted. */
att_status att_checkpoint_publish(const att_train_run *run, const att_train_state *state);
/* As att_checkpoint_publish(), but does not write "last", and links to `source`. Repeats the steps that a killed
 * process may have left undone. */
att_status att_checkpoint_link(const att_train_run *run, const att_train_state *state, const char *source);

/* Sets the options of the task (att_task_info.options) to those of the file's training, so that an evaluation reports
 * the same metrics. Options that the file does not have stay as they are. Errors: ERR_FORMAT if a value is not valid
 * for its option. */
att_status att_checkpoint_task_options(att_context *context, const att_tensors *file, const att_task_info *task,
                                       att_option_values *options);

/* Returns the data set whose built-in class names belong to the network's outputs; NULL if that data set is unknown, or
 * if attscope's training wrote the file: such a file has its own class names (att_checkpoint_classes()). `classes` is
 * the number of the network's outputs; the data set must have as many classes. It must be named by the metadata
 * (ATT_CLASSES_KEY), by the name of the file or its folder (ignoring case and punctuation), or by the data set in the
 * options of a training script (ATT_TENSORS_OPTIONS). Other files whose options name no data set and that have as many
 * outputs as an order of ImageNet's classes (1,000, 10,450, 11,221, 11,821, 21,841 or 21,843) are taken as that order:
 * timm, torchvision and PyTorch's ImageNet example write such files. */
const att_known_classes *att_checkpoint_known_classes(const att_tensors *file, int classes);

/* As att_model_load(), but loads the moving average of the weights instead of the weights. Errors: also ERR_NOT_FOUND
 * if the file has none. */
att_status att_checkpoint_load_ema(const att_model *model, const att_tensors *file, att_weights *weights);

#endif
