#include "study/measure/list.h"

static const att_detail options[] = {
    {.name = "eps", .meaning = "a weight counts if it is above eps / N", .start = 1, .low = 0, .high = 1e6}};

static att_status request(att_requests *requests)
{
    ATT_TRY(att_maps_request(requests, ATT_MAP_DENSITY, att_requests_option(requests, 0)));
    att_maps_add_series(requests, "mean", NULL);
    return ATT_OK;
}

static void observe(const att_observed *observed, double *values)
{
    att_maps_observe(observed, 0, observed->count, values);
}

static const att_statistic_scale scales[] = {
    {NULL, "0.12 to 0.24 by layer in DeiT-Tiny, with eps = 1", ATT_OF_PHOTOGRAPHS}, {NULL, NULL, NULL}};

const att_instrument att_instrument_density = {
    .info = {.name = "density",
             .view = "uniform",
             .title = "Density of attention",
             .summary = "share of weights larger than eps / N; the weights of uniform attention are 1 / N",
             .unit = "share",
             .formula = "mean over queries i of (1/N) #{j : a_ij > eps / N}; uniform attention has 1 for eps below 1 "
                        "and 0 from 1 on, attention to one token 1/N",
             .source = "usual",
             .scales = scales,
             .reading = "eps is 1 unless set: density:eps=0.1; a weight must be above by a factor of 1 + 1e-5, so that "
                        "rounding does not decide on uniform attention. Otherwise it may: a weight within about 1e-6 "
                        "of the threshold counts or not depending on batch size and processor, and moves a head's "
                        "figure by 1 / N^2 for an image; N keys: all tokens, or those of the query's window, or with "
                        "the zero tokens around a map; a key that a mask hides has weight 0; over all queries, "
                        "including the class token and the padding of windows; " ATT_MAPS_COST,
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .costly = true},
    .request = request,
    .observe = observe,
};
