#include "sweep_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "correlation_table.h"
#include "help.h"
#include "show_figures.h"

enum { LABEL = 26, LINE = 110, LONG_NAME = 18, CELL = 64 };

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* Whether columns are headed by numbers, because the settings' names are too long. */
static bool is_numbered(const att_sweep *sweep)
{
    int longest = 0, count = att_sweep_setting_count(sweep);
    for (int i = 0; i < count; i++)
        longest = cli_wider(longest, att_sweep_setting_at(sweep, i).name);
    return longest > LONG_NAME && LABEL + count * (longest + 2) > LINE;
}

const char *sweep_table_heading(const att_sweep *sweep, int setting, char number[16])
{
    snprintf(number, 16, "[%d]", setting + 1);
    return is_numbered(sweep) ? number : att_sweep_setting_at(sweep, setting).name;
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

enum { NAME, RUNS, SEEDS, PARAMETERS, SECONDS, SCORE, DIFFERENCE, COLUMNS };

/* Whether an instrument measured the main metric of the setting's task. */
static bool is_score_measured(const att_sweep *sweep, int setting, const att_metric *metric)
{
    for (int i = 0; i < att_instrument_count(NULL); i++) {
        att_instrument_info info = att_instrument_at(NULL, i);
        if (info.score && strcmp(info.score, metric->name) == 0 &&
            att_sweep_figure_find(sweep, setting, info.name, "", info.score).count > 0)
            return true;
    }
    return false;
}

/* Whether to show the scores of the last evaluations. They are shown if a setting has no measured score. */
static bool shows_scores(const att_sweep *sweep)
{
    for (int i = 0; i < att_sweep_setting_count(sweep); i++) {
        const att_metric *metric = att_sweep_setting_at(sweep, i).metric;
        if (metric && !is_score_measured(sweep, i, metric))
            return true;
    }
    return false;
}

/* Writes "91.5 ± 0.3 % top-1". */
static void format_score(const att_sweep_setting *s, char text[256])
{
    char spread[CELL];
    cli_format_spread(s->score, s->score_deviation, spread, sizeof spread);
    if (s->metric)
        snprintf(text, 256, "%s%s%s %s", spread, *s->metric->unit ? " " : "", s->metric->unit, s->metric->label);
    else
        snprintf(text, 256, "-");
}

static void format_paired(const att_paired *paired, int expected, char text[CELL])
{
    cli_format_interval(paired->mean, paired->low, paired->high, text, CELL);
    if (paired->count != expected)
        snprintf(text + strlen(text), CELL - strlen(text), ", n %d", paired->count);
}

/* Writes the difference of a setting's score from that of the first setting. */
static void format_score_difference(const att_sweep *sweep, int setting, char text[256])
{
    att_paired paired = att_sweep_score_difference(sweep, setting, 0);
    if (setting == 0 || paired.count == 0)
        snprintf(text, 256, "-");
    else
        format_paired(&paired, att_sweep_setting_at(sweep, setting).runs, text);
}

static void format_setting(const att_sweep *sweep, int setting, int column, char text[256])
{
    char number[16];
    att_sweep_setting s = att_sweep_setting_at(sweep, setting);
    if (column == NAME)
        snprintf(text, 256, "%s%s%s", is_numbered(sweep) ? sweep_table_heading(sweep, setting, number) : "",
                 is_numbered(sweep) ? " " : "", s.name);
    else if (column == RUNS)
        snprintf(text, 256, "%d", s.runs);
    else if (column == SEEDS)
        format_seeds(&s, text, 256);
    else if (column == PARAMETERS)
        snprintf(text, 256, isnan(s.parameters) ? "-" : "%.0f", s.parameters);
    else if (column == SECONDS)
        cli_format_spread(s.seconds, s.seconds_deviation, text, 256);
    else if (column == SCORE)
        format_score(&s, text);
    else
        format_score_difference(sweep, setting, text);
}

/* Prints one row per setting. */
static void print_settings(const att_sweep *sweep)
{
    static const char *const labels[COLUMNS] = {"setting",
                                                "runs, n",
                                                "seeds",
                                                "parameters",
                                                "seconds of training",
                                                "last evaluation",
                                                "difference from the first"};
    int widths[COLUMNS], columns = !shows_scores(sweep)                 ? SCORE
                                   : att_sweep_setting_count(sweep) > 1 ? COLUMNS
                                                                        : DIFFERENCE;
    char text[256];
    for (int c = 0; c < columns; c++) {
        widths[c] = cli_width_of(labels[c]);
        for (int i = 0; i < att_sweep_setting_count(sweep); i++) {
            format_setting(sweep, i, c, text);
            widths[c] = cli_wider(widths[c], text);
        }
    }
    for (int i = -1; i < att_sweep_setting_count(sweep); i++) {
        for (int c = 0; c < columns; c++) {
            if (i >= 0)
                format_setting(sweep, i, c, text);
            (c == NAME ? cli_left : cli_right)(i < 0 ? labels[c] : text, widths[c]);
        }
        putchar('\n');
    }
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* A figure that at least one setting has. */
typedef struct row {
    const char *instrument, *statistic;
    char label[96];
    bool excluded; /* another instrument excludes the figure */
} row;

/* Whether the table shows the figure. Of some instruments the table shows one statistic only; sweep.json and the page
 * contain the others. */
static bool is_shown(const att_measurement *m)
{
    att_instrument_info info;
    return !att_instrument_find(NULL, m->instrument, &info) || !info.brief || strcmp(m->statistic, info.brief) == 0;
}

/* Length of a node's name up to its last number: "layer1.0" of "layer1.0.se.gate". */
static size_t block_length(const char *node)
{
    size_t length = 0;
    for (size_t i = 0, part = 0; node[0] && (i == 0 || node[i - 1]); i++)
        if (node[i] == '.' || node[i] == '\0') {
            if (i > part && strspn(node + part, "0123456789") == i - part)
                length = i;
            part = i + 1;
        }
    return length > 0 ? length : strlen(node);
}

/* Labels a figure by its block, so that different modules of a block share a row. Further figures of the same block get
 * a number. */
static void label_by_block(const att_sweep *sweep, int setting, int figure, const char *node, row *r)
{
    size_t length = block_length(node);
    int number = 1;
    for (int f = 0; f < figure; f++) {
        att_measurement m = att_sweep_figure_at(sweep, setting, f);
        number += strcmp(m.instrument, r->instrument) == 0 && strcmp(m.statistic, r->statistic) == 0 &&
                  block_length(m.node) == length && strncmp(m.node, node, length) == 0;
    }
    snprintf(r->label, sizeof r->label, number > 1 ? "%.*s, %s %d" : "%.*s", (int)length, node, r->instrument, number);
}

static row row_of(const att_sweep *sweep, int setting, int figure)
{
    att_measurement m = att_sweep_figure_at(sweep, setting, figure);
    row r = {.instrument = m.instrument, .statistic = m.statistic, .excluded = m.excluded};
    att_instrument_info info;
    if (att_instrument_find(NULL, m.instrument, &info) && info.by_block)
        label_by_block(sweep, setting, figure, m.node, &r);
    else
        snprintf(r.label, sizeof r.label, "%s", *m.node ? m.node : m.statistic);
    return r;
}

static bool same_row(const row *a, const row *b)
{
    return strcmp(a->instrument, b->instrument) == 0 && strcmp(a->statistic, b->statistic) == 0 &&
           strcmp(a->label, b->label) == 0;
}

/* The index of the setting's figure in a row; -1 if the setting has none. */
static int figure_in(const att_sweep *sweep, int setting, const row *r)
{
    for (int f = 0; f < att_sweep_setting_at(sweep, setting).figure_count; f++) {
        att_measurement m = att_sweep_figure_at(sweep, setting, f);
        if (strcmp(m.instrument, r->instrument) != 0 || strcmp(m.statistic, r->statistic) != 0)
            continue;
        row row_of_figure = row_of(sweep, setting, f);
        if (same_row(&row_of_figure, r))
            return f;
    }
    return -1;
}

/* Adds each new row of a setting after the row that precedes it in this setting, so that blocks are in the network's
 * order even if some settings lack a block. */
static int merge_rows(const att_sweep *sweep, int setting, const char *instrument, row *rows, int count)
{
    int place = 0;
    for (int f = 0; f < att_sweep_setting_at(sweep, setting).figure_count; f++) {
        att_measurement m = att_sweep_figure_at(sweep, setting, f);
        if (strcmp(m.instrument, instrument) != 0 || !is_shown(&m))
            continue;
        row r = row_of(sweep, setting, f);
        int at = 0;
        while (at < count && !same_row(&rows[at], &r))
            at++;
        if (at == count) {
            at = place;
            memmove(&rows[at + 1], &rows[at], (size_t)(count++ - at) * sizeof *rows);
            rows[at] = r;
        }
        place = at + 1;
    }
    return count;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Ranking of the settings by a row. */
static att_sweep_ranking ranking_of(const att_sweep *sweep, const row *r)
{
    return att_sweep_rank(sweep, r->instrument, "", r->statistic);
}

/* The mark of the best and of the second-best setting; as wide for the others of a ranked row. */
static const char *mark_of(const att_sweep_ranking *ranking, int setting)
{
    return ranking->second < 0 ? "" : setting == ranking->best ? " ¹" : setting == ranking->second ? " ²" : "  ";
}

static void format_figure(const att_sweep *sweep, int setting, const row *r, char text[CELL])
{
    att_measurement found = att_sweep_figure_at(sweep, setting, figure_in(sweep, setting, r));
    att_sweep_ranking ranking = ranking_of(sweep, r);
    cli_format_spread(found.mean, found.deviation, text, CELL);
    if (found.instrument && found.count != att_sweep_setting_at(sweep, setting).runs)
        snprintf(text + strlen(text), CELL - strlen(text), ", n %lld", (long long)found.count);
    snprintf(text + strlen(text), CELL - strlen(text), "%s", mark_of(&ranking, setting));
}

/* The difference of a setting from the first one. */
static att_paired difference_of(const att_sweep *sweep, int setting, const row *r)
{
    return att_sweep_difference(sweep, setting, figure_in(sweep, setting, r), 0, figure_in(sweep, 0, r));
}

static void format_difference(const att_sweep *sweep, int setting, const row *r, char text[CELL])
{
    att_paired paired = difference_of(sweep, setting, r);
    if (paired.count == 0)
        snprintf(text, CELL, "-");
    else
        format_paired(&paired, att_sweep_setting_at(sweep, setting).runs, text);
}

enum { ROW_NAME = 104 };

static const char *name_of_row(const row *r, char text[ROW_NAME])
{
    snprintf(text, ROW_NAME, "%s%s", r->label, r->excluded ? CLI_EXCLUDED_MARK : "");
    return text;
}

/* The columns of a table: the settings from `first` on, and the function that formats their cells. */
typedef struct columns {
    int first;
    void (*format)(const att_sweep *sweep, int setting, const row *r, char text[CELL]);
} columns;

/* Prints rows with one column per setting. cells: [count][settings], scratch. */
static void print_rows(const att_sweep *sweep, const row *rows, int count, columns of, char (*cells)[CELL])
{
    int settings = att_sweep_setting_count(sweep), label = 0, widths[ATT_SWEEP_MOST_RUNS];
    char number[16], name[ROW_NAME];
    for (int i = of.first; i < settings; i++)
        widths[i] = cli_width_of(sweep_table_heading(sweep, i, number));
    for (int r = 0; r < count; r++) {
        label = cli_wider(label, name_of_row(&rows[r], name));
        for (int i = of.first; i < settings; i++) {
            char *cell = cells[r * settings + i];
            of.format(sweep, i, &rows[r], cell);
            widths[i] = cli_wider(widths[i], cell);
        }
    }
    for (int r = 0; r < count; r++) {
        bool of_network = strcmp(rows[r].label, rows[r].statistic) == 0;
        if (r == 0 || (!of_network && strcmp(rows[r].statistic, rows[r - 1].statistic) != 0)) {
            putchar('\n');
            cli_left(of_network ? "" : rows[r].statistic, label);
            for (int i = of.first; i < settings; i++)
                cli_right(sweep_table_heading(sweep, i, number), widths[i]);
            putchar('\n');
        }
        cli_left(name_of_row(&rows[r], name), label);
        for (int i = of.first; i < settings; i++)
            cli_right(cells[r * settings + i], widths[i]);
        putchar('\n');
    }
}

/* Prints a sentence about the best and the second-best setting of a row. */
static void print_ranking(const att_sweep *sweep, const row *r)
{
    char number[2][16], lead[CELL];
    att_sweep_ranking ranking = ranking_of(sweep, r);
    if (ranking.second < 0)
        return;
    const char *best = sweep_table_heading(sweep, ranking.best, number[0]);
    const char *second = sweep_table_heading(sweep, ranking.second, number[1]);
    format_paired(&ranking.lead, -1, lead);
    cli_print("  %s: best ¹ %s, second ² %s, difference ", r->label, best, second);
    if (ranking.lead.count < 2)
        cli_print("%s: no interval without two common seeds\n", ranking.lead.count > 0 ? lead : "unknown");
    else
        cli_print("%s: the interval %s\n", lead,
                  att_paired_is_separated(&ranking.lead) ? "separates them" : "does not separate them");
}

/* Whether a difference has an interval. */
static bool has_interval(const att_sweep *sweep, const row *rows, int count)
{
    for (int r = 0; r < count; r++)
        for (int i = 1; i < att_sweep_setting_count(sweep); i++)
            if (difference_of(sweep, i, &rows[r]).count > 1)
                return true;
    return false;
}

static void print_differences(const att_sweep *sweep, const row *rows, int count, char (*cells)[CELL])
{
    char number[16];
    if (att_sweep_setting_count(sweep) < 2)
        return;
    putchar('\n');
    for (int r = 0; r < count; r++)
        print_ranking(sweep, &rows[r]);
    if (!has_interval(sweep, rows, count)) {
        cli_print("  no differences: no setting shares two seeds with %s\n", sweep_table_heading(sweep, 0, number));
        return;
    }
    cli_print("  difference from %s, mean [95 %% interval] over common seeds:\n",
              sweep_table_heading(sweep, 0, number));
    print_rows(sweep, rows, count, (columns){1, format_difference}, cells);
}

static void print_instrument(const att_sweep *sweep, const att_instrument_info *info, row *rows, char (*cells)[CELL])
{
    int count = 0;
    bool excluded = false;
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        count = merge_rows(sweep, i, info->name, rows, count);
    if (count == 0)
        return;
    cli_print("\n%s: %s [%s]\n", info->name, info->summary, info->unit);
    cli_explain("formula", info->formula);
    cli_explain("source", info->source);
    cli_explain("reading", info->reading);
    cli_scales_print(info);
    print_rows(sweep, rows, count, (columns){0, format_figure}, cells);
    print_differences(sweep, rows, count, cells);
    for (int r = 0; r < count; r++)
        excluded |= rows[r].excluded;
    if (excluded)
        cli_excluded_print(info);
}

/* Upper bound of the number of rows: the number of figures. */
static size_t most_rows(const att_sweep *sweep)
{
    size_t most = 0;
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        most += (size_t)att_sweep_setting_at(sweep, i).figure_count;
    return most;
}

static int print_instruments(const att_sweep *sweep)
{
    size_t most = most_rows(sweep) + 1;
    row *rows = calloc(most, sizeof *rows);
    char(*cells)[CELL] = calloc(most * (size_t)att_sweep_setting_count(sweep), sizeof *cells);
    for (int i = 0; rows && cells && i < att_instrument_count(NULL); i++) {
        att_instrument_info info = att_instrument_at(NULL, i);
        print_instrument(sweep, &info, rows, cells);
    }
    int code = rows && cells ? CLI_OK : cli_failure("out of memory for the table");
    free(cells);
    free(rows);
    return code;
}

/* --- omitted figures ---------------------------------------------------------------------------------------------- */

static bool omits(const att_sweep *sweep, const char *instrument)
{
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++) {
            att_measurement m = att_sweep_figure_at(sweep, i, f);
            if (strcmp(m.instrument, instrument) == 0 && !is_shown(&m))
                return true;
        }
    return false;
}

static void print_omitted(const att_sweep *sweep, const char *folder)
{
    bool any = false;
    for (int i = 0; i < att_instrument_count(NULL); i++) {
        att_instrument_info info = att_instrument_at(NULL, i);
        if (!omits(sweep, info.name))
            continue;
        cli_print("%s%s (all but the %s)", any ? ", " : "\nnot in this table: ", info.name, info.brief);
        any = true;
    }
    if (any)
        cli_print(". %s/sweep.json has all figures; attscope report %s draws them.\n", folder, folder);
}

int sweep_table_print(const att_sweep *sweep, const char *folder)
{
    print_settings(sweep);
    cli_print("\n  ");
    cli_print_wrapped(stdout, ATT_SWEEP_FIGURES_NOTE, 2);
    if (att_sweep_setting_count(sweep) > 1) {
        cli_print("  ");
        cli_print_wrapped(stdout, ATT_PAIRED_NOTE, 2);
    }
    int code = print_instruments(sweep);
    correlation_table_print(sweep, false);
    print_omitted(sweep, folder);
    return code;
}
