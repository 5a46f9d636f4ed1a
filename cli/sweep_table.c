#include "sweep_table.h"

#include <math.h>
#include <string.h>

enum { LABEL = 26, COLUMN = 22, EXPLAIN = 13, FEW = 10 };

static const char spread_text[] =
    "mean ± standard deviation (n - 1) over the n runs of a setting; a run's figure is its mean over images";

static const char reading_text[] =
    "x is TNS in that reading of NSI, y accuracy, top-1 of the measured images; over all settings and seeds together, "
    "then within a setting, whose runs differ in the seed only";

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* printf counts bytes; "±" and its like are two of them. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void print_cell(const char *text, int width)
{
    int used = width_of(text);
    printf("  %s%*s", text, used < width ? width - used : 0, "");
}

static void format_spread(double mean, double deviation, char *text, size_t size)
{
    if (isnan(mean))
        snprintf(text, size, "-");
    else if (isnan(deviation))
        snprintf(text, size, "%.4f", mean);
    else
        snprintf(text, size, "%.4f ± %.4f", mean, deviation);
}

static int column_width(const att_sweep *sweep)
{
    size_t width = COLUMN;
    for (int i = 0; i < att_sweep_setting_count(sweep); i++) {
        size_t length = strlen(att_sweep_setting_at(sweep, i).name);
        width = length > width ? length : width;
    }
    return (int)width;
}

static void explain(const char *what, const char *text)
{
    printf("  %-*s", EXPLAIN - 2, what);
    cli_print_wrapped(stdout, text, EXPLAIN);
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static void format_seeds(const att_sweep_setting *s, char *text, size_t size)
{
    int length = 0;
    *text = '\0';
    for (int i = 0; i < s->runs && length + 24 < (int)size; i++)
        length +=
            snprintf(text + length, size - (size_t)length, "%s%llu", i ? "," : "", (unsigned long long)s->seeds[i]);
}

static void print_head(const att_sweep *sweep, int width)
{
    enum { NAME, N, SEEDS, PARAMETERS, SECONDS, ROWS };
    static const char *const labels[ROWS] = {"setting", "runs, n", "seeds", "parameters", "seconds of training"};
    for (int row = 0; row < ROWS; row++) {
        print_cell(labels[row], LABEL);
        for (int i = 0; i < att_sweep_setting_count(sweep); i++) {
            att_sweep_setting s = att_sweep_setting_at(sweep, i);
            char text[256];
            if (row == NAME)
                snprintf(text, sizeof text, "%s", s.name);
            else if (row == N)
                snprintf(text, sizeof text, "%d", s.runs);
            else if (row == SEEDS)
                format_seeds(&s, text, sizeof text);
            else if (row == PARAMETERS)
                snprintf(text, sizeof text, isnan(s.parameters) ? "-" : "%.0f", s.parameters);
            else
                snprintf(text, sizeof text, isnan(s.seconds_deviation) ? "%.1f" : "%.1f ± %.1f", s.seconds,
                         s.seconds_deviation);
            print_cell(text, width);
        }
        putchar('\n');
    }
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static bool same_figure(const att_measurement *a, const att_measurement *b)
{
    return strcmp(a->instrument, b->instrument) == 0 && strcmp(a->node, b->node) == 0 &&
           strcmp(a->statistic, b->statistic) == 0;
}

/* Whether an earlier setting has the figure, whose row is printed then. */
static bool is_printed(const att_sweep *sweep, int setting, const att_measurement *m)
{
    for (int i = 0; i < setting; i++)
        if (att_sweep_figure_find(sweep, i, m->instrument, m->node, m->statistic).instrument)
            return true;
    return false;
}

static void print_figure(const att_sweep *sweep, const att_measurement *m, int width)
{
    print_cell(*m->node ? m->node : m->statistic, LABEL);
    for (int i = 0; i < att_sweep_setting_count(sweep); i++) {
        att_measurement found = att_sweep_figure_find(sweep, i, m->instrument, m->node, m->statistic);
        char text[96];
        format_spread(found.mean, found.deviation, text, sizeof text);
        if (found.instrument && found.count != att_sweep_setting_at(sweep, i).runs)
            snprintf(text + strlen(text), sizeof text - strlen(text), ", n %lld", (long long)found.count);
        print_cell(text, width);
    }
    putchar('\n');
}

static void print_instrument(const att_sweep *sweep, const att_instrument_info *info, int width)
{
    att_measurement before = {.instrument = "", .node = "", .statistic = ""};
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++) {
            att_measurement m = att_sweep_figure_at(sweep, i, f);
            if (strcmp(m.instrument, info->name) != 0 || is_printed(sweep, i, &m) || same_figure(&m, &before))
                continue;
            if (!*before.instrument) {
                printf("\n%s: %s [%s]\n", info->name, info->summary, info->unit);
                explain("formula", info->formula);
                explain("source", info->source);
                explain("reading", info->reading);
            }
            if (*m.node && strcmp(m.statistic, before.statistic) != 0)
                printf("\n  %s\n", m.statistic);
            print_figure(sweep, &m, width);
            before = m;
        }
}

/* --- accuracy against stiffness ----------------------------------------------------------------------------------- */

static void print_ranks(const att_rank_correlation *c)
{
    const double values[] = {c->value, c->p, c->low, c->high};
    static const int widths[] = {7, 7, 8, 8}, digits[] = {3, 4, 3, 3};
    putchar(' ');
    for (int i = 0; i < 4; i++)
        if (isnan(values[i]))
            printf(" %*s", widths[i], "-");
        else
            printf(" %*.*f", widths[i], digits[i], values[i]);
}

static void print_correlations(const att_sweep *sweep)
{
    int fewest = FEW;
    if (att_sweep_correlation_count(sweep) == 0)
        return;
    printf("\naccuracy against TNS: rank correlations over runs\n");
    for (int i = 0; i < att_correlation_method_count(); i++) {
        att_correlation_method method = att_correlation_method_at(i);
        char text[512];
        snprintf(text, sizeof text, "%s (%s)", method.formula, method.source);
        explain(method.name, text);
    }
    explain("reading", reading_text);
    printf("\n  %-*s  %-14s %4s  %7s %7s %8s %8s  %7s %7s %8s %8s\n", LABEL, "runs of", "reading", "n", "tau-b", "p",
           "low", "high", "rho", "p", "low", "high");
    for (int i = 0; i < att_sweep_correlation_count(sweep); i++) {
        att_sweep_correlation c = att_sweep_correlation_at(sweep, i);
        printf("  %-*s  %-14s %4d", LABEL, c.setting ? c.setting : "all settings", c.statistic, c.of.count);
        print_ranks(&c.of.kendall);
        print_ranks(&c.of.spearman);
        putchar('\n');
        fewest = c.of.count < fewest ? c.of.count : fewest;
    }
    if (fewest < FEW) {
        double least = fewest > 1 ? 2 / tgamma(fewest + 1) : 1;
        printf(
            "  n is small: these figures describe the runs at hand and settle nothing. With n = %d even perfect\n"
            "  agreement has p = %.2g.\n",
            fewest, least);
    }
}

void sweep_table_print(const att_sweep *sweep)
{
    int width = column_width(sweep);
    print_head(sweep, width);
    printf("\n  ");
    cli_print_wrapped(stdout, spread_text, 2);
    for (int i = 0; i < att_instrument_count(); i++) {
        att_instrument_info info = att_instrument_at(i);
        print_instrument(sweep, &info, width);
    }
    print_correlations(sweep);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static bool has_instrument(const att_sweep *sweep, const char *name)
{
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++)
            if (strcmp(att_sweep_figure_at(sweep, i, f).instrument, name) == 0)
                return true;
    return false;
}

void sweep_table_json(att_json_writer *writer, const att_sweep *sweep)
{
    att_sweep_write_json(sweep, writer);
    cli_json_text(writer, "figures_are", spread_text);
    cli_json_text(writer, "correlations_are", reading_text);
    att_json_key(writer, "instruments");
    att_json_begin_array(writer);
    for (int i = 0; i < att_instrument_count(); i++) {
        att_instrument_info info = att_instrument_at(i);
        if (!has_instrument(sweep, info.name))
            continue;
        att_json_begin_object(writer);
        cli_json_text(writer, "name", info.name);
        cli_json_text(writer, "unit", info.unit);
        cli_json_text(writer, "formula", info.formula);
        cli_json_text(writer, "source", info.source);
        cli_json_text(writer, "reading", info.reading);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}
