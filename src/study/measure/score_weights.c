#include <stdio.h>

#include "engine/ops/attention.h"
#include "engine/ops/list.h"
#include "engine/ops/score_norm.h"
#include "study/measure/list.h"

/* The weights of queries and keys of a node, and where its heads lie in them. */
typedef struct weights {
    att_value w_q, w_k;
    att_score_norm_attrs attrs;
} weights;

/* The weight of the linear layer that computes the value, whose columns a reshape or a rotation of heads may have
 * passed on in their places; ATT_NONE: the value comes from elsewhere. */
static att_value weight_of(const att_graph *graph, att_value value)
{
    enum { X, WEIGHT };
    for (;;) {
        if (att_value_kind(graph, value) != ATT_SAMPLE)
            return ATT_NONE;
        const att_node *node = att_graph_producer(graph, value);
        if (node && node->op == &att_op_linear)
            return node->in[WEIGHT];
        if (!node || (node->op != &att_op_reshape && node->op != &att_op_rotary))
            return ATT_NONE;
        value = node->in[X];
    }
}

/* Returns false for a node without weights of scores. */
static bool find_weights(const att_graph *graph, const att_node *node, weights *w)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    if (node->op != &att_op_attention)
        return false;
    att_attention_operands(graph, node, operand);
    const att_attention_operand *q = &operand[ATT_ATTENTION_Q], *k = &operand[ATT_ATTENTION_K];
    w->w_q = weight_of(graph, node->in[q->input]);
    w->w_k = weight_of(graph, node->in[k->input]);
    if (w->w_q == ATT_NONE || w->w_k == ATT_NONE)
        return false;
    w->attrs = (att_score_norm_attrs){.heads = q->heads,
                                      .key_heads = k->heads,
                                      .width = q->width,
                                      .q_offset = q->offset,
                                      .k_offset = k->offset,
                                      .scale = ATT_ATTRS(node, attention)->scale};
    return att_value_shape(graph, w->w_q).dims[1] == att_value_shape(graph, w->w_k).dims[1];
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    weights w;
    for (int i = -1; (i = att_requests_node(requests, "attention", i)) >= 0;) {
        const att_node node = graph->nodes.items[i];
        char name[256];
        if (!find_weights(graph, &node, &w))
            continue;
        found = true;
        att_graph_scope(graph, node.scope);
        att_value norms = att_score_norm(graph, &w.attrs, w.w_q, w.w_k);
        snprintf(name, sizeof name, "%s.score_norm", node.scope);
        att_requests_value(requests, name, att_shared_for_samples(graph, norms, node.in[0]), 1);
        for (int head = 0; head < w.attrs.heads; head++)
            att_requests_series(requests, node.scope, head, "spectral");
        att_requests_series(requests, node.scope, -1, "spectral");
    }
    if (found)
        return ATT_OK;
    if (att_requests_node(requests, "attention", -1) < 0)
        return att_requests_found_no_attention(requests, "attention");
    return att_requests_fail(requests,
                             "it needs scores that are products of tokens with weights; scores of queries or keys that "
                             "are divided by their norms, of a learned query, or without content are not");
}

static void observe(const att_observed *observed, double *values)
{
    att_maps_observe(observed, 0, observed->count, values);
}

static const att_statistic_scale scales[] = {{NULL, "0 if all scores are 0", "the formula"},
                                             {NULL, "0.13 to 0.57 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
                                             {NULL, NULL, NULL}};

const att_instrument att_instrument_score_weights = {
    .info = {.name = "score_weights",
             .view = "convolution",
             .title = "Weights of the scores",
             .summary = "largest singular value of the weights of each head's scores, W_q' W_k / sqrt(d)",
             .unit = "1",
             .formula = "sigma_max(W_QK) = |scale W_q,h' W_k,h|_2, scale usually 1 / sqrt(d), for scores x_i' W_QK x_j",
             .source = "Zhai et al., ICML 2023, who bound the entropy of attention by this norm",
             .scales = scales,
             .reading =
                 "from the weights alone, so it is the same for every image; x is what the layer of queries and keys "
                 "reads: the norm before it is not part of W_QK, its factors neither; biases of queries and keys are "
                 "left out, as are terms of positions; rotary positions turn queries and keys and are counted for a "
                 "token with itself, where they cancel; layers whose queries or keys are divided by norms of their own "
                 "are left out, because the scale of the weights has no effect there; all: mean of the heads"},
    .request = request,
    .observe = observe,
};
