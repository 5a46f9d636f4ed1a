/* attscope/evaluate.h - what a network says of images: of a whole data set, or of one. */
#ifndef ATTSCOPE_EVALUATE_H
#define ATTSCOPE_EVALUATE_H

#include <attscope/data.h>
#include <attscope/image.h>
#include <attscope/measure.h>
#include <attscope/models.h>
#include <attscope/plan.h>
#include <attscope/progress.h>
#include <attscope/task.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_evaluate_options {
    const att_option_values *task_options; /* as in att_train_options */
    const char *backend;                   /* "cpu", "ref" */
    att_precision precision;               /* ATT_MIXED pays where att_context_has_bf16() */
    int batch_size;                        /* images of one run; changes no figure but speed and memory */
    int workers;                           /* threads of the loader */
    att_measure *measure;                  /* made on the model's graph. Its figures are over the images of this call
                                              and of all earlier ones since att_measure_clear(). NULL: none */
    bool unlabelled;                       /* pay no attention to targets: any will do, and no figure is of them */
    bool skip_corrupt; /* leave images that cannot be decoded out of all figures instead of failing */
    /* As in att_loader_options; NULL: the log gets a warning for each. */
    att_status (*corrupt_found)(void *user, int64_t index, const char *reason);
    void *corrupt_user;
    const char *stage; /* of the progress */
    att_progress_fn progress;
    void *progress_user;
} att_evaluate_options;
/* The task's own options, "cpu", ATT_FULL, 256 images, 4 workers, labelled, corrupt images fatal, "evaluate", no
 * progress. */
ATT_API att_evaluate_options att_evaluate_options_defaults(void);

typedef struct att_evaluation {
    int64_t count;      /* images that figures are of */
    int64_t corrupt;    /* images left out */
    int64_t not_finite; /* images that the network answers with NaN or infinity among its logits or features */
    /* The task's metrics, in its order (att_task_info); NaN where unlabelled. Of classification: "loss", "top1",
     * "top5". "loss" is the mean of -ln softmax(logits)_class, without smoothing. "top1" and "top5" are the percentages
     * of images whose class has the largest logit, and is among the five largest. Of equal logits the lower class
     * number comes first. A row with NaN counts as wrong. */
    double metrics[ATT_MAX_METRICS];
    double images_per_second, wait_share;
} att_evaluation;

/* How a network wants its images when it is evaluated: centre crop of the middle, its mean and std. */
ATT_API att_transform_options att_evaluate_transform(const att_preprocess *preprocess);

/* Every image of the data set once. options: NULL means the defaults. *result is filled on success only; NULL: not
 * needed. Errors:
 * ERR_STOPPED; ERR_ARGUMENT (an option of the task); ERR_MISMATCH where the transform's result does not fit the model,
 * or a target is one that it cannot answer, as a class outside the model's (a model without a head has none:
 * `unlabelled` evaluates it); what reading the images gives. */
ATT_API att_status att_evaluate(const att_model *model, att_weights *weights, const att_dataset *dataset,
                                const att_transform_options *transform, const att_evaluate_options *options,
                                att_evaluation *result);

#ifdef __cplusplus
}
#endif
#endif
