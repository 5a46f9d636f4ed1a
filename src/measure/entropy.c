#include "measure/list.h"
#include "ops/attention_summary.h"

static const att_summary_column column = {ATT_SUMMARY_ENTROPY, "mean"};

static att_status request(att_requests *requests)
{
    return att_summaries_request(requests, &column, 1, false);
}

static void observe(const att_observed *observed, double *values)
{
    att_summaries_observe(observed, &column, 1, values);
}

const att_instrument att_instrument_entropy = {
    .info = {.name = "entropy",
             .title = "Attention entropy",
             .summary = "how evenly queries spread their attention",
             .unit = "nats",
             .formula = "H = mean over queries i of -sum_j a_ij ln a_ij; between 0 (one token) and ln N (all alike)",
             .source = "Hyeon-Woo et al., ICCV 2023",
             .reading =
                 "over all queries, including the class token and the padding of windows; N keys: all tokens, or those "
                 "of the query's window, or with the zero tokens around a map; the bound of a layer is its ln N, with "
                 "causal attention the mean of ln 1, ..., ln N; natural logarithm"},
    .request = request,
    .observe = observe,
};
