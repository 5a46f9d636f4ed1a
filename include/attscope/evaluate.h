/* attscope/evaluate.h - options and results of att_network_evaluate() (attscope/network.h), which evaluates a
 * network on a data set. */
#ifndef ATTSCOPE_EVALUATE_H
#define ATTSCOPE_EVALUATE_H

#include <attscope/comm.h>
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

enum { ATT_MOST_SCALES = 8 };
/* How a network that gives each pixel a class sees a photograph, as in mmsegmentation's tests: each scale is a pass
 * over the photograph; with `flips` each scale is two passes, the second one over the mirrored photograph. In a pass
 * the photograph is resized with its aspect ratio, as by ATT_CROP_KEEP, so that its longer and its shorter side are at
 * most int(longer scale) and int(shorter scale). With a stride it is cut into windows of the size of the network's
 * images: the first begins at row 0, the next `stride` rows below, and the last one ends with the photograph; columns
 * likewise. A photograph smaller than a window along an axis is filled up with 0: to a multiple of 32, or to the window
 * if its side is no multiple of 32. Without a stride the whole photograph is one image, filled up to multiples of 32:
 * the network must take images of any size.
 *
 * Logits are interpolated to the pixels of their window; where windows overlap, they are averaged; the result is
 * interpolated to the photograph's pixels. Several passes: the mean of their softmax is taken (attscope/task.h). A
 * pixel has the first class with the largest value. Interpolation is bilinear, as PyTorch's with align_corners false.
 *
 * mmsegmentation's own resizing of photographs has no antialiasing, and this one has. Version 1 of mmsegmentation,
 * other than version 0, multiplies the photograph's own sides by the scales.
 *
 * The logits of all passes over one photograph are in memory, of the size that the network gives them. */
typedef struct att_pass_options {
    int longer, shorter;            /* longer >= shorter; 0, 0: the sides of the network's images */
    int stride[2];                  /* rows and columns, 1 to the side of a window; 0, 0: no windows */
    double scales[ATT_MOST_SCALES]; /* above 0 */
    int scale_count;                /* 0: the scale 1 */
    bool flips;
    int batch_size; /* windows in a run; changes only speed and memory. 0: 8, in evaluations their batch_size */
} att_pass_options;

typedef struct att_evaluate_options {
    const att_option_values *task_options; /* options of the model's task, as in att_train_options */
    const char *backend;                   /* "cpu", "ref", "cuda"; NULL means "cpu" */
    att_precision precision;               /* ATT_MIXED needs less memory and, if att_context_has_bf16(), less time */
    int batch_size; /* most images per run; changes only speed and memory. Runs have fewer images if these have more
                       than 2^24 pixels in a process */
    int workers;    /* threads of the loader */
    /* Instruments made on the model's graph. Their figures are over the images of this call and of all earlier ones
     * since att_measure_clear(). NULL: none. */
    att_measure *measure;
    /* Called after each batch, when att_session_output() gives the outputs and probes of the batch's samples, such as
     * probes that a program added to the graph before. An error ends the evaluation. NULL: none. Several processes call
     * it for the same batches. */
    att_status (*observed)(void *user, att_session *session, const att_batch *batch);
    void *observed_user;
    /* Called at the end with the task's figures beside its metrics, such as the IoU of each class; they live as long as
     * the call. Not called if there are none. An error becomes that of the evaluation. NULL: nobody wants them. */
    att_status (*detailed)(void *user, const att_measurement *figures, int count);
    void *detailed_user;
    bool unlabelled;   /* do not read or check targets, and compute no metrics */
    bool skip_corrupt; /* leave images that cannot be decoded out of all figures, instead of failing */
    int64_t limit;     /* > 0: only so many images, evenly spread over the data set (att_loader_options.limit); not with
                          passes or images of several sizes (ERR_UNSUPPORTED) */
    /* As in att_loader_options. NULL: the log gets a warning for each such image. */
    att_status (*corrupt_found)(void *user, int64_t index, const char *reason);
    void *corrupt_user;
    /* Robustness. occlude: the centre occlude x occlude pixels of every image are black (0 before normalisation). fgsm:
     * epsilon of an attack by the fast gradient sign method, in units of pixels in [0, 1]: each image x becomes x +
     * epsilon sign(dL/dx), limited to [0, 1]; L is the task's loss, without label smoothing and, with `subset`,
     * only over the classes that compete (Goodfellow et al., ICLR 2015). The gradient is computed in the type of the
     * network, F32 or F64. Both 0: none. */
    int occlude;
    double fgsm;
    /* Which answers are right. subset: only the classes of the data set's images compete, as is usual for ImageNet-A
     * and ImageNet-R, which have 200 classes; logits of other classes are left out of softmax and ranks. real_labels:
     * path of ReaL's real.json (Beyer et al., 2020), which gives each validation image of ImageNet several right
     * classes or none: an answer is right if one of the first 1 or 5 classes is among them, and images without any are
     * left out of top-1 and top-5 (att_evaluation.judged counts the others). The loss, also that of FGSM, remains the
     * loss of the data set's label. NULL: none. Only for tasks with classes, and not both together. */
    bool subset;
    const char *real_labels;
    att_comm *comm; /* the processes that share the images: each makes the same call, and all get the same result as one
                       process alone; NULL: this one */
    const char *stage; /* att_progress.stage */
    att_progress_fn progress;
    void *progress_user;
} att_evaluate_options;
/* The task's default options, "cpu", ATT_FULL, 256 images, 4 workers, labelled, corrupt images fatal, stage "evaluate",
 * no progress. */
ATT_API att_evaluate_options att_evaluate_options_defaults(void);

typedef struct att_evaluation {
    int64_t count;      /* images evaluated */
    int64_t judged;     /* of these, the images with a right class; 0 if unlabelled, `count` without real_labels */
    int64_t corrupt;    /* images left out because they cannot be decoded */
    int64_t not_finite; /* images for which an output of the network is NaN or infinite */
    /* The task's metrics, in its order (att_task_info); NaN if unlabelled. For classification: "loss" is the mean of
     * -ln softmax(logits)_class, without smoothing. "top1" and "top5" are the percentages of images whose class has the
     * largest logit ("top1") or one of the five largest ("top5"). Of equal logits the lower class number comes first.
     * Images with a NaN among the logits count as wrong. */
    double metrics[ATT_MAX_METRICS];
    double images_per_second, wait_share; /* speed, and share of the time spent waiting for data */
} att_evaluation;

#ifdef __cplusplus
}
#endif
#endif
