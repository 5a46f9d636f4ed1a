/* advise/advice.h - the state of an advice. */
#ifndef ATT_ADVISE_ADVICE_H
#define ATT_ADVISE_ADVICE_H

#include <attscope/lab/advise.h>
#include <attscope/lab/runs.h>
#include <attscope/network.h>

#include "base/core/memory.h"

typedef struct att_advice_block {
    att_advised shown;
    const char *scope; /* of the block: "layer1.0", "blocks.3" */
    const char *step;  /* name of the residual addition that the module changes; NULL: there is none */
} att_advice_block;

struct att_advice {
    att_context *context;
    att_advise_options options;
    att_arena texts;
    const char *module, *place; /* "se:start=identity", "after_branch" */
    const char *base;           /* option "modules" of the checkpoint */
    const char *instrument, *statistic, *unit;
    const char *experiment;
    bool batch_norm; /* the network has batch norm */
    att_advice_block *blocks;
    int count, tested;
    att_sweep_plan *plan;
    const att_metric *metric; /* NULL: not judged */
    double score, score_deviation;
    att_correlation correlation;
};

/* Formats into the arena. Returns NULL if memory is exhausted. */
const char *att_advice_text(att_advice *advice, const char *format, ...) ATT_PRINTF(2, 3);

/* module.c: reads options.module: completes it to start as the identity, and finds its place. */
att_status att_advice_read_module(att_advice *advice, const att_network *network);
/* Refuses a module if the first candidate answers otherwise than the network without it. Call it after
 * att_advice_list_blocks(). */
att_status att_advice_check_start(const att_advice *advice, att_network *network);

/* blocks.c: lists the blocks, with the names of their residual additions; those that the module can be put into have
 * their `modules`. */
att_status att_advice_list_blocks(att_advice *advice, const att_network *network);
/* Measures their figures, leaves out blocks without one, and sorts them. */
att_status att_advice_rank(att_advice *advice, att_network *network);

/* plan.c: opens the sweep of the first `tested` blocks. */
att_status att_advice_open_plan(att_advice *advice);

#endif
