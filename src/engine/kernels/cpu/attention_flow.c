/* Dinic's algorithm (1970): flows along shortest paths, all of one length at a time. Vertices as in the reference
 * kernel: level * N + i is token i below layer `level`. Edge e of a vertex leads to token e of the level below for e <
 * N, else to token e - N of the level above. */
#include <math.h>
#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/rollout.h"

#define LEAST 1e-13

typedef struct network {
    int64_t layers, tokens, target;
    double *residual; /* [layers, N above, N below] */
    double *flow;     /* [layers, N below, N above]: the residual of the way back */
    double *left;     /* [N], of the capacities of the last level */
    int64_t *depth;   /* [vertices], steps from the beginning; -1: not on a shortest path */
    int64_t *next;    /* [vertices], the next edge to try */
    int64_t *queue;   /* [vertices], also the path */
} network;

static bool has_edge(const network *n, int64_t level, int64_t edge)
{
    return edge < n->tokens ? level > 0 : level < n->layers;
}

static int64_t end_of(const network *n, int64_t level, int64_t edge)
{
    return edge < n->tokens ? (level - 1) * n->tokens + edge : (level + 1) * n->tokens + edge - n->tokens;
}

/* The residual capacity of an edge, and that of its way back. */
static double *capacity(const network *n, int64_t vertex, int64_t edge)
{
    const int64_t size = n->tokens, level = vertex / size, i = vertex % size;
    return edge < size ? n->residual + ((level - 1) * size + i) * size + edge
                       : n->flow + (level * size + i) * size + edge - size;
}

static double *way_back(const network *n, int64_t vertex, int64_t edge)
{
    const int64_t size = n->tokens, level = vertex / size, i = vertex % size;
    return edge < size ? n->flow + ((level - 1) * size + edge) * size + i
                       : n->residual + (level * size + edge - size) * size + i;
}

/* Finds the depth of every vertex up to that of the target. Returns whether the target can be reached. */
static bool find_depths(const network *n)
{
    const int64_t size = n->tokens, vertices = (n->layers + 1) * size;
    int64_t end = 0;
    for (int64_t v = 0; v < vertices; v++)
        n->depth[v] = -1, n->next[v] = 0;
    for (int64_t i = 0; i < size; i++)
        if (n->left[i] > LEAST) {
            n->queue[end++] = n->layers * size + i;
            n->depth[n->layers * size + i] = 0;
        }
    for (int64_t at = 0; at < end && n->depth[n->target] < 0; at++) {
        const int64_t vertex = n->queue[at], level = vertex / size;
        for (int64_t e = level > 0 ? 0 : size; e < (level < n->layers ? 2 : 1) * size; e++) {
            const int64_t to = end_of(n, level, e);
            if (n->depth[to] < 0 && *capacity(n, vertex, e) > LEAST) {
                n->depth[to] = n->depth[vertex] + 1;
                n->queue[end++] = to;
            }
        }
    }
    return n->depth[n->target] >= 0;
}

/* Moves n->next[vertex] to an edge that leads on, and returns its end; -1: there is none. */
static int64_t advance(const network *n, int64_t vertex)
{
    const int64_t level = vertex / n->tokens;
    for (; n->next[vertex] < 2 * n->tokens; n->next[vertex]++) {
        const int64_t e = n->next[vertex];
        if (!has_edge(n, level, e))
            continue;
        const int64_t to = end_of(n, level, e);
        if (n->depth[to] == n->depth[vertex] + 1 && *capacity(n, vertex, e) > LEAST)
            return to;
    }
    return -1;
}

/* Sends as much as possible along a path of `steps` edges. Returns the first vertex whose edge is then full. */
static int64_t send(const network *n, const int64_t *path, int64_t steps, double *sum)
{
    double *left = &n->left[path[0] % n->tokens], amount = *left;
    int64_t full = 0;
    for (int64_t s = 0; s < steps; s++)
        amount = fmin(amount, *capacity(n, path[s], n->next[path[s]]));
    *left -= amount;
    *sum += amount;
    for (int64_t s = steps - 1; s >= 0; s--) {
        *capacity(n, path[s], n->next[path[s]]) -= amount;
        *way_back(n, path[s], n->next[path[s]]) += amount;
        full = *capacity(n, path[s], n->next[path[s]]) > LEAST ? full : s;
    }
    return full;
}

/* Sends flow from one vertex of the last level along all shortest paths that are left. */
static double block_paths(const network *n, int64_t begin)
{
    int64_t *path = n->queue, steps = 0;
    double sum = 0;
    path[0] = begin;
    while (n->left[begin % n->tokens] > LEAST) {
        if (path[steps] == n->target) {
            steps = send(n, path, steps, &sum);
            continue;
        }
        int64_t to = advance(n, path[steps]);
        if (to >= 0) {
            path[++steps] = to;
        } else {
            n->depth[path[steps]] = -1;
            if (steps-- == 0)
                break;
        }
    }
    return sum;
}

static void begin_flow(const network *n, const att_rollout_attrs *attrs, const float *maps)
{
    const int64_t size = n->tokens;
    for (int64_t e = 0; e < n->layers * size * size; e++)
        n->residual[e] = fmax(0, att_rollout_weight((double)maps[e], e / size % size, e % size));
    memset(n->flow, 0, (size_t)(n->layers * size * size) * sizeof *n->flow);
    for (int64_t i = 0; i < size; i++)
        n->left[i] = att_rollout_start(attrs, i, size);
}

static double flow_to(const network *n, const att_rollout_attrs *attrs, const float *maps)
{
    double sum = 0;
    begin_flow(n, attrs, maps);
    while (find_depths(n))
        for (int64_t i = n->layers * n->tokens; i < (n->layers + 1) * n->tokens; i++)
            sum += n->depth[i] == 0 ? block_paths(n, i) : 0;
    return sum;
}

static bool is_finite(const float *maps, int64_t count)
{
    for (int64_t e = 0; e < count; e++)
        if (!isfinite(maps[e]))
            return false;
    return true;
}

static att_status flow_prepare(const att_problem *problem, att_prepared *prepared)
{
    const int64_t layers = problem->in[0].shape.dims[0], tokens = problem->in[0].shape.dims[1];
    prepared->scratch_bytes = (size_t)(2 * layers * tokens * tokens + tokens) * sizeof(double) +
                              3 * (size_t)((layers + 1) * tokens) * sizeof(int64_t);
    return ATT_OK;
}

static network network_of(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims, size = dims[0] * dims[1] * dims[1];
    const int64_t vertices = (dims[0] + 1) * dims[1];
    network n = {.layers = dims[0], .tokens = dims[1], .residual = call->scratch};
    n.flow = n.residual + size;
    n.left = n.flow + size;
    n.depth = (int64_t *)(n.left + n.tokens);
    n.next = n.depth + vertices;
    n.queue = n.next + vertices;
    return n;
}

/* Parts share the tokens of all samples. */
static att_status flow_run(const att_call *call)
{
    network n = network_of(call);
    const int64_t size = n.layers * n.tokens * n.tokens;
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]) / size * n.tokens, 1);
    for (int64_t at = part.begin; at < part.end; at++) {
        const float *maps = (const float *)call->in[0] + at / n.tokens * size;
        n.target = at % n.tokens;
        ((float *)call->out[0])[at] =
            is_finite(maps, size) ? (float)flow_to(&n, call->problem->attrs, maps) : (float)NAN;
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(attention_flow, .prepare = flow_prepare, .run = flow_run);
