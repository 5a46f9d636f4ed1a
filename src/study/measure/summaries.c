#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "base/core/text.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"
#include "networks/models/family.h"
#include "study/measure/instrument.h"

/* The length of an axis of the image (0: height, 1: width); infinite if the graph has no image. */
static double image_length(const att_graph *graph, int axis)
{
    for (int i = 0; i < graph->inputs.count; i++)
        if (strcmp(graph->inputs.items[i].name, ATT_IMAGE) == 0)
            return (double)att_value_shape(graph, graph->inputs.items[i].value).dims[axis];
    return INFINITY;
}

/* 1 / the longer side of the part of the image that the node's grid covers; 0 if it has no grid. Grids that are padded
 * or rounded up extend beyond the image. */
static double inverse_side(const att_graph *graph, const att_node *node)
{
    const att_attention_attrs *attrs = node->attrs;
    double height = fmin(attrs->grid_h * attrs->step_h, image_length(graph, 0));
    double side = fmax(height, fmin(attrs->grid_w * attrs->step_w, image_length(graph, 1)));
    return side > 0 ? 1.0 / side : 0;
}

/* --- uniform attention -------------------------------------------------------------------------------------------- */

/* The nuclear or the Frobenius norm of the Jacobian of softmax for a uniform row over `keys`. */
static double uniform_norm(double keys, bool nuclear)
{
    return nuclear ? 1 - 1 / keys : sqrt(1 / keys - 1 / (keys * keys));
}

/* The mean over queries: with causality, query i has i keys. */
static double mean_norm(double keys, bool causal, bool nuclear)
{
    double sum = 0;
    for (double i = 1; causal && i <= keys; i++)
        sum += uniform_norm(i, nuclear) / keys;
    return causal ? sum : uniform_norm(keys, nuclear);
}

/* Sum of the distances of all ordered pairs of places in a grid: shift (y, x) occurs (h - |y|)(w - |x|) times. */
static double sum_distances(const att_attention_attrs *attrs, int h, int w)
{
    double sum = 0;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            sum += (double)(h - y) * (w - x) * (y > 0 ? 2 : 1) * (x > 0 ? 2 : 1) *
                   hypot(y * attrs->step_h, x * attrs->step_w);
    return sum;
}

/* The distance under uniform attention of the grid, or of a window, and the other keys; 0 for causal attention, and if
 * keys are neither (the zero tokens around a map). */
static double uniform_distance(const att_graph *graph, const att_node *node, bool renormalised)
{
    const att_attention_attrs *attrs = node->attrs;
    int h = attrs->window_h > 0 ? attrs->window_h : attrs->grid_h;
    int w = attrs->window_w > 0 ? attrs->window_w : attrs->grid_w;
    double keys = (double)att_attention_keys(graph, node), places = (double)h * w;
    if (attrs->causal || keys != places + attrs->prefix || (renormalised && places < 2))
        return 0;
    return sum_distances(attrs, h, w) * inverse_side(graph, node) / places / (renormalised ? places - 1 : keys);
}

/* The value of a column under uniform attention; 0 if it is not known. Masks of shifted windows do not count. */
static double uniform_of(const att_graph *graph, const att_node *node, int column)
{
    const att_attention_attrs *attrs = node->attrs;
    double keys = (double)att_attention_keys(graph, node);
    if (column == ATT_SUMMARY_ENTROPY)
        return att_attention_entropy_bound(graph, node);
    if (column == ATT_SUMMARY_NUCLEAR || column == ATT_SUMMARY_FROBENIUS)
        return mean_norm(keys, attrs->causal, column == ATT_SUMMARY_NUCLEAR);
    if (column == ATT_SUMMARY_DISTANCE || column == ATT_SUMMARY_DISTANCE_OTHERS)
        return uniform_distance(graph, node, column == ATT_SUMMARY_DISTANCE_OTHERS);
    return 0;
}

/* --- series ------------------------------------------------------------------------------------------------------- */

/* Declares the series of a node's heads, and of all heads together. */
static void add_series(att_requests *requests, const att_node *node, const att_summary_column *column)
{
    int heads = ATT_ATTRS(node, attention)->heads;
    double bound =
        column->column == ATT_SUMMARY_ENTROPY ? att_attention_entropy_bound(att_requests_graph(requests), node) : 0;
    double uniform = uniform_of(att_requests_graph(requests), node, column->column);
    for (int i = 0; i <= heads; i++) {
        att_requests_series(requests, node->scope, i < heads ? i : -1, column->statistic);
        att_requests_bound(requests, bound);
        att_requests_uniform(requests, uniform);
    }
}

static bool is_usable(const att_graph *graph, const att_node *node, bool side)
{
    return !side || inverse_side(graph, node) > 0;
}

/* --- networks without attention between tokens -------------------------------------------------------------------- */

static bool has_attention(const att_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (att_is_attention(&graph->nodes.items[i]))
            return true;
    return false;
}

static const att_node *first_node(const att_graph *graph, const char *op)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].op->name, op) == 0)
            return &graph->nodes.items[i];
    return NULL;
}

/* Whether the graph has a parameter of the module in the scope given by the first `length` bytes of `path`. */
static bool has_parameter_of(const att_graph *graph, const att_module *module, const char *path, size_t length)
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        const char *name = att_graph_parameter_at(graph, i).name;
        if (strncmp(name, path, length) == 0 && name[length] == '.' &&
            att_text_matches(module->parameter, name + length + 1))
            return true;
    }
    return false;
}

/* Finds the module that the gate belongs to, by its scope and parameters, as in a checkpoint. Returns NULL if there is
 * none. *length: bytes of the gate's scope that name the module ("layer1.0.se" of "layer1.0.se.channel.gate"). */
static const att_module *module_of_gate(const att_graph *graph, const att_node *gate, size_t *length)
{
    for (int i = 0; i < att_module_count(graph->context); i++) {
        const att_module *module = att_module_at(graph->context, i);
        char part[64];
        snprintf(part, sizeof part, ".%s.", module->scope);
        const char *found = module->parameter ? strstr(gate->scope, part) : NULL;
        *length = found ? (size_t)(found - gate->scope) + strlen(part) - 1 : 0;
        if (found && has_parameter_of(graph, module, gate->scope, *length))
            return module;
    }
    return NULL;
}

/* Fails with a message that says what the network has instead of attention between tokens, and which instruments
 * measure it. */
static att_status fail_without_attention(const att_requests *requests)
{
    const att_graph *graph = att_requests_graph(requests);
    const att_node *gate = first_node(graph, "gate"), *of_pixels = first_node(graph, "pixel_gate");
    att_residual_step step;
    size_t length = 0;
    const att_module *module = gate ? module_of_gate(graph, gate, &length) : NULL;
    char other[256] = "has no attention";
    if (module)
        snprintf(other, sizeof other, "has attention over channels%s only (module %s, first in %.*s)",
                 of_pixels ? " and pixels" : "", module->name, (int)length, gate->scope);
    else if (gate)
        snprintf(other, sizeof other, "has gates over channels only (first %s)", gate->scope);
    bool has_steps = att_residual_step_next(graph, -1, &step);
    return att_requests_fail(requests, "it needs attention between tokens, and this network %s%s%s", other,
                             gate ? "; \"gate\" measures that" : "",
                             has_steps ? "; \"nsi\" and \"tns\" measure the residual steps" : "");
}

att_status att_requests_found_no_attention(const att_requests *requests, const char *what)
{
    return has_attention(att_requests_graph(requests)) ? att_requests_found_nothing(requests, what)
                                                       : fail_without_attention(requests);
}

/* --- requests and observing -----------------------------------------------------------------------------------------
 */

att_status att_summaries_request(att_requests *requests, const att_summary_column *columns, int count, bool side)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    char name[256];
    for (int i = att_requests_node(requests, "attention", -1); i >= 0;
         i = att_requests_node(requests, "attention", i)) {
        att_node node = graph->nodes.items[i];
        if (!is_usable(graph, &node, side))
            continue;
        found = true;
        ATT_TRY(att_graph_probe_attention_summary(graph, node.scope));
        snprintf(name, sizeof name, "%s.summary", node.scope);
        att_requests_row(requests, name, side ? inverse_side(graph, &node) : 1);
    }
    for (int c = 0; c < count; c++)
        for (int i = att_requests_node(requests, "attention", -1); i >= 0;
             i = att_requests_node(requests, "attention", i))
            if (is_usable(graph, &graph->nodes.items[i], side))
                add_series(requests, &graph->nodes.items[i], &columns[c]);
    if (found)
        return ATT_OK;
    return att_requests_found_no_attention(requests, side ? "attention over a grid" : "attention");
}

void att_summaries_observe(const att_observed *observed, const att_summary_column *columns, int count, double *values)
{
    for (int c = 0; c < count; c++)
        for (int i = 0; i < observed->count; i++) {
            int64_t heads = observed->lengths[i] / ATT_SUMMARY_COUNT;
            double sum = 0;
            for (int64_t head = 0; head < heads; head++) {
                double value = observed->rows[i][head * ATT_SUMMARY_COUNT + columns[c].column];
                sum += *values++ = observed->constants[i] * value;
            }
            *values++ = sum / (double)heads;
        }
}
