#include <attscope/ops.h>

#include <string.h>

#include "engine/ops/batch_norm.h"
#include "engine/ops/list.h"
#include "engine/patterns/list.h"
#include "engine/patterns/match.h"

/* A norm before a channel attention receives the gradient dy = rest (.) factor + pooled / rows: factor is the gate,
 * pooled the gradient of the mean that the attention takes; both are vectors per sample. normalize_sums is linear in
 * dy, and normalize_grad applies factor and pooled itself, so the map dy is never stored. If the attention has a norm
 * of its own, pooled is known one segment later than rest, and the sums of rest need not wait for it. */

/* Inputs of normalize_sums and normalize_grad, then those that normalize_grad alone has. */
enum { DY, X, STATS, GAMMA, BETA, SUMS_IN_COUNT };
enum { FACTOR = SUMS_IN_COUNT + 2, POOLED, GRAD_IN_COUNT };

typedef struct split {
    att_value rest, factor, pooled; /* factor, pooled: ATT_NONE if absent */
} split;

/* Splits dy. False if dy should stay whole: if rest is itself a sum, splitting would store one more map. At this stage
 * gates have absorbed nothing. */
static bool split_of(const att_graph *graph, att_value dy, split *s)
{
    *s = (split){dy, ATT_NONE, ATT_NONE};
    if (att_match(graph, dy, &att_op_add) && !att_match_broadcast_sum(graph, dy, &s->rest, &s->pooled))
        return false;
    const att_node *gate = att_match(graph, s->rest, &att_op_gate);
    if (!gate)
        return s->pooled != ATT_NONE && !att_match(graph, s->rest, &att_op_add);
    s->factor = gate->in[1];
    s->rest = gate->in[0];
    return true;
}

/* Emits the sums of dy and of dy n over the rows of a sample, with n = (x - mean) / sqrt(variance + eps). vectors: the
 * three inputs of the norm after x. attrs: those of the norm. */
static void emit_sums(att_graph *graph, const void *attrs, att_value dy, att_value x, const att_value *vectors,
                      att_value sums[2])
{
    att_value in[] = {dy, x, vectors[0], vectors[1], vectors[2]};
    att_emit(graph, "normalize_sums", attrs, in, SUMS_IN_COUNT, sums);
}

static void split_sums(att_graph *graph, const att_node *node, const split *s, att_value *replacements)
{
    const att_value *vectors = &node->in[STATS];
    att_value x = node->in[X], pooled[2];
    emit_sums(graph, node->attrs, s->rest, x, vectors, replacements);
    for (int i = 0; s->factor != ATT_NONE && i < 2; i++)
        replacements[i] = att_gate(graph, replacements[i], s->factor);
    if (s->pooled == ATT_NONE)
        return;
    emit_sums(graph, node->attrs, s->pooled, att_global_mean(graph, x), vectors, pooled);
    for (int i = 0; i < 2; i++)
        replacements[i] = att_add(graph, replacements[i], pooled[i]);
}

static void split_grad(att_graph *graph, const att_node *node, const split *s, att_value *replacements)
{
    att_value in[GRAD_IN_COUNT];
    memcpy(in, node->in, sizeof in);
    in[DY] = s->rest;
    in[FACTOR] = s->factor;
    in[POOLED] = s->pooled;
    replacements[0] = att_emit(graph, "normalize_grad", node->attrs, in, GRAD_IN_COUNT, NULL);
}

static bool is_whole(const att_node *node)
{
    return node->op == &att_op_normalize_sums ||
           (node->op == &att_op_normalize_grad && node->in[FACTOR] == ATT_NONE && node->in[POOLED] == ATT_NONE);
}

/* Does not match with a ReLU, where pooled counts only in the rows that the ReLU passes. */
static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    split s;
    if (!is_whole(node) || ATT_ATTRS(node, batch_norm)->activation != ATT_ACT_NONE ||
        !split_of(graph, node->in[DY], &s))
        return false;
    if (node->op == &att_op_normalize_sums)
        split_sums(graph, node, &s, replacements);
    else
        split_grad(graph, node, &s, replacements);
    return true;
}

const att_pattern att_pattern_split_gradient = {
    .name = "split_gradient",
    .help =
        "for dy = r (.) g + p / rows: sum(dy) = g (.) sum(r) + p; sum(dy (.) n) = g (.) sum(r (.) n) + p (.) "
        "mean(n), n the normal x; normalize_grad reads r, g and p",
    .stage = ATT_AFTER_GRADIENTS,
    .apply = apply,
};
