#include "study/explore/explorer.h"
#include "base/core/error.h"
#include "engine/graph/graph.h"

static att_status prepare(att_explorer *explorer, const att_shapes *shapes)
{
    const att_network *network = explorer->network;
    ATT_TRY(att_network_reshape(network, shapes, &explorer->reshaped));
    ATT_TRY(att_explorer_build(explorer));
    const att_inference_options options = {.backend = network->backend,
                                           .precision = network->precision,
                                           .max_batch = explorer->form.samples,
                                           .group = explorer->form.samples == 1 ? 1 : 0,
                                           .stops = true};
    ATT_TRY(att_inference_create(explorer->graph, att_reshaped_weights(network, &explorer->reshaped), &options,
                                 &explorer->inference));
    att_explorer_reset(explorer);
    return att_explorer_bind(explorer, explorer->inference.session);
}

att_explorer_form att_explorer_form_whole(void)
{
    return (att_explorer_form){
        .samples = 1, .rows = true, .heads = true, .uniform = true, .branches = true, .tokens = true};
}

static att_status create(att_network *network, const att_shapes *shapes, const att_explorer_form *form,
                         att_explorer **out)
{
    att_context *context = network->context;
    att_explorer *explorer;
    ATT_TRY(att_new(context, &explorer, 1, "an explorer"));
    explorer->context = explorer->arena.context = context;
    explorer->network = network;
    explorer->form = *form;
    explorer->count = form->samples;
    att_status status = prepare(explorer, shapes);
    if (status == ATT_OK)
        *out = explorer;
    else
        att_explorer_destroy(&explorer);
    return status;
}

att_status att_explorer_create_form(att_network *network, const att_explorer_form *form, const att_batch *inputs,
                                    att_explorer **out)
{
    att_batch given;
    att_shapes shapes = att_model_shapes(network->model);
    if (inputs)
        ATT_TRY(att_network_take_inputs(network, inputs, &given, &shapes));
    return create(network, &shapes, form, out);
}

att_status att_explorer_create(att_network *network, att_explorer **out)
{
    const att_explorer_form form = att_explorer_form_whole();
    return att_explorer_create_form(network, &form, NULL, out);
}

att_status att_explorer_create_for(att_network *network, const att_batch *inputs, const char *outputs,
                                   att_explorer **out)
{
    att_explorer_form form = att_explorer_form_whole();
    ATT_TRY(att_require(network->context, inputs, "the inputs of an explorer"));
    form.outputs = outputs;
    return att_explorer_create_form(network, &form, inputs, out);
}

void att_explorer_destroy(att_explorer **out)
{
    if (!out || !*out)
        return;
    att_explorer *explorer = *out;
    att_context *context = explorer->context;
    att_inference_free(&explorer->inference);
    att_graph_destroy(&explorer->graph);
    att_reshaped_free(&explorer->reshaped);
    att_free(context, explorer->layers);
    att_free(context, explorer->branches);
    att_arena_free(&explorer->arena);
    att_free(context, explorer);
    *out = NULL;
}

int att_explorer_layer_count(const att_explorer *explorer)
{
    return explorer->layer_count;
}

att_explorer_layer att_explorer_layer_at(const att_explorer *explorer, int index)
{
    const att_explored_layer *layer = &explorer->layers[index];
    const att_attention_attrs *attrs = &layer->attrs;
    return (att_explorer_layer){
        .scope = layer->scope,
        .heads = attrs->heads,
        .queries = (int)layer->queries,
        .tokens = (int)layer->tokens,
        .prefix = attrs->prefix,
        .grid_h = attrs->grid_h,
        .grid_w = attrs->grid_w,
        .window_h = attrs->window_h,
        .window_w = attrs->window_w,
        .shift_h = attrs->shift_h,
        .shift_w = attrs->shift_w,
        .causal = attrs->causal,
        .content = *layer->kept_name[ATT_KEPT_Q],
        .positions = *layer->kept_name[ATT_KEPT_RELATIVE] || *layer->kept_name[ATT_KEPT_ROWS],
    };
}

int att_explorer_branch_count(const att_explorer *explorer)
{
    return explorer->branch_count;
}

att_explorer_branch att_explorer_branch_at(const att_explorer *explorer, int branch)
{
    const att_explored_branch *b = &explorer->branches[branch];
    return (att_explorer_branch){.scope = b->scope, .content = b->content};
}

/* Finds what the run has kept. */
static void take_kept(att_explorer *explorer, const att_batch *answers)
{
    for (int l = 0; l < explorer->layer_count; l++)
        for (int k = 0; k < ATT_KEPTS; k++) {
            att_explored_layer *layer = &explorer->layers[l];
            layer->kept[k] = *layer->kept_name[k] ? att_batch_field(answers, layer->kept_name[k]) : NULL;
        }
}

att_status att_explorer_run(att_explorer *explorer, const att_batch *inputs, att_batch *answers)
{
    return att_explorer_run_placed(explorer, inputs, NULL, answers);
}

att_status att_explorer_run_placed(att_explorer *explorer, const att_batch *inputs, const att_geometry *place,
                                   att_batch *answers)
{
    const att_model *model = att_reshaped_model(explorer->network, &explorer->reshaped);
    att_sized_inputs room;
    att_batch given;
    ATT_TRY(att_network_take_inputs_of(explorer->network, model, inputs, place, &given, &room));
    ATT_TRY(att_inference_run(&explorer->inference, &given, 1, answers));
    take_kept(explorer, answers);
    att_explorer_note(explorer);
    explorer->has_run = true;
    if (!att_inference_is_finite(answers, 0))
        return att_fail(explorer->context, ATT_ERR_NONFINITE,
                        "the network's outputs for this sample contain NaN or infinity");
    return ATT_OK;
}

att_status att_explorer_run_samples(att_explorer *explorer, const att_batch *inputs, int count, att_batch *answers)
{
    return att_inference_run(&explorer->inference, inputs, count, answers);
}
