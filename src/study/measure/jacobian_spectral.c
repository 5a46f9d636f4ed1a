#include "study/measure/list.h"

static att_status request(att_requests *requests)
{
    ATT_TRY(att_maps_request(requests, ATT_MAP_SPECTRAL, 0));
    att_maps_add_series(requests, "spectral", NULL);
    return ATT_OK;
}

static void observe(const att_observed *observed, double *values)
{
    att_maps_observe(observed, 0, observed->count, values);
}

static const att_statistic_scale scales[] = {
    {"spectral", "0 for a row with one weight, 1/N for a uniform row, at most 0.5", "the formula"},
    {"spectral", "0.10 to 0.23 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_jacobian_spectral = {
    .info =
        {.name = "jacobian_spectral",
         .view = "uniform",
         .title = "Softmax Jacobian, spectral norm",
         .summary = "sensitivity of softmax: the largest eigenvalue of its Jacobian diag(a) - a a'",
         .unit = "1",
         .formula =
             "mean over queries of the root x of sum_j a_j / (a_j - x) = 0 between the two largest weights of a row",
         .source = "claim: Hyeon-Woo et al., ICCV 2023; the formula follows from the Jacobian",
         .scales = scales,
         .reading = "beside the norms of \"jacobian\": a uniform row over N tokens has 1/N, a row with two equal "
                    "weights 0.5, attention to one token 0; it is never above 0.5; " ATT_MAPS_COST,
         .costly = true},
    .request = request,
    .observe = observe,
};
