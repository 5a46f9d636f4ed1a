/* attscope/checkpoint.h - reads the state of a training run from checkpoints, and exports weights.
 *
 * A checkpoint is a safetensors file. Tensors: the weights under timm's names; "ema.<name>" for their moving average,
 * if one is kept; "optimizer.<slot>.<name>" for the optimiser's state. Metadata: the model's identity
 * (attscope/models.h) and the state of the training under keys "attscope.train.<item>". Real numbers are stored
 * exactly, as the hexadecimal digits of their bits. "attscope.train.version" is the oldest version of attscope that can
 * continue the training: "0.2", or "1" in files of attscope 0.1, which can be opened but not continued. Any reader of
 * safetensors can open the file; att_model_identify() and att_model_load() take the weights from it.
 */
#ifndef ATTSCOPE_CHECKPOINT_H
#define ATTSCOPE_CHECKPOINT_H

#include <attscope/models.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of a training run. Checkpoints are never written between two batches of one update. */
typedef struct att_checkpoint_info {
    bool training;  /* false: the file holds weights only, and all other members are 0 */
    bool ema;       /* the file holds a moving average of the weights */
    int epoch;      /* finished epochs */
    int64_t batch;  /* finished batches of the epoch in progress */
    int64_t update; /* updates done */
    uint64_t seed;
    bool unevaluated;    /* updates have been made since the last evaluation */
    double metric;       /* metric of the last evaluation; NaN: none */
    double best_metric;  /* NaN: none */
    int best_epoch;      /* 0-based epoch of the best evaluation; -1: none, or best_update counts */
    int64_t best_update; /* with eval_every: updates done at the best evaluation; else -1 */
} att_checkpoint_info;
/* Reads the state of the training from a file. Errors: ERR_FORMAT if the metadata is inconsistent. */
ATT_API att_status att_checkpoint_describe(att_context *context, const att_tensors *file, att_checkpoint_info *info);

/* Returns whether the tensor `name` of the file is not a weight of the network but belongs to the state of the
 * training: the moving average of the weights ("ema.<name>", in files with attscope's metadata and in PyTorch files
 * that have an average) or the optimiser's state ("optimizer.<slot>.<name>", only in files with attscope's metadata).
 */
ATT_API bool att_checkpoint_owns(const att_tensors *file, const char *name);

/* Returns the class names of the file's training, or those that OpenMMLab's programs store (ATT_TENSORS_CLASSES), one
 * per line from class 0; NULL if the file has none, or if the training named its classes by their numbers. Lives as
 * long as `file`. */
ATT_API const char *att_checkpoint_classes(const att_tensors *file);

/* Metadata key that names the data set of the network's classes, for files without a training run. */
#define ATT_CLASSES_KEY "attscope.classes"

/* Writes the model's parameters and identity to the file at `path` atomically; after a failure the file is unchanged.
 * The parameters are found in `weights` by name; other parameters of `weights` are not written. Errors: ERR_MISMATCH if
 * a parameter is missing or has another shape or type, ERR_IO, ERR_MEMORY. */
ATT_API att_status att_checkpoint_export(const att_model *model, const att_weights *weights, const char *path);

#ifdef __cplusplus
}
#endif
#endif
