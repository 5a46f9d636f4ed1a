#include "lab/report/correlations.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"

/* The runs over which a correlation is computed: all, those of a model, or those of a setting. */
typedef struct scope {
    const char *model, *setting;
} scope;

/* The runs of a scope that have both figures of a pair. */
typedef struct points {
    int count, settings;
    double x[ATT_SWEEP_MOST_RUNS], y[ATT_SWEEP_MOST_RUNS];
    int setting[ATT_SWEEP_MOST_RUNS]; /* the number of the run's setting, 0..settings-1 */
    const char *names[ATT_SWEEP_MOST_RUNS];
} points;

static bool is_in(const scope *of, const att_correlated_run *run)
{
    return (!of->model || strcmp(run->model, of->model) == 0) &&
           (!of->setting || strcmp(run->setting, of->setting) == 0);
}

static int number_of_setting(points *p, const char *name)
{
    int at = 0;
    while (at < p->settings && strcmp(p->names[at], name) != 0)
        at++;
    if (at == p->settings)
        p->names[p->settings++] = name;
    return at;
}

static void collect(const att_correlations *c, const scope *of, const att_sweep_pair *pair, points *p)
{
    p->count = p->settings = 0;
    for (int i = 0; i < c->run_count; i++) {
        double x = c->value(c->user, i, pair->x), y = c->value(c->user, i, pair->y);
        if (!is_in(of, &c->runs[i]) || !isfinite(x) || !isfinite(y))
            continue;
        p->x[p->count] = x;
        p->y[p->count] = y;
        p->setting[p->count++] = number_of_setting(p, c->runs[i].setting);
    }
}

/* Correlates the means of the settings, each of which counts once. */
static att_status correlate_means(const att_correlations *c, const points *p, att_correlation *means)
{
    double x[ATT_SWEEP_MOST_RUNS], y[ATT_SWEEP_MOST_RUNS];
    for (int s = 0; s < p->settings; s++) {
        int runs = 0;
        x[s] = y[s] = 0;
        for (int i = 0; i < p->count; i++)
            if (p->setting[i] == s) {
                x[s] += p->x[i];
                y[s] += p->y[i];
                runs++;
            }
        x[s] /= runs;
        y[s] /= runs;
    }
    return att_correlate(c->arena->context, x, y, NULL, p->settings, c->seed, means);
}

static att_status add(att_correlations *c, const scope *of, const att_sweep_pair *pair, points *p)
{
    collect(c, of, pair, p);
    if (p->count == 0)
        return ATT_OK;
    att_sweep_correlation *item = &c->items[c->count++];
    *item = (att_sweep_correlation){.of = *pair, .setting = of->setting, .model = of->model};
    ATT_TRY(
        att_correlate(c->arena->context, p->x, p->y, of->setting ? NULL : p->setting, p->count, c->seed, &item->runs));
    return of->setting ? ATT_OK : correlate_means(c, p, &item->means);
}

/* --- correction of p ---------------------------------------------------------------------------------------------- */

static bool same_points(const points *a, const points *b)
{
    if (a->count != b->count)
        return false;
    size_t bytes = (size_t)a->count * sizeof *a->x;
    return memcmp(a->x, b->x, bytes) == 0 && memcmp(a->y, b->y, bytes) == 0;
}

/* Returns the first pair with the points of pair `index`: the same test under another name. */
static int first_alike(const att_correlations *c, const scope *of, int index, points *scratch)
{
    collect(c, of, &c->pairs[index], &scratch[0]);
    for (int i = 0; i < index; i++) {
        collect(c, of, &c->pairs[i], &scratch[1]);
        if (same_points(&scratch[0], &scratch[1]))
            return i;
    }
    return index;
}

enum { TESTS = 4 }; /* tau and rho, of runs and of means */

static att_rank_correlation *test_of(att_sweep_correlation *item, int test)
{
    att_correlation *of = test < 2 ? &item->runs : &item->means;
    return test % 2 == 0 ? &of->kendall : &of->spearman;
}

/* Corrects the p of the items of one scope, which begin at `first`. alike[i]: the first pair with the points of pair
 * i; pair_of[k]: the pair of item first + k. */
static void correct(att_correlations *c, int first, const int *alike, const int *pair_of)
{
    double p[ATT_SWEEP_MOST_PAIRS], adjusted[ATT_SWEEP_MOST_PAIRS];
    for (int test = 0; test < TESTS; test++) {
        for (int i = 0; i < c->pair_count; i++)
            p[i] = NAN;
        for (int k = first; k < c->count; k++)
            p[alike[pair_of[k - first]]] = test_of(&c->items[k], test)->p;
        att_holm(p, c->pair_count, adjusted);
        for (int k = first; k < c->count; k++)
            test_of(&c->items[k], test)->adjusted_p = adjusted[alike[pair_of[k - first]]];
    }
}

static att_status add_scope(att_correlations *c, const scope *of, points *scratch)
{
    int first = c->count, alike[ATT_SWEEP_MOST_PAIRS], pair_of[ATT_SWEEP_MOST_PAIRS];
    for (int i = 0; i < c->pair_count; i++) {
        pair_of[c->count - first] = i;
        ATT_TRY(add(c, of, &c->pairs[i], scratch));
        alike[i] = first_alike(c, of, i, scratch);
    }
    correct(c, first, alike, pair_of);
    return ATT_OK;
}

/* --- scopes ------------------------------------------------------------------------------------------------------- */

/* Whether no earlier run has the text of run `index`: its setting or its model. */
static bool is_new(const att_correlations *c, int index, bool model)
{
    for (int i = 0; i < index; i++)
        if (model ? strcmp(c->runs[i].model, c->runs[index].model) == 0
                  : strcmp(c->runs[i].setting, c->runs[index].setting) == 0)
            return false;
    return true;
}

static int count_distinct(const att_correlations *c, bool model)
{
    int distinct = 0;
    for (int i = 0; i < c->run_count; i++)
        distinct += is_new(c, i, model);
    return distinct;
}

/* Whether the runs of the model have different settings. */
static bool has_settings(const att_correlations *c, int index)
{
    for (int i = 0; i < c->run_count; i++)
        if (strcmp(c->runs[i].model, c->runs[index].model) == 0 &&
            strcmp(c->runs[i].setting, c->runs[index].setting) != 0)
            return true;
    return false;
}

static att_status add_scopes(att_correlations *c, points *scratch)
{
    const scope all = {NULL, NULL};
    bool several_models = count_distinct(c, true) > 1, several_settings = count_distinct(c, false) > 1;
    ATT_TRY(add_scope(c, &all, scratch));
    for (int i = 0; several_models && i < c->run_count; i++) {
        const scope within = {.model = c->runs[i].model};
        if (*within.model && is_new(c, i, true) && has_settings(c, i))
            ATT_TRY(add_scope(c, &within, scratch));
    }
    for (int i = 0; several_settings && i < c->run_count; i++) {
        const scope within = {.setting = c->runs[i].setting};
        if (is_new(c, i, false))
            ATT_TRY(add_scope(c, &within, scratch));
    }
    return ATT_OK;
}

att_status att_correlations_make(att_correlations *c)
{
    size_t most = (size_t)c->pair_count * (size_t)(1 + count_distinct(c, true) + count_distinct(c, false));
    c->count = 0;
    c->items = att_arena_allocate(c->arena, (most + 1) * sizeof *c->items);
    points *scratch = att_allocate_array(c->arena->context, 2, sizeof *scratch);
    att_status status = c->items && scratch
                            ? add_scopes(c, scratch)
                            : att_fail_memory(c->arena->context, most * sizeof *c->items, "rank correlations");
    att_free(c->arena->context, scratch);
    return status;
}
