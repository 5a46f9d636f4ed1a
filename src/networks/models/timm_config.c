#include "networks/models/timm_config.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "networks/models/checkpoint.h"
#include "networks/models/config.h"
#include "networks/models/family.h"
#include "networks/models/timm.h"

/* --- arguments of timm's constructors ---------------------------------------------------------------------------- */

bool att_timm_differs(const att_timm_network *network, const char *key)
{
    return !att_option_same(att_family_option(key), network->options, network->own);
}

bool att_timm_give(const att_timm_network *network, const att_option *option, const char *key, att_json_writer *writer)
{
    att_json_key(writer, key);
    if (option->kind == ATT_OPTION_SWITCH)
        att_json_bool(writer, att_options_number(network->options, option->key, 0) != 0);
    else
        att_option_write_json(writer, option, att_options_find(network->options, option->key));
    return true;
}

bool att_timm_give_list(const char *text, const char *key, att_json_writer *writer)
{
    enum { MOST = 8 };
    int numbers[MOST], count = att_text_to_list(text, 0, INT_MAX, numbers, MOST);
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_integer(writer, numbers[i]);
    att_json_end_array(writer);
    return count > 0;
}

bool att_timm_give_of(const char *names, const att_timm_network *network, const att_option *option,
                      att_json_writer *writer)
{
    return att_checkpoint_lists(names, option->key) && att_timm_give(network, option, option->key, writer);
}

bool att_timm_give_word(const char *words, const att_timm_network *network, const att_option *option,
                        att_json_writer *writer)
{
    return att_checkpoint_lists(words, att_options_text(network->options, option->key)) &&
           att_timm_give(network, option, option->key, writer);
}

/* Options that do not change what the network computes from images of its own size, or that have another place in
 * config.json. */
static const char elsewhere[] = "num_classes attn_drop_rate pos_embed_resize zero_init_last file_grid";

static att_status refuse_option(att_context *context, const char *name, const att_timm_network *network,
                                const att_option *option)
{
    char here[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES] = {"not set"},
         there[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES] = {"not set"};
    att_option_format(option, network->options, here);
    att_option_format(option, network->own, there);
    if (strcmp(option->key, "task") == 0)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "timm cannot build this network: its task is %.80s, and timm has networks for classification "
                        "only",
                        *here);
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "timm cannot build this network: %s is %.80s, in timm's %s it is %.80s, and no argument of timm's "
                    "constructor changes that",
                    option->key, *here[0] ? here[0] : "empty", name, *there[0] ? there[0] : "empty");
}

static att_status write_arguments(const att_model *model, const att_timm_network *network, att_json_writer *writer)
{
    const att_family *family = att_model_family(model);
    att_json_put_object(writer, "model_args");
    for (int i = 0; i < family->options->count; i++) {
        const att_option *option = &family->options->options[i];
        if (option->training || att_checkpoint_lists(elsewhere, option->key) ||
            att_option_same(option, network->options, network->own))
            continue;
        if (!family->timm->give_argument(network, option, writer))
            return refuse_option(att_graph_context(att_model_graph(model)), att_model_name(model), network, option);
    }
    att_json_end_object(writer);
    return ATT_OK;
}

/* --- preparation of images --------------------------------------------------------------------------------------- */

static void write_size(att_json_writer *writer, const char *key, int channels, int height, int width)
{
    att_json_put_array(writer, key);
    att_json_integer(writer, channels);
    att_json_integer(writer, height);
    att_json_integer(writer, width);
    att_json_end_array(writer);
}

static void write_channels(att_json_writer *writer, const char *key, const double *values, int count)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_number(writer, values[i]);
    att_json_end_array(writer);
}

static att_status write_images(att_context *context, const att_identity *identity, att_json_writer *writer)
{
    const att_preprocess *p = &identity->preprocess;
    if (!att_checkpoint_lists("center squash border", p->crop_mode))
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "timm cannot prepare the images of this network: it has no crop_mode \"%s\"; attscope convert "
                        "--crop-mode center, squash or border writes another one",
                        p->crop_mode);
    if (!att_checkpoint_lists("nearest bilinear bicubic box hamming lanczos", p->interpolation))
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "timm cannot prepare the images of this network: it has no interpolation \"%s\"; attscope "
                        "convert --interpolation bicubic, bilinear or nearest writes another one",
                        p->interpolation);
    write_size(writer, "input_size", p->in_chans, p->height, p->width);
    write_channels(writer, "mean", p->mean, p->in_chans);
    write_channels(writer, "std", p->std, p->in_chans);
    att_json_put_number(writer, "crop_pct", p->crop_pct);
    att_json_put_string(writer, "crop_mode", p->crop_mode);
    att_json_put_string(writer, "interpolation", p->interpolation);
    if (identity->test_height > 0)
        write_size(writer, "test_input_size", p->in_chans, identity->test_height, identity->test_width);
    if (identity->test_crop_pct > 0)
        att_json_put_number(writer, "test_crop_pct", identity->test_crop_pct);
    return ATT_OK;
}

/* --- layers that timm changes for other classes and channels ----------------------------------------------------- */

/* The first convolution is the first parameter of four axes. */
static void write_first_layer(const att_graph *graph, att_json_writer *writer)
{
    char name[128] = "";
    for (int i = 0; i < att_graph_parameter_count(graph) && !*name; i++) {
        const att_parameter_info info = att_graph_parameter_at(graph, i);
        const char *end = strrchr(info.name, '.');
        if (info.shape.rank == 4 && end)
            snprintf(name, sizeof name, "%.*s", (int)(end - info.name), info.name);
    }
    att_json_put_string(writer, "first_conv", *name ? name : NULL);
}

static void write_classifier(const att_model *model, att_json_writer *writer)
{
    const att_classifier_form form = att_model_family(model)->classifier(att_model_settings(model));
    att_json_key(writer, "classifier");
    if (!form.second) {
        att_json_string(writer, form.scope);
        return;
    }
    att_json_begin_array(writer);
    att_json_string(writer, form.scope);
    att_json_string(writer, form.second);
    att_json_end_array(writer);
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static att_status write_members(const att_model *model, const att_identity *identity, const att_timm_network *network,
                                att_json_writer *writer)
{
    const att_graph *graph = att_model_graph(model);
    const att_family *family = att_model_family(model);
    att_json_put_string(writer, "architecture", att_model_name(model));
    att_json_put_integer(writer, "num_classes", att_model_classes(model));
    att_json_put_integer(writer, "num_features", att_value_shape(graph, att_model_features(model)->pooled).dims[0]);
    att_json_put_string(writer, "global_pool", att_options_text(network->options, "global_pool"));
    ATT_TRY(write_arguments(model, network, writer));
    att_json_put_object(writer, "pretrained_cfg");
    ATT_TRY(write_images(att_graph_context(graph), identity, writer));
    att_json_put_bool(writer, "fixed_input_size", family->timm->sized);
    write_first_layer(graph, writer);
    write_classifier(model, writer);
    att_json_end_object(writer);
    return ATT_OK;
}

att_status att_timm_config_write(const att_model *model, const att_identity *identity, att_json_writer *writer)
{
    att_context *context = att_graph_context(att_model_graph(model));
    const char *name = att_model_name(model);
    att_timm_name listed;
    att_variant variant;
    att_option_values own, completed;
    att_preprocess preprocess;
    const att_timm_form *form = att_model_family(model)->timm;
    if (!form || !att_timm_find_name(name, &listed))
        return att_fail(context, ATT_ERR_UNSUPPORTED, "timm cannot build this network: it has none called \"%s\"",
                        name);
    ATT_TRY(att_variant_find(context, name, &variant));
    att_variant_defaults(&variant, NULL, &own, &preprocess);
    completed = own;
    ATT_TRY(att_family_complete(context, variant.family, &completed));
    if (form->idle)
        att_option_copy(form->idle, &own, &completed);
    return write_members(model, identity, &(att_timm_network){att_model_options(model), &completed}, writer);
}
