#include "passes/keep.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "passes/seconds.h"
#include "passes/segment.h"

/* SMALL_BYTES: values of at most this size are always kept. ALIGN: alignment of every row. WORD: bits of a word. */
enum { SMALL_BYTES = 2048, ALIGN = 64, WORD = 64 };

/* Default rule: a value is recomputed if that takes at most this many seconds per byte saved, about the time of writing
 * and reading one byte. ResNet-50 then recomputes no matrix product and takes 0.58 of PyTorch's memory. */
static const double WORTH = 0.2e-9;

/* A value, and a segment that needs it. */
typedef struct need {
    att_value value;
    int segment;
} need;

typedef struct choice {
    const att_graph *graph;
    double most_bytes; /* memory budget per sample; 0: the default rule */
    int segments, words;
    double *seconds; /* time of each node */
    /* By value. needed: one bit for each later segment that reads the value, in `words` words. last: the last segment
     * that reads the value, -1 if none does. fixed: the value is kept regardless of cost. */
    att_fate *fates;
    bool *fixed, *reduced;
    uint64_t *needed;
    int *last;
    ATT_LIST(need) news; /* entries that the current trial added to `needed` */
    double *live;        /* bytes kept, by segment */
    int peak;            /* the segment that keeps most bytes */
    double once, again;  /* seconds of all nodes, each run once, and of all recomputations */
    bool failed;         /* memory is exhausted */
} choice;

static double bytes_of(const choice *c, att_value value)
{
    const att_desc *desc = &c->graph->values.items[value].desc;
    int64_t bytes = att_shape_count(desc->shape) * (int64_t)att_dtype_size(desc->dtype);
    return (double)((bytes + ALIGN - 1) / ALIGN * ALIGN);
}

static bool is_sample(const choice *c, att_value value)
{
    return value != ATT_NONE && c->graph->values.items[value].desc.kind == ATT_SAMPLE;
}

/* --- which segments need a value ---------------------------------------------------------------------------------- */

static uint64_t *word_of(const choice *c, att_value value, int segment)
{
    return &c->needed[(size_t)value * (size_t)c->words + (size_t)(segment / WORD)];
}

static bool is_needed(const choice *c, att_value value, int segment)
{
    return *word_of(c, value, segment) >> (segment % WORD) & 1;
}

static void set_needed(choice *c, att_value value, int segment, bool needed)
{
    uint64_t bit = (uint64_t)1 << (segment % WORD), *word = word_of(c, value, segment);
    *word = needed ? *word | bit : *word & ~bit;
}

static int last_needed(const choice *c, att_value value)
{
    for (int i = c->words - 1; i >= 0; i--)
        for (int bit = WORD - 1; *word_of(c, value, i * WORD) && bit >= 0; bit--)
            if (is_needed(c, value, i * WORD + bit))
                return i * WORD + bit;
    return -1;
}

/* Whether the segment recomputes the node anyway, for an output other than `value`. */
static bool has_copy(const choice *c, const att_node *node, att_value value, int segment)
{
    for (int j = 0; j < node->out_count; j++)
        if (node->out[j] != value && c->fates[node->out[j]] != ATT_FATE_KEPT && is_needed(c, node->out[j], segment))
            return true;
    return false;
}

static double seconds_of_need(choice *c, att_value value, int segment);

/* Seconds that the segment takes to recompute the node and the inputs that it lacks. */
static double seconds_of_copy(choice *c, const att_node *node, int segment)
{
    double sum = c->seconds[node - c->graph->nodes.items];
    for (int j = 0; j < node->in_count; j++)
        if (is_sample(c, node->in[j]))
            sum += seconds_of_need(c, node->in[j], segment);
    return sum;
}

/* Seconds that the segment takes to read or recompute the value; 0 if it has the value already. Records new needs in
 * `needed` and `news`. */
static double seconds_of_need(choice *c, att_value value, int segment)
{
    const att_node *node = att_graph_maker(c->graph, value);
    if (!node || node->segment >= segment || is_needed(c, value, segment))
        return 0;
    if (!att_list_grow(c->graph->context, (void *)&c->news.items, c->news.count, &c->news.capacity,
                       sizeof *c->news.items)) {
        c->failed = true;
        return 0;
    }
    c->news.items[c->news.count++] = (need){value, segment};
    set_needed(c, value, segment, true);
    if (c->fates[value] == ATT_FATE_KEPT)
        return att_memory_seconds(bytes_of(c, value));
    return has_copy(c, node, value, segment) ? 0 : seconds_of_copy(c, node, segment);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool lives_in(const choice *c, att_value value, int last, int segment)
{
    return att_graph_maker(c->graph, value)->segment <= segment && segment <= last;
}

static void find_live(choice *c)
{
    memset(c->live, 0, (size_t)(c->segments + 1) * sizeof *c->live);
    for (att_value value = 0; value < c->graph->values.count; value++) {
        const att_node *node = att_graph_maker(c->graph, value);
        if (!node || c->fates[value] != ATT_FATE_KEPT)
            continue;
        int last = last_needed(c, value);
        c->last[value] = last < 0 && c->reduced[value] ? node->segment : last;
        if (c->last[value] < 0)
            continue;
        c->live[node->segment] += bytes_of(c, value);
        c->live[c->last[value] + 1] -= bytes_of(c, value);
    }
    c->peak = 0;
    for (int i = 1; i < c->segments; i++) {
        c->live[i] += c->live[i - 1];
        c->peak = c->live[i] > c->live[c->peak] ? i : c->peak;
    }
}

/* Bytes saved in the peak segment if `value` is not kept, less the bytes of kept values that must live longer because
 * of the needs in `news`. */
static double bytes_freed(choice *c, att_value value)
{
    double freed = lives_in(c, value, c->last[value], c->peak) ? bytes_of(c, value) : 0;
    for (int i = 0; i < c->news.count; i++) {
        need n = c->news.items[i];
        if (c->fates[n.value] != ATT_FATE_KEPT || lives_in(c, n.value, c->last[n.value], c->peak) ||
            !lives_in(c, n.value, n.segment, c->peak))
            continue;
        freed -= bytes_of(c, n.value);
        c->last[n.value] = n.segment; /* so that the value counts once; find_live() or take_back() restores it */
    }
    return freed;
}

/* --- trying and choosing ------------------------------------------------------------------------------------------ */

/* The effect of recomputing a value: additional seconds per sample, and bytes saved. */
typedef struct offer {
    att_value value;
    double seconds, freed;
} offer;

static offer accept(choice *c, att_value value)
{
    const att_node *node = att_graph_maker(c->graph, value);
    double moving = att_memory_seconds(bytes_of(c, value));
    offer o = {.value = value, .seconds = -moving}; /* saves writing it */
    c->news.count = 0;
    c->fates[value] = ATT_FATE_COMPUTED;
    for (int segment = node->segment + 1; segment <= c->last[value]; segment++) {
        if (!is_needed(c, value, segment))
            continue;
        o.seconds -= moving;
        if (!has_copy(c, node, value, segment))
            o.seconds += seconds_of_copy(c, node, segment);
    }
    o.freed = bytes_freed(c, value);
    return o;
}

static void take_back(choice *c, att_value value)
{
    c->fates[value] = ATT_FATE_KEPT;
    for (int i = 0; i < c->news.count; i++)
        set_needed(c, c->news.items[i].value, c->news.items[i].segment, false);
    for (int i = 0; i < c->news.count; i++) {
        att_value other = c->news.items[i].value;
        int last = last_needed(c, other);
        c->last[other] = last < 0 && c->reduced[other] ? att_graph_maker(c->graph, other)->segment : last;
    }
}

/* Seconds per byte saved. -1 if recomputing costs neither time nor memory, INFINITY if it saves no memory. */
static double price(offer o)
{
    if (o.seconds <= 0 && o.freed >= 0)
        return -1;
    return o.freed > 0 ? o.seconds / o.freed : INFINITY;
}

static offer cheapest(choice *c)
{
    offer best = {.value = ATT_NONE};
    for (att_value value = 0; value < c->graph->values.count; value++) {
        if (c->fates[value] != ATT_FATE_KEPT || c->fixed[value] || c->last[value] < 0)
            continue;
        offer o = accept(c, value);
        take_back(c, value);
        if (isfinite(price(o)) && (best.value == ATT_NONE || price(o) < price(best)))
            best = o;
    }
    return best;
}

/* Recomputing never takes more time than the nodes themselves, whatever the budget. */
static bool is_wanted(const choice *c, offer o)
{
    if (o.value == ATT_NONE || c->failed)
        return false;
    if (price(o) < 0)
        return true;
    if (c->again + o.seconds > c->once)
        return false;
    return c->most_bytes > 0 ? c->live[c->peak] > c->most_bytes : price(o) <= WORTH;
}

static void choose(choice *c)
{
    find_live(c);
    for (offer o = cheapest(c); is_wanted(c, o); o = cheapest(c)) {
        double most = c->live[c->peak];
        accept(c, o.value);
        c->again += o.seconds;
        find_live(c);
        if (c->live[c->peak] <= most)
            continue;
        c->again -= o.seconds; /* Undo: the inputs of the recomputation must be kept longer and raise the peak of
                                  another segment. */
        c->fixed[o.value] = true;
        take_back(c, o.value);
        find_live(c);
    }
}

/* --- where it begins ---------------------------------------------------------------------------------------------- */

static void keep_fixed(choice *c, att_value value)
{
    c->fates[value] = ATT_FATE_KEPT;
    c->fixed[value] = true;
}

static void read_node(choice *c, const att_node *node)
{
    bool reduces = att_node_reduces(c->graph, node);
    for (int j = 0; j < node->in_count; j++) {
        att_value value = node->in[j];
        const att_node *from = att_graph_maker(c->graph, value);
        if (!from || !is_sample(c, value))
            continue;
        if (reduces) {
            keep_fixed(c, value);
            c->reduced[value] = true;
        }
        if (from->segment < node->segment) {
            c->fates[value] = ATT_FATE_KEPT;
            set_needed(c, value, node->segment, true);
        }
    }
}

/* Initial state: every value that crosses segments is kept. */
static void begin(choice *c, const bool *observers)
{
    memset(c->fates, 0, (size_t)c->graph->values.count * sizeof *c->fates);
    for (att_value value = 0; value < c->graph->values.count; value++)
        if (is_sample(c, value) && bytes_of(c, value) <= SMALL_BYTES)
            keep_fixed(c, value);
    for (int i = 0; i < c->graph->outputs.count; i++)
        keep_fixed(c, c->graph->outputs.items[i].value); /* outputs have a row for every sample */
    for (int i = 0; i < c->graph->nodes.count; i++) {
        c->seconds[i] = att_node_seconds(c->graph, &c->graph->nodes.items[i]);
        if (observers[i])
            continue;
        c->once += c->seconds[i];
        read_node(c, &c->graph->nodes.items[i]);
    }
}

att_status att_graph_choose_fates(const att_graph *graph, const bool *observers, size_t most_bytes, att_fate *fates)
{
    att_arena work = {.context = graph->context};
    size_t values = (size_t)graph->values.count, nodes = (size_t)graph->nodes.count;
    int segments = att_graph_segments(graph), words = (segments + WORD - 1) / WORD;
    choice c = {.graph = graph,
                .most_bytes = (double)most_bytes,
                .segments = segments,
                .words = words,
                .fates = fates,
                .seconds = att_arena_allocate(&work, nodes * sizeof *c.seconds),
                .fixed = att_arena_allocate(&work, values * sizeof *c.fixed),
                .reduced = att_arena_allocate(&work, values * sizeof *c.reduced),
                .needed = att_arena_allocate(&work, values * (size_t)words * sizeof *c.needed),
                .last = att_arena_allocate(&work, values * sizeof *c.last),
                .live = att_arena_allocate(&work, (size_t)(segments + 1) * sizeof *c.live)};
    c.failed = !c.seconds || !c.fixed || !c.reduced || !c.needed || !c.last || !c.live;
    if (!c.failed) {
        begin(&c, observers);
        choose(&c);
    }
    att_free(graph->context, c.news.items);
    att_arena_free(&work);
    return c.failed ? att_fail_memory(graph->context, values * (size_t)words * sizeof *c.needed, "a plan") : ATT_OK;
}
