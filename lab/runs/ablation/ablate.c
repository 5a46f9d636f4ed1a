/* Ablations of a data set. */
#include <math.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "lab/runs/ablation/ablation.h"
#include "study/network/network.h"

/* Samples of a run of few images, which then has several changes; enough for all threads of a small machine. */
enum { LEAST_SAMPLES = 32 };

att_ablation_options att_ablation_options_defaults(void)
{
    const att_evaluate_options evaluate = att_evaluate_options_defaults();
    return (att_ablation_options){.batch_size = evaluate.batch_size, .workers = evaluate.workers};
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

att_status att_ablation_check_bound(att_network *network, const att_ablation_options *options)
{
    if (!(options->bound >= 0 && options->bound <= 100))
        return att_fail(network->context, ATT_ERR_ARGUMENT, "the bound of the accuracy is %g, expected 0 to 100 (%%)",
                        options->bound);
    return ATT_OK;
}

static att_status check(att_network *network, const att_ablation_options *options)
{
    ATT_TRY(att_ablation_check_bound(network, options));
    if (!att_network_class_output(network))
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "%s is a network of the task \"%s\": an ablation compares the probability of an image's class, "
                        "which networks of the task \"classification\" give",
                        network->identity.name, att_model_task(network->model).name);
    ATT_TRY(att_model_need_image(network->model));
    return att_network_need_head(network, "its answers cannot be compared");
}

att_explorer_form att_ablation_form(const att_ablation *a, const att_ablation_options *options)
{
    const bool heads = options->heads || (!options->branches && !options->tokens);
    return (att_explorer_form){.samples = a->samples,
                               .heads = heads,
                               .uniform = heads && options->uniform,
                               .branches = options->branches,
                               .tokens = options->tokens};
}

att_status att_ablation_note_layers(att_ablation *a)
{
    a->layer_count = att_explorer_layer_count(a->explorer);
    a->layers = att_arena_allocate(&a->arena, (size_t)a->layer_count * sizeof *a->layers + 1);
    if (!a->layers)
        return att_fail_memory(a->context, (size_t)a->layer_count * sizeof *a->layers, "the layers of a network");
    for (int l = 0; l < a->layer_count; l++) {
        const att_explorer_layer layer = att_explorer_layer_at(a->explorer, l);
        a->layers[l].heads = layer.heads;
        a->layers[l].prefix = layer.prefix;
        a->layers[l].grid_h = layer.grid_h;
        a->layers[l].grid_w = layer.grid_w;
        if (a->reads_texts) /* each text has its own */
            a->layers[l].grid_h = a->layers[l].grid_w = 0;
        a->layers[l].scope = att_arena_string(&a->arena, layer.scope);
        if (!a->layers[l].scope)
            return att_fail_memory(a->context, strlen(layer.scope), "the layers of a network");
    }
    return ATT_OK;
}

static att_status prepare(att_ablation *a, const att_ablation_options *options, int64_t images)
{
    att_network *network = a->network;
    const att_transform_options transform = att_network_transform(network);
    ATT_TRY(check(network, options));
    const int most = att_evaluate_batch(&transform, LEAST_SAMPLES, NULL);
    a->samples = att_evaluate_batch(&transform, options->batch_size, NULL);
    if (images < a->samples)
        a->samples = images < 1 ? 1 : (int)images;
    if (a->samples < most)
        a->samples = most;
    const att_explorer_form form = att_ablation_form(a, options);
    ATT_TRY(att_explorer_create_form(network, &form, NULL, &a->explorer));
    ATT_TRY(att_ablation_note_layers(a));
    ATT_TRY(att_ablation_select(a, options));
    const size_t pixels = (size_t)att_shape_count(att_model_image(network->model).field.shape);
    ATT_TRY(att_new(a->context, &a->tile, (size_t)a->samples * pixels * sizeof(float), "the images of a run"));
    return att_ablation_allocate(a, images);
}

att_status att_ablation_new(att_network *network, const att_ablation_options *options, att_ablation **out)
{
    att_ablation *a;
    ATT_TRY(att_new(network->context, &a, 1, "an ablation"));
    a->context = a->arena.context = network->context;
    a->network = network;
    a->uniform = options->uniform;
    a->greedy = options->greedy;
    a->bound = options->bound;
    a->progress = options->progress;
    a->progress_user = options->progress_user;
    a->classes = att_model_classes(network->model);
    a->started = att_seconds_now();
    *out = a;
    return ATT_OK;
}

att_status att_ablation_create(att_network *network, const att_ablation_options *options, int64_t images,
                               att_ablation **out)
{
    att_ablation *a;
    ATT_TRY(att_ablation_new(network, options, &a));
    const att_status status = prepare(a, options, images);
    if (status == ATT_OK)
        *out = a;
    else
        att_ablation_destroy(&a);
    return status;
}

void att_ablation_end_runs(att_ablation *a)
{
    att_explorer_destroy(&a->explorer);
    att_free(a->context, a->tile);
    a->tile = NULL;
}

static void free_cuts(att_context *context, att_ablated_parts *parts)
{
    for (int p = 0; p < parts->count; p++)
        att_free(context, parts->items[p].cuts);
}

void att_ablation_destroy(att_ablation **ablation)
{
    if (!ablation || !*ablation)
        return;
    att_ablation *a = *ablation;
    att_context *context = a->context;
    att_ablation_end_runs(a);
    free_cuts(context, &a->tried);
    free_cuts(context, &a->steps);
    att_free(context, a->tried.items);
    att_free(context, a->kept.cuts);
    att_free(context, a->figures);
    att_free(context, a->plain);
    att_arena_free(&a->arena);
    att_free(context, a);
    *ablation = NULL;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

typedef struct pass {
    att_ablation *ablation;
    const att_dataset *dataset;
} pass;

/* An att_evaluate_options.observed. */
static att_status observe(void *user, att_session *session, const att_batch *batch)
{
    (void)session;
    const pass *p = user;
    return att_ablation_observe(p->ablation, batch, p->dataset);
}

/* Runs all images. measure: NULL: none. */
static att_status run_images(att_ablation *a, const att_dataset *dataset, const att_ablation_options *options,
                             att_measure *measure)
{
    pass p = {a, dataset};
    att_evaluate_options evaluate = att_evaluate_options_defaults();
    evaluate.batch_size = a->samples < options->batch_size ? a->samples : options->batch_size;
    evaluate.workers = options->workers;
    evaluate.skip_corrupt = options->skip_corrupt;
    evaluate.unlabelled = att_dataset_class_count(dataset) == 0;
    evaluate.measure = measure;
    evaluate.observed = observe;
    evaluate.observed_user = &p;
    a->pass_runs += att_dataset_count(dataset) * (1 + (int64_t)a->tried.count);
    return att_network_evaluate(a->network, dataset, &evaluate, NULL);
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

static att_status run_once(att_ablation *a, const att_dataset *dataset, const att_ablation_options *options)
{
    att_measure *measure = NULL;
    ATT_TRY(att_network_observe(a->network, ATT_ABLATION_INSTRUMENTS, NULL, &measure));
    att_status status = run_images(a, dataset, options, measure);
    if (status == ATT_OK)
        status = att_ablation_conclude(a);
    if (status == ATT_OK)
        status = att_ablation_correlate(a, measure);
    att_measure_destroy(&measure);
    return status;
}

static att_status run_greedy(att_ablation *a, const att_dataset *dataset, const att_ablation_options *options)
{
    for (bool done = false; !done;) {
        ATT_TRY(run_images(a, dataset, options, NULL));
        ATT_TRY(att_ablation_end_pass(a, &done));
    }
    return ATT_OK;
}

att_status att_ablate(att_network *network, const att_dataset *dataset, const att_ablation_options *given,
                      att_ablation **out)
{
    const att_ablation_options options = given ? *given : att_ablation_options_defaults();
    att_ablation *a = NULL;
    ATT_TRY(att_require(network->context, dataset, "the data set of an ablation"));
    ATT_TRY(att_ablation_create(network, &options, att_dataset_count(dataset), &a));
    att_status status = a->greedy ? run_greedy(a, dataset, &options) : run_once(a, dataset, &options);
    att_ablation_end_runs(a);
    a->seconds = att_seconds_now() - a->started;
    if (status == ATT_OK)
        *out = a;
    else
        att_ablation_destroy(&a);
    return status;
}
