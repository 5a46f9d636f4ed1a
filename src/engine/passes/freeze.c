#include <string.h>

#include "base/core/error.h"
#include "engine/passes/passes.h"

/* Whether the parameter lies in the scope of the first `length` bytes of `scope`; 0 bytes: the whole network. */
static bool is_in(const char *name, const char *scope, size_t length)
{
    return length == 0 || (strncmp(name, scope, length) == 0 && name[length] == '.');
}

/* Whether the scope has trained parameters. *frozen: all of them are. */
static bool has_parameters(const att_graph *graph, const bool *frozen, const char *scope, size_t length, bool *all)
{
    bool any = false;
    *all = true;
    for (int i = 0; i < graph->parameters.count; i++) {
        const att_parameter_info *parameter = &graph->parameters.items[i];
        if (parameter->buffer || !is_in(parameter->name, scope, length))
            continue;
        any = true;
        *all = *all && frozen[i];
    }
    return any;
}

/* The length of the scope around the first `length` bytes; 0: the network. */
static size_t enclosing(const char *scope, size_t length)
{
    while (length > 0 && scope[--length] != '.')
        ;
    return length;
}

bool att_scope_is_frozen(const att_graph *graph, const bool *frozen, const char *scope, bool if_none)
{
    bool all;
    for (size_t length = strlen(scope); length > 0; length = enclosing(scope, length))
        if (has_parameters(graph, frozen, scope, length, &all))
            return all;
    return if_none;
}

bool att_node_reads_frozen(const att_graph *graph, const bool *frozen, const att_node *node)
{
    for (int j = 0; j < node->in_count; j++) {
        const int index = node->in[j] == ATT_NONE ? -1 : att_graph_parameter_of(graph, node->in[j]);
        if (index >= 0 && graph->parameters.items[index].buffer && frozen[index])
            return true;
    }
    return false;
}

/* Whether a trained parameter lies before one of the node's inputs. */
static bool reads_trained(const att_node *node, const bool *trained)
{
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE && trained[node->in[j]])
            return true;
    return false;
}

att_status att_graph_freeze(att_graph *graph, const bool *frozen)
{
    bool *trained; /* by value: a trained parameter lies before it */
    ATT_TRY(att_new(graph->context, &trained, (size_t)graph->values.count + 1, "a plan"));
    for (int i = 0; i < graph->parameters.count; i++)
        trained[graph->parameters.items[i].value] = !graph->parameters.items[i].buffer && !frozen[i];
    for (int i = 0; i < graph->nodes.count; i++) {
        att_node *node = &graph->nodes.items[i];
        const bool before = reads_trained(node, trained);
        for (int j = 0; j < node->out_count; j++)
            trained[node->out[j]] = before;
        node->frozen =
            att_scope_is_frozen(graph, frozen, node->scope, !before) || att_node_reads_frozen(graph, frozen, node);
    }
    att_free(graph->context, trained);
    return ATT_OK;
}
