/* passes/keep.h - chooses which values are kept between segments, and which are computed again.
 *
 * A value crosses segments where a later segment than that of its maker reads it. Keeping it takes memory for every
 * sample of the batch, from its maker's segment to the last that reads it; and time, to write it to main memory and to
 * read it in each later segment. Computing it again takes the time of its maker in each of these segments, and of the
 * makers of that node's inputs, as far as those are not kept.
 *
 * The choice is a knapsack problem, solved greedily: it begins with all values kept. Then the value that costs the
 * fewest seconds for each byte that it frees is computed again instead, and the costs of all others are estimated anew,
 * until the values that are left fit into the memory or are worth it.
 */
#ifndef ATT_PASSES_KEEP_H
#define ATT_PASSES_KEEP_H

#include "graph/graph.h"

typedef enum att_fate {
    ATT_FATE_LOCAL,   /* no later segment reads the value but to compute others again, or observers alone do */
    ATT_FATE_KEPT,    /* for the batch */
    ATT_FATE_COMPUTED /* again, by each later segment that reads it */
} att_fate;

/* Writes the fate of each sample value to fates[value]; other values, which are there in every segment, are LOCAL.
 * most_bytes: as att_plan_options.keep_bytes. observers: a mark a node; what only they read is not counted. */
att_status att_graph_choose_fates(const att_graph *graph, const bool *observers, size_t most_bytes, att_fate *fates);

#endif
