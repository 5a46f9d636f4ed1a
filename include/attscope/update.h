/* attscope/update.h - what changes weights by their gradient: norm, clipping, optimiser, moving average.
 *
 *     att_gradient_begin(gradient);
 *     att_session_accumulate(session, gradient, ...);     any number of times, from any number of sessions
 *     att_update_reduce(update, &norm);
 *     att_update_apply(update, &hyper);
 *
 * Parameters with equal rates form a group; there may be any number of groups.
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
    double lr;           /* multiplies att_hyper.lr */
    double weight_decay; /* multiplies att_hyper.weight_decay */
    bool frozen;         /* never updated, and not part of the norm. With att_plan_options.frozen its gradient is
                            not computed either; the att_gradient has room for it all the same */
} att_parameter_rates;

/* The rates of a parameter's declaration: lr 1, weight_decay 1 where the declaration wants it and 0 elsewhere. */
ATT_API att_parameter_rates att_parameter_rates_defaults(const att_parameter_info *parameter);

typedef struct att_update_options {
    const char *backend;              /* of the plans that make the gradient */
    const char *optimizer;            /* name of an update operation: "adamw", "sgd" */
    const att_parameter_rates *rates; /* one for each parameter of the weights, in the order of att_weights_at(); those
                                         of buffers are ignored; NULL: those of the declarations */
    bool ema; /* keep a moving average of the weights in the slot "ema", which begins at zero: pass ema_decay 0 in the
                 first update, which copies the weights. There is one average for the weights: of several updates over
                 them only one may keep it, or it is averaged more than once */
} att_update_options;

/* AdamW on "cpu", rates of the declarations, no average. */
ATT_API att_update_options att_update_options_defaults(void);

/* Creates an update that applies `gradient` to its weights. Adds the optimiser's slots (and "ema") to the weights; new
 * slots are zero, and they stay if the call fails later. The gradient must outlive the update. options are only read
 * here. Errors: ERR_UNSUPPORTED (the backend has no kernel: weights in F64 on "cpu"), ERR_NOT_FOUND (no such optimiser
 * or backend), ERR_MEMORY, ERR_MISMATCH (a backend whose memory the weights are not in), ERR_ARGUMENT (rates that are
 * negative or not finite; more than 8 slots). */
ATT_API ATT_MUST_CHECK att_status att_update_create(att_gradient *gradient, const att_update_options *options,
                                                    att_update **update);
ATT_API void att_update_destroy(att_update **update);

/* What one update needs besides the gradient. Those that the optimiser does not use are ignored. */
typedef struct att_hyper {
    double lr, weight_decay;
    double momentum;          /* sgd */
    bool nesterov;            /* sgd */
    double beta1, beta2, eps; /* adamw */
    double ema_decay;         /* ema = ema_decay ema + (1 - ema_decay) weights, after the update */
    double clip_norm;         /* 0: none; otherwise the gradient is scaled by min(1, clip_norm / (norm + 1e-6)) */
    int64_t update;           /* 1-based count of updates, for bias correction */
} att_hyper;

/* *norm (may be NULL) is the Euclidean norm of the whole gradient. ERR_ARGUMENT where nothing was added to it;
 * ERR_NONFINITE where the norm is NaN or infinite: att_session_find_nonfinite() names the cause. */
ATT_API att_status att_update_reduce(att_update *update, double *norm);

/* Changes the weights. ERR_ARGUMENT where the gradient changed since att_update_reduce(), hyper->update is below 1, lr
 * or weight_decay is not finite, clip_norm is negative or NaN, or an average is kept and ema_decay is outside 0..1: the
 * weights are then as they were. */
ATT_API att_status att_update_apply(att_update *update, const att_hyper *hyper);

/* As att_session_profile() and its neighbours, for reductions and updates. */
ATT_API att_status att_update_profile(att_update *update, bool on);
ATT_API int att_update_profile_count(const att_update *update);
ATT_API att_profile_row att_update_profile_at(const att_update *update, int index);

#ifdef __cplusplus
}
#endif
#endif
