/* attscope/probe.h - a linear classifier on the features of a frozen network.
 *
 *     att_probe probe;
 *     if (att_embedding_probe(context, &train, NULL, &probe) == ATT_OK) {
 *         ... att_probe_classify(context, &probe, &tested, &result) ...
 *         att_probe_free(context, &probe);
 *     }
 */
#ifndef ATTSCOPE_PROBE_H
#define ATTSCOPE_PROBE_H

#include <attscope/embed.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_probe_options {
    double c;        /* > 0: C below; 0: chosen */
    double held_out; /* to choose C: share of the images of each class that are held out, above 0 and below 1 */
    int iterations;  /* most iterations of L-BFGS for each C */
    uint64_t seed;   /* chooses the images that are held out */
    att_progress_fn progress;
    void *progress_user;
} att_probe_options;
/* C is chosen, 0.2, 1000 iterations, seed 42, no progress. */
ATT_API att_probe_options att_probe_options_defaults(void);

/* One value of C that was tried. */
typedef struct att_probe_fit {
    double c;
    double top1;    /* of the images that were held out, in per cent */
    int iterations; /* of L-BFGS */
    bool converged; /* see att_probe */
} att_probe_fit;

enum { ATT_PROBE_MOST_FITS = 15 };
typedef struct att_probe {
    int classes, channels; /* classes: that occur in the training images */
    int32_t *numbers;      /* [classes], ascending: the number of each class */
    double *weights;       /* W [classes, channels] */
    double *biases;        /* b [classes] */
    double c;
    double objective; /* J of all training images */
    int iterations;
    bool converged;         /* no partial derivative of J is above 1e-4, the tolerance of scikit-learn */
    int64_t held_out_count; /* images that chose C; 0: C was given */
    att_probe_fit fits[ATT_PROBE_MOST_FITS]; /* the values of C that were tried, in this order */
    int fit_count;
} att_probe;

/* Fits multinomial logistic regression to the features f_i, flattened, and classes y_i of the n images of `train`:
 *
 *     J = |W|^2 / (2 C n) + 1/n sum_i -log softmax(W f_i + b)[y_i]
 *
 * C n J is what scikit-learn's LogisticRegression(C) minimises. (Of two classes it fits one vector instead of two; its
 * C is then twice this one.) The features are not scaled, as in the evaluation of CLIP. L-BFGS (Liu and Nocedal 1989;
 * liblbfgs, the last 10 steps) minimises J in f64, until |dJ| < 1e-7 max(1, |(W, b)|).
 *
 * If C is not given, it is chosen as in the evaluation of CLIP (Radford et al., ICML 2021, appendix A.3): of 10^-6,
 * 10^-4 .. 10^6 the one whose classifier has the best top-1 on the images that are held out; then of this one and of
 * both neighbours at half the distance, and so on down to eight values per decade. Of equal top-1 the smaller C wins.
 * All images of `train` are then fitted with it.
 *
 * options: NULL means the defaults. Progress: stage "probe", counted in values of C, and the loss J. On success the
 * caller frees *probe with att_probe_free(). Errors: ERR_ARGUMENT (an option outside its range; images without class;
 * fewer than two classes; nothing to hold out), ERR_NONFINITE (features, or J of features that are too large),
 * ERR_STOPPED, ERR_MEMORY, ERR_INTERNAL (L-BFGS). */
ATT_API ATT_MUST_CHECK att_status att_embedding_probe(att_context *context, const att_embedding *train,
                                                      const att_probe_options *options, att_probe *probe);
/* Frees the arrays and sets *probe to zero. */
ATT_API void att_probe_free(att_context *context, att_probe *probe);

/* Classifies images by the largest W f + b; of equal ones, the lower class number comes first. An image of a class that
 * the classifier lacks counts as wrong. Errors: ERR_ARGUMENT (no images; another number of channels; an image without
 * class), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_probe_classify(att_context *context, const att_probe *probe,
                                                     const att_embedding *tested, att_embedding_result *result);

#ifdef __cplusplus
}
#endif
#endif
