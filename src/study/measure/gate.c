#include <math.h>
#include <string.h>

#include "base/core/quantile.h"
#include "base/core/ranks.h"
#include "study/measure/list.h"

/* The statistics in the order of their series. Each statistic has one series per gate. */
static const char *const statistics[] = {"mean",         "deviation", "minimum",     "quantile 0.1", "median",
                                         "quantile 0.9", "maximum",   "share < 0.5", "share < 1"};
enum { MOST_PAIRS = 1024 }; /* of a gate and a step, in a rank correlation */
enum { MEAN, DEVIATION, MINIMUM, TENTH, MEDIAN, NINETIETH, MAXIMUM, BELOW_HALF, BELOW_ONE, STATISTICS };

/* Finds the step of a gate over channels. Returns false for other gates, and if the step begins a stage: such steps are
 * excluded, as in tns. */
static bool paired_step(const att_graph *graph, int gate, att_residual_step *step)
{
    return !att_is_pixel_gate(&graph->nodes.items[gate]) && att_step_of_gate(graph, gate, step) && !step->begins;
}

/* Requests a row with the values of each gate, then rows with the norms of the steps of paired gates. The constant of a
 * gate's row is the index of the row with its step's norms; -1 if it is not paired. */
static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    att_residual_step step;
    int gates = 0, pairs = 0, number = 0;
    /* Adding probes adds nodes, but no gates. */
    for (int i = att_requests_gate(requests, -1); i >= 0; i = att_requests_gate(requests, i))
        gates++;
    for (int i = att_requests_gate(requests, -1); number < gates; i = att_requests_gate(requests, i), number++) {
        bool is_paired = paired_step(graph, i, &step);
        att_requests_gate_values(requests, i, is_paired ? gates + pairs : -1);
        pairs += is_paired;
    }
    for (int i = att_requests_gate(requests, -1); i >= 0; i = att_requests_gate(requests, i))
        if (paired_step(graph, i, &step))
            att_requests_step_norms(requests, &step, ATT_DT_GATES);
    for (int s = 0; s < STATISTICS; s++)
        for (int i = att_requests_gate(requests, -1); i >= 0; i = att_requests_gate(requests, i))
            att_requests_series(requests, graph->nodes.items[i].scope, -1, statistics[s]);
    if (pairs > 2 && pairs <= MOST_PAIRS)
        att_requests_series(requests, "", -1, "rank correlation with zeta");
    return gates > 0 ? ATT_OK : att_requests_found_nothing(requests, "gate");
}

/* --- one gate ----------------------------------------------------------------------------------------------------- */

static void compute_statistics(const float *gate, int64_t count, double *of)
{
    memset(of, 0, STATISTICS * sizeof *of);
    of[MINIMUM] = of[MAXIMUM] = gate[0];
    for (int64_t i = 0; i < count; i++) {
        double value = gate[i];
        of[MEAN] += value / (double)count;
        of[MINIMUM] = fmin(of[MINIMUM], value);
        of[MAXIMUM] = fmax(of[MAXIMUM], value);
        of[BELOW_HALF] += (value < 0.5) / (double)count;
        of[BELOW_ONE] += (value < 1) / (double)count;
    }
    for (int64_t i = 0; i < count; i++)
        of[DEVIATION] += (gate[i] - of[MEAN]) * (gate[i] - of[MEAN]) / (double)count;
    of[DEVIATION] = sqrt(of[DEVIATION]);
    of[TENTH] = att_quantile_of(gate, count, 0.1, false);
    of[MEDIAN] = att_quantile_of(gate, count, 0.5, false);
    of[NINETIETH] = att_quantile_of(gate, count, 0.9, false);
}

/* --- correlation of gates with the stiffness of their steps ------------------------------------------------------- */

/* Spearman's rank correlation of the means of gates that have a step with zeta of the step. */
static double rank_correlation(const att_observed *observed, const double *means, int gates)
{
    double gate[MOST_PAIRS], zeta[MOST_PAIRS], ranks[2][MOST_PAIRS];
    int count = 0;
    for (int i = 0; i < gates; i++)
        if (observed->constants[i] >= 0) {
            gate[count] = means[i];
            zeta[count++] = att_nsi(observed->rows[(int)observed->constants[i]], ATT_READING_ATTENTION);
        }
    att_rank_twice(gate, count, ranks[0]);
    att_rank_twice(zeta, count, ranks[1]);
    return att_spearman(ranks[0], ranks[1], count);
}

/* Number of gates. The rows of norms follow the gates' rows, and the constant of the first gate with a step is the
 * index of the first row of norms. */
static int gate_count(const att_observed *observed)
{
    for (int i = 0; i < observed->count; i++)
        if (observed->constants[i] >= 0)
            return (int)observed->constants[i];
    return observed->count;
}

static void observe(const att_observed *observed, double *values)
{
    int gates = gate_count(observed), steps = observed->count - gates;
    double of[STATISTICS];
    for (int i = 0; i < gates; i++) {
        compute_statistics(observed->rows[i], observed->lengths[i], of);
        for (int s = 0; s < STATISTICS; s++)
            values[s * gates + i] = of[s];
    }
    if (steps > 2 && steps <= MOST_PAIRS)
        values[STATISTICS * gates] = rank_correlation(observed, values + MEAN * gates, gates);
}

static const att_statistic_info titles[] = {{"deviation", "deviation over channels", NULL},
                                            {"rank correlation with zeta", "rank correlation with ζ", NULL},
                                            {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {"mean",
     "1: the branch is not scaled (dt = 1); 0: it is skipped; 0.5: a sigmoid of 0, from which gates with a sigmoid and "
     "small weights begin (iebn from 0.27, a sigmoid of -1; with start=identity from 1)",
     "the formulas of the modules"},
    {"deviation",
     "0 if all channels have the same factor; at most 0.5 for gates in 0..1, half of which are 0 and half 1",
     "the formula"},
    {"rank correlation with zeta", "1: stiffer steps have larger gates, in all blocks; -1: smaller ones; 0: unrelated",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_gate = {
    .info = {.name = "gate",
             .view = "step size",
             .title = "Gates",
             .summary = "step sizes: the factors by which attention multiplies residual branches",
             .unit = "1",
             .formula = "over the channels (or pixels) of a sample's gate: mean, deviation, extremes, quantiles, "
                        "fractions below 1/2 and below 1; over blocks: rank correlation of the mean gate with zeta",
             .source = "definition of the step size: Huang et al., ICCV 2023; the statistics are ours",
             .reading =
                 "a sigmoid is below 1 except for rounding, so share < 0.5 says more than share < 1; a gate of a "
                 "module with start=identity is below 2; between "
                 "two channels quantiles are interpolated linearly; the correlation is Spearman's within a "
                 "sample, of gates over channels with zeta in nsi's reading attention, over the steps of tns: "
                 "it is confounded with depth, see gate_stiffness; not defined if all gates have the same mean",
             .statistics = titles,
             .scales = scales,
             .by_block = true,
             .brief = "mean"},
    .request = request,
    .observe = observe,
};
