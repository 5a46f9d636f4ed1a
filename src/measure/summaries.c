#include <stdio.h>

#include <attscope/ops.h>

#include "measure/instrument.h"

/* 1 over the longer side of the node's grid; 0 where it has none. */
static double one_side(const att_node *node)
{
    const att_attention_attrs *attrs = &node->attrs.attention;
    int32_t side = attrs->grid_h > attrs->grid_w ? attrs->grid_h : attrs->grid_w;
    return side > 0 ? 1.0 / side : 0;
}

static void add_series(att_asking *asking, const char *scope, int heads, const char *statistic)
{
    for (int head = 0; head < heads; head++)
        att_asking_series(asking, scope, head, statistic);
    att_asking_series(asking, scope, -1, statistic);
}

static bool is_usable(const att_node *node, bool side)
{
    return !side || one_side(node) > 0;
}

att_status att_summaries_ask(att_asking *asking, const att_summary_column *columns, int count, bool side)
{
    att_graph *graph = att_asking_graph(asking);
    bool found = false;
    char name[256];
    for (int i = att_asking_node(asking, "attention", -1); i >= 0; i = att_asking_node(asking, "attention", i)) {
        att_node node = graph->nodes.items[i];
        if (!is_usable(&node, side))
            continue;
        found = true;
        ATT_TRY(att_ask_attention_summary(graph, node.scope));
        snprintf(name, sizeof name, "%s.summary", node.scope);
        att_asking_row(asking, name, side ? one_side(&node) : 1);
    }
    for (int c = 0; c < count; c++)
        for (int i = att_asking_node(asking, "attention", -1); i >= 0; i = att_asking_node(asking, "attention", i))
            if (is_usable(&graph->nodes.items[i], side))
                add_series(asking, graph->nodes.items[i].scope, graph->nodes.items[i].attrs.attention.heads,
                           columns[c].statistic);
    return found ? ATT_OK : att_asking_found_nothing(asking, side ? "attention over a grid" : "attention");
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
