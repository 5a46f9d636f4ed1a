#include "engine/ops/attention_summary.h"
#include "study/measure/list.h"

static const att_summary_column column = {ATT_SUMMARY_ENTROPY, "mean"};

static att_status request(att_requests *requests)
{
    return att_summaries_request(requests, &column, 1, false);
}

static void observe(const att_observed *observed, double *values)
{
    att_summaries_observe(observed, &column, 1, values);
}

static const att_statistic_scale scales[] = {
    {"mean", "0 if every query attends to one token; the bound if it attends to all alike", "the formula"},
    {"mean", "2.48 to 4.32 by layer in DeiT-Tiny, of ln 197 = 5.28", ATT_OF_PHOTOGRAPHS},
    {"mean", "4.4 on average over the layers of a trained ViT-S", "Hyeon-Woo et al., ICCV 2023"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_entropy = {
    .info = {.name = "entropy",
             .view = "uniform",
             .title = "Attention entropy",
             .summary = "how evenly queries spread their attention",
             .unit = "nats",
             .formula = "H = mean over queries i of -sum_j a_ij ln a_ij; between 0 (one token) and ln N (all alike)",
             .source = "Hyeon-Woo et al., ICCV 2023",
             .scales = scales,
             .reading = "over all queries, including the class token and the padding of windows; N keys: all tokens, "
                        "or those of the query's window, or with the zero tokens around a map; the bound of a layer is "
                        "its ln N, with causal attention the mean of ln 1, ..., ln N; natural logarithm"},
    .request = request,
    .observe = observe,
};
