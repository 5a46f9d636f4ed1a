/* Linear classifiers on features: logistic regression. */
#include <attscope/probe.h>

#include <lbfgs.h>
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/core/threads.h"
#include "study/train/clock.h"

/* SLICES: parts of the images whose sums are computed one by one and added in order, so that results do not depend on
 * the number of threads. TILE: images whose logits are computed together. LANES: liblbfgs takes whole vectors only. */
enum { SLICES = 16, TILE = 4, LANES = 8, MEMORY = 10 };
static const double tolerance = 1e-7, converged_below = 1e-4;
/* Values of C are 10^(e / DECADE), LEAST <= e <= -LEAST. */
enum { DECADE = 8, LEAST = -6 * DECADE, COARSE = 2 * DECADE };

att_probe_options att_probe_options_defaults(void)
{
    return (att_probe_options){.held_out = 0.2, .iterations = 1000, .seed = 42};
}

/* Some images of an embedding. */
typedef struct part {
    int64_t *rows; /* ascending */
    int64_t count;
} part;

typedef struct fitting {
    att_context *context;
    const att_probe_options *options;
    const att_embedding *train;
    att_probe *probe;
    int32_t *classes; /* [train->count]: of each image, its place in probe->numbers */
    part all, fitted, held_out;
    double *now, *best; /* W and b: [channels + 1, classes], then 0 up to a whole vector */
    int size;           /* of these, with the zeros */
    double *sums;       /* [SLICES][size] */
    double losses[SLICES];
    double *logits; /* [SLICES][TILE][classes] */
    /* of the fit that runs */
    const part *images;
    const double *at; /* now, or a point that L-BFGS tries */
    double c, objective;
    int iterations;
    bool stopped;
    double started; /* of all fits */
} fitting;

/* --- the objective ------------------------------------------------------------------------------------------------ */

/* Logits of up to TILE images. tables: W and b as in `fitting`. */
static void find_logits(const double *tables, int classes, size_t channels, const float *const *rows, int count,
                        double *logits)
{
    for (int t = 0; t < count; t++)
        memcpy(logits + (ptrdiff_t)t * classes, tables + channels * (size_t)classes, (size_t)classes * sizeof *logits);
    for (size_t c = 0; c < channels; c++) {
        const double *row = tables + c * (size_t)classes;
        for (int t = 0; t < count; t++) {
            double *own = logits + (ptrdiff_t)t * classes;
            const double x = rows[t][c];
            for (int k = 0; k < classes; k++)
                own[k] += x * row[k];
        }
    }
}

/* Replaces logits by the derivatives of -log softmax(logits)[label], which it returns. */
static double differentiate(double *logits, int classes, int label)
{
    double largest = logits[0], sum = 0;
    for (int k = 1; k < classes; k++)
        largest = logits[k] > largest ? logits[k] : largest;
    const double own = logits[label] - largest;
    for (int k = 0; k < classes; k++) {
        logits[k] = exp(logits[k] - largest);
        sum += logits[k];
    }
    for (int k = 0; k < classes; k++)
        logits[k] /= sum;
    logits[label] -= 1;
    return log(sum) - own;
}

/* Adds the derivatives by W and b. */
static void add_derivatives(double *sums, int classes, size_t channels, const float *const *rows, int count,
                            const double *logits)
{
    for (size_t c = 0; c <= channels; c++) {
        double *row = sums + c * (size_t)classes;
        for (int t = 0; t < count; t++) {
            const double *own = logits + (ptrdiff_t)t * classes;
            const double x = c < channels ? rows[t][c] : 1;
            for (int k = 0; k < classes; k++)
                row[k] += x * own[k];
        }
    }
}

static void sum_slice(fitting *f, int slice)
{
    const int classes = f->probe->classes;
    const size_t channels = (size_t)f->probe->channels;
    const int64_t end = f->images->count * (slice + 1) / SLICES;
    double *sums = f->sums + (ptrdiff_t)slice * f->size, *logits = f->logits + (ptrdiff_t)slice * TILE * classes;
    memset(sums, 0, (size_t)f->size * sizeof *sums);
    f->losses[slice] = 0;
    for (int64_t i = f->images->count * slice / SLICES; i < end; i += TILE) {
        const float *rows[TILE];
        const int count = end - i < TILE ? (int)(end - i) : TILE;
        for (int t = 0; t < count; t++)
            rows[t] = f->train->values + (size_t)f->images->rows[i + t] * channels;
        find_logits(f->at, classes, channels, rows, count, logits);
        for (int t = 0; t < count; t++)
            f->losses[slice] +=
                differentiate(logits + (ptrdiff_t)t * classes, classes, f->classes[f->images->rows[i + t]]);
        add_derivatives(sums, classes, channels, rows, count, logits);
    }
}

static int threads_of(att_context *context)
{
    const int threads = att_context_threads(context);
    return threads < SLICES ? threads : SLICES;
}

static void sum_slices(void *user, int thread)
{
    fitting *f = user;
    for (int slice = thread; slice < SLICES; slice += threads_of(f->context))
        sum_slice(f, slice);
}

/* J, and its derivatives in `gradient`. */
static lbfgsfloatval_t evaluate(void *user, const lbfgsfloatval_t *tables, lbfgsfloatval_t *gradient, const int size,
                                const lbfgsfloatval_t step)
{
    fitting *f = user;
    const double n = (double)f->images->count, penalty = 1 / (f->c * n);
    const int weights = f->probe->channels * f->probe->classes;
    double loss = 0, square = 0;
    (void)step;
    f->at = tables;
    att_threads_run(f->context, threads_of(f->context), sum_slices, f);
    for (int slice = 0; slice < SLICES; slice++)
        loss += f->losses[slice];
    for (int i = 0; i < size; i++) {
        double sum = 0;
        for (int slice = 0; slice < SLICES; slice++)
            sum += f->sums[(ptrdiff_t)slice * size + i];
        gradient[i] = sum / n + (i < weights ? penalty * tables[i] : 0);
        square += i < weights ? tables[i] * tables[i] : 0;
    }
    return loss / n + penalty * square / 2;
}

/* --- one fit ------------------------------------------------------------------------------------------------------ */

static bool go_on(fitting *f, double objective)
{
    const att_progress progress = {.stage = "probe",
                                   .images_per_second = att_ratio(f->probe->fit_count, att_seconds_now() - f->started),
                                   .seconds_left = NAN,
                                   .loss = objective,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .others_share = NAN,
                                   .done = f->probe->fit_count,
                                   .total = f->options->c > 0 ? 1 : ATT_PROBE_MOST_FITS + 1,
                                   .unit = "fits"};
    return !att_stop_asked(f->context) &&
           (!f->options->progress || f->options->progress(f->options->progress_user, &progress));
}

static int after_iteration(void *user, const lbfgsfloatval_t *tables, const lbfgsfloatval_t *gradient,
                           const lbfgsfloatval_t objective, const lbfgsfloatval_t length,
                           const lbfgsfloatval_t gradient_length, const lbfgsfloatval_t step, int size, int iteration,
                           int evaluations)
{
    fitting *f = user;
    (void)tables, (void)gradient, (void)length, (void)gradient_length, (void)step, (void)size, (void)evaluations;
    f->iterations = iteration;
    f->stopped = !go_on(f, objective);
    return f->stopped;
}

/* Ends of L-BFGS after which the last point is of use. In a search that finds no better point, rounding decides. */
static bool is_usable(int result)
{
    static const int usable[] = {LBFGS_SUCCESS,
                                 LBFGS_STOP,
                                 LBFGS_ALREADY_MINIMIZED,
                                 LBFGSERR_ROUNDING_ERROR,
                                 LBFGSERR_MINIMUMSTEP,
                                 LBFGSERR_MAXIMUMLINESEARCH,
                                 LBFGSERR_WIDTHTOOSMALL,
                                 LBFGSERR_OUTOFINTERVAL,
                                 LBFGSERR_INCORRECT_TMINMAX,
                                 LBFGSERR_INCREASEGRADIENT,
                                 LBFGSERR_MAXIMUMITERATION};
    for (size_t i = 0; i < sizeof usable / sizeof *usable; i++)
        if (result == usable[i])
            return true;
    return false;
}

static att_status fail(const fitting *f, int result)
{
    if (f->stopped)
        return att_fail(f->context, ATT_ERR_STOPPED, "the linear classifier was not fitted to the end");
    if (result == LBFGSERR_OUTOFMEMORY)
        return att_fail_memory(f->context, (size_t)f->size * (2 * MEMORY + 5) * sizeof(double), "L-BFGS");
    return att_fail(f->context, ATT_ERR_INTERNAL, "L-BFGS failed with the code %d of liblbfgs at C = %g", result, f->c);
}

/* Minimises J of some images from f->now on. */
static att_status fit(fitting *f, const part *images, double c, att_probe_fit *fitted)
{
    lbfgs_parameter_t parameters;
    lbfgs_parameter_init(&parameters);
    parameters.m = MEMORY;
    parameters.epsilon = tolerance;
    parameters.max_iterations = f->options->iterations;
    f->images = images;
    f->c = c;
    f->iterations = 0;
    const int result = lbfgs(f->size, f->now, NULL, evaluate, after_iteration, f, &parameters);
    if (f->stopped || !is_usable(result))
        return fail(f, result);
    double *gradient, largest = 0;
    ATT_TRY(att_new(f->context, &gradient, (size_t)f->size, "derivatives"));
    f->objective = evaluate(f, f->now, gradient, f->size, 0);
    for (int i = 0; i < f->size; i++)
        largest = fabs(gradient[i]) > largest ? fabs(gradient[i]) : largest;
    att_free(f->context, gradient);
    if (!isfinite(f->objective))
        return att_fail(f->context, ATT_ERR_NONFINITE,
                        "the objective of the linear classifier is not finite at C = %g: the features are too large",
                        c);
    *fitted = (att_probe_fit){.c = c, .iterations = f->iterations, .converged = largest <= converged_below};
    return ATT_OK;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

typedef struct answers {
    att_context *context;
    const att_embedding *images;
    const int64_t *rows; /* NULL: all images */
    int64_t count;
    const int32_t *numbers; /* of the classes */
    const double *tables;   /* as in `fitting` */
    int classes;
    size_t channels;
    double *logits;           /* [SLICES][TILE][classes] */
    int64_t right[SLICES][2]; /* answers that are right, first and among the first five */
} answers;

/* Number of classes that come before the class with this number; -1: there is no such class. */
static int rank_of(const answers *a, const double *logits, int32_t number)
{
    int own = 0, rank = 0;
    while (own < a->classes && a->numbers[own] != number)
        own++;
    if (own == a->classes)
        return -1;
    for (int k = 0; k < a->classes; k++)
        rank += logits[k] > logits[own] || (logits[k] == logits[own] && k < own);
    return rank;
}

static void answer_slice(answers *a, int slice)
{
    double *logits = a->logits + (ptrdiff_t)slice * TILE * a->classes;
    const int64_t end = a->count * (slice + 1) / SLICES;
    for (int64_t i = a->count * slice / SLICES; i < end; i += TILE) {
        const float *rows[TILE];
        int64_t places[TILE];
        const int count = end - i < TILE ? (int)(end - i) : TILE;
        for (int t = 0; t < count; t++) {
            places[t] = a->rows ? a->rows[i + t] : i + t;
            rows[t] = a->images->values + (size_t)places[t] * a->channels;
        }
        find_logits(a->tables, a->classes, a->channels, rows, count, logits);
        for (int t = 0; t < count; t++) {
            const int rank = rank_of(a, logits + (ptrdiff_t)t * a->classes, a->images->labels[places[t]]);
            a->right[slice][0] += rank == 0;
            a->right[slice][1] += rank >= 0 && rank < 5;
        }
    }
}

static void answer_slices(void *user, int thread)
{
    answers *a = user;
    for (int slice = thread; slice < SLICES; slice += threads_of(a->context))
        answer_slice(a, slice);
}

static att_embedding_result judge(answers *a)
{
    int64_t first = 0, five = 0;
    att_threads_run(a->context, threads_of(a->context), answer_slices, a);
    for (int slice = 0; slice < SLICES; slice++) {
        first += a->right[slice][0];
        five += a->right[slice][1];
    }
    return (att_embedding_result){a->count, 100.0 * (double)first / (double)a->count,
                                  100.0 * (double)five / (double)a->count};
}

/* --- choosing C --------------------------------------------------------------------------------------------------- */

static double held_out_top1(const fitting *f)
{
    answers a = {.context = f->context,
                 .images = f->train,
                 .rows = f->held_out.rows,
                 .count = f->held_out.count,
                 .numbers = f->probe->numbers,
                 .tables = f->now,
                 .classes = f->probe->classes,
                 .channels = (size_t)f->probe->channels,
                 .logits = f->logits};
    return judge(&a).top1;
}

static double c_of(int exponent)
{
    return pow(10, (double)exponent / DECADE);
}

typedef struct choice {
    int exponent; /* of the best C so far */
    double top1;  /* -1: there is none */
} choice;

static att_status try_c(fitting *f, int exponent, choice *best)
{
    if (exponent < LEAST || exponent > -LEAST)
        return ATT_OK;
    att_probe_fit *tried = &f->probe->fits[f->probe->fit_count];
    ATT_TRY(fit(f, &f->fitted, c_of(exponent), tried));
    tried->top1 = held_out_top1(f);
    f->probe->fit_count++;
    if (tried->top1 > best->top1 || (tried->top1 == best->top1 && exponent < best->exponent)) {
        *best = (choice){exponent, tried->top1};
        memcpy(f->best, f->now, (size_t)f->size * sizeof *f->now);
    }
    return ATT_OK;
}

/* Each fit begins at the solution of the one before, or of the best C. */
static att_status choose_c(fitting *f, double *c)
{
    choice best = {.top1 = -1};
    for (int exponent = LEAST; exponent <= -LEAST; exponent += COARSE)
        ATT_TRY(try_c(f, exponent, &best));
    for (int distance = COARSE / 2; distance > 0; distance /= 2) {
        const int centre = best.exponent;
        for (int side = -1; side <= 1; side += 2) {
            memcpy(f->now, f->best, (size_t)f->size * sizeof *f->now);
            ATT_TRY(try_c(f, centre + side * distance, &best));
        }
    }
    memcpy(f->now, f->best, (size_t)f->size * sizeof *f->now);
    *c = c_of(best.exponent);
    return ATT_OK;
}

/* --- images and classes ------------------------------------------------------------------------------------------- */

static att_status check_labels(att_context *context, const att_embedding *images, const char *which)
{
    if (images->count < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "there are no %s images", which);
    for (int64_t i = 0; i < images->count; i++)
        if (images->labels[i] < 0)
            return att_fail(context, ATT_ERR_ARGUMENT, "image %lld of the %s images has no class", (long long)i, which);
    return ATT_OK;
}

static att_status check_options(att_context *context, const att_probe_options *options)
{
    if (!(options->c >= 0) || !isfinite(options->c))
        return att_fail(context, ATT_ERR_ARGUMENT, "C is %g, expected a number above 0, or 0: chosen", options->c);
    if (!(options->held_out > 0 && options->held_out < 1))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "the share of images that are held out is %g, expected above 0 and below 1", options->held_out);
    if (options->iterations < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "%d iterations, expected at least 1", options->iterations);
    return ATT_OK;
}

static att_status check_features(att_context *context, const att_embedding *train)
{
    const size_t channels = (size_t)att_shape_count(train->shape);
    for (size_t i = 0; i < (size_t)train->count * channels; i++)
        if (!isfinite(train->values[i]))
            return att_fail(context, ATT_ERR_NONFINITE, "the features of training image %lld are not finite",
                            (long long)(i / channels));
    return ATT_OK;
}

/* Numbers the classes that occur. */
static att_status number_classes(fitting *f)
{
    const att_embedding *train = f->train;
    int32_t most = 0, *places;
    for (int64_t i = 0; i < train->count; i++)
        most = train->labels[i] > most ? train->labels[i] : most;
    ATT_TRY(att_new(f->context, &places, (size_t)most + 1, "the classes of images"));
    for (int64_t i = 0; i < train->count; i++)
        places[train->labels[i]] = 1;
    att_status status = att_new(f->context, &f->probe->numbers, (size_t)most + 1, "the classes of images");
    for (int32_t number = 0; status == ATT_OK && number <= most; number++)
        if (places[number]) {
            places[number] = f->probe->classes;
            f->probe->numbers[f->probe->classes++] = number;
        }
    for (int64_t i = 0; status == ATT_OK && i < train->count; i++)
        f->classes[i] = places[train->labels[i]];
    att_free(f->context, places);
    if (status == ATT_OK && f->probe->classes < 2)
        status = att_fail(f->context, ATT_ERR_ARGUMENT, "the training images have one class, expected at least two");
    return status;
}

/* Marks the images of each class that are held out: the first ones in a random order, but not all. */
static att_status mark_held_out(const fitting *f, bool *held)
{
    int64_t *order, *left; /* left: images of each class that are still to be held out */
    const int64_t count = f->train->count;
    att_random random = att_random_from(att_random_key(f->options->seed, att_random_hash("probe"), 0));
    ATT_TRY(att_new(f->context, &order, (size_t)count, "an order of images"));
    att_status status = att_new(f->context, &left, (size_t)f->probe->classes, "images of classes");
    if (status == ATT_OK) {
        for (int64_t i = 0; i < count; i++)
            left[f->classes[i]]++;
        for (int k = 0; k < f->probe->classes; k++) {
            const int64_t wanted = llround(f->options->held_out * (double)left[k]);
            left[k] = wanted < left[k] ? wanted : left[k] - 1;
        }
        att_random_permutation(&random, order, count);
        for (int64_t i = 0; i < count; i++)
            held[order[i]] = left[f->classes[order[i]]]-- > 0;
    }
    att_free(f->context, left);
    att_free(f->context, order);
    return status;
}

static att_status split_images(fitting *f)
{
    bool *held;
    const size_t count = (size_t)f->train->count;
    ATT_TRY(att_new(f->context, &f->all.rows, count, "a list of images"));
    for (size_t i = 0; i < count; i++)
        f->all.rows[f->all.count++] = (int64_t)i;
    if (f->options->c > 0)
        return ATT_OK;
    ATT_TRY(att_new(f->context, &f->fitted.rows, count, "a list of images"));
    ATT_TRY(att_new(f->context, &f->held_out.rows, count, "a list of images"));
    ATT_TRY(att_new(f->context, &held, count, "a list of images"));
    const att_status status = mark_held_out(f, held);
    for (size_t i = 0; status == ATT_OK && i < count; i++) {
        part *to = held[i] ? &f->held_out : &f->fitted;
        to->rows[to->count++] = (int64_t)i;
    }
    att_free(f->context, held);
    f->probe->held_out_count = f->held_out.count;
    if (status == ATT_OK && f->held_out.count == 0)
        return att_fail(
            f->context, ATT_ERR_ARGUMENT,
            "the classes have too few training images to hold some out: give C, or hold out a larger share");
    return status;
}

static att_status make_room(fitting *f)
{
    const int classes = f->probe->classes, channels = f->probe->channels;
    const size_t size = ((size_t)(channels + 1) * (size_t)classes + LANES - 1) / LANES * LANES;
    if (size > INT32_MAX)
        return att_fail(f->context, ATT_ERR_ARGUMENT, "%d channels and %d classes are too many for a linear classifier",
                        channels, classes);
    f->size = (int)size;
    ATT_TRY(att_new(f->context, &f->now, size, "weights of a classifier"));
    ATT_TRY(att_new(f->context, &f->best, size, "weights of a classifier"));
    ATT_TRY(att_new(f->context, &f->sums, SLICES * size, "derivatives"));
    ATT_TRY(att_new(f->context, &f->logits, (size_t)SLICES * TILE * (size_t)classes, "scores of classes"));
    ATT_TRY(att_new(f->context, &f->probe->weights, (size_t)channels * (size_t)classes, "weights of a classifier"));
    return att_new(f->context, &f->probe->biases, (size_t)classes, "weights of a classifier");
}

/* --- the classifier ----------------------------------------------------------------------------------------------- */

/* Copies W and b to the layout of att_probe. */
static void keep(fitting *f, const att_probe_fit *last)
{
    att_probe *p = f->probe;
    for (int k = 0; k < p->classes; k++) {
        for (int c = 0; c < p->channels; c++)
            p->weights[(ptrdiff_t)k * p->channels + c] = f->now[(ptrdiff_t)c * p->classes + k];
        p->biases[k] = f->now[(ptrdiff_t)p->channels * p->classes + k];
    }
    p->c = last->c;
    p->objective = f->objective;
    p->iterations = last->iterations;
    p->converged = last->converged;
}

static att_status fit_all(fitting *f)
{
    att_probe_fit last;
    double c = f->options->c;
    ATT_TRY(check_options(f->context, f->options));
    ATT_TRY(check_labels(f->context, f->train, "training"));
    ATT_TRY(check_features(f->context, f->train));
    ATT_TRY(att_new(f->context, &f->classes, (size_t)f->train->count, "the classes of images"));
    ATT_TRY(number_classes(f));
    ATT_TRY(split_images(f));
    ATT_TRY(make_room(f));
    if (!(c > 0))
        ATT_TRY(choose_c(f, &c));
    ATT_TRY(fit(f, &f->all, c, &last));
    keep(f, &last);
    return ATT_OK;
}

att_status att_embedding_probe(att_context *context, const att_embedding *train, const att_probe_options *options,
                               att_probe *probe)
{
    const att_probe_options defaults = att_probe_options_defaults();
    att_probe made = {.channels = (int)att_shape_count(train->shape)};
    fitting f = {.context = context,
                 .options = options ? options : &defaults,
                 .train = train,
                 .probe = &made,
                 .started = att_seconds_now()};
    const att_status status = fit_all(&f);
    void *const owned[] = {f.classes, f.all.rows, f.fitted.rows, f.held_out.rows, f.now, f.best, f.sums, f.logits};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        att_free(context, owned[i]);
    if (status == ATT_OK)
        *probe = made;
    else
        att_probe_free(context, &made);
    return status;
}

void att_probe_free(att_context *context, att_probe *probe)
{
    att_free(context, probe->numbers);
    att_free(context, probe->weights);
    att_free(context, probe->biases);
    *probe = (att_probe){0};
}

att_status att_probe_classify(att_context *context, const att_probe *probe, const att_embedding *tested,
                              att_embedding_result *result)
{
    const int classes = probe->classes, channels = probe->channels;
    double *tables;
    answers a = {.context = context,
                 .images = tested,
                 .count = tested->count,
                 .numbers = probe->numbers,
                 .classes = classes,
                 .channels = (size_t)channels};
    ATT_TRY(check_labels(context, tested, "tested"));
    if (att_shape_count(tested->shape) != channels)
        return att_fail(context, ATT_ERR_ARGUMENT, "the features have %lld channels, and the classifier takes %d",
                        (long long)att_shape_count(tested->shape), channels);
    ATT_TRY(att_new(context, &tables, (size_t)(channels + 1) * (size_t)classes, "weights of a classifier"));
    const att_status status = att_new(context, &a.logits, (size_t)SLICES * TILE * (size_t)classes, "scores of classes");
    if (status == ATT_OK) {
        for (int k = 0; k < classes; k++) {
            for (int c = 0; c < channels; c++)
                tables[(ptrdiff_t)c * classes + k] = probe->weights[(ptrdiff_t)k * channels + c];
            tables[(ptrdiff_t)channels * classes + k] = probe->biases[k];
        }
        a.tables = tables;
        *result = judge(&a);
    }
    att_free(context, a.logits);
    att_free(context, tables);
    return status;
}
