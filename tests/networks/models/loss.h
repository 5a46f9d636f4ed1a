/* models/loss.h - for tests of folders below the tasks: adds the loss of the task "classification" to a model. */
#ifndef TESTS_MODELS_LOSS_H
#define TESTS_MODELS_LOSS_H

#include <attscope/models.h>
#include <attscope/ops.h>

#include "engine/graph/graph.h"

static inline void loss_add(const att_model *model, double smoothing)
{
    att_graph *graph = att_model_graph(model);
    att_value logits = att_graph_find_output(graph, "logits");
    att_graph_scope(graph, "loss");
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, smoothing));
}

#endif
