#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "graph/graph.h"
#include "models/claims.h"
#include "models/family.h"
#include "models/list.h"

#define DECLARE(name) extern const att_family att_family_##name;
ATT_FAMILY_LIST(DECLARE)
#define POINTER(name) &att_family_##name,
static const att_family *const families[] = {ATT_FAMILY_LIST(POINTER)};
enum { FAMILY_COUNT = sizeof families / sizeof *families };

struct att_model {
    att_context *context;
    att_graph *graph;
    const char *name;
    const att_family *family;
    att_model_options options;
    att_preprocess preprocess;
};

/* --- the list ---------------------------------------------------------------------------------------------------- */

int att_variant_count(void)
{
    int count = 0;
    for (int f = 0; f < FAMILY_COUNT; f++)
        count += families[f]->variant_count;
    return count;
}

att_variant att_variant_at(int index)
{
    int f = 0;
    while (f < FAMILY_COUNT - 1 && index >= families[f]->variant_count)
        index -= families[f++]->variant_count;
    return (att_variant){.family = families[f], .index = index, .tag = att_claims_none()};
}

const att_family *att_family_shown(const att_tensors *file)
{
    for (int f = 0; f < FAMILY_COUNT; f++)
        if (att_tensors_find(file, families[f]->mark) >= 0)
            return families[f];
    return NULL;
}

int att_model_count(void)
{
    return att_variant_count();
}

att_model_info att_model_at(int index)
{
    att_variant variant = att_variant_at(index);
    return variant.family->variant(variant.index);
}

void att_variant_defaults(const att_variant *variant, const att_model_options *said, att_model_options *options,
                          att_preprocess *preprocess)
{
    variant->family->defaults(variant->index, said, options, preprocess);
    if (preprocess->img_size != variant->family->variant(variant->index).img_size)
        return; /* made for other images than the tag's weights */
    att_model_options tagged = variant->tag.options;
    att_options_fill(&tagged, options);
    *options = tagged;
    att_claims_lay_over(&variant->tag, preprocess);
    preprocess->img_size = options->img_size;
}

att_status att_model_measure(att_context *context, att_model_info *info)
{
    att_model *model;
    ATT_TRY(att_model_create(context, info->name, NULL, ATT_F32, &model));
    info->parameters = att_graph_parameter_elements(model->graph);
    info->gmacs = att_graph_cost(model->graph).macs / 1e9;
    att_model_destroy(&model);
    return ATT_OK;
}

/* --- one model --------------------------------------------------------------------------------------------------- */

static att_status check_training(att_context *context, const att_model_options *options)
{
    const struct {
        const char *name;
        double value;
    } rates[] = {{"drop_rate", options->drop_rate},
                 {"drop_path_rate", options->drop_path_rate}};
    for (int i = 0; i < 2; i++)
        if (!(rates[i].value >= 0 && rates[i].value < 1))
            return att_fail(context, ATT_ERR_ARGUMENT, "%s must be at least 0 and less than 1, not %g", rates[i].name,
                            rates[i].value);
    return ATT_OK;
}

/* Settles what the options leave open. */
static att_status fill_options(att_context *context, const att_model_options *own, att_model_options *options)
{
    if (options->head == 0 && options->num_classes > 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "num_classes %d: a network without a head has no classes",
                        options->num_classes);
    att_options_settle_head(own, options);
    att_options_fill(options, own);
    att_options_settle_head(own, options);
    if (options->head == 1 && options->num_classes == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "the model has no classes of its own; num_classes must be given");
    return ATT_OK;
}

static att_status build_graph(att_model *model, att_dtype dtype)
{
    ATT_TRY(att_graph_create(model->context, dtype, &model->graph));
    model->family->build(model->graph, &model->options);
    return att_graph_status(model->graph);
}

/* Fills model->options, preprocess and name from the variant and the caller's options. */
static att_status settle(att_model *model, att_variant variant, const att_model_options *options)
{
    att_model_options own;
    att_variant_defaults(&variant, options, &own, &model->preprocess);
    model->options = options ? *options : att_model_options_defaults();
    model->name = variant.family->variant(variant.index).name;
    model->family = variant.family;
    ATT_TRY(att_options_check(model->context, model->family->name, &model->options));
    ATT_TRY(check_training(model->context, &model->options));
    ATT_TRY(att_options_check_attn(model->context, &model->options, &own));
    ATT_TRY(fill_options(model->context, &own, &model->options));
    ATT_TRY(variant.family->complete(model->context, &model->options));
    model->preprocess.img_size = model->options.img_size;
    model->preprocess.in_chans = model->options.in_chans;
    return ATT_OK;
}

att_status att_model_create(att_context *context, const char *name, const att_model_options *options, att_dtype dtype,
                            att_model **out)
{
    att_variant variant;
    ATT_TRY(att_variant_find(context, name, &variant));
    att_model *model = att_allocate(context, sizeof *model);
    if (!model)
        return att_fail_memory(context, sizeof *model, "a model");
    model->context = context;
    att_status status = settle(model, variant, options);
    if (status == ATT_OK)
        status = build_graph(model, dtype);
    if (status != ATT_OK)
        att_model_destroy(&model);
    else
        *out = model;
    return status;
}

void att_model_destroy(att_model **model)
{
    if (!model || !*model)
        return;
    att_graph_destroy(&(*model)->graph);
    att_free((*model)->context, *model);
    *model = NULL;
}

att_graph *att_model_graph(const att_model *model)
{
    return model->graph;
}

const char *att_model_name(const att_model *model)
{
    return model->name;
}

const att_family *att_model_family(const att_model *model)
{
    return model->family;
}

att_model_options att_model_options_of(const att_model *model)
{
    return model->options;
}

int64_t att_model_tokens(const att_model *model)
{
    int64_t most = 0;
    for (int i = 0; i < model->graph->nodes.count; i++) {
        const att_node *node = &model->graph->nodes.items[i];
        int64_t tokens = att_value_shape(model->graph, node->out[0]).dims[0];
        if (strcmp(node->op->name, "attention") == 0 && tokens > most)
            most = tokens;
    }
    return most;
}

att_preprocess att_model_preprocess(const att_model *model)
{
    return model->preprocess;
}

void att_model_set_preprocess(att_model *model, const att_preprocess *preprocess)
{
    model->preprocess = *preprocess;
    model->preprocess.img_size = model->options.img_size;
    model->preprocess.in_chans = model->options.in_chans;
}

att_identity att_model_identity(const att_model *model)
{
    att_identity identity = {.options = model->options, .preprocess = model->preprocess};
    snprintf(identity.name, sizeof identity.name, "%s", model->name);
    identity.options.drop_rate = identity.options.drop_path_rate = 0;
    return identity;
}
