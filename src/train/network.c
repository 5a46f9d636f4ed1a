#include "train/network.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "session/session.h"

const char *att_network_image(const att_graph *graph)
{
    return graph->inputs.items[0].name;
}

/* The loss would need targets. */
static bool is_answer(const att_named_value *output)
{
    return !output->probe && strcmp(output->name, "loss") != 0;
}

const char *att_network_answer(const att_graph *graph)
{
    int i = 0;
    while (!is_answer(&graph->outputs.items[i]))
        i++;
    return graph->outputs.items[i].name;
}

static att_status describe_outputs(const att_graph *graph, att_network *network)
{
    size_t count = (size_t)graph->outputs.count;
    network->outputs = att_allocate_array(network->context, count, sizeof *network->outputs);
    network->answers = att_allocate_array(network->context, count, sizeof *network->answers);
    if (count > 0 && (!network->outputs || !network->answers))
        return att_fail_memory(network->context, count * sizeof *network->outputs, "a network's outputs");
    for (int i = 0; i < graph->outputs.count; i++) {
        const att_named_value *output = &graph->outputs.items[i];
        if (is_answer(output))
            network->outputs[network->output_count++] =
                (att_field){.name = output->name, .dtype = ATT_F32, .shape = att_value_shape(graph, output->value)};
    }
    return ATT_OK;
}

/* names: room for all outputs and a NULL. */
static void choose_outputs(const att_graph *graph, bool probes, const char **names)
{
    int count = 0;
    for (int i = 0; i < graph->outputs.count; i++)
        if (is_answer(&graph->outputs.items[i]) || (probes && graph->outputs.items[i].probe))
            names[count++] = graph->outputs.items[i].name;
    names[count] = NULL;
}

static att_status compile(const att_model *model, const att_network_options *options, att_network *network)
{
    const att_graph *graph = att_model_graph(model);
    *network = (att_network){
        .context = att_graph_context(graph), .classes = att_model_classes(model), .image = att_network_image(graph)};
    if (att_graph_dtype(graph) != ATT_F32)
        return att_fail(network->context, ATT_ERR_UNSUPPORTED, "the model computes in %s, expected F32",
                        att_dtype_name(att_graph_dtype(graph)));
    ATT_TRY(describe_outputs(graph, network));
    size_t count = (size_t)graph->outputs.count + 1;
    const char **names = att_allocate_array(network->context, count, sizeof *names);
    if (!names)
        return att_fail_memory(network->context, count * sizeof *names, "a network's outputs");
    choose_outputs(graph, options->probes, names);
    att_plan_options plan = att_plan_options_defaults();
    plan.backend = options->backend;
    plan.precision = options->precision;
    plan.outputs = names;
    att_status status = att_plan_compile(graph, &plan, &network->plan);
    att_free(network->context, names);
    return status;
}

static att_status make_answers(att_network *network, int max_batch)
{
    for (int i = 0; i < network->output_count; i++) {
        size_t bytes = att_size_product((size_t)max_batch, att_field_bytes(&network->outputs[i]));
        network->answers[i] = att_allocate(network->context, bytes);
        if (!network->answers[i])
            return att_fail_memory(network->context, bytes, "the outputs");
    }
    return ATT_OK;
}

att_status att_network_create(const att_model *model, att_weights *weights, const att_network_options *options,
                              att_network *network)
{
    att_status status = compile(model, options, network);
    if (status == ATT_OK)
        status = att_session_create(network->plan, weights, options->max_batch, &network->session);
    if (status == ATT_OK)
        status = make_answers(network, options->max_batch);
    if (status != ATT_OK)
        att_network_free(network);
    return status;
}

att_status att_network_bytes(const att_model *model, const att_network_options *options, size_t *bytes)
{
    att_network network;
    att_status status = compile(model, options, &network);
    if (status == ATT_OK)
        *bytes = att_session_bytes(network.plan, options->max_batch);
    for (int i = 0; i < network.output_count && status == ATT_OK; i++)
        *bytes =
            att_size_sum(*bytes, att_size_product((size_t)options->max_batch, att_field_bytes(&network.outputs[i])));
    att_network_free(&network);
    return status;
}

void att_network_free(att_network *network)
{
    if (!network->context)
        return;
    att_session_destroy(&network->session);
    att_plan_destroy(&network->plan);
    for (int i = 0; i < network->output_count; i++)
        att_free(network->context, network->answers[i]);
    att_free(network->context, network->answers);
    att_free(network->context, network->outputs);
    *network = (att_network){0};
}

att_status att_network_run(att_network *network, const void *images, int batch, att_batch *answers)
{
    ATT_TRY(att_session_bind(network->session, network->image, images));
    ATT_TRY(att_session_run(network->session, batch));
    for (int i = 0; i < network->output_count; i++)
        ATT_TRY(att_session_output(network->session, network->outputs[i].name, 0, batch, network->answers[i]));
    *answers = (att_batch){.count = batch,
                           .field_count = network->output_count,
                           .fields = network->outputs,
                           .data = (const void *const *)network->answers};
    return ATT_OK;
}

static bool all_finite(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

bool att_network_is_finite(const att_batch *answers, int sample)
{
    for (int f = 0; f < answers->field_count; f++) {
        int64_t width = att_shape_count(answers->fields[f].shape);
        if (!all_finite((const float *)answers->data[f] + sample * width, width))
            return false;
    }
    return true;
}

att_status att_network_check_images(const att_model *model, const att_transform_options *transform)
{
    att_preprocess wanted = att_model_preprocess(model);
    if (transform->height == wanted.height && transform->width == wanted.width &&
        transform->channels == wanted.in_chans)
        return ATT_OK;
    return att_fail(att_graph_context(att_model_graph(model)), ATT_ERR_MISMATCH,
                    "images are made %d x %d with %d channels, but %s takes %d x %d with %d", transform->height,
                    transform->width, transform->channels, att_model_name(model), wanted.height, wanted.width,
                    wanted.in_chans);
}
