/* bench/limits.h - limits shared by the benchmarks of networks and of attention. */
#ifndef ATT_BENCH_LIMITS_H
#define ATT_BENCH_LIMITS_H

#include <attscope/plan.h>

enum { ATT_BENCH_REPEATS = 1000, ATT_BENCH_BATCH = 65536 };

/* Returns ERR_ARGUMENT if a number of runs is out of range. */
att_status att_bench_check_repeats(att_context *context, int repeats, int warmup);
/* Precision of the reference products for a plan of `precision`: f32 if the processor has no bf16 products. */
att_precision att_bench_gemm_precision(const att_context *context, att_precision precision);

#endif
