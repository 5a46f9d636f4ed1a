/* attscope/checkpoint.h - safetensors files that hold a network and, beside it, the training it came from.
 *
 * Tensors: the weights under timm's names, "ema.<name>" where an average is kept, "optimizer.<slot>.<name>" for what
 * the optimiser keeps. Metadata: the model's identity (attscope/models.h) and the state of the training, one key
 * "attscope.train.<what>" each; numbers that decide bits are written exactly. "attscope.train.version" is the version
 * of attscope since which such a training can be continued: "0.2", or "1" in files of attscope 0.1, which can be opened
 * but not continued. Any reader of safetensors can open the file; att_model_identify() and att_model_load() take the
 * weights from it.
 */
#ifndef ATTSCOPE_CHECKPOINT_H
#define ATTSCOPE_CHECKPOINT_H

#include <attscope/models.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_known_classes att_known_classes; /* attscope/lab/names.h says what it holds */

/* Where a training stood. Between two batches of one update there is no checkpoint. */
typedef struct att_checkpoint_info {
    bool training;  /* false: the file holds weights only; the rest is then 0 */
    bool ema;       /* an average of the weights is in it */
    int epoch;      /* epochs finished */
    int64_t batch;  /* batches finished in the epoch after those */
    int64_t update; /* updates made */
    uint64_t seed;
    double metric;      /* of the last evaluated epoch; NaN: none */
    double best_metric; /* NaN: none */
    int best_epoch;     /* 0-based; -1: none */
} att_checkpoint_info;
/* Errors: ERR_FORMAT where the metadata contradicts itself. */
ATT_API att_status att_checkpoint_describe(att_context *context, const att_tensors *file, att_checkpoint_info *info);

/* Whether a file holds this tensor beside its weights: an average of them ("ema.<name>"; in files with our metadata,
 * and where PyTorch's have one) or the optimiser's ("optimizer.<slot>.<name>"; with our metadata only). */
ATT_API bool att_checkpoint_owns(const att_tensors *file, const char *name);

/* Names of the classes of the file's training, one a line from class 0; NULL where it keeps none, as where they were
 * the numbers. Lives as long as `file`. */
ATT_API const char *att_checkpoint_classes(const att_tensors *file);

/* Sets the options of the task (att_task_info.options) that the file's training had; options that the file does not say
 * stay as they are. An evaluation with them has the metrics of that training. Errors: ERR_FORMAT where a value is none
 * that the option can have. */
ATT_API att_status att_checkpoint_task_options(att_context *context, const att_tensors *file, const att_task_info *task,
                                               att_option_values *options);

/* The data set whose built-in class names are those of the network's outputs, where that is known; NULL: it is not, or
 * the file is a checkpoint of a training of ours, which keeps its own names. It is known where the data set has as many
 * classes as the network has outputs (`classes`), and where the metadata (ATT_CLASSES_KEY) give its name, or the name
 * of the file or its folder contains it, ignoring case and punctuation, or that of the data set in the options of a
 * training script (ATT_TENSORS_OPTIONS) does. Other files of 1,000 outputs whose options name no data set are taken for
 * networks of ImageNet-1k: timm and torchvision publish such files, and PyTorch's ImageNet example writes them. */
ATT_API const att_known_classes *att_checkpoint_known_classes(const att_tensors *file, int classes);

/* Key of the metadata of a file without a training that names the data set whose classes the network has. */
#define ATT_CLASSES_KEY "attscope.classes"

/* As att_model_load(), but takes the averaged weights. ERR_NOT_FOUND where the file has none. */
ATT_API att_status att_checkpoint_load_ema(const att_model *model, const att_tensors *file, att_weights *weights);

/* Writes the model's parameters, found among the weights by name, and its identity, in one step: the file at `path` is
 * the new one or the old one. The weights may hold other parameters, too; those are not written. Errors: ERR_MISMATCH
 * where they lack one of the model's, or have it in another shape or type. */
ATT_API att_status att_checkpoint_export(const att_model *model, const att_weights *weights, const char *path);

#ifdef __cplusplus
}
#endif
#endif
