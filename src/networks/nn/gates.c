#include <math.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "networks/nn/gates.h"

att_init att_init_fan_in(int64_t inputs)
{
    return (att_init){.rule = ATT_INIT_UNIFORM, .value = inputs > 0 ? 1 / sqrt((double)inputs) : 0};
}

att_value att_gates_norm(const att_scope *scope, att_value x)
{
    att_scope own = att_scope_in(scope, "bn");
    return att_nn_batch_norm(&own, x, 1);
}

const char *const att_gates_starts[] = {"random", "identity", NULL};

/* The initial values of a layer with so many inputs; zeros if `zero`. */
static att_init init_of(int64_t inputs, bool zero)
{
    return zero ? (att_init){ATT_INIT_CONSTANT, 0} : att_init_fan_in(inputs);
}

att_value att_gates_apply(const att_scope *scope, att_value x, att_value z, int start)
{
    att_scope own = att_scope_in(scope, "gate");
    att_scope_enter(&own);
    att_value gate = att_sigmoid(scope->graph, z);
    if (start == ATT_START_IDENTITY)
        gate = att_combine(scope->graph, 2, gate, 0, ATT_NONE);
    bool of_pixels = att_value_shape(scope->graph, z).rank > 1;
    return of_pixels ? att_pixel_gate(scope->graph, x, gate) : att_gate(scope->graph, x, gate);
}

static void declare_layer(const att_scope *scope, const att_bottleneck_options *options, int layer,
                          att_bottleneck *made)
{
    att_scope own = att_scope_in(scope, "%s", options->names[layer]);
    int64_t in = layer ? options->hidden : options->inputs, out = layer ? options->outputs : options->hidden;
    att_shape shape = options->convolution ? att_shape_of(out, in, 1, 1) : att_shape_of(out, in);
    att_init init = init_of(in, options->zero && layer == 1);
    made->weight[layer] = att_scope_parameter(&own, "weight", shape, init, true);
    made->bias[layer] = options->bias ? att_scope_parameter(&own, "bias", att_shape_of(out), init, false) : ATT_NONE;
}

att_bottleneck att_bottleneck_declare(const att_scope *scope, const att_bottleneck_options *options)
{
    att_bottleneck made;
    for (int layer = 0; layer < 2; layer++)
        declare_layer(scope, options, layer, &made);
    return made;
}

att_value att_bottleneck_apply(const att_scope *scope, const att_bottleneck *bottleneck, att_value x)
{
    att_scope_enter(scope);
    x = att_relu(scope->graph, att_linear(scope->graph, x, bottleneck->weight[0], bottleneck->bias[0]));
    return att_linear(scope->graph, x, bottleneck->weight[1], bottleneck->bias[1]);
}

int64_t att_bottleneck_hidden(int64_t channels, double ratio, int64_t divisor, double given)
{
    if (given > 0)
        return (int64_t)given;
    double width = (double)channels / ratio;
    int64_t unit = divisor > 0 ? divisor : 1;
    int64_t multiple = (int64_t)(divisor > 0 ? floor(width / (double)unit + 0.5) : floor(width));
    return unit * (multiple > 1 ? multiple : 1);
}

static int64_t adaptive_kernel(int64_t channels)
{
    int64_t k = channels > 0 ? (int64_t)(log2((double)channels) / 2 + 0.5) : 0;
    k += k % 2 == 0;
    return k > 3 ? k : 3;
}

att_value att_gates_channel_conv(const att_scope *scope, const char *name, att_value x, int64_t k, bool zero)
{
    att_scope own = att_scope_in(scope, "%s", name);
    att_scope_enter(&own);
    if (k == 0)
        k = adaptive_kernel(att_width_of(scope, x));
    att_value weight = att_scope_parameter(&own, "weight", att_shape_of(1, 1, k), init_of(k, zero), true);
    return att_channel_conv(scope->graph, x, weight);
}

att_value att_gates_style(const att_scope *scope, att_value x)
{
    att_shape shape = att_value_shape(scope->graph, x);
    if (x != ATT_NONE && shape.dims[0] * shape.dims[1] == 1)
        return att_graph_fail(
            scope->graph, att_fail(att_graph_context(scope->graph), ATT_ERR_ARGUMENT,
                                   "the map has a single pixel in %s, which needs a deviation over pixels: use larger "
                                   "images (img_size), or leave that stage out (modules)",
                                   scope->path));
    att_scope_enter(scope);
    return att_global_style(scope->graph, x, 1e-5);
}

static int dct_side(int64_t side, double shrink)
{
    double shrunk = floor((double)side / shrink + 0.5);
    return shrunk > 7 ? (int)shrunk : 7;
}

/* Frequencies in a 7 x 7 map, best first: "top16" in FcaNet's public code. */
static const struct {
    int row, column;
} best[] = {{0, 0}, {0, 1}, {6, 0}, {0, 5}, {0, 2}, {1, 0}, {1, 2}, {4, 0},
            {5, 0}, {1, 6}, {3, 0}, {0, 4}, {0, 6}, {0, 3}, {3, 5}, {2, 2}};
enum { COUNT = sizeof best / sizeof *best };

static double cosine(int64_t at, int64_t frequency, int64_t count)
{
    static const double pi = 3.14159265358979323846;
    double scale = frequency ? sqrt(2 / (double)count) : sqrt(1 / (double)count);
    return scale * cos(pi * (double)frequency * ((double)at + 0.5) / (double)count);
}

double att_gates_dct_at(att_shape shape, int64_t e)
{
    int64_t columns = shape.dims[2], rows = shape.dims[1], column = e % columns, row = e / columns % rows;
    int64_t group = e / columns / rows * COUNT / shape.dims[0];
    return cosine(row, best[group].row * (rows / 7), rows) *
           cosine(column, best[group].column * (columns / 7), columns);
}

att_value att_gates_dct(const att_scope *scope, att_value x, double shrink)
{
    att_shape shape = att_value_shape(scope->graph, x);
    if (att_width_of(scope, x) % COUNT != 0)
        return att_graph_fail(
            scope->graph, att_fail(att_graph_context(scope->graph), ATT_ERR_ARGUMENT,
                                   "%s: its 16 frequencies need a multiple of 16 channels, not %lld; change the width",
                                   scope->path, (long long)att_width_of(scope, x)));
    att_dct_pool_options options = {
        .count = COUNT, .height = dct_side(shape.dims[0], shrink), .width = dct_side(shape.dims[1], shrink)};
    for (int i = 0; i < options.count; i++) {
        options.rows[i] = best[i].row * (options.height / 7);
        options.columns[i] = best[i].column * (options.width / 7);
    }
    att_scope_enter(scope);
    return att_dct_pool(scope->graph, x, &options);
}
