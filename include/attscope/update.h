/* attscope/update.h - applies a gradient to weights: norm, clipping, optimiser, moving average. For programs that
 * train a graph of their own; att_train() (attscope/train.h) trains a network.
 *
 *     att_gradient_begin(gradient);
 *     att_session_accumulate(session, gradient, ...);     any number of times, from any number of sessions
 *     att_update_reduce(update, &norm);
 *     att_update_apply(update, &hyper);
 *
 * Each parameter can have its own factors of learning rate and weight decay, and can be frozen.
 */
#ifndef ATTSCOPE_UPDATE_H
#define ATTSCOPE_UPDATE_H

#include <attscope/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_update att_update;

/* How one parameter is updated. */
typedef struct att_parameter_rates {
    double lr;           /* factor of att_hyper.lr */
    double weight_decay; /* factor of att_hyper.weight_decay */
    bool frozen; /* never updated, and left out of the norm, the slots and the average; of a buffer: left out of the
                    average. att_plan_options.frozen also avoids computing its gradient; an att_gradient of
                    att_gradient_create() has memory for it in any case */
} att_parameter_rates;

typedef struct att_update_options {
    const char *backend;              /* name of the backend of the plans that compute the gradient */
    const char *optimizer;            /* "adamw", "adam" or "sgd" */
    const att_parameter_rates *rates; /* one for each parameter, in the order of att_weights_at(); of those of buffers
                                         only `frozen` counts. NULL: those of the declarations */
    bool ema; /* keep an exponential moving average of the weights in the slot "ema". The slot begins at zero: pass
                 ema_decay 0 with the first update, which then copies the weights. If several updates share weights,
                 only one of them may keep the average */
} att_update_options;

/* AdamW on "cpu", rates of the declarations, no average. */
ATT_API att_update_options att_update_options_defaults(void);

/* Creates an update that applies `gradient` to its weights. The optimiser's slots (and "ema") are added to the weights;
 * new slots are zero, and they stay if the call then fails. Slots of an earlier update with other frozen parameters are
 * replaced, so that this update can no longer be used. The average of a frozen parameter is the parameter itself.
 * `options` are only read during the call. The gradient must outlive the update. On success the caller owns *update.
 * Errors: ERR_UNSUPPORTED (the backend has no kernel, such as for F64 on "cpu"), ERR_NOT_FOUND (no such optimiser or
 * backend), ERR_MISMATCH (the weights are not in the backend's memory), ERR_ARGUMENT (rates that are negative or not
 * finite; more than 8 slots), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_update_create(att_gradient *gradient, const att_update_options *options,
                                                    att_update **update);
ATT_API void att_update_destroy(att_update **update);

/* Settings of one update. The optimiser ignores those that it does not use. */
typedef struct att_hyper {
    double lr, weight_decay;
    double momentum;          /* sgd */
    bool nesterov;            /* sgd */
    double beta1, beta2, eps; /* adamw, adam */
    double ema_decay;         /* ema = ema_decay ema + (1 - ema_decay) weights, with the updated weights */
    double clip_norm;         /* 0: no clipping; else the gradient is multiplied by min(1, clip_norm / (norm + 1e-6)) */
    int64_t update;           /* 1-based number of this update, for bias correction */
} att_hyper;

/* Computes the Euclidean norm of the whole gradient without frozen parameters and writes it to *norm (may be NULL).
 * Call it once before each att_update_apply(). Errors: ERR_ARGUMENT if nothing was added to the gradient since
 * att_gradient_begin(); ERR_NONFINITE if the norm is NaN or infinite. */
ATT_API att_status att_update_reduce(att_update *update, double *norm);

/* Changes the weights. Errors, which leave the weights unchanged: ERR_ARGUMENT if the gradient changed since
 * att_update_reduce(), hyper->update is less than 1, lr or weight_decay is not finite, clip_norm is negative or NaN, or
 * an average is kept and ema_decay is outside 0..1. */
ATT_API att_status att_update_apply(att_update *update, const att_hyper *hyper);

#ifdef __cplusplus
}
#endif
#endif
