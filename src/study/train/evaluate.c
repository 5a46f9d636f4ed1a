#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/evaluate.h>

#include "base/comm/comm.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "data/dataset.h"
#include "data/label_sets.h"
#include "data/transform.h"
#include "networks/models/family.h"
#include "study/measure/study.h"
#include "study/train/attack.h"
#include "study/train/clock.h"
#include "study/train/inference.h"
#include "study/train/preview.h"
#include "study/train/processes.h"

att_evaluate_options att_evaluate_options_defaults(void)
{
    return (att_evaluate_options){.backend = "cpu", .batch_size = 256, .workers = 4, .stage = "evaluate"};
}

att_transform_options att_evaluate_transform(const att_preprocess *preprocess)
{
    att_transform_options options =
        att_transform_options_defaults(preprocess->height, preprocess->width, preprocess->in_chans);
    options.crop = strcmp(preprocess->crop_mode, "squash") == 0   ? ATT_CROP_SQUASH
                   : strcmp(preprocess->crop_mode, "border") == 0 ? ATT_CROP_BORDER
                   : strcmp(preprocess->crop_mode, "keep") == 0   ? ATT_CROP_KEEP
                   : strcmp(preprocess->crop_mode, "within") == 0 ? ATT_CROP_WITHIN
                   : strcmp(preprocess->crop_mode, "floor") == 0  ? ATT_CROP_FLOOR
                                                                  : ATT_CROP_CENTER;
    options.crop_pct = preprocess->crop_pct;
    options.interpolation = strcmp(preprocess->interpolation, "bilinear") == 0         ? ATT_BILINEAR
                            : strcmp(preprocess->interpolation, "nearest") == 0        ? ATT_NEAREST
                            : strcmp(preprocess->interpolation, "bilinear_float") == 0 ? ATT_BILINEAR_FLOAT
                            : strcmp(preprocess->interpolation, "bicubic_float") == 0  ? ATT_BICUBIC_FLOAT
                            : strcmp(preprocess->interpolation, "bilinear_plain") == 0 ? ATT_BILINEAR_PLAIN
                                                                                       : ATT_BICUBIC;
    /* Images with one channel use the first channel's values for all three. */
    for (int c = 0; c < 3; c++) {
        options.mean[c] = preprocess->mean[c < preprocess->in_chans ? c : 0];
        options.std[c] = preprocess->std[c < preprocess->in_chans ? c : 0];
    }
    return options;
}

att_transform_options att_evaluate_loading(const att_preprocess *preprocess)
{
    att_transform_options options = att_evaluate_transform(preprocess);
    if (options.crop == ATT_CROP_KEEP || options.crop == ATT_CROP_WITHIN)
        options.height = options.width = 0;
    return options;
}

enum { REASON = 512 };
/* What became of a photograph, as the other processes learn it. */
typedef struct outcome {
    int64_t index;
    int32_t status;
    bool left_out; /* because it cannot be decoded or resized */
    char reason[REASON];
} outcome;

typedef struct evaluator {
    att_context *context;
    const att_evaluate_options *options;
    const att_task *task;
    att_task_settings settings;
    att_field fields[ATT_MAX_TARGETS];
    void *state;     /* state of the task's metrics */
    bool *competing; /* [classes]; NULL: all */
    att_label_sets real;
    const att_model *model;
    att_weights *weights;
    att_model *sized; /* the network for the size of the images; NULL: the model itself */
    att_inference inference;
    const char *image; /* name of the input that is an image */
    att_transform_options transform;
    int batch_size; /* at most that of the options */
    att_attack attack;
    att_processes processes;
    const att_passes *passes; /* NULL: a loader makes each image once */
    outcome *outcomes;        /* [processes] */
    att_loader *loader;
    double started;
    int64_t images;                    /* of the data set */
    int64_t count, judged, not_finite; /* evaluated images; those with a right class; those with a NaN or infinite
                                          output */
    int64_t corrupt;                   /* passes: images left out */
} evaluator;

static bool is_judged(const evaluator *e, int64_t image)
{
    const att_label_sets *real = e->settings.real;
    return !e->options->unlabelled && (!real || real->first[image + 1] > real->first[image]);
}

/* The samples of this process alone. */
static att_batch own_samples(const att_batch *batch)
{
    att_batch own = *batch;
    own.count = batch->rows;
    own.first_row = 0;
    own.indices = batch->indices + batch->first_row;
    return own;
}

static att_status observe_batch(evaluator *e, const att_batch *batch, const att_batch *answers)
{
    const att_batch observed = e->inference.own ? own_samples(batch) : *batch;
    for (int i = 0; i < answers->count; i++)
        e->not_finite += !att_inference_is_finite(answers, i);
    for (int i = 0; i < batch->count; i++)
        e->judged += is_judged(e, batch->indices[i]);
    e->count += batch->count;
    return e->options->unlabelled ? ATT_OK : e->task->observe(e->context, e->state, &e->settings, &observed, answers);
}

/* Adds up what the processes counted in their own samples. */
static att_status add_counts(evaluator *e)
{
    int64_t *values, count;
    if (!e->inference.own && !e->passes)
        return ATT_OK;
    ATT_TRY(att_processes_sum(&e->processes, &e->not_finite, 1));
    if (e->options->unlabelled)
        return ATT_OK;
    ATT_TRY(e->task->counts(e->context, e->state, &e->settings, &values, &count));
    return att_processes_sum(&e->processes, values, count);
}

static att_status tell_details(evaluator *e)
{
    const att_measurement *figures;
    int count;
    if (!e->task->details || !e->options->detailed || e->options->unlabelled)
        return ATT_OK;
    ATT_TRY(e->task->details(e->context, e->state, &e->settings, &figures, &count));
    return count > 0 ? e->options->detailed(e->options->detailed_user, figures, count) : ATT_OK;
}

/* The mean loss so far; NaN if the task has no metric "loss". */
static double loss_so_far(const evaluator *e)
{
    double values[ATT_MAX_METRICS];
    int loss = att_task_metric(&e->task->info, "loss");
    if (loss < 0)
        return NAN;
    e->task->report(e->state, values);
    return values[loss];
}

/* done: batches so far, of `batches`; seen: their images, with those that were left out. Returns whether to go on. */
static bool tell(const evaluator *e, int64_t done, int64_t batches, int64_t seen)
{
    if (!e->options->progress)
        return true;
    double elapsed = att_seconds_now() - e->started;
    att_progress progress = {.stage = e->options->stage,
                             .batch = done,
                             .batches = batches,
                             .done = seen < e->images ? seen : e->images,
                             .total = e->images,
                             .images_per_second = att_ratio((double)e->count, elapsed),
                             .seconds_left = elapsed / (double)done * (double)(batches - done),
                             .loss = loss_so_far(e),
                             .lr = NAN};
    att_processes_describe(&e->processes, &progress);
    return e->options->progress(e->options->progress_user, &progress);
}

static att_status report_progress(evaluator *e, int64_t done, int64_t batches, int64_t seen)
{
    bool stop = !tell(e, done, batches, seen);
    ATT_TRY(att_processes_meet(&e->processes, &stop));
    if (!stop)
        return ATT_OK;
    return att_fail(e->context, ATT_ERR_STOPPED, "the evaluation was stopped on request after %lld images",
                    (long long)e->count);
}

/* Runs the network on the batch, or on its adversarial images. */
static att_status answer(evaluator *e, const att_batch *batch, att_batch *answers)
{
    att_replaced_batch attacked;
    const void *images;
    if (e->options->fgsm > 0) {
        ATT_TRY(att_attack_run(&e->attack, batch, &images));
        batch = att_batch_replace(batch, e->image, images, &attacked);
    }
    return att_inference_run(&e->inference, batch, batch->rows, answers);
}

static att_status open_inference(evaluator *e, const att_model *model)
{
    att_inference_options inference = {.backend = e->options->backend ? e->options->backend : "cpu",
                                       .precision = e->options->precision,
                                       .max_batch = e->batch_size,
                                       .comm = e->options->comm,
                                       .outputs = e->task->observed,
                                       .own = e->task->counts,
                                       .probes = e->options->measure || e->options->observed ? "*" : NULL};
    return att_inference_create(att_model_graph(model), e->weights, &inference, &e->inference);
}

static void close_inference(evaluator *e)
{
    att_inference_free(&e->inference);
    att_model_destroy(&e->sized);
}

/* Compiles the network for the batch's size of images. They come size after size, so that earlier ones are not needed
 * again. */
static att_status take_size(evaluator *e, const att_batch *batch)
{
    const int64_t *sides = batch->fields[0].shape.dims;
    if (e->sized) {
        const att_shape own = att_model_image(e->sized).field.shape;
        if (own.dims[0] == sides[0] && own.dims[1] == sides[1])
            return ATT_OK;
    }
    close_inference(e);
    ATT_TRY(att_inference_resize(e->model, e->weights, (int)sides[0], (int)sides[1], &e->sized));
    return open_inference(e, e->sized);
}

static att_status run(evaluator *e, const att_dataset *dataset)
{
    att_batch batch, answers;
    e->started = att_seconds_now();
    att_processes_begin(&e->processes);
    if (e->options->measure)
        att_measure_tell(e->options->measure, e->options->progress, e->options->progress_user);
    ATT_TRY(att_preview(&e->inference, e->image, dataset, &e->transform, e->options));
    ATT_TRY(att_loader_start(e->loader, 0, 0));
    for (;;) {
        ATT_TRY(att_loader_next(e->loader, &batch));
        if (batch.count == 0)
            return ATT_OK;
        if (att_transform_varies(&e->transform))
            ATT_TRY(take_size(e, &batch));
        ATT_TRY(answer(e, &batch, &answers));
        if (e->options->measure)
            ATT_TRY(att_measure_observe(e->options->measure, e->inference.session, batch.count,
                                        att_task_classes(e->task, &batch)));
        if (e->options->observed)
            ATT_TRY(e->options->observed(e->options->observed_user, e->inference.session, &batch));
        ATT_TRY(observe_batch(e, &batch, &answers));
        ATT_TRY(report_progress(e, batch.number + 1, att_loader_batches(e->loader),
                                e->count + att_loader_describe(e->loader).corrupt));
    }
}

/* --- passes over photographs -------------------------------------------------------------------------------------- */

/* Classifies the pixels of a photograph and observes them. */
static att_status observe_photograph(evaluator *e, const att_image *photograph, int64_t index)
{
    att_mask classes;
    bool finite;
    ATT_TRY(att_passes_classify(e->context, e->passes, photograph, &classes, &finite));
    att_status status = ATT_OK;
    if (!e->options->unlabelled)
        status = e->task->observe_pixels(e->context, e->state, &e->settings, index, &classes);
    att_mask_free(e->context, &classes);
    e->not_finite += status == ATT_OK && !finite;
    return status;
}

/* Messages name the photograph. */
static att_status see(evaluator *e, const att_dataset *dataset, int64_t index)
{
    att_image photograph;
    char name[ATT_DATA_MAX_NAME];
    ATT_TRY(att_dataset_read(dataset, e->context, index, e->transform.channels, &photograph));
    att_status status = observe_photograph(e, &photograph, index);
    att_image_free(e->context, &photograph);
    if (status != ATT_OK &&
        !strstr(att_context_message(e->context), att_dataset_name(dataset, index, name, sizeof name)))
        return att_fail(e->context, status, "%s: %s", name, att_context_message(e->context));
    return status;
}

/* Sees the photograph whose turn it is in this process. */
static void take_turn(evaluator *e, const att_dataset *dataset, outcome *own)
{
    const att_status status = own->index < e->images ? see(e, dataset, own->index) : ATT_OK;
    own->status = (int32_t)status;
    own->left_out = e->options->skip_corrupt && (status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED);
    snprintf(own->reason, sizeof own->reason, "%s", status == ATT_OK ? "" : att_context_message(e->context));
}

static att_status report_left_out(evaluator *e, const outcome *it)
{
    e->corrupt++;
    if (e->options->corrupt_found)
        return e->options->corrupt_found(e->options->corrupt_user, it->index, it->reason);
    att_log(e->context, ATT_LOG_WARNING, "image left out: %s", it->reason);
    return ATT_OK;
}

/* Counts the photographs of all processes. */
static att_status take_outcomes(evaluator *e, int processes, int rank)
{
    const att_status own = (att_status)e->outcomes[rank].status;
    if (own != ATT_OK && !e->outcomes[rank].left_out)
        return att_fail(e->context, own, "%s", e->outcomes[rank].reason);
    for (int i = 0; i < processes; i++) {
        const outcome *it = &e->outcomes[i];
        if (it->status != ATT_OK && !it->left_out)
            return att_fail(e->context, (att_status)it->status, "rank %d on %s: %s", i,
                            att_comm_host(e->options->comm, i), it->reason);
        if (it->left_out)
            ATT_TRY(report_left_out(e, it));
        const bool seen = it->status == ATT_OK && it->index < e->images;
        e->count += seen;
        e->judged += seen && is_judged(e, it->index);
    }
    return ATT_OK;
}

/* In each round every process sees one photograph. */
static att_status run_passes(evaluator *e, const att_dataset *dataset)
{
    const int processes = att_comm_size(e->options->comm), rank = att_comm_rank(e->options->comm);
    const int64_t rounds = (e->images + processes - 1) / processes;
    e->started = att_seconds_now();
    att_processes_begin(&e->processes);
    ATT_TRY(att_new(e->context, &e->outcomes, (size_t)processes, "the list of processes"));
    for (int64_t round = 0; round < rounds; round++) {
        e->outcomes[rank].index = round * processes + rank;
        take_turn(e, dataset, &e->outcomes[rank]);
        if (processes > 1)
            ATT_TRY(att_comm_collect(e->options->comm, ATT_COMM_MAIN, e->outcomes, sizeof *e->outcomes));
        ATT_TRY(take_outcomes(e, processes, rank));
        ATT_TRY(report_progress(e, round + 1, rounds, (round + 1) * processes));
    }
    return ATT_OK;
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

static att_status open_loader(evaluator *e, const att_dataset *dataset)
{
    const att_transform_options *transform = &e->transform;
    att_loader_options loader = att_loader_options_defaults(transform->height, transform->width, transform->channels);
    loader.transform = *transform;
    loader.image = e->image;
    if (!e->options->unlabelled || e->task->image_size)
        ATT_TRY(att_task_targets(e->context, e->task, &e->settings, e->fields, &loader.targets));
    loader.batch_size = e->batch_size;
    loader.limit = e->options->limit;
    loader.workers = e->options->workers;
    loader.comm = e->options->comm;
    loader.corrupt = e->options->skip_corrupt ? ATT_CORRUPT_LEFT_OUT : ATT_CORRUPT_FATAL;
    loader.corrupt_found = e->options->corrupt_found;
    loader.corrupt_user = e->options->corrupt_user;
    return att_loader_create(e->context, dataset, &loader, &e->loader);
}

/* What works on images of one size only. */
static att_status check_sizes(const evaluator *e)
{
    const att_evaluate_options *options = e->options;
    const char *what = options->measure || options->observed ? "instruments"
                       : options->fgsm > 0                   ? "adversarial images"
                       : options->occlude > 0                ? "an occluded square"
                       : options->limit > 0                  ? "a limit on the images"
                                                             : NULL;
    if (what && e->passes)
        return att_fail(e->context, ATT_ERR_UNSUPPORTED,
                        "%s and passes over photographs (--stride, --scales, --flips, --img-scale) cannot be combined",
                        what);
    if (!what || !att_transform_varies(&e->transform))
        return ATT_OK;
    return att_fail(e->context, ATT_ERR_UNSUPPORTED,
                    "%s and images of several sizes (crop mode \"keep\") cannot be combined: use another crop mode",
                    what);
}

static att_status check_robustness(const evaluator *e)
{
    const att_evaluate_options *options = e->options;
    const att_transform_options *transform = &e->transform;
    ATT_TRY(check_sizes(e));
    if (options->occlude < 0 || options->occlude > transform->height || options->occlude > transform->width)
        return att_fail(e->context, ATT_ERR_ARGUMENT, "an occluded square of %d pixels does not fit into %d x %d",
                        options->occlude, transform->height, transform->width);
    if (!(options->fgsm >= 0 && options->fgsm <= 1))
        return att_fail(e->context, ATT_ERR_ARGUMENT, "the epsilon of FGSM is %g, expected 0 to 1", options->fgsm);
    if (options->fgsm > 0 && (e->task->annotations & ATT_ANNOTATION_BOXES))
        return att_fail(
            e->context, ATT_ERR_UNSUPPORTED,
            "FGSM (--fgsm) attacks images with a class or a mask, but networks of the task \"%s\" find boxes",
            e->task->info.name);
    if (options->fgsm > 0 && options->unlabelled)
        return att_fail(e->context, ATT_ERR_ARGUMENT, "FGSM needs labelled images, for the loss");
    return ATT_OK;
}

/* Lets only the classes of the data set's images compete. */
static att_status choose_subset(evaluator *e, const att_dataset *dataset)
{
    size_t classes = (size_t)e->settings.classes;
    e->competing = att_allocate_array(e->context, classes, sizeof *e->competing);
    if (!e->competing)
        return att_fail_memory(e->context, classes, "the classes of a data set");
    for (int64_t i = 0; i < att_dataset_count(dataset); i++)
        e->competing[att_dataset_label(dataset, i)] = true;
    e->settings.competing = e->competing;
    return ATT_OK;
}

/* After the data set was checked: its labels are classes of the network. */
static att_status choose_right_answers(evaluator *e, const att_dataset *dataset)
{
    const att_evaluate_options *options = e->options;
    if (!options->subset && !options->real_labels)
        return ATT_OK;
    if (options->unlabelled || !e->task->class_field)
        return att_fail(e->context, ATT_ERR_ARGUMENT, "a subset of classes and real labels need images with classes");
    if (options->subset && options->real_labels)
        return att_fail(e->context, ATT_ERR_ARGUMENT, "a subset of classes and real labels cannot be combined");
    if (options->subset)
        return choose_subset(e, dataset);
    e->real.arena.context = e->context;
    ATT_TRY(att_label_sets_read(options->real_labels, dataset, e->settings.classes, &e->real));
    e->settings.real = &e->real;
    return ATT_OK;
}

static int rows_of_process(const evaluator *e)
{
    int processes = att_comm_size(e->options->comm);
    return (e->batch_size + processes - 1) / processes;
}

/* Larger batches of large images take more memory, but no less time. */
int att_evaluate_batch(const att_transform_options *t, int batch_size, const att_comm *comm)
{
    enum { MOST_PIXELS = 1 << 24 }; /* 334 images of 224 x 224, 15 of 800 x 1333 */
    const int64_t pixels = att_transform_varies(t) ? (int64_t)t->longer * t->shorter : (int64_t)t->height * t->width;
    const int64_t most = pixels < MOST_PIXELS ? MOST_PIXELS / pixels * att_comm_size(comm) : att_comm_size(comm);
    return batch_size < most ? batch_size : (int)most;
}

static att_status prepare(evaluator *e, const att_model *model, att_weights *weights, const att_dataset *dataset)
{
    const att_task_setup setup = {
        .classes = att_model_classes(model), .options = e->options->task_options, .network = att_model_options(model)};
    e->task = att_model_task_of(model);
    ATT_TRY(att_processes_open(e->context, e->options->comm, &e->processes));
    ATT_TRY(att_task_configure(e->context, e->task, &setup, &e->settings));
    ATT_TRY(check_robustness(e));
    ATT_TRY(att_inference_check_images(model, &e->transform));
    e->image = att_model_image(model).field.name;
    e->settings.evaluated = dataset;
    e->transform.occlude = e->options->occlude;
    e->model = model;
    e->weights = weights;
    e->batch_size = att_evaluate_batch(&e->transform, e->options->batch_size, e->options->comm);
    if (!att_transform_varies(&e->transform) && !e->passes)
        ATT_TRY(open_inference(e, model));
    if (!e->options->unlabelled)
        ATT_TRY(att_task_check_data(e->context, e->task, &e->settings, dataset));
    ATT_TRY(choose_right_answers(e, dataset));
    if (e->options->fgsm > 0)
        ATT_TRY(att_attack_create(model, weights, e->task, e->options, e->competing, &e->transform, rows_of_process(e),
                                  &e->attack));
    e->state = att_allocate(e->context, e->task->state_size);
    if (!e->state)
        return att_fail_memory(e->context, e->task->state_size, "the metrics");
    return e->passes ? ATT_OK : open_loader(e, dataset);
}

static att_evaluation make_result(const evaluator *e)
{
    double elapsed = att_seconds_now() - e->started;
    att_loader_stats stats = e->loader ? att_loader_describe(e->loader) : (att_loader_stats){.corrupt = e->corrupt};
    att_evaluation evaluation = {.count = e->count,
                                 .judged = e->judged,
                                 .not_finite = e->not_finite,
                                 .corrupt = stats.corrupt,
                                 .images_per_second = att_ratio((double)e->count, elapsed),
                                 .wait_share = att_ratio(stats.wait_seconds, elapsed)};
    e->task->report(e->state, evaluation.metrics);
    return evaluation;
}

bool att_evaluation_warn(const att_model *model, const att_evaluation *evaluation)
{
    const att_task *task = att_model_task_of(model);
    for (int i = 0; i < task->info.metric_count; i++)
        if (!isnan(evaluation->metrics[i]))
            return false;
    if (task->annotations == 0)
        return false;
    att_log(att_graph_context(att_model_graph(model)), ATT_LOG_WARNING,
            task->annotations & ATT_ANNOTATION_BOXES
                ? "none of the %lld evaluated images has a box that counts, so that all metrics are nan (undefined), "
                  "and no epoch is the best"
                : "no pixel of the masks of the %lld evaluated images has a class, so that all metrics are nan "
                  "(undefined), and no epoch is the best; do the numbers in the masks fit the list of classes?",
            (long long)evaluation->count);
    return true;
}

/* Evaluates, and frees what the evaluator holds. */
static att_status evaluate(evaluator *e, const att_model *model, att_weights *weights, const att_dataset *dataset,
                           att_evaluation *result)
{
    const int64_t all = att_dataset_count(dataset), limit = e->options->limit;
    e->images = limit > 0 && limit < all ? limit : all;
    att_status status = prepare(e, model, weights, dataset);
    if (status == ATT_OK)
        status = e->passes ? run_passes(e, dataset) : run(e, dataset);
    if (status == ATT_OK)
        status = add_counts(e);
    if (status == ATT_OK && e->count == 0)
        status = att_fail(e->context, ATT_ERR_FORMAT, "none of the %lld images can be decoded",
                          (long long)att_dataset_count(dataset));
    if (status == ATT_OK && e->task->conclude && !e->options->unlabelled)
        status = e->task->conclude(e->context, e->state, &e->settings);
    if (status == ATT_OK)
        status = tell_details(e);
    if (status == ATT_OK && result)
        *result = make_result(e);
    att_loader_destroy(&e->loader);
    if (e->state && e->task->end)
        e->task->end(e->context, e->state);
    att_free(e->context, e->state);
    att_label_sets_free(&e->real);
    att_free(e->context, e->competing);
    att_free(e->context, e->outcomes);
    att_attack_free(&e->attack);
    close_inference(e);
    att_processes_close(&e->processes);
    return status;
}

static att_status check_arguments(const evaluator *e, const att_dataset *dataset)
{
    ATT_TRY(att_require(e->context, dataset, "the data set of an evaluation"));
    if (e->options->batch_size < 1)
        return att_fail(e->context, ATT_ERR_ARGUMENT, "the batch has %d images, expected at least 1",
                        e->options->batch_size);
    return ATT_OK;
}

att_status att_evaluate(const att_model *model, att_weights *weights, const att_dataset *dataset,
                        const att_transform_options *transform, const att_evaluate_options *options,
                        att_evaluation *result)
{
    att_evaluate_options defaults = att_evaluate_options_defaults();
    evaluator e = {.context = att_graph_context(att_model_graph(model)), .options = options ? options : &defaults};
    ATT_TRY(check_arguments(&e, dataset));
    ATT_TRY(att_require(e.context, transform, "the transform of an evaluation"));
    e.transform = *transform;
    return evaluate(&e, model, weights, dataset, result);
}

att_status att_evaluate_in_passes(const att_model *model, const att_dataset *dataset, const att_passes *passes,
                                  const att_evaluate_options *options, att_evaluation *result)
{
    evaluator e = {.context = att_graph_context(att_model_graph(model)),
                   .options = options,
                   .passes = passes,
                   .transform = passes->transform};
    ATT_TRY(check_arguments(&e, dataset));
    return evaluate(&e, model, NULL, dataset, result);
}
