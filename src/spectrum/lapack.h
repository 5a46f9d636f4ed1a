/* spectrum/lapack.h - the LAPACK routines that are called, as gfortran compiles them: arguments by reference, and the
 * lengths of character arguments behind all others. Matrices are stored column by column. */
#ifndef ATT_SPECTRUM_LAPACK_H
#define ATT_SPECTRUM_LAPACK_H

#include <stddef.h>

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

#endif
