/* As the reference kernel, on a copy of the row in f64, with Newton's method in place of bisection. */
#include "engine/ops/map_statistic.h"

#include <math.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

#include <attscope/ops.h>

typedef struct row {
    double *a; /* [keys] */
    int64_t keys, largest;
    double parameter;
    double first, second; /* the two largest weights */
} row;

/* Copies a row. Returns false if a weight is not finite. */
static bool read_row(row *r, const float *from)
{
    bool finite = true;
    r->first = r->second = 0;
    r->largest = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        double a = from[j] > 0 ? (double)from[j] : 0;
        finite = finite && isfinite(from[j]);
        r->a[j] = a;
        if (a > r->first) {
            r->second = r->first, r->first = a;
            r->largest = j;
        } else if (a > r->second) {
            r->second = a;
        }
    }
    return finite;
}

static double density(const row *r)
{
    const double least = r->parameter * (1 + ATT_MAP_DENSITY_MARGIN) / (double)r->keys;
    int64_t count = 0;
    for (int64_t j = 0; j < r->keys; j++)
        count += r->a[j] > least;
    return (double)count / (double)r->keys;
}

/* --- the largest eigenvalue ---------------------------------------------------------------------------------------
 *
 * It is the root of a_1 (x - a_2) - (a_1 - x) c(x) between the two largest weights, with c(x) = sum of a_j (x - a_2) /
 * (x - a_j) over all j but the first: the condition of the header times (a_1 - x) (x - a_2). c lies between a_2 and the
 * sum of these a_j, which bounds the root. */

enum { MOST_STEPS = 100 };
#define PRECISION 1e-15

/* The function and its derivative at x. */
static void evaluate(const row *r, double x, double *value, double *slope)
{
    const double first = r->first, second = r->second;
    double c = 0, of_c = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        const double a = j == r->largest ? 0 : r->a[j], inverse = 1 / (x - a);
        c += a * inverse;
        of_c += a * (second - a) * inverse * inverse;
    }
    c *= x - second;
    *value = first * (x - second) - (first - x) * c;
    *slope = first + c - (first - x) * of_c;
}

/* The root if c(x) were `c` everywhere. */
static double root_for(const row *r, double c)
{
    return r->first * (c + r->second) / (r->first + c);
}

static double spectral(const row *r)
{
    double rest = 0;
    for (int64_t j = 0; j < r->keys; j++)
        rest += j == r->largest ? 0 : r->a[j];
    if (!(r->second > 0) || r->second == r->first)
        return r->second;
    double low = root_for(r, r->second), high = fmin(root_for(r, rest), r->first), x = high;
    for (int step = 0; step < MOST_STEPS && high - low > PRECISION * high; step++) {
        double value, slope;
        evaluate(r, x, &value, &slope);
        if (value < 0)
            low = x;
        else
            high = x;
        double next = x - value / slope;
        if (fabs(next - x) <= PRECISION * x)
            return x;
        x = next > low && next < high ? next : low + (high - low) / 2;
    }
    return x;
}

/* --- the step ----------------------------------------------------------------------------------------------------- */

/* H(a) - H(b) with b = softmax(ln a + factor (e_k - a)), where H(b) = ln z - sum_j grown_j ln(grown_j) / z. */
static double lost(const row *r, double factor)
{
    double total = 0, before = 0, after = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        const double a = r->a[j];
        if (!(a > 0))
            continue;
        const double logarithm = log(a), exponent = j == r->largest ? 0 : -factor * (1 + a - r->first);
        const double grown = a * exp(exponent);
        before -= a * logarithm;
        after -= grown * (logarithm + exponent);
        total += grown;
    }
    return total > 0 ? before - log(total) - after / total : 0;
}

static double step_length(const row *r)
{
    double rest = 0, squares = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        const double a = j == r->largest ? 0 : r->a[j];
        rest += a;
        squares += a * a;
    }
    const double length = sqrt(rest * rest + squares);
    return length > 0 ? lost(r, r->parameter / length) : 0;
}

static double step_rate(const row *r)
{
    return lost(r, r->parameter * r->first);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static att_status statistic_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)problem->in[0].shape.dims[2] * sizeof(double);
    return ATT_OK;
}

/* Parts share the heads of all samples. */
static att_status statistic_run(const att_call *call)
{
    static double (*const statistics[ATT_MAP_STATISTICS])(const row *) = {
        [ATT_MAP_DENSITY] = density,
        [ATT_MAP_SPECTRAL] = spectral,
        [ATT_MAP_STEP_LENGTH] = step_length,
        [ATT_MAP_STEP_RATE] = step_rate,
    };
    const att_map_statistic_attrs *attrs = call->problem->attrs;
    const int64_t queries = call->problem->in[0].shape.dims[1];
    row r = {.a = call->scratch, .keys = call->problem->in[0].shape.dims[2], .parameter = attrs->parameter};
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]) / queries, 1);
    for (int64_t head = part.begin; head < part.end; head++) {
        double sum = 0;
        for (int64_t i = head * queries; i < (head + 1) * queries; i++)
            sum += read_row(&r, (const float *)call->in[0] + i * r.keys) ? statistics[attrs->kind](&r) : NAN;
        ((float *)call->out[0])[head] = (float)(sum / (double)queries);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(map_statistic, .prepare = statistic_prepare, .run = statistic_run);
