#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/memory.h"
#include "base/core/random.h"
#include "study/measure/list.h"
#include "study/measure/moments.h"
#include "study/measure/paths.h"

enum { MOST_SAMPLES = 64 };
enum { COUNT, LONGEST, SEED }; /* options */
static const att_detail options[] = {
    {.name = "count", .meaning = "paths of each length", .start = 4, .low = 1, .high = MOST_SAMPLES, .whole = true},
    {.name = "longest",
     .meaning = "the largest length to draw",
     .start = ATT_PATHS_MOST_LAYERS,
     .high = ATT_PATHS_MOST_LAYERS,
     .whole = true},
    {.name = "seed", .meaning = "of the draw", .high = 1e9, .whole = true}};

/* --- drawing ------------------------------------------------------------------------------------------------------ */

typedef struct path {
    int choice[ATT_PATHS_MOST_LAYERS];
} path;

/* Draws `length` layers, then a head in each. */
static path draw(const att_paths *paths, int length, att_random *random)
{
    path drawn;
    int left = length;
    memset(&drawn, 0, sizeof drawn);
    for (int layer = 0; layer < paths->layers; layer++)
        if (att_random_below(random, paths->layers - layer) < left) {
            drawn.choice[layer] = 1 + (int)att_random_below(random, paths->heads[layer]);
            left--;
        }
    return drawn;
}

static bool is_among(const path *drawn, const path *paths, int count)
{
    for (int i = 0; i < count; i++)
        if (memcmp(drawn->choice, paths[i].choice, sizeof drawn->choice) == 0)
            return true;
    return false;
}

/* Draws different paths of one length; returns their number. */
static int draw_all(const att_requests *requests, const att_paths *paths, int length, path drawn[MOST_SAMPLES])
{
    const uint64_t seed = (uint64_t)att_requests_option(requests, SEED);
    const int wanted = (int)att_requests_option(requests, COUNT);
    att_random random = att_random_from(att_random_key(seed, att_random_hash("paths"), (uint64_t)length));
    int count = 0;
    while (count < wanted && count < paths->count[length]) {
        drawn[count] = draw(paths, length, &random);
        count += !is_among(&drawn[count], drawn, count);
    }
    return count;
}

/* "length.2.path.0-3-0-1" */
static void name_path(const att_paths *paths, int length, const path *drawn, char *name, size_t size)
{
    int used = snprintf(name, size, "length.%d.path", length);
    for (int layer = 0; layer < paths->layers && used < (int)size; layer++)
        used += snprintf(name + used, size - (size_t)used, "%c%d", layer ? '-' : '.', drawn->choice[layer]);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

enum { NAME = 32 + 4 * ATT_PATHS_MOST_LAYERS };

static void request_path(att_requests *requests, const att_paths *paths, int length, const path *drawn)
{
    att_graph *graph = att_requests_graph(requests);
    char name[NAME];
    name_path(paths, length, drawn, name, sizeof name);
    att_value found = att_paths_follow(graph, paths, drawn->choice);
    att_graph_scope(graph, "paths");
    att_requests_value(requests, name, att_residual_norms(graph, found, false), length);
}

static void add_series(att_requests *requests, const att_paths *paths, path (*drawn)[MOST_SAMPLES], const int *counts,
                       const char *statistic)
{
    char name[NAME];
    for (int length = 0; length <= paths->longest; length++) {
        snprintf(name, sizeof name, "length.%d", length);
        att_requests_series(requests, name, -1, statistic);
    }
    for (int length = 0; length <= paths->longest; length++)
        for (int i = 0; i < counts[length]; i++) {
            name_path(paths, length, &drawn[length][i], name, sizeof name);
            att_requests_series(requests, name, -1, statistic);
        }
}

static void request_all(att_requests *requests, const att_paths *paths, path (*drawn)[MOST_SAMPLES])
{
    int counts[ATT_PATHS_MOST_LAYERS + 1];
    for (int length = 0; length <= paths->longest; length++) {
        counts[length] = draw_all(requests, paths, length, drawn[length]);
        for (int i = 0; i < counts[length]; i++)
            request_path(requests, paths, length, &drawn[length][i]);
    }
    add_series(requests, paths, drawn, counts, "composite");
    add_series(requests, paths, drawn, counts, "frobenius");
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    att_paths paths;
    char reason[ATT_PATHS_REASON];
    if (!att_paths_find(graph, &paths, reason))
        return att_requests_fail(requests, "%s", reason);
    if (paths.longest < paths.layers)
        return att_requests_fail(requests,
                                 "attention layers stand side by side, so that a path takes only one of them");
    if (att_requests_option(requests, LONGEST) < paths.longest)
        paths.longest = (int)att_requests_option(requests, LONGEST);
    path(*drawn)[MOST_SAMPLES] = att_allocate_array(graph->context, (size_t)paths.longest + 1, sizeof *drawn);
    if (!drawn)
        return att_fail_memory(graph->context, ((size_t)paths.longest + 1) * sizeof *drawn, "paths");
    request_all(requests, &paths, drawn);
    att_free(graph->context, drawn);
    return ATT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

enum { COMPOSITE, FROBENIUS, STATISTICS };

/* The state: the residuals of each path over the samples, by path and statistic. */

static int64_t tallies_of(const att_observed *shape)
{
    return (int64_t)shape->count * STATISTICS;
}

static size_t size(const att_observed *shape)
{
    return (size_t)tallies_of(shape) * sizeof(att_tally);
}

static void observe(void *state, const att_observed *observed)
{
    att_tally *tallies = state;
    for (int p = 0; p < observed->count; p++, tallies += STATISTICS) {
        att_tally_add(&tallies[COMPOSITE], att_residual_composite(observed->rows[p]));
        att_tally_add(&tallies[FROBENIUS], att_residual_frobenius(observed->rows[p]));
    }
}

static void merge(void *state, const void *later, const att_observed *shape)
{
    att_tallies_merge(state, later, tallies_of(shape));
}

static att_figure figure_of(const att_tally *tally, int64_t samples)
{
    att_figure figure = att_tally_figure(tally);
    figure.count = samples;
    return figure;
}

/* The figures of the lengths, then those of the paths. tallies: those of the statistic. Returns the place after the
 * last. */
static att_figure *report_statistic(const att_tally *tallies, const att_observed *shape, att_figure *figures)
{
    const int64_t samples = shape->count > 0 ? att_tally_figure(tallies).count : 0;
    for (int p = 0; p < shape->count;) {
        att_tally all = tallies[p * STATISTICS];
        double length = shape->constants[p];
        for (p++; p < shape->count && shape->constants[p] == length; p++)
            att_tallies_merge(&all, &tallies[p * STATISTICS], 1);
        *figures++ = figure_of(&all, samples);
    }
    for (int p = 0; p < shape->count; p++)
        *figures++ = figure_of(&tallies[p * STATISTICS], samples);
    return figures;
}

static void report(const void *state, const att_observed *shape, att_figure *figures)
{
    for (int i = 0; i < STATISTICS; i++)
        figures = report_statistic((const att_tally *)state + i, shape, figures);
}

static const att_statistic_scale scales[] = {{NULL, "0 if all tokens are equal; 1 if they sum to zero", "the formula"},
                                             {NULL, NULL, NULL}};

const att_instrument att_instrument_path_samples = {
    .info =
        {.name = "path_samples",
         .view = "rank",
         .title = "Sampled paths",
         .summary = "rank residual of single paths, drawn at random, by their length",
         .unit = "1",
         .formula = "|res(Z)| / |Z| of Z = P_hk .. P_h1 X W_h1 .. W_hk, the contribution of one path with k heads",
         .source = "Dong et al., ICML 2021",
         .scales = scales,
         .reading =
             "as for paths. Of each length, different paths are drawn: k of the L layers, then a head in each, all "
             "equally likely; the draw depends on the seed alone. length.k: mean and deviation over paths and images; "
             "length.k.path.0-2-1: one path, with the head taken in each layer, counted from 1, or 0 for the skip",
         .options = options,
         .option_count = sizeof options / sizeof *options,
         .costly = true},
    .request = request,
    .state = {size, observe, merge, report},
};
