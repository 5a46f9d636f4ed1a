/* By LAPACK, for graphs in f32 and f64. */
#include <math.h>

#include "base/core/error.h"
#include "base/spectrum/singular.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

enum { ALIGNED = 8 }; /* doubles in 64 bytes */

static int64_t rounded(int64_t count)
{
    return (count + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static int64_t count_of(const int64_t *dims)
{
    return dims[0] < dims[1] ? dims[0] : dims[1];
}

/* Scratch: the matrix, its singular values, LAPACK's memory. */
static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    size_t work;
    ATT_TRY(att_spectrum_singular_work(problem->context, dims[0], dims[1], &work));
    prepared->scratch_bytes = (size_t)(rounded(dims[0] * dims[1]) + rounded(count_of(dims))) * sizeof(double) + work;
    return ATT_OK;
}

static bool accepts(const att_problem *problem)
{
    const att_dtype dtype = problem->in[0].dtype;
    return (dtype == ATT_F32 || dtype == ATT_F64) && problem->out[0].dtype == dtype;
}

/* Copies the sample's tokens, divided by their largest entry, whose squares neither overflow nor vanish. Returns their
 * Frobenius norm; NaN if they are 0 or not finite. */
static double copy_scaled(const void *x, bool wide, int64_t count, double *matrix)
{
    double most = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        matrix[i] = wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
        if (!isfinite(matrix[i]))
            return NAN;
        most = fmax(most, fabs(matrix[i]));
    }
    for (int64_t i = 0; i < count; i++) {
        matrix[i] /= most;
        squares += matrix[i] * matrix[i];
    }
    return sqrt(squares);
}

static void put_values(const double *values, double norm, bool wide, int64_t count, void *y)
{
    for (int64_t i = 0; i < count; i++) {
        const double value = isfinite(norm) ? values[i] / norm : NAN;
        if (wide)
            ((double *)y)[i] = value;
        else
            ((float *)y)[i] = (float)value;
    }
}

/* Parts share the samples. */
static att_status run(const att_call *call)
{
    const att_desc *in = &call->problem->in[0];
    const bool wide = in->dtype == ATT_F64;
    const size_t size = wide ? sizeof(double) : sizeof(float);
    const int64_t rows = in->shape.dims[0], columns = in->shape.dims[1], all = rows * columns;
    const int64_t count = count_of(in->shape.dims);
    double *matrix = call->scratch, *values = matrix + rounded(all), *work = values + rounded(count);
    const att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        const char *x = (const char *)call->in[0] + (size_t)(sample * all) * size;
        double norm = copy_scaled(x, wide, all, matrix);
        if (isfinite(norm))
            ATT_TRY(att_spectrum_singular(call->problem->context, rows, columns, matrix, values, work));
        put_values(values, norm, wide, count, (char *)call->out[0] + (size_t)(sample * count) * size);
    }
    return ATT_OK;
}

ATT_CPU_KERNEL(singular_values, "singular_values", "lapack", .accepts = accepts, .prepare = prepare, .run = run);
