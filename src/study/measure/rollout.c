#include "study/measure/layers.h"
#include "study/measure/list.h"

static att_status request(att_requests *requests)
{
    return att_layers_request(requests, "rollout", INT64_MAX, att_rollout);
}

static const att_statistic_scale scales[] = {
    {"entropy", "ln N if all tokens count alike; 5.25 of 5.28 in DeiT-Tiny, so nearly uniform", ATT_OF_PHOTOGRAPHS},
    {"largest", "1/N if all tokens count alike, 0.005; 0.010 in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_rollout = {
    .info = {.name = "rollout",
             .title = "Attention rollout",
             .summary = "from which tokens of the input a network's output attends, through products of maps",
             .unit = "share",
             .formula = "row of the class token in (0.5 A_L + 0.5 I) .. (0.5 A_1 + 0.5 I)",
             .source = "Abnar and Zuidema, ACL 2020",
             .scales = scales,
             .reading = ATT_LAYERS_READING "; costs the maps of all layers, 4 bytes for each layer, query and key of "
                                           "the images that are computed together",
             .options = att_layers_options,
             .option_count = ATT_LAYERS_OPTIONS,
             .costly = true,
             .statistics = att_layers_statistics},
    .request = request,
    .observe = att_layers_observe,
};
