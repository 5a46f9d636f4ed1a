/* Convolutions as attention, see attscope/convert.h. */
#include <attscope/convert.h>
#include <attscope/nn.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "models/family.h"

static const char KEY[] = "attention_layers", NONE[] = "none", ALL[] = "all";
static const double LEAST_ALPHA = 13, MOST_ALPHA = 1e6; /* 4 exp(-13) = 9e-6 */

enum { NAME_BYTES = 128, MOST_CONVS = 1024 };

typedef struct conversion {
    att_context *context;
    const att_model *model;
    const att_weights *weights;
    const char *layers;
    double alpha;
    bool chosen[MOST_CONVS]; /* by the number of the convolution */
    int count;
    att_attention_conversion made;
} conversion;

/* --- the layers --------------------------------------------------------------------------------------------------- */

static bool conv_at(const conversion *c, int index, char name[NAME_BYTES])
{
    const att_family *family = att_model_family(c->model);
    return index < MOST_CONVS && family->convolution(c->context, att_model_settings(c->model), index, name, NAME_BYTES);
}

/* Index in the weights of the parameter "<layer>.<parameter>"; -1 if there is none. */
static int parameter_of(const att_weights *weights, const char *layer, const char *parameter)
{
    char name[NAME_BYTES + 32];
    snprintf(name, sizeof name, "%s.%s", layer, parameter);
    return att_weights_find(weights, name);
}

static bool is_attention(const conversion *c, const char *layer)
{
    return parameter_of(c->weights, layer, "row_centers") >= 0;
}

/* Says why `layer`, which is no convolution of the network itself, cannot be converted. */
static att_status fail_layer(const conversion *c, const char *layer)
{
    static const char *const kinds[] = {[1] = "a norm", [2] = "a linear layer", [4] = "a convolution of a module"};
    char conv[NAME_BYTES], nearest[NAME_BYTES] = "";
    int weight = parameter_of(c->weights, layer, "weight"), distance = (int)strlen(layer) / 2 + 1;
    int rank = weight < 0 ? 0 : att_weights_at(c->weights, weight).shape.rank;
    if (weight >= 0)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED,
                        "\"%s\" cannot become attention: it is %s, and only convolutions of the network itself can",
                        layer, rank == 1 || rank == 2 || rank == 4 ? kinds[rank] : "a layer of another kind");
    for (int i = 0; conv_at(c, i, conv); i++) {
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

static att_status choose(conversion *c, const char *pattern)
{
    char conv[NAME_BYTES];
    bool found = false, exact = !strpbrk(pattern, "*?");
    for (int i = 0; conv_at(c, i, conv); i++) {
        if (strcmp(pattern, ALL) != 0 && !att_text_matches(pattern, conv))
            continue;
        found = true;
        if (exact && is_attention(c, conv) && strcmp(pattern, ALL) != 0)
            return att_fail(c->context, ATT_ERR_UNSUPPORTED, "\"%s\" is attention already", conv);
        c->count += !c->chosen[i] && !is_attention(c, conv);
        c->chosen[i] = !is_attention(c, conv);
    }
    return found ? ATT_OK : fail_layer(c, pattern);
}

/* Chooses the layers that the list names. */
static att_status choose_layers(conversion *c)
{
    const char *at = c->layers;
    while (*at) {
        char name[NAME_BYTES];
        size_t length = strcspn(at, ","), blanks = strspn(at, " ");
        blanks = blanks < length ? blanks : length;
        if (snprintf(name, sizeof name, "%.*s", (int)(length - blanks), at + blanks) >= NAME_BYTES)
            return att_fail(c->context, ATT_ERR_ARGUMENT, "a layer's name has more than %d bytes", NAME_BYTES - 1);
        for (size_t end = strlen(name); end > 0 && name[end - 1] == ' ';)
            name[--end] = '\0';
        ATT_TRY(choose(c, name));
        at += length + (at[length] == ',');
    }
    if (c->count == 0)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED, "all convolutions that match \"%s\" are attention already",
                        c->layers);
    return ATT_OK;
}

static att_status check(const conversion *c)
{
    const att_family *family = att_model_family(c->model);
    if (!family->convolution)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED,
                        "%s has no convolution that can become attention; residual networks, such as resnet20 and "
                        "resnet50, have some",
                        att_model_name(c->model));
    if (!c->layers || !*c->layers)
        return att_fail(c->context, ATT_ERR_ARGUMENT,
                        "no layers are named: give names of convolutions, such as conv1,layer1.*.conv2, or all");
    if (!(c->alpha >= LEAST_ALPHA && c->alpha <= MOST_ALPHA))
        return att_fail(c->context, ATT_ERR_ARGUMENT,
                        "alpha is %g, must be %g to %g: a head gives up to 4 exp(-alpha) of its weight to the pixels "
                        "around its center, and the promised error is %g",
                        c->alpha, LEAST_ALPHA, MOST_ALPHA, ATT_CONVERSION_ERROR);
    return ATT_OK;
}

/* --- the converted network ---------------------------------------------------------------------------------------- */

static att_status create_model(conversion *c)
{
    att_option_values options = *att_model_options(c->model);
    char before[ATT_OPTION_TEXT_BYTES], text[ATT_OPTION_TEXT_BYTES];
    snprintf(before, sizeof before, "%s", att_options_text(&options, KEY));
    bool adds = *before && strcmp(before, NONE) != 0;
    if (snprintf(text, sizeof text, "%s%s%s", adds ? before : "", adds ? "," : "", c->layers) >= (int)sizeof text)
        return att_fail(c->context, ATT_ERR_ARGUMENT,
                        "the names of the layers take more than %d bytes; use patterns, such as layer1.*.conv2",
                        ATT_OPTION_TEXT_BYTES - 1);
    att_options_set_text(&options, KEY, text);
    ATT_TRY(att_model_create(c->context, att_model_name(c->model), &options, att_graph_dtype(att_model_graph(c->model)),
                             &c->made.model));
    const att_preprocess preprocess = att_model_preprocess(c->model);
    att_model_set_preprocess(c->made.model, &preprocess);
    return ATT_OK;
}

/* Copies parameter `from` of the network to parameter `to` of the converted one. */
static att_status copy_parameter(const conversion *c, int from, int to)
{
    int64_t count = att_shape_count(att_weights_at(c->weights, from).shape);
    size_t bytes = att_size_product((size_t)count, att_dtype_size(att_graph_dtype(att_model_graph(c->model))));
    void *values = att_allocate(c->context, bytes);
    if (!values)
        return att_fail_memory(c->context, bytes, "a parameter");
    att_status status = att_weights_get(c->weights, -1, from, values, count);
    if (status == ATT_OK)
        status = att_weights_set(c->made.weights, -1, to, values, count);
    att_free(c->context, values);
    return status;
}

static att_status copy_parameters(const conversion *c)
{
    for (int i = 0; i < att_weights_count(c->made.weights); i++) {
        int from = att_weights_find(c->weights, att_weights_at(c->made.weights, i).name);
        if (from >= 0)
            ATT_TRY(copy_parameter(c, from, i));
    }
    return ATT_OK;
}

/* index: of a vector with an element for each row or column of a kernel */
static att_status fill(const conversion *c, int index, double value)
{
    enum { MOST_ROWS = 64 };
    int64_t count = att_shape_count(att_weights_at(c->made.weights, index).shape);
    bool is_f64 = att_graph_dtype(att_model_graph(c->model)) == ATT_F64;
    float narrow[MOST_ROWS];
    double wide[MOST_ROWS];
    for (int64_t i = 0; i < count && i < MOST_ROWS; i++)
        narrow[i] = (float)value, wide[i] = value;
    return att_weights_set(c->made.weights, -1, index, is_f64 ? (const void *)wide : narrow, count);
}

/* The centers are those of the kernel from the start (att_nn_attention_conv()). */
static att_status set_layer(conversion *c, const char *layer)
{
    static const char *const sharpness[] = {"row_sharpness", "column_sharpness"};
    const att_shape shape = att_weights_at(c->made.weights, parameter_of(c->made.weights, layer, "weight")).shape;
    c->made.layers++;
    c->made.heads += (int)(shape.dims[2] * shape.dims[3]);
    for (int axis = 0; axis < 2; axis++)
        ATT_TRY(fill(c, parameter_of(c->made.weights, layer, sharpness[axis]), sqrt(2 * c->alpha)));
    return ATT_OK;
}

static att_status create_weights(conversion *c)
{
    char conv[NAME_BYTES];
    ATT_TRY(att_weights_create(att_model_graph(c->made.model), "cpu", &c->made.weights));
    ATT_TRY(att_weights_initialise(c->made.weights, 0));
    ATT_TRY(copy_parameters(c));
    for (int i = 0; conv_at(c, i, conv); i++)
        if (c->chosen[i])
            ATT_TRY(set_layer(c, conv));
    return ATT_OK;
}

static att_status convert(conversion *c)
{
    ATT_TRY(check(c));
    ATT_TRY(choose_layers(c));
    ATT_TRY(create_model(c));
    return create_weights(c);
}

att_status att_model_to_attention(const att_model *model, const att_weights *weights, const char *layers, double alpha,
                                  att_attention_conversion *made)
{
    conversion c = {.context = att_graph_context(att_model_graph(model)),
                    .model = model,
                    .weights = weights,
                    .layers = layers,
                    .alpha = alpha == 0 ? ATT_ATTENTION_ALPHA : alpha};
    att_status status = convert(&c);
    if (status != ATT_OK) {
        att_attention_conversion_free(&c.made);
        return status;
    }
    c.made.alpha = c.alpha;
    c.made.leak = 4 * exp(-c.alpha);
    *made = c.made;
    return ATT_OK;
}

void att_attention_conversion_free(att_attention_conversion *made)
{
    att_weights_destroy(&made->weights);
    att_model_destroy(&made->model);
}
