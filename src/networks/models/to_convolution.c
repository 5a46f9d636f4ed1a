/* Attention in the place of convolutions as convolutions again, see attscope/convert.h. */
#include <attscope/convert.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "engine/ops/mix_pairs.h"
#include "networks/models/conv_layers.h"
#include "networks/models/family.h"

typedef struct conversion {
    const char *list;
    att_conv_layers convs;
    att_conversion made;
} conversion;

/* --- one axis of a layer ------------------------------------------------------------------------------------------ */

/* The maps of one axis for the query in its middle. Tap t of the kernel is key first + t: the convolutions of networks
 * have no dilation. */
typedef struct axis {
    int64_t kernel, keys, first;
    double *maps;            /* a [kernel, keys], each row a softmax */
    double *inside, *beside; /* [kernel, kernel]: sum of a_i(key) a_j(key) over the keys of taps, and over the others */
} axis;

static bool is_tap(const axis *a, int64_t key)
{
    return key >= a->first && key < a->first + a->kernel;
}

/* The softmax of -1/2 (s (d - c))^2, with the shift d from the query to the key. */
static void fill_map(const axis *a, int64_t ring, double center, double sharpness, double *map)
{
    double sum = 0, nearest = INFINITY;
    for (int64_t key = 0; key < a->keys; key++) {
        const double from = sharpness * ((double)(key - a->first - ring) - center);
        map[key] = from * from / 2;
        nearest = fmin(nearest, map[key]);
    }
    for (int64_t key = 0; key < a->keys; key++)
        sum += map[key] = exp(nearest - map[key]);
    for (int64_t key = 0; key < a->keys; key++)
        map[key] /= sum;
}

static void fill_products(axis *a)
{
    for (int64_t i = 0; i < a->kernel; i++)
        for (int64_t j = 0; j < a->kernel; j++)
            for (int64_t key = 0; key < a->keys; key++)
                (is_tap(a, key) ? a->inside : a->beside)[i * a->kernel + j] +=
                    a->maps[i * a->keys + key] * a->maps[j * a->keys + key];
}

static void free_axis(att_context *context, axis *a)
{
    att_free(context, a->maps);
    att_free(context, a->inside);
    att_free(context, a->beside);
}

/* --- one layer ---------------------------------------------------------------------------------------------------- */

typedef struct layer {
    const conversion *c;
    const char *name;
    const att_node *node;       /* its attention */
    axis axes[2];               /* rows, columns */
    int64_t size;               /* outputs times inputs of a group */
    double *heads, *projection; /* W [size, kernel, kernel] of the heads; T of the convolution */
} layer;

/* Reads a parameter; the caller frees the result, also after a failure. */
static att_status read(const layer *l, const char *parameter, int64_t count, double **values)
{
    att_context *context = l->c->convs.context;
    const int index = att_conv_parameter(l->c->convs.weights, l->name, parameter);
    if (index < 0 || att_shape_count(att_weights_at(l->c->convs.weights, index).shape) != count)
        return att_fail(context, ATT_ERR_MISMATCH, "the weights were not made for this model: \"%s.%s\" differs",
                        l->name, parameter);
    ATT_TRY(att_new(context, values, (size_t)count, "the parameters of a layer"));
    ATT_TRY(att_model_parameter(l->c->convs.model, l->c->convs.weights, index, count, *values));
    for (int64_t i = 0; i < count; i++)
        if (!isfinite((*values)[i]))
            return att_fail(context, ATT_ERR_NONFINITE, "parameter \"%s.%s\": element %lld is not finite", l->name,
                            parameter, (long long)i);
    return ATT_OK;
}

static att_status fill_axis(const layer *l, int which, axis *a)
{
    static const char *const centers_of[] = {"row_centers", "column_centers"}, *const sharpness_of[] = {
                                                                                   "row_sharpness", "column_sharpness"};
    att_context *context = l->c->convs.context;
    const int ring = ATT_ATTRS(l->node, mix_pairs)->ring;
    const size_t square = (size_t)(a->kernel * a->kernel);
    double *centers = NULL, *sharpness = NULL;
    a->maps = att_allocate_array(context, (size_t)(a->kernel * a->keys), sizeof *a->maps);
    a->inside = att_allocate_array(context, square, sizeof *a->inside);
    a->beside = att_allocate_array(context, square, sizeof *a->beside);
    att_status status = a->maps && a->inside && a->beside
                            ? ATT_OK
                            : att_fail_memory(context, (size_t)(a->kernel * a->keys) * sizeof *a->maps, "maps");
    if (status == ATT_OK)
        status = read(l, centers_of[which], a->kernel, &centers);
    if (status == ATT_OK)
        status = read(l, sharpness_of[which], a->kernel, &sharpness);
    for (int64_t i = 0; i < a->kernel && status == ATT_OK; i++)
        fill_map(a, ring, centers[i], sharpness[i], a->maps + i * a->keys);
    if (status == ATT_OK)
        fill_products(a);
    att_free(context, centers);
    att_free(context, sharpness);
    return status;
}

/* Key `ring` of query 0 is the query's own pixel; the first tap of a kernel lies at the shift -ring. */
static axis axis_of(const layer *l, int which)
{
    enum { FIRST_MAP = 1 }; /* the node's inputs: x, the map of rows, the map of columns */
    const att_mix_pairs_attrs *attrs = ATT_ATTRS(l->node, mix_pairs);
    const att_graph *graph = att_model_graph(l->c->convs.model);
    const int64_t *dims = att_graph_desc(graph, l->node->in[FIRST_MAP + which]).shape.dims;
    const int64_t kernel = dims[0], middle = dims[1] / 2;
    return (axis){.kernel = kernel, .keys = dims[2], .first = attrs->stride * middle};
}

static int64_t count_taps(const layer *l)
{
    return l->axes[0].kernel * l->axes[1].kernel;
}

/* T(tap) = sum_h a_h(key of the tap) W_h, the least-squares solution, as the map of each head is a product. */
static void project(const layer *l)
{
    const axis *rows = &l->axes[0], *columns = &l->axes[1];
    const int64_t taps = count_taps(l);
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t head = 0; head < taps; head++) {
            const int64_t y = rows->first + tap / columns->kernel, x = columns->first + tap % columns->kernel;
            const double weight = rows->maps[head / columns->kernel * rows->keys + y] *
                                  columns->maps[head % columns->kernel * columns->keys + x];
            for (int64_t i = 0; i < l->size; i++)
                l->projection[i * taps + tap] += weight * l->heads[i * taps + head];
        }
}

/* sqrt(sum over keys beside the taps of |sum_h a_h W_h|^2 / the same sum over all keys). The sum over the keys is a
 * sum over pairs of heads, of products of sums over rows and columns. */
static double missed_share(const layer *l)
{
    const axis *rows = &l->axes[0], *columns = &l->axes[1];
    const int64_t taps = count_taps(l);
    double missed = 0, all = 0;
    for (int64_t g = 0; g < taps; g++)
        for (int64_t h = 0; h < taps; h++) {
            const int64_t r = g / columns->kernel * rows->kernel + h / columns->kernel,
                          c = g % columns->kernel * columns->kernel + h % columns->kernel;
            double product = 0;
            for (int64_t i = 0; i < l->size; i++)
                product += l->heads[i * taps + g] * l->heads[i * taps + h];
            missed += product * (rows->beside[r] * (columns->inside[c] + columns->beside[c]) +
                                 rows->inside[r] * columns->beside[c]);
            all += product * (rows->inside[r] + rows->beside[r]) * (columns->inside[c] + columns->beside[c]);
        }
    return all > 0 ? sqrt(fmax(missed, 0) / all) : 0; /* no weight but 0 leaves nothing to miss */
}

static att_status convert_layer(layer *l, double *error)
{
    att_context *context = l->c->convs.context;
    const int index = att_conv_parameter(l->c->convs.weights, l->name, "weight");
    for (int i = 0; i < 2; i++) {
        l->axes[i] = axis_of(l, i);
        ATT_TRY(fill_axis(l, i, &l->axes[i]));
    }
    const int64_t count = index < 0 ? 0 : att_shape_count(att_weights_at(l->c->convs.weights, index).shape);
    l->size = count / count_taps(l);
    ATT_TRY(read(l, "weight", l->size * count_taps(l), &l->heads));
    ATT_TRY(att_new(context, &l->projection, (size_t)count, "a kernel"));
    project(l);
    *error = missed_share(l);
    return att_model_set_parameter(l->c->convs.model, l->c->made.weights,
                                   att_conv_parameter(l->c->made.weights, l->name, "weight"), count, l->projection);
}

static const att_node *attention_of(const conversion *c, const char *name)
{
    const att_graph *graph = att_model_graph(c->convs.model);
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].scope, name) == 0 && strcmp(graph->nodes.items[i].op->name, "mix_pairs") == 0)
            return &graph->nodes.items[i];
    return NULL;
}

static att_status add_layer(conversion *c, const char *name)
{
    layer l = {.c = c, .name = name, .node = attention_of(c, name)};
    double error = 0;
    if (!l.node)
        return att_fail(c->convs.context, ATT_ERR_MISMATCH,
                        "the weights were not made for this model: \"%s\" is a convolution in it", name);
    att_status status = convert_layer(&l, &error);
    for (int i = 0; i < 2; i++)
        free_axis(c->convs.context, &l.axes[i]);
    att_free(c->convs.context, l.heads);
    att_free(c->convs.context, l.projection);
    ATT_TRY(status);
    c->made.heads += (int)count_taps(&l);
    if (c->made.layers++ == 0 || error > c->made.error) {
        c->made.error = error;
        snprintf(c->made.worst, sizeof c->made.worst, "%s", name);
    }
    return ATT_OK;
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static bool conv_at(const void *user, int index, char *name, size_t size)
{
    (void)size;
    return att_conv_layer_at(user, index, name);
}

static bool stays_attention(const void *user, int index, const char *name)
{
    const att_conv_layers *convs = user;
    return att_conv_attends(convs, name) && !convs->chosen[index];
}

static att_status check(const conversion *c)
{
    if (att_model_attention_convolutions(c->convs.model, c->convs.weights) == 0)
        return att_fail(c->convs.context, ATT_ERR_UNSUPPORTED,
                        "%s has no attention in the place of convolutions that could become convolutions again",
                        att_model_name(c->convs.model));
    if (!c->list || !*c->list)
        return att_fail(c->convs.context, ATT_ERR_ARGUMENT,
                        "no layers are named: give names of layers, such as conv1,layer1.*.conv2, or all");
    return ATT_OK;
}

static att_status convert(conversion *c)
{
    const att_conv_names names = {.at = conv_at, .attends = stays_attention, .user = &c->convs};
    char text[ATT_OPTION_TEXT_BYTES], conv[ATT_CONV_NAME];
    ATT_TRY(check(c));
    ATT_TRY(att_conv_layers_choose(&c->convs, c->list, true));
    if (!att_conv_names_format(&names, text, sizeof text))
        return att_fail(c->convs.context, ATT_ERR_UNSUPPORTED,
                        "the names of the layers that stay attention take more than %d bytes; convert all layers of a "
                        "stage, or all",
                        ATT_OPTION_TEXT_BYTES - 1);
    ATT_TRY(att_conv_layers_remake(&c->convs, text, &c->made.model, &c->made.weights));
    for (int i = 0; att_conv_layer_at(&c->convs, i, conv); i++)
        if (c->convs.chosen[i])
            ATT_TRY(add_layer(c, conv));
    return ATT_OK;
}

att_status att_model_to_convolution(const att_model *model, const att_weights *weights, const char *layers,
                                    att_conversion *made)
{
    conversion c = {.list = layers, .convs = att_conv_layers_of(model, weights)};
    att_status status = convert(&c);
    if (status != ATT_OK) {
        att_conversion_free(&c.made);
        return status;
    }
    *made = c.made;
    return ATT_OK;
}

int att_model_attention_convolutions(const att_model *model, const att_weights *weights)
{
    const att_conv_layers convs = att_conv_layers_of(model, weights);
    char conv[ATT_CONV_NAME];
    int count = 0;
    for (int i = 0; att_conv_layer_at(&convs, i, conv); i++)
        count += att_conv_attends(&convs, conv);
    return count;
}
