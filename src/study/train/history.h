/* train/history.h - decides which epochs' checkpoints are kept, ranked as by timm's CheckpointSaver.
 *
 * Entries with a metric come first, from best to worst; equal ones are ordered by epoch, earlier first. Entries without
 * a metric follow, newest first. An entry without a metric never displaces one that has a metric. */
#ifndef ATT_TRAIN_HISTORY_H
#define ATT_TRAIN_HISTORY_H

#include <attscope/context.h>

#include "base/core/text.h"

enum { ATT_HISTORY_MAX = 1000 };

typedef struct att_kept {
    int epoch;
    double metric; /* NaN: none */
} att_kept;

typedef struct att_history {
    att_context *context;
    bool smaller_is_better;
    int capacity, count;
    att_kept *kept;     /* [capacity], sorted, `count` are used */
    double best_metric; /* NaN: none */
    int best_epoch;     /* -1: none */
    int evicted;        /* epoch displaced by the last att_history_add(); -1: none */
} att_history;

/* capacity 1..ATT_HISTORY_MAX. */
att_status att_history_create(att_context *context, int capacity, bool smaller_is_better, att_history *history);
void att_history_free(att_history *history);

/* Adds a finished epoch. Afterwards att_history_keeps() tells whether to keep its checkpoint, and best_epoch whether it
 * is the best so far. */
void att_history_add(att_history *history, int epoch, double metric);
bool att_history_keeps(const att_history *history, int epoch);

/* Appends the entries as text, with the metrics as 64-bit patterns: "4:4054000000000000 2:7ff8000000000000". */
void att_history_write(const att_history *history, att_text *text);
/* Reads at most `capacity` entries from such text. Returns false if the text is invalid; `history` is then empty. */
bool att_history_read(att_history *history, const char *text);

#endif
