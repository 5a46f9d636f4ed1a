/* bench/gemm.h - measures the rate of matrix products with the shapes of a network. */
#ifndef ATT_BENCH_GEMM_H
#define ATT_BENCH_GEMM_H

#include <attscope/plan.h>

typedef struct att_gemm att_gemm;

/* Prepares the matrix products of one forward pass of `graph` over `batch` samples: linear layers and convolutions (as
 * products on columns, im2col) over all rows of the batch with packed weights, and Q K' and P V of each head and
 * sample. ATT_MIXED: operands and results are bf16. On success the caller destroys *gemm with att_gemm_destroy().
 * Errors: ERR_MEMORY, ERR_INTERNAL with oneDNN's reason. */
att_status att_gemm_create(const att_graph *graph, int batch, att_precision precision, att_gemm **gemm);
void att_gemm_destroy(att_gemm **gemm);

/* Floating-point operations of one pass, two per multiply-add. */
double att_gemm_flops(const att_gemm *gemm);
/* Computes every product once per layer, one after another. Each product uses all threads of the context, which share
 * its rows, or heads and samples. */
att_status att_gemm_run(att_gemm *gemm);

#endif
