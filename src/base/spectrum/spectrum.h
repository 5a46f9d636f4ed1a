/* spectrum/spectrum.h - eigenvalues of real matrices: all of a small matrix, and those at both ends of the real axis of
 * an operator that is known only by its products with vectors, such as the Jacobian of a residual branch.
 *
 * Dense matrices are handled by LAPACK (dgeev, dsyev), operators by ARPACK's implicitly restarted Arnoldi iteration
 * (dnaupd). All functions may be called from several threads with a context each. ARPACK keeps its state in static
 * variables, so one operator is iterated at a time, and others wait.
 */
#ifndef ATT_SPECTRUM_SPECTRUM_H
#define ATT_SPECTRUM_SPECTRUM_H

#include <attscope/context.h>

#include "base/core/export.h"

typedef struct att_eigenvalue {
    double re, im;
} att_eigenvalue;

/* A real matrix J [size, size], given by its products. */
typedef struct att_operator {
    int size;
    /* y = J x, for vectors [size] that do not overlap. A failure ends the iteration and is returned to the caller. Must
     * not call att_spectrum_ends_find(). */
    att_status (*apply)(void *user, const double *x, double *y);
    void *user;
} att_operator;

typedef struct att_spectrum_options {
    /* An end counts as found if its residual |J v - lambda v| is at most this share of the spectrum's scale |J|, where
     * |v| = 1. The error of lambda is then at most as large for a normal matrix, and larger for others. */
    double tolerance;
    int basis;         /* vectors of the Arnoldi basis, 4..256 */
    int dense;         /* up to this size, J is formed by `size` products and decomposed; at least 3 */
    int most_products; /* limit for products in one call, half of them for each end; an end takes at least one product
                          for its start vector, those of one basis, and up to two for its residual */
    uint64_t seed;     /* of the start vector */
} att_spectrum_options;
/* Tolerance 1e-6, 48 vectors, dense up to 64, 20,000 products, seed 42. */
att_spectrum_options att_spectrum_options_defaults(void);

/* The eigenvalues with the smallest and the largest real part. Of a pair, the one with im >= 0. */
typedef struct att_spectrum_ends {
    att_eigenvalue left, right;
    double stiffness_index; /* max_i |Re lambda_i| = max(|Re left|, |Re right|) */
    double residual;        /* the larger residual |J v - lambda v| / |v| of both ends, as a share of |J|, measured by
                               products with v, so that it includes the rounding of apply(); 0 for a dense decomposition */
    bool converged;         /* false: most_products was reached, and the ends are the best estimates so far */
    bool dense;
    int products;
} att_spectrum_ends;

/* Finds both ends. Power iteration would find max |lambda| instead. Arnoldi iteration runs on J - s I and J + s I with
 * s = |J|, estimated by ten steps of power iteration: ARPACK's tolerance is relative to the eigenvalue, so that it
 * could miss an end near 0. A small residual proves an eigenvalue, but not that no other lies further out: if real
 * parts are close, the iteration can converge to the second one; a larger basis helps. options: NULL means the
 * defaults. Errors: ERR_ARGUMENT (size below 1, options), ERR_NONFINITE (a product that is not finite), ERR_MEMORY,
 * ERR_INTERNAL; the failure of apply(). */
ATT_FOR_LAB att_status att_spectrum_ends_find(att_context *context, const att_operator *op,
                                              const att_spectrum_options *options, att_spectrum_ends *ends);

/* All eigenvalues of the matrix [size, size], row by row, in no particular order. values: room for `size`. Errors:
 * ERR_ARGUMENT (size outside 1..4096), ERR_NONFINITE (an entry that is not finite), ERR_MEMORY, ERR_INTERNAL (no
 * convergence). */
att_status att_spectrum_eigenvalues(att_context *context, int size, const double *matrix, att_eigenvalue *values);

/* Eigenvalues, in ascending order, and orthonormal eigenvectors of a symmetric matrix, of which only one triangle is
 * read. vectors: room for size * size; row i is the vector of values[i]. Errors: as above. */
ATT_FOR_LAB att_status att_spectrum_symmetric(att_context *context, int size, const double *matrix, double *values,
                                              double *vectors);

#endif
