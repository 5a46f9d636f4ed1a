/* kernels/cuda/attention_statistics.cuh - the outputs of attention, and the statistics of rows of the map. */
#ifndef ATT_KERNELS_CUDA_ATTENTION_STATISTICS_CUH
#define ATT_KERNELS_CUDA_ATTENTION_STATISTICS_CUH

#include "engine/kernels/cuda/attention.cuh"

enum { SHIFTS = ATT_STAT_YX - ATT_STAT_Y + 1 }; /* moments of the shift */

struct attention_outputs {
    cuda_value out;
    float *lse, *stats, *map;
};

/* Computes the outputs on tensor cores if the problem suits them; false: it does not. */
bool attention_mma(const attention_problem &p, const attention_outputs &to);
/* The same for f32 heads of at most 64 channels. */
bool attention_f32(const attention_problem &p, const attention_outputs &to);

/* Whether a query attends to key j at all. i: the query's number in the window */
__device__ __forceinline__ bool attends(const attention_problem &p, int i, int j)
{
    return j < p.keys && !(p.causal && j > i);
}

/* A thread's sums over its keys of one query, relative to the largest score of the query so far, p = e^(score -
 * largest). equal: number of scores that are the largest; smaller...: sums of powers of the others; argmax: the first
 * of the largest, INT_MAX: none. */
struct row_statistics {
    float p_log_p, equal, smaller, smaller2, smaller3, distance, prefix, shift[SHIFTS], self;
    int argmax;
};

/* The largest score became greater by -down. p: the sum before that. */
__device__ __forceinline__ void rescale(row_statistics *s, float p, float down, float factor)
{
    s->p_log_p = factor * (s->p_log_p + down * p);
    s->smaller = factor * (s->smaller + s->equal);
    s->smaller2 = factor * factor * (s->smaller2 + s->equal);
    s->smaller3 = factor * factor * factor * (s->smaller3 + s->equal);
    s->equal = 0;
    s->distance *= factor;
    s->prefix *= factor;
#pragma unroll
    for (int i = 0; i < SHIFTS; i++)
        s->shift[i] *= factor;
    s->argmax = INT_MAX;
}

/* The square root, with an error of 2 units in the last place. */
__device__ __forceinline__ float near_root(float x)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The place of a query; 0, 0 off the grid. */
struct query_place {
    float y, x;
    bool on_grid;
};

__device__ __forceinline__ query_place query_place_of(attention_token q)
{
    bool on_grid = q.y >= 0;
    return {on_grid ? (float)q.y : 0, on_grid ? (float)q.x : 0, on_grid};
}

/* Adds key `place` of a tile, which is key j; t = score - largest, p: its weight, 0 if the query does not attend to it.
 */
__device__ __forceinline__ void add_key(const attention_problem &problem, row_statistics *s, query_place q,
                                        const attention_tokens *keys, int place, int j, float t, float p)
{
    bool largest = t == 0, of_prefix = j < problem.prefix;
    float other = largest ? 0 : p, square = other * other;
    s->p_log_p = fmaf(p, fmaxf(t, -FLT_MAX), s->p_log_p);
    s->equal += p - other;
    s->smaller += other;
    s->smaller2 += square;
    s->smaller3 = fmaf(square, other, s->smaller3);
    s->argmax = largest ? min(s->argmax, keys->index[place]) : s->argmax;
    s->prefix += of_prefix ? p : 0;
    float on_grid = q.on_grid && !of_prefix ? p : 0;
    float y = keys->down[place] - q.y, x = keys->right[place] - q.x, py = on_grid * y, px = on_grid * x;
    float down = y * problem.step_h, right = x * problem.step_w;
    s->distance = fmaf(on_grid, near_root(fmaf(down, down, right * right)), s->distance);
    s->shift[0] += py;
    s->shift[1] += px;
    s->shift[2] = fmaf(py, y, s->shift[2]);
    s->shift[3] = fmaf(px, x, s->shift[3]);
    s->shift[4] = fmaf(py, x, s->shift[4]);
}

/* Writes the moments of the shifts, from sums of p times the moments about the query. grid: the weight on the grid. The
 * variances are differences of f32 numbers: their error is about 1e-7 times the square of the mean shift. */
__device__ __forceinline__ void write_shifts(const float shift[SHIFTS], float share, float grid, float *stats)
{
    float y = shift[0] * share, x = shift[1] * share, inverse = grid > 0 ? 1 / grid : 0;
    float yy = shift[2] * share - y * y * inverse, xx = shift[3] * share - x * x * inverse;
    stats[ATT_STAT_Y] = y;
    stats[ATT_STAT_X] = x;
    stats[ATT_STAT_YY] = yy < 0 ? 0 : yy;
    stats[ATT_STAT_XX] = xx < 0 ? 0 : xx;
    stats[ATT_STAT_YX] = shift[4] * share - y * x * inverse;
}

/* Writes the statistics of a query from the sums over all its keys. share: 1 / the sum of p, 0: the query has no key;
 * self: the weight of the query's own key relative to the largest */
__device__ __forceinline__ void write_statistics(const row_statistics &sum, float self, float share, float *stats)
{
    bool has_key = share != 0; /* NaN: has one */
    float equal_others = sum.equal - 1, others = equal_others + sum.smaller;
    stats[ATT_STAT_ENTROPY] = has_key ? log1pf(others) - sum.p_log_p * share : 0;
    stats[ATT_STAT_OTHERS] = has_key ? others * share : 0;
    stats[ATT_STAT_OTHERS2] = has_key ? (equal_others + sum.smaller2) * share * share : 0;
    stats[ATT_STAT_OTHERS3] = has_key ? (equal_others + sum.smaller3) * share * share * share : 0;
    stats[ATT_STAT_DISTANCE] = sum.distance * share;
    stats[ATT_STAT_PREFIX] = sum.prefix * share;
    stats[ATT_STAT_SELF] = has_key ? self * share : 0;
    stats[ATT_STAT_MAX] = share;
    stats[ATT_STAT_ARGMAX] = has_key && sum.argmax != INT_MAX ? (float)sum.argmax : 0;
    write_shifts(sum.shift, share, 1 - sum.prefix * share, stats);
}

/* The block's queries: a tile of `rows` queries of a window of a head of a sample. */
struct query_tile {
    attention_head head;
    int window, first;
};

__device__ __forceinline__ query_tile query_tile_at(const attention_problem &p, int64_t number, int rows)
{
    int tiles = (p.queries + rows - 1) / rows;
    int64_t window = number / tiles;
    return {{(int)(window / p.windows / p.heads), (int)(window / p.windows % p.heads)},
            (int)(window % p.windows),
            (int)(number % tiles) * rows};
}

#endif
