#include <attscope/ops.h>

#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "graph/graph.h"
#include "ops/attention.h"
#include "ops/list.h"

enum { STATS = 2, MAP = 3 }; /* outputs of attention */

static bool is_output(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return true;
    return false;
}

/* A probe of attention nodes: the suffix of its name, and the function that returns the value to observe. */
typedef struct attention_probe {
    const char *name;
    att_value (*value)(att_graph *graph, const att_node *node);
} attention_probe;

static att_value stats_of(att_graph *graph, const att_node *node)
{
    (void)graph;
    return node->out[STATS];
}

static att_value map_of(att_graph *graph, const att_node *node)
{
    (void)graph;
    return node->out[MAP];
}

static att_value summary_of(att_graph *graph, const att_node *node)
{
    att_graph_scope(graph, node->scope);
    return att_attention_summary(graph, node->out[STATS], ATT_ATTRS(node, attention)->prefix);
}

static const attention_probe stats = {"stats", stats_of}, map = {"map", map_of}, summary = {"summary", summary_of};

static void add_probe(att_graph *graph, att_node node, const attention_probe *probe)
{
    att_text name = {.context = graph->context};
    att_text_append(&name, "%s.%s", node.scope, probe->name);
    if (name.failed)
        att_graph_fail(graph, att_fail_memory(graph->context, name.length, "the name of an output"));
    else if (!is_output(graph, name.data))
        att_graph_probe(graph, name.data, probe->value(graph, &node));
    att_text_free(&name);
}

static att_status add_probes(att_graph *graph, const char *pattern, const attention_probe *probe)
{
    ATT_TRY(graph->status);
    bool found = false;
    int count = graph->nodes.count;
    for (int i = 0; i < count; i++) {
        att_node node = graph->nodes.items[i];
        if (node.op != &att_op_attention || !att_text_matches(pattern, node.scope))
            continue;
        found = true;
        add_probe(graph, node, probe);
    }
    if (!found)
        return att_fail(graph->context, ATT_ERR_NOT_FOUND, "no attention layer matches \"%s\"", pattern);
    return graph->status;
}

att_status att_graph_probe_attention_stats(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &stats);
}

att_status att_graph_probe_attention_map(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &map);
}

att_status att_graph_probe_attention_summary(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &summary);
}
