#include "core/text.h"
#include "measure/list.h"

static bool is_wanted(const att_asking *asking, const att_residual_step *step)
{
    return att_asking_node(asking, "add", step->node - 1) == step->node;
}

static void add_series(att_asking *asking, const char *statistic)
{
    const att_graph *graph = att_asking_graph(asking);
    att_residual_step step = {.node = -1};
    while (att_residual_step_next(graph, step.node, &step))
        if (is_wanted(asking, &step))
            att_asking_series(asking, graph->nodes.items[step.node].scope, -1, statistic);
}

static att_status ask(att_asking *asking)
{
    att_residual_step step = {.node = -1};
    bool found = false;
    while (att_residual_step_next(att_asking_graph(asking), step.node, &step)) {
        if (!is_wanted(asking, &step))
            continue;
        att_asking_step_norms(asking, &step);
        found = true;
    }
    add_series(asking, "attention");
    add_series(asking, "unit");
    return found ? ATT_OK : att_asking_found_nothing(asking, "residual addition");
}

static void observe(const att_observed *observed, double *values)
{
    for (int i = 0; i < observed->count; i++) {
        values[i] = att_nsi_attention(observed->rows[i]);
        values[observed->count + i] = att_nsi_unit(observed->rows[i]);
    }
}

const att_instrument att_instrument_nsi = {
    .info = {.name = "nsi",
             .summary = "neural stiffness index: how large a residual step is beside what it changes",
             .unit = "1",
             .formula = "zeta(x_t) = |(x_{t+1} - x_t) / dt|_2 / |x_t|_2, t over the network's residual additions",
             .source = "Huang et al., ICCV 2023",
             .reading = "attention: dt is the gate (LayerScale, drop path), so the quotient is the branch before it; "
                        "unit: dt = 1; norms over all tokens and channels; a ViT has two steps a block"},
    .ask = ask,
    .observe = observe,
};
