/* Instruments: attention_summary, residual_norms, step_norms, map_statistic. */
#include "engine/kernels/cuda/teams.cuh"

#include <attscope/ops.h>

extern "C" {
#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"
#include "engine/ops/map_statistic.h"
#include "engine/ops/residual_norms.h"
}

/* --- attention_summary -------------------------------------------------------------------------------------------- */

/* 1 / the mass on the grid; 0 if there is no such mass. */
__device__ static float share_of(const float *stat)
{
    float mass = 1 - stat[ATT_STAT_PREFIX];
    return mass > (float)ATT_SUMMARY_LEAST_MASS ? 1 / mass : 0;
}

/* As in the reference: norms of diag(a) - a a' from the largest weight and sums over the others. */
__device__ static void add_query(const float *stat, bool spatial, float *sum)
{
    float largest = stat[ATT_STAT_MAX], distance = stat[ATT_STAT_DISTANCE];
    float others = stat[ATT_STAT_OTHERS], others2 = stat[ATT_STAT_OTHERS2], others3 = stat[ATT_STAT_OTHERS3];
    float prefix = stat[ATT_STAT_PREFIX], self = stat[ATT_STAT_SELF];
    sum[ATT_SUMMARY_ENTROPY] += stat[ATT_STAT_ENTROPY];
    sum[ATT_SUMMARY_NUCLEAR] += 2 * largest * others + (others * others - others2);
    sum[ATT_SUMMARY_FROBENIUS] +=
        sqrtf(largest * largest * (others * others + 2 * others2) + (others2 - 2 * others3) + others2 * others2);
    sum[ATT_SUMMARY_PREFIX] += prefix;
    sum[ATT_SUMMARY_SELF] += self;
    sum[ATT_SUMMARY_MAX] += largest;
    if (!spatial)
        return;
    float rest = 1 - prefix - self;
    sum[ATT_SUMMARY_DISTANCE] += distance;
    sum[ATT_SUMMARY_DISTANCE_OTHERS] += rest > (float)ATT_SUMMARY_LEAST_MASS ? distance / rest : 0;
    float share = share_of(stat);
    for (int moment = 0; moment <= ATT_STAT_YX - ATT_STAT_Y; moment++)
        sum[ATT_SUMMARY_Y + moment] += share * stat[ATT_STAT_Y + moment];
}

/* Adds the differences of a query's mean shift from the mean (y, x) of all, and their products. */
enum { DIFFERENCE_Y, DIFFERENCE_X, DIFFERENCE_YY, DIFFERENCE_XX, DIFFERENCE_YX, DIFFERENCES };

__device__ static void add_differences(const float *stat, float mean_y, float mean_x, float *sum)
{
    float share = share_of(stat), y = share * stat[ATT_STAT_Y] - mean_y, x = share * stat[ATT_STAT_X] - mean_x;
    sum[DIFFERENCE_Y] += y;
    sum[DIFFERENCE_X] += x;
    sum[DIFFERENCE_YY] += y * y;
    sum[DIFFERENCE_XX] += x * x;
    sum[DIFFERENCE_YX] += y * x;
}

/* Rows are heads. */
struct summary_row {
    const float *stats;
    float *summary;
    int tokens, prefix;
    template <class Team> __device__ void operator()(int64_t head, Team team) const
    {
        float sum[ATT_SUMMARY_COUNT] = {}, mean_y = 0, mean_x = 0;
        for (int i = team.first(); i < tokens; i += team.step)
            add_query(stats + (head * tokens + i) * ATT_STAT_COUNT, i >= prefix, sum);
#pragma unroll
        for (int s = 0; s < ATT_SUMMARY_BETWEEN_YY; s++) {
            float total = team.sum(sum[s]);
            int count = att_summary_is_spatial_on_device(s) ? tokens - prefix : tokens;
            float mean = count > 0 ? total / count : 0;
            mean_y = s == ATT_SUMMARY_Y ? mean : mean_y;
            mean_x = s == ATT_SUMMARY_X ? mean : mean_x;
            if (team.first() == 0)
                summary[head * ATT_SUMMARY_COUNT + s] = mean;
        }
        put_between(head, team, mean_y, mean_x);
    }
    /* Sets the variances and the covariance of the mean shifts. The rounding errors of their means are the means of the
       differences. */
    template <class Team> __device__ void put_between(int64_t head, Team team, float mean_y, float mean_x) const
    {
        float sum[DIFFERENCES] = {}, mean[DIFFERENCES];
        for (int i = team.first(); i < tokens; i += team.step)
            if (i >= prefix)
                add_differences(stats + (head * tokens + i) * ATT_STAT_COUNT, mean_y, mean_x, sum);
#pragma unroll
        for (int s = 0; s < DIFFERENCES; s++)
            mean[s] = tokens > prefix ? team.sum(sum[s]) / (tokens - prefix) : 0;
        if (team.first() != 0)
            return;
        float *between = summary + head * ATT_SUMMARY_COUNT + ATT_SUMMARY_BETWEEN_YY;
        float yy = mean[DIFFERENCE_YY] - mean[DIFFERENCE_Y] * mean[DIFFERENCE_Y];
        float xx = mean[DIFFERENCE_XX] - mean[DIFFERENCE_X] * mean[DIFFERENCE_X];
        between[0] = yy < 0 ? 0 : yy;
        between[1] = xx < 0 ? 0 : xx;
        between[2] = mean[DIFFERENCE_YX] - mean[DIFFERENCE_Y] * mean[DIFFERENCE_X];
    }
    __device__ static bool att_summary_is_spatial_on_device(int column)
    {
        return column == ATT_SUMMARY_DISTANCE || column == ATT_SUMMARY_DISTANCE_OTHERS || column >= ATT_SUMMARY_Y;
    }
};
static_assert(ATT_SUMMARY_BETWEEN_YX + 1 == ATT_SUMMARY_COUNT, "the columns from ATT_SUMMARY_Y on are spatial");

static att_status run_summary(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    cuda_each_row(dims[0] * call->problem->group, dims[1],
                  summary_row{(const float *)call->in[0], (float *)call->out[0], (int)dims[1],
                              ATT_ATTRS(call->problem, attention_summary)->prefix});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(attention_summary, run_summary);

/* --- step_norms --------------------------------------------------------------------------------------------------- */

enum { BEFORE, AFTER, BRANCH, ADDED, STEP_INPUTS };

/* Rows are pieces of samples; their sums of squares are added in order. */
struct step_piece {
    cuda_value in[STEP_INPUTS];
    float *sums; /* [samples, pieces, 4] */
    int64_t elements, pieces, of_piece;
    template <class Team> __device__ void operator()(int64_t piece, Team team) const
    {
        int64_t sample = piece / pieces, begin = piece % pieces * of_piece;
        int64_t end = begin + of_piece < elements ? begin + of_piece : elements;
        float sum[4] = {};
        for (int64_t i = begin + team.first(); i < end; i += team.step) {
            int64_t e = sample * elements + i;
            float x = load(in[BEFORE], e), change = load(in[AFTER], e) - x;
            float f = in[BRANCH].data ? load(in[BRANCH], e) : change, added = in[ADDED].data ? load(in[ADDED], e) : f;
            sum[0] = fmaf(x, x, sum[0]);
            sum[1] = fmaf(change, change, sum[1]);
            sum[2] = fmaf(f, f, sum[2]);
            sum[3] = fmaf(added, added, sum[3]);
        }
        for (int i = 0; i < 4; i++) {
            float total = team.sum(sum[i]);
            if (team.first() == 0)
                sums[piece * 4 + i] = total;
        }
    }
};

struct step_finish {
    const float *sums;
    float *norms;
    int64_t pieces;
    __device__ void operator()(int64_t e) const
    {
        float sum = 0;
        for (int64_t piece = 0; piece < pieces; piece++)
            sum += sums[(e / 4 * pieces + piece) * 4 + e % 4];
        norms[e] = sqrtf(sum);
    }
};

static int64_t step_pieces(int64_t elements)
{
    enum { OF_PIECE = 8192 };
    return (elements + OF_PIECE - 1) / OF_PIECE;
}

static att_status prepare_steps(const att_problem *problem, att_prepared *prepared)
{
    int64_t pieces = step_pieces(att_shape_count(problem->in[BEFORE].shape));
    prepared->scratch_bytes = (size_t)(problem->group * pieces * 4) * sizeof(float);
    return ATT_OK;
}

static att_status run_steps(const att_call *call)
{
    int64_t elements = att_shape_count(call->problem->in[BEFORE].shape), pieces = step_pieces(elements);
    step_piece piece = {{}, (float *)call->scratch, elements, pieces, (elements + pieces - 1) / pieces};
    for (int i = 0; i < STEP_INPUTS; i++)
        piece.in[i] = cuda_in(call, i);
    cuda_each_row(call->problem->group * pieces, CUDA_WARP_COLUMNS + 1, piece);
    att_cuda_each(call->problem->group * 4, step_finish{piece.sums, (float *)call->out[0], pieces});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(step_norms, prepare_steps, run_steps, nullptr);

/* --- residual_norms ----------------------------------------------------------------------------------------------- */

/* For each of x and x - centre: the largest sum of a column, that of a row, and the sum of squares. */
enum { RESIDUAL_NORMS = 3, RESIDUAL_ALL = 2 * RESIDUAL_NORMS };

struct residual_scratch {
    float *centre;  /* [samples, C] */
    float *columns; /* [samples, C, 4]: sums of |x| and of squares of a column, of both */
    float *rows;    /* [samples, N, 2]: sums of |x| of a row */
};

static residual_scratch divide_residual(const att_problem *problem, float *scratch)
{
    int64_t columns = problem->in[0].shape.dims[1];
    float *sums = scratch + problem->group * columns;
    return {scratch, sums, sums + problem->group * columns * 4};
}

/* A thread for each column of each sample: neighbours read neighbouring elements. */
struct residual_column {
    cuda_value x;
    residual_scratch to;
    int64_t tokens, columns;
    bool median;
    __device__ void operator()(int64_t number) const
    {
        int64_t begin = number / columns * tokens * columns + number % columns;
        float centre = median ? to.centre[number] : mean_at(begin), sums[4] = {};
        for (int64_t row = 0; row < tokens; row++) {
            float value = load(x, begin + row * columns), rest = value - centre;
            sums[0] += fabsf(value);
            sums[1] = fmaf(value, value, sums[1]);
            sums[2] += fabsf(rest);
            sums[3] = fmaf(rest, rest, sums[3]);
        }
        to.centre[number] = centre;
        for (int i = 0; i < 4; i++)
            to.columns[number * 4 + i] = sums[i];
    }
    __device__ float mean_at(int64_t begin) const
    {
        float sum = 0;
        for (int64_t row = 0; row < tokens; row++)
            sum += load(x, begin + row * columns);
        return sum / tokens;
    }
};

/* Bits of a float in the order of numbers. */
__device__ static uint32_t ordered_bits(float value)
{
    uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ static float from_ordered_bits(uint32_t bits)
{
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

/* Finds medians bit by bit: the k-th smallest number is the largest of which at most k are smaller. */
struct residual_median {
    cuda_value x;
    float *centre;
    int64_t tokens, columns;
    __device__ void operator()(int64_t number) const
    {
        int64_t begin = number / columns * tokens * columns + number % columns;
        centre[number] = (smallest(begin, (tokens - 1) / 2) + smallest(begin, tokens / 2)) / 2;
    }
    __device__ float smallest(int64_t begin, int64_t k) const
    {
        uint32_t found = 0;
        for (int bit = 31; bit >= 0; bit--) {
            uint32_t candidate = found | 1u << bit;
            int64_t smaller = 0;
            for (int64_t row = 0; row < tokens; row++)
                smaller += ordered_bits(load(x, begin + row * columns)) < candidate;
            if (smaller <= k)
                found = candidate;
        }
        return from_ordered_bits(found);
    }
};

/* Rows are tokens. */
struct residual_row {
    cuda_value x;
    residual_scratch to;
    int64_t tokens, columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const float *centre = to.centre + row / tokens * columns;
        float sum = 0, rest = 0;
        for (int64_t c = team.first(); c < columns; c += team.step) {
            float value = load(x, row * columns + c);
            sum += fabsf(value);
            rest += fabsf(value - centre[c]);
        }
        sum = team.sum(sum), rest = team.sum(rest);
        if (team.first() == 0)
            to.rows[2 * row] = sum, to.rows[2 * row + 1] = rest;
    }
};

/* Rows are samples. */
struct residual_finish {
    residual_scratch from;
    float *norms;
    int64_t tokens, columns;
    template <class Team> __device__ void operator()(int64_t sample, Team team) const
    {
        for (int of = 0; of < 2; of++) {
            float column = 0, row = 0, squares = 0;
            for (int64_t c = team.first(); c < columns; c += team.step) {
                const float *sums = from.columns + (sample * columns + c) * 4 + 2 * of;
                column = fmaxf(column, sums[0]);
                squares += sums[1];
            }
            for (int64_t i = team.first(); i < tokens; i += team.step)
                row = fmaxf(row, from.rows[(sample * tokens + i) * 2 + of]);
            column = team.max(column), row = team.max(row), squares = team.sum(squares);
            if (team.first() > 0)
                continue;
            float *to = norms + sample * RESIDUAL_ALL + of * RESIDUAL_NORMS;
            to[0] = column, to[1] = row, to[2] = sqrtf(squares);
        }
    }
};

static att_status prepare_residual(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(problem->group * (5 * dims[1] + 2 * dims[0])) * sizeof(float);
    return ATT_OK;
}

static att_status run_residual(const att_call *call)
{
    int64_t tokens = call->problem->in[0].shape.dims[0], columns = call->problem->in[0].shape.dims[1];
    int64_t samples = call->problem->group;
    bool median = ATT_ATTRS(call->problem, centre)->median;
    cuda_value x = cuda_in(call, 0);
    residual_scratch s = divide_residual(call->problem, (float *)call->scratch);
    if (median)
        att_cuda_each(samples * columns, residual_median{x, s.centre, tokens, columns});
    att_cuda_each(samples * columns, residual_column{x, s, tokens, columns, median});
    cuda_each_row(samples * tokens, columns, residual_row{x, s, tokens, columns});
    cuda_each_row(samples, CUDA_WARP_COLUMNS + 1, residual_finish{s, (float *)call->out[0], tokens, columns});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(residual_norms, prepare_residual, run_residual, nullptr);

/* --- map_statistic ------------------------------------------------------------------------------------------------ */

/* A row of a map, shared by a team. Reads weights below 0 as 0. */
template <class Team> struct map_row {
    const float *row;
    int keys;
    double parameter;
    Team team;
    int largest; /* the first key of the largest weight */
    double most; /* that weight */
    bool finite; /* all weights are */

    __device__ double weight(int j) const
    {
        return fmax(0.0, (double)row[j]);
    }
    template <class F> __device__ double sum(F f) const
    {
        double total = 0;
        for (int j = team.first(); j < keys; j += team.step)
            total += f(j);
        return team.sum(total);
    }
    __device__ void find_largest()
    {
        float high = 0;
        double total = 0;
        for (int j = team.first(); j < keys; j += team.step) {
            high = fmaxf(high, row[j]);
            total += row[j];
        }
        high = team.max(high);
        int first = keys;
        for (int j = team.first(); j < keys; j += team.step)
            if (fmaxf(0, row[j]) == high && j < first)
                first = j;
        largest = (int)-team.max((float)-first);
        most = high;
        finite = isfinite(team.sum(total));
    }
    __device__ double density() const
    {
        const double least = parameter * (1 + ATT_MAP_DENSITY_MARGIN) / keys;
        return sum([&](int j) { return weight(j) > least ? 1.0 : 0.0; }) / keys;
    }
    /* The root of sum_j a_j / (a_j - x) between the two largest weights. */
    __device__ double spectral() const
    {
        float second = 0;
        for (int j = team.first(); j < keys; j += team.step)
            second = j == largest ? second : fmaxf(second, row[j]);
        double low = team.max(second), high = most;
        for (;;) {
            double middle = low + (high - low) / 2;
            if (!(middle > low && middle < high))
                return low;
            if (sum([&](int j) { return weight(j) / (weight(j) - middle); }) < 0)
                low = middle;
            else
                high = middle;
        }
    }
    __device__ static double entropy_of(double p)
    {
        return p > 0 ? -p * log(p) : 0;
    }
    __device__ double grown(int j, double factor) const
    {
        double a = weight(j), change = (j == largest) - a;
        return a * exp(factor * (change - (1 - most)));
    }
    /* H(a) - H(b) with b = softmax(ln a + factor (e_k - a)). */
    __device__ double lost(double factor) const
    {
        double total = sum([&](int j) { return grown(j, factor); });
        double change = sum([&](int j) { return entropy_of(weight(j)) - entropy_of(grown(j, factor) / total); });
        return total > 0 ? change : 0;
    }
    __device__ double step_length() const
    {
        double rest = sum([&](int j) { return j == largest ? 0 : weight(j); });
        double squares = sum([&](int j) { return j == largest ? 0 : weight(j) * weight(j); });
        double length = sqrt(rest * rest + squares);
        return length > 0 ? lost(parameter / length) : 0;
    }
    __device__ double statistic(int kind) const
    {
        if (!finite)
            return NAN;
        switch (kind) {
        case ATT_MAP_DENSITY:
            return density();
        case ATT_MAP_SPECTRAL:
            return spectral();
        case ATT_MAP_STEP_LENGTH:
            return step_length();
        default:
            return lost(parameter * most);
        }
    }
};

struct map_statistic_row {
    const float *map;
    double *of_rows;
    int keys, kind;
    double parameter;
    template <class Team> __device__ void operator()(int64_t index, Team team) const
    {
        map_row<Team> row = {map + index * keys, keys, parameter, team, 0, 0, true};
        row.find_largest();
        double value = row.statistic(kind);
        if (team.first() == 0)
            of_rows[index] = value;
    }
};

struct map_statistic_mean {
    const double *of_rows;
    float *means;
    int64_t queries;
    __device__ void operator()(int64_t head) const
    {
        double sum = 0;
        for (int64_t i = 0; i < queries; i++)
            sum += of_rows[head * queries + i];
        means[head] = (float)(sum / queries);
    }
};

static att_status prepare_map_statistic(const att_problem *problem, att_prepared *prepared)
{
    int64_t keys = problem->in[0].shape.dims[2];
    prepared->scratch_bytes = (size_t)(att_problem_count(problem, &problem->in[0]) / keys) * sizeof(double);
    return ATT_OK;
}

static att_status run_map_statistic(const att_call *call)
{
    const att_map_statistic_attrs *attrs = ATT_ATTRS(call->problem, map_statistic);
    const int64_t *dims = call->problem->in[0].shape.dims;
    int64_t rows = att_cuda_rows(call, 0);
    double *of_rows = (double *)call->scratch;
    cuda_each_row(
        rows, dims[2],
        map_statistic_row{(const float *)call->in[0], of_rows, (int)dims[2], (int)attrs->kind, attrs->parameter});
    att_cuda_each(rows / dims[1], map_statistic_mean{of_rows, (float *)call->out[0], dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(map_statistic, prepare_map_statistic, run_map_statistic, nullptr);
