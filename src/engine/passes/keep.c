#include "engine/passes/keep.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "engine/passes/seconds.h"
#include "engine/passes/segment.h"

/* SMALL_BYTES: values of at most this size are always kept. ALIGN: alignment of every row. WORD: bits of a word. */
enum { SMALL_BYTES = 2048, ALIGN = 64, WORD = 64 };

/* Default rule: a value is recomputed if that takes at most this many seconds per byte saved, about the time of writing
 * and reading one byte. ResNet-50 then recomputes no matrix product and takes 0.58 of PyTorch's memory. */
static const double MOST_SECONDS_PER_BYTE = 0.2e-9;
/* Or if the share of the time of all nodes that it adds is at most this many times the share of the memory that it
 * saves. This matters where a head takes most of the time: UPerNet then recomputes linear layers of its ViT (from
 * 0.0463 on). ResNet-50 does not recompute more (until 0.0478). */
static const double MOST_TIME_FOR_MEMORY = 0.047;

/* A value, and a segment that needs it. */
typedef struct need {
    att_value value;
    int segment;
} need;

typedef struct choice {
    const att_graph *graph;
    double most_bytes; /* memory budget per sample; 0: the default rule */
    bool keep_first;   /* what crosses from segment 0 is kept */
    bool by_rate;      /* by the first part of the default rule alone */
    int segments, words;
    double *seconds; /* time of each node */
    /* By value. needed: one bit for each later segment that reads the value, in `words` words. last: the last segment
     * that reads the value, -1 if none does. fixed: the value is kept regardless of cost. reduced: a reduction reads
     * the value. */
    att_retention *retention;
    bool *fixed, *reduced;
    uint64_t *needed;
    int *last;
    ATT_LIST(need) added_needs;                /* entries that the current trial added to `needed` */
    double *live;                              /* bytes kept, by segment */
    int peak;                                  /* the segment that keeps the most bytes */
    double compute_seconds, recompute_seconds; /* seconds of all nodes, each run once, and of all recomputations */
    bool failed;                               /* memory is exhausted */
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
static bool is_recomputed_in(const choice *c, const att_node *node, att_value value, int segment)
{
    for (int j = 0; j < node->out_count; j++)
        if (node->out[j] != value && c->retention[node->out[j]] != ATT_RETAIN_KEPT &&
            is_needed(c, node->out[j], segment))
            return true;
    return false;
}

static double seconds_to_provide(choice *c, att_value value, int segment);

/* Seconds that the segment takes to recompute the node and the inputs that it lacks. */
static double seconds_to_recompute(choice *c, const att_node *node, int segment)
{
    double sum = c->seconds[node - c->graph->nodes.items];
    for (int j = 0; j < node->in_count; j++)
        if (is_sample(c, node->in[j]))
            sum += seconds_to_provide(c, node->in[j], segment);
    return sum;
}

/* Seconds that the segment takes to read or recompute the value; 0 if it has the value already. Records new needs in
 * `needed` and `added_needs`. */
static double seconds_to_provide(choice *c, att_value value, int segment)
{
    const att_node *node = att_graph_producer(c->graph, value);
    if (!node || node->segment >= segment || is_needed(c, value, segment))
        return 0;
    if (!att_list_grow(c->graph->context, (void *)&c->added_needs.items, c->added_needs.count, &c->added_needs.capacity,
                       sizeof *c->added_needs.items)) {
        c->failed = true;
        return 0;
    }
    c->added_needs.items[c->added_needs.count++] = (need){value, segment};
    set_needed(c, value, segment, true);
    if (c->retention[value] == ATT_RETAIN_KEPT)
        return att_memory_seconds(bytes_of(c, value));
    return is_recomputed_in(c, node, value, segment) ? 0 : seconds_to_recompute(c, node, segment);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool lives_in(const choice *c, att_value value, int last, int segment)
{
    return att_graph_producer(c->graph, value)->segment <= segment && segment <= last;
}

static void find_live(choice *c)
{
    memset(c->live, 0, (size_t)(c->segments + 1) * sizeof *c->live);
    for (att_value value = 0; value < c->graph->values.count; value++) {
        const att_node *node = att_graph_producer(c->graph, value);
        if (!node || c->retention[value] != ATT_RETAIN_KEPT)
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
 * of the needs in `added_needs`. */
static double bytes_freed(choice *c, att_value value)
{
    double freed = lives_in(c, value, c->last[value], c->peak) ? bytes_of(c, value) : 0;
    for (int i = 0; i < c->added_needs.count; i++) {
        need entry = c->added_needs.items[i];
        if (c->retention[entry.value] != ATT_RETAIN_KEPT || lives_in(c, entry.value, c->last[entry.value], c->peak) ||
            !lives_in(c, entry.value, entry.segment, c->peak))
            continue;
        freed -= bytes_of(c, entry.value);
        c->last[entry.value] =
            entry.segment; /* so that the value counts once; find_live() or undo_trial() restores `last` */
    }
    return freed;
}

/* --- trying and choosing ------------------------------------------------------------------------------------------ */

/* The effect of recomputing a value: additional seconds per sample, and bytes saved. */
typedef struct candidate {
    att_value value;
    double seconds, freed;
} candidate;

static candidate try_recompute(choice *c, att_value value)
{
    const att_node *node = att_graph_producer(c->graph, value);
    double moving = att_memory_seconds(bytes_of(c, value));
    candidate trial = {.value = value, .seconds = -moving}; /* recomputing saves writing the value */
    c->added_needs.count = 0;
    c->retention[value] = ATT_RETAIN_RECOMPUTED;
    for (int segment = node->segment + 1; segment <= c->last[value]; segment++) {
        if (!is_needed(c, value, segment))
            continue;
        trial.seconds -= moving;
        if (!is_recomputed_in(c, node, value, segment))
            trial.seconds += seconds_to_recompute(c, node, segment);
    }
    trial.freed = bytes_freed(c, value);
    return trial;
}

static void undo_trial(choice *c, att_value value)
{
    c->retention[value] = ATT_RETAIN_KEPT;
    for (int i = 0; i < c->added_needs.count; i++)
        set_needed(c, c->added_needs.items[i].value, c->added_needs.items[i].segment, false);
    for (int i = 0; i < c->added_needs.count; i++) {
        att_value other = c->added_needs.items[i].value;
        int last = last_needed(c, other);
        c->last[other] = last < 0 && c->reduced[other] ? att_graph_producer(c->graph, other)->segment : last;
    }
}

/* Seconds per byte saved. -1 if recomputing costs neither time nor memory, INFINITY if it saves no memory. */
static double seconds_per_byte(candidate trial)
{
    if (trial.seconds <= 0 && trial.freed >= 0)
        return -1;
    return trial.freed > 0 ? trial.seconds / trial.freed : INFINITY;
}

static candidate cheapest(choice *c)
{
    candidate best = {.value = ATT_NONE};
    for (att_value value = 0; value < c->graph->values.count; value++) {
        if (c->retention[value] != ATT_RETAIN_KEPT || c->fixed[value] || c->last[value] < 0)
            continue;
        candidate trial = try_recompute(c, value);
        undo_trial(c, value);
        if (isfinite(seconds_per_byte(trial)) &&
            (best.value == ATT_NONE || seconds_per_byte(trial) < seconds_per_byte(best)))
            best = trial;
    }
    return best;
}

/* Whatever the memory budget, all recomputations together take at most as long as running every node once. */
static bool is_worthwhile(const choice *c, candidate trial)
{
    if (trial.value == ATT_NONE || c->failed)
        return false;
    if (seconds_per_byte(trial) < 0)
        return true;
    if (c->recompute_seconds + trial.seconds > c->compute_seconds)
        return false;
    if (c->most_bytes > 0)
        return c->live[c->peak] > c->most_bytes;
    return seconds_per_byte(trial) <= MOST_SECONDS_PER_BYTE ||
           (!c->by_rate && trial.seconds / c->compute_seconds <= MOST_TIME_FOR_MEMORY * trial.freed / c->live[c->peak]);
}

static void choose(choice *c)
{
    find_live(c);
    for (candidate trial = cheapest(c); is_worthwhile(c, trial); trial = cheapest(c)) {
        double most = c->live[c->peak];
        try_recompute(c, trial.value);
        c->recompute_seconds += trial.seconds;
        find_live(c);
        if (c->live[c->peak] <= most)
            continue;
        /* The peak rose: the inputs of the recomputation live longer and take more in another segment. So keep the
         * value. */
        c->recompute_seconds -= trial.seconds;
        c->fixed[trial.value] = true;
        undo_trial(c, trial.value);
        find_live(c);
    }
}

/* --- initial state ------------------------------------------------------------------------------------------------ */

static void keep_fixed(choice *c, att_value value)
{
    c->retention[value] = ATT_RETAIN_KEPT;
    c->fixed[value] = true;
}

static void read_node(choice *c, const att_node *node)
{
    bool reduces = att_node_reduces(c->graph, node);
    for (int j = 0; j < node->in_count; j++) {
        att_value value = node->in[j];
        const att_node *from = att_graph_producer(c->graph, value);
        if (!from || !is_sample(c, value))
            continue;
        if (reduces) {
            keep_fixed(c, value);
            c->reduced[value] = true;
        }
        if (from->segment < node->segment) {
            c->retention[value] = ATT_RETAIN_KEPT;
            c->fixed[value] = c->fixed[value] || (c->keep_first && from->segment == 0);
            set_needed(c, value, node->segment, true);
        }
    }
}

/* Initial state: every value that crosses segments is kept. */
static void init_choice(choice *c, const bool *observers)
{
    memset(c->retention, 0, (size_t)c->graph->values.count * sizeof *c->retention);
    for (att_value value = 0; value < c->graph->values.count; value++)
        if (is_sample(c, value) && bytes_of(c, value) <= SMALL_BYTES)
            keep_fixed(c, value);
    for (int i = 0; i < c->graph->outputs.count; i++)
        keep_fixed(c, c->graph->outputs.items[i].value); /* outputs have a row for every sample */
    for (int i = 0; i < c->graph->nodes.count; i++) {
        c->seconds[i] = att_node_seconds(c->graph, &c->graph->nodes.items[i]);
        if (observers[i])
            continue;
        c->compute_seconds += c->seconds[i];
        read_node(c, &c->graph->nodes.items[i]);
    }
}

att_status att_graph_choose_kept(const att_graph *graph, const bool *observers, const att_keep_options *options,
                                 att_retention *retention)
{
    att_arena work = {.context = graph->context};
    size_t values = (size_t)graph->values.count, nodes = (size_t)graph->nodes.count;
    int segments = att_graph_segments(graph), words = (segments + WORD - 1) / WORD;
    choice c = {.graph = graph,
                .most_bytes = (double)options->most_bytes,
                .keep_first = options->keep_first,
                .by_rate = options->for_sizes,
                .segments = segments,
                .words = words,
                .retention = retention,
                .seconds = att_arena_allocate(&work, nodes * sizeof *c.seconds),
                .fixed = att_arena_allocate(&work, values * sizeof *c.fixed),
                .reduced = att_arena_allocate(&work, values * sizeof *c.reduced),
                .needed = att_arena_allocate(&work, values * (size_t)words * sizeof *c.needed),
                .last = att_arena_allocate(&work, values * sizeof *c.last),
                .live = att_arena_allocate(&work, (size_t)(segments + 1) * sizeof *c.live)};
    c.failed = !c.seconds || !c.fixed || !c.reduced || !c.needed || !c.last || !c.live;
    if (!c.failed) {
        init_choice(&c, observers);
        choose(&c);
    }
    att_free(graph->context, c.added_needs.items);
    att_arena_free(&work);
    return c.failed ? att_fail_memory(graph->context, values * (size_t)words * sizeof *c.needed, "a plan") : ATT_OK;
}
