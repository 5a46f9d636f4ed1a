#include "engine/ops/map_statistic.h"

#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

#include <attscope/ops.h>

/* A row of a map, and the sum and place of its weights. */
typedef struct row {
    const att_call *call;
    int64_t first, keys, largest; /* largest: the first key of the largest weight */
    double parameter, sum;
} row;

static double weight(const row *r, int64_t j)
{
    return fmax(0, ref_in(r->call, 0, r->first + j));
}

static row row_at(const att_call *call, int64_t index)
{
    const att_map_statistic_attrs *attrs = call->problem->attrs;
    row r = {.call = call, .keys = ref_dim(call, 0, 2), .parameter = attrs->parameter};
    r.first = index * r.keys;
    for (int64_t j = 0; j < r.keys; j++) {
        r.sum += ref_in(call, 0, r.first + j);
        r.largest = weight(&r, j) > weight(&r, r.largest) ? j : r.largest;
    }
    return r;
}

static double density(const row *r)
{
    const double least = r->parameter * (1 + ATT_MAP_DENSITY_MARGIN) / (double)r->keys;
    int64_t count = 0;
    for (int64_t j = 0; j < r->keys; j++)
        count += weight(r, j) > least;
    return (double)count / (double)r->keys;
}

/* sum_j a_j / (a_j - x), which rises from minus infinity to infinity between the two largest weights. */
static double secular(const row *r, double x)
{
    double sum = 0;
    for (int64_t j = 0; j < r->keys; j++)
        sum += weight(r, j) / (weight(r, j) - x);
    return sum;
}

static double spectral(const row *r)
{
    double high = weight(r, r->largest), low = 0;
    for (int64_t j = 0; j < r->keys; j++)
        low = j == r->largest ? low : fmax(low, weight(r, j));
    for (;;) {
        double middle = low + (high - low) / 2;
        if (!(middle > low && middle < high))
            return low;
        if (secular(r, middle) < 0)
            low = middle;
        else
            high = middle;
    }
}

/* -p ln p; 0 at 0 */
static double entropy_of(double p)
{
    return p > 0 ? -p * log(p) : 0;
}

/* H(a) - H(b) with b = softmax(ln a + factor (e_k - a)). */
static double lost(const row *r, double factor)
{
    double total = 0, before = 0, after = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < r->keys; j++) {
            double a = weight(r, j), change = (j == r->largest) - a, most = 1 - weight(r, r->largest);
            double grown = a * exp(factor * (change - most));
            if (pass == 0) {
                total += grown;
            } else {
                before += entropy_of(a);
                after += entropy_of(grown / total);
            }
        }
    return total > 0 ? before - after : 0;
}

static double step_length(const row *r)
{
    double rest = 0, squares = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        double a = j == r->largest ? 0 : weight(r, j);
        rest += a, squares += a * a;
    }
    double length = sqrt(rest * rest + squares);
    return length > 0 ? lost(r, r->parameter / length) : 0;
}

static double step_rate(const row *r)
{
    return lost(r, r->parameter * weight(r, r->largest));
}

static att_status run_statistic(const att_call *call)
{
    static double (*const statistics[ATT_MAP_STATISTICS])(const row *) = {
        [ATT_MAP_DENSITY] = density,
        [ATT_MAP_SPECTRAL] = spectral,
        [ATT_MAP_STEP_LENGTH] = step_length,
        [ATT_MAP_STEP_RATE] = step_rate,
    };
    const att_map_statistic_attrs *attrs = call->problem->attrs;
    const int64_t queries = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, ref_rows(call, 0) / queries);
    for (int64_t head = share.begin; head < share.end; head++) {
        double sum = 0;
        for (int64_t i = 0; i < queries; i++) {
            row r = row_at(call, head * queries + i);
            sum += isfinite(r.sum) ? statistics[attrs->kind](&r) : NAN;
        }
        ref_out(call, 0, head, sum / (double)queries);
    }
    return ATT_OK;
}

const att_kernel att_ref_map_statistic = {.op = "map_statistic", .name = "ref", .run = run_statistic};
