#include "engine/ops/attention_summary.h"
#include "base/core/simd.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/attention.h"

/* Statistic `stat` of rows [row, row + VW), of which `count` exist; 0 in the other lanes. */
ATT_INLINE vf stat_of(const float *rows, int64_t count, int stat)
{
    float lane[VW] = {0};
    for (int64_t i = 0; i < count; i++)
        lane[i] = rows[i * ATT_STAT_COUNT + stat];
    return v_load(lane);
}

/* 1 for VW queries on the grid, from number `first` of a head on; 0 for prefix queries, and in lanes from `count` on.
 */
ATT_INLINE vf spatial_of(int64_t first, int64_t count, int64_t prefix)
{
    float lane[VW];
    for (int64_t i = 0; i < VW; i++)
        lane[i] = i < count && first + i >= prefix;
    return v_load(lane);
}

/* 1 / the mass on the grid for queries on the grid; 0 without such mass, and for other queries. */
ATT_INLINE vf share_of(const float *rows, int64_t count, vf spatial)
{
    vf mass = 1 - stat_of(rows, count, ATT_STAT_PREFIX);
    return v_where(mass > v_set((float)ATT_SUMMARY_LEAST_MASS), spatial / mass);
}

/* Norms of diag(a) - a a' of VW rows, as the reference kernel computes them. */
typedef struct jacobian_norms {
    vf nuclear, frobenius;
} jacobian_norms;

ATT_INLINE jacobian_norms norms_of(const float *rows, int64_t count)
{
    vf p = stat_of(rows, count, ATT_STAT_MAX), others = stat_of(rows, count, ATT_STAT_OTHERS);
    vf others2 = stat_of(rows, count, ATT_STAT_OTHERS2), others3 = stat_of(rows, count, ATT_STAT_OTHERS3);
    vf square = p * p * v_fma(others, others, 2 * others2) + (others2 - 2 * others3) + others2 * others2;
    return (jacobian_norms){v_fma(2 * p, others, others * others - others2), v_sqrt(square)};
}

/* Adds VW rows to the sums. Queries below `prefix` do not count for distances and shifts; lanes from `count` on are 0.
 */
ATT_INLINE void add_rows(const float *rows, int64_t first, int64_t count, int64_t prefix, vf *sum)
{
    jacobian_norms norms = norms_of(rows, count);
    vf mass_prefix = stat_of(rows, count, ATT_STAT_PREFIX), mass_self = stat_of(rows, count, ATT_STAT_SELF);
    vf spatial = spatial_of(first, count, prefix), distance = stat_of(rows, count, ATT_STAT_DISTANCE) * spatial;
    vf others = 1 - mass_prefix - mass_self, least = v_set((float)ATT_SUMMARY_LEAST_MASS);
    vf share = share_of(rows, count, spatial);
    sum[ATT_SUMMARY_ENTROPY] += stat_of(rows, count, ATT_STAT_ENTROPY);
    sum[ATT_SUMMARY_NUCLEAR] += norms.nuclear;
    sum[ATT_SUMMARY_FROBENIUS] += norms.frobenius;
    sum[ATT_SUMMARY_PREFIX] += mass_prefix;
    sum[ATT_SUMMARY_SELF] += mass_self;
    sum[ATT_SUMMARY_MAX] += stat_of(rows, count, ATT_STAT_MAX);
    sum[ATT_SUMMARY_DISTANCE] += distance;
    sum[ATT_SUMMARY_DISTANCE_OTHERS] += v_where(others > least, distance / others);
    for (int moment = 0; moment <= ATT_STAT_YX - ATT_STAT_Y; moment++)
        sum[ATT_SUMMARY_Y + moment] += share * stat_of(rows, count, ATT_STAT_Y + moment);
}

/* Sums over queries of the differences of a mean shift from the mean (y, x) of all of them, and of their products. */
enum { DIFFERENCE_Y, DIFFERENCE_X, DIFFERENCE_YY, DIFFERENCE_XX, DIFFERENCE_YX, DIFFERENCES };

ATT_INLINE void add_differences(const float *rows, int64_t first, int64_t count, int64_t prefix, const float *mean,
                                vf *sum)
{
    vf spatial = spatial_of(first, count, prefix), share = share_of(rows, count, spatial);
    vf y = share * stat_of(rows, count, ATT_STAT_Y) - mean[ATT_SUMMARY_Y] * spatial;
    vf x = share * stat_of(rows, count, ATT_STAT_X) - mean[ATT_SUMMARY_X] * spatial;
    sum[DIFFERENCE_Y] += y;
    sum[DIFFERENCE_X] += x;
    sum[DIFFERENCE_YY] = v_fma(y, y, sum[DIFFERENCE_YY]);
    sum[DIFFERENCE_XX] = v_fma(x, x, sum[DIFFERENCE_XX]);
    sum[DIFFERENCE_YX] = v_fma(y, x, sum[DIFFERENCE_YX]);
}

static float not_below_0(float variance)
{
    return variance < 0 ? 0 : variance;
}

/* Sets the variances and the covariance of the mean shifts. out: holds their means, whose rounding errors are the means
 * of the differences. */
static void put_between(const float *stats, int64_t tokens, int64_t prefix, float *out)
{
    vf sum[DIFFERENCES] = {{0}};
    float mean[DIFFERENCES];
    int64_t first = 0;
    for (; first + VW <= tokens; first += VW)
        add_differences(stats + first * ATT_STAT_COUNT, first, VW, prefix, out, sum);
    if (first < tokens)
        add_differences(stats + first * ATT_STAT_COUNT, first, tokens - first, prefix, out, sum);
    for (int s = 0; s < DIFFERENCES; s++)
        mean[s] = tokens > prefix ? v_sum(sum[s]) / (float)(tokens - prefix) : 0;
    out[ATT_SUMMARY_BETWEEN_YY] = not_below_0(mean[DIFFERENCE_YY] - mean[DIFFERENCE_Y] * mean[DIFFERENCE_Y]);
    out[ATT_SUMMARY_BETWEEN_XX] = not_below_0(mean[DIFFERENCE_XX] - mean[DIFFERENCE_X] * mean[DIFFERENCE_X]);
    out[ATT_SUMMARY_BETWEEN_YX] = mean[DIFFERENCE_YX] - mean[DIFFERENCE_Y] * mean[DIFFERENCE_X];
}

static void summarise(const float *stats, int64_t tokens, int64_t prefix, float *out)
{
    vf sum[ATT_SUMMARY_COUNT] = {{0}};
    int64_t first = 0;
    for (; first + VW <= tokens; first += VW)
        add_rows(stats + first * ATT_STAT_COUNT, first, VW, prefix, sum);
    if (first < tokens)
        add_rows(stats + first * ATT_STAT_COUNT, first, tokens - first, prefix, sum);
    for (int s = 0; s < ATT_SUMMARY_COUNT; s++) {
        int64_t count = att_summary_is_spatial(s) ? tokens - prefix : tokens;
        out[s] = count > 0 ? v_sum(sum[s]) / (float)count : 0;
    }
    put_between(stats, tokens, prefix, out);
}

/* Parts share the heads of all samples. */
static att_status attention_summary_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t heads = problem->in[0].shape.dims[0], tokens = problem->in[0].shape.dims[1];
    att_range part = att_part_of(call, heads * problem->group, 1);
    for (int64_t head = part.begin; head < part.end; head++)
        summarise((const float *)call->in[0] + head * tokens * ATT_STAT_COUNT, tokens,
                  ATT_ATTRS(problem, attention_summary)->prefix, (float *)call->out[0] + head * ATT_SUMMARY_COUNT);
    return ATT_OK;
}

ATT_SIMD_KERNEL(attention_summary, .run = attention_summary_run);
