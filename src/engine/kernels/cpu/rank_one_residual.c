/* As the reference kernel, on a copy of the matrix in f64, row by row, so that the loops are vectorised. */
#include <math.h>
#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

enum { MOST_STEPS = 300 };
#define CHANGE 1e-14

typedef struct matrix {
    int64_t rows, columns;
    double *x, *left, *right, *next;
} matrix;

static void widen(const float *from, int64_t count, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)from[i];
}

/* The sum of products in four parts, which the compiler may add side by side. */
static double dot(const double *restrict a, const double *restrict b, int64_t count)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void put_left(const matrix *m)
{
    for (int64_t row = 0; row < m->rows; row++)
        m->left[row] = dot(m->x + row * m->columns, m->right, m->columns);
}

static void add_row(double *restrict sum, const double *restrict row, double factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += factor * row[i];
}

static double put_right(const matrix *m)
{
    memset(m->next, 0, (size_t)m->columns * sizeof *m->next);
    for (int64_t row = 0; row < m->rows; row++)
        add_row(m->next, m->x + row * m->columns, m->left[row], m->columns);
    const double length = sqrt(dot(m->next, m->next, m->columns));
    double change = 0;
    for (int64_t i = 0; i < m->columns; i++) {
        double value = length > 0 ? m->next[i] / length : 0;
        change += (value - m->right[i]) * (value - m->right[i]);
        m->right[i] = value;
    }
    return sqrt(change);
}

static void begin(const matrix *m)
{
    for (int64_t row = 0; row < m->rows; row++)
        m->left[row] = 1 + 0.5 * fmod(0.618034 * (double)(row + 1), 1);
    memset(m->right, 0, (size_t)m->columns * sizeof *m->right);
    put_right(m);
    put_left(m);
}

/* Subtracts the matrix of rank 1 in place. */
static double residual_of(const matrix *m)
{
    const int64_t count = m->rows * m->columns;
    const double whole = dot(m->x, m->x, count);
    for (int64_t row = 0; row < m->rows; row++)
        add_row(m->x + row * m->columns, m->right, -m->left[row], m->columns);
    return sqrt(dot(m->x, m->x, count) / whole);
}

static att_status residual_prepare(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(dims[0] * dims[1] + dims[0] + 2 * dims[1]) * sizeof(double);
    return ATT_OK;
}

/* Parts share the samples. */
static att_status residual_run(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    matrix m = {.rows = dims[0], .columns = dims[1], .x = call->scratch};
    m.left = m.x + m.rows * m.columns;
    m.right = m.left + m.rows;
    m.next = m.right + m.columns;
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        widen((const float *)call->in[0] + sample * m.rows * m.columns, m.rows * m.columns, m.x);
        begin(&m);
        for (int step = 0; step < MOST_STEPS && put_right(&m) > CHANGE; step++)
            put_left(&m);
        put_left(&m);
        ((float *)call->out[0])[sample] = (float)residual_of(&m);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(rank_one_residual, .prepare = residual_prepare, .run = residual_run);
