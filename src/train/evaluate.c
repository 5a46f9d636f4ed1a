#include <math.h>
#include <string.h>

#include <attscope/evaluate.h>

#include "core/error.h"
#include "core/memory.h"
#include "measure/score.h"
#include "train/clock.h"
#include "train/network.h"

att_evaluate_options att_evaluate_options_defaults(void)
{
    return (att_evaluate_options){.backend = "cpu", .batch_size = 256, .workers = 4, .stage = "evaluate"};
}

att_transform_options att_evaluate_transform(const att_preprocess *preprocess)
{
    att_transform_options options =
        att_transform_options_defaults(preprocess->img_size, preprocess->img_size, preprocess->in_chans);
    options.crop = strcmp(preprocess->crop_mode, "squash") == 0   ? ATT_CROP_SQUASH
                   : strcmp(preprocess->crop_mode, "border") == 0 ? ATT_CROP_BORDER
                                                                  : ATT_CROP_CENTER;
    options.crop_pct = preprocess->crop_pct;
    options.interpolation = strcmp(preprocess->interpolation, "bilinear") == 0 ? ATT_BILINEAR : ATT_BICUBIC;
    /* A channel that images do not have is as the first, and not what a network for colours had there. */
    for (int c = 0; c < 3; c++) {
        options.mean[c] = preprocess->mean[c < preprocess->in_chans ? c : 0];
        options.std[c] = preprocess->std[c < preprocess->in_chans ? c : 0];
    }
    return options;
}

typedef struct evaluator {
    att_context *context;
    const att_evaluate_options *options;
    att_network network;
    att_loader *loader;
    float *outputs; /* [batch_size][network.width] */
    double started;
    int64_t count, first, among_five; /* images; those whose class came first, among the first five */
    int64_t not_finite;               /* those with an output that is NaN or infinite */
    double loss;
} evaluator;

static bool all_finite(const float *values, int count)
{
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static void tally(evaluator *e, const att_batch *batch)
{
    int classes = e->network.classes, width = e->network.width;
    for (int i = 0; i < batch->count; i++) {
        const float *row = e->outputs + (size_t)i * (size_t)width;
        e->not_finite += !all_finite(row, width);
        if (e->options->unlabelled)
            continue;
        int rank = att_score_rank(row, classes, batch->labels[i]);
        e->first += rank < 1;
        e->among_five += rank < ATT_SCORE_TOP && rank < classes;
        e->loss += att_score_loss(row, classes, batch->labels[i]);
    }
    e->count += batch->count;
}

static att_status tell(const evaluator *e, const att_batch *batch)
{
    if (!e->options->progress)
        return ATT_OK;
    int64_t done = batch->number + 1, batches = att_loader_batches(e->loader);
    double elapsed = att_seconds_now() - e->started;
    att_progress progress = {.stage = e->options->stage,
                             .batch = done,
                             .batches = batches,
                             .images_per_second = att_share((double)e->count, elapsed),
                             .seconds_left = elapsed / (double)done * (double)(batches - done),
                             .loss = e->options->unlabelled ? NAN : e->loss / (double)e->count,
                             .lr = NAN};
    if (e->options->progress(e->options->progress_user, &progress))
        return ATT_OK;
    return att_fail(e->context, ATT_ERR_STOPPED, "the evaluation was asked to stop after %lld images",
                    (long long)e->count);
}

static att_status run(evaluator *e)
{
    att_batch batch;
    e->started = att_seconds_now();
    ATT_TRY(att_loader_start(e->loader, 0, 0));
    for (;;) {
        ATT_TRY(att_loader_next(e->loader, &batch));
        if (batch.count == 0)
            return ATT_OK;
        ATT_TRY(att_network_run(&e->network, batch.images, batch.count, e->outputs));
        if (e->options->measure)
            ATT_TRY(att_measure_observe(e->options->measure, e->network.session, batch.count,
                                        e->options->unlabelled ? NULL : batch.labels));
        tally(e, &batch);
        ATT_TRY(tell(e, &batch));
    }
}

static att_status prepare(evaluator *e, const att_model *model, att_weights *weights, const att_dataset *dataset,
                          const att_transform_options *transform)
{
    ATT_TRY(att_network_check_images(model, transform));
    if (e->options->measure && att_model_options_of(model).loss)
        return att_fail(e->context, ATT_ERR_ARGUMENT, "instruments evaluate a model that was made without a loss");
    ATT_TRY(att_network_create(model, weights, e->options->backend, e->options->precision, e->options->batch_size,
                               &e->network));
    if (!e->options->unlabelled)
        ATT_TRY(att_network_check_labels(e->context, dataset, e->network.classes));
    size_t count = (size_t)e->options->batch_size * (size_t)e->network.width;
    e->outputs = att_allocate_array(e->context, count, sizeof *e->outputs);
    if (!e->outputs)
        return att_fail_memory(e->context, count * sizeof *e->outputs, "the outputs");
    att_loader_options loader = att_loader_options_defaults(transform->height, transform->width, transform->channels);
    loader.transform = *transform;
    loader.batch_size = e->options->batch_size;
    loader.workers = e->options->workers;
    loader.corrupt = e->options->skip_corrupt ? ATT_CORRUPT_LEFT_OUT : ATT_CORRUPT_FATAL;
    loader.corrupt_found = e->options->corrupt_found;
    loader.corrupt_user = e->options->corrupt_user;
    return att_loader_create(e->context, dataset, &loader, &e->loader);
}

static att_evaluation figures(const evaluator *e)
{
    double elapsed = att_seconds_now() - e->started, count = (double)e->count;
    double labelled = e->options->unlabelled ? NAN : count;
    return (att_evaluation){.count = e->count,
                            .not_finite = e->not_finite,
                            .corrupt = att_loader_describe(e->loader).corrupt,
                            .top1 = 100 * (double)e->first / labelled,
                            .top5 = 100 * (double)e->among_five / labelled,
                            .loss = e->loss / labelled,
                            .images_per_second = att_share(count, elapsed),
                            .wait_share = att_share(att_loader_describe(e->loader).wait_seconds, elapsed)};
}

att_status att_evaluate(const att_model *model, att_weights *weights, const att_dataset *dataset,
                        const att_transform_options *transform, const att_evaluate_options *options,
                        att_evaluation *result)
{
    att_evaluate_options defaults = att_evaluate_options_defaults();
    evaluator e = {.context = att_graph_context(att_model_graph(model)), .options = options ? options : &defaults};
    if (e.options->batch_size < 1)
        return att_fail(e.context, ATT_ERR_ARGUMENT, "the batch has %d images, expected at least 1",
                        e.options->batch_size);
    att_status status = prepare(&e, model, weights, dataset, transform);
    if (status == ATT_OK)
        status = run(&e);
    if (status == ATT_OK && e.count == 0)
        status = att_fail(e.context, ATT_ERR_FORMAT, "none of the %lld images can be decoded",
                          (long long)att_dataset_count(dataset));
    if (status == ATT_OK)
        *result = figures(&e);
    att_loader_destroy(&e.loader);
    att_free(e.context, e.outputs);
    att_network_free(&e.network);
    return status;
}
