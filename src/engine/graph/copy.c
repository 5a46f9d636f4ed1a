#include <string.h>

#include "base/core/memory.h"
#include "engine/graph/graph.h"

static bool copy_list(att_context *context, void *to, const void *from, int count, int *capacity, size_t size)
{
    *capacity = count;
    if (count == 0)
        return true;
    void *items = att_allocate_array(context, (size_t)count, size);
    if (!items)
        return false;
    memcpy(items, from, (size_t)count * size);
    memcpy(to, &items, sizeof items);
    return true;
}

#define COPY_LIST(copy, graph, list)                                                                    \
    ((copy)->list.count = (graph)->list.count,                                                          \
     copy_list((graph)->context, (void *)&(copy)->list.items, (graph)->list.items, (graph)->list.count, \
               &(copy)->list.capacity, sizeof *(graph)->list.items))

static void copy_contents(att_graph *copy)
{
    for (int i = 0; i < copy->inputs.count; i++)
        copy->inputs.items[i].name = att_graph_string(copy, copy->inputs.items[i].name);
    for (int i = 0; i < copy->outputs.count; i++)
        copy->outputs.items[i].name = att_graph_string(copy, copy->outputs.items[i].name);
    for (int i = 0; i < copy->parameters.count; i++)
        copy->parameters.items[i].name = att_graph_string(copy, copy->parameters.items[i].name);
    for (int i = 0; i < copy->constants.count; i++) {
        att_constant *constant = &copy->constants.items[i];
        const att_desc *desc = &copy->values.items[constant->value].desc;
        constant->data =
            att_graph_attrs(copy, constant->data, (size_t)att_shape_count(desc->shape) * att_dtype_size(desc->dtype));
    }
    const char *last_from = NULL, *last_to = NULL; /* neighbouring nodes share one copy of their scope */
    for (int i = 0; i < copy->nodes.count; i++) {
        att_node *node = &copy->nodes.items[i];
        if (node->scope != last_from) {
            last_from = node->scope;
            last_to = att_graph_string(copy, last_from);
        }
        node->scope = last_to;
        att_node_own(copy, node);
    }
}

att_graph *att_graph_copy(const att_graph *graph)
{
    att_graph *copy = NULL;
    if (att_graph_create(graph->context, graph->dtype, &copy) != ATT_OK)
        return NULL;
    bool copied = COPY_LIST(copy, graph, values) && COPY_LIST(copy, graph, nodes) && COPY_LIST(copy, graph, inputs) &&
                  COPY_LIST(copy, graph, outputs) && COPY_LIST(copy, graph, parameters) &&
                  COPY_LIST(copy, graph, assigned) && COPY_LIST(copy, graph, constants) &&
                  COPY_LIST(copy, graph, totals);
    if (copied)
        copy_contents(copy);
    if (!copied || copy->status != ATT_OK)
        att_graph_destroy(&copy);
    return copy;
}
