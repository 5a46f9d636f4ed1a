#include "study/measure/clone.h"

#include "base/core/error.h"

/* What is known of a value. */
typedef struct att_cloned {
    att_value copy; /* ATT_NONE: none */
    bool known;     /* copied or replaced */
    bool affected;  /* depends on a replaced value, or is one */
    bool wanted;    /* is to be copied by the current call */
} att_cloned;

att_status att_clone_begin(att_graph *graph, att_clone_rule *rule, void *user, att_clone *clone)
{
    ATT_TRY(graph->status);
    size_t count = (size_t)graph->values.count + 1;
    *clone = (att_clone){
        .graph = graph, .rule = rule, .user = user, .count = graph->values.count, .was_copying = graph->copying};
    ATT_TRY(att_new(graph->context, &clone->values, count, "a copy of a graph"));
    graph->copying = true;
    return ATT_OK;
}

void att_clone_end(att_clone *clone)
{
    clone->graph->copying = clone->was_copying;
    att_free(clone->graph->context, clone->values);
    clone->values = NULL;
}

void att_clone_replace(att_clone *clone, att_value value, att_value by)
{
    att_graph *graph = clone->graph;
    if (graph->status != ATT_OK)
        return;
    att_desc old = att_graph_desc(graph, value), new = att_graph_desc(graph, by);
    if (!att_shape_equal(old.shape, new.shape) || old.dtype != new.dtype || old.kind != new.kind) {
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                       "cannot replace a value of a graph by one of another shape, type or kind"));
        return;
    }
    clone->values[value] = (att_cloned){.copy = by, .known = true, .affected = true};
}

/* Marks the values that the copy of `value` needs and that are not known, and returns the index of the first node that
 * makes one of them; `last` + 1 if there is none. last: the index of the node that makes `value`. */
static int mark_wanted(const att_clone *clone, att_value value, int last)
{
    const att_graph *graph = clone->graph;
    att_cloned *values = clone->values;
    int wanted = 1, first = last + 1;
    values[value].wanted = true;
    for (int i = last; wanted > 0 && i >= 0; i--) {
        const att_node *node = &graph->nodes.items[i];
        bool makes = false;
        for (int j = 0; j < node->out_count; j++)
            if (values[node->out[j]].wanted) {
                makes = true;
                wanted--;
            }
        if (!makes)
            continue;
        first = i;
        for (int j = 0; j < node->in_count; j++) {
            att_value in = node->in[j];
            if (in == ATT_NONE || values[in].known || values[in].wanted)
                continue;
            if (graph->values.items[in].node < 0) {
                values[in] = (att_cloned){.copy = in, .known = true};
                continue;
            }
            values[in].wanted = true;
            wanted++;
        }
    }
    return first;
}

static void set_copies(const att_clone *clone, const att_node *node, const att_value *copies, int count, bool affected)
{
    for (int j = 0; j < node->out_count; j++)
        if (!clone->values[node->out[j]].known)
            clone->values[node->out[j]] = (att_cloned){j < count ? copies[j] : ATT_NONE, true, affected, false};
}

/* Adds a node like `node` with the inputs `in`. */
static void emit_copy(const att_clone *clone, const att_node *node, const att_value *in)
{
    att_graph *graph = clone->graph;
    att_value *out = att_graph_values(graph, node->out_count);
    if (!out)
        return;
    if (node->op->in_training && node->op->flags & ATT_OP_NEEDS_SAMPLES && !clone->inference) {
        att_graph_fail(
            graph,
            att_fail(graph->context, ATT_ERR_UNSUPPORTED,
                     "%s%sthe op \"%s\" cannot be copied: its copy would take part in the statistics of a training run",
                     node->scope, att_scope_separator(node->scope), node->op->name));
        return;
    }
    att_emit(graph, node->op->name, node->attrs, in, node->in_count, out);
    if (graph->status == ATT_OK)
        set_copies(clone, node, out, node->out_count, true);
}

/* Decides the copies of the outputs of node i, whose inputs are known. */
static void copy_node(const att_clone *clone, int i)
{
    att_graph *graph = clone->graph;
    const att_node node = graph->nodes.items[i]; /* a copy, because adding nodes moves them */
    att_value *in = att_graph_values(graph, node.in_count), special = ATT_NONE;
    bool affected = false, changed = false;
    if (!in)
        return;
    for (int j = 0; j < node.in_count; j++) {
        if (node.in[j] == ATT_NONE)
            continue;
        in[j] = clone->values[node.in[j]].copy;
        affected |= clone->values[node.in[j]].affected;
        changed |= in[j] != node.in[j];
        if (in[j] == ATT_NONE) {
            att_graph_fail(graph, att_fail(graph->context, ATT_ERR_UNSUPPORTED,
                                           "%s%sthe op \"%s\" cannot be copied: its input %d has no copy", node.scope,
                                           att_scope_separator(node.scope), node.op->name, j));
            return;
        }
    }
    graph->scope = node.scope;
    if (affected && clone->rule)
        special = clone->rule(clone->user, graph, &node, in);
    if (special != ATT_NONE)
        set_copies(clone, &node, &special, 1, true);
    else if (changed)
        emit_copy(clone, &node, in);
    else
        set_copies(clone, &node, node.out, node.out_count, affected);
}

static bool is_wanted(const att_clone *clone, const att_node *node)
{
    for (int j = 0; j < node->out_count; j++)
        if (clone->values[node->out[j]].wanted)
            return true;
    return false;
}

att_value att_clone_value(att_clone *clone, att_value value)
{
    att_graph *graph = clone->graph;
    if (graph->status != ATT_OK || value == ATT_NONE || value >= clone->count)
        return graph->status == ATT_OK ? value : ATT_NONE;
    int last = graph->values.items[value].node;
    if (!clone->values[value].known && last < 0)
        clone->values[value] = (att_cloned){.copy = value, .known = true};
    if (!clone->values[value].known) {
        const char *scope = graph->scope;
        for (int i = mark_wanted(clone, value, last); i <= last && graph->status == ATT_OK; i++)
            if (is_wanted(clone, &graph->nodes.items[i]))
                copy_node(clone, i);
        graph->scope = scope;
    }
    return graph->status == ATT_OK ? clone->values[value].copy : ATT_NONE;
}
