/* Runs of a network on named inputs. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "data/geometry.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "study/network/network.h"

static const att_field *find_field(const att_batch *batch, const char *name)
{
    for (int i = 0; i < batch->field_count; i++)
        if (batch->fields[i].name && strcmp(batch->fields[i].name, name) == 0)
            return &batch->fields[i];
    return NULL;
}

static att_status check_names(const att_network *network, const att_batch *inputs)
{
    char text[ATT_INPUTS_TEXT];
    for (int i = 0; i < inputs->field_count; i++) {
        const char *name = inputs->fields[i].name;
        bool known = false;
        for (int n = 0; name && !known && att_model_input_at(network->model, n).field.name; n++)
            known = strcmp(name, att_model_input_at(network->model, n).field.name) == 0;
        if (!known || find_field(inputs, name) != &inputs->fields[i])
            return att_fail(network->context, ATT_ERR_ARGUMENT, "%s %s \"%s\"; its inputs are: %s",
                            att_model_name(network->model), known ? "takes one input" : "has no input",
                            name ? name : "", att_model_inputs_describe(network->model, text));
    }
    return ATT_OK;
}

static att_status take_input(const att_network *network, const att_batch *inputs, const att_field *own,
                             att_shape *shape)
{
    char text[ATT_INPUTS_TEXT];
    const att_field *given = find_field(inputs, own->name);
    if (!given || !inputs->data[given - inputs->fields])
        return att_fail(network->context, ATT_ERR_ARGUMENT, "the input \"%s\" is not given; the inputs of %s are: %s",
                        own->name, att_model_name(network->model), att_model_inputs_describe(network->model, text));
    if (given->dtype != own->dtype)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "the input \"%s\" is %s, expected %s", own->name,
                        att_dtype_name(given->dtype), att_dtype_name(own->dtype));
    *shape = given->shape;
    return ATT_OK;
}

/* Checks the numbers of I32 inputs for texts of these lengths. */
static att_status check_numbers(const att_network *network, const att_batch *inputs, const att_shapes *shapes)
{
    const att_option_values options = att_model_shaped_options(network->model, shapes);
    for (int i = 0; i < shapes->count; i++) {
        const att_field own = att_model_input_at(network->model, i).field, *given = find_field(inputs, own.name);
        if (own.dtype == ATT_I32)
            ATT_TRY(att_model_check_numbers(network->model, i, inputs->data[given - inputs->fields],
                                            inputs->count * att_shape_count(given->shape), &options));
    }
    return ATT_OK;
}

att_status att_network_take_inputs(const att_network *network, const att_batch *inputs, att_batch *given,
                                   att_shapes *shapes)
{
    att_field own;
    ATT_TRY(att_require(network->context, inputs, "the inputs of a run"));
    ATT_TRY(att_require(network->context, inputs->fields, "the fields of the inputs of a run"));
    ATT_TRY(att_require(network->context, inputs->data, "the data of the inputs of a run"));
    if (inputs->count < 1)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "a run of %d samples, expected at least 1", inputs->count);
    *shapes = (att_shapes){0};
    *given = (att_batch){.count = inputs->count,
                         .rows = inputs->count,
                         .field_count = inputs->field_count,
                         .fields = inputs->fields,
                         .data = inputs->data};
    ATT_TRY(check_names(network, inputs));
    while ((own = att_model_input_at(network->model, shapes->count).field).name)
        ATT_TRY(take_input(network, inputs, &own, &shapes->of[shapes->count++]));
    return check_numbers(network, inputs, shapes);
}

/* Explains an answer that is not finite: by the sample's own inputs, or else by the weights. */
static att_status fail_nonfinite(const att_network *network, const att_batch *inputs, int sample)
{
    for (int f = 0; f < inputs->field_count; f++) {
        const int64_t each = att_shape_count(inputs->fields[f].shape);
        const float *values = inputs->data[f];
        for (int64_t e = 0; inputs->fields[f].dtype == ATT_F32 && e < each; e++)
            if (!isfinite(values[sample * each + e]))
                return att_fail(network->context, ATT_ERR_NONFINITE,
                                "sample %d of the input \"%s\" contains NaN or infinity", sample,
                                inputs->fields[f].name);
    }
    return att_weights_fail_nonfinite(network->weights, ATT_NONFINITE_OUTPUTS);
}

static att_status write_image_sizes(att_network *network, int count, const att_geometry *places, att_shape image)
{
    att_free(network->context, network->image_sizes);
    ATT_TRY(att_new(network->context, &network->image_sizes, 2 * (size_t)count, "sizes of images"));
    for (int i = 0; i < count; i++) {
        float *size = network->image_sizes + 2 * (ptrdiff_t)i;
        size[0] = (float)image.dims[0];
        size[1] = (float)image.dims[1];
        if (places)
            att_geometry_image_size(&places[i], size);
    }
    return ATT_OK;
}

att_status att_network_add_image_sizes(att_network *network, const att_geometry *places, att_batch *given,
                                       att_sized_inputs *room)
{
    const char *name = att_model_task_of(network->model)->image_size;
    const int count = given->field_count;
    if (!name || att_model_classes(network->model) == 0)
        return ATT_OK;
    const att_field *image = find_field(given, att_model_image(network->model).field.name);
    ATT_TRY(write_image_sizes(network, given->count, places, image->shape));
    memcpy(room->fields, given->fields, (size_t)count * sizeof *room->fields);
    memcpy(room->data, given->data, (size_t)count * sizeof *room->data);
    room->fields[count] = (att_field){.name = name, .dtype = ATT_F32, .shape = att_shape_of(2)};
    room->data[count] = network->image_sizes;
    given->field_count++;
    given->fields = room->fields;
    given->data = room->data;
    return ATT_OK;
}

att_status att_network_take_inputs_of(att_network *network, const att_model *model, const att_batch *inputs,
                                      const att_geometry *places, att_batch *given, att_sized_inputs *room)
{
    att_shapes shapes;
    ATT_TRY(att_network_take_inputs(network, inputs, given, &shapes));
    for (int i = 0; i < shapes.count; i++)
        ATT_TRY(att_model_check_input(model, i, shapes.of[i], att_model_options(model)));
    return att_network_add_image_sizes(network, places, given, room);
}

att_status att_network_run(att_network *network, const att_batch *inputs, att_batch *answers)
{
    return att_network_run_placed(network, inputs, NULL, answers);
}

att_status att_network_run_placed(att_network *network, const att_batch *inputs, const att_geometry *places,
                                  att_batch *answers)
{
    att_sized_inputs room;
    att_network_view *view;
    att_batch given;
    att_shapes shapes;
    network->place_count = 0;
    ATT_TRY(att_network_take_inputs(network, inputs, &given, &shapes));
    ATT_TRY(att_network_add_image_sizes(network, places, &given, &room));
    ATT_TRY(att_network_get_view(network, &network->views, network->outputs, &shapes, given.count, &view));
    ATT_TRY(att_inference_run(&view->inference, &given, given.rows, answers));
    for (int i = 0; i < given.count; i++)
        if (!att_inference_is_finite(answers, i))
            return fail_nonfinite(network, inputs, i);
    return ATT_OK;
}
