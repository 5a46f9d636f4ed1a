#include <math.h>
#include <stdio.h>

#include <attscope/ops.h>

#include "engine/ops/attention.h"
#include "engine/ops/list.h"
#include "engine/ops/score_terms.h"
#include "study/measure/list.h"
#include "study/measure/positions.h"

/* Statistics in the order of their series. The first are terms, the bilinear ones in the order of the op. */
enum {
    CONTENT_CONTENT,
    CONTENT_POSITION,
    BILINEAR_TERMS = 6,
    POSITION = BILINEAR_TERMS,
    COVARIANCE,
    TOTAL,
    STATISTICS
};
static const att_statistic_info statistics[] = {
    {"content-content", "Content-content", "share"},
    {"content-position", "Content-position", "share"},
    {"position-content", "Position-content", "share"},
    {"position-position", "Position-position", "share"},
    {"bias-content", "Bias-content", "share"},
    {"bias-position", "Bias-position", "share"},
    {"position", "Position alone (shift)", "share"},
    {"covariance", "Covariances of the terms", "share"},
    {"deviation", "Standard deviation of scores", "nats"},
    {0},
};

/* Which terms a node has; its constant is their sum. */
enum { SPLIT = 1, RELATIVE = 2, AXES = 4 };

/* Writes the statistic of each term, in the op's order. Returns their number. */
static int terms_of(int has, int term[ATT_SCORE_MOST_TERMS])
{
    int count = 0;
    for (int t = 0; t < (has & SPLIT ? BILINEAR_TERMS : 1); t++)
        term[count++] = t;
    if (has & RELATIVE)
        term[count++] = POSITION;
    if (has & AXES)
        term[count++] = CONTENT_POSITION;
    return count;
}

static bool has_statistic(int has, int statistic)
{
    int term[ATT_SCORE_MOST_TERMS], count = terms_of(has, term);
    for (int t = 0; t < count; t++)
        if (term[t] == statistic)
            return true;
    return statistic >= COVARIANCE;
}

static bool has_input(const att_node *node, int which)
{
    return which < node->in_count && node->in[which] != ATT_NONE;
}

/* 0 if the scores have one term only, or terms of another kind. */
static int terms_of_node(const att_graph *graph, const att_node *node)
{
    if (node->op != &att_op_attention || has_input(node, ATT_ATTENTION_KEYS))
        return 0;
    int has = has_input(node, ATT_ATTENTION_RELATIVE) ? RELATIVE : 0;
    if (has_input(node, ATT_ATTENTION_ROWS))
        has |= AXES;
    if (!(has & AXES) && att_has_positions(graph, node->in[ATT_ATTENTION_Q]) &&
        (!has_input(node, ATT_ATTENTION_K) || att_has_positions(graph, node->in[ATT_ATTENTION_K])))
        has |= SPLIT;
    return has;
}

/* x - a - b; b may be ATT_NONE. */
static att_value rest_of(att_graph *graph, att_value x, att_value a, att_value b)
{
    att_value rest = att_combine(graph, 1, x, -1, a);
    return b == ATT_NONE ? rest : att_combine(graph, 1, rest, -1, b);
}

/* Writes the parts of queries and keys, see att_score_terms(). Returns their number. */
static int put_parts(att_graph *graph, att_value q, att_value k, int has, att_value *part)
{
    if (!(has & SPLIT)) {
        part[0] = q, part[1] = k;
        return 2;
    }
    att_value q_of_positions = att_part_of_positions(graph, q), q_of_biases = att_part_of_biases(graph, q);
    att_value k_of_positions = k == q ? q_of_positions : att_part_of_positions(graph, k);
    part[0] = rest_of(graph, q, q_of_positions, q_of_biases);
    part[1] = q_of_positions;
    part[2] = q_of_biases;
    part[3] = rest_of(graph, k, k_of_positions, ATT_NONE);
    part[4] = k_of_positions;
    return ATT_SCORE_MOST_QUERY_PARTS + ATT_SCORE_MOST_KEY_PARTS;
}

/* The covariances of the node's terms. */
static att_value covariances_of(att_graph *graph, const att_node *node, int has)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    att_value in[ATT_SCORE_MOST_INPUTS];
    att_attention_operands(graph, node, operand);
    const att_attention_operand *q = &operand[ATT_ATTENTION_Q], *k = &operand[ATT_ATTENTION_K];
    const att_score_terms_attrs attrs = {.attention = *ATT_ATTRS(node, attention),
                                         .query_parts = has & SPLIT ? ATT_SCORE_MOST_QUERY_PARTS : 1,
                                         .key_parts = has & SPLIT ? ATT_SCORE_MOST_KEY_PARTS : 1,
                                         .width = q->width,
                                         .q_offset = q->offset,
                                         .k_offset = k->offset};
    int parts = put_parts(graph, node->in[q->input], node->in[k->input], has, in);
    for (int e = 0; e < ATT_SCORE_EXTRA; e++) {
        int which = ATT_ATTENTION_RELATIVE + e;
        in[parts + e] = has_input(node, which) ? node->in[which] : ATT_NONE;
    }
    return att_score_terms(graph, &attrs, in);
}

static void request_node(att_requests *requests, att_node node, int has)
{
    att_graph *graph = att_requests_graph(requests);
    char name[256];
    snprintf(name, sizeof name, "%s.score_terms", node.scope);
    att_graph_scope(graph, node.scope);
    att_requests_value(requests, name, covariances_of(graph, &node, has), has);
}

/* The next node with several terms after node `after`; -1: none. */
static int next_node(const att_requests *requests, int after)
{
    const att_graph *graph = att_requests_graph(requests);
    do
        after = att_requests_node(requests, "attention", after);
    while (after >= 0 && !terms_of_node(graph, &graph->nodes.items[after]));
    return after;
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    for (int i = next_node(requests, -1); i >= 0; i = next_node(requests, i), found = true)
        request_node(requests, graph->nodes.items[i], terms_of_node(graph, &graph->nodes.items[i]));
    for (int s = 0; s < STATISTICS; s++)
        for (int i = next_node(requests, -1); i >= 0; i = next_node(requests, i))
            if (has_statistic(terms_of_node(graph, &graph->nodes.items[i]), s))
                att_requests_heads(requests, &graph->nodes.items[i], statistics[s].name, NULL);
    if (found)
        return ATT_OK;
    return att_requests_fail(requests,
                             "it needs scores with several terms: an attention with terms of positions beside content, "
                             "or position embeddings that are added before the first attention; rotary positions are "
                             "no term of their own, and scores without content have only one");
}

/* A term's variance over that of the whole score; the share of the covariances; or the score's deviation. */
static double statistic_of(const float *covariances, int has, int statistic)
{
    int term[ATT_SCORE_MOST_TERMS], count = terms_of(has, term);
    double total = 0, own = 0, variances = 0;
    for (int s = 0; s < count; s++)
        for (int t = 0; t < count; t++)
            total += (double)covariances[s * count + t];
    for (int t = 0; t < count; t++) {
        variances += (double)covariances[t * count + t];
        own += term[t] == statistic ? (double)covariances[t * count + t] : 0;
    }
    if (statistic == TOTAL)
        return sqrt(fmax(0, total));
    return total > 0 ? (statistic == COVARIANCE ? total - variances : own) / total : NAN;
}

static void observe(const att_observed *observed, double *values)
{
    for (int s = 0; s < STATISTICS; s++)
        for (int i = 0; i < observed->count; i++) {
            int has = (int)observed->constants[i], term[ATT_SCORE_MOST_TERMS], count = terms_of(has, term);
            int64_t heads = observed->lengths[i] / (count * count);
            double sum = 0;
            if (!has_statistic(has, s))
                continue;
            for (int64_t head = 0; head < heads; head++)
                sum += *values++ = statistic_of(observed->rows[i] + head * count * count, has, s);
            *values++ = sum / (double)heads;
        }
}

static const att_statistic_scale scales[] = {
    {NULL, "0 if the term is the same for all keys; 1 if it is the only one that varies", "the formulas"},
    {"content-content",
     "1.24 in the first layer of DeiT-Tiny, beside 0.32 of position-position and -1.23 of covariance",
     ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_score_terms = {
    .info = {.name = "score_terms",
             .view = "convolution",
             .title = "Terms of the scores",
             .summary = "how much of the variance of attention's scores comes from content and from positions",
             .unit = "share",
             .formula =
                 "share of a term t = mean_i var_j(t_ij) / mean_i var_j(s_ij), s = sum of the terms, i over queries, j "
                 "over keys; covariance = 1 - sum of the shares; deviation = sqrt(mean_i var_j(s_ij))",
             .source = "terms: Dai et al., ACL 2019, and Cordonnier et al., ICLR 2020; shares of the variance: usual",
             .scales = scales,
             .reading =
                 "over all tokens, prefix tokens included, or those of the query's window; content-position: q . r of "
                 "learned vectors r for shifts; position: a table of shifts; in the first layer, tokens are content + "
                 "position embedding (prefix tokens' own vectors are content), split through the layer norm with its "
                 "statistics kept; bias: biases of queries, and of the norm before them; biases of keys add the same "
                 "to all scores of a query and have no share; single heads: own ratio, all: mean of the heads",
             .statistics = statistics},
    .request = request,
    .observe = observe,
};
