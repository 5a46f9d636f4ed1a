#include <math.h>

#include "study/measure/list.h"
#include "study/measure/moments.h"

/* Kinds of gates: over channels, over pixels. */
enum { KINDS = 2 };
static const char *const of_gate[KINDS] = {"correlation", "pixel correlation"};
static const char *const of_network[KINDS] = {"mean correlation", "mean pixel correlation"};

/* Finds the next gate that lies on the branch of a residual step. Returns -1 if there is none. */
static int next_gate(const att_requests *requests, int after, att_residual_step *step)
{
    int gate = att_requests_gate(requests, after);
    while (gate >= 0 && !att_step_of_gate(att_requests_graph(requests), gate, step))
        gate = att_requests_gate(requests, gate);
    return gate;
}

/* Declares the series of the gates of one kind, and of their mean. Returns the number of gates. */
static int add_series(att_requests *requests, int kind)
{
    const att_graph *graph = att_requests_graph(requests);
    att_residual_step step;
    int gates = 0;
    for (int i = next_gate(requests, -1, &step); i >= 0; i = next_gate(requests, i, &step))
        if (att_is_pixel_gate(&graph->nodes.items[i]) == kind) {
            att_requests_series(requests, graph->nodes.items[i].scope, -1, of_gate[kind]);
            gates++;
        }
    if (gates > 0)
        att_requests_series(requests, "", -1, of_network[kind]);
    return gates;
}

/* Requests two rows for each gate: its values, with the kind of the gate as their constant, and the norms of its step.
 */
static att_status request(att_requests *requests)
{
    const att_graph *graph = att_requests_graph(requests);
    att_residual_step step;
    for (int i = next_gate(requests, -1, &step); i >= 0; i = next_gate(requests, i, &step)) {
        att_requests_gate_values(requests, i, att_is_pixel_gate(&graph->nodes.items[i]));
        att_requests_step_norms(requests, &step, ATT_DT_GATES);
    }
    int gates = 0;
    for (int kind = 0; kind < KINDS; kind++)
        gates += add_series(requests, kind);
    return gates > 0 ? ATT_OK : att_requests_found_nothing(requests, "gate on a residual branch");
}

/* --- the state: moments of each gate ------------------------------------------------------------------------------ */

static int gates_of(const att_observed *shape)
{
    return shape->count / 2;
}

static size_t size(const att_observed *shape)
{
    return (size_t)gates_of(shape) * sizeof(att_moments);
}

static double mean_of(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i];
    return sum / (double)count;
}

static void observe(void *state, const att_observed *observed)
{
    att_moments *of = state;
    for (int i = 0; i < gates_of(observed); i++)
        att_moments_add(&of[i], mean_of(observed->rows[2 * i], observed->lengths[2 * i]),
                        att_nsi(observed->rows[2 * i + 1], ATT_READING_ATTENTION));
}

static void merge(void *state, const void *later, const att_observed *shape)
{
    att_moments *of = state;
    const att_moments *more = later;
    for (int i = 0; i < gates_of(shape); i++)
        att_moments_merge(&of[i], &more[i]);
}

/* A figure of `count` samples, none of which has a value if the mean is not defined. */
static att_figure figure_of(double mean, int64_t count, int64_t undefined)
{
    return (att_figure){.mean = mean, .deviation = NAN, .count = count, .undefined = isnan(mean) ? count : undefined};
}

/* Writes the figures of the gates of one kind, and of their mean. Returns the figures after them. */
static att_figure *report_kind(const att_moments *of, const att_observed *shape, int kind, att_figure *figures)
{
    double sum = 0;
    int gates = 0, defined = 0;
    int64_t samples = of[0].count + of[0].undefined;
    for (int i = 0; i < gates_of(shape); i++) {
        if (shape->constants[2 * i] != kind)
            continue;
        double correlation = att_moments_correlation(&of[i]);
        *figures++ = figure_of(correlation, samples, of[i].undefined);
        gates++;
        defined += !isnan(correlation);
        sum += isnan(correlation) ? 0 : correlation;
    }
    if (gates > 0)
        *figures++ = figure_of(defined > 0 ? sum / defined : NAN, samples, 0);
    return figures;
}

static void report(const void *state, const att_observed *shape, att_figure *figures)
{
    for (int kind = 0; kind < KINDS; kind++)
        figures = report_kind(state, shape, kind, figures);
}

static const att_statistic_scale scales[] = {
    {NULL, "1: larger steps where the block is stiffer; -1: smaller ones, as an adaptive method takes; 0: unrelated",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_gate_stiffness = {
    .info = {.name = "gate_stiffness",
             .view = "step size",
             .title = "Gates against stiffness",
             .summary = "whether a block's step size follows its stiffness from image to image",
             .unit = "1",
             .formula = "r = cov(g, zeta) / (sd(g) sd(zeta)) over images, for each gate: g is its mean over channels, "
                        "or over pixels, and zeta that of its residual step; mean correlation: over the gates",
             .source = "claim, step sizes adapt to stiffness: Huang et al., ICCV 2023; the statistic is ours",
             .scales = scales,
             .reading = "Pearson's correlation, block by block, so that depth does not enter; zeta in nsi's reading "
                        "attention; gates over channels and over pixels (CBAM's second one) are separate; not defined, "
                        "and left out of the mean, if the gate or zeta is constant (deviation at most 1e-6 of the "
                        "mean, the accuracy of f32) or of fewer than 3 images",
             .by_block = true},
    .request = request,
    .state = {size, observe, merge, report},
};
