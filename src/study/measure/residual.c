#include <math.h>
#include <stdio.h>

#include <attscope/ops.h>

#include "study/measure/list.h"

enum { ONE, INFINITE, FROBENIUS, KINDS };
enum { CENTRE };       /* options */
enum { MEAN, MEDIAN }; /* of CENTRE */
static const char *const centres[] = {"mean", "median", NULL};
static const att_detail options[] = {{.name = "centre",
                                      .meaning = "what is subtracted: the mean of the tokens, or their median",
                                      .high = MEDIAN,
                                      .choices = centres}};

void att_requests_residual(att_requests *requests, const char *scope, const char *label, att_value x, bool median)
{
    att_graph *graph = att_requests_graph(requests);
    char name[256];
    snprintf(name, sizeof name, "%s.%s", scope, label);
    att_graph_scope(graph, scope);
    att_requests_value(requests, name, att_residual_norms(graph, x, median), 1);
}

static bool is_selected(const att_requests *requests, const att_graph *graph, const att_residual_step *step)
{
    return att_value_shape(graph, step->before).rank == 2 && att_requests_has_step(requests, step);
}

static void add_series(att_requests *requests, const char *statistic)
{
    const att_graph *graph = att_requests_graph(requests);
    att_residual_step step = {.node = -1};
    for (bool first = true; att_residual_step_next(graph, step.node, &step);) {
        if (!is_selected(requests, graph, &step))
            continue;
        if (first)
            att_requests_series(requests, "input", -1, statistic);
        att_requests_series(requests, graph->nodes.items[step.node].scope, -1, statistic);
        first = false;
    }
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    att_residual_step step = {.node = -1};
    const bool median = att_requests_option(requests, CENTRE) == MEDIAN;
    bool found = false;
    while (att_residual_step_next(graph, step.node, &step)) {
        if (!is_selected(requests, graph, &step))
            continue;
        const char *scope = graph->nodes.items[step.node].scope;
        if (!found)
            att_requests_residual(requests, scope, "residual_before", step.before, median);
        att_requests_residual(requests, scope, "residual", step.after, median);
        found = true;
    }
    add_series(requests, median ? "composite median" : "composite");
    add_series(requests, median ? "frobenius median" : "frobenius");
    return found ? ATT_OK : att_requests_found_nothing(requests, "residual addition of tokens");
}

double att_residual_composite(const float *row)
{
    const float *residual = row + KINDS;
    return sqrt((double)residual[ONE] / (double)row[ONE]) * sqrt((double)residual[INFINITE] / (double)row[INFINITE]);
}

double att_residual_frobenius(const float *row)
{
    return (double)row[KINDS + FROBENIUS] / (double)row[FROBENIUS];
}

static void observe(const att_observed *observed, double *values)
{
    for (int i = 0; i < observed->count; i++) {
        values[i] = att_residual_composite(observed->rows[i]);
        values[observed->count + i] = att_residual_frobenius(observed->rows[i]);
    }
}

static const att_statistic_info statistics[] = {{"composite", "composite norm", NULL},
                                                {"composite median", "composite norm, from the median", NULL},
                                                {"frobenius", "Frobenius norm", NULL},
                                                {"frobenius median", "Frobenius norm, from the median", NULL},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "0 if all tokens are equal, as after one layer of uniform attention without a skip; 1 if they sum to zero",
     "the formula"},
    {"composite", "0.66 to 0.90 along DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {"frobenius", "0.78 to 0.87 along DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_residual = {
    .info = {.name = "residual",
             .view = "rank",
             .title = "Rank residual",
             .summary = "rank residual: how far the tokens are from being identical",
             .unit = "1",
             .formula = "|res(X)| / |X|, res(X) = X - 1 m', |X| = sqrt(|X|_1 |X|_inf) (composite) or Frobenius; of the "
                        "tokens X before the first residual addition (input) and after each",
             .source = "Dong et al., ICML 2021",
             .statistics = statistics,
             .scales = scales,
             .reading =
                 "m is the mean token: it minimises the Frobenius norm, and the composite norm to within a factor of "
                 "two; with residual:centre=median, m is the median of each channel, which minimises |X|_1",
             .options = options,
             .option_count = sizeof options / sizeof *options},
    .request = request,
    .observe = observe,
};
