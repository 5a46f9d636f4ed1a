#include "engine/ops/attention_summary.h"
#include "study/measure/list.h"

static const att_summary_column columns[] = {{ATT_SUMMARY_NUCLEAR, "nuclear"}, {ATT_SUMMARY_FROBENIUS, "frobenius"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static att_status request(att_requests *requests)
{
    return att_summaries_request(requests, columns, COLUMNS, false);
}

static void observe(const att_observed *observed, double *values)
{
    att_summaries_observe(observed, columns, COLUMNS, values);
}

static const att_statistic_info statistics[] = {
    {"nuclear", "nuclear norm", NULL}, {"frobenius", "Frobenius norm", NULL}, {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "0 for a row with one weight; uniform: the value of a uniform row", "the formulas"},
    {"nuclear", "0.74 to 0.96 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {"frobenius", "0.17 to 0.27 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_jacobian = {
    .info = {.name = "jacobian",
             .view = "uniform",
             .title = "Softmax Jacobian",
             .summary = "sensitivity of softmax: norms of its Jacobian diag(a) - a a'",
             .unit = "1",
             .formula =
                 "mean over queries of: nuclear 1 - sum_j a_j^2; frobenius sqrt(sum a^2 - 2 sum a^3 + (sum a^2)^2)",
             .source = "claim: Hyeon-Woo et al., ICCV 2023; the formulas follow from the Jacobian",
             .statistics = statistics,
             .scales = scales,
             .reading = "the two norms rank rows differently: a uniform row over N tokens has 1 - 1/N and sqrt(1/N - "
                        "1/N^2), a row with two equal weights has 0.5 and 0.5"},
    .request = request,
    .observe = observe,
};
