/* bench/gemm.h - what the machine's matrix products reach on a network's own shapes. */
#ifndef ATT_BENCH_GEMM_H
#define ATT_BENCH_GEMM_H

#include <attscope/plan.h>

typedef struct att_gemm att_gemm;

/* The matrix products of one forward pass of `graph` over `batch` samples: linear layers and convolutions (as
 * products on columns) on all rows of the batch with packed weights, Q K' and P V of each head and sample; ATT_MIXED:
 * operands and results in bf16. On success *gemm is the caller's, freed by att_gemm_destroy(). Errors: ERR_MEMORY,
 * ERR_INTERNAL with oneDNN's reason. */
att_status att_gemm_create(const att_graph *graph, int batch, att_precision precision, att_gemm **gemm);
void att_gemm_destroy(att_gemm **gemm);

/* Operations of one pass: two for each multiply-add. */
double att_gemm_flops(const att_gemm *gemm);
/* Computes every product once per layer, one after another, each by all of the context's threads: rows, or heads and
 * samples, are divided among them. */
att_status att_gemm_run(att_gemm *gemm);

#endif
