#include <math.h>

#include "study/measure/list.h"

static const att_detail options[] = {
    {.name = "length", .meaning = "length of the step, or learning rate", .start = 1, .low = 0, .high = 1e3}};

/* The rows from which a step begins, in each reading. */
enum { UNIFORM, LEARNED, SHARP, STARTS };
enum { LENGTH, RATE, READINGS };
static const char *const readings[] = {"length", "rate", NULL};
static const att_statistic_info statistics[] = {
    {"uniform", "From a uniform row", NULL},
    {"learned", "From the learned rows", NULL},
    {"sharp", "From a sharp row: two equal weights", NULL},
    {0},
};

/* Rows that are given have one figure for a layer, or for the network, whose heads are all alike. */
static void add_series(att_requests *requests, int start, const char *reading)
{
    const att_graph *graph = att_requests_graph(requests);
    const char *statistic = statistics[start].name;
    if (start == LEARNED)
        att_maps_add_series(requests, statistic, reading);
    else if (start == SHARP)
        att_requests_reading(requests, "", -1, statistic, reading);
    else
        for (int i = -1; (i = att_requests_node(requests, "attention", i)) >= 0;)
            att_requests_reading(requests, graph->nodes.items[i].scope, -1, statistic, reading);
}

static att_status request(att_requests *requests)
{
    const double length = att_requests_option(requests, 0);
    ATT_TRY(att_maps_request(requests, ATT_MAP_STEP_LENGTH, length));
    ATT_TRY(att_maps_request(requests, ATT_MAP_STEP_RATE, length));
    for (int start = 0; start < STARTS; start++)
        for (int reading = 0; reading < READINGS; reading++)
            add_series(requests, start, readings[reading]);
    return ATT_OK;
}

/* What a row of `equal` equal weights loses: e_k - a has the length sqrt(1 - 1/equal), and moves the score of k by
 * `factor` against the others. */
static double lost_from(double equal, int reading, double length)
{
    if (equal < 2)
        return 0;
    double factor = reading == LENGTH ? length / sqrt(1 - 1 / equal) : length / equal;
    double others = (equal - 1) * exp(-factor), p = 1 / (1 + others), q = others / (1 + others);
    return log(equal) + p * log(p) + (q > 0 ? q * log(q / (equal - 1)) : 0);
}

static double *observe_start(const att_observed *observed, int start, int reading, double *values)
{
    const int count = observed->count / READINGS;
    if (start == LEARNED)
        return att_maps_observe(observed, reading * count, count, values);
    if (start == SHARP)
        *values++ = lost_from(2, reading, observed->options[0]);
    else
        for (int i = 0; i < count; i++)
            *values++ = lost_from(observed->constants[i], reading, observed->options[0]);
    return values;
}

static void observe(const att_observed *observed, double *values)
{
    for (int start = 0; start < STARTS; start++)
        for (int reading = 0; reading < READINGS; reading++)
            values = observe_start(observed, start, reading, values);
}

static const att_statistic_scale scales[] = {
    {"uniform length", "0.005: from a uniform row of 197 tokens, a step of length 1 loses 0.1 % of ln N",
     ATT_OF_PHOTOGRAPHS},
    {"learned length", "0.34 to 0.64 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {"learned rate", "0.02 to 0.12 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_entropy_step = {
    .info = {.name = "entropy_step",
             .view = "uniform",
             .title = "Entropy lost in a gradient step",
             .summary = "entropy that a row of attention loses in one gradient step on its scores",
             .unit = "nats",
             .formula = "H(a) - H(softmax(ln a + d)), H = -sum_j a_j ln a_j; the step for the loss -a_k, k the largest "
                        "weight: length: d = t (e_k - a) / |e_k - a|, rate: d = t a_k (e_k - a)",
             .source = "claim that one gradient step breaks uniform attention: Hyeon-Woo et al., ICCV 2023; the source "
                       "does not define the step",
             .scales = scales,
             .reading = "the gradient of -a_k with respect to the scores is a_k (a - e_k); length: t is the length of "
                        "the step, whatever the gradient; rate: t is the learning rate, so that a small gradient makes "
                        "a small step; t is 1 unless set: entropy_step:length=2; from a uniform row over the N keys of "
                        "a layer the loss is about t^2 / 2N (length) or t^2 (1 - 1/N) / 2N^3 (rate) for small t; "
                        "learned: mean over queries; sharp: a row with two equal weights of 1/2; a step on scores, not "
                        "on weights, and of this loss, not of the network's; " ATT_MAPS_COST,
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .statistics = statistics,
             .readings = readings,
             .costly = true},
    .request = request,
    .observe = observe,
};
