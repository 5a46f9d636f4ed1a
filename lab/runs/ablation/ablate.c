/* Ablations of a data set. */
#include <math.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "lab/runs/ablation/ablation.h"
#include "study/network/network.h"

/* Samples of a run of few images, which then has several changes; enough for all threads of a small machine. */
enum { LEAST_SAMPLES = 32 };
/* Those that do not apply to the network are left out. */
static const char instruments[] = "entropy?,distance?,nsi?,gate?";

att_ablation_options att_ablation_options_defaults(void)
{
    const att_evaluate_options evaluate = att_evaluate_options_defaults();
    return (att_ablation_options){.batch_size = evaluate.batch_size, .workers = evaluate.workers};
}

/* --- preparing ---------------------------------------------------------------------------------------------------- */

static att_status check(att_network *network, const att_ablation_options *options)
{
    if (!(options->bound >= 0 && options->bound <= 100))
        return att_fail(network->context, ATT_ERR_ARGUMENT, "the bound of the accuracy is %g, expected 0 to 100 (%%)",
                        options->bound);
    if (!att_network_class_output(network))
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "%s is a network of the task \"%s\": an ablation compares the probability of an image's class, "
                        "which networks of the task \"classification\" give",
                        network->identity.name, att_model_task(network->model).name);
    ATT_TRY(att_model_need_image(network->model));
    return att_network_need_head(network, "its answers cannot be compared");
}

static att_explorer_form form_of(const att_ablation *a, const att_ablation_options *options)
{
    const bool heads = options->heads || (!options->branches && !options->tokens);
    return (att_explorer_form){.samples = a->samples,
                               .heads = heads,
                               .uniform = heads && options->uniform,
                               .branches = options->branches,
                               .tokens = options->tokens};
}

static att_status note_layers(att_ablation *a)
{
    a->layer_count = att_explorer_layer_count(a->explorer);
    a->layers = att_arena_allocate(&a->arena, (size_t)a->layer_count * sizeof *a->layers + 1);
    if (!a->layers)
        return att_fail_memory(a->context, (size_t)a->layer_count * sizeof *a->layers, "the layers of a network");
    for (int l = 0; l < a->layer_count; l++) {
        const att_explorer_layer layer = att_explorer_layer_at(a->explorer, l);
        a->layers[l].heads = layer.heads;
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
    const att_explorer_form form = form_of(a, options);
    ATT_TRY(att_explorer_create_form(network, &form, &a->explorer));
    ATT_TRY(note_layers(a));
    ATT_TRY(att_ablation_select(a, options));
    const size_t pixels = (size_t)att_shape_count(att_model_image(network->model).field.shape);
    ATT_TRY(att_new(a->context, &a->tile, (size_t)a->samples * pixels, "the images of a run"));
    return att_ablation_allocate(a, images);
}

att_status att_ablation_create(att_network *network, const att_ablation_options *options, int64_t images,
                               att_ablation **out)
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
    att_status status = prepare(a, options, images);
    if (status == ATT_OK)
        *out = a;
    else
        att_ablation_destroy(&a);
    return status;
}

/* Frees what only runs need. */
static void end_runs(att_ablation *a)
{
    att_explorer_destroy(&a->explorer);
    att_free(a->context, a->tile);
    a->tile = NULL;
}

void att_ablation_destroy(att_ablation **ablation)
{
    if (!ablation || !*ablation)
        return;
    att_ablation *a = *ablation;
    att_context *context = a->context;
    end_runs(a);
    for (int p = 0; p < a->part_count; p++)
        att_free(context, a->parts[p].cuts);
    att_free(context, a->parts);
    att_free(context, a->kept.cuts);
    att_free(context, a->figures);
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
    a->image_count = 0;
    a->pass_runs += att_dataset_count(dataset) * (1 + (int64_t)a->part_count);
    return att_network_evaluate(a->network, dataset, &evaluate, NULL);
}

/* --- one after another -------------------------------------------------------------------------------------------- */

static att_status run_all(att_ablation *a, const att_dataset *dataset, const att_ablation_options *options)
{
    att_measure *measure = NULL;
    ATT_TRY(att_network_observe(a->network, instruments, NULL, &measure));
    att_status status = run_images(a, dataset, options, measure);
    if (status == ATT_OK)
        status = att_ablation_conclude(a);
    if (status == ATT_OK)
        status = att_ablation_correlate(a, measure);
    att_measure_destroy(&measure);
    return status;
}

/* --- greedy ------------------------------------------------------------------------------------------------------- */

static double accuracy_of(const att_ablation *a, int part)
{
    int64_t right = 0;
    for (int64_t i = 0; i < a->image_count; i++)
        right += a->answers[1 + part].right[i];
    return 100 * (double)right / (double)a->image_count;
}

/* The candidate without which accuracy is highest, then loss lowest. */
static int best_candidate(const att_ablation *a)
{
    int best = 0;
    for (int p = 1; p < a->part_count; p++) {
        const double gain = a->changes[p].accuracy.mean - a->changes[best].accuracy.mean;
        if (gain > 0 || (gain == 0 && a->changes[p].loss.mean < a->changes[best].loss.mean))
            best = p;
    }
    return best;
}

/* The steps of a greedy ablation. */
typedef struct steps {
    att_ablated_part *parts;
    att_ablated_answers *answers; /* [1 + steps]; first those of the unchanged network */
    int count;
} steps;

/* Removes the candidate for good, and its answers become those of a step. */
static att_status keep_candidate(att_ablation *a, int best, steps *s)
{
    att_ablated_part *part = &a->parts[best];
    att_ablated_part *kept = &a->kept;
    for (int i = 0; i < part->count; i++) {
        if (!att_list_grow(a->context, &kept->cuts, kept->count, &kept->room, sizeof *kept->cuts))
            return att_fail_memory(a->context, sizeof *kept->cuts, "the parts of a network");
        kept->cuts[kept->count++] = part->cuts[i];
    }
    s->parts[s->count++] = *part;
    s->answers[s->count] = a->answers[1 + best];
    a->part_count--;
    memmove(part, part + 1, (size_t)(a->part_count - best) * sizeof *part);
    memmove(&a->answers[1 + best], &a->answers[2 + best], (size_t)(a->part_count - best) * sizeof *a->answers);
    return ATT_OK;
}

/* Whether the last token remains: it cannot be removed. */
static bool is_last_token(const att_ablation *a)
{
    return a->part_count == 1 && a->parts->cuts->kind == ATT_ABLATED_TOKENS &&
           a->kept.count + a->parts->count == att_explorer_layer_at(a->explorer, 0).tokens;
}

static att_status run_steps(att_ablation *a, const att_dataset *dataset, const att_ablation_options *options, steps *s)
{
    while (a->part_count > 0 && !is_last_token(a)) {
        ATT_TRY(run_images(a, dataset, options, NULL));
        ATT_TRY(att_ablation_conclude(a));
        const int best = best_candidate(a);
        if (accuracy_of(a, best) < a->bound)
            return ATT_OK;
        ATT_TRY(keep_candidate(a, best, s));
    }
    return ATT_OK;
}

/* Makes the steps the changes of the ablation. */
static att_status take_steps(att_ablation *a, const steps *s)
{
    for (int p = 0; p < a->part_count; p++)
        att_free(a->context, a->parts[p].cuts);
    memcpy(a->parts, s->parts, (size_t)s->count * sizeof *a->parts);
    a->part_count = s->count;
    s->answers[0] = a->answers[0];
    a->answers = s->answers;
    return att_ablation_conclude(a);
}

static att_status run_greedy(att_ablation *a, const att_dataset *dataset, const att_ablation_options *options)
{
    const size_t parts = (size_t)a->part_count;
    steps s = {.parts = att_arena_allocate(&a->arena, parts * sizeof *s.parts),
               .answers = att_arena_allocate(&a->arena, (1 + parts) * sizeof *s.answers)};
    if (!s.parts || !s.answers)
        return att_fail_memory(a->context, parts * sizeof *s.parts, "the steps of an ablation");
    const att_status status = run_steps(a, dataset, options, &s);
    if (status == ATT_OK)
        return take_steps(a, &s);
    for (int i = 0; i < s.count; i++)
        att_free(a->context, s.parts[i].cuts);
    return status;
}

att_status att_ablate(att_network *network, const att_dataset *dataset, const att_ablation_options *given,
                      att_ablation **out)
{
    const att_ablation_options options = given ? *given : att_ablation_options_defaults();
    att_ablation *a = NULL;
    ATT_TRY(att_require(network->context, dataset, "the data set of an ablation"));
    ATT_TRY(att_ablation_create(network, &options, att_dataset_count(dataset), &a));
    att_status status = a->greedy ? run_greedy(a, dataset, &options) : run_all(a, dataset, &options);
    end_runs(a);
    a->seconds = att_seconds_now() - a->started;
    if (status == ATT_OK)
        *out = a;
    else
        att_ablation_destroy(&a);
    return status;
}
