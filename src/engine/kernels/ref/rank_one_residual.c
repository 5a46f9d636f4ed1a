#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Power iteration on X'X. It ends when a step changes v by less than CHANGE. If the two largest singular values are
 * nearly equal it is slow, but then the residual hardly depends on the direction of v between them. */
enum { MOST_STEPS = 300 };
#define CHANGE 1e-14

typedef struct matrix {
    const att_call *call;
    int64_t first, rows, columns;
    double *left, *right, *next; /* u s [rows], v [columns], and the next v */
} matrix;

static double at(const matrix *x, int64_t row, int64_t column)
{
    return ref_in(x->call, 0, x->first + row * x->columns + column);
}

/* left = X right */
static void put_left(const matrix *x)
{
    for (int64_t row = 0; row < x->rows; row++) {
        x->left[row] = 0;
        for (int64_t column = 0; column < x->columns; column++)
            x->left[row] += at(x, row, column) * x->right[column];
    }
}

/* right = X' left / |X' left|; returns |the change of right|. If X' left is 0, right becomes 0. */
static double put_right(const matrix *x)
{
    double squares = 0, change = 0;
    for (int64_t column = 0; column < x->columns; column++) {
        x->next[column] = 0;
        for (int64_t row = 0; row < x->rows; row++)
            x->next[column] += at(x, row, column) * x->left[row];
        squares += x->next[column] * x->next[column];
    }
    for (int64_t column = 0; column < x->columns; column++) {
        double value = squares > 0 ? x->next[column] / sqrt(squares) : 0;
        change += (value - x->right[column]) * (value - x->right[column]);
        x->right[column] = value;
    }
    return sqrt(change);
}

/* Begins with positive weights without a pattern: the leading vectors of a matrix without negative elements are
 * positive, too. */
static void begin(const matrix *x)
{
    for (int64_t row = 0; row < x->rows; row++)
        x->left[row] = 1 + 0.5 * fmod(0.618034 * (double)(row + 1), 1);
    for (int64_t column = 0; column < x->columns; column++)
        x->right[column] = 0;
    put_right(x);
}

static double residual_of(const matrix *x)
{
    double rest = 0, whole = 0;
    for (int64_t row = 0; row < x->rows; row++)
        for (int64_t column = 0; column < x->columns; column++) {
            double value = at(x, row, column), left = value - x->left[row] * x->right[column];
            whole += value * value;
            rest += left * left;
        }
    return sqrt(rest / whole);
}

static att_status prepare_residual(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(dims[0] + 2 * dims[1]) * sizeof(double);
    return ATT_OK;
}

static att_status run_residual(const att_call *call)
{
    matrix x = {.call = call, .rows = ref_dim(call, 0, 0), .columns = ref_dim(call, 0, 1), .left = call->scratch};
    x.right = x.left + x.rows;
    x.next = x.right + x.columns;
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        x.first = sample * x.rows * x.columns;
        begin(&x);
        put_left(&x);
        for (int step = 0; step < MOST_STEPS && put_right(&x) > CHANGE; step++)
            put_left(&x);
        put_left(&x);
        ref_out(call, 0, sample, residual_of(&x));
    }
    return ATT_OK;
}

const att_kernel att_ref_rank_one_residual = {
    .op = "rank_one_residual", .name = "ref", .prepare = prepare_residual, .run = run_residual};
