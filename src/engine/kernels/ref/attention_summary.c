#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"

static double stat_of(const att_call *call, int64_t row, att_attention_stat stat)
{
    return ref_in(call, 0, row * ATT_STAT_COUNT + stat);
}

/* Norms of diag(a) - a a', from the largest weight p and the sums over the others: 1 - sum a^2, and the square root of
 * sum a^2 - 2 sum a^3 + (sum a^2)^2, with 1 = p + others. All terms are positive, except for differences that are small
 * only if a larger term is beside them. */
static double nuclear(double p, double others, double others2)
{
    return 2 * p * others + (others * others - others2);
}

static double frobenius(double p, double others, double others2, double others3)
{
    return sqrt(p * p * (others * others + 2 * others2) + (others2 - 2 * others3) + others2 * others2);
}

/* 1 / the mass on the grid; 0 if there is no such mass. */
static double share_of(const att_call *call, int64_t row)
{
    double mass = 1 - stat_of(call, row, ATT_STAT_PREFIX);
    return mass > ATT_SUMMARY_LEAST_MASS ? 1 / mass : 0;
}

/* Sets the variances and the covariance of the mean shifts of the queries in rows [begin, end) of the statistics. */
static void put_between(const att_call *call, int64_t begin, int64_t end, const double *mean, double *between)
{
    double yy = 0, xx = 0, yx = 0, count = (double)(end - begin);
    for (int64_t row = begin; row < end; row++) {
        double share = share_of(call, row);
        double y = share * stat_of(call, row, ATT_STAT_Y) - mean[ATT_SUMMARY_Y];
        double x = share * stat_of(call, row, ATT_STAT_X) - mean[ATT_SUMMARY_X];
        yy += y * y, xx += x * x, yx += y * x;
    }
    between[0] = count > 0 ? yy / count : 0;
    between[1] = count > 0 ? xx / count : 0;
    between[2] = count > 0 ? yx / count : 0;
}

/* Adds one query's row to the sums. */
static void add_row(const att_call *call, int64_t row, bool spatial, double *sum)
{
    double largest = stat_of(call, row, ATT_STAT_MAX), distance = stat_of(call, row, ATT_STAT_DISTANCE);
    double weight = stat_of(call, row, ATT_STAT_OTHERS), weight2 = stat_of(call, row, ATT_STAT_OTHERS2);
    double prefix = stat_of(call, row, ATT_STAT_PREFIX), self = stat_of(call, row, ATT_STAT_SELF);
    double others = 1 - prefix - self;
    sum[ATT_SUMMARY_ENTROPY] += stat_of(call, row, ATT_STAT_ENTROPY);
    sum[ATT_SUMMARY_NUCLEAR] += nuclear(largest, weight, weight2);
    sum[ATT_SUMMARY_FROBENIUS] += frobenius(largest, weight, weight2, stat_of(call, row, ATT_STAT_OTHERS3));
    sum[ATT_SUMMARY_PREFIX] += prefix;
    sum[ATT_SUMMARY_SELF] += self;
    sum[ATT_SUMMARY_MAX] += largest;
    if (spatial) {
        sum[ATT_SUMMARY_DISTANCE] += distance;
        sum[ATT_SUMMARY_DISTANCE_OTHERS] += others > ATT_SUMMARY_LEAST_MASS ? distance / others : 0;
        for (int moment = 0; moment <= ATT_STAT_YX - ATT_STAT_Y; moment++)
            sum[ATT_SUMMARY_Y + moment] += share_of(call, row) * stat_of(call, row, ATT_STAT_Y + moment);
    }
}

static att_status run_summary(const att_call *call)
{
    int64_t heads = ref_dim(call, 0, 0), tokens = ref_dim(call, 0, 1);
    int64_t prefix = ATT_ATTRS(call->problem, attention_summary)->prefix;
    ref_range share = ref_share(call, heads * call->problem->group);
    for (int64_t head = share.begin; head < share.end; head++) {
        double mean[ATT_SUMMARY_COUNT] = {0};
        for (int64_t i = 0; i < tokens; i++)
            add_row(call, head * tokens + i, i >= prefix, mean);
        for (int s = 0; s < ATT_SUMMARY_COUNT; s++) {
            int64_t count = att_summary_is_spatial(s) ? tokens - prefix : tokens;
            mean[s] = count > 0 ? mean[s] / (double)count : 0;
        }
        put_between(call, head * tokens + prefix, (head + 1) * tokens, mean, mean + ATT_SUMMARY_BETWEEN_YY);
        for (int s = 0; s < ATT_SUMMARY_COUNT; s++)
            ref_out(call, 0, head * ATT_SUMMARY_COUNT + s, mean[s]);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention_summary = {.op = "attention_summary", .name = "ref", .run = run_summary};
