#include <attscope/lab/correlation.h>

#include <math.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/quantile.h"
#include "base/core/random.h"
#include "base/core/ranks.h"
#include "lab/report/correlations.h"

enum {
    MEASURES = 2, /* tau and rho */
    MIN_PAIRS = 3,
    MIN_GROUPS = 2, /* least numbers of pairs and groups for p */
    MIN_RESAMPLED_GROUPS = 5
};

/* The pairs (x, y) and their ranks. tau is computed from the values, rho from the ranks. The pairs of group g are
 * members[first[g]] to members[first[g + 1] - 1]. */
typedef struct pairs {
    int count, groups;
    const double *x, *y;
    double *rank_x, *rank_y;
    int *members, *first;
} pairs;

static int size_of(const pairs *o, int group)
{
    return o->first[group + 1] - o->first[group];
}

/* --- p ------------------------------------------------------------------------------------------------------------ */

typedef struct permutation_test {
    const pairs *observed;
    int *source;           /* source[g]: the group whose y group g gets */
    double *y, *rank_y;    /* permuted together */
    double size[MEASURES]; /* absolute values of the observed correlations */
    double largest[MEASURES];
    int64_t all, extreme[MEASURES], most_extreme[MEASURES]; /* permutations; at least `size`; with `largest` */
} permutation_test;

/* Tolerates rounding: equal correlations may differ in their last bits. */
static bool is_at_least(double correlation, double size)
{
    return correlation >= size * (1 - 1e-12);
}

static void count_correlation(permutation_test *p, int measure, double correlation)
{
    bool larger = !is_at_least(p->largest[measure], correlation);
    p->extreme[measure] += is_at_least(correlation, p->size[measure]);
    p->most_extreme[measure] = larger                                          ? 1
                               : is_at_least(correlation, p->largest[measure]) ? p->most_extreme[measure] + 1
                                                                               : p->most_extreme[measure];
    p->largest[measure] = larger ? correlation : p->largest[measure];
}

static void count_permutation(permutation_test *p)
{
    const pairs *o = p->observed;
    for (int g = 0; g < o->groups; g++)
        for (int k = 0; k < size_of(o, g); k++) {
            int to = o->members[o->first[g] + k], from = o->members[o->first[p->source[g]] + k];
            p->y[to] = o->y[from];
            p->rank_y[to] = o->rank_y[from];
        }
    p->all++;
    count_correlation(p, 0, fabs(att_kendall(o->x, p->y, o->count)));
    count_correlation(p, 1, fabs(att_spearman(o->rank_x, p->rank_y, o->count)));
}

static void swap(int *groups, int a, int b)
{
    int temporary = groups[a];
    groups[a] = groups[b];
    groups[b] = temporary;
}

static void try_all_permutations(permutation_test *p, int fixed)
{
    const pairs *o = p->observed;
    if (fixed == o->groups) {
        count_permutation(p);
        return;
    }
    for (int g = fixed; g < o->groups; g++) {
        if (size_of(o, g) != size_of(o, fixed))
            continue;
        swap(p->source, fixed, g);
        try_all_permutations(p, fixed + 1);
        swap(p->source, fixed, g);
    }
}

/* How many of the groups 0..last have the size of the group `last`. */
static int count_alike(const pairs *o, int last)
{
    int alike = 0;
    for (int g = 0; g <= last; g++)
        alike += size_of(o, g) == size_of(o, last);
    return alike;
}

/* Returns the group number `index` among those of 0..last that have the size of the group `last`. */
static int alike_at(const pairs *o, int last, int64_t index)
{
    for (int g = 0; g < last; g++)
        if (size_of(o, g) == size_of(o, last) && index-- == 0)
            return g;
    return last;
}

static void try_random_permutations(permutation_test *p, uint64_t seed)
{
    const pairs *o = p->observed;
    att_random random = att_random_from(att_random_key(seed, att_random_hash("permutation"), 0));
    for (int i = 0; i < ATT_CORRELATE_PERMUTATIONS; i++) {
        for (int last = o->groups - 1; last > 0; last--)
            swap(p->source, last, alike_at(o, last, att_random_below(&random, count_alike(o, last))));
        count_permutation(p);
    }
}

/* The number of permutations; more than ATT_CORRELATE_EXACT if there are too many to count. */
static int64_t count_permutations(const pairs *o)
{
    int64_t all = 1;
    for (int g = 0; g < o->groups && all <= ATT_CORRELATE_EXACT; g++)
        all *= count_alike(o, g);
    return all;
}

static void store_p(const permutation_test *p, bool exact, int measure, att_rank_correlation *correlation)
{
    double observed = exact ? 0 : 1; /* all permutations include the observed order */
    double all = (double)p->all + observed;
    correlation->p = ((double)p->extreme[measure] + observed) / all;
    correlation->least_p = exact ? (double)p->most_extreme[measure] / all : 1 / all;
}

static void permute(const pairs *o, double *scratch, int *source, uint64_t seed, att_correlation *c)
{
    permutation_test p = {.observed = o,
                          .source = source,
                          .size = {fabs(c->kendall.value), fabs(c->spearman.value)},
                          .y = scratch,
                          .rank_y = scratch + o->count};
    for (int g = 0; g < o->groups; g++)
        source[g] = g;
    c->exact = count_permutations(o) <= ATT_CORRELATE_EXACT;
    if (c->exact)
        try_all_permutations(&p, 0);
    else
        try_random_permutations(&p, seed);
    c->permutations = p.all;
    store_p(&p, c->exact, 0, &c->kendall);
    store_p(&p, c->exact, 1, &c->spearman);
}

/* --- intervals ---------------------------------------------------------------------------------------------------- */

static void interval(double *values, int count, att_rank_correlation *correlation)
{
    if (2 * count < ATT_CORRELATE_RESAMPLES)
        return;
    att_sort_ascending(values, count);
    correlation->low = att_quantile(values, count, 0.025);
    correlation->high = att_quantile(values, count, 0.975);
}

/* Fills x and y with the pairs of as many groups as there are, drawn with replacement. Returns the number of pairs. */
static int draw_groups(const pairs *o, att_random *random, double *x, double *y)
{
    int count = 0;
    for (int i = 0; i < o->groups; i++) {
        int g = (int)att_random_below(random, o->groups);
        for (int k = o->first[g]; k < o->first[g + 1]; k++) {
            x[count] = o->x[o->members[k]];
            y[count++] = o->y[o->members[k]];
        }
    }
    return count;
}

/* Largest number of pairs of draw_groups(). */
static int most_drawn(const pairs *o)
{
    int largest = 0;
    for (int g = 0; g < o->groups; g++)
        largest = size_of(o, g) > largest ? size_of(o, g) : largest;
    return o->groups * largest;
}

static void resample(const pairs *o, double *scratch, uint64_t seed, att_correlation *c)
{
    int most = most_drawn(o), valid = 0;
    double *x = scratch, *y = x + most, *rank_x = y + most, *rank_y = rank_x + most;
    double *tau = rank_y + most, *rho = tau + ATT_CORRELATE_RESAMPLES;
    att_random random = att_random_from(att_random_key(seed, att_random_hash("bootstrap"), 0));
    for (int i = 0; i < ATT_CORRELATE_RESAMPLES; i++) {
        int n = draw_groups(o, &random, x, y);
        tau[valid] = att_kendall(x, y, n);
        if (isnan(tau[valid]))
            continue;
        att_rank_twice(x, n, rank_x);
        att_rank_twice(y, n, rank_y);
        rho[valid++] = att_spearman(rank_x, rank_y, n);
    }
    c->resamples = valid;
    interval(tau, valid, &c->kendall);
    interval(rho, valid, &c->spearman);
}

/* --- together ----------------------------------------------------------------------------------------------------- */

static att_status check(att_context *context, const double *x, const double *y, int count)
{
    if (count < 0 || count > ATT_CORRELATE_MOST)
        return att_fail(context, ATT_ERR_ARGUMENT, "a correlation of %d pairs, expected 0 to %d", count,
                        (int)ATT_CORRELATE_MOST);
    for (int i = 0; i < count; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return att_fail(context, ATT_ERR_NONFINITE, "pair %d of a correlation is (%g, %g), which has no rank", i,
                            x[i], y[i]);
    return ATT_OK;
}

static bool is_first_of_group(const int *groups, int pair)
{
    for (int i = 0; groups && i < pair; i++)
        if (groups[i] == groups[pair])
            return false;
    return true;
}

/* Lists the pairs group by group, in the order in which groups begin. */
static void list_groups(pairs *o, const int *groups)
{
    int listed = 0;
    for (int i = 0; i < o->count; i++) {
        if (!is_first_of_group(groups, i))
            continue;
        o->first[o->groups++] = listed;
        for (int k = i; k < o->count; k++)
            if (k == i || (groups && groups[k] == groups[i]))
                o->members[listed++] = k;
    }
    o->first[o->groups] = listed;
}

/* indices: scratch for 3 count + 1 numbers */
static att_status correlate(att_context *context, pairs *o, const int *groups, int *indices, uint64_t seed,
                            att_correlation *c)
{
    o->members = indices;
    o->first = o->members + o->count;
    list_groups(o, groups);
    size_t n = (size_t)o->count, size = 4 * n + 4 * (size_t)most_drawn(o) + MEASURES * ATT_CORRELATE_RESAMPLES;
    double *values;
    ATT_TRY(att_new(context, &values, size, "a correlation"));
    o->rank_x = values;
    o->rank_y = values + n;
    att_rank_twice(o->x, o->count, o->rank_x);
    att_rank_twice(o->y, o->count, o->rank_y);
    c->groups = o->groups;
    c->kendall.value = att_kendall(o->x, o->y, o->count);
    c->spearman.value = att_spearman(o->rank_x, o->rank_y, o->count);
    if (o->count >= MIN_PAIRS && o->groups >= MIN_GROUPS && !isnan(c->kendall.value))
        permute(o, values + 2 * n, o->first + o->groups + 1, seed, c);
    if (o->groups >= MIN_RESAMPLED_GROUPS && !isnan(c->kendall.value))
        resample(o, values + 2 * n, seed, c);
    c->kendall.adjusted_p = c->kendall.p;
    c->spearman.adjusted_p = c->spearman.p;
    att_free(context, values);
    return ATT_OK;
}

att_status att_correlate(att_context *context, const double *x, const double *y, const int *groups, int count,
                         uint64_t seed, att_correlation *correlation)
{
    const att_rank_correlation none = {NAN, NAN, NAN, NAN, NAN, NAN};
    ATT_TRY(check(context, x, y, count));
    int *indices = att_allocate_array(context, 3 * (size_t)count + 2, sizeof *indices);
    if (!indices)
        return att_fail_memory(context, 3 * (size_t)count * sizeof *indices, "a correlation");
    pairs o = {.count = count, .x = x, .y = y};
    att_correlation c = {.count = count, .kendall = none, .spearman = none};
    att_status status = correlate(context, &o, groups, indices, seed, &c);
    att_free(context, indices);
    if (status == ATT_OK)
        *correlation = c;
    return status;
}

/* --- several tests ------------------------------------------------------------------------------------------------ */

static int count_defined(const double *p, int count)
{
    int defined = 0;
    for (int i = 0; i < count; i++)
        defined += !isnan(p[i]);
    return defined;
}

/* The index of the smallest p above p[after], or equal to it and later in the list. after -1: the smallest of all.
 * Returns -1 after the last. */
static int next_larger(const double *p, int count, int after)
{
    int next = -1;
    for (int i = 0; i < count; i++)
        if ((after < 0 || p[i] > p[after] || (p[i] == p[after] && i > after)) && !isnan(p[i]) &&
            (next < 0 || p[i] < p[next]))
            next = i;
    return next;
}

void att_holm(const double *p, int count, double *adjusted)
{
    int left = count_defined(p, count);
    double largest = 0;
    for (int i = 0; i < count; i++)
        adjusted[i] = NAN;
    for (int at = next_larger(p, count, -1); at >= 0; at = next_larger(p, count, at)) {
        largest = fmax(largest, fmin(1, left-- * p[at]));
        adjusted[at] = largest;
    }
}

static const att_correlation_method methods[] = {
    {"tau-b",
     "(C - D) / sqrt((P - X)(P - Y)): of the P = n (n - 1) / 2 pairs of points C are concordant, D discordant, X tied "
     "in x, Y in y",
     "Kendall, Biometrika 1945"},
    {"rho", "Pearson's correlation of the ranks; ties have their mean rank", "Spearman 1904"},
    {"p",
     "runs of one setting are not exchangeable with those of another: fraction of the permutations of whole settings "
     "(within a setting: of runs) whose |correlation| is at least the observed one. Settings change places with those "
     "that have as many runs. All permutations up to 8! of them, else (1 + k) / (1 + 10,000) if k of 10,000 random "
     "ones qualify",
     "Winkler et al., NeuroImage 2015; Phipson and Smyth 2010"},
    {"Holm",
     "p corrected for the m correlations of the same runs (readings, pairs of figures), tau-b and rho each on their "
     "own: max over j <= i of min(1, (m - j + 1) p(j)), p(1) <= ... <= p(m). Readings that agree on all runs count "
     "once",
     "Holm, Scandinavian Journal of Statistics 1979"},
    {"interval",
     "percentiles 2.5 and 97.5 of 2,000 resamples of whole settings (within a setting: of runs) with replacement; none "
     "for fewer than 5",
     "Efron 1979; Davison and Hinkley 1997"}};

int att_correlation_method_count(void)
{
    return sizeof methods / sizeof *methods;
}

att_correlation_method att_correlation_method_at(int index)
{
    return methods[index];
}
