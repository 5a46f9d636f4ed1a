#include "base/spectrum/spectrum.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/spectrum/lapack.h"

enum { MOST_SIZE = 4096 };

static att_status check(att_context *context, int size, const double *matrix)
{
    if (size < 1 || size > MOST_SIZE)
        return att_fail(context, ATT_ERR_ARGUMENT, "the eigenvalues of a matrix of size %d, expected 1 to %d", size,
                        (int)MOST_SIZE);
    for (size_t i = 0; i < (size_t)size * (size_t)size; i++)
        if (!isfinite(matrix[i]))
            return att_fail(context, ATT_ERR_NONFINITE,
                            "the eigenvalues of a matrix whose entry in row %d, column %d is %g",
                            (int)(i / (size_t)size), (int)(i % (size_t)size), matrix[i]);
    return ATT_OK;
}

static att_status fail_info(att_context *context, const char *routine, int size, int info)
{
    return att_fail(context, ATT_ERR_INTERNAL, "LAPACK's %s failed for a matrix of size %d (info %d)", routine, size,
                    info);
}

att_status att_spectrum_decompose(att_context *context, int size, double *matrix, double *re, double *im,
                                  double *vectors)
{
    size_t lwork = 8 * (size_t)size;
    double *work;
    ATT_TRY(att_new(context, &work, lwork, "the eigenvectors of a matrix"));
    const int one = 1, work_size = (int)lwork;
    int info = 0;
    dgeev_("N", "V", &size, matrix, &size, re, im, NULL, &one, vectors, &size, work, &work_size, &info, 1, 1);
    att_free(context, work);
    return info == 0 ? ATT_OK : fail_info(context, "dgeev", size, info);
}

/* The matrix is transposed for LAPACK, which does not change its eigenvalues. */
att_status att_spectrum_eigenvalues(att_context *context, int size, const double *matrix, att_eigenvalue *values)
{
    ATT_TRY(check(context, size, matrix));
    size_t n = (size_t)size, lwork = 8 * n;
    double *block;
    ATT_TRY(att_new(context, &block, n * n + 2 * n + lwork, "the eigenvalues of a matrix"));
    double *a = block, *re = a + n * n, *im = re + n, *work = im + n;
    memcpy(a, matrix, n * n * sizeof *a);
    const int one = 1, work_size = (int)lwork;
    int info = 0;
    dgeev_("N", "N", &size, a, &size, re, im, NULL, &one, NULL, &one, work, &work_size, &info, 1, 1);
    for (size_t i = 0; i < n && info == 0; i++)
        values[i] = (att_eigenvalue){re[i], im[i]};
    att_free(context, block);
    return info == 0 ? ATT_OK : fail_info(context, "dgeev", size, info);
}

att_status att_spectrum_symmetric(att_context *context, int size, const double *matrix, double *values, double *vectors)
{
    ATT_TRY(check(context, size, matrix));
    size_t n = (size_t)size, lwork = 34 * n;
    double *work;
    ATT_TRY(att_new(context, &work, lwork, "the eigenvalues of a matrix"));
    memcpy(vectors, matrix, n * n * sizeof *vectors);
    const int work_size = (int)lwork;
    int info = 0;
    dsyev_("V", "U", &size, vectors, &size, values, work, &work_size, &info, 1, 1);
    att_free(context, work);
    return info == 0 ? ATT_OK : fail_info(context, "dsyev", size, info);
}
