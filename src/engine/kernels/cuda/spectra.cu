/* Instruments of matrices: score_norm, rank_one_residual, singular_values and rollout. They compute in f64; a block
 * works on a matrix. */
#include "engine/kernels/cuda/ops.cuh"
#include "engine/kernels/cuda/teams.cuh"

extern "C" {
#include "engine/ops/score_norm.h"
}

/* Calls f(matrix, team) with a block for each matrix. */
template <class F> static void each_matrix(int64_t count, F f)
{
    cuda_each_row(count, CUDA_WARP_COLUMNS + 1, f);
}

/* Positive weights without a pattern, to begin a power iteration. */
__device__ static double first_weight(int64_t i)
{
    return 1 + 0.5 * fmod(0.618034 * (double)(i + 1), 1);
}

/* --- score_norm --------------------------------------------------------------------------------------------------- */

/* The power iteration v := M'M v, M = W_q' W_k, on u = W_k v, which has the width of a head: with A = W_q W_q' and
 * B = W_k W_k', |M v|^2 = u'A u, and the next u is B A u / |W_k' A u|. */
struct score_norm_head {
    att_score_norm_attrs attrs;
    const float *w_q, *w_k;
    float *norms;
    double *scratch; /* [heads] x (A, B, u, A u) */
    int64_t rows_q, rows_k, columns;
    template <class Team> __device__ void operator()(int64_t at, Team team) const
    {
        int64_t d = attrs.width, sample = at / attrs.heads, q = at % attrs.heads;
        int64_t k = q / (attrs.heads / attrs.key_heads);
        const float *of_q = w_q + (sample * rows_q + attrs.q_offset + q * d) * columns;
        const float *of_k = w_k + (sample * rows_k + attrs.k_offset + k * d) * columns;
        double *a = scratch + at * 2 * d * (d + 1), *b = a + d * d, *u = b + d * d, *au = u + d;
        for (int64_t e = team.first(); e < d * d; e += team.step) {
            a[e] = product(of_q + e / d * columns, of_q + e % d * columns);
            b[e] = product(of_k + e / d * columns, of_k + e % d * columns);
        }
        for (int64_t i = team.first(); i < d; i += team.step) {
            double sum = 0;
            for (int64_t c = 0; c < columns; c++)
                sum += of_k[i * columns + c] * (first_weight(c) / sqrt((double)columns));
            u[i] = sum;
        }
        __syncthreads();
        double found = iterate(a, b, u, au, team);
        if (team.first() == 0)
            norms[at] = (float)(attrs.scale * found);
    }
    __device__ double product(const float *x, const float *y) const
    {
        double sum = 0;
        for (int64_t c = 0; c < columns; c++)
            sum += (double)x[c] * y[c];
        return sum;
    }
    template <class Team>
    __device__ double iterate(const double *a, const double *b, double *u, double *au, Team team) const
    {
        enum { MOST_STEPS = 10000 };
        const double growth = 1e-15;
        double found = 0;
        for (int step = 0; step < MOST_STEPS; step++) {
            double next = sqrt(multiply(a, u, u, au, 1, team));
            double length = sqrt(multiply(b, au, au, u, 1, team));
            for (int64_t i = team.first(); i < attrs.width; i += team.step)
                u[i] = length > 0 ? u[i] / length : 0;
            __syncthreads();
            if (step > 1 && !(next > found * (1 + growth)))
                return next;
            found = next;
        }
        return found;
    }
    /* to = m x, with a symmetric m; returns y . to. y may be x. */
    template <class Team>
    __device__ double multiply(const double *m, const double *x, const double *y, double *to, double factor,
                               Team team) const
    {
        int64_t d = attrs.width;
        double sum = 0;
        for (int64_t i = team.first(); i < d; i += team.step) {
            double value = 0;
            for (int64_t j = 0; j < d; j++)
                value += m[j * d + i] * x[j];
            to[i] = factor * value;
            sum += y[i] * to[i];
        }
        return team.sum(sum); /* a barrier for `to` */
    }
};

static int64_t score_heads(const att_problem *problem)
{
    const int64_t *dims = problem->in[0].shape.dims;
    return att_problem_count(problem, &problem->in[0]) / dims[0] / dims[1] * ATT_ATTRS(problem, score_norm)->heads;
}

static att_status prepare_score_norm(const att_problem *problem, att_prepared *prepared)
{
    int64_t d = ATT_ATTRS(problem, score_norm)->width;
    prepared->scratch_bytes = (size_t)(score_heads(problem) * 2 * d * (d + 1)) * sizeof(double);
    return ATT_OK;
}

static att_status run_score_norm(const att_call *call)
{
    const att_desc *in = call->problem->in;
    each_matrix(score_heads(call->problem),
                score_norm_head{*ATT_ATTRS(call->problem, score_norm), (const float *)call->in[0],
                                (const float *)call->in[1], (float *)call->out[0], (double *)call->scratch,
                                in[0].shape.dims[0], in[1].shape.dims[0], in[0].shape.dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(score_norm, prepare_score_norm, run_score_norm, nullptr);

/* --- rank_one_residual -------------------------------------------------------------------------------------------- */

/* A power iteration on X'X, until a step changes v by less than `least`. */
struct residual_matrix {
    const float *x;
    float *residuals;
    double *scratch; /* [samples] x (u s [rows], v [columns], the next v [columns]) */
    int64_t rows, columns;
    template <class Team> __device__ void operator()(int64_t sample, Team team) const
    {
        enum { MOST_STEPS = 300 };
        const double least = 1e-14;
        const float *of = x + sample * rows * columns;
        double *left = scratch + sample * (rows + 2 * columns), *right = left + rows, *next = right + columns;
        for (int64_t row = team.first(); row < rows; row += team.step)
            left[row] = first_weight(row);
        for (int64_t column = team.first(); column < columns; column += team.step)
            right[column] = 0;
        __syncthreads();
        put_right(of, left, right, next, team);
        put_left(of, left, right);
        for (int step = 0; step < MOST_STEPS && put_right(of, left, right, next, team) > least; step++)
            put_left(of, left, right);
        put_left(of, left, right);
        double rest = 0, whole = 0;
        for (int64_t e = team.first(); e < rows * columns; e += team.step) {
            double value = of[e], remains = value - left[e / columns] * right[e % columns];
            whole += value * value;
            rest += remains * remains;
        }
        rest = team.sum(rest), whole = team.sum(whole);
        if (team.first() == 0)
            residuals[sample] = (float)sqrt(rest / whole);
    }
    /* left = X right: a warp for each row. */
    __device__ void put_left(const float *of, double *left, const double *right) const
    {
        __syncthreads();
        for (int64_t row = threadIdx.x / 32; row < rows; row += ATT_CUDA_THREADS / 32) {
            double sum = 0;
            for (int64_t column = threadIdx.x % 32; column < columns; column += 32)
                sum += of[row * columns + column] * right[column];
            sum = warp_sum(sum);
            if (threadIdx.x % 32 == 0)
                left[row] = sum;
        }
        __syncthreads();
    }
    /* right = X' left / |X' left|, or 0; returns |the change of right|. */
    template <class Team>
    __device__ double put_right(const float *of, const double *left, double *right, double *next, Team team) const
    {
        double squares = 0, change = 0;
        for (int64_t column = team.first(); column < columns; column += team.step) {
            double sum = 0;
            for (int64_t row = 0; row < rows; row++)
                sum += of[row * columns + column] * left[row];
            next[column] = sum;
            squares += sum * sum;
        }
        squares = team.sum(squares);
        for (int64_t column = team.first(); column < columns; column += team.step) {
            double value = squares > 0 ? next[column] / sqrt(squares) : 0;
            change += (value - right[column]) * (value - right[column]);
            right[column] = value;
        }
        return sqrt(team.sum(change));
    }
};

static att_status prepare_residual(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(problem->group * (dims[0] + 2 * dims[1])) * sizeof(double);
    return ATT_OK;
}

static att_status run_residual(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    each_matrix(call->problem->group, residual_matrix{(const float *)call->in[0], (float *)call->out[0],
                                                      (double *)call->scratch, dims[0], dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(rank_one_residual, prepare_residual, run_residual, nullptr);

/* --- singular_values ---------------------------------------------------------------------------------------------- */

/* The square roots of the eigenvalues of X X', or X'X if it is smaller, by Jacobi rotations. A round rotates disjoint
 * pairs of rows and columns, paired as in a tournament. An error of 1e-16 of the largest eigenvalue is one of 1e-8 of
 * the largest singular value. */
struct singular_matrix {
    const float *x;
    float *values;
    double *scratch; /* [samples] x (gram [n, n], rotations [n], eigenvalues [n]) */
    int64_t rows, columns;
    __device__ int64_t size() const
    {
        return rows < columns ? rows : columns;
    }
    template <class Team> __device__ void operator()(int64_t sample, Team team) const
    {
        int64_t n = size();
        double *gram = scratch + sample * n * (n + 2), *rotations = gram + n * n, *found = rotations + n;
        fill(x + sample * rows * columns, gram, team);
        double sum = 0;
        for (int64_t i = team.first(); i < n; i += team.step)
            sum += gram[i * n + i];
        double whole = team.sum(sum);
        bool defined = whole > 0 && isfinite(whole);
        if (defined)
            diagonalise(gram, rotations, whole, team);
        for (int64_t i = team.first(); i < n; i += team.step)
            found[i] = defined ? sqrt(fmax(0.0, gram[i * n + i]) / whole) : NAN;
        __syncthreads();
        for (int64_t i = team.first(); i < n; i += team.step) {
            int64_t before = 0;
            for (int64_t j = 0; j < n; j++)
                before += found[j] > found[i] || (j < i && !(found[j] < found[i]));
            values[sample * n + before] = (float)found[i];
        }
    }
    template <class Team> __device__ void fill(const float *of, double *gram, Team team) const
    {
        int64_t n = size(), length = rows < columns ? columns : rows;
        int64_t step = rows < columns ? 1 : columns, stride = rows < columns ? columns : 1;
        for (int64_t e = team.first(); e < n * n; e += team.step) {
            double sum = 0;
            for (int64_t k = 0; k < length; k++)
                sum += (double)of[e / n * stride + k * step] * of[e % n * stride + k * step];
            gram[e] = sum;
        }
        __syncthreads();
    }
    template <class Team> __device__ void diagonalise(double *gram, double *rotations, double whole, Team team) const
    {
        enum { MOST_SWEEPS = 40 };
        const double least = 1e-30;
        int64_t n = size(), players = n + n % 2;
        for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
            double sum = 0;
            for (int64_t e = team.first(); e < n * n; e += team.step)
                sum += e / n == e % n ? 0 : gram[e] * gram[e];
            if (!(team.sum(sum) > least * whole * whole))
                return;
            for (int64_t round = 0; round + 1 < players; round++)
                rotate(gram, rotations, round, team);
        }
    }
    /* Pair `pair` of a round of a tournament among `players`; false if one of them does not exist. */
    __device__ bool pair_of(int64_t round, int64_t pair, int64_t *p, int64_t *q) const
    {
        int64_t n = size(), others = n + n % 2 - 1;
        int64_t a = pair == 0 ? others : (round + pair) % others, b = (round + others - pair) % others;
        *p = a < b ? a : b;
        *q = a < b ? b : a;
        return *q < n;
    }
    template <class Team> __device__ void rotate(double *gram, double *rotations, int64_t round, Team team) const
    {
        int64_t n = size(), pairs = (n + 1) / 2, p, q;
        for (int64_t i = team.first(); i < pairs; i += team.step)
            if (pair_of(round, i, &p, &q))
                rotations[i] = tangent(gram[p * n + p], gram[q * n + q], gram[p * n + q]);
        __syncthreads();
        for (int turn = 0; turn < 2; turn++) { /* columns, then rows */
            for (int64_t e = team.first(); e < pairs * n; e += team.step) {
                int64_t pair = turn ? e / n : e % pairs, line = turn ? e % n : e / pairs;
                if (!pair_of(round, pair, &p, &q))
                    continue;
                double t = rotations[pair], cosine = 1 / sqrt(1 + t * t), sine = t * cosine;
                double *a = turn ? gram + p * n + line : gram + line * n + p;
                double *b = turn ? gram + q * n + line : gram + line * n + q;
                double left = *a, right = *b;
                *a = cosine * left - sine * right;
                *b = sine * left + cosine * right;
            }
            __syncthreads();
        }
    }
    /* Of the angle that makes the off-diagonal element `between` 0. */
    __device__ static double tangent(double first, double second, double between)
    {
        if (between == 0)
            return 0;
        double zeta = (second - first) / (2 * between);
        return copysign(1.0, zeta) / (fabs(zeta) + hypot(1.0, zeta));
    }
};

static att_status prepare_singular(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    int64_t n = dims[0] < dims[1] ? dims[0] : dims[1];
    prepared->scratch_bytes = (size_t)(problem->group * n * (n + 2)) * sizeof(double);
    return ATT_OK;
}

static att_status run_singular(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    each_matrix(call->problem->group, singular_matrix{(const float *)call->in[0], (float *)call->out[0],
                                                      (double *)call->scratch, dims[0], dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(singular_values, prepare_singular, run_singular, nullptr);

/* --- rollout ------------------------------------------------------------------------------------------------------ */

/* Passes the row of shares through all layers, the last first. */
struct rollout_sample {
    att_rollout_attrs attrs;
    const float *maps;
    float *shares;
    double *scratch; /* [samples] x two rows */
    int64_t layers, tokens;
    template <class Team> __device__ void operator()(int64_t sample, Team team) const
    {
        double *row = scratch + sample * 2 * tokens, *next = row + tokens;
        for (int64_t i = team.first(); i < tokens; i += team.step)
            row[i] = att_rollout_start(&attrs, i, tokens);
        for (int64_t layer = layers - 1; layer >= 0; layer--) {
            const float *map = maps + (sample * layers + layer) * tokens * tokens;
            __syncthreads();
            for (int64_t j = team.first(); j < tokens; j += team.step) {
                double sum = 0;
                for (int64_t i = 0; i < tokens; i++)
                    sum += row[i] * att_rollout_weight(map[i * tokens + j], i, j);
                next[j] = sum;
            }
            double *passed = next;
            next = row, row = passed;
        }
        for (int64_t i = team.first(); i < tokens; i += team.step)
            shares[sample * tokens + i] = (float)row[i];
    }
};

static att_status prepare_rollout(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    int64_t samples = att_problem_count(problem, &problem->in[0]) / (dims[0] * dims[1] * dims[2]);
    prepared->scratch_bytes = (size_t)(samples * 2 * dims[1]) * sizeof(double);
    return ATT_OK;
}

static att_status run_rollout(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    each_matrix(att_cuda_rows(call, 0) / (dims[0] * dims[1]),
                rollout_sample{*ATT_ATTRS(call->problem, rollout), (const float *)call->in[0], (float *)call->out[0],
                               (double *)call->scratch, dims[0], dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(rollout, prepare_rollout, run_rollout, nullptr);
