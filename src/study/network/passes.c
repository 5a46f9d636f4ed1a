/* Passes over photographs: the network on windows at several scales, mirrored or not. */
#include "base/core/error.h"
#include "data/geometry.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "study/network/network.h"

/* The windows of a photograph that att_network_run_images() runs at once, unless the options say otherwise. */
enum { WINDOWS = 8 };

/* As att_passes.run. */
static att_status run_windows(void *user, const att_batch *images, att_batch *answers)
{
    att_network *network = user;
    att_network_view *view;
    att_batch given;
    att_shapes shapes;
    ATT_TRY(att_network_take_inputs(network, images, &given, &shapes));
    ATT_TRY(att_network_get_view(network, &network->windows, att_model_task_of(network->model)->pixel_logits, &shapes,
                                 given.count, &view));
    return att_inference_run(&view->inference, &given, given.rows, answers);
}

static att_passes passes_of(att_network *network, const att_pass_options *options, int most_windows)
{
    return (att_passes){.task = att_model_task_of(network->model),
                        .options = *options,
                        .transform = att_network_transform(network),
                        .image = att_model_image(network->model).field,
                        .most_windows = options->batch_size > 0 ? options->batch_size : most_windows,
                        .run = run_windows,
                        .user = network};
}

bool att_network_passes(att_network *network, int most_windows, att_passes *passes)
{
    const bool are_on = att_passes_are_on(&network->passes);
    if (are_on)
        *passes = passes_of(network, &network->passes, most_windows);
    return are_on;
}

att_status att_network_set_passes(att_network *network, const att_pass_options *options)
{
    const att_pass_options none = {.longer = 0};
    if (options && att_passes_are_on(options)) {
        ATT_TRY(att_model_need_image(network->model));
        const att_passes passes = passes_of(network, options, WINDOWS);
        ATT_TRY(att_passes_check(network->context, &passes));
    }
    network->passes = options ? *options : none;
    return ATT_OK;
}

/* Makes the classes the answer, and the photograph its place. */
static att_status take_map(att_network *network, const att_mask *classes)
{
    const size_t pixels = (size_t)classes->width * (size_t)classes->height;
    if (!att_list_grow(network->context, &network->places, 0, &network->place_room, sizeof *network->places))
        return att_fail_memory(network->context, sizeof *network->places, "the places of photographs");
    if (pixels > network->map_room) {
        att_free(network->context, network->map);
        network->map_room = 0;
        ATT_TRY(att_new(network->context, &network->map, pixels, "the classes of a photograph"));
        network->map_room = pixels;
    }
    for (size_t i = 0; i < pixels; i++)
        network->map[i] = classes->classes[i];
    network->places[0] = att_geometry_of(classes->width, classes->height);
    network->place_count = 1;
    network->placed = network->map;
    return ATT_OK;
}

att_status att_network_run_passes(att_network *network, const att_image *photograph, att_batch *answers)
{
    const att_passes passes = passes_of(network, &network->passes, WINDOWS);
    att_mask classes;
    bool finite;
    network->place_count = 0;
    if (photograph->channels != passes.transform.channels)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "a photograph with %d channels, expected %d",
                        photograph->channels, passes.transform.channels);
    ATT_TRY(att_passes_classify(network->context, &passes, photograph, &classes, &finite));
    att_status status = take_map(network, &classes);
    network->map_field = (att_field){
        .name = passes.task->pixel_classes, .dtype = ATT_I32, .shape = att_shape_of(classes.height, classes.width)};
    att_mask_free(network->context, &classes);
    ATT_TRY(status);
    network->map_data[0] = network->map;
    *answers = (att_batch){.count = 1, .field_count = 1, .fields = &network->map_field, .data = network->map_data};
    return finite ? ATT_OK : att_weights_fail_nonfinite(network->weights, ATT_NONFINITE_OUTPUTS);
}
