/* passes/keep.h - chooses which values are kept between segments, and which are recomputed.
 *
 * A value crosses segments if a segment after its producer's segment reads it. Keeping the value takes memory for every
 * sample of the batch, from its producer's segment to the last segment that reads it. It also takes time: one write to
 * main memory, and one read in each segment that reads the value. Recomputing the value takes, in each such segment,
 * the time of its producer and of the producers of those inputs that are not kept.
 *
 * The choice is a knapsack problem, solved greedily. At first all values are kept. Each step changes the value that
 * costs the fewest seconds per byte saved from kept to recomputed, and estimates all other costs anew. The steps end
 * when the kept values fit into the memory or, by default, when every kept value is worth its memory.
 */
#ifndef ATT_PASSES_KEEP_H
#define ATT_PASSES_KEEP_H

#include "engine/passes/segment.h"

typedef enum att_retention {
    ATT_RETAIN_SEGMENT,   /* no later segment reads the value directly; recomputed nodes or observers may */
    ATT_RETAIN_KEPT,      /* for the whole batch */
    ATT_RETAIN_RECOMPUTED /* recomputed by each later segment that reads the value */
} att_retention;

/* Writes the retention of each sample value to retention[value]. Values of other kinds are available in every segment;
 * their retention is SEGMENT. observers[node]: the node is an observer, whose reads do not count. */
att_status att_graph_choose_kept(const att_graph *graph, const bool *observers, const att_keep_options *options,
                                 att_retention *retention);

#endif
