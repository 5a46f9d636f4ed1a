/* Runs of a network on named inputs. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "engine/weights/weights.h"
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
    return ATT_OK;
}

att_status att_network_take_own_inputs(const att_network *network, const att_batch *inputs, att_batch *given)
{
    att_shapes shapes;
    ATT_TRY(att_network_take_inputs(network, inputs, given, &shapes));
    for (int i = 0; i < shapes.count; i++)
        ATT_TRY(att_model_check_input(network->model, i, shapes.of[i], att_model_options(network->model)));
    return ATT_OK;
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

att_status att_network_run(att_network *network, const att_batch *inputs, att_batch *answers)
{
    att_network_view *view;
    att_batch given;
    att_shapes shapes;
    network->place_count = 0;
    ATT_TRY(att_network_take_inputs(network, inputs, &given, &shapes));
    ATT_TRY(att_network_get_view(network, &network->views, network->outputs, &shapes, given.count, &view));
    ATT_TRY(att_inference_run(&view->inference, &given, given.rows, answers));
    for (int i = 0; i < given.count; i++)
        if (!att_inference_is_finite(answers, i))
            return fail_nonfinite(network, inputs, i);
    return ATT_OK;
}
