/* bench/timed.h - a graph on random inputs, ready to be run and timed. */
#ifndef ATT_BENCH_TIMED_H
#define ATT_BENCH_TIMED_H

#include <attscope/update.h>

typedef struct att_timed {
    att_context *context;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient; /* training */
    att_update *update;     /* NULL: gradients only */
    void **inputs;          /* one for each of the graph's */
    int input_count;
    bool training;
    int64_t step;
} att_timed;

/* Weights at their start; inputs for `batch` samples: uniform in [-1, 1), whole numbers in [0, classes). The graph may
 * be freed after. optimizer: of training plans; NULL: gradients only. Whatever comes back, *timed is to be freed by
 * att_timed_destroy(). Errors: ERR_MEMORY and what making weights, plan and session gives. */
att_status att_timed_create(const att_graph *graph, const att_plan_options *options, const char *optimizer, int batch,
                            int classes, att_timed *timed);
void att_timed_destroy(att_timed *timed);

/* One run of `batch` samples; in training forward, backward and, where there is an optimiser, its update. */
att_status att_timed_run(att_timed *timed, int batch);

#endif
