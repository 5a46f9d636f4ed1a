#include <math.h>

#include "base/core/spread.h"
#include "study/measure/list.h"
#include "study/measure/stiffness.h"

enum { DT }; /* options */
static const att_detail options[] = {ATT_DT_OPTION};

/* Of each step, then of the network; each in every reading. */
static const att_statistic_info statistics[] = {
    {"share", "share of ζ*", NULL},
    {"without", "TNS without the step", NULL},
    {"without the first", "TNS without the most frequent place of ζ*", NULL},
    {"common mu", "TNS, μ of all images", NULL},
    {NULL, NULL, NULL}};
enum { STEP_STATISTICS = 2, STATISTICS = 4 };

static att_status request(att_requests *requests)
{
    const att_graph *graph = att_requests_graph(requests);
    ATT_TRY(att_stiffness_request(requests, (att_dt)att_requests_option(requests, DT)));
    for (int s = 0; s < STEP_STATISTICS; s++)
        for (int r = 0; r < ATT_READINGS; r++)
            for (att_residual_step step = {.node = -1}; att_stiffness_next(graph, &step);)
                att_requests_reading(requests, step.scope, -1, statistics[s].name, att_nsi_readings[r]);
    for (int s = STEP_STATISTICS; s < STATISTICS; s++)
        for (int r = 0; r < ATT_READINGS; r++)
            att_requests_reading(requests, "", -1, statistics[s].name, att_nsi_readings[r]);
    return ATT_OK;
}

/* --- the state: for each reading, a summary of the images, then one part per row -----------------------------------
 */

/* Bins of the largest index, from LEAST_BIN / BINS_PER_OCTAVE octaves on. */
enum { BINS = 512, BINS_PER_OCTAVE = 16, LEAST_BIN = -384 };

/* Of the images whose indices are all defined. */
typedef struct summary {
    int64_t undefined; /* how many other images */
    att_spread mean, largest[BINS];
} summary;

/* One step. */
typedef struct part {
    int64_t largest;    /* in how many images the step has the largest index */
    att_spread without; /* TNS of the other steps; NaN if there are none */
} part;

static size_t reading_size(const att_observed *shape)
{
    return sizeof(summary) + (size_t)shape->count * sizeof(part);
}

static size_t size(const att_observed *shape)
{
    return ATT_READINGS * reading_size(shape);
}

static size_t offset_of(const att_observed *shape, att_reading reading)
{
    return (size_t)reading * reading_size(shape);
}

static int bin_of(double zeta)
{
    double bin = floor(BINS_PER_OCTAVE * log2(zeta)) - LEAST_BIN;
    return (int)fmin(fmax(bin, 0), BINS - 1);
}

static void add_image(summary *of, part *parts, const att_observed *observed, att_reading reading)
{
    const att_stiffness s = att_stiffness_of(observed, observed->count, reading);
    if (isnan(s.largest)) {
        of->undefined++;
        return;
    }
    att_spread_add(&of->largest[bin_of(s.largest)], s.largest);
    att_spread_add(&of->mean, s.sum / s.count);
    parts[s.where].largest++;
    for (int t = 0; t < observed->count; t++)
        if (observed->constants[t] != 0)
            att_spread_add(&parts[t].without, att_tns(t == s.where ? s.second : s.largest,
                                                      (s.sum - att_nsi(observed->rows[t], reading)) / (s.count - 1)));
}

static void observe(void *state, const att_observed *observed)
{
    for (int r = 0; r < ATT_READINGS; r++) {
        summary *of = (summary *)((char *)state + offset_of(observed, r));
        add_image(of, (part *)(of + 1), observed, r);
    }
}

static void merge(void *state, const void *later, const att_observed *shape)
{
    for (int r = 0; r < ATT_READINGS; r++) {
        summary *of = (summary *)((char *)state + offset_of(shape, r));
        const summary *more = (const summary *)((const char *)later + offset_of(shape, r));
        part *parts = (part *)(of + 1);
        const part *more_parts = (const part *)(more + 1);
        of->undefined += more->undefined;
        att_spread_merge(&of->mean, &more->mean);
        for (int b = 0; b < BINS; b++)
            att_spread_merge(&of->largest[b], &more->largest[b]);
        for (int t = 0; t < shape->count; t++) {
            parts[t].largest += more_parts[t].largest;
            att_spread_merge(&parts[t].without, &more_parts[t].without);
        }
    }
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* If the indices of no image are defined, all means are 0 / 0, which is NaN. */
static att_figure figure_of(const summary *of, double mean, double deviation)
{
    int64_t count = of->mean.count + of->undefined;
    return (att_figure){mean, deviation, count, isnan(mean) ? count : of->undefined};
}

static att_figure without_of(const summary *of, const part *step)
{
    return figure_of(of, att_spread_mean(&step->without), att_spread_deviation(&step->without));
}

static att_figure share_of(const summary *of, const part *step)
{
    return figure_of(of, (double)step->largest / (double)of->mean.count, NAN);
}

/* The step that has the largest index most often; of several the first. */
static const part *most_frequent(const part *parts, const att_observed *shape)
{
    int most = -1;
    for (int t = 0; t < shape->count; t++)
        if (shape->constants[t] != 0 && (most < 0 || parts[t].largest > parts[most].largest))
            most = t;
    return &parts[most];
}

/* TNS with one mu for all images: the mean of zeta* (zeta* / mu - 1), or of 0 if zeta* < mu. The bin that holds mu
 * counts or does not count as a whole. */
static att_figure common_mu(const summary *of)
{
    double mu = att_spread_mean(&of->mean), sum = 0;
    for (int b = 0; b < BINS; b++) {
        const att_spread *bin = &of->largest[b];
        if (bin->count > 0 && bin->mean >= mu)
            sum += (double)bin->count * bin->mean * (bin->mean / mu - 1) + bin->squares / mu;
    }
    return figure_of(of, sum / (double)of->mean.count, NAN);
}

static void report(const void *state, const att_observed *shape, att_figure *figures)
{
    int steps = 0;
    for (int t = 0; t < shape->count; t++)
        steps += shape->constants[t] != 0;
    att_figure *networks = figures + STEP_STATISTICS * ATT_READINGS * steps;
    for (int r = 0; r < ATT_READINGS; r++) {
        const summary *of = (const summary *)((const char *)state + offset_of(shape, r));
        const part *parts = (const part *)(of + 1);
        att_figure *shares = figures + r * steps, *without = shares + ATT_READINGS * steps;
        for (int t = 0; t < shape->count; t++)
            if (shape->constants[t] != 0) {
                *shares++ = share_of(of, &parts[t]);
                *without++ = without_of(of, &parts[t]);
            }
        networks[r] = without_of(of, most_frequent(parts, shape));
        networks[ATT_READINGS + r] = common_mu(of);
    }
}

static const att_statistic_scale scales[] = {
    {"share attention", "1 for blocks.0.add2 in DeiT-Tiny: one step is the stiffest in every image",
     ATT_OF_PHOTOGRAPHS},
    {"without the first attention", "0.22 in DeiT-Tiny, whose tns is 1.50", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_tns_blocks = {
    .info = {.name = "tns_blocks",
             .view = "step size",
             .title = "Where total stiffness comes from",
             .summary = "which residual steps determine the total neural stiffness",
             .unit = "1",
             .formula = "share: of images in which the step has the largest zeta; without: TNS of the other steps; "
                        "without the first: TNS without the step whose share is largest; common mu: mean over images "
                        "of max(zeta* (zeta* / mu - 1), 0) with mu the mean over images and steps",
             .source = "TNS: Huang et al., ICCV 2023; the variants are ours",
             .scales = scales,
             .reading =
                 "steps and readings as in tns; of equal zeta, the first step has the largest; common mu is the "
                 "integral with one mu for all images, except that images with zeta* within 4.5 % of mu, which "
                 "contribute at most 0.05 mu, count or do not count together; without is not defined if there is one "
                 "step only; images in which zeta of a step is not defined are counted, and the others averaged",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .statistics = statistics,
             .readings = att_nsi_readings,
             .readings_agree = ATT_NSI_READINGS_AGREE},
    .request = request,
    .state = {size, observe, merge, report},
};
