#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "study/network/network.h"

static void free_view(att_network_view *view)
{
    att_inference_free(&view->inference);
    att_graph_destroy(&view->graph);
    att_weights_destroy(&view->covered);
    att_weights_destroy(&view->resized);
    att_model_destroy(&view->model);
    *view = (att_network_view){0};
}

void att_network_free_views(att_network *network)
{
    for (int i = 0; i < ATT_NETWORK_VIEWS; i++)
        free_view(&network->views[i]);
}

/* Creates the model and weights of a view whose images have another size than the network's. */
static att_status make_model(att_network *network, int height, int width, att_network_view *view)
{
    const att_preprocess own = att_model_preprocess(network->model);
    if (height == own.height && width == own.width)
        return ATT_OK;
    att_option_values options = *att_model_options(network->model);
    att_options_set_sides(&options, "img_size", height, width);
    ATT_TRY(att_model_create(network->context, att_model_name(network->model), &options, network->dtype, &view->model));
    ATT_TRY(att_model_resize_weights(view->model, network->model, network->weights, network->backend, &view->resized));
    return view->resized ? att_weights_overlay(network->weights, view->resized, &view->covered) : ATT_OK;
}

static att_status fill_view(att_network *network, int height, int width, int count, att_network_view *view)
{
    const char **names = NULL;
    ATT_TRY(make_model(network, height, width, view));
    ATT_TRY(
        att_network_build_outputs(view->model ? view->model : network->model, network->outputs, &view->graph, &names));
    const att_inference_options options = {
        .backend = network->backend, .precision = network->precision, .max_batch = count, .outputs = names};
    att_weights *weights = view->covered ? view->covered : network->weights;
    att_status status = att_inference_create(view->graph, weights, &options, &view->inference);
    att_free(network->context, names);
    view->height = height;
    view->width = width;
    view->max_batch = count;
    view->version = att_weights_version(network->weights);
    return status;
}

/* Returns the slot of the view of this size; if there is none, the slot that was unused longest. */
static att_network_view *place_of(att_network *network, int height, int width)
{
    att_network_view *oldest = &network->views[0];
    for (int i = 0; i < ATT_NETWORK_VIEWS; i++) {
        att_network_view *view = &network->views[i];
        if (view->height == height && view->width == width)
            return view;
        if (view->used < oldest->used)
            oldest = view;
    }
    return oldest;
}

/* Whether the view can answer. Resampled weights are copies, which changes of the network's weights do not reach. */
static bool is_ready(const att_network *network, const att_network_view *view, int height, int width, int count)
{
    return view->height == height && view->width == width && view->max_batch >= count &&
           (!view->resized || view->version == att_weights_version(network->weights));
}

att_status att_network_get_view(att_network *network, int height, int width, int count, att_network_view **out)
{
    att_network_view *view = place_of(network, height, width);
    att_status status = ATT_OK;
    if (!is_ready(network, view, height, width, count)) {
        free_view(view);
        status = fill_view(network, height, width, count, view);
    }
    if (status != ATT_OK)
        free_view(view);
    view->used = ++network->runs;
    *out = view;
    return status;
}
