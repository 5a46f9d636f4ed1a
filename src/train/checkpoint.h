/* train/checkpoint.h - the state of a training, into a file and out of it. */
#ifndef ATT_TRAIN_CHECKPOINT_H
#define ATT_TRAIN_CHECKPOINT_H

#include <attscope/checkpoint.h>
#include <attscope/train.h>

#include "train/history.h"

/* What changes from update to update, weights and slots aside. */
typedef struct att_train_state {
    int epoch;       /* epochs finished */
    int64_t batch;   /* batches finished in the epoch after those */
    int64_t update;  /* updates made */
    double loss_sum; /* over the images of the unfinished epoch */
    int64_t loss_count;
    int64_t corrupt; /* images replaced in the unfinished epoch */
    double metric;   /* of the last evaluated epoch; NaN: none */
    att_history history;
} att_train_state;

/* What stays the same, and what a checkpoint is made of. All is only read, but for weights on a resume. */
typedef struct att_train_run {
    att_context *context;
    const att_model *model;
    att_weights *weights;
    const att_train_data *data;
    const att_train_options *options;
    const char *metric;      /* decides which epoch is best */
    const char *fingerprint; /* of the plan */
    int lanes, parts;
    int64_t memory;                                                       /* as att_train_options.memory */
    char listing[ATT_DATASET_LISTING], eval_listing[ATT_DATASET_LISTING]; /* of the images; "" without evaluation */
    char sample[ATT_DATASET_LISTING], eval_sample[ATT_DATASET_LISTING];   /* of the pixels of some of them */
} att_train_run;

/* Replaces the file at `path` in one step. */
att_status att_checkpoint_write(const att_train_run *run, const att_train_state *state, const char *path);

/* The lanes that the file's training had, the threads that shared each, and the memory that it was given: the latter
 * two are 0 in files that do not say. ERR_MISMATCH where the file holds no training, ERR_UNSUPPORTED where it holds one
 * of another version. */
att_status att_checkpoint_engine(att_context *context, const att_tensors *file, int *lanes, int *parts,
                                 int64_t *memory);

/* Fills weights, slots and state (history included, whose capacity stays). Before anything is changed, everything that
 * decides bits is compared: ERR_MISMATCH names the first difference. */
att_status att_checkpoint_resume(const att_train_run *run, const att_tensors *file, att_train_state *state);

/* Files of a run folder: `path` is freed by att_free(). name: "last", "model_best", "checkpoint-3". */
att_status att_checkpoint_path(att_context *context, const char *output, const char *name, char **path);

/* After an epoch: writes `last`, gives it the further names that the history says, and removes what that displaced. */
att_status att_checkpoint_publish(const att_train_run *run, const att_train_state *state);
/* The second half of it, again, from `source`: a process may have been killed before it. */
att_status att_checkpoint_settle(const att_train_run *run, const att_train_state *state, const char *source);

#endif
