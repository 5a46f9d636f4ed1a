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
    att_reshaped_free(&view->reshaped);
    *view = (att_network_view){0};
}

void att_network_begin_views(att_network *network)
{
    network->views = network->windows = (att_shape_cache){.context = network->context,
                                                          .entry_size = sizeof(att_network_view),
                                                          .free_entry = free_view,
                                                          .most_bytes = att_memory_left(network->context) / 4};
}

att_status att_network_reshape(const att_network *network, const att_shapes *shapes, att_reshaped *r)
{
    const att_shapes own = att_model_shapes(network->model);
    *r = (att_reshaped){0};
    if (att_shapes_equal(shapes, &own))
        return ATT_OK;
    ATT_TRY(att_model_reshape(network->model, shapes, &r->model));
    ATT_TRY(att_model_resize_weights(r->model, network->model, network->weights, network->backend, &r->resized));
    return r->resized ? att_weights_overlay(network->weights, r->resized, &r->covered) : ATT_OK;
}

void att_reshaped_free(att_reshaped *r)
{
    att_weights_destroy(&r->covered);
    att_weights_destroy(&r->resized);
    att_model_destroy(&r->model);
}

const att_model *att_reshaped_model(const att_network *network, const att_reshaped *r)
{
    return r->model ? r->model : network->model;
}

att_weights *att_reshaped_weights(const att_network *network, const att_reshaped *r)
{
    return r->covered ? r->covered : network->weights;
}

static att_status fill_view(att_network *network, att_shape_cache *cache, const char *outputs, const att_shapes *shapes,
                            int count, att_network_view *view)
{
    const char **names = NULL;
    ATT_TRY(att_network_reshape(network, shapes, &view->reshaped));
    ATT_TRY(att_network_build_outputs(att_reshaped_model(network, &view->reshaped), outputs, &view->graph, &names));
    const att_inference_options options = {.backend = network->backend,
                                           .precision = network->precision,
                                           .max_batch = count,
                                           .outputs = names,
                                           .cache = cache,
                                           .entry = view};
    att_weights *weights = att_reshaped_weights(network, &view->reshaped);
    att_status status = att_inference_create(view->graph, weights, &options, &view->inference);
    att_free(network->context, names);
    view->max_batch = count;
    view->version = att_weights_version(network->weights);
    return status;
}

/* Whether the view can answer. */
static bool is_ready(const att_network *network, const att_network_view *view, int count)
{
    return view->max_batch >= count &&
           (!view->reshaped.resized || view->version == att_weights_version(network->weights));
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
