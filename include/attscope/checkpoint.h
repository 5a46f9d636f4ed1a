/* attscope/checkpoint.h - reads the state of a training from checkpoints, and exports weights.
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

typedef struct att_known_classes att_known_classes; /* declared in attscope/lab/names.h */

/* The state of a training. Checkpoints are never written between two batches of one update. */
typedef struct att_checkpoint_info {
    bool training;  /* false: the file holds weights only, and all other members are 0 */
    bool ema;       /* the file holds a moving average of the weights */
    int epoch;      /* finished epochs */
    int64_t batch;  /* finished batches of the epoch in progress */
    int64_t update; /* updates done */
    uint64_t seed;
    double metric;      /* metric of the last evaluated epoch; NaN: none */
    double best_metric; /* NaN: none */
    int best_epoch;     /* 0-based; -1: none */
} att_checkpoint_info;
/* Reads the state of the training from a file. Errors: ERR_FORMAT if the metadata is inconsistent. */
ATT_API att_status att_checkpoint_describe(att_context *context, const att_tensors *file, att_checkpoint_info *info);

/* Returns whether the tensor `name` of the file is not a weight of the network but belongs to the state of the
 * training: the moving average of the weights ("ema.<name>", in files with attscope's metadata and in PyTorch files
 * that have an average) or the optimiser's state ("optimizer.<slot>.<name>", only in files with attscope's metadata).
 */
ATT_API bool att_checkpoint_owns(const att_tensors *file, const char *name);

/* Returns the class names of the file's training, one per line from class 0; NULL if the file has none, or if the
 * training named its classes by their numbers. Lives as long as `file`. */
ATT_API const char *att_checkpoint_classes(const att_tensors *file);

/* Sets the options of the task (att_task_info.options) to those of the file's training, so that an evaluation reports
 * the same metrics. Options that the file does not have stay as they are. Errors: ERR_FORMAT if a value is not valid
 * for its option. */
ATT_API att_status att_checkpoint_task_options(att_context *context, const att_tensors *file, const att_task_info *task,
                                               att_option_values *options);

/* Returns the data set whose built-in class names belong to the network's outputs; NULL if that data set is unknown, or
 * if attscope's training wrote the file: such a file has its own class names (att_checkpoint_classes()). `classes` is
 * the number of the network's outputs; the data set must have as many classes. It must be named by the metadata
 * (ATT_CLASSES_KEY), by the name of the file or its folder (ignoring case and punctuation), or by the data set in the
 * options of a training script (ATT_TENSORS_OPTIONS). Other files whose options name no data set and that have as many
 * outputs as an order of ImageNet's classes (1,000, 10,450, 11,221, 11,821, 21,841 or 21,843) are taken as that order:
 * timm, torchvision and PyTorch's ImageNet example write such files. */
ATT_API const att_known_classes *att_checkpoint_known_classes(const att_tensors *file, int classes);

/* Metadata key that names the data set of the network's classes, for files without a training. */
#define ATT_CLASSES_KEY "attscope.classes"

/* As att_model_load(), but loads the moving average of the weights instead of the weights. Errors: also ERR_NOT_FOUND
 * if the file has none. */
ATT_API att_status att_checkpoint_load_ema(const att_model *model, const att_tensors *file, att_weights *weights);

/* Writes the model's parameters and identity to the file at `path` atomically; after a failure the file is unchanged.
 * The parameters are found in `weights` by name; other parameters of `weights` are not written. Errors: ERR_MISMATCH if
 * a parameter is missing or has another shape or type, ERR_IO, ERR_MEMORY. */
ATT_API att_status att_checkpoint_export(const att_model *model, const att_weights *weights, const char *path);

#ifdef __cplusplus
}
#endif
#endif
