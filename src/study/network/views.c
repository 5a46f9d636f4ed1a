#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "study/network/network.h"

static void free_view(void *entry)
{
    att_network_view *view = entry;
    att_inference_free(&view->inference);
    att_graph_destroy(&view->graph);
    att_weights_destroy(&view->covered);
    att_weights_destroy(&view->resized);
    att_model_destroy(&view->model);
    *view = (att_network_view){0};
}

void att_network_begin_views(att_network *network)
{
    network->views = network->windows = (att_shape_cache){.context = network->context,
                                                          .entry_size = sizeof(att_network_view),
                                                          .free_entry = free_view,
                                                          .most_bytes = att_memory_left(network->context) / 4};
}

/* Creates the model and weights of a view whose inputs have other shapes than the network's. */
static att_status make_model(att_network *network, const att_shapes *shapes, att_network_view *view)
{
    const att_shapes own = att_model_shapes(network->model);
    if (att_shapes_equal(shapes, &own))
        return ATT_OK;
    ATT_TRY(att_model_reshape(network->model, shapes, &view->model));
    ATT_TRY(att_model_resize_weights(view->model, network->model, network->weights, network->backend, &view->resized));
    return view->resized ? att_weights_overlay(network->weights, view->resized, &view->covered) : ATT_OK;
}

static att_status fill_view(att_network *network, att_shape_cache *cache, const char *outputs, const att_shapes *shapes,
                            int count, att_network_view *view)
{
    const char **names = NULL;
    ATT_TRY(make_model(network, shapes, view));
    ATT_TRY(att_network_build_outputs(view->model ? view->model : network->model, outputs, &view->graph, &names));
    const att_inference_options options = {.backend = network->backend,
                                           .precision = network->precision,
                                           .max_batch = count,
                                           .outputs = names,
                                           .cache = cache,
                                           .entry = view};
    att_weights *weights = view->covered ? view->covered : network->weights;
    att_status status = att_inference_create(view->graph, weights, &options, &view->inference);
    att_free(network->context, names);
    view->max_batch = count;
    view->version = att_weights_version(network->weights);
    return status;
}

/* Whether the view can answer. Resampled weights are copies, which changes of the network's weights do not reach. */
static bool is_ready(const att_network *network, const att_network_view *view, int count)
{
    return view->max_batch >= count && (!view->resized || view->version == att_weights_version(network->weights));
}

att_status att_network_get_view(att_network *network, att_shape_cache *cache, const char *outputs,
                                const att_shapes *shapes, int count, att_network_view **out)
{
    void *entry = att_shape_cache_find(cache, shapes);
    if (!entry)
        ATT_TRY(att_shape_cache_add(cache, shapes, &entry));
    att_network_view *view = entry;
    att_status status = ATT_OK;
    if (!is_ready(network, view, count)) {
        free_view(view);
        status = fill_view(network, cache, outputs, shapes, count, view);
    }
    if (status == ATT_OK)
        *out = view;
    else
        att_shape_cache_drop(cache, view);
    return status;
}
