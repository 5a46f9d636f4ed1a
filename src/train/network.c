#include "train/network.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "session/session.h"

/* The graph to compile: the model's own, or one without the loss. */
static att_status bare_graph(const att_model *model, att_network *network, const att_graph **graph)
{
    att_model_options options = att_model_options_of(model);
    *graph = att_model_graph(model);
    if (!options.loss)
        return ATT_OK;
    options.loss = false;
    ATT_TRY(att_model_create(network->context, att_model_name(model), &options, ATT_F32, &network->bare));
    *graph = att_model_graph(network->bare);
    return ATT_OK;
}

static const char *output_of(const att_network *network)
{
    return network->classes > 0 ? "logits" : "features";
}

/* How many a network without a head gives. */
static int features_of(const att_graph *graph)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, "features") == 0)
            return (int)att_shape_count(att_value_shape(graph, graph->outputs.items[i].value));
    return 0;
}

static att_status compile(const att_model *model, const char *backend, att_precision precision, att_network *network)
{
    const att_graph *graph = att_model_graph(model);
    *network = (att_network){.context = att_graph_context(graph), .classes = att_model_options_of(model).num_classes};
    if (att_graph_dtype(graph) != ATT_F32)
        return att_fail(network->context, ATT_ERR_UNSUPPORTED, "the model computes in %s, expected F32",
                        att_dtype_name(att_graph_dtype(graph)));
    ATT_TRY(bare_graph(model, network, &graph));
    network->width = network->classes > 0 ? network->classes : features_of(graph);
    att_plan_options options = att_plan_options_defaults();
    options.backend = backend;
    options.precision = precision;
    return att_plan_compile(graph, &options, &network->plan);
}

att_status att_network_create(const att_model *model, att_weights *weights, const char *backend,
                              att_precision precision, int max_batch, att_network *network)
{
    att_status status = compile(model, backend, precision, network);
    if (status == ATT_OK)
        status = att_session_create(network->plan, weights, max_batch, &network->session);
    if (status != ATT_OK)
        att_network_free(network);
    return status;
}

att_status att_network_bytes(const att_model *model, const char *backend, att_precision precision, int max_batch,
                             size_t *bytes)
{
    att_network network;
    att_status status = compile(model, backend, precision, &network);
    if (status == ATT_OK)
        *bytes = att_size_sum(att_session_bytes(network.plan, max_batch),
                              att_size_product((size_t)max_batch, (size_t)network.width * sizeof(float)));
    att_network_free(&network);
    return status;
}

void att_network_free(att_network *network)
{
    att_session_destroy(&network->session);
    att_plan_destroy(&network->plan);
    att_model_destroy(&network->bare);
    *network = (att_network){0};
}

att_status att_network_run(att_network *network, const float *images, int batch, float *out)
{
    ATT_TRY(att_session_bind(network->session, "image", images));
    ATT_TRY(att_session_run(network->session, batch));
    return att_session_output(network->session, output_of(network), 0, batch, out);
}

att_status att_network_check_images(const att_model *model, const att_transform_options *transform)
{
    att_preprocess wanted = att_model_preprocess(model);
    if (transform->height == wanted.img_size && transform->width == wanted.img_size &&
        transform->channels == wanted.in_chans)
        return ATT_OK;
    return att_fail(att_graph_context(att_model_graph(model)), ATT_ERR_MISMATCH,
                    "images are made %d x %d with %d channels, but %s takes %d x %d with %d", transform->height,
                    transform->width, transform->channels, att_model_name(model), wanted.img_size, wanted.img_size,
                    wanted.in_chans);
}

att_status att_network_check_labels(att_context *context, const att_dataset *dataset, int classes)
{
    char name[256];
    int64_t count = att_dataset_count(dataset);
    if (classes == 0)
        return att_fail(context, ATT_ERR_MISMATCH, "the model has no head and so no classes to compare with labels");
    for (int64_t i = 0; i < count; i++) {
        int32_t label = att_dataset_label(dataset, i);
        if (label < 0 || label >= classes)
            return att_fail(context, ATT_ERR_MISMATCH, "%s is of class %d, but the model has %d class%s",
                            att_dataset_name(dataset, i, name, sizeof name), (int)label, classes,
                            classes == 1 ? "" : "es");
    }
    return ATT_OK;
}
