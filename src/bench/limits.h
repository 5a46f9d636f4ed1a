/* bench/limits.h - what the benchmarks of networks and of attention take alike. */
#ifndef ATT_BENCH_LIMITS_H
#define ATT_BENCH_LIMITS_H

#include <attscope/plan.h>

enum { ATT_BENCH_REPEATS = 1000, ATT_BENCH_BATCH = 65536 };

/* ERR_ARGUMENT for numbers of runs that are out of range. */
att_status att_bench_check_repeats(att_context *context, int repeats, int warmup);
/* Of the matrix products beside a plan of `precision`: the reference computes in bf16 where the processor does not. */
att_precision att_bench_gemm_precision(const att_context *context, att_precision precision);

#endif
