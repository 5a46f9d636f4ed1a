#include "show_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"

enum { INDENT = 13, NAMES_INDENT = 21 }; /* the second leaves room for an instrument's name */

static void explain_line(FILE *out, int indent, const char *what, const char *text)
{
    fprintf(out, "  %-*s", indent - 2, what);
    cli_print_wrapped(out, text, indent);
}

static void explain_name(FILE *out, const att_instrument_info *info)
{
    char text[CLI_ABOUT_TEXT];
    snprintf(text, sizeof text, "%s%s", info->summary, info->costly ? "; only if named" : "");
    explain_line(out, NAMES_INDENT, info->name, text);
}

void cli_instruments_list(FILE *out)
{
    fputs("\nInstruments (--help-instruments: formulas, sources, options):\n", out);
    for (int i = 0; i < att_instrument_count(NULL); i++) {
        const att_instrument_info info = att_instrument_at(NULL, i);
        explain_name(out, &info);
    }
}

void cli_figures_explain(FILE *out)
{
    fputs("What the instruments measure:\n", out);
    for (int i = 0; i < att_instrument_count(NULL); i++) {
        att_instrument_info info = att_instrument_at(NULL, i);
        char text[CLI_ABOUT_TEXT];
        explain_name(out, &info);
        explain_line(out, NAMES_INDENT, "", info.formula);
        explain_line(out, NAMES_INDENT, "", info.source);
        for (int o = 0; o < info.option_count; o++)
            explain_line(out, NAMES_INDENT, "", cli_detail_text(&info.options[o], text));
    }
}

int cli_instruments_check(cli_app *cli, const char *with)
{
    att_status status = att_instruments_check(cli->context, with);
    int code = cli_check(cli, status);
    return status == ATT_ERR_NOT_FOUND || status == ATT_ERR_ARGUMENT ? CLI_USAGE : code;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

void cli_scales_print(const att_instrument_info *info)
{
    for (const att_statistic_scale *scale = info->scales; scale && scale->text; scale++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s%s (%s)", scale->statistic ? scale->statistic : "",
                 scale->statistic ? ": " : "", scale->text, scale->source);
        explain_line(stdout, INDENT, scale == info->scales ? "scale" : "", text);
    }
}

/* The length of the first rule of a reading. "; " separates rules, except in parentheses. */
static size_t rule_length(const char *reading)
{
    size_t length = 0;
    for (int depth = 0; reading[length] && (depth > 0 || strncmp(reading + length, "; ", 2) != 0); length++)
        depth += (reading[length] == '(') - (reading[length] == ')');
    return length;
}

static void explain_reading(const char *reading)
{
    char rule[1024];
    const char *what = "reading";
    for (const char *at = reading; *at; what = "") {
        const size_t length = rule_length(at);
        snprintf(rule, sizeof rule, "%.*s", (int)length, at);
        cli_print("  %-*s- ", INDENT - 2, what);
        cli_print_wrapped(stdout, rule, INDENT + 2);
        at += length + strspn(at + length, "; ");
    }
}

/* "uniform=0.95, by=zeta": the options in use. */
static void print_options(const att_instrument_info *info, const double *values)
{
    char text[1024];
    size_t length = 0;
    for (int i = 0; i < info->option_count && length < sizeof text; i++) {
        const att_detail *option = &info->options[i];
        const char *comma = i > 0 ? ", " : "";
        length += (size_t)(option->choices ? snprintf(text + length, sizeof text - length, "%s%s=%s", comma,
                                                      option->name, option->choices[(int)values[i]])
                                           : snprintf(text + length, sizeof text - length, "%s%s=%.10g", comma,
                                                      option->name, values[i]));
    }
    if (info->option_count > 0)
        explain_line(stdout, INDENT, "options", text);
}

/* options: the values of the instrument's options */
static void print_instrument(const att_instrument_info *info, const double *options, bool first, bool brief)
{
    cli_print("%s%s: %s", first ? "" : "\n", info->name, info->summary);
    if (strcmp(info->unit, "1") != 0)
        cli_print(" [%s]", info->unit);
    putchar('\n');
    if (brief)
        return;
    explain_line(stdout, INDENT, "formula", info->formula);
    explain_line(stdout, INDENT, "source", info->source);
    explain_reading(info->reading);
    print_options(info, options);
    cli_scales_print(info);
}

enum { LABEL = 256 };

/* Label of a line: the node, or the statistic for figures of the whole network. */
static const char *label_of(const att_measurement *m, char label[LABEL])
{
    snprintf(label, LABEL, "%s%s", *m->node ? m->node : m->statistic, m->excluded ? CLI_EXCLUDED_MARK : "");
    return label;
}

static bool in_one_table(const att_measurement *a, const att_measurement *b)
{
    return strcmp(a->instrument, b->instrument) == 0 && *a->node && *b->node && strcmp(a->statistic, b->statistic) == 0;
}

/* Width of an instrument's column of labels. */
static int label_width(const att_measure *measure, const char *instrument)
{
    size_t width = strlen("statistic");
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        char label[LABEL];
        const char *const texts[] = {label_of(&m, label), m.statistic};
        for (int t = 0; t < 2 && strcmp(m.instrument, instrument) == 0; t++)
            width = strlen(texts[t]) > width ? strlen(texts[t]) : width;
    }
    return (int)width;
}

/* The uncertainty printed next to the mean: the standard error for scores, else the standard deviation. */
static double spread_of(const att_instrument_info *info, const att_measurement *m)
{
    return info->scores ? m->deviation / sqrt((double)m->count) : m->deviation;
}

/* Formats four decimals, or four significant digits of small values. */
static const char *digits_of(double value, char text[24])
{
    double size = fabs(value);
    int decimals = 4;
    for (double least = 0.1; size < least && decimals < 8; least /= 10)
        decimals++;
    if (size > 0 && size < 1e-4)
        snprintf(text, 24, "%.3e", value);
    else
        snprintf(text, 24, "%.*f", size > 0 ? decimals : 4, value);
    return text;
}

/* The value that is printed beside a figure: its bound, which uniform attention reaches, or that of uniform attention;
 * 0: none is known. */
static double scale_of(const att_measurement *m)
{
    return m->bound > 0 ? m->bound : m->uniform;
}

static const char *scale_title(const att_measurement *m)
{
    return m->bound > 0 ? "     bound" : m->uniform > 0 ? "   uniform" : "";
}

/* Whether n counts blocks: the title says "n: blocks", or that of the statistic to which this one belongs ("spearman
 * low" to "spearman"). */
static bool counts_blocks(const att_instrument_info *info, const char *statistic)
{
    for (const att_statistic_info *s = info->statistics; s && s->name; s++)
        if (strncmp(statistic, s->name, strlen(s->name)) == 0 && strstr(s->title, "n: blocks"))
            return true;
    return false;
}

/* Prints the line of figure `index`; the figures of its heads precede it. */
static void print_line(const att_measure *measure, const att_instrument_info *info, int index, int width, bool texts)
{
    att_measurement m = att_measure_at(measure, index);
    int first = index;
    for (; first > 0; first--) {
        att_measurement head = att_measure_at(measure, first - 1);
        if (head.head < 0)
            break;
    }
    char text[24], label[LABEL];
    if (m.undefined > 0 && !isfinite(m.mean)) {
        cli_print("  %-*s  ", width, label_of(&m, label));
        cli_print(counts_blocks(info, m.statistic) ? "not defined in %lld of %lld block%s\n"
                  : texts                          ? "not defined in %lld of %lld text%s\n"
                                                   : "not defined in %lld of %lld image%s\n",
                  (long long)m.undefined, (long long)m.count, cli_plural(m.count));
        return;
    }
    cli_print("  %-*s  %10s ", width, label_of(&m, label), digits_of(m.mean, text));
    if (isnan(m.deviation))
        cli_print("%11s", "");
    else
        cli_print("± %-9s", digits_of(spread_of(info, &m), text));
    cli_print(" %6lld", (long long)(m.count - m.undefined));
    if (scale_of(&m) > 0)
        cli_print("  %8s", digits_of(scale_of(&m), text));
    for (int i = first; i < index; i++)
        cli_print("%s%s", i == first ? "  " : " ", digits_of(att_measure_at(measure, i).mean, text));
    if (m.undefined > 0)
        cli_print("  (not defined in %lld more)", (long long)m.undefined);
    putchar('\n');
}

void cli_excluded_print(const att_instrument_info *info)
{
    cli_print("\n  *%s%s\n", info->excluded ? " " : "", info->excluded ? info->excluded : "");
}

/* Prints the explanation of CLI_EXCLUDED_MARK if a figure of the instrument has the mark. */
static void print_note(const att_measure *measure, const att_instrument_info *info)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (m.excluded && strcmp(m.instrument, info->name) == 0) {
            cli_excluded_print(info);
            return;
        }
    }
}

/* The first figure behind the table that begins at `begin`. */
static int table_end(const att_measure *measure, int begin)
{
    att_measurement before = att_measure_at(measure, begin);
    int end = begin + 1;
    for (; end < att_measure_count(measure); end++) {
        const att_measurement m = att_measure_at(measure, end);
        if (!in_one_table(&m, &before))
            break;
        before = m;
    }
    return end;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_figure(const att_measurement *a, const att_measurement *b)
{
    return strcmp(a->node, b->node) == 0 && a->head == b->head && a->count == b->count &&
           a->undefined == b->undefined && a->excluded == b->excluded && same_number(a->mean, b->mean) &&
           same_number(a->deviation, b->deviation) && same_number(a->bound, b->bound) &&
           same_number(a->uniform, b->uniform);
}

/* The statistic of an earlier table of the instrument that has the same figures as the one from `begin` to `end`; NULL:
 * there is none. first: the instrument's first figure. */
static const char *same_as(const att_measure *measure, int first, int begin, int end)
{
    for (int other = first, next; other < begin; other = next) {
        next = table_end(measure, other);
        bool same = next - other == end - begin;
        for (int i = 0; same && i < end - begin; i++) {
            const att_measurement a = att_measure_at(measure, other + i), b = att_measure_at(measure, begin + i);
            same = *a.node && same_figure(&a, &b);
        }
        if (same)
            return att_measure_at(measure, other).statistic;
    }
    return NULL;
}

/* Instrument `index`, in the words for texts if the samples are texts. */
static att_instrument_info info_of(const att_measure *measure, int index, bool texts)
{
    att_instrument_info info = att_measure_instrument_at(measure, index);
    if (texts && info.unit && strcmp(info.unit, "image sides") == 0)
        info.unit = "text lengths";
    return info;
}

void cli_figures_print(const att_measure *measure, bool brief, bool texts)
{
    att_measurement before = {.instrument = "", .node = "", .statistic = ""};
    att_instrument_info info = {.name = ""};
    int width = 0, instruments = 0, first = 0;
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        bool new_instrument = strcmp(m.instrument, before.instrument) != 0;
        if (new_instrument) {
            print_note(measure, &info);
            info = info_of(measure, instruments, texts);
            print_instrument(&info, att_measure_options_at(measure, instruments), instruments == 0, brief);
            instruments++;
            first = i;
            width = label_width(measure, m.instrument);
        }
        const bool new_table = new_instrument || (*m.node ? !in_one_table(&m, &before) : *before.node);
        const int end = new_table && *m.node ? table_end(measure, i) : i;
        const char *same = end > i ? same_as(measure, first, i, end) : NULL;
        if (same) {
            cli_print("\n  %s: the same figures as %s\n", m.statistic, same);
            before = m;
            i = end - 1;
            continue;
        }
        if (new_table)
            cli_print("\n  %-*s  %10s ± %-9s %6s%s%s\n", width, *m.node ? m.statistic : "statistic", "mean",
                      info.scores ? "std error" : "deviation", "n", scale_title(&m),
                      m.head >= 0 ? "  of each head" : "");
        if (m.head < 0)
            print_line(measure, &info, i, width, texts);
        before = m;
    }
    print_note(measure, &info);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_measurement(att_json_writer *writer, const att_measurement *m)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "instrument", m->instrument);
    att_json_put_string(writer, "node", m->node);
    if (m->head >= 0)
        att_json_put_integer(writer, "head", m->head);
    att_json_put_string(writer, "statistic", m->statistic);
    att_json_put_number(writer, "mean", m->mean);
    att_json_put_number(writer, "deviation", m->deviation);
    att_json_put_integer(writer, "n", m->count);
    if (m->undefined > 0)
        att_json_put_integer(writer, "undefined", m->undefined);
    if (m->bound > 0)
        att_json_put_number(writer, "bound", m->bound);
    if (m->uniform > 0)
        att_json_put_number(writer, "uniform", m->uniform);
    if (m->excluded) {
        att_json_put_bool(writer, ATT_EXCLUDED_KEY, true);
    }
    att_json_end_object(writer);
}

/* {"parts": "both", "length": 1}: the options of an instrument, as they were in use. */
static void write_options(att_json_writer *writer, const att_instrument_info *info, const double *values)
{
    att_json_put_object(writer, info->name);
    for (int i = 0; i < info->option_count; i++)
        if (info->options[i].choices)
            att_json_put_string(writer, info->options[i].name, info->options[i].choices[(int)values[i]]);
        else
            att_json_put_number(writer, info->options[i].name, values[i]);
    att_json_end_object(writer);
}

static void write_all_options(att_json_writer *writer, const att_measure *measure)
{
    att_json_put_object(writer, "options");
    for (int i = 0; i < att_measure_instrument_count(measure); i++) {
        att_instrument_info info = att_measure_instrument_at(measure, i);
        if (info.option_count > 0)
            write_options(writer, &info, att_measure_options_at(measure, i));
    }
    att_json_end_object(writer);
}

void cli_figures_json(att_json_writer *writer, const att_measure *measure, bool texts)
{
    att_json_put_array(writer, "instruments");
    for (int i = 0; i < att_measure_instrument_count(measure); i++) {
        att_instrument_info info = info_of(measure, i, texts);
        att_instrument_write_json(&info, writer);
    }
    att_json_end_array(writer);
    write_all_options(writer, measure);
    att_json_put_array(writer, "measurements");
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        write_measurement(writer, &m);
    }
    att_json_end_array(writer);
}

/* --- details of an evaluation ------------------------------------------------------------------------------------- */

att_status cli_details_keep(void *user, const att_measurement *figures, int count)
{
    cli_details *kept = user;
    kept->items = calloc((size_t)count, sizeof *kept->items);
    for (int i = 0; i < count && kept->items; i++) {
        char *node = malloc(strlen(figures[i].node) + 1);
        if (!node)
            return ATT_ERR_MEMORY;
        kept->items[i] = figures[i];
        kept->items[i].node = strcpy(node, figures[i].node);
        kept->count++;
    }
    return kept->items ? ATT_OK : ATT_ERR_MEMORY;
}

void cli_details_free(cli_details *details)
{
    for (int i = 0; i < details->count; i++)
        free((char *)details->items[i].node);
    free(details->items);
    *details = (cli_details){0};
}

void cli_details_print(const cli_details *details)
{
    int width = 0;
    for (int i = 0; i < details->count; i++) {
        const int length = (int)strlen(details->items[i].node);
        width = length > width ? length : width;
    }
    for (int i = 0; i < details->count; i++) {
        const att_measurement *m = &details->items[i];
        const bool new_node = i == 0 || strcmp(m->node, m[-1].node) != 0;
        if (new_node)
            cli_print("%s  %-*s", i == 0 ? "" : "\n", width, m->node);
        cli_print("   %s %6.2f %s", m->statistic, m->mean, m->unit);
    }
    if (details->count > 0)
        cli_print("\n");
}

void cli_details_json(att_json_writer *writer, const cli_details *details)
{
    if (details->count == 0)
        return;
    att_json_put_array(writer, "measurements");
    for (int i = 0; i < details->count; i++)
        write_measurement(writer, &details->items[i]);
    att_json_end_array(writer);
}
