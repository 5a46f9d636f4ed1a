/* train/history.h - which epochs' checkpoints are kept, as timm's CheckpointSaver ranks them.
 *
 * Entries with a metric come first, best to worst, of equal ones the earlier epoch first; those without follow, newest
 * first. One without a metric never displaces one that has it.
 */
#ifndef ATT_TRAIN_HISTORY_H
#define ATT_TRAIN_HISTORY_H

#include <attscope/context.h>

#include "core/text.h"

enum { ATT_HISTORY_MAX = 1000 };

typedef struct att_kept {
    int epoch;
    double metric; /* NaN: none */
} att_kept;

typedef struct att_history {
    att_context *context;
    bool smaller_is_better;
    int capacity, count;
    att_kept *kept;     /* [capacity] */
    double best_metric; /* NaN: none */
    int best_epoch;     /* -1: none */
    int evicted;        /* epoch that the last addition displaced; -1: none */
} att_history;

/* capacity 1..ATT_HISTORY_MAX. */
att_status att_history_create(att_context *context, int capacity, bool smaller_is_better, att_history *history);
void att_history_free(att_history *history);

/* A finished epoch. Whether its checkpoint is to be kept, and is the best so far, shows in `kept` and best_epoch. */
void att_history_add(att_history *history, int epoch, double metric);
bool att_history_keeps(const att_history *history, int epoch);

/* "4:4054000000000000 2:7ff8000000000000": epochs and the bits of their metrics. */
void att_history_write(const att_history *history, att_text *text);
/* Takes at most the first `capacity` entries. False where the text is none of the above; `history` is then as created.
 */
bool att_history_read(att_history *history, const char *text);

#endif
