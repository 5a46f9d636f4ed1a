/* Rank correlations of the changes of the loss with figures of instruments. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/ranks.h"
#include "lab/report/correlations.h"
#include "lab/runs/ablation/ablation.h"

enum { LEAST = 5, SEED = 42 };

/* Whether both scopes lie in the same block: they are equal up to the last dot. */
static bool share_block(const char *node, const char *scope)
{
    const char *dot = strrchr(scope, '.');
    return dot && strncmp(node, scope, (size_t)(dot - scope) + 1) == 0;
}

/* Whether the figure is that of the part: of the head; of the addition of the branch; or of the attention or the gate
 * in the branch's block. Attention belongs to branches with attention. */
static bool belongs(const att_ablation *a, const att_ablated_part *part, const att_measurement *m)
{
    const att_cut cut = *part->cuts;
    if (part->count > 1 || cut.kind == ATT_ABLATED_TOKENS)
        return false;
    if (cut.kind == ATT_ABLATED_HEADS)
        return m->head == cut.head && strcmp(m->node, att_explorer_layer_at(a->explorer, cut.part).scope) == 0;
    const att_explorer_branch branch = att_explorer_branch_at(a->explorer, cut.part);
    if (m->head >= 0)
        return false;
    if (strcmp(m->instrument, "nsi") == 0)
        return strcmp(m->node, branch.scope) == 0;
    return share_block(m->node, branch.scope) &&
           (strcmp(m->instrument, "gate") == 0 || strcmp(branch.content, "attention") == 0);
}

/* Of the statistics of gates only the mean is a figure of a block. */
static bool is_correlated(const att_measurement *m)
{
    return strcmp(m->instrument, "gate") != 0 || strcmp(m->statistic, "mean") == 0;
}

static att_ablated_figure *find(att_ablation *a, att_ablated kind, const char *name)
{
    for (int f = 0; f < a->figure_count; f++)
        if (a->figures[f].kind == kind && strcmp(a->figures[f].name, name) == 0)
            return &a->figures[f];
    return NULL;
}

static att_status add(att_ablation *a, att_ablated kind, const char *name, att_ablated_figure **added)
{
    double *values = att_arena_allocate(&a->arena, (size_t)att_ablation_count(a) * sizeof *values);
    if (!values || !att_list_grow(a->context, &a->figures, a->figure_count, &a->figure_room, sizeof *a->figures))
        return att_fail_memory(a->context, sizeof *a->figures, "the correlations of an ablation");
    for (int p = 0; p < att_ablation_count(a); p++)
        values[p] = NAN;
    *added = &a->figures[a->figure_count++];
    **added = (att_ablated_figure){.kind = kind, .values = values};
    snprintf((*added)->name, sizeof(*added)->name, "%s", name);
    return ATT_OK;
}

/* Gives the figure to the parts that it belongs to; the first of a block counts. */
static att_status take(att_ablation *a, const att_measurement *m)
{
    char name[64];
    snprintf(name, sizeof name, "%s %s", m->instrument, m->statistic);
    for (int p = 0; p < att_ablation_count(a); p++) {
        const att_ablated kind = att_ablation_shown(a)->items[p].cuts->kind;
        if (!belongs(a, &att_ablation_shown(a)->items[p], m))
            continue;
        att_ablated_figure *figure = find(a, kind, name);
        if (!figure)
            ATT_TRY(add(a, kind, name, &figure));
        if (isnan(figure->values[p]))
            figure->values[p] = m->mean;
    }
    return ATT_OK;
}

static att_status correlate(att_context *context, const double *x, const double *y, int count, double *ranks,
                            att_rank_correlation *spearman)
{
    att_correlation found;
    *spearman = (att_rank_correlation){NAN, NAN, NAN, NAN, NAN, NAN};
    if (count <= ATT_CORRELATE_MOST) {
        ATT_TRY(att_correlate(context, x, y, NULL, count, SEED, &found));
        *spearman = found.spearman;
        return ATT_OK;
    }
    att_rank_twice(x, count, ranks);
    att_rank_twice(y, count, ranks + count);
    spearman->value = att_spearman(ranks, ranks + count, count);
    return ATT_OK;
}

/* scratch: [4 part_count] */
static att_status conclude(const att_ablation *a, att_ablated_figure *figure, double *scratch)
{
    double *x = scratch, *y = x + att_ablation_count(a);
    int count = 0;
    for (int p = 0; p < att_ablation_count(a); p++)
        if (isfinite(figure->values[p]) && isfinite(a->changes[p].loss.mean)) {
            x[count] = figure->values[p];
            y[count++] = a->changes[p].loss.mean;
        }
    figure->correlation = (att_ablation_correlation){.kind = figure->kind, .figure = figure->name, .count = count};
    return correlate(a->context, x, y, count, y + att_ablation_count(a), &figure->correlation.spearman);
}

/* Whether a figure equals one of the first `count`, as the readings of NSI without gates do. */
static bool is_repeated(const att_ablation *a, const att_ablated_figure *figure, int count)
{
    const size_t bytes = (size_t)att_ablation_count(a) * sizeof *figure->values;
    for (int f = 0; f < count; f++)
        if (a->figures[f].kind == figure->kind && memcmp(a->figures[f].values, figure->values, bytes) == 0)
            return true;
    return false;
}

/* Drops figures of too few parts, those without a correlation, and repeated ones. */
static void drop_undefined(att_ablation *a)
{
    int kept = 0;
    for (int f = 0; f < a->figure_count; f++) {
        const att_ablation_correlation *c = &a->figures[f].correlation;
        if (c->count < LEAST || isnan(c->spearman.value) || is_repeated(a, &a->figures[f], kept))
            continue;
        a->figures[kept] = a->figures[f];
        a->figures[kept].correlation.figure = a->figures[kept].name;
        kept++;
    }
    a->figure_count = kept;
}

att_status att_ablation_correlate(att_ablation *a, const att_measure *measure)
{
    double *scratch;
    for (int i = 0; i < att_measure_count(measure); i++) {
        const att_measurement m = att_measure_at(measure, i);
        if (is_correlated(&m))
            ATT_TRY(take(a, &m));
    }
    ATT_TRY(att_new(a->context, &scratch, 4 * (size_t)att_ablation_count(a), "the correlations of an ablation"));
    att_status status = ATT_OK;
    for (int f = 0; status == ATT_OK && f < a->figure_count; f++)
        status = conclude(a, &a->figures[f], scratch);
    att_free(a->context, scratch);
    if (status == ATT_OK)
        drop_undefined(a);
    return status;
}

int att_ablation_correlation_count(const att_ablation *ablation)
{
    return ablation->figure_count;
}

att_ablation_correlation att_ablation_correlation_at(const att_ablation *ablation, int index)
{
    return ablation->figures[index].correlation;
}

double att_ablation_figure(const att_ablation *ablation, int correlation, int change)
{
    return ablation->figures[correlation].values[change];
}
