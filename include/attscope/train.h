/* attscope/train.h - training a network as timm's train.py does, and continuing one to the same bits. */
#ifndef ATTSCOPE_TRAIN_H
#define ATTSCOPE_TRAIN_H

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

/* An optimiser or schedule that --opt or --sched can name. */
typedef struct att_choice {
    const char *name, *summary;
} att_choice;
ATT_API int att_optimizer_count(void);
ATT_API att_choice att_optimizer_at(int index);
ATT_API int att_schedule_count(void);
ATT_API att_choice att_schedule_at(int index);

enum { ATT_MOST_MILESTONES = 8 };

/* Strings are only read during the call. The members up to `model_ema_decay` decide bits: a resume must give the
 * same ones. */
typedef struct att_train_options {
    const att_option_values *task_options; /* of the model's task (att_task_info); those that are missing, or all where
                                              NULL, have their defaults */
    const char *backend;                   /* "cpu", "ref" */
    att_precision precision;               /* ATT_MIXED pays where att_context_has_bf16(); checkpoints stay in f32 */
    uint64_t seed;                         /* of data order, augmentations, dropout and drop path */
    int lanes;      /* gradient lanes; 0: the context's threads, after a resume those of the checkpoint */
    int64_t memory; /* bytes for weights, optimiser, gradients, what is kept of a batch, and evaluation; images that are
                       read come on top. The more there is, the less is computed again; it decides no bit. 0: after a
                       resume what the checkpoint says, otherwise a fixed rule for each network. ERR_MEMORY, with the
                       least that works, where it is too little */
    int epochs;
    int batch_size;           /* images of one batch; an incomplete last batch of an epoch is dropped */
    int grad_accum_steps;     /* batches of one update; the last update of an epoch may have fewer */
    const char *optimizer;    /* att_optimizer_at() */
    double momentum;          /* sgd, momentum */
    double beta1, beta2, eps; /* adamw */
    double weight_decay;
    const char *weight_decay_on; /* "weights": not on norms, biases, position embedding and class token, as in timm;
                                    "all": on every parameter, as PyTorch's optimisers without groups */
    double clip_grad;            /* > 0: largest Euclidean norm of the whole gradient */
    double lr;                   /* 0: lr_base r, or lr_base sqrt r for adamw, r = batch_size grad_accum_steps / 256 */
    double lr_base;
    const char *schedule;  /* att_schedule_at() */
    bool sched_on_updates; /* the rate changes at every update instead of every epoch */
    int warmup_epochs;     /* linear from warmup_lr to lr; counted within `epochs` */
    double warmup_lr, min_lr;
    double decay_epochs, decay_rate;           /* step: lr decay_rate^floor(t / decay_epochs), t from the start */
    int decay_milestones[ATT_MOST_MILESTONES]; /* multistep, epochs in rising order: lr decay_rate^(how many are at
                                                  most t + 1), so that as in timm the rate falls one epoch (with
                                                  sched_on_updates: one update) before each */
    int decay_milestone_count;
    double mixup, cutmix;    /* alphas of data.h's mixing, off where 0. Where anything is mixed, the loss is that
                                of the mixed images */
    double cutmix_minmax[2]; /* sides of CutMix's box instead of its alpha; 0, 0: none */
    double mixup_prob, mixup_switch_prob;
    const char *mixup_mode; /* "batch", "pair", "elem" */
    int mixup_off_epoch;    /* from this epoch on nothing is mixed; 0: never */
    int aug_repeats;        /* images of an epoch come so often, from correspondingly fewer; 0, 1: once */
    bool model_ema;         /* keep an average of the weights; evaluation and the best epoch go by it */
    bool model_ema_warmup;  /* d = min(model_ema_decay, 1 - (1 + u)^(-2/3)), u finished updates before this one */
    double model_ema_decay; /* the first update copies the weights; then ema = d ema + (1 - d) weights */

    int workers;       /* threads of the loader; they change no bits */
    bool skip_corrupt; /* images that cannot be decoded are no error: training takes the next of the epoch's order in
                          their place, evaluation leaves them out of its figures */
    const char *eval_metric; /* one of the task's metrics: decides which epoch is best; NULL: the task's own choice */
    int log_interval;        /* updates between two ATT_EVENT_STEP */

    att_measure *measure;  /* made on the model's graph: observes the forward pass of every `measure_every`th update,
                              the first among them, as it is trained on; changes no bit. NULL: none */
    int64_t measure_every; /* at least 1 where there is a measure */

    const char *output;               /* folder for checkpoints, made if missing; NULL: none are written */
    int checkpoint_hist;              /* checkpoint-N files to keep, the best ones */
    int64_t checkpoint_every_updates; /* rewrite `last` after so many updates within an epoch; 0: after epochs only */
    const char *resume;               /* checkpoint to continue from; NULL: start from the weights as they are */

    const att_sink *sinks; /* each receives every event; they stay the caller's and are not closed */
    int sink_count;
    att_progress_fn progress; /* NULL: none */
    void *progress_user;
} att_train_options;

/* The task's own options and metric; timm's: batch 128, sgd (momentum 0.9, Nesterov), weight decay
 * 2e-5, lr_base 0.1, cosine over 300 epochs with 5 of warm-up from 1e-5, EMA off (0.9998), a step every 90 epochs
 * (milestones 90, 180, 270) by 0.1, ten checkpoints, log every 50 updates, seed 42, nothing mixed (for those who do:
 * probability 1, of CutMix 0.5, by batches) or repeated.
 */
ATT_API att_train_options att_train_options_defaults(void);

/* Whether images are mixed with each other. */
ATT_API bool att_train_mixes(const att_train_options *options);

typedef struct att_train_result {
    int epochs; /* finished, those before a resume included */
    int64_t updates;
    double train_loss;                    /* of the last epoch that this call finished; NaN: none */
    double eval[ATT_MAX_METRICS];         /* the task's metrics, likewise, in its order */
    double best_metric;                   /* NaN: none */
    int best_epoch;                       /* 0-based; -1: none */
    double images_per_second, wait_share; /* over this call's training: speed, and time spent waiting for data */
    int64_t train_corrupt, eval_corrupt;  /* images replaced and left out in the last epoch that this call finished */
} att_train_result;

/* The images of a training and how each set is made ready. eval may be NULL: nothing is evaluated. Sizes and channels
 * must be the model's (ERR_MISMATCH), targets such as it can answer: classes within its outputs (ERR_MISMATCH). All
 * must outlive the call. */
typedef struct att_train_data {
    const att_dataset *train, *eval;
    const att_transform_options *train_transform, *eval_transform;
} att_train_data;

/* Refuses what att_train() would refuse before its first update, as far as that does not depend on a checkpoint to
 * resume from: options, data, and the memory that training and evaluation take together. What `weights` holds does not
 * matter, so that it may be asked before they are drawn or read. */
ATT_API att_status att_train_check(const att_model *model, att_weights *weights, const att_train_data *data,
                                   const att_train_options *options);

/* Trains `weights` of `model`, which is in f32; the task adds the loss to a copy of its graph. Files in `output`:
 * last.safetensors after every epoch, checkpoint-N.safetensors (N: the 0-based epoch), model_best.safetensors; each is
 * replaced in one step. With no epochs, last.safetensors holds the weights as they were given.
 *
 * Events: ATT_EVENT_RUN_BEGIN (model, task, parameters, train_images, listing (att_dataset_listing() of these),
 * fingerprint, tokens of the network's attention where it has any, and the settings as texts; its epoch and step say
 * where a resumed training goes on, so that a log can drop what it has beyond); ATT_EVENT_STEP (loss, lr, grad_norm,
 * images_per_second, wait_share; loss is the mean over the update's images, and all concern that update);
 * ATT_EVENT_EPOCH (train_loss, the task's metrics as eval_loss, eval_top1, .., lr, images_per_second, wait_share; the
 * eval_ ones are of the averaged weights where there are any, and eval_plain_loss, .. are added then; left out where
 * nothing is evaluated; with skip_corrupt also train_corrupt and eval_corrupt, how many images were replaced and left
 * out); ATT_EVENT_WARNING for each image that cannot be decoded, once in a call (message, which names it and why; set:
 * "train", "eval"); ATT_EVENT_MEASURE (split = "train", images, without accuracy where images are mixed; the figures of
 * one update's images before that update, at the step that it made); ATT_EVENT_RUN_END (status, message). Nothing is
 * emitted before all arguments were found good.
 *
 * A resumed training gives the bits of one that never stopped: weights, optimiser, average, losses in the log. What
 * must agree for that is in the checkpoint; ERR_MISMATCH names the first difference.
 *
 * result may be NULL; otherwise it is filled on failure too, as far as the training came. Errors: ERR_ARGUMENT (an
 * option out of range; fewer images than one batch; a model that has a loss already); ERR_NOT_FOUND (optimizer,
 * schedule: with the nearest name); ERR_UNSUPPORTED (images are mixed, but the task's targets cannot be); ERR_NONFINITE
 * (loss or gradient: the message names the update, the first node and the last good checkpoint; weights are those
 * before that update. Or an evaluation: the epoch leaves no checkpoint and no event); ERR_STOPPED (progress asked to
 * stop: `last` was written after the update in progress); ERR_IO and what a sink answers. */
ATT_API att_status att_train(const att_model *model, att_weights *weights, const att_train_data *data,
                             const att_train_options *options, att_train_result *result);

#ifdef __cplusplus
}
#endif
#endif
