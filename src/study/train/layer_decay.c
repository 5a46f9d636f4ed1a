#include "study/train/layer_decay.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/family.h"

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorts the layers, drops duplicates and ATT_LAYER_LAST_BLOCK, which is the layer before it, and returns how many are
 * left. */
static int keep_distinct(int *layers, int count)
{
    int kept = 0;
    qsort(layers, (size_t)count, sizeof *layers, compare);
    for (int i = 0; i < count; i++)
        if (layers[i] != ATT_LAYER_LAST_BLOCK && (kept == 0 || layers[i] != layers[kept - 1]))
            layers[kept++] = layers[i];
    return kept;
}

/* The number of layers above that of a parameter. */
static int layers_above(const int *distinct, int count, int layer)
{
    int above = 0;
    while (above < count && distinct[count - 1 - above] > layer)
        above++;
    return above;
}

att_status att_layer_decay_apply(att_context *context, const att_model *model, const att_train_options *options,
                                 const att_weights *weights, att_parameter_rates *rates, att_layer_decay *applied)
{
    int count = att_weights_count(weights);
    *applied = (att_layer_decay){.layers = 0};
    if (options->layer_decay == 0 || count == 0)
        return ATT_OK;
    int *layers;
    ATT_TRY(att_new(context, &layers, (size_t)count, "the parameters' layers"));
    for (int i = 0; i < count; i++)
        layers[i] = att_model_layer(model, att_weights_at(weights, i).name);
    applied->layers = keep_distinct(layers, count);
    applied->smallest = 1;
    for (int i = 0; i < count; i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int above = layers_above(layers, applied->layers, att_model_layer(model, parameter.name));
        rates[i].lr = fmax(options->layer_decay_min_scale, pow(options->layer_decay, above));
        rates[i].frozen = rates[i].lr < options->layer_decay_no_opt_scale;
        if (!rates[i].frozen)
            applied->smallest = fmin(applied->smallest, rates[i].lr);
    }
    att_free(context, layers);
    return ATT_OK;
}
