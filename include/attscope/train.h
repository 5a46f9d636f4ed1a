/* attscope/train.h - trains a network as timm's train.py does, and resumes a training run with identical results. */
#ifndef ATTSCOPE_TRAIN_H
#define ATTSCOPE_TRAIN_H

#include <attscope/comm.h>
#include <attscope/data.h>
#include <attscope/event.h>
#include <attscope/measure.h>
#include <attscope/models.h>
#include <attscope/plan.h>
#include <attscope/progress.h>
#include <attscope/task.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATT_MOST_MILESTONES = 8 };

/* A network from whose answers another one learns (distillation; Hinton, Vinyals, Dean 2015). It may be of any family.
 * It must have the student's task, number of classes, channels and image size, which att_network_open() with the option
 * "img_size" gives to networks that can take it. */
typedef struct att_teacher {
    const att_model *model; /* its preprocessing is that of the teacher's images */
    att_weights *weights;
    const char *name; /* shown in messages and recorded, such as the path of the weights; NULL: the model's name */
} att_teacher;

/* Settings of a training run. Strings are only read during the call. The members from task_options to model_ema_decay,
 * except `memory`, determine the bits of the result: a resumed run must have the same. */
typedef struct att_train_options {
    const att_option_values *task_options; /* options of the model's task (att_task_info); missing ones, or all if NULL,
                                              have their defaults */
    const att_teacher *teacher;            /* the loss also learns from its answers, see att_train(); NULL: none */
    const char *backend;                   /* "cpu", "ref", "cuda" */
    att_precision precision; /* ATT_MIXED needs less memory and, if att_context_has_bf16(), less time. Checkpoints
                                are always f32 */
    uint64_t seed;           /* for the order of data, augmentations, dropout and drop path */
    int lanes;      /* gradient lanes of all processes together; 0: as many as they have threads, or after a resume the
                       checkpoint's */
    int64_t memory; /* bytes for weights, optimiser, gradients, activations of a batch, evaluation, and the teacher; the
                       loader's images need more. With more memory, fewer values are recomputed; the bits of the result
                       do not change. 0: after a resume the checkpoint's value, else a fixed rule for each network. If
                       it is too small: ERR_MEMORY, with the least that works */
    int epochs;
    int updates;    /* length of the training in updates of the weights, in place of `epochs`: the last epoch may end
                       early, and the rate changes at every update. 0: `epochs` counts */
    int eval_every; /* evaluate, record and write checkpoints after so many updates and at the end, in place of after
                       each epoch. 0: after each epoch */
    int batch_size; /* images per batch; the incomplete last batch of an epoch is dropped */
    int grad_accum_steps;     /* batches per update; the last update of an epoch may have fewer */
    const char *optimizer;    /* "sgd", "momentum", "adamw", "adam" */
    double momentum;          /* for sgd and momentum */
    double beta1, beta2, eps; /* for adamw */
    double weight_decay;
    const char *weight_decay_on; /* "weights": not for norms, biases, position embedding and class token, as in timm;
                                    "all": for every parameter, as PyTorch's optimisers without parameter groups */
    /* Layer-wise learning rates, as timm's: the rate of a parameter is multiplied by max(layer_decay_min_scale,
     * layer_decay^d), where d is the number of layers above its own. Layers: the stem, each residual block (with the
     * modules in it), and the head. A last norm belongs to the last block; ViT's fc_norm belongs to the head. */
    double layer_decay;              /* 0: the same rate for all parameters */
    double layer_decay_min_scale;    /* 0..1 */
    double layer_decay_no_opt_scale; /* parameters with a smaller factor are frozen, as by `freeze`; 0: none */
    double head_lr_mult; /* the learning rate of the head's parameters is multiplied by this, also with layer_decay */
    /* Patterns of parameters' names that stay as they are, separated by commas ("blocks.*,patch_embed.*"; '*' stands
     * for any characters, '?' for one); NULL: none. See att_train(), "Frozen parts". */
    const char *freeze;
    double clip_grad; /* largest Euclidean norm of the whole gradient; 0: no clipping */
    double lr;        /* 0: lr_base r, or for adamw lr_base sqrt r, with r = batch_size grad_accum_steps / 256 */
    double lr_base;
    const char *schedule;  /* "cosine", "poly", "step", "multistep", "constant", "none" */
    bool sched_on_updates; /* change the rate at every update instead of every epoch */
    int warmup_epochs;     /* linear from warmup_lr to lr; these epochs count in `epochs` */
    int warmup_updates;    /* updates of the warm-up, in place of warmup_epochs; the rate then changes at every update.
                              0: warmup_epochs counts */
    double warmup_lr, min_lr;
    double poly_power; /* poly: min_lr + (lr - min_lr) (1 - (t - w) / (T - w))^poly_power, t of T epochs or updates
                          after the start, w of them warm-up (mmsegmentation's LinearLR followed by PolyLR; timm's poly
                          counts from the start of the warm-up) */
    double decay_epochs, decay_rate; /* step: lr decay_rate^floor(t / decay_epochs), t epochs after the start */
    int decay_milestones[ATT_MOST_MILESTONES]; /* multistep, increasing epochs: lr decay_rate^(number of milestones <= t
                                                  + 1). As in timm, the rate falls one epoch (one update with
                                                  sched_on_updates) before each milestone */
    int decay_milestone_count;
    double mixup, cutmix;    /* alphas (att_mix_options); 0: off. The loss is that of the mixed images */
    double cutmix_minmax[2]; /* range of the sides of CutMix's box, instead of its alpha; 0, 0: not used */
    double mixup_prob, mixup_switch_prob;
    const char *mixup_mode; /* "batch", "pair", "elem" */
    int mixup_off_epoch;    /* no mixing from this epoch on; 0: never ends */
    int aug_repeats;        /* repeated augmentation (att_loader_options.repeats); 0, 1: off */
    bool model_ema;         /* keep a moving average of the weights; evaluation and the best epoch use it */
    bool model_ema_warmup;  /* use d = min(model_ema_decay, 1 - (1 + u)^(-2/3)); u: updates finished before this one */
    double model_ema_decay; /* d: ema = d ema + (1 - d) weights. The first update copies the weights */

    int workers;       /* threads of the loader; they change no bits of the result */
    bool skip_corrupt; /* images that cannot be decoded are not an error: training replaces each by the next image of
                          the epoch's order, evaluation leaves them out of its figures */
    const char *eval_metric; /* metric of the task that determines the best epoch, by name or label, in capitals or not;
                                NULL: the task's own choice */
    int log_interval;        /* updates between two events ATT_EVENT_STEP */

    /* Instruments made on the model's graph. They observe the forward pass of every `measure_every`-th training update,
     * beginning with the first, and change no bit of the result. NULL: none. */
    att_measure *measure;
    int64_t measure_every; /* at least 1 */
    /* Raise alerts, by the figures of the instruments entropy, residual, nsi and jacobian, as far as `measure` has
     * them:
     *
     *   entropy collapse   the mean entropy of a layer is below 10 % of its bound
     *   rank collapse      |res(X)|_F / |X|_F after a residual addition is below 0.02
     *   stiffness spike    zeta (reading unit) of an addition is at least max(mu (1 + M1), M2) with M1 = M2 = 1, mu the
     *                      mean over all additions (stiff at M, Huang et al., ICCV 2023), and at least 4 times the
     *                      median of its last 8 measurements (of 3, at least)
     *   dead head          1 - sum_j a_j^2, the nuclear norm of the softmax Jacobian, is below 0.01
     *
     * The first and the last need 4 keys. All thresholds, M1 and M2 are ours; the quantities are those of Zhai et al.
     * (ICML 2023), Dong et al. (ICML 2021), Huang et al., and Hyeon-Woo et al. (ICCV 2023). An alert is raised when its
     * rule begins to hold. Checkpoints say which rules hold, so that a resume does not raise them again. */
    bool alert;

    att_comm *comm; /* the processes that train together, see att_train(); NULL: this one alone */
    bool sync_bn;   /* batch norm takes its statistics over the samples of all processes, which gives the bits of one
                       process; false: each process takes them over its own samples */

    const char *output;               /* folder for checkpoints, created if missing; NULL: none are written */
    int checkpoint_hist;              /* number of checkpoint-N files to keep, the best ones */
    int64_t checkpoint_every_updates; /* also write last.safetensors after so many updates within an epoch; 0: only
                                         after epochs */
    const char *resume;               /* path of the checkpoint to resume from; NULL: start from the given weights */

    const att_sink *sinks; /* each receives every event; they stay the caller's and are not closed */
    int sink_count;
    att_progress_fn progress; /* NULL: none */
    void *progress_user;
} att_train_options;

/* The defaults are timm's, and those of the flags: attscope train --help lists them. The task has its own default
 * options and metric. */
ATT_API att_train_options att_train_options_defaults(void);

typedef struct att_train_result {
    int epochs; /* finished epochs, including those before a resume */
    int64_t updates;
    double train_loss;                    /* mean loss of the updates before the last ATT_EVENT_EPOCH of this call; NaN:
                                             there was none */
    double eval[ATT_MAX_METRICS];         /* metrics of that event, in the task's order; NaN: none */
    double best_metric;                   /* NaN: none */
    int best_epoch;                       /* 0-based epoch of the best evaluation; -1: none */
    int64_t best_update;                  /* updates done at the best evaluation; -1: none */
    double images_per_second, wait_share; /* speed, and share of the time spent waiting for data, in this call */
    double measure_share;                 /* share of the updates' time that instruments took; NaN: cannot be told */
    double teacher_share;                 /* share of the time in which the teacher computed; NaN: no teacher */
    int64_t train_corrupt, eval_corrupt;  /* images replaced in training and left out in evaluation, up to the last
                                             ATT_EVENT_EPOCH of this call */
} att_train_result;

/* The data of a run and its transforms. eval may be NULL: no evaluation. Sides and channels of the transforms must
 * be those of the model, and the targets must be possible for it, such as classes within its outputs (ERR_MISMATCH).
 * All objects must outlive the call. */
typedef struct att_train_data {
    const att_dataset *train, *eval;
    const att_transform_options *train_transform, *eval_transform;
} att_train_data;

/* Trains `weights` of `model`, which must be in f32. The loss of the model's task is added to a copy of its graph.
 * Files in `output`, each written atomically: last.safetensors after every epoch; checkpoint-N.safetensors (N: 0-based
 * epoch); model_best.safetensors. With `epochs` 0, last.safetensors holds the given weights. With `eval_every` these
 * files are written after every evaluation, and N is the number of updates done.
 *
 * Events, none of which is emitted before all arguments have been checked:
 *
 *   ATT_EVENT_RUN_BEGIN   model, task, parameters, train_images, epoch_images and epoch_updates (the images in the
 *                         complete batches of an epoch, and its updates; with aug_repeats an image counts once for
 *                         each of its repeats), listing (a hash of the names and classes of the training images),
 *                         fingerprint, tokens (if the network has attention), teacher (if there is one), and the
 *                         settings as texts, of which `epochs` and `updates` are those of the whole run. The
 *                         event's epoch and step say where a resumed run continues; unevaluated is 1 if there are
 *                         updates that no ATT_EVENT_EPOCH has covered (att_store_resume)
 *   ATT_EVENT_STEP        loss (mean over the update's images), lr, grad_norm, images_per_second, wait_share;
 *                         teacher_share, the part of the time in which the teacher computed, if there is one
 *   ATT_EVENT_EPOCH       after each epoch, or each `eval_every` updates, and at the end: train_loss, lr,
 *                         images_per_second, wait_share; with a teacher teacher_share; all of the updates since the
 *                         previous such event. After an evaluation also the task's metrics as eval_loss, eval_top1,
 *                         ...: of the moving average of the weights if one is kept, followed by those of the plain
 *                         weights as eval_plain_loss, ... With skip_corrupt also train_corrupt and eval_corrupt
 *                         (numbers of images replaced and left out)
 *   ATT_EVENT_WARNING     for each image that cannot be decoded, once per call: message (image and reason), set
 *                         ("train", "eval")
 *   ATT_EVENT_MEASURE     split = "train", images, and the figures of the images of one update, computed with the
 *                         weights before that update; the event's step counts that update. Without accuracy if images
 *                         are mixed
 *   ATT_EVENT_ALERT       after ATT_EVENT_MEASURE, with `alert`: message, set = "train", rule, node, value, threshold,
 *                         and head if it is about a single head
 *   ATT_EVENT_RUN_END     status, message
 *
 * With a teacher, each image of a batch, augmented and mixed, is also the teacher's: its channels are transformed from
 * the mean and std of the training's transform to those of the teacher. The teacher runs as in an evaluation, with the
 * training's precision and threads, and each process runs it for its own images. Its weights do not change. The task's
 * loss reads its answer (att_task_add_loss()), and its options say how.
 *
 * Frozen parts: with `freeze`, parameters whose names match are not trained. Parts of the network without other
 * parameters run as in inference, without dropout and drop path, and batch norm uses its running statistics and does
 * not change them (att_plan_options.frozen says which parts these are); patterns may name running statistics alone.
 * Frozen parameters need no memory for gradients and the optimiser, and no backward pass is computed before the first
 * trained parameter. If images come again with the same pixels - no random crop, augmentation or mixing, but flips are
 * possible - what the frozen part before the first trained parameter computes is kept in memory for each image (and
 * flip) and computed once, if it fits into `memory` and the context's limit; the log says whether it does. That changes
 * no bit. Updates that instruments observe compute it.
 *
 * A resumed run gives the same bits as one that was not interrupted: weights, optimiser, moving average, logged
 * losses. The checkpoint records the settings that must agree; ERR_MISMATCH names the first that differs. The teacher
 * must have the same weights and preprocessing; its name may differ.
 *
 * Several processes (`comm`): each calls att_train() with the same model, weights, data and options. Images, threads
 * and memory may be spread over machines; each process reads the data and the checkpoint to resume from by the same
 * paths. The processes compare their settings, the names of the images, the pixels of eight of them, and the weights
 * first (ERR_MISMATCH names the first difference and the process). Each then trains on its share of every batch, and
 * all have the same weights after every update. Only rank 0 writes files and sends events. `progress` is called in
 * every process, and each of them can stop the training.
 *
 * The results, bit for bit, and the checkpoints do not depend on how many processes share the lanes, except for
 * networks with batch norm without sync_bn: there each process normalises by the statistics of its own samples, as
 * PyTorch's DistributedDataParallel does, evaluation uses the running statistics of rank 0, and the log reports it.
 *
 * If a process fails alone, for example because its disk is full, the others wait for it: end them by att_comm_abort().
 *
 * result may be NULL; after a failure it describes the training up to that point. Errors: ERR_ARGUMENT (an option out
 * of range or unknown; fewer images than one batch; a model that has a loss already); ERR_UNSUPPORTED (mixing images
 * although the task's targets cannot be mixed; a teacher although the task does not support it); ERR_MISMATCH (also a
 * teacher that does not fit the network); ERR_NONFINITE (a loss or gradient: the message names the update, the first
 * node and the last good checkpoint, and the weights are those before that update; or an evaluation: the epoch writes
 * no checkpoint and no event); ERR_STOPPED (requested by `progress`: last.safetensors was written after the update in
 * progress); ERR_IO; errors of a sink.
 */
ATT_API att_status att_train(const att_model *model, att_weights *weights, const att_train_data *data,
                             const att_train_options *options, att_train_result *result);

#ifdef __cplusplus
}
#endif
#endif
