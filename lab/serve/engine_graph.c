/* The operations of a network, their times, and figures of instruments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "lab/serve/engine_parts.h"
#include <attscope/lab/json.h>

/* --- operations --------------------------------------------------------------------------------------------------- */

/* Marks of nodes and values. */
typedef struct marks {
    const att_graph *graph;
    bool *needed;  /* by node */
    bool *counted; /* by value: a parameter that an earlier node has counted */
} marks;

static void mark_needed(const marks *m)
{
    const att_graph *graph = m->graph;
    for (int i = 0; i < graph->outputs.count; i++) {
        const att_named_value *output = &graph->outputs.items[i];
        if (!output->probe && strcmp(output->name, "loss") != 0 && graph->values.items[output->value].node >= 0)
            m->needed[graph->values.items[output->value].node] = true;
    }
    for (int i = graph->nodes.count - 1; i >= 0; i--) {
        const att_node *node = &graph->nodes.items[i];
        for (int j = 0; m->needed[i] && j < node->in_count; j++)
            if (node->in[j] != ATT_NONE && graph->values.items[node->in[j]].node >= 0)
                m->needed[graph->values.items[node->in[j]].node] = true;
    }
}

static bool is_parameter(const att_graph *graph, att_value value)
{
    int index = att_graph_parameter_of(graph, value);
    return index >= 0 && !graph->parameters.items[index].buffer;
}

/* Elements of the parameters from which a shared value is computed, without those that were counted. */
static int64_t count_parameters(const marks *m, att_value value)
{
    const att_value_info *info = &m->graph->values.items[value];
    if (info->desc.kind != ATT_SHARED || m->counted[value])
        return 0;
    m->counted[value] = true;
    if (is_parameter(m->graph, value))
        return att_shape_count(info->desc.shape);
    int64_t count = 0;
    const att_node *node = info->node >= 0 ? &m->graph->nodes.items[info->node] : NULL;
    for (int j = 0; node && j < node->in_count; j++)
        count += node->in[j] == ATT_NONE ? 0 : count_parameters(m, node->in[j]);
    return count;
}

/* Writes the parameters from which a shared value is computed. */
static void write_tensors_of(const marks *m, att_value value, att_json_writer *writer)
{
    const att_value_info *info = &m->graph->values.items[value];
    const int index = att_graph_parameter_of(m->graph, value);
    if (info->desc.kind != ATT_SHARED)
        return;
    if (index >= 0) {
        const att_parameter_info *parameter = &m->graph->parameters.items[index];
        att_json_begin_object(writer);
        att_json_put_string(writer, "name", parameter->name);
        att_json_put_array(writer, "shape");
        for (int d = 0; d < parameter->shape.rank; d++)
            att_json_integer(writer, parameter->shape.dims[d]);
        att_json_end_array(writer);
        att_json_end_object(writer);
        return;
    }
    const att_node *node = info->node >= 0 ? &m->graph->nodes.items[info->node] : NULL;
    for (int j = 0; node && j < node->in_count; j++)
        if (node->in[j] != ATT_NONE)
            write_tensors_of(m, node->in[j], writer);
}

static void write_tensors(const marks *m, const att_node *node, att_json_writer *writer)
{
    att_json_put_array(writer, "tensors");
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE)
            write_tensors_of(m, node->in[j], writer);
    att_json_end_array(writer);
}

static void write_inputs(const marks *m, const att_node *node, att_json_writer *writer)
{
    att_json_put_array(writer, "in");
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE && m->graph->values.items[node->in[j]].desc.kind != ATT_SHARED)
            att_json_integer(writer, m->graph->values.items[node->in[j]].node);
    att_json_end_array(writer);
}

static void write_node(const marks *m, int index, att_json_writer *writer)
{
    const att_node *node = &m->graph->nodes.items[index];
    const att_shape shape = att_value_shape(m->graph, node->out[0]);
    int64_t parameters = 0;
    for (int j = 0; j < node->in_count; j++)
        parameters += node->in[j] == ATT_NONE ? 0 : count_parameters(m, node->in[j]);
    att_json_begin_object(writer);
    att_json_put_integer(writer, "id", index);
    att_json_put_string(writer, "op", node->op->name);
    att_json_put_string(writer, "scope", node->scope);
    write_inputs(m, node, writer);
    att_json_put_array(writer, "shape");
    for (int d = 0; d < shape.rank; d++)
        att_json_integer(writer, shape.dims[d]);
    att_json_end_array(writer);
    att_json_put_integer(writer, "parameters", parameters);
    att_json_put_number(writer, "macs", att_node_cost(m->graph, node).macs);
    write_tensors(m, node, writer);
    att_json_end_object(writer);
}

static att_status write_nodes(const att_engine *engine, const att_graph *graph, att_json_writer *writer)
{
    const size_t nodes = (size_t)graph->nodes.count + 1, values = (size_t)graph->values.count + 1;
    marks m = {graph, att_allocate(engine->context, nodes), att_allocate(engine->context, values)};
    att_status status =
        m.needed && m.counted ? ATT_OK : att_fail_memory(engine->context, nodes + values, "the graph of a network");
    if (status == ATT_OK) {
        mark_needed(&m);
        att_json_put_array(writer, "nodes");
        for (int i = 0; i < graph->nodes.count; i++)
            if (m.needed[i] && att_value_kind(graph, graph->nodes.items[i].out[0]) != ATT_SHARED)
                write_node(&m, i, writer);
        att_json_end_array(writer);
    }
    att_free(engine->context, m.needed);
    att_free(engine->context, m.counted);
    return status;
}

att_status att_engine_write_graph(att_engine *engine, att_context *context, const char *path, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = write_nodes(engine, att_model_graph(att_network_model(o->network)), writer);
    return att_engine_leave(engine, status);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

/* Runs of which times are medians: fewer of large networks, so that the page and other requests wait for seconds at
 * most. A detector of 800 x 1,088 pixels has 178e9 multiply-adds. */
static int runs_for(const att_graph *graph)
{
    enum { MOST = 10 };
    const double together = 100e9, runs = together / fmax(att_graph_cost(graph).macs, 1);
    return runs >= MOST ? MOST : runs < 1 ? 1 : (int)runs;
}

static void write_time(void *user, const char *scope, const char *op, const char *kernel, double seconds)
{
    att_json_writer *writer = user;
    att_json_begin_object(writer);
    att_json_put_string(writer, "scope", scope);
    att_json_put_string(writer, "op", op);
    att_json_put_string(writer, "kernel", kernel);
    att_json_put_number(writer, "seconds", seconds);
    att_json_end_object(writer);
}

att_status att_engine_write_times(att_engine *engine, att_context *context, const char *path, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_find(engine, path, &o);
    if (status == ATT_OK)
        status = att_engine_select_answers(o);
    const int runs = status == ATT_OK ? runs_for(att_model_graph(att_network_model(o->network))) : 0;
    att_json_put_integer(writer, "runs", runs);
    att_json_put_array(writer, "times");
    if (status == ATT_OK)
        status = att_network_time(o->network, runs, write_time, writer);
    att_json_end_array(writer);
    return att_engine_leave(engine, status);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static void write_measured(const att_measure *measure, att_json_writer *writer)
{
    att_json_put_array(writer, "figures");
    for (int i = 0; i < att_measure_count(measure); i++) {
        const att_measurement m = att_measure_at(measure, i);
        att_json_begin_object(writer);
        att_json_put_string(writer, "instrument", m.instrument);
        att_json_put_string(writer, "node", m.node);
        att_json_put_integer(writer, "head", m.head);
        att_json_put_string(writer, "statistic", m.statistic);
        att_json_put_number(writer, "mean", m.mean);
        att_json_put_string(writer, "unit", m.unit);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    att_json_put_array(writer, "instruments");
    for (int i = 0; i < att_measure_instrument_count(measure); i++) {
        const att_instrument_info info = att_measure_instrument_at(measure, i);
        att_instrument_write_json(&info, writer);
    }
    att_json_end_array(writer);
}

/* Whether an instrument runs the network so many times that other requests would have to wait. collapse, which a lesson
 * shows, is costly only beside the others. */
static bool is_slow(const att_instrument_info *info)
{
    return info->costly && strcmp(info->name, "collapse") != 0;
}

static att_status refuse_slow(const att_engine *engine, const char *with)
{
    for (const char *at = with; *at;) {
        char name[64];
        att_instrument_info info;
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ":,"), at);
        if (att_instrument_find(engine->context, name, &info) && is_slow(&info))
            return att_fail(engine->context, ATT_ERR_ARGUMENT,
                            "%s takes too long for a page: use attscope measure --with %s", name, name);
        at += length + (at[length] == ',');
    }
    return ATT_OK;
}

/* Sets *reason to NULL if the instrument has something to measure in the graph, else to the sentence that says why not,
 * which lives until the context's next failure. */
static att_status find_reason(const att_engine *engine, att_graph *graph, const char *name, const char **reason)
{
    att_measure *measure = NULL;
    const att_status status = att_measure_create(graph, name, "*", &measure);
    att_measure_destroy(&measure);
    *reason = status == ATT_OK ? NULL : att_context_message(engine->context);
    return status == ATT_ERR_NOT_FOUND || status == ATT_ERR_UNSUPPORTED ? ATT_OK : status;
}

static att_status write_instruments(const att_engine *engine, att_graph *graph, att_json_writer *writer)
{
    att_json_put_array(writer, "instruments");
    for (int i = 0; i < att_instrument_count(engine->context); i++) {
        const att_instrument_info info = att_instrument_at(engine->context, i);
        const char *reason;
        if (info.needs_labels || is_slow(&info))
            continue;
        ATT_TRY(find_reason(engine, graph, info.name, &reason));
        att_json_begin_object(writer);
        att_json_put_string(writer, "name", info.name);
        att_json_put_string(writer, "title", info.title ? info.title : info.name);
        att_json_put_string(writer, "reason", reason);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    return ATT_OK;
}

/* Instruments add probes to the graph that they search: it is that of a model of its own. */
att_status att_engine_write_instruments(const att_engine *engine, const att_opened *o, att_json_writer *writer)
{
    const att_model *model = att_network_model(o->network);
    att_model *searched = NULL;
    ATT_TRY(att_model_create(engine->context, att_model_name(model), att_model_options(model), ATT_F32, &searched));
    const att_status status = write_instruments(engine, att_model_graph(searched), writer);
    att_model_destroy(&searched);
    return status;
}

static att_status measure_inputs(const att_opened *o, const att_batch *inputs, const char *with,
                                 att_json_writer *writer)
{
    att_measure *measure = NULL;
    ATT_TRY(att_network_observe(o->network, with, "*", &measure));
    const att_status status = att_network_measure(o->network, measure, inputs, NULL);
    if (status == ATT_OK)
        write_measured(measure, writer);
    att_measure_destroy(&measure);
    return status;
}

/* Instruments observe the network at its own size. */
static att_status measure_image(const att_engine *engine, const att_opened *o, const char *image, const char *with,
                                att_json_writer *writer)
{
    const att_transform_options transform = att_network_transform(o->network);
    float *pixels;
    att_geometry place;
    att_field field;
    const void *data[1];
    ATT_TRY(att_engine_load(engine, &transform, image, &pixels, &place));
    const att_batch inputs = att_engine_inputs(o, pixels, &place, &field, data);
    const att_status status = measure_inputs(o, &inputs, with, writer);
    att_free(engine->context, pixels);
    return status;
}

static att_status measure_text(const att_engine *engine, const att_opened *o, const char *id, const char *with,
                               att_json_writer *writer)
{
    att_token_texts text;
    att_measure *measure = NULL;
    ATT_TRY(att_engine_tokenize(engine, o, id, &text));
    const att_status status = att_network_measure_texts(o->network, text.texts, 1, with, "*", NULL, &measure);
    if (status == ATT_OK)
        write_measured(measure, writer);
    att_measure_destroy(&measure);
    att_token_texts_free(engine->context, &text);
    return status;
}

att_status att_engine_write_figures(att_engine *engine, att_context *context, const att_engine_view *view,
                                    const char *with, att_json_writer *writer)
{
    att_opened *o;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = refuse_slow(engine, with);
    if (status == ATT_OK)
        status = att_engine_find(engine, view->path, &o);
    if (status == ATT_OK)
        status = att_engine_reads_texts(o) ? measure_text(engine, o, view->image, with, writer)
                                           : measure_image(engine, o, view->image, with, writer);
    return att_engine_leave(engine, status);
}
