/* spectrum/lapack.h - LAPACK: the routines that are called, as gfortran compiles them: arguments by reference, and the
 * lengths of character arguments behind all others. Matrices are stored column by column. */
#ifndef ATT_SPECTRUM_LAPACK_H
#define ATT_SPECTRUM_LAPACK_H

#include <stddef.h>

#include "base/spectrum/spectrum.h"

/* Eigenvalues and left and right eigenvectors of a general matrix. */
void dgeev_(const char *left, const char *right, const int *n, double *a, const int *lda, double *re, double *im,
            double *vl, const int *ldvl, double *vr, const int *ldvr, double *work, const int *lwork, int *info,
            size_t left_length, size_t right_length);
/* Eigenvalues and eigenvectors, which replace the matrix, of a symmetric matrix. */
void dsyev_(const char *job, const char *triangle, const int *n, double *a, const int *lda, double *values,
            double *work, const int *lwork, int *info, size_t job_length, size_t triangle_length);
/* Singular values, and singular vectors if asked for, of a general matrix, which is destroyed. */
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s, double *u,
             const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork, int *iwork, int *info,
             size_t job_length);

/* Eigenvalues re + i im and right eigenvectors of a matrix [size, size], stored column by column, which is overwritten.
 * vectors: room for size * size. Column j belongs to value j; of a pair j, j + 1, of which value j has the positive
 * imaginary part, columns j and j + 1 are the real and the imaginary part of the vector of value j. */
att_status att_spectrum_decompose(att_context *context, int size, double *matrix, double *re, double *im,
                                  double *vectors);

#endif
