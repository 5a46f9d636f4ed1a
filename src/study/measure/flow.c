#include "study/measure/layers.h"
#include "study/measure/list.h"

enum { MOST_TOKENS = 256 };

static att_status request(att_requests *requests)
{
    return att_layers_request(requests, "flow", MOST_TOKENS, att_attention_flow);
}

static const att_statistic_scale scales[] = {
    {NULL, "1/N if all tokens count alike; 1 if all flow comes from one token", "the formula"}, {NULL, NULL, NULL}};

const att_instrument att_instrument_flow = {
    .info = {.name = "flow",
             .title = "Attention flow",
             .summary =
                 "from which tokens of the input a network's output attends, as the maximum flow through its maps",
             .unit = "share",
             .formula = "maximum flow from the class token above layer L to each token below layer 1, with the "
                        "capacity (0.5 A_l + 0.5 I)_ij from token i above layer l to token j below it",
             .source = "Abnar and Zuidema, ACL 2020",
             .scales = scales,
             .reading = ATT_LAYERS_READING "; costs one maximum flow for each token and image, of time L N^2 or more, "
                                           "and 16 bytes for each layer, query and key; at most 256 tokens",
             .options = att_layers_options,
             .option_count = ATT_LAYERS_OPTIONS,
             .costly = true,
             .statistics = att_layers_statistics},
    .request = request,
    .observe = att_layers_observe,
};
