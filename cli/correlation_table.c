#include "correlation_table.h"

#include <math.h>
#include <string.h>

#include "cells.h"
#include "help.h"
#include "sweep_table.h"

enum { NUMBER = 32 };
static const double level = 0.05;

typedef struct widths {
    int scope, x;
} widths;

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Name of the runs over which a correlation is computed: a setting, an architecture, or all. */
static const char *scope_of(const att_sweep *sweep, const att_sweep_correlation *c, char number[16])
{
    for (int i = 0; c->setting && i < att_sweep_setting_count(sweep); i++)
        if (strcmp(att_sweep_setting_at(sweep, i).name, c->setting) == 0)
            return sweep_table_heading(sweep, i, number);
    return c->model ? c->model : "all runs";
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_scope(const att_sweep_correlation *a, const att_sweep_correlation *b)
{
    return same_text(a->setting, b->setting) && same_text(a->model, b->model);
}

static widths find_widths(const att_sweep *sweep, bool across)
{
    widths found = {cli_width_of("runs of"), cli_width_of("x")};
    char number[16];
    for (int i = 0; i < att_sweep_correlation_count(sweep); i++) {
        att_sweep_correlation c = att_sweep_correlation_at(sweep, i);
        if (across && c.setting)
            continue;
        found.scope = cli_wider(found.scope, scope_of(sweep, &c, number));
        found.x = cli_wider(found.x, c.of.x);
    }
    return found;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void print_ranks(const att_rank_correlation *c)
{
    const double values[] = {c->value, c->p, c->adjusted_p, c->low, c->high};
    static const int columns[] = {6, 6, 6, 6, 6}, digits[] = {3, 4, 4, 3, 3};
    putchar(' ');
    for (int i = 0; i < 5; i++)
        if (isnan(values[i]))
            cli_print(" %*s", columns[i], "-");
        else
            cli_print(" %*.*f", columns[i], digits[i], values[i]);
}

/* Prints one line: n points, each a run or a setting. */
static void print_points(const char *scope, const char *x, const att_correlation *c, const char *points, widths w)
{
    char count[NUMBER];
    snprintf(count, sizeof count, "%d %s", c->count, points);
    cli_left(scope, w.scope);
    cli_left(x, w.x);
    cli_print("  %-12s", count);
    print_ranks(&c->kendall);
    print_ranks(&c->spearman);
    putchar('\n');
}

static void print_correlation(const att_sweep *sweep, const att_sweep_correlation *c, widths w)
{
    char number[16];
    print_points(scope_of(sweep, c, number), c->of.x, &c->runs, c->runs.count == 1 ? "run" : "runs", w);
    if (!c->setting && c->means.count > 1)
        print_points("", "  means of settings", &c->means, "settings", w);
}

static void print_head(const char *y, widths w)
{
    cli_print("\n  y: %s\n  %-*s  %-*s  %-12s", y, w.scope, "runs of", w.x, "x", "points, n");
    for (int i = 0; i < 2; i++)
        cli_print("  %6s %6s %6s %6s %6s", i == 0 ? "tau-b" : "rho", "p", "Holm", "low", "high");
    putchar('\n');
}

/* --- power -------------------------------------------------------------------------------------------------------- */

static double least_of(const att_correlation *c)
{
    return fmin(c->kendall.least_p, c->spearman.least_p); /* NaN only if both are */
}

/* Says that a test cannot find anything, if no order of its figures has a small p. */
static void print_power(const att_sweep *sweep, const att_sweep_correlation *c)
{
    char number[16];
    const char *scope = c->setting ? "within a setting" : scope_of(sweep, c, number);
    const char *what = c->setting ? "runs" : "settings";
    double least = least_of(&c->runs);
    if (isnan(least))
        cli_print("  %s: no test: only %d %s%s.\n", scope, c->runs.groups, c->setting ? "run" : "setting",
                  cli_plural(c->runs.groups));
    else
        cli_print(
            "  %s: with %d %s no order of the figures has p below %.2g, so this test cannot show a correlation;\n"
            "  at least 5 %s%s are needed (2 / 5! = 0.017).\n",
            scope, c->runs.groups, what, least, what, c->setting ? "" : " with equal numbers of runs");
}

/* Whether two correlations give the same sentence. */
static bool have_same_power(const att_sweep_correlation *a, const att_sweep_correlation *b)
{
    double one = least_of(&a->runs), other = least_of(&b->runs);
    return a->setting && b->setting ? a->runs.groups == b->runs.groups && (one == other || (isnan(one) && isnan(other)))
                                    : same_scope(a, b);
}

static bool is_powerless(const att_sweep_correlation *c)
{
    return !(least_of(&c->runs) <= level);
}

static void print_powers(const att_sweep *sweep, bool across)
{
    putchar('\n');
    for (int i = 0; i < att_sweep_correlation_count(sweep); i++) {
        att_sweep_correlation c = att_sweep_correlation_at(sweep, i);
        bool said = (across && c.setting) || !is_powerless(&c);
        for (int k = 0; k < i && !said; k++) {
            att_sweep_correlation before = att_sweep_correlation_at(sweep, k);
            said = have_same_power(&c, &before);
        }
        if (!said)
            print_power(sweep, &c);
    }
}

/* --- together ----------------------------------------------------------------------------------------------------- */

static void print_methods(void)
{
    cli_print("\nrank correlations over runs\n");
    for (int i = 0; i < att_correlation_method_count(); i++) {
        att_correlation_method method = att_correlation_method_at(i);
        char text[1024];
        snprintf(text, sizeof text, "%s (%s)", method.formula, method.source);
        cli_explain(method.name, text);
    }
    cli_explain("reading", ATT_SWEEP_CORRELATIONS_ARE);
}

static bool is_new_y(const att_sweep *sweep, int index)
{
    att_sweep_correlation c = att_sweep_correlation_at(sweep, index);
    for (int i = 0; i < index; i++)
        if (strcmp(att_sweep_correlation_at(sweep, i).of.y, c.of.y) == 0)
            return false;
    return true;
}

static void print_table(const att_sweep *sweep, const char *y, bool across, widths w)
{
    print_head(y, w);
    for (int i = 0; i < att_sweep_correlation_count(sweep); i++) {
        att_sweep_correlation c = att_sweep_correlation_at(sweep, i);
        if (strcmp(c.of.y, y) == 0 && !(across && c.setting))
            print_correlation(sweep, &c, w);
    }
}

void correlation_table_print(const att_sweep *sweep, bool across)
{
    if (att_sweep_correlation_count(sweep) == 0)
        return;
    widths w = find_widths(sweep, across);
    w.x = cli_wider(w.x, "  means of settings");
    print_methods();
    for (int i = 0; i < att_sweep_correlation_count(sweep); i++)
        if (is_new_y(sweep, i))
            print_table(sweep, att_sweep_correlation_at(sweep, i).of.y, across, w);
    print_powers(sweep, across);
}
