/* bench/timed.h - runs a graph on random inputs for timing. */
#ifndef ATT_BENCH_TIMED_H
#define ATT_BENCH_TIMED_H

#include <attscope/task.h>
#include <attscope/update.h>

typedef struct att_timed {
    att_context *context;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient; /* NULL for inference */
    att_update *update;     /* NULL without an optimiser */
    void **inputs;          /* one per input of the graph */
    int input_count;
    bool training;
    int64_t step;
    double compile_seconds; /* of the plan and its session, without weights */
} att_timed;

typedef struct att_timed_options {
    att_plan_options plan;
    const char *optimizer;            /* for training plans; NULL computes gradients only */
    const att_parameter_rates *rates; /* of the optimiser; NULL: those of the declarations */
    const char *without;              /* the algebraic rewriting that the plan leaves out; NULL: none */
    const att_task *task;             /* whose inputs the graph has; NULL: of no task */
    int batch, classes, vocabulary;   /* see att_bench_fill() */
} att_timed_options;

/* Compiles the graph, with initial weights and inputs for this process's share of `batch` samples. The graph may be
 * freed afterwards. The caller calls att_timed_destroy(), also after a failure. Errors: ERR_MEMORY, those of creating
 * weights, plan and session. */
att_status att_timed_create(const att_graph *graph, const att_timed_options *options, att_timed *timed);
void att_timed_destroy(att_timed *timed);

/* Runs `batch` samples. In training: forward, backward and, with an optimiser, its update. */
att_status att_timed_run(att_timed *timed, int batch);

#endif
