#include "engine/ops/attention_summary.h"
#include "study/measure/list.h"

static const att_summary_column columns[] = {{ATT_SUMMARY_DISTANCE, "mean"},
                                             {ATT_SUMMARY_DISTANCE_OTHERS, "renormalised"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static att_status request(att_requests *requests)
{
    return att_summaries_request(requests, columns, COLUMNS, true);
}

static void observe(const att_observed *observed, double *values)
{
    att_summaries_observe(observed, columns, COLUMNS, values);
}

static const att_statistic_info statistics[] = {{"renormalised", "renormalised over other grid tokens", NULL},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "0 if every query attends to itself; uniform: the value under uniform attention", "the formula"},
    {"mean", "0.17 to 0.47 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {"renormalised", "0.22 to 0.52 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_distance = {
    .info = {.name = "distance",
             .view = "convolution",
             .title = "Attention distance",
             .summary = "mean distance between a query and the tokens it attends to",
             .unit = "image sides",
             .formula = "D = (1/N) sum_i sum_{j != i} a_ij |p_i - p_j|, i and j over the N tokens of the grid",
             .source = "Hyeon-Woo et al., ICCV 2023",
             .statistics = statistics,
             .scales = scales,
             .reading = "p is the centre of a token's patch, in units of the image's longer side; mean: attention to "
                        "the class token and to the query itself counts as distance 0; renormalised: a_ij is divided "
                        "by the attention to other grid tokens. The padding of windows counts as tokens"},
    .request = request,
    .observe = observe,
};
