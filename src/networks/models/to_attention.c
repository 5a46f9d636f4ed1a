/* Convolutions as attention, see attscope/convert.h. */
#include <attscope/convert.h>
#include <attscope/nn.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/conv_layers.h"
#include "networks/models/family.h"

static const char KEY[] = "attention_layers", NONE[] = "none";
static const double LEAST_ALPHA = 13, MOST_ALPHA = 1e6; /* 4 exp(-13) = 9e-6 */

typedef struct conversion {
    att_context *context;
    const att_model *model;
    const char *layers;
    double alpha;
    att_conv_layers convs;
    att_conversion made;
} conversion;

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

/* Refuses weights with NaN or infinite values, and names the first such tensor. */
static att_status check_finite(const conversion *c)
{
    for (int i = 0; i < att_weights_count(c->convs.weights); i++) {
        const att_parameter_info info = att_weights_at(c->convs.weights, i);
        const int64_t count = att_shape_count(info.shape);
        int64_t bad = 0;
        double *values;
        ATT_TRY(att_new(c->context, &values, (size_t)count, "the values of a parameter"));
        att_status status = att_model_parameter(c->model, c->convs.weights, i, count, values);
        for (int64_t e = 0; e < count && status == ATT_OK; e++)
            bad += !isfinite(values[e]);
        att_free(c->context, values);
        ATT_TRY(status);
        if (bad > 0)
            return att_fail(c->context, ATT_ERR_NONFINITE, "\"%s\" has %lld values that are NaN or infinite, of %lld",
                            info.name, (long long)bad, (long long)count);
    }
    return ATT_OK;
}

/* --- the converted network ---------------------------------------------------------------------------------------- */

/* Writes the value of the option of the converted network. */
static att_status name_layers(const conversion *c, char text[ATT_OPTION_TEXT_BYTES])
{
    const char *before = att_options_text(att_model_options(c->model), KEY);
    const bool adds = *before && strcmp(before, NONE) != 0;
    if (snprintf(text, ATT_OPTION_TEXT_BYTES, "%s%s%s", adds ? before : "", adds ? "," : "", c->layers) >=
        ATT_OPTION_TEXT_BYTES)
        return att_fail(c->context, ATT_ERR_ARGUMENT,
                        "the names of the layers take more than %d bytes; use patterns, such as layer1.*.conv2",
                        ATT_OPTION_TEXT_BYTES - 1);
    return ATT_OK;
}

/* index: of a vector with an element for each row or column of a kernel */
static att_status fill(const conversion *c, int index, double value)
{
    enum { MOST_ROWS = 64 };
    int64_t count = att_shape_count(att_weights_at(c->made.weights, index).shape);
    double values[MOST_ROWS];
    for (int64_t i = 0; i < count && i < MOST_ROWS; i++)
        values[i] = value;
    return att_model_set_parameter(c->model, c->made.weights, index, count, values);
}

/* The centers are those of the kernel from the start (att_nn_attention_conv()). */
static att_status set_layer(conversion *c, const char *layer)
{
    static const char *const sharpness[] = {"row_sharpness", "column_sharpness"};
    const att_shape shape = att_weights_at(c->made.weights, att_conv_parameter(c->made.weights, layer, "weight")).shape;
    c->made.layers++;
    c->made.heads += (int)(shape.dims[2] * shape.dims[3]);
    for (int axis = 0; axis < 2; axis++)
        ATT_TRY(fill(c, att_conv_parameter(c->made.weights, layer, sharpness[axis]), sqrt(2 * c->alpha)));
    return ATT_OK;
}

static att_status set_layers(conversion *c)
{
    char conv[ATT_CONV_NAME];
    for (int i = 0; att_conv_layer_at(&c->convs, i, conv); i++)
        if (c->convs.chosen[i])
            ATT_TRY(set_layer(c, conv));
    return ATT_OK;
}

static att_status convert(conversion *c)
{
    char text[ATT_OPTION_TEXT_BYTES];
    ATT_TRY(check_finite(c));
    ATT_TRY(check(c));
    ATT_TRY(att_conv_layers_choose(&c->convs, c->layers, false));
    ATT_TRY(name_layers(c, text));
    ATT_TRY(att_conv_layers_remake(&c->convs, text, &c->made.model, &c->made.weights));
    return set_layers(c);
}

att_status att_model_to_attention(const att_model *model, const att_weights *weights, const char *layers, double alpha,
                                  att_conversion *made)
{
    conversion c = {.context = att_graph_context(att_model_graph(model)),
                    .model = model,
                    .convs = att_conv_layers_of(model, weights),
                    .layers = layers,
                    .alpha = alpha == 0 ? ATT_ATTENTION_ALPHA : alpha};
    att_status status = convert(&c);
    if (status != ATT_OK) {
        att_conversion_free(&c.made);
        return status;
    }
    c.made.alpha = c.alpha;
    c.made.leak = 4 * exp(-c.alpha);
    *made = c.made;
    return ATT_OK;
}

void att_conversion_free(att_conversion *made)
{
    att_weights_destroy(&made->weights);
    att_model_destroy(&made->model);
}
