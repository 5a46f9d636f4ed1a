/* spectrum/singular.h - singular values of dense matrices, for kernels: the caller provides the memory. */
#ifndef ATT_SPECTRUM_SINGULAR_H
#define ATT_SPECTRUM_SINGULAR_H

#include <attscope/context.h>

/* Bytes of `work` for a matrix of this size. Errors: ERR_ARGUMENT (a size below 1, or more than 2^31 - 1 entries). */
att_status att_spectrum_singular_work(att_context *context, int64_t rows, int64_t columns, size_t *bytes);

/* All min(rows, columns) singular values of the matrix, in descending order, by LAPACK's dgesdd on the matrix itself: a
 * Gram matrix would square its condition number and lose every singular value below 1e-8 of the largest. matrix: row by
 * row, destroyed. work: aligned to 64 bytes. The entries must be finite. Errors: ERR_INTERNAL (no convergence). */
att_status att_spectrum_singular(att_context *context, int64_t rows, int64_t columns, double *matrix, double *values,
                                 void *work);

#endif
