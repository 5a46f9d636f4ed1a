/* The convolutions of a network by name, see models/conv_layers.h. */
#include "networks/models/conv_layers.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "networks/models/family.h"

static const char KEY[] = "attention_layers", ALL[] = "all";

att_conv_layers att_conv_layers_of(const att_model *model, const att_weights *weights)
{
    return (att_conv_layers){.context = att_graph_context(att_model_graph(model)), .model = model, .weights = weights};
}

bool att_conv_layer_at(const att_conv_layers *c, int index, char name[ATT_CONV_NAME])
{
    const att_family *family = att_model_family(c->model);
    return family->convolution && index < ATT_MOST_CONVS &&
           family->convolution(c->context, att_model_settings(c->model), index, name, ATT_CONV_NAME);
}

int att_conv_parameter(const att_weights *weights, const char *layer, const char *parameter)
{
    char name[ATT_CONV_NAME + 32];
    snprintf(name, sizeof name, "%s.%s", layer, parameter);
    return att_weights_find(weights, name);
}

bool att_conv_attends(const att_conv_layers *c, const char *layer)
{
    return att_conv_parameter(c->weights, layer, "row_centers") >= 0;
}

bool att_conv_next_name(const char **at, char name[ATT_OPTION_TEXT_BYTES])
{
    if (!**at)
        return false;
    size_t length = strcspn(*at, ",");
    const char *from = *at + strspn(*at, " "), *end = *at + length;
    while (end > from && end[-1] == ' ')
        end--;
    snprintf(name, ATT_OPTION_TEXT_BYTES, "%.*s", (int)(end - from), from);
    *at += length + ((*at)[length] == ',');
    return true;
}

/* --- choosing ----------------------------------------------------------------------------------------------------- */

/* Says why `layer`, which is no convolution of the network itself, cannot be converted. attention: it should be
 * attention now */
static att_status fail_layer(const att_conv_layers *c, const char *layer, bool attention)
{
    static const char *const kinds[] = {[1] = "a norm", [2] = "a linear layer", [4] = "a convolution of a module"};
    char conv[ATT_CONV_NAME], nearest[ATT_CONV_NAME] = "";
    int weight = att_conv_parameter(c->weights, layer, "weight"), distance = (int)strlen(layer) / 2 + 1;
    int rank = weight < 0 ? 0 : att_weights_at(c->weights, weight).shape.rank;
    if (weight >= 0)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED, "\"%s\" cannot become %s: it is %s, and only %s can", layer,
                        attention ? "a convolution" : "attention",
                        rank == 1 || rank == 2 || rank == 4 ? kinds[rank] : "a layer of another kind",
                        attention ? "attention in the place of convolutions" : "convolutions of the network itself");
    for (int i = 0; att_conv_layer_at(c, i, conv); i++) {
        int other = att_text_distance(layer, conv);
        if (other < distance) {
            distance = other;
            snprintf(nearest, sizeof nearest, "%s", conv);
        }
    }
    return att_fail(c->context, ATT_ERR_NOT_FOUND,
                    "the network %s has no convolution \"%s\"%s%s%s; attscope inspect lists its layers",
                    att_model_name(c->model), layer, *nearest ? "; did you mean \"" : "", nearest,
                    *nearest ? "\"?" : "");
}

static att_status choose(att_conv_layers *c, const char *pattern, bool attention)
{
    char conv[ATT_CONV_NAME];
    const bool is_all = strcmp(pattern, ALL) == 0, exact = !is_all && !strpbrk(pattern, "*?");
    bool found = false;
    for (int i = 0; att_conv_layer_at(c, i, conv); i++) {
        const bool wanted = att_conv_attends(c, conv) == attention;
        if (!is_all && !att_text_matches(pattern, conv))
            continue;
        found = true;
        if (exact && !wanted)
            return att_fail(c->context, ATT_ERR_UNSUPPORTED, "\"%s\" is %s already", conv,
                            attention ? "a convolution" : "attention");
        c->count += wanted && !c->chosen[i];
        c->chosen[i] = wanted;
    }
    return found ? ATT_OK : fail_layer(c, pattern, attention);
}

att_status att_conv_layers_choose(att_conv_layers *c, const char *list, bool attention)
{
    char name[ATT_OPTION_TEXT_BYTES];
    for (const char *at = list; att_conv_next_name(&at, name);) {
        if (strlen(name) >= ATT_CONV_NAME)
            return att_fail(c->context, ATT_ERR_ARGUMENT, "a layer's name has more than %d bytes", ATT_CONV_NAME - 1);
        ATT_TRY(choose(c, name, attention));
    }
    if (c->count == 0)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED, "all convolutions that match \"%s\" are %s already", list,
                        attention ? "convolutions" : "attention");
    return ATT_OK;
}

/* --- another network ---------------------------------------------------------------------------------------------- */

/* Copies parameter `from` of the network to parameter `to` of the other one. */
static att_status copy_parameter(const att_conv_layers *c, int from, att_weights *weights, int to)
{
    int64_t count = att_shape_count(att_weights_at(c->weights, from).shape);
    size_t bytes = att_size_product((size_t)count, att_dtype_size(att_graph_dtype(att_model_graph(c->model))));
    void *values = att_allocate(c->context, bytes);
    if (!values)
        return att_fail_memory(c->context, bytes, "a parameter");
    att_status status = att_weights_get(c->weights, -1, from, values, count);
    if (status == ATT_OK)
        status = att_weights_set(weights, -1, to, values, count);
    att_free(c->context, values);
    return status;
}

att_status att_conv_layers_remake(const att_conv_layers *c, const char *attention_layers, att_model **model,
                                  att_weights **weights)
{
    att_option_values options = *att_model_options(c->model);
    att_options_set_text(&options, KEY, attention_layers);
    ATT_TRY(att_model_rebuild(c->model, &options, model));
    ATT_TRY(att_weights_create(att_model_graph(*model), "cpu", weights));
    ATT_TRY(att_weights_initialise(*weights, 0));
    for (int i = 0; i < att_weights_count(*weights); i++) {
        int from = att_weights_find(c->weights, att_weights_at(*weights, i).name);
        if (from >= 0)
            ATT_TRY(copy_parameter(c, from, *weights, i));
    }
    return ATT_OK;
}

/* --- the option attention_layers ---------------------------------------------------------------------------------- */

/* Counts the convolutions that match the pattern, and those of them that are attention. */
static int count(const att_conv_names *names, const char *pattern, int *attention)
{
    char conv[ATT_CONV_NAME];
    int total = 0;
    *attention = 0;
    for (int i = 0; names->at(names->user, i, conv, sizeof conv); i++)
        if (att_text_matches(pattern, conv)) {
            total++;
            *attention += names->attends(names->user, i, conv);
        }
    return total;
}

/* Writes to `entry` the convolution, or the pattern of its namesakes in the stage if all of them are attention. Returns
 * false if an earlier entry names it. */
static bool entry_of(const att_conv_names *names, const char *conv, char entry[ATT_CONV_NAME])
{
    int stage, block, used = 0, attention;
    char pattern[ATT_CONV_NAME];
    snprintf(entry, ATT_CONV_NAME, "%s", conv);
    if (sscanf(conv, "layer%d.%d.%n", &stage, &block, &used) != 2 || used == 0)
        return true;
    snprintf(pattern, sizeof pattern, "layer%d.*.%s", stage, conv + used);
    int total = count(names, pattern, &attention);
    if (total < 2 || attention < total)
        return true;
    snprintf(entry, ATT_CONV_NAME, "%s", pattern);
    return block == 0;
}

bool att_conv_names_format(const att_conv_names *names, char *text, size_t size)
{
    char conv[ATT_CONV_NAME], entry[ATT_CONV_NAME];
    int attention, total = count(names, "*", &attention);
    size_t length = 0;
    if (attention == 0 || attention == total)
        return snprintf(text, size, "%s", attention ? ALL : "none") < (int)size;
    for (int i = 0; names->at(names->user, i, conv, sizeof conv) && length < size; i++)
        if (names->attends(names->user, i, conv) && entry_of(names, conv, entry))
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? "," : "", entry);
    return length < size;
}
