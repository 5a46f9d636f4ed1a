#include "base/spectrum/singular.h"

#include <limits.h>

#include "base/core/error.h"
#include "base/spectrum/lapack.h"

enum { INTEGERS = 8 }; /* of dgesdd's iwork, for each singular value */

/* A matrix row by row is its transpose column by column, whose singular values are the same. Returns dgesdd's info.
 * count: size of `work`; -1: writes the best size to work[0]. */
static int decompose(int64_t rows, int64_t columns, double *matrix, double *values, double *work, int count,
                     int *integers)
{
    const int m = (int)columns, n = (int)rows, one = 1;
    double none;
    int info = 0;
    dgesdd_("N", &m, &n, matrix, &m, values, &none, &one, &none, &one, work, &count, integers, &info, 1);
    return info;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int work_size(int64_t rows, int64_t columns)
{
    double best = 0, none = 0;
    int integer = 0;
    int info = decompose(rows, columns, &none, &none, &best, -1, &integer);
    return info == 0 && best >= 1 && best < INT_MAX ? (int)best : -1;
}

att_status att_spectrum_singular_work(att_context *context, int64_t rows, int64_t columns, size_t *bytes)
{
    const int size = rows >= 1 && columns >= 1 && columns <= INT_MAX / rows ? work_size(rows, columns) : -1;
    if (size < 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "the singular values of a matrix of %lld x %lld", (long long)rows,
                        (long long)columns);
    *bytes = (size_t)size * sizeof(double) + (size_t)smaller(rows, columns) * INTEGERS * sizeof(int);
    return ATT_OK;
}

att_status att_spectrum_singular(att_context *context, int64_t rows, int64_t columns, double *matrix, double *values,
                                 void *work)
{
    const int size = work_size(rows, columns);
    const int info = decompose(rows, columns, matrix, values, work, size, (int *)((double *)work + size));
    if (info == 0)
        return ATT_OK;
    return att_fail(context, ATT_ERR_INTERNAL, "LAPACK's dgesdd failed for a matrix of %lld x %lld (info %d)",
                    (long long)rows, (long long)columns, info);
}
