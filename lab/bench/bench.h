/* bench/bench.h - a benchmark of a network. */
#ifndef ATT_BENCH_BENCH_H
#define ATT_BENCH_BENCH_H

#include <attscope/lab/bench.h>
#include <attscope/measure.h>

#include "lab/bench/gemm.h"
#include "lab/bench/limits.h"
#include "lab/bench/timed.h"
#include "lab/bench/triad.h"

struct att_bench {
    att_context *context;
    att_bench_options options;
    const char *without; /* the rewriting that the plan leaves out; NULL: none */
    att_model *model;
    const char **outputs;       /* inference: that the plan computes, NULL after the last */
    att_parameter_rates *rates; /* training: by parameter */
    bool *frozen;               /* training: by parameter */
    att_measure *measure;       /* NULL if no instruments are requested */
    att_timed timed;
    att_gemm *gemm;
    att_triad *triad;
    double network_seconds[ATT_BENCH_REPEATS], gemm_seconds[ATT_BENCH_REPEATS], triad_seconds[ATT_BENCH_REPEATS];
};

/* As att_bench_create(), for a plan without the algebraic rewriting `pattern`; NULL: with all. */
att_status att_bench_create_without(att_context *context, const att_bench_options *options, const char *pattern,
                                    att_bench **bench);

#endif
