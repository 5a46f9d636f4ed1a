#include "passes/segment.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "passes/reorder.h"

/* A value of so few bytes is kept rather than made again, by whatever needs it. */
enum { SMALL_BYTES = 2048 };

/* What is made again rather than kept, for each byte of it: operations at most, all that has to be made again before it
 * counted; bytes that are read from what is kept at most. */
typedef struct bounds {
    double flops, read;
} bounds;
/* A product is made again only where it widens what it multiplies, its first input. */
static const double MULTIPLIED = 0.5;

/* The first that keeps KEPT_BYTES of a sample at most, or the last. First, what costs no time: as many operations as a
 * core computes while its share of the memory's bandwidth writes and reads a byte; no more bytes read than made (small
 * vectors aside), or values along a trunk would be made again from its beginning. Then products that widen, but where
 * they have many inputs or what they read has to be made again, as behind the stem of a ResNet: they are made again
 * three times and more, by each that reads them. Then a trunk, too, from what was kept two blocks before. Then every
 * product that widens. */
static const bounds steps[] = {{40, 1.0625}, {160, 1.0625}, {160, 1.5}, {INFINITY, 1.5}};
enum { STEPS = sizeof steps / sizeof *steps, KEPT_BYTES = 24 << 20 };

bool att_node_reduces(const att_graph *graph, const att_node *node)
{
    return graph->values.items[node->out[0]].desc.kind == ATT_BATCH;
}

int att_graph_segments(const att_graph *graph)
{
    int last = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        last = graph->nodes.items[i].segment > last ? graph->nodes.items[i].segment : last;
    return last + 1;
}

/* The first segment in which input `value` of a node can be read; a reduction reads those of its own segment. */
static int ready(const att_graph *graph, att_value value, bool reduces)
{
    const att_value_info *info = value == ATT_NONE ? NULL : &graph->values.items[value];
    if (!info || info->node < 0)
        return 0;
    return graph->nodes.items[info->node].segment + (info->desc.kind == ATT_BATCH && !reduces);
}

void att_graph_cut(att_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        att_node *node = &graph->nodes.items[i];
        bool reduces = att_node_reduces(graph, node);
        node->segment = 0;
        for (int j = 0; j < node->in_count; j++) {
            int segment = ready(graph, node->in[j], reduces);
            node->segment = segment > node->segment ? segment : node->segment;
        }
    }
}

/* --- making again ------------------------------------------------------------------------------------------------ */

/* What becomes of a value after its segment. LOCAL: no later segment reads it, or that is not decided yet; KEPT for the
 * batch; REMADE by each later segment that reads it; WATCHED: kept for watchers only, others make it again, as they
 * would without them. */
typedef enum verdict { LOCAL, KEPT, REMADE, WATCHED } verdict;

/* By value of the graph as it was. twin: the copy in segment twin_of, where that is the segment being written. */
typedef struct remaking {
    att_graph *graph;
    const bool *watchers;
    int node_count;
    bounds bounds;
    verdict *verdicts;
    att_value *twin;
    int *twin_of;
    att_order order;
} remaking;

static double bytes_of(const remaking *r, att_value value)
{
    const att_desc *desc = &r->graph->values.items[value].desc;
    return (double)att_shape_count(desc->shape) * (double)att_dtype_size(desc->dtype);
}

static bool is_sample(const remaking *r, att_value value)
{
    return value != ATT_NONE && r->graph->values.items[value].desc.kind == ATT_SAMPLE;
}

/* What making a value again takes: bytes of kept values that are read, negative where one would be needed that is not
 * kept; operations. */
typedef struct effort {
    double read, flops;
} effort;

static effort effort_of(const remaking *r, att_value value);

static effort effort_for(const remaking *r, const att_node *node)
{
    effort sum = {.flops = att_node_cost(r->graph, node).flops};
    for (int j = 0; j < node->in_count; j++) {
        if (!is_sample(r, node->in[j]))
            continue;
        effort e = effort_of(r, node->in[j]);
        if (e.read < 0)
            return e;
        sum.read += e.read;
        sum.flops += e.flops;
    }
    return sum;
}

static bool is_cheap(const remaking *r, const att_node *node, att_value value, effort e)
{
    double bytes = bytes_of(r, value);
    bool product = att_node_cost(r->graph, node).macs > 0;
    bool narrows = product && effort_of(r, node->in[0]).read > MULTIPLIED * bytes;
    return !narrows && e.flops <= r->bounds.flops * bytes && e.read <= r->bounds.read * bytes;
}

static effort effort_of(const remaking *r, att_value value)
{
    const att_node *node = att_graph_maker(r->graph, value);
    if (!node || r->verdicts[value] == KEPT)
        return (effort){.read = bytes_of(r, value)};
    effort e = effort_for(r, node);
    return e.read >= 0 && is_cheap(r, node, value, e) ? e : (effort){.read = -1};
}

/* Whether a later segment reads the value; `reduced`: a reduction does, whatever the segment. */
typedef struct crossing {
    bool later, watched, reduced;
} crossing;

static void find_crossings(const remaking *r, crossing *crossings)
{
    for (int i = 0; i < r->node_count; i++) {
        const att_node *node = &r->graph->nodes.items[i];
        bool reduces = att_node_reduces(r->graph, node);
        for (int j = 0; j < node->in_count; j++) {
            const att_node *from = att_graph_maker(r->graph, node->in[j]);
            if (!from || !is_sample(r, node->in[j]))
                continue;
            crossing *c = &crossings[node->in[j]];
            c->reduced |= reduces;
            if (from->segment < node->segment)
                *(r->watchers[i] ? &c->watched : &c->later) = true;
        }
    }
}

/* Kept whoever reads it, so that what is made again may. */
static bool is_small(const remaking *r, att_value value)
{
    return is_sample(r, value) && bytes_of(r, value) <= SMALL_BYTES;
}

static void decide(remaking *r, const crossing *crossings)
{
    memset(r->verdicts, 0, (size_t)r->graph->values.count * sizeof *r->verdicts);
    for (int i = 0; i < r->graph->outputs.count; i++)
        r->verdicts[r->graph->outputs.items[i].value] = KEPT; /* outputs have a row for every sample */
    for (int i = 0; i < r->node_count; i++)
        for (int j = 0; j < r->graph->nodes.items[i].out_count; j++) {
            att_value value = r->graph->nodes.items[i].out[j];
            crossing c = crossings[value];
            if (c.reduced || is_small(r, value))
                r->verdicts[value] = KEPT;
            else if (c.later && r->verdicts[value] != KEPT)
                r->verdicts[value] = effort_of(r, value).read < 0 ? KEPT : REMADE;
        }
    for (att_value value = 0; value < r->graph->values.count; value++)
        if (r->verdicts[value] == LOCAL && crossings[value].watched)
            r->verdicts[value] = WATCHED;
}

/* last[value]: the segment that needs it last, to be read or to make again what that reads. */
static void find_last(const remaking *r, int *last)
{
    memset(last, 0, (size_t)r->graph->values.count * sizeof *last);
    for (int i = r->node_count - 1; i >= 0; i--) {
        const att_node *node = &r->graph->nodes.items[i];
        int until = node->segment;
        for (int j = 0; j < node->out_count; j++)
            if (r->verdicts[node->out[j]] != KEPT && is_sample(r, node->out[j]) && last[node->out[j]] > until)
                until = last[node->out[j]];
        for (int j = 0; j < node->in_count && !r->watchers[i]; j++)
            if (node->in[j] != ATT_NONE && last[node->in[j]] < until)
                last[node->in[j]] = until;
    }
}

/* The most that is kept of a sample at a time, but for watchers and callers; `last` and `change` have room for all
 * values and all segments. */
static double most_kept(const remaking *r, int *last, double *change)
{
    int segments = att_graph_segments(r->graph);
    double kept = 0, most = 0;
    find_last(r, last);
    memset(change, 0, (size_t)(segments + 1) * sizeof *change);
    for (att_value value = 0; value < r->graph->values.count; value++) {
        const att_node *node = att_graph_maker(r->graph, value);
        if (!node || !is_sample(r, value) || r->verdicts[value] != KEPT || last[value] < node->segment)
            continue;
        change[node->segment] += bytes_of(r, value);
        change[last[value] + 1] -= bytes_of(r, value);
    }
    for (int i = 0; i < segments; i++) {
        kept += change[i];
        most = kept > most ? kept : most;
    }
    return most;
}

static att_value available(remaking *r, att_value value, int segment, bool watcher);

/* Shapes and types are those of the original, which may be narrowed: rules are not asked again. */
static void make_twin(remaking *r, att_node node, int segment)
{
    att_node twin = node;
    if (!att_node_own(r->graph, &twin))
        return;
    twin.segment = segment;
    for (int j = 0; j < node.in_count; j++)
        twin.in[j] = available(r, node.in[j], segment, false);
    for (int j = 0; j < node.out_count; j++) {
        twin.out[j] = att_graph_add_value(r->graph, r->graph->values.items[node.out[j]].desc, -1);
        r->twin[node.out[j]] = twin.out[j];
        r->twin_of[node.out[j]] = segment;
    }
    att_order_append(&r->order, twin);
}

/* The value as a node of segment `segment` can read it. */
static att_value available(remaking *r, att_value value, int segment, bool watcher)
{
    const att_node *from = att_graph_maker(r->graph, value);
    if (!from || !is_sample(r, value) || from->segment >= segment || r->verdicts[value] == KEPT ||
        (watcher && r->verdicts[value] == WATCHED))
        return value;
    if (r->twin_of[value] != segment)
        make_twin(r, *from, segment);
    return r->graph->status == ATT_OK ? r->twin[value] : ATT_NONE;
}

/* Watchers come behind all others, so that the others' order, of which copies are a part, does not depend on them;
 * att_graph_settle_probes() puts them where they belong. */
static void rewrite_segment(remaking *r, int segment, bool watchers)
{
    for (int i = 0; i < r->node_count && r->graph->status == ATT_OK; i++) {
        att_node node = r->graph->nodes.items[i];
        if (node.segment != segment || r->watchers[i] != watchers || !att_node_own(r->graph, &node))
            continue;
        for (int j = 0; j < node.in_count; j++)
            node.in[j] = available(r, node.in[j], segment, r->watchers[i]);
        att_order_append(&r->order, node);
    }
}

/* Where memory is used to decide. */
typedef struct deciding {
    crossing *crossings;
    int *last;
    double *change;
} deciding;

static att_status remake(remaking *r, const deciding *d)
{
    att_graph *graph = r->graph;
    find_crossings(r, d->crossings);
    for (int i = 0; i < STEPS; i++) {
        r->bounds = steps[i];
        decide(r, d->crossings);
        if (most_kept(r, d->last, d->change) <= KEPT_BYTES)
            break;
    }
    int segments = att_graph_segments(graph);
    r->order.graph = graph;
    for (int segment = 0; segment < segments; segment++) {
        rewrite_segment(r, segment, false);
        rewrite_segment(r, segment, true);
    }
    graph->segment = 0;
    return att_order_finish(&r->order);
}

att_status att_graph_remake(att_graph *graph, const bool *watchers)
{
    if (att_graph_segments(graph) == 1)
        return ATT_OK;
    att_arena work = {.context = graph->context};
    size_t values = (size_t)graph->values.count;
    remaking r = {.graph = graph, .watchers = watchers, .node_count = graph->nodes.count};
    r.verdicts = att_arena_allocate(&work, values * sizeof *r.verdicts);
    r.twin = att_arena_allocate(&work, values * sizeof *r.twin);
    r.twin_of = att_arena_allocate(&work, values * sizeof *r.twin_of);
    deciding d = {.crossings = att_arena_allocate(&work, values * sizeof *d.crossings),
                  .last = att_arena_allocate(&work, values * sizeof *d.last),
                  .change = att_arena_allocate(&work, (size_t)(att_graph_segments(graph) + 1) * sizeof *d.change)};
    att_status status = r.verdicts && r.twin && r.twin_of && d.crossings && d.last && d.change
                            ? remake(&r, &d)
                            : att_fail_memory(graph->context, values * sizeof *r.twin, "a plan");
    att_arena_free(&work);
    return status;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

static void append_segment(att_order *order, int segment, bool reductions, const bool *watchers, bool *marks)
{
    for (int i = 0; i < order->graph->nodes.count; i++) {
        const att_node *node = &order->graph->nodes.items[i];
        if (node->segment != segment || att_node_reduces(order->graph, node) != reductions)
            continue;
        marks[order->nodes.count] = watchers[i];
        att_order_append(order, *node);
    }
}

att_status att_graph_sort_segments(att_graph *graph, bool *watchers)
{
    int segments = att_graph_segments(graph);
    if (segments == 1)
        return ATT_OK;
    size_t count = (size_t)graph->nodes.count;
    bool *marks = att_allocate(graph->context, count);
    if (!marks)
        return att_fail_memory(graph->context, count, "a plan");
    att_order order = {.graph = graph};
    for (int segment = 0; segment < segments; segment++) {
        append_segment(&order, segment, false, watchers, marks);
        append_segment(&order, segment, true, watchers, marks);
    }
    memcpy(watchers, marks, count);
    att_free(graph->context, marks);
    return att_order_finish(&order);
}
