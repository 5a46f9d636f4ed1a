#include <math.h>
#include <stdio.h>

#include "base/core/spread.h"
#include "study/measure/list.h"
#include "study/measure/stiffness.h"

enum { M1, M2, CELLS, READING, DT, OPTIONS };
static const char *const readings[] = {"attention", "gated", "unit", NULL};
static const att_detail options[OPTIONS] = {
    {.name = "m1", .meaning = "upper end of the grid of M1", .start = 4, .low = 0.001, .high = 1e6},
    {.name = "m2", .meaning = "upper end of the grid of M2", .start = 2, .low = 0.001, .high = 1e6},
    {.name = "cells", .meaning = "number of cells along each axis", .start = 8, .low = 1, .high = 64, .whole = true},
    {.name = "reading", .meaning = "the reading of zeta, as in nsi", .high = ATT_READING_UNIT, .choices = readings},
    ATT_DT_OPTION};

/* The surfaces, which have a figure for each cell, then the figures of the whole network. */
static const char *const surfaces[] = {"delta", "p"};
static const char *const of_network[] = {"tns by grid", "tns", "outside"};
enum { DELTA, P, SURFACES };
enum { BY_GRID, EXACT, OUTSIDE, NETWORK_FIGURES };

/* The middle of cell `number` of one axis. */
static double middle(const double *option, int axis, int number)
{
    return option[axis] * (number + 0.5) / option[CELLS];
}

static att_status request(att_requests *requests)
{
    double option[OPTIONS];
    for (int i = 0; i < OPTIONS; i++)
        option[i] = att_requests_option(requests, i);
    ATT_TRY(att_stiffness_request(requests, (att_dt)option[DT]));
    for (int s = 0; s < SURFACES; s++)
        for (int i = 0; i < option[CELLS]; i++)
            for (int j = 0; j < option[CELLS]; j++) {
                char node[64];
                snprintf(node, sizeof node, "M1=%g M2=%g", middle(option, M1, i), middle(option, M2, j));
                att_requests_series(requests, node, -1, surfaces[s]);
            }
    for (int i = 0; i < NETWORK_FIGURES; i++)
        att_requests_series(requests, "", -1, of_network[i]);
    return ATT_OK;
}

/* --- the state: totals, then the counts of both surfaces -----------------------------------------------------------
 */

typedef struct totals {
    att_spread tns;
    int64_t undefined, outside; /* images */
    int64_t steps;              /* of an image */
} totals;

static size_t cells_of(const att_observed *shape)
{
    return (size_t)(shape->options[CELLS] * shape->options[CELLS]);
}

static size_t size(const att_observed *shape)
{
    return sizeof(totals) + SURFACES * cells_of(shape) * sizeof(int64_t);
}

/* Counts the steps of an image that are stiff at (m1, m2). */
static int64_t stiff_steps(const att_observed *observed, double mean, double m1, double m2)
{
    int64_t count = 0;
    for (int t = 0; t < observed->count; t++)
        count += observed->constants[t] != 0 &&
                 att_nsi(observed->rows[t], (att_reading)observed->options[READING]) >= fmax(mean * (1 + m1), m2);
    return count;
}

static void observe(void *state, const att_observed *observed)
{
    totals *of = state;
    int64_t *stiff_images = (int64_t *)(of + 1), *stiff = stiff_images + cells_of(observed);
    const double *option = observed->options;
    const att_stiffness s = att_stiffness_of(observed, observed->count, (att_reading)option[READING]);
    of->steps = s.count;
    if (isnan(s.largest)) {
        of->undefined++;
        return;
    }
    double mean = s.sum / s.count;
    att_spread_add(&of->tns, att_tns(s.largest, mean));
    of->outside += s.largest / mean - 1 > option[M1] || s.largest > option[M2];
    for (int i = 0, cell = 0; i < option[CELLS]; i++)
        for (int j = 0; j < option[CELLS]; j++, cell++) {
            int64_t count = stiff_steps(observed, mean, middle(option, M1, i), middle(option, M2, j));
            stiff_images[cell] += count > 0;
            stiff[cell] += count;
        }
}

static void merge(void *state, const void *later, const att_observed *shape)
{
    totals *of = state;
    const totals *more = later;
    int64_t *counts = (int64_t *)(of + 1);
    const int64_t *more_counts = (const int64_t *)(more + 1);
    of->undefined += more->undefined;
    of->outside += more->outside;
    of->steps = more->steps > 0 ? more->steps : of->steps;
    att_spread_merge(&of->tns, &more->tns);
    for (size_t i = 0; i < SURFACES * cells_of(shape); i++)
        counts[i] += more_counts[i];
}

static void report(const void *state, const att_observed *shape, att_figure *figures)
{
    const totals *of = state;
    const int64_t *counts = (const int64_t *)(of + 1);
    size_t cells = cells_of(shape);
    double images = of->tns.count > 0 ? (double)of->tns.count : NAN, sum = 0;
    double area = shape->options[M1] * shape->options[M2] / (double)cells;
    const att_figure share = {.deviation = NAN, .count = of->tns.count + of->undefined, .undefined = of->undefined};
    for (size_t i = 0; i < SURFACES * cells; i++) {
        figures[i] = share;
        figures[i].mean = (double)counts[i] / images / (i < cells ? 1 : (double)of->steps);
        sum += i < cells ? figures[i].mean : 0;
    }
    att_figure *network = figures + SURFACES * cells;
    network[BY_GRID] = network[EXACT] = network[OUTSIDE] = share;
    network[BY_GRID].mean = sum * area;
    network[EXACT].mean = att_spread_mean(&of->tns);
    network[EXACT].deviation = att_spread_deviation(&of->tns);
    network[OUTSIDE].mean = (double)of->outside / images;
}

static const att_statistic_info statistics[] = {{"delta", "δ(M)", NULL},
                                                {"p", "p̂(M)", NULL},
                                                {"tns by grid", "TNS by grid", NULL},
                                                {"tns", "TNS", NULL},
                                                {"outside", "images beyond the grid", NULL},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {"tns by grid", "1.51 beside 1.50, the exact integral, in DeiT-Tiny", ATT_OF_PHOTOGRAPHS}, {NULL, NULL, NULL}};

const att_instrument att_instrument_stiff_surface = {
    .info =
        {.name = "stiff_surface",
         .view = "step size",
         .title = "Surfaces of stiffness",
         .summary = "shares of stiff images and of stiff steps by the thresholds M1 and M2",
         .unit = "1",
         .formula =
             "a step is stiff at M if zeta >= max(mu (1 + M1), M2); delta: share of images with a stiff step; p: share "
             "of stiff steps; tns: the integral of delta; tns by grid: sum of delta over the cells times a cell's area",
         .source = "Huang et al., ICCV 2023",
         .scales = scales,
         .reading = "delta and p are taken in the middle of each cell, whose M1 and M2 are printed; mu is per image; "
                    "zeta, steps and dt as in tns, in one reading of nsi; outside: share of images that are stiff at "
                    "some M beyond the grid, where tns by grid misses a part",
         .options = options,
         .option_count = OPTIONS,
         .statistics = statistics,
         .costly = true},
    .request = request,
    .state = {size, observe, merge, report},
};
