#include "study/measure/paths.h"

#include <stdio.h>

#include <attscope/ops.h>

#include "study/measure/list.h"

/* A row of a contribution: its norms, then its inner product with the output. The first row has the norms of the
 * output, the last those of what no contribution explains. */
enum { FROBENIUS = 2, PRODUCT = ATT_RESIDUAL_NORMS };

static att_value inner_product(att_graph *graph, att_value x, att_value y)
{
    att_shape row = att_shape_of(1, att_shape_count(att_value_shape(graph, x)));
    att_value product = att_matmul(graph, att_reshape(graph, x, row), att_reshape(graph, y, row), true, 1);
    return att_reshape(graph, product, att_shape_of(1));
}

static void request_norms(att_requests *requests, const char *name, att_value x)
{
    att_graph *graph = att_requests_graph(requests);
    att_requests_value(requests, name, att_residual_norms(graph, x, false), 1);
}

/* count: number of paths */
static void request_part(att_requests *requests, const char *node, att_value part, att_value output, double count)
{
    att_graph *graph = att_requests_graph(requests);
    char name[64];
    if (part == ATT_NONE)
        return;
    snprintf(name, sizeof name, "paths.%s", node);
    att_value norms = att_residual_norms(graph, part, false);
    att_requests_value(requests, name, att_concat(graph, norms, inner_product(graph, part, output)), count);
}

static att_value plus(att_graph *graph, att_value sum, att_value part)
{
    return sum == ATT_NONE || part == ATT_NONE ? (sum == ATT_NONE ? part : sum) : att_combine(graph, 1, sum, 1, part);
}

static att_value sum_of(att_graph *graph, const att_paths *paths, const att_path_sums *sums)
{
    att_value sum = plus(graph, sums->biases, sums->others);
    for (int k = 0; k <= paths->layers; k++)
        sum = plus(graph, sum, sums->of_length[k]);
    return sum;
}

static void request_rows(att_requests *requests, const att_paths *paths)
{
    att_graph *graph = att_requests_graph(requests);
    att_path_sums sums;
    char node[32];
    att_paths_split(graph, paths, &sums);
    att_graph_scope(graph, "paths");
    request_norms(requests, "paths.output", paths->end);
    for (int k = 0; k <= paths->longest; k++) {
        snprintf(node, sizeof node, "length.%d", k);
        request_part(requests, node, sums.of_length[k], paths->end, paths->count[k]);
    }
    request_part(requests, "biases", sums.biases, paths->end, 0);
    request_part(requests, "others", sums.others, paths->end, 0);
    att_value rest = att_combine(graph, 1, paths->end, -1, sum_of(graph, paths, &sums));
    request_norms(requests, "paths.unexplained", rest);
}

/* Declares a series for each length. */
static void add_lengths(att_requests *requests, const att_paths *paths, const char *statistic)
{
    char node[32];
    for (int k = 0; k <= paths->longest; k++) {
        snprintf(node, sizeof node, "length.%d", k);
        att_requests_series(requests, node, -1, statistic);
    }
}

static void add_series(att_requests *requests, const att_paths *paths, const char *statistic)
{
    add_lengths(requests, paths, statistic);
    att_requests_series(requests, "biases", -1, statistic);
    if (paths->others)
        att_requests_series(requests, "others", -1, statistic);
}

static const char *const per_part[] = {"norm", "share", "composite", "frobenius"};
enum { PER_PART = sizeof per_part / sizeof *per_part };

static att_status request(att_requests *requests)
{
    att_paths paths;
    char reason[ATT_PATHS_REASON];
    if (!att_paths_find(att_requests_graph(requests), &paths, reason))
        return att_requests_fail(requests, "%s", reason);
    request_rows(requests, &paths);
    for (int i = 0; i < PER_PART; i++)
        add_series(requests, &paths, per_part[i]);
    add_lengths(requests, &paths, "paths");
    add_lengths(requests, &paths, "path share");
    att_requests_series(requests, "", -1, "unexplained");
    return ATT_OK;
}

static void observe_part(const float *part, const float *output, double values[PER_PART])
{
    double norm = output[FROBENIUS];
    values[0] = part[FROBENIUS] / norm;
    values[1] = part[PRODUCT] / (norm * norm);
    values[2] = att_residual_composite(part);
    values[3] = att_residual_frobenius(part);
}

/* The number of paths of each length, then their shares of all paths. Returns the place after the last. */
static double *put_counts(const att_observed *observed, double *values)
{
    double all = 0, *next = values;
    for (int i = 1; i < observed->count - 1; i++)
        if (observed->constants[i] > 0)
            all += *next++ = observed->constants[i];
    for (double *end = next; values < end; values++)
        *next++ = *values / all;
    return next;
}

static void observe(const att_observed *observed, double *values)
{
    const float *output = observed->rows[0], *rest = observed->rows[observed->count - 1];
    const int parts = observed->count - 2;
    for (int p = 0; p < parts; p++) {
        double found[PER_PART];
        observe_part(observed->rows[1 + p], output, found);
        for (int i = 0; i < PER_PART; i++)
            values[i * parts + p] = found[i];
    }
    values = put_counts(observed, values + PER_PART * parts);
    *values = (double)rest[FROBENIUS] / (double)output[FROBENIUS];
}

static const att_statistic_info statistics[] = {{"norm", "norm of the contribution", "of the output"},
                                                {"share", "share of the output", "of the output"},
                                                {"composite", "rank residual, composite", "1"},
                                                {"frobenius", "rank residual, Frobenius", "1"},
                                                {"paths", "number of paths", "paths"},
                                                {"path share", "share of all paths", "of all paths"},
                                                {"unexplained", "unexplained", "of the output"},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "shares of all lengths, biases and others add up to 1; a share below 0 points against the output",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_paths = {
    .info = {.name = "paths",
             .view = "rank",
             .title = "Paths",
             .summary = "contribution of all paths of each length through heads and skips",
             .unit = "1",
             .formula = "S_k = sum of P_hk .. P_h1 X W_h1 .. W_hk over all paths with k heads, W_h = W_V,h W_O,h; of "
                        "the output Y after the last residual addition: norm |S_k|_F / |Y|_F, share <S_k, Y> / "
                        "|Y|_F^2, rank residual |res(S_k)| / |S_k|, number of paths C(L, k) H^k and its share of all "
                        "(1 + H)^L; unexplained |Y - sum|_F / |Y|_F",
             .source = "Dong et al., ICML 2021",
             .scales = scales,
             .reading = "X are the tokens before the first residual addition. Attention maps P and the statistics of "
                        "norms are those of the full pass. biases: what all biases contribute; others: what branches "
                        "without attention (MLPs) contribute, each a source whose tokens are those of the full pass. "
                        "The shares of lengths, biases and others add up to 1; unexplained is the rounding error",
             .statistics = statistics,
             .costly = true},
    .request = request,
    .observe = observe,
};
