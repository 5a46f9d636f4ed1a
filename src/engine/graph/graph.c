#include "engine/graph/graph.h"

#include <string.h>

#include "base/core/error.h"

/* Limits on the element count of a value, so that the byte counts of many values together fit into 64 bits. Inputs (per
 * sample), parameters and constants have at most MOST_KEPT elements; other values, such as attention probabilities,
 * which a plan need not store, at most MOST_UNKEPT. */
static const int64_t MOST_KEPT = (int64_t)1 << 38, MOST_UNKEPT = (int64_t)1 << 52;

#define RESERVE(graph, list)                                                                            \
    att_list_reserve(graph, (void *)&(graph)->list.items, (graph)->list.count, &(graph)->list.capacity, \
                     sizeof *(graph)->list.items)

static att_value fail_memory(att_graph *graph)
{
    return att_graph_fail(graph, att_fail_memory(graph->context, sizeof(att_node), "a graph"));
}

bool att_list_reserve(att_graph *graph, void *items_at, int count, int *capacity, size_t item_size)
{
    if (att_list_grow(graph->context, items_at, count, capacity, item_size))
        return true;
    fail_memory(graph);
    return false;
}

att_value att_graph_fail(att_graph *graph, att_status status)
{
    if (graph->status == ATT_OK)
        graph->status = status;
    return ATT_NONE;
}

const char *att_graph_string(att_graph *graph, const char *text)
{
    const char *copy = att_arena_string(&graph->arena, text);
    if (!copy)
        fail_memory(graph);
    return copy;
}

att_status att_graph_create(att_context *context, att_dtype dtype, att_graph **out)
{
    if (dtype != ATT_F32 && dtype != ATT_F64)
        return att_fail(context, ATT_ERR_ARGUMENT, "a graph computes in F32 or F64, not in %s", att_dtype_name(dtype));
    att_graph *graph;
    ATT_TRY(att_new(context, &graph, 1, "a graph"));
    graph->context = context;
    graph->arena.context = context;
    graph->dtype = dtype;
    graph->scope = "";
    *out = graph;
    return ATT_OK;
}

void att_graph_destroy(att_graph **out)
{
    if (!out || !*out)
        return;
    att_graph *graph = *out;
    att_free(graph->context, graph->values.items);
    att_free(graph->context, graph->nodes.items);
    att_free(graph->context, graph->inputs.items);
    att_free(graph->context, graph->outputs.items);
    att_free(graph->context, graph->parameters.items);
    att_free(graph->context, graph->assigned.items);
    att_free(graph->context, graph->constants.items);
    att_free(graph->context, graph->totals.items);
    att_arena_free(&graph->arena);
    att_free(graph->context, graph);
    *out = NULL;
}

att_status att_graph_status(const att_graph *graph)
{
    return graph->status;
}

att_dtype att_graph_dtype(const att_graph *graph)
{
    return graph->dtype;
}

att_context *att_graph_context(const att_graph *graph)
{
    return graph->context;
}

const char *att_scope_separator(const char *scope)
{
    return *scope ? ": " : "";
}

static bool is_countable(att_graph *graph, att_shape shape)
{
    int64_t count = att_shape_count(shape);
    if (count >= 0 && count <= MOST_UNKEPT)
        return true;
    char text[96];
    att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                   "%s%sa value of the shape %s has too many elements", graph->scope,
                                   att_scope_separator(graph->scope), att_shape_format(shape, text, sizeof text)));
    return false;
}

att_value att_graph_add_value(att_graph *graph, att_desc desc, int node)
{
    if (!is_countable(graph, desc.shape) || !RESERVE(graph, values))
        return ATT_NONE;
    graph->values.items[graph->values.count] = (att_value_info){.desc = desc, .node = node};
    return graph->values.count++;
}

static bool name_taken(const att_named_value *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

static bool input_is_free(att_graph *graph, const char *name)
{
    if (!name_taken(graph->inputs.items, graph->inputs.count, name))
        return true;
    att_graph_fail(graph,
                   att_fail(graph->context, ATT_ERR_ARGUMENT, "the graph has an input named \"%s\" already", name));
    return false;
}

static bool output_is_free(att_graph *graph, const char *name)
{
    if (!name_taken(graph->outputs.items, graph->outputs.count, name))
        return true;
    att_graph_fail(graph,
                   att_fail(graph->context, ATT_ERR_ARGUMENT, "the graph has an output named \"%s\" already", name));
    return false;
}

static bool shape_is_valid(att_graph *graph, const char *name, att_shape shape)
{
    int64_t count = shape.rank >= 0 && shape.rank <= ATT_MAX_RANK ? att_shape_count(shape) : -1;
    if (count > 0 && count <= MOST_KEPT)
        return true;
    char text[96];
    att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                   "\"%s\" cannot have the shape %s: at most %d dimensions, 1 to 2^38 elements", name,
                                   att_shape_format(shape, text, sizeof text), ATT_MAX_RANK));
    return false;
}

static bool dtype_is_valid(att_graph *graph, const char *name, att_dtype dtype)
{
    if (att_dtype_size(dtype) > 0)
        return true;
    att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT, "\"%s\": the element type %d does not exist", name,
                                   (int)dtype));
    return false;
}

att_value att_graph_input(att_graph *graph, const char *name, att_dtype dtype, att_shape shape)
{
    if (graph->status != ATT_OK || !input_is_free(graph, name) || !shape_is_valid(graph, name, shape) ||
        !dtype_is_valid(graph, name, dtype) || !RESERVE(graph, inputs))
        return ATT_NONE;
    att_value value = att_graph_add_value(graph, (att_desc){.dtype = dtype, .kind = ATT_SAMPLE, .shape = shape}, -1);
    const char *copy = att_graph_string(graph, name);
    if (graph->status == ATT_OK)
        graph->inputs.items[graph->inputs.count++] = (att_named_value){.name = copy, .value = value};
    return graph->status == ATT_OK ? value : ATT_NONE;
}

static bool value_exists(const att_graph *graph, att_value value)
{
    return value >= 0 && value < graph->values.count;
}

/* Whether a rule can start a parameter of this shape. */
static bool start_is_valid(att_graph *graph, const char *name, att_shape shape, att_init init)
{
    if (init.rule != ATT_INIT_ROTARY ||
        (shape.rank == 4 && shape.dims[0] == 2 && shape.dims[3] % 2 == 0 && init.value > 0))
        return true;
    att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                   "parameter \"%s\": frequencies must have the shape [2, depth, heads, d / 2], d a "
                                   "multiple of 4, and a positive temperature",
                                   name));
    return false;
}

static att_value add_parameter(att_graph *graph, const char *name, att_shape shape, att_init init, bool decay,
                               bool buffer)
{
    if (graph->status != ATT_OK || !shape_is_valid(graph, name, shape) || !start_is_valid(graph, name, shape, init) ||
        !RESERVE(graph, parameters))
        return ATT_NONE;
    for (int i = 0; i < graph->parameters.count; i++)
        if (strcmp(graph->parameters.items[i].name, name) == 0)
            return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                                  "the graph has a parameter named \"%s\" already", name));
    att_desc desc = {.dtype = graph->dtype, .kind = ATT_SHARED, .shape = shape};
    att_value value = att_graph_add_value(graph, desc, -1);
    const char *copy = att_graph_string(graph, name);
    if (graph->status != ATT_OK)
        return ATT_NONE;
    graph->parameters.items[graph->parameters.count++] = (att_parameter_info){
        .name = copy, .value = value, .shape = shape, .init = init, .decay = decay, .buffer = buffer};
    return value;
}

att_value att_graph_parameter(att_graph *graph, const char *name, att_shape shape, att_init init, bool decay)
{
    return add_parameter(graph, name, shape, init, decay, false);
}

att_value att_graph_buffer(att_graph *graph, const char *name, att_shape shape, double start)
{
    return add_parameter(graph, name, shape, (att_init){ATT_INIT_CONSTANT, start}, false, true);
}

void att_graph_assign(att_graph *graph, att_value buffer, att_value value)
{
    if (graph->status != ATT_OK || !RESERVE(graph, assigned))
        return;
    int parameter = att_graph_parameter_of(graph, buffer);
    bool fits = parameter >= 0 && graph->parameters.items[parameter].buffer && value_exists(graph, value) &&
                graph->values.items[value].desc.kind == ATT_BATCH &&
                att_shape_equal(graph->values.items[value].desc.shape, graph->parameters.items[parameter].shape);
    if (fits)
        graph->assigned.items[graph->assigned.count++] = (att_assignment){.parameter = parameter, .value = value};
    else
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                       "%s%sonly a buffer can be assigned, a batch value of its own shape",
                                       graph->scope, att_scope_separator(graph->scope)));
}

att_value att_graph_constant(att_graph *graph, att_dtype dtype, att_shape shape, const void *data)
{
    if (graph->status != ATT_OK || !shape_is_valid(graph, "a constant", shape) ||
        !dtype_is_valid(graph, "a constant", dtype) || !RESERVE(graph, constants))
        return ATT_NONE;
    size_t bytes = (size_t)att_shape_count(shape) * att_dtype_size(dtype);
    const void *copy = att_graph_attrs(graph, data, bytes);
    att_value value = att_graph_add_value(graph, (att_desc){.dtype = dtype, .kind = ATT_SHARED, .shape = shape}, -1);
    if (graph->status != ATT_OK)
        return ATT_NONE;
    graph->constants.items[graph->constants.count++] = (att_constant){.value = value, .data = copy};
    return value;
}

att_value att_graph_add_total(att_graph *graph, att_desc desc)
{
    desc.kind = ATT_SHARED;
    if (!RESERVE(graph, totals))
        return ATT_NONE;
    att_value value = att_graph_add_value(graph, desc, -1);
    if (value != ATT_NONE)
        graph->totals.items[graph->totals.count++] = value;
    return value;
}

/* The stage that computes `value`. Of values that no node computes: ATT_EPILOGUE for totals, which are complete after
 * the body; ATT_PROLOGUE for all others. */
static att_stage stage_of(const att_graph *graph, att_value value)
{
    const att_node *producer = att_graph_producer(graph, value);
    if (producer)
        return producer->stage;
    for (int i = 0; i < graph->totals.count; i++)
        if (graph->totals.items[i] == value)
            return ATT_EPILOGUE;
    return ATT_PROLOGUE;
}

static void add_output(att_graph *graph, const char *name, att_value value, bool probe)
{
    if (graph->status != ATT_OK || !output_is_free(graph, name) || !RESERVE(graph, outputs))
        return;
    if (!value_exists(graph, value) || graph->values.items[value].node < 0 ||
        graph->values.items[value].desc.kind != ATT_SAMPLE) {
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                       "output \"%s\" must be a sample value that an operation makes", name));
        return;
    }
    const char *copy = att_graph_string(graph, name);
    if (copy)
        graph->outputs.items[graph->outputs.count++] = (att_named_value){.name = copy, .value = value, .probe = probe};
}

void att_graph_output(att_graph *graph, const char *name, att_value value)
{
    add_output(graph, name, value, false);
}

void att_graph_probe(att_graph *graph, const char *name, att_value value)
{
    add_output(graph, name, value, true);
}

void att_graph_scope(att_graph *graph, const char *scope)
{
    const char *copy = att_graph_string(graph, scope);
    if (copy)
        graph->scope = copy;
}

static att_desc desc_of(const att_graph *graph, att_value value)
{
    return value_exists(graph, value) ? graph->values.items[value].desc : (att_desc){.kind = ATT_SAMPLE};
}

att_shape att_value_shape(const att_graph *graph, att_value value)
{
    return desc_of(graph, value).shape;
}

att_dtype att_value_dtype(const att_graph *graph, att_value value)
{
    return desc_of(graph, value).dtype;
}

att_kind att_value_kind(const att_graph *graph, att_value value)
{
    return desc_of(graph, value).kind;
}

int att_graph_parameter_count(const att_graph *graph)
{
    return graph->parameters.count;
}

att_parameter_info att_graph_parameter_at(const att_graph *graph, int index)
{
    return graph->parameters.items[index];
}

int64_t att_graph_parameter_elements(const att_graph *graph)
{
    int64_t elements = 0;
    for (int i = 0; i < graph->parameters.count; i++)
        if (!graph->parameters.items[i].buffer)
            elements += att_shape_count(graph->parameters.items[i].shape);
    return elements;
}

const att_node *att_graph_producer(const att_graph *graph, att_value value)
{
    int node = value == ATT_NONE ? -1 : graph->values.items[value].node;
    return node < 0 ? NULL : &graph->nodes.items[node];
}

int att_graph_node_count(const att_graph *graph)
{
    return graph->nodes.count;
}

att_node_info att_graph_node_at(const att_graph *graph, int index)
{
    const att_node *node = &graph->nodes.items[index];
    return (att_node_info){.op = node->op->name,
                           .scope = node->scope,
                           .in = node->in,
                           .out = node->out,
                           .in_count = node->in_count,
                           .out_count = node->out_count};
}

static att_value find_named(const att_graph *graph, const char *name, bool probe)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0 && graph->outputs.items[i].probe == probe)
            return graph->outputs.items[i].value;
    return ATT_NONE;
}

att_value att_graph_find_output(const att_graph *graph, const char *name)
{
    return find_named(graph, name, false);
}

att_value att_graph_find_probe(const att_graph *graph, const char *name)
{
    return find_named(graph, name, true);
}

int att_graph_parameter_of(const att_graph *graph, att_value value)
{
    for (int i = 0; i < graph->parameters.count; i++)
        if (graph->parameters.items[i].value == value)
            return i;
    return -1;
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

void *att_graph_attrs(att_graph *graph, const void *attrs, size_t size)
{
    if (size == 0)
        return NULL;
    void *copy = att_arena_allocate(&graph->arena, size);
    if (!copy)
        fail_memory(graph);
    else if (attrs)
        memcpy(copy, attrs, size);
    return copy;
}

att_value *att_graph_values(att_graph *graph, int count)
{
    att_value *values = att_arena_allocate(&graph->arena, ((size_t)count + 1) * sizeof *values);
    if (!values)
        fail_memory(graph);
    for (int i = 0; values && i <= count; i++)
        values[i] = ATT_NONE;
    return values;
}

static att_value *copy_values(att_graph *graph, const att_value *values, int count)
{
    att_value *copy = att_graph_values(graph, count);
    if (copy && count > 0)
        memcpy(copy, values, (size_t)count * sizeof *copy);
    return copy;
}

bool att_node_own(att_graph *graph, att_node *node)
{
    node->in = copy_values(graph, node->in, node->in_count);
    node->out = copy_values(graph, node->out, node->out_count);
    node->attrs = att_graph_attrs(graph, node->attrs, node->op->attrs_size);
    return graph->status == ATT_OK;
}

att_desc att_graph_desc(const att_graph *graph, att_value value)
{
    return value == ATT_NONE ? (att_desc){.shape.rank = -1} : graph->values.items[value].desc;
}

/* Applies the op's shape rule, twice if the op has more outputs than `room`. */
static att_status infer_outputs(const att_graph *graph, const att_node *node, att_arena *work, att_infer *infer)
{
    int room = 4;
    att_desc *in = att_arena_allocate(work, ((size_t)node->in_count + 1) * sizeof *in);
    for (int i = 0; in && i < node->in_count; i++)
        in[i] = att_graph_desc(graph, node->in[i]);
    do {
        if (infer->out_count > room)
            room = infer->out_count;
        *infer = (att_infer){.context = graph->context,
                             .op = node->op,
                             .attrs = node->attrs,
                             .in = in,
                             .in_count = node->in_count,
                             .derived = node->stage != ATT_BODY,
                             .out = att_arena_allocate(work, (size_t)room * sizeof *infer->out),
                             .room = room};
        if (!in || !infer->out)
            return att_fail_memory(graph->context, (size_t)room * sizeof *infer->out, "a graph");
        ATT_TRY(node->op->infer(infer));
    } while (infer->out_count > room);
    return ATT_OK;
}

/* Whether the op has no meaning without samples. */
static bool needs_samples(const att_node *node, const att_infer *infer)
{
    for (int i = 0; i < infer->out_count; i++)
        if (infer->out[i].kind == ATT_BATCH)
            return true;
    return (node->op->flags & ATT_OP_NEEDS_SAMPLES) != 0;
}

/* Infers the node's outputs and adds them to the graph as values. */
static bool make_outputs(att_graph *graph, att_node *node)
{
    att_arena work = {.context = graph->context};
    att_infer infer = {0};
    att_status status = infer_outputs(graph, node, &work, &infer);
    if (status == ATT_OK && infer.derived && needs_samples(node, &infer))
        status = att_fail(graph->context, ATT_ERR_UNSUPPORTED,
                          "%s%sop \"%s\" needs a sample input, but all its inputs are shared by all samples",
                          graph->scope, att_scope_separator(graph->scope), node->op->name);
    node->out_count = status == ATT_OK ? infer.out_count : 0;
    node->out = att_graph_values(graph, node->out_count);
    for (int i = 0; node->out && i < node->out_count; i++)
        node->out[i] = att_graph_add_value(graph, infer.out[i], graph->nodes.count);
    att_arena_free(&work);
    if (status != ATT_OK)
        att_graph_fail(graph, status);
    return graph->status == ATT_OK;
}

/* The stage of a node with these inputs. */
static att_stage find_stage(const att_graph *graph, const att_value *in, int in_count)
{
    att_stage stage = ATT_BODY;
    for (int i = 0; i < in_count; i++) {
        if (in[i] == ATT_NONE)
            continue;
        if (graph->values.items[in[i]].desc.kind != ATT_SHARED)
            return ATT_BODY;
        if (stage != ATT_EPILOGUE)
            stage = stage_of(graph, in[i]);
    }
    return stage;
}

att_value att_emit(att_graph *graph, const char *name, const void *attrs, const att_value *in, int in_count,
                   att_value *out)
{
    if (out)
        out[0] = ATT_NONE;
    if (graph->status != ATT_OK)
        return ATT_NONE;
    att_node node = {.op = att_registry_op(graph->context, name),
                     .in_count = in_count,
                     .segment = graph->segment,
                     .scope = graph->scope,
                     .copy = graph->copying};
    if (!node.op)
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_NOT_FOUND, "there is no op \"%s\"", name));
    for (int i = 0; i < in_count; i++)
        if (in[i] != ATT_NONE && !value_exists(graph, in[i]))
            return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                                  "%s: input %d is not a value of this graph", name, i));
    node.stage = find_stage(graph, in, in_count);
    node.attrs = att_graph_attrs(graph, attrs, node.op->attrs_size);
    node.in = copy_values(graph, in, in_count);
    if (graph->status != ATT_OK || !RESERVE(graph, nodes) || !make_outputs(graph, &node))
        return ATT_NONE;
    graph->nodes.items[graph->nodes.count++] = node;
    for (int i = 0; out && i < node.out_count; i++)
        out[i] = node.out[i];
    return node.out[0];
}
