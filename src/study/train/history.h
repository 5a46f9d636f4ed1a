/* train/history.h - decides which checkpoints are kept, ranked as by timm's CheckpointSaver. A checkpoint has a number,
 * that of its name "checkpoint-N": its epoch, or the updates done if evaluations are counted in updates.
 *
 * Entries with a metric come first, from best to worst; equal ones are ordered by number, smaller first. Entries
 * without a metric follow, newest first. An entry without a metric never displaces one that has a metric. */
#ifndef ATT_TRAIN_HISTORY_H
#define ATT_TRAIN_HISTORY_H

#include <attscope/context.h>

#include "base/core/text.h"

enum { ATT_HISTORY_MAX = 1000 };

typedef struct att_kept {
    int64_t number;
    double metric; /* NaN: none */
} att_kept;

typedef struct att_history {
    att_context *context;
    bool smaller_is_better;
    int capacity, count;
    att_kept *kept;     /* [capacity], sorted, `count` are used */
    double best_metric; /* NaN: none */
    int64_t best;       /* number of the best one; -1: none */
    int64_t evicted;    /* number displaced by the last att_history_add(); -1: none */
} att_history;

/* capacity 1..ATT_HISTORY_MAX. */
att_status att_history_create(att_context *context, int capacity, bool smaller_is_better, att_history *history);
void att_history_free(att_history *history);

/* Adds a checkpoint. Afterwards att_history_keeps() tells whether to keep it, and `best` whether it is the best so far.
 */
void att_history_add(att_history *history, int64_t number, double metric);
bool att_history_keeps(const att_history *history, int64_t number);

/* Appends the entries as text, with the metrics as 64-bit patterns: "4:4054000000000000 2:7ff8000000000000". */
void att_history_write(const att_history *history, att_text *text);
/* Reads at most `capacity` entries from such text. Returns false if the text is invalid; `history` is then empty. */
bool att_history_read(att_history *history, const char *text);

#endif
