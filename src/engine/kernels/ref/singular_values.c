/* By one-sided Jacobi rotations (Hestenes 1958): rows of X, or its columns if there are fewer, are rotated in pairs
 * until all are orthogonal. Their lengths are then the singular values. */
#include <math.h>
#include <stdlib.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { MOST_SWEEPS = 60 };
#define ORTHOGONAL 1e-15

typedef struct vectors {
    double *values; /* [count][length] */
    int64_t count, length;
} vectors;

static double dot(const double *a, const double *b, int64_t length)
{
    double sum = 0;
    for (int64_t i = 0; i < length; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Makes two vectors orthogonal. Returns whether they were not. */
static bool rotate(const vectors *v, int64_t first, int64_t second)
{
    double *a = v->values + first * v->length, *b = v->values + second * v->length;
    double aa = dot(a, a, v->length), bb = dot(b, b, v->length), ab = dot(a, b, v->length);
    if (fabs(ab) <= ORTHOGONAL * sqrt(aa * bb))
        return false;
    double zeta = (bb - aa) / (2 * ab), tangent = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
    double cosine = 1 / hypot(1, tangent), sine = cosine * tangent;
    for (int64_t i = 0; i < v->length; i++) {
        double of_a = a[i];
        a[i] = cosine * of_a - sine * b[i];
        b[i] = sine * of_a + cosine * b[i];
    }
    return true;
}

static void orthogonalise(const vectors *v)
{
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = false;
        for (int64_t i = 0; i < v->count; i++)
            for (int64_t j = i + 1; j < v->count; j++)
                rotated |= rotate(v, i, j);
    }
}

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(dims[0] * dims[1] + dims[0] + dims[1]) * sizeof(double);
    return ATT_OK;
}

/* Copies the sample's tokens, divided by their largest entry. Returns false if they are 0 or not finite. */
static bool copy_scaled(const att_call *call, int64_t sample, const vectors *v)
{
    const int64_t columns = ref_dim(call, 0, 1), all = v->count * v->length;
    double most = 0;
    for (int64_t i = 0; i < all; i++) {
        double value = ref_in(call, 0, sample * all + i);
        if (!isfinite(value))
            return false;
        most = fmax(most, fabs(value));
    }
    for (int64_t i = 0; i < all && most > 0; i++) {
        int64_t row = i / columns, column = i % columns;
        int64_t to = v->length == columns ? i : column * v->length + row;
        v->values[to] = ref_in(call, 0, sample * all + i) / most;
    }
    return most > 0;
}

static att_status run(const att_call *call)
{
    const int64_t rows = ref_dim(call, 0, 0), columns = ref_dim(call, 0, 1);
    const vectors v = {call->scratch, rows < columns ? rows : columns, rows < columns ? columns : rows};
    double *lengths = v.values + v.count * v.length;
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        bool defined = copy_scaled(call, sample, &v);
        double norm = defined ? sqrt(dot(v.values, v.values, v.count * v.length)) : NAN;
        if (defined)
            orthogonalise(&v);
        for (int64_t i = 0; i < v.count; i++)
            lengths[i] = defined ? sqrt(dot(v.values + i * v.length, v.values + i * v.length, v.length)) : NAN;
        qsort(lengths, (size_t)v.count, sizeof *lengths, descending);
        for (int64_t i = 0; i < v.count; i++)
            ref_out(call, 0, sample * v.count + i, lengths[i] / norm);
    }
    return ATT_OK;
}

const att_kernel att_ref_singular_values = {.op = "singular_values", .name = "ref", .prepare = prepare, .run = run};
