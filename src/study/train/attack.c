#include "study/train/attack.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "study/train/inference.h"

static att_status build_loss(att_attack *attack, const att_model *model, const att_task *task,
                             const att_option_values *given, const bool *competing)
{
    att_option_values options;
    att_task_settings settings;
    att_task_complete(task, given, &options);
    if (task->plain)
        task->plain(&options);
    const att_task_setup setup = {
        .classes = att_model_classes(model), .options = &options, .network = att_model_options(model)};
    ATT_TRY(att_task_configure(attack->context, task, &setup, &settings));
    settings.competing = competing;
    attack->graph = att_graph_copy(att_model_graph(model));
    if (!attack->graph)
        return att_fail_memory(attack->context, sizeof(void *), "the graph of an attack");
    return att_task_build_loss(task, attack->graph, &settings);
}

/* Compiles for the gradient of the image alone. */
static att_status compile(att_attack *attack, const att_evaluate_options *options)
{
    const char *const outputs[] = {"loss", NULL}, *const gradients[] = {attack->image, NULL};
    int parameters = att_graph_parameter_count(attack->graph);
    bool *frozen = att_allocate_array(attack->context, (size_t)parameters + 1, sizeof *frozen);
    if (!frozen)
        return att_fail_memory(attack->context, (size_t)parameters, "the parameters of an attack");
    memset(frozen, true, (size_t)parameters);
    att_plan_options plan = att_plan_options_defaults();
    plan.purpose = ATT_GRADIENT;
    plan.backend = options->backend ? options->backend : "cpu";
    plan.precision = options->precision;
    plan.outputs = outputs;
    plan.gradients = gradients;
    plan.frozen = frozen;
    att_status status = att_plan_compile(attack->graph, &plan, &attack->plan);
    att_free(attack->context, frozen);
    return status;
}

static att_status reserve(att_attack *attack, int max_rows)
{
    size_t values = att_size_product((size_t)max_rows, (size_t)attack->pixels);
    size_t bytes = att_size_product(values, sizeof(float)), wide = att_size_product(values, sizeof(double));
    attack->images = att_allocate(attack->context, bytes);
    attack->gradients = att_allocate(attack->context, attack->wide ? wide : bytes);
    attack->converted = attack->wide ? att_allocate(attack->context, wide) : NULL;
    return attack->images && attack->gradients && (attack->converted || !attack->wide)
               ? ATT_OK
               : att_fail_memory(attack->context, attack->wide ? bytes + 2 * wide : 2 * bytes, "adversarial images");
}

static att_status prepare(att_attack *attack, const att_model *model, att_weights *weights, const att_task *task,
                          const att_evaluate_options *options, const bool *competing, int max_rows)
{
    ATT_TRY(build_loss(attack, model, task, options->task_options, competing));
    attack->image = att_model_image(model).field.name;
    snprintf(attack->gradient, sizeof attack->gradient, "%s.grad", attack->image);
    ATT_TRY(compile(attack, options));
    ATT_TRY(att_session_create(attack->plan, weights, max_rows, &attack->session));
    return reserve(attack, max_rows);
}

att_status att_attack_create(const att_model *model, att_weights *weights, const att_task *task,
                             const att_evaluate_options *options, const bool *competing,
                             const att_transform_options *transform, int max_rows, att_attack *attack)
{
    *attack = (att_attack){.context = att_graph_context(att_model_graph(model)),
                           .wide = att_graph_dtype(att_model_graph(model)) == ATT_F64,
                           .pixels = (int64_t)transform->height * transform->width * transform->channels,
                           .transform = transform,
                           .epsilon = options->fgsm};
    att_status status = prepare(attack, model, weights, task, options, competing, max_rows);
    if (status != ATT_OK)
        att_attack_free(attack);
    return status;
}

void att_attack_free(att_attack *attack)
{
    if (!attack->context)
        return;
    att_session_destroy(&attack->session);
    att_plan_destroy(&attack->plan);
    att_graph_destroy(&attack->graph);
    att_free(attack->context, attack->images);
    att_free(attack->context, attack->gradients);
    att_free(attack->context, attack->converted);
    *attack = (att_attack){0};
}

static float clamp(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

static float sign_of_gradient(const att_attack *attack, int64_t i)
{
    double gradient =
        attack->wide ? ((const double *)attack->gradients)[i] : (double)((const float *)attack->gradients)[i];
    return (float)((gradient > 0) - (gradient < 0));
}

/* Images are normalised, so limits and step are, too. A gradient of zero leaves its pixel unchanged. */
static void perturb_channel(const att_attack *attack, int channel, const float *from, int64_t values)
{
    const att_transform_options *t = attack->transform;
    float mean = (float)t->mean[channel], std = (float)t->std[channel];
    float step = (float)attack->epsilon / std, low = (0 - mean) / std, high = (1 - mean) / std;
    for (int64_t i = channel; i < values; i += t->channels)
        attack->images[i] = clamp(from[i] + step * sign_of_gradient(attack, i), low, high);
}

/* The images in the type of the graph. */
static const void *graph_images(const att_attack *attack, const float *images, int64_t values)
{
    for (int64_t i = 0; attack->wide && i < values; i++)
        attack->converted[i] = images[i];
    return attack->wide ? (const void *)attack->converted : images;
}

static att_status bind_inputs(att_attack *attack, const att_batch *batch, const void *images)
{
    for (int i = 0; i < attack->graph->inputs.count; i++) {
        const char *name = attack->graph->inputs.items[i].name;
        const void *rows = strcmp(name, attack->image) == 0 ? images : att_batch_rows(batch, name);
        if (!rows)
            return att_fail(attack->context, ATT_ERR_INTERNAL, "the input \"%s\" is not a field of the batch", name);
        ATT_TRY(att_session_bind(attack->session, name, rows));
    }
    return ATT_OK;
}

att_status att_attack_run(att_attack *attack, const att_batch *batch, const void **images)
{
    const float *from = att_batch_rows(batch, attack->image);
    *images = attack->images;
    if (batch->rows == 0)
        return ATT_OK;
    ATT_TRY(bind_inputs(attack, batch, graph_images(attack, from, batch->rows * attack->pixels)));
    ATT_TRY(att_session_accumulate(attack->session, NULL, batch->rows, 1, 0, 0, 0));
    ATT_TRY(att_session_output(attack->session, attack->gradient, 0, batch->rows, attack->gradients));
    for (int c = 0; c < attack->transform->channels; c++)
        perturb_channel(attack, c, from, batch->rows * attack->pixels);
    return ATT_OK;
}
