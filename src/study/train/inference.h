/* train/inference.h - runs a graph for inference with given weights. */
#ifndef ATT_TRAIN_INFERENCE_H
#define ATT_TRAIN_INFERENCE_H

#include <attscope/data.h>
#include <attscope/evaluate.h>
#include <attscope/models.h>
#include <attscope/plan.h>

#include "base/core/export.h"
#include "study/train/passes.h"
#include "study/train/shape_cache.h"

/* An input of the plan. */
typedef struct att_inference_input {
    const char *name; /* owned by the plan */
    int64_t elements; /* of a sample */
    /* The rows of a run in F64, which stay bound after it for instruments that run the network again
     * (measure/study.h). NULL: the caller's rows are bound. */
    double *converted;
} att_inference_input;

typedef struct att_inference {
    att_context *context;
    att_plan *plan;
    att_session *session;
    int output_count;
    att_field *outputs; /* fields that a run returns: F32, or I32 for integers */
    void **answers;     /* [output_count], each [max_batch] rows */
    int input_count;
    att_inference_input *inputs;
    bool wide;    /* the graph is in F64: inputs and outputs are converted */
    bool own;     /* att_inference_options.own */
    double *rows; /* if `wide`: the rows of an output */
} att_inference;

typedef struct att_inference_options {
    const char *backend;
    att_precision precision;
    int max_batch;
    att_comm *comm;     /* processes that each run some rows; max_batch is that of all of them; NULL: this one */
    int group;          /* as in att_plan_options */
    const char *probes; /* pattern of the probes that are computed as well, with wildcards '*' and '?'; NULL: none */
    /* Names of the outputs and probes that a run returns, NULL-terminated. NULL: all outputs except the loss. Nodes
     * that only the loss needs are then not computed. */
    const char *const *outputs;
    bool own;   /* a run returns the rows of this process only */
    bool stops; /* a run ends with ERR_STOPPED when the context is asked to stop (att_settings.stop) */
    /* Before it allocates, the inference makes room in this cache, whose entry `entry` holds it. NULL: no cache. */
    att_shape_cache *cache;
    const void *entry;
} att_inference_options;

/* Compiles the graph, in F32 or F64, and creates the session. The graph must outlive the inference. On failure
 * *inference is zeroed. Errors: those of compiling. */
att_status att_inference_create(const att_graph *graph, att_weights *weights, const att_inference_options *options,
                                att_inference *inference);
void att_inference_free(att_inference *inference);

/* Bytes of memory for the session and the outputs of such an inference. */
att_status att_inference_bytes(const att_graph *graph, const att_inference_options *options, size_t *bytes);

/* Runs `rows` samples, those of this process. inputs: the plan's inputs by name, numbers in F32; its other fields are
 * ignored, and inputs that it lacks must be bound already. *answers: the outputs by name, with the rows of all
 * processes, or with `own` those of this one; the data is valid until the next run. */
att_status att_inference_run(att_inference *inference, const att_batch *inputs, int rows, att_batch *answers);

/* A batch in which one field has other rows. */
typedef struct att_replaced_batch {
    att_batch batch;
    const void *data[1 + ATT_MAX_TARGETS];
} att_replaced_batch;
/* rows: those of this process, of the field `name`, which is the first. Returns &replaced->batch. */
const att_batch *att_batch_replace(const att_batch *batch, const char *name, const void *rows,
                                   att_replaced_batch *replaced);

/* Whether all outputs of a sample are finite. Integers are. */
bool att_inference_is_finite(const att_batch *answers, int sample);

/* Returns ERR_MISMATCH if the transform's images do not have the shape of the model's input that is an image,
 * ERR_UNSUPPORTED if there is no such input. */
att_status att_inference_check_images(const att_model *model, const att_transform_options *transform);

/* Builds the model for images of this height and width, to run with the same weights. On success the caller owns
 * *sized. Errors: ERR_UNSUPPORTED if a parameter depends on the size, those of att_model_create(). */
att_status att_inference_resize(const att_model *model, const att_weights *weights, int height, int width,
                                att_model **sized);

/* Warns if the evaluation compared nothing, so that all its metrics are NaN, because no pixel of the masks has a class,
 * or no image a box that counts. Returns whether it did. */
bool att_evaluation_warn(const att_model *model, const att_evaluation *evaluation);

/* Returns the transform for evaluation with this preprocessing: resize and central crop as crop_mode and crop_pct say,
 * normalisation with mean and std, nothing random. */
ATT_FOR_LAB att_transform_options att_evaluate_transform(const att_preprocess *preprocess);

/* The same for a loader: with the crop mode "keep", sizes depend on the image. */
ATT_FOR_LAB att_transform_options att_evaluate_loading(const att_preprocess *preprocess);

/* The number of images that an evaluation runs at a time: at most batch_size, and 2^24 pixels in each process. */
ATT_FOR_LAB int att_evaluate_batch(const att_transform_options *transform, int batch_size, const att_comm *comm);

/* As att_network_evaluate(), for any model. options: NULL means the defaults. `result` may be NULL; *result is filled
 * on success only. Errors: ERR_STOPPED; ERR_ARGUMENT (an option of the task); ERR_MISMATCH if the transform's result
 * does not fit the model, or a target is impossible for it, such as a class outside the model's (for a model without a
 * head use `unlabelled`); ERR_ARGUMENT for an occluded square larger than the images, an epsilon outside 0..1,
 * and options that contradict each other; errors of reading images and real_labels. */
att_status att_evaluate(const att_model *model, att_weights *weights, const att_dataset *dataset,
                        const att_transform_options *transform, const att_evaluate_options *options,
                        att_evaluation *result);
/* The same in passes over photographs, which `passes` runs, checked by att_passes_check(). Each process runs
 * photographs of its own. Errors: also ERR_UNSUPPORTED for instruments, FGSM and an occluded square. */
att_status att_evaluate_in_passes(const att_model *model, const att_dataset *dataset, const att_passes *passes,
                                  const att_evaluate_options *options, att_evaluation *result);

#endif
