/* attscope stack: formulas and tables. */
#include <math.h>
#include <stddef.h>

#include "stack.h"

/* Logarithms beyond this are printed as e^A. */
static const double MOST_PLAIN = 1e6;

/* All layers of less than MOST_ROWS, else the first FIRST_ROWS and a geometric series. */
enum { MOST_ROWS = 24, FIRST_ROWS = 11, CELL = 64 };

void stack_explain(FILE *out)
{
    fputs(
        "Figures (Dong et al., \"Attention is not all you need\", ICML 2021):\n"
        "  r          |res(X)|_{1,inf} = sqrt(|res(X)|_1 |res(X)|_inf), with the mean of the\n"
        "             tokens in res(X) = X - 1 mean'; JSON also has the column medians\n"
        "  r/|X|      the same divided by |X|_{1,inf}\n"
        "  rank       participation ratio (sum s^2)^2 / sum s^4 of res(X)'s singular values s\n"
        "  mild       share of rows, over heads, with |E_ij - E_ij'| <= 1.256, which the\n"
        "             paper's proof assumes; E = res(X) W_QK res(X)' / sqrt(d_qk)\n"
        "  branch     |res(SA(X))| of the attention alone, and its bound from the measured\n"
        "             residual of its input: C gamma beta H r^3 / sqrt(d_qk) (lemmas A.1, A.3)\n"
        "  from X_0   bound of r by |res(X_0)|: (C gamma beta H / sqrt(d_qk))^((3^l - 1) / 2)\n"
        "             r_0^(3^l) (A.4, A.5); with MLPs beta lambda for beta; with skips the\n"
        "             largest of (2 C gamma beta H / sqrt(d_qk))^((3^k - 1) / 2)\n"
        "             (2 H)^(3^k (l - k)) r_0^(3^k), k <= l; with both the paper has none\n"
        "  paper      C = 4, with the largest beta, gamma and lambda of all layers so far\n"
        "  safe       C = 2 (the rows of softmax move by at most D_ii / 2; times 2 for the mean\n"
        "             of tokens); heads, skips and layers are added in |.|_1 and |.|_inf, since\n"
        "             |.|_{1,inf} has no triangle inequality. It always holds\n"
        "  beta       |W_QK|_1 |W_V W_O|_{1,inf}, the largest of all heads\n"
        "  gamma      sqrt(sum_i D_ii / max_i D_ii), D_ii = max_jj' |E_ij - E_ij'|, measured\n"
        "  lambda     1.129 sqrt(|W_1|_1 |W_1|_inf |W_2|_1 |W_2|_inf): MLP with GELU (erf)\n",
        out);
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* The residual from which a bound starts. */
typedef enum start { NO_BOUND, FROM_INPUT, FROM_X0 } start;

/* A member of att_stack_layer: an att_stack_log, or a double. */
typedef struct column {
    const char *title;
    size_t at; /* offset of the member */
    bool is_log;
    start start;
} column;

#define LOG(member) .at = offsetof(att_stack_layer, member), .is_log = true
#define NUMBER(member) .at = offsetof(att_stack_layer, member)
static const column residual_columns[] = {
    {"ln r", LOG(residual)}, {"ln r/|X|", LOG(relative)}, {"ln |X|", NUMBER(norm)}, {"rank", NUMBER(rank)}};
static const column bound_columns[] = {{"mild", NUMBER(condition)},
                                       {"ln branch", LOG(branch)},
                                       {"paper", LOG(branch_bound.paper), .start = FROM_INPUT},
                                       {"safe", LOG(branch_bound.safe), .start = FROM_INPUT},
                                       {"ln r", LOG(residual)},
                                       {"paper from X_0", LOG(bound.paper), .start = FROM_X0},
                                       {"safe from X_0", LOG(bound.safe), .start = FROM_X0}};
#undef LOG
#undef NUMBER

static att_stack_log log_of(const column *c, const att_stack_layer *layer)
{
    return *(const att_stack_log *)((const char *)layer + c->at);
}

static bool is_vacuous(const stack_results *r, const column *c, int i, int l)
{
    const att_stack_layer *layer = stack_layer(r, i, l);
    if (c->start == NO_BOUND || isnan(log_of(c, layer).log_log))
        return false;
    return att_stack_is_vacuous(log_of(c, layer),
                                c->start == FROM_INPUT ? layer->input : stack_layer(r, i, 0)->residual);
}

/* " v" if the bound is vacuous in all repeats, " (v)" if it is in some. */
static const char *mark_of(const stack_results *r, const column *c, int l)
{
    int vacuous = 0;
    for (int i = 0; i < r->repeats; i++)
        vacuous += is_vacuous(r, c, i, l);
    return vacuous == 0 ? "" : vacuous == r->repeats ? " v" : " (v)";
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static const char *number_text(double value, char text[CELL])
{
    if (isnan(value))
        return "-";
    snprintf(text, CELL, fabs(value) < 1000 ? "%.3f" : "%.6g", value);
    return text;
}

static const char *log_text(att_stack_log v, const char *mark, char text[CELL])
{
    if (isnan(v.log_log))
        return "-";
    if (fabs(v.log) < MOST_PLAIN)
        snprintf(text, CELL, fabs(v.log) < 1000 ? "%.3f%s" : "%.6g%s", v.log, mark);
    else if (v.log_log == INFINITY)
        snprintf(text, CELL, "-inf%s", mark);
    else
        snprintf(text, CELL, "%se^%.4f%s", v.log < 0 ? "-" : "", v.log_log, mark);
    return text;
}

typedef struct spread {
    double mean, deviation; /* deviation: n - 1 */
} spread;

/* values: repeats of them, with a stride. */
static spread spread_of(const double *values, int count)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < count; i++)
        mean += values[i] / count;
    for (int i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return (spread){mean, sqrt(squares / (count - 1))};
}

/* Mean and deviation of the logarithms of all repeats; of ln |ln v| if one of them is beyond MOST_PLAIN. */
static const char *repeated_text(const stack_results *r, const column *c, int l, char text[CELL])
{
    double logs[STACK_REPEATS], log_logs[STACK_REPEATS];
    int plain = 0, below = 0, above = 0;
    for (int i = 0; i < r->repeats; i++) {
        att_stack_log v = log_of(c, stack_layer(r, i, l));
        logs[i] = v.log;
        log_logs[i] = v.log_log;
        plain += fabs(v.log) < MOST_PLAIN;
        below += v.log < 0 && isfinite(v.log_log);
        above += v.log > 0 && isfinite(v.log_log);
    }
    const char *mark = mark_of(r, c, l);
    spread s = spread_of(plain == r->repeats ? logs : log_logs, r->repeats);
    if (plain == r->repeats)
        snprintf(text, CELL, "%.5g +- %.2g%s", s.mean, s.deviation, mark);
    else if (below == r->repeats || above == r->repeats)
        snprintf(text, CELL, "%se^(%.5g +- %.2g)%s", below ? "-" : "", s.mean, s.deviation, mark);
    else
        return isnan(log_logs[0]) ? "-" : "not all finite";
    return text;
}

static const char *cell_text(const stack_results *r, const column *c, int l, char text[CELL])
{
    if (c->is_log)
        return r->repeats == 1 ? log_text(log_of(c, stack_layer(r, 0, l)), mark_of(r, c, l), text)
                               : repeated_text(r, c, l, text);
    double values[STACK_REPEATS];
    for (int i = 0; i < r->repeats; i++)
        values[i] = *(const double *)((const char *)stack_layer(r, i, l) + c->at);
    return number_text(spread_of(values, r->repeats).mean, text);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* The layer after `l` that has a row. */
static int next_row(int l, int depth)
{
    if (depth < MOST_ROWS || l < FIRST_ROWS - 1)
        return l + 1;
    double factor = pow((double)depth / (FIRST_ROWS - 1), 1.0 / (MOST_ROWS - FIRST_ROWS));
    int next = (int)(l * factor + 0.5);
    next = next > l ? next : l + 1;
    return l < depth && next > depth ? depth : next;
}

static void print_table(const stack_results *r, const column *columns, int count, int first)
{
    char text[CELL];
    int width = r->repeats == 1 ? 14 : 24;
    cli_print("%6s", "layer");
    for (int c = 0; c < count; c++)
        cli_print("  %*s", columns[c].is_log ? width : 8, columns[c].title);
    cli_print("\n");
    for (int l = first; l <= r->options.depth; l = next_row(l, r->options.depth)) {
        cli_print("%6d", l);
        for (int c = 0; c < count; c++)
            cli_print("  %*s", columns[c].is_log ? width : 8, cell_text(r, &columns[c], l, text));
        cli_print("\n");
    }
}

/* The first layer whose residual is 0; depth + 1 if there is none. */
static int first_zero(const stack_results *r, int i)
{
    int l = 0;
    while (l <= r->options.depth && stack_layer(r, i, l)->residual.log_log != INFINITY)
        l++;
    return l;
}

/* Says why ln r is -inf. */
static void print_zeros(const stack_results *r)
{
    int found = 0, first = r->options.depth + 1;
    for (int i = 0; i < r->repeats; i++) {
        int zero = first_zero(r, i);
        found += zero <= r->options.depth;
        first = zero < first ? zero : first;
    }
    if (found == 0)
        return;
    if (first == 0)
        cli_print("\n-inf: all tokens of X_0 are equal, so that r is 0\n");
    else
        cli_print(
            "\n-inf: attention is so sharp that the tokens become equal in layer %d: r is 0, or beyond a double's "
            "range%s\n",
            first, r->repeats > 1 ? " (in the first such stack)" : "");
}

/* Returns whether there is a slope. */
static bool print_fit(const stack_results *r, double least, const char *range)
{
    double slopes[STACK_REPEATS];
    int found = 0;
    att_stack_fit first = {0};
    for (int i = 0; i < r->repeats; i++) {
        att_stack_fit fit = att_stack_fit_rate(stack_layer(r, i, 0), r->options.depth, least);
        first = i == 0 ? fit : first;
        if (!isnan(fit.slope))
            slopes[found++] = fit.slope;
    }
    if (found == 0)
        return false;
    spread s = spread_of(slopes, found);
    cli_print("  %-24s slope %.4f", range, s.mean);
    if (found > 1)
        cli_print(" +- %.2g (n = %d)", s.deviation, found);
    cli_print(", %d pairs, from layer %d to %d%s\n", first.pairs, first.first, first.last + 1,
              found > 1 ? " in the first stack" : "");
    return true;
}

static void print_rate(const stack_results *r)
{
    cli_print(
        "\nCollapse rate: ln r_{l+1} = slope ln r_l + c by least squares (3: doubly exponential, 1: exponential)\n");
    bool found = print_fit(r, STACK_LEAST_LOG, "r within a double's range");
    found = print_fit(r, -INFINITY, "all finite ln r") || found;
    if (!found)
        cli_print("  none: fewer than two layers have different, finite ln r\n");
}

/* The largest excess of a head's residual over its own bound. */
static void print_heads(const stack_results *r)
{
    double paper = -INFINITY, safe = -INFINITY;
    for (int i = 0; i < r->repeats; i++)
        for (int l = 1; l <= r->options.depth; l++) {
            paper = fmax(paper, stack_layer(r, i, l)->head_paper);
            safe = fmax(safe, stack_layer(r, i, l)->head_safe);
        }
    cli_print("\nOne head, one layer: largest ln(residual / bound) over heads and layers: paper %.3f, safe %.3f%s\n",
              paper, safe, paper > 0 ? " (the paper's bound fails)" : "");
}

/* Why there is no bound from X_0. */
static void print_reason(const stack_results *r)
{
    const att_stack_options *o = &r->options;
    if (o->norm != ATT_STACK_NORM_NONE && isnan(stack_layer(r, 0, 1)->bound.safe.log_log))
        cli_print("No bound from X_0: weights absorb only a column-wise norm after attention without skip and MLP\n");
    else if (isnan(stack_layer(r, 0, 1)->bound.paper.log_log))
        cli_print("The paper has no bound for skips and MLPs together\n");
}

/* Whether the residual exceeds its bound by more than rounding. */
static bool fails(att_stack_log residual, att_stack_log bound)
{
    return !isnan(bound.log_log) && att_stack_compare(residual, bound) > 0 &&
           !(residual.log - bound.log < 1e-12 * fmax(1, fabs(residual.log)));
}

/* Counts the layers of all repeats whose bounds fail. */
static void print_failures(const stack_results *r)
{
    int branch_paper = 0, branch_safe = 0, paper = 0, safe = 0;
    for (int i = 0; i < r->repeats; i++)
        for (int l = 1; l <= r->options.depth; l++) {
            const att_stack_layer *layer = stack_layer(r, i, l);
            branch_paper += fails(layer->branch, layer->branch_bound.paper);
            branch_safe += fails(layer->branch, layer->branch_bound.safe);
            paper += fails(layer->residual, layer->bound.paper);
            safe += fails(layer->residual, layer->bound.safe);
        }
    cli_print("Bounds that fail, of %d: branch paper %d, branch safe %d, from X_0 paper %d, from X_0 safe %d\n",
              r->repeats * r->options.depth, branch_paper, branch_safe, paper, safe);
}

static void print_absorption(const stack_results *r)
{
    int depth = r->options.depth, grown = 0;
    double layer = 0;
    for (int l = 0; l < depth; l++)
        layer = fmax(layer, r->absorption[l].layer);
    while (grown < depth && r->absorption[grown].stack < 1e-3)
        grown++;
    cli_print("\nColumn-wise norm absorbed into W_O and a bias: |X - X'| / |X|\n");
    cli_print("  one layer from the same tokens: at most %.2g\n", layer);
    cli_print("  the stack from X_0: %.2g after layer 1, ", r->absorption[0].stack);
    if (isinf(r->absorption[depth - 1].stack))
        cli_print("beyond 1e308 after layer %d", depth);
    else
        cli_print("%.2g after layer %d", r->absorption[depth - 1].stack, depth);
    if (grown < depth)
        cli_print("; above 1e-3 from layer %d", grown + 1);
    cli_print("\n  Without norm each layer cubes the residual, which triples relative rounding errors.\n");
}

static void print_prices(const stack_results *r)
{
    static const char *const titles[] = {"lambda", "ln r_L", "ln |X_L' - X_L| / |D|", "|g|", "variance of g"};
    enum { RESIDUAL = 1, FIGURES = sizeof titles / sizeof *titles };
    bool zero = false;
    cli_print(
        "\nWhat a larger Lipschitz constant of the MLP costs: %d sample%s of X_0; X_0 perturbed by D, |D| = 1e-3 "
        "|X_0|; g: gradient\n"
        "of <G, X_L>, |G| = 1 random, with respect to all weights; variance: mean of |g - mean g|^2\n%8s",
        r->samples, cli_plural(r->samples), "gain");
    for (int k = 0; k < FIGURES; k++)
        cli_print("  %21s", titles[k]);
    cli_print("\n");
    for (int p = 0; p < r->price_count; p++) {
        double values[FIGURES][STACK_REPEATS];
        for (int i = 0; i < r->repeats; i++) {
            const att_stack_price *price = &r->prices[p * r->repeats + i];
            const double figures[FIGURES] = {price->lambda, price->residual, price->sensitivity, price->gradient_norm,
                                             price->gradient_variance};
            for (int k = 0; k < FIGURES; k++)
                values[k][i] = figures[k];
        }
        zero = zero || !isfinite(spread_of(values[RESIDUAL], r->repeats).mean);
        cli_print("%8g", r->gains[p]);
        for (int k = 0; k < FIGURES; k++) {
            char cell[CELL];
            spread s = spread_of(values[k], r->repeats);
            snprintf(cell, CELL, r->repeats > 1 ? "%.4g +- %.2g" : "%.4g", s.mean, s.deviation);
            cli_print("  %21s", cell);
        }
        cli_print("\n");
    }
    if (zero)
        cli_print("-inf: the tokens of a sample become equal: r_L is 0, or beyond a double's range\n");
}

static void print_title(const stack_results *r)
{
    const att_stack_options *o = &r->options;
    cli_print("%d layer%s, %d token%s of width %d, %d head%s, %s, norm %s%s, ", o->depth, o->depth > 1 ? "s" : "",
              o->tokens, o->tokens > 1 ? "s" : "", o->width, o->heads, o->heads > 1 ? "s" : "",
              o->skip && o->mlp ? "with skips and MLPs"
              : o->skip         ? "with skips"
              : o->mlp          ? "with MLPs"
                                : "attention only",
              stack_norm_name(o->norm),
              o->norm == ATT_STACK_NORM_NONE ? ""
              : o->pre_norm                  ? " before branches"
                                             : " after branches");
    unsigned long long seed = o->seed, repeats = (unsigned long long)r->repeats;
    if (r->checkpoint)
        cli_print("weights of %s, X_0 of %s\n", r->checkpoint, r->image);
    else if (repeats > 1)
        cli_print("seed %llu to %llu, mean +- deviation (n = %llu)\n", seed, seed + repeats - 1, repeats);
    else
        cli_print("seed %llu\n", seed);
}

void stack_print(const stack_results *r)
{
    print_title(r);
    cli_print(
        "\nresidual r: how far the tokens are from being all the same\n"
        "  formula    |res(X)|_{1,inf} = sqrt(|res(X)|_1 |res(X)|_inf), res(X) = X - 1 x'\n"
        "  source     Dong et al., ICML 2021\n"
        "  reading    x is the mean of the tokens; rank is the participation ratio of res(X)'s\n"
        "             singular values; natural logarithms\n\n");
    print_table(r, residual_columns, sizeof residual_columns / sizeof *residual_columns, 0);
    print_zeros(r);
    print_rate(r);
    cli_print(
        "\nbounds of the attention branch, from its input, and of r from X_0\n"
        "  formula    C gamma beta H r^3 / sqrt(d_qk);\n"
        "             (C gamma beta H / sqrt(d_qk))^((3^l - 1) / 2) r_0^(3^l); more in --help\n"
        "  source     Dong et al., ICML 2021, lemmas A.1 to A.5, corollaries A.1 and A.2\n"
        "  reading    paper: C = 4, with skips 8, which its proof gives for mild rows; safe: C = 2,\n"
        "             sums in |.|_1 and |.|_inf, holds always; v: the bound is no smaller than the\n"
        "             input, so it says nothing\n\n");
    print_table(r, bound_columns, sizeof bound_columns / sizeof *bound_columns, 1);
    print_reason(r);
    print_heads(r);
    print_failures(r);
    if (r->absorption)
        print_absorption(r);
    if (r->price_count > 0)
        print_prices(r);
    cli_print("\n`attscope stack --help` has the formulas.\n");
}
