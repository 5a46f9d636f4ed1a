#include "engine/ops/attention.h"
#include "study/measure/list.h"

enum { ONE, INFINITE };

/* Whether the branch of the step has an attention layer. */
static bool attends(const att_graph *graph, const att_residual_step *step)
{
    for (int i = graph->values.items[step->before].node + 1; i < step->node; i++)
        if (att_is_attention(&graph->nodes.items[i]))
            return true;
    return false;
}

static bool is_selected(const att_requests *requests, const att_residual_step *step)
{
    const att_graph *graph = att_requests_graph(requests);
    return att_value_shape(graph, step->before).rank == 2 && attends(graph, step) &&
           att_requests_has_step(requests, step);
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    for (att_residual_step step = {.node = -1}; att_residual_step_next(graph, step.node, &step);) {
        if (!is_selected(requests, &step))
            continue;
        att_requests_residual(requests, step.scope, "skip", step.before, false);
        att_requests_residual(requests, step.scope, "branch", graph->nodes.items[step.node].in[1], false);
        att_requests_series(requests, step.scope, -1, "mean");
        found = true;
    }
    return found ? ATT_OK : att_requests_found_nothing(requests, "residual addition of an attention branch");
}

static double norm_of(const float *row)
{
    return (double)row[ONE] * (double)row[INFINITE];
}

static void observe(const att_observed *observed, double *values)
{
    for (int i = 0; i < observed->count / 2; i++) {
        double skip = norm_of(observed->rows[2 * i]), branch = norm_of(observed->rows[2 * i + 1]);
        values[i] = skip / (skip + branch);
    }
}

static const att_statistic_scale scales[] = {
    {"mean", "0.5 if skip and branch have one size, 1 without a branch", "the formula"},
    {"mean", "0.76 to 0.96 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_skip_weight = {
    .info = {.name = "skip_weight",
             .view = "rank",
             .title = "Skip weight",
             .summary = "weight of the skip beside the attention branch",
             .unit = "1",
             .formula = "alpha = N(x) / (N(x) + N(MHSA(x))), N(x) = |x|_1 |x|_inf",
             .source = "Dong et al., ICML 2021, public code",
             .scales = scales,
             .reading = "of each residual addition with an attention branch; MHSA(x) is the branch as it is added, "
                        "behind LayerScale; N is the square of the composite norm, as in the code"},
    .request = request,
    .observe = observe,
};
