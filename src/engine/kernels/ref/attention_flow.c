#include <math.h>
#include <string.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/rollout.h"

/* Shortest augmenting paths (Edmonds and Karp, 1972). Vertex level * N + i is token i below layer `level`; the last
 * level is above all layers. A smaller residual capacity than LEAST counts as 0. */
#define LEAST 1e-13

typedef struct network {
    const att_call *call;
    int64_t first, layers, tokens, target;
    double *flow;          /* [layers, N, N], from tokens above to tokens below */
    double *left;          /* of the capacities of the last level */
    int64_t *from, *queue; /* for each vertex: the vertex before it on the path, itself at the beginning, -1: none */
} network;

static double residual(const network *n, int64_t from, int64_t to)
{
    const int64_t size = n->tokens, above = from > to ? from : to, below = from > to ? to : from;
    const int64_t edge = (below / size * size + above % size) * size + below % size;
    if (from < to)
        return n->flow[edge];
    double weight = att_rollout_weight(ref_in(n->call, 0, n->first + edge), above % size, below % size);
    return fmax(0, weight) - n->flow[edge];
}

static void add(const network *n, int64_t from, int64_t to, double amount)
{
    const int64_t size = n->tokens, above = from > to ? from : to, below = from > to ? to : from;
    n->flow[(below / size * size + above % size) * size + below % size] += from > to ? amount : -amount;
}

/* Adds the vertices of a level that `vertex` reaches to the end of the queue; returns the new end. */
static int64_t reach(const network *n, int64_t vertex, int64_t level, int64_t end)
{
    for (int64_t to = level * n->tokens; to < (level + 1) * n->tokens; to++)
        if (n->from[to] < 0 && residual(n, vertex, to) > LEAST) {
            n->from[to] = vertex;
            n->queue[end++] = to;
        }
    return end;
}

static bool find_path(const network *n)
{
    const int64_t size = n->tokens, vertices = (n->layers + 1) * size;
    int64_t end = 0;
    for (int64_t v = 0; v < vertices; v++)
        n->from[v] = -1;
    for (int64_t i = 0; i < size; i++)
        if (n->left[i] > LEAST) {
            int64_t vertex = n->layers * size + i;
            n->from[vertex] = vertex;
            n->queue[end++] = vertex;
        }
    for (int64_t at = 0; at < end && n->from[n->target] < 0; at++) {
        int64_t vertex = n->queue[at], level = vertex / size;
        if (level > 0)
            end = reach(n, vertex, level - 1, end);
        if (level < n->layers)
            end = reach(n, vertex, level + 1, end);
    }
    return n->from[n->target] >= 0;
}

/* Sends as much as possible along the path found. */
static double augment(const network *n)
{
    int64_t begin = n->target;
    double amount = INFINITY;
    for (; n->from[begin] != begin; begin = n->from[begin])
        amount = fmin(amount, residual(n, n->from[begin], begin));
    amount = fmin(amount, n->left[begin % n->tokens]);
    n->left[begin % n->tokens] -= amount;
    for (int64_t v = n->target; n->from[v] != v; v = n->from[v])
        add(n, n->from[v], v, amount);
    return amount;
}

static double flow_to(const network *n)
{
    double sum = 0;
    memset(n->flow, 0, (size_t)(n->layers * n->tokens * n->tokens) * sizeof *n->flow);
    for (int64_t i = 0; i < n->tokens; i++)
        n->left[i] = att_rollout_start(n->call->problem->attrs, i, n->tokens);
    while (find_path(n))
        sum += augment(n);
    return sum;
}

static bool is_finite(const network *n)
{
    for (int64_t e = 0; e < n->layers * n->tokens * n->tokens; e++)
        if (!isfinite(ref_in(n->call, 0, n->first + e)))
            return false;
    return true;
}

static att_status prepare_flow(const att_problem *problem, att_prepared *prepared)
{
    const int64_t layers = problem->in[0].shape.dims[0], tokens = problem->in[0].shape.dims[1];
    prepared->scratch_bytes = (size_t)(layers * tokens * tokens + tokens) * sizeof(double) +
                              2 * (size_t)((layers + 1) * tokens) * sizeof(int64_t);
    return ATT_OK;
}

static att_status run_flow(const att_call *call)
{
    network n = {.call = call, .layers = ref_dim(call, 0, 0), .tokens = ref_dim(call, 0, 1), .flow = call->scratch};
    const int64_t size = n.layers * n.tokens * n.tokens;
    n.left = n.flow + size;
    n.from = (int64_t *)(n.left + n.tokens);
    n.queue = n.from + (n.layers + 1) * n.tokens;
    ref_range share = ref_share(call, ref_count(call, 0) / size);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        n.first = sample * size;
        for (n.target = 0; n.target < n.tokens; n.target++)
            ref_out(call, 0, sample * n.tokens + n.target, is_finite(&n) ? flow_to(&n) : NAN);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention_flow = {
    .op = "attention_flow", .name = "ref", .prepare = prepare_flow, .run = run_flow};
