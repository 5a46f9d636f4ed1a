#include <string.h>

#include "measure/list.h"
#include "measure/score.h"

static att_status ask(att_asking *asking)
{
    const att_graph *graph = att_asking_graph(asking);
    for (int i = 0; i < graph->outputs.count; i++) {
        const att_named_value *output = &graph->outputs.items[i];
        if (strcmp(output->name, "logits") != 0)
            continue;
        att_asking_row(asking, output->name, 1);
        att_asking_series(asking, "", -1, "top1");
        att_asking_series(asking, "", -1, "top5");
        att_asking_series(asking, "", -1, "loss");
        return ATT_OK;
    }
    return att_asking_found_nothing(asking, "output named logits");
}

static void observe(const att_observed *observed, double *values)
{
    int classes = (int)observed->lengths[0], rank = att_score_rank(observed->rows[0], classes, observed->label);
    values[0] = rank < 1 ? 100 : 0;
    values[1] = rank < ATT_SCORE_TOP && rank < classes ? 100 : 0;
    values[2] = att_score_loss(observed->rows[0], classes, observed->label);
}

const att_instrument att_instrument_accuracy = {
    .info = {.name = "accuracy",
             .summary = "how often the network is right",
             .unit = "per cent; loss: nats",
             .formula = "100 [class is the largest logit], 100 [class is among the five largest], -ln softmax(z)_class",
             .source = "usual",
             .scores = true,
             .reading = "of equal logits the lower class number comes first; NaN counts as wrong"},
    .needs_labels = true,
    .ask = ask,
    .observe = observe,
};
