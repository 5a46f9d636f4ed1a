/* Accuracy lost when the branch of a block is skipped, beside the stiffness of the block. */
#include <math.h>
#include <stdio.h>

#include "base/core/memory.h"
#include "base/core/ranks.h"
#include "networks/tasks/score.h"
#include "study/measure/list.h"
#include "study/measure/moments.h"
#include "study/measure/skips.h"

enum { PER }; /* options */
static const att_detail options[] = {{.name = "per",
                                      .meaning = "what is skipped at a time: a residual addition or a block",
                                      .high = ATT_PER_BLOCK,
                                      .choices = att_per_choices}};

/* --- requests ----------------------------------------------------------------------------------------------------- */

static att_status request(att_requests *requests)
{
    static const char *const per_block[] = {"lost", "lost low", "lost high", "zeta"};
    static const char *const whole[] = {ATT_SCORE_TOP1, "spearman",    "spearman low", "spearman high",
                                        "kendall",      "kendall low", "kendall high"};
    const bool per = att_requests_option(requests, PER) == ATT_PER_BLOCK;
    ATT_TRY(att_requests_need_classes(requests));
    const int blocks = att_requests_steps(requests, per, ATT_DT_GATES);
    if (blocks > ATT_SKIPS_MOST_BLOCKS)
        return att_requests_fail(requests, "the network has %d residual additions, more than %d", blocks,
                                 (int)ATT_SKIPS_MOST_BLOCKS);
    att_requests_study_row(requests, blocks + 1, 0);
    for (size_t i = 0; i < sizeof per_block / sizeof *per_block; i++)
        att_requests_step_series(requests, per, per_block[i], NULL);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        att_requests_series(requests, "", -1, whole[i]);
    return blocks > 0 ? ATT_OK : att_requests_found_nothing(requests, "residual addition");
}

/* --- the study ---------------------------------------------------------------------------------------------------- */

static void close_study(att_context *context, void *own)
{
    att_skips_close(own);
    att_free(context, own);
}

/* Variant 0 skips nothing; variant 1 + b skips block b. blocks, skipped: room for all */
static att_status open_variants(const att_study_job *job, att_residual_step *blocks, int count, bool *skipped,
                                att_skips *skips)
{
    const bool per = job->options[PER] == ATT_PER_BLOCK;
    int found = 0;
    for (att_residual_step step = {.node = -1}; att_step_next(job->graph, per, &step);)
        if (att_study_selects(job, &step))
            blocks[found++] = step;
    for (int b = 0; b < count; b++)
        skipped[(int64_t)(1 + b) * count + b] = true;
    return att_skips_open(job, blocks, count, skipped, 1 + count, skips);
}

static att_status open_study(const att_study_job *job, int count)
{
    size_t n = (size_t)count;
    att_skips *skips = *job->own = att_allocate(job->context, sizeof *skips);
    att_residual_step *blocks = att_allocate_array(job->context, n, sizeof *blocks);
    bool *skipped = att_allocate_array(job->context, (n + 1) * n, sizeof *skipped);
    att_status status = skips && blocks && skipped
                            ? open_variants(job, blocks, count, skipped, skips)
                            : att_fail_memory(job->context, n * (n + sizeof *blocks), "an instrument");
    att_free(job->context, blocks);
    att_free(job->context, skipped);
    return status;
}

static att_status run(att_study_job *job)
{
    const int hits = job->row_count - 1;
    if (!*job->own)
        ATT_TRY(open_study(job, hits));
    return att_skips_run(*job->own, job, 0, job->count, job->rows[hits], job->lengths[hits]);
}

static const att_study skip_study = {.run = run, .close = close_study};

/* --- figures ------------------------------------------------------------------------------------------------------ */

typedef struct block_state {
    int64_t lost, won; /* images that are right only without, and only with the block skipped */
    att_tally zeta;
} block_state;

typedef struct state {
    int64_t count, right;
    block_state blocks[];
} state;

static int blocks_of(const att_observed *shape)
{
    return shape->count - 1;
}

static size_t size(const att_observed *shape)
{
    return sizeof(state) + (size_t)blocks_of(shape) * sizeof(block_state);
}

static void observe(void *own, const att_observed *observed)
{
    state *s = own;
    const int count = blocks_of(observed);
    const float *hits = observed->rows[count];
    if (isnan(hits[0]))
        return;
    s->count++;
    s->right += hits[0] > 0;
    for (int b = 0; b < count; b++) {
        double zeta = att_skips_zeta(observed->options[PER] == ATT_PER_BLOCK, observed->rows[b]);
        s->blocks[b].lost += hits[0] > hits[1 + b];
        s->blocks[b].won += hits[0] < hits[1 + b];
        att_tally_add(&s->blocks[b].zeta, zeta);
    }
}

static void merge(void *own, const void *later, const att_observed *shape)
{
    state *s = own;
    const state *more = later;
    s->count += more->count;
    s->right += more->right;
    for (int b = 0; b < blocks_of(shape); b++) {
        s->blocks[b].lost += more->blocks[b].lost;
        s->blocks[b].won += more->blocks[b].won;
        att_tallies_merge(&s->blocks[b].zeta, &more->blocks[b].zeta, 1);
    }
}

static double lost_by(const state *s, int block)
{
    return 100 * (double)(s->blocks[block].lost - s->blocks[block].won) / (double)s->count;
}

/* An end of the 95 % interval of the difference of paired proportions (Agresti and Min 2005): half an image is added to
 * each of the four cells. side: -1 or 1 */
static double interval(const state *s, int block, int side)
{
    double n = (double)s->count + 2, lost = (double)s->blocks[block].lost + 0.5;
    double won = (double)s->blocks[block].won + 0.5, mean = (lost - won) / n;
    double error = sqrt(((lost + won) / n - mean * mean) / n);
    return s->count > 0 ? 100 * (mean + side * 1.959964 * error) : NAN;
}

/* A rank correlation with its 95 % interval, NaN where it is undefined. */
typedef struct correlation {
    double value, low, high;
} correlation;

/* Fisher's z with the variance of Bonett and Wright (2000): `numerator` / (n - `lost`). */
static correlation with_interval(double value, double numerator, int lost, int n)
{
    if (n <= lost || !(fabs(value) < 1))
        return (correlation){value, NAN, NAN};
    const double z = atanh(value), error = 1.959964 * sqrt(numerator / (n - lost));
    return (correlation){value, tanh(z - error), tanh(z + error)};
}

/* The rank correlations of accuracy lost and zeta, over blocks that do not begin a stage. Returns their number. */
static int correlate(const state *s, const att_observed *shape, correlation *spearman, correlation *kendall)
{
    double lost[ATT_SKIPS_MOST_BLOCKS] = {0}, zeta[ATT_SKIPS_MOST_BLOCKS], ranks[2][ATT_SKIPS_MOST_BLOCKS];
    int n = 0;
    for (int b = 0; b < blocks_of(shape); b++) {
        if (shape->constants[b] == 0 || s->blocks[b].zeta.spread.count == 0)
            continue;
        lost[n] = lost_by(s, b);
        zeta[n++] = att_spread_mean(&s->blocks[b].zeta.spread);
    }
    att_rank_twice(lost, n, ranks[0]);
    att_rank_twice(zeta, n, ranks[1]);
    const double rho = att_spearman(ranks[0], ranks[1], n);
    *spearman = with_interval(rho, 1 + rho * rho / 2, 3, n);
    *kendall = with_interval(att_kendall(lost, zeta, n), 0.437, 4, n);
    return s->count > 0 ? n : 0;
}

static att_figure figure(double value, int64_t count)
{
    return (att_figure){.mean = value, .deviation = NAN, .count = count, .undefined = isnan(value) ? count : 0};
}

static void report_correlation(correlation of, int64_t count, att_figure figures[3])
{
    figures[0] = figure(of.value, count);
    figures[1] = figure(of.low, count);
    figures[2] = figure(of.high, count);
}

static void report(const void *own, const att_observed *shape, att_figure *figures)
{
    const state *s = own;
    const int count = blocks_of(shape);
    correlation spearman, kendall;
    for (int b = 0; b < count; b++) {
        figures[b] = figure(s->count > 0 ? lost_by(s, b) : NAN, s->count);
        figures[count + b] = figure(interval(s, b, -1), s->count);
        figures[2 * count + b] = figure(interval(s, b, 1), s->count);
        figures[3 * count + b] = att_tally_figure(&s->blocks[b].zeta);
    }
    int compared = correlate(s, shape, &spearman, &kendall);
    figures += 4 * count;
    figures[0] = figure(s->count > 0 ? 100 * (double)s->right / (double)s->count : NAN, s->count);
    report_correlation(spearman, compared, figures + 1);
    report_correlation(kendall, compared, figures + 4);
}

static const att_statistic_info statistics[] = {{"lost", "top-1 lost", "% points"},
                                                {"lost low", "top-1 lost, lower end of the 95 % interval", "% points"},
                                                {"lost high", "top-1 lost, upper end of the 95 % interval", "% points"},
                                                {"zeta", "ζ", "1"},
                                                {ATT_SCORE_TOP1, "top-1, nothing skipped", "%"},
                                                {"spearman", "ρ of top-1 lost and ζ, n: blocks", "1"},
                                                {"spearman low", "ρ, lower end of the 95 % interval", "1"},
                                                {"spearman high", "ρ, upper end of the 95 % interval", "1"},
                                                {"kendall", "τ of top-1 lost and ζ, n: blocks", "1"},
                                                {"kendall low", "τ, lower end of the 95 % interval", "1"},
                                                {"kendall high", "τ, upper end of the 95 % interval", "1"},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "0 if the block does not matter; at most the accuracy of the full network", "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_skip_block = {
    .info = {.name = "skip_block",
             .view = "step size",
             .title = "Skipped blocks",
             .summary = "accuracy lost when the branch of a block is skipped, beside its stiffness",
             .unit = "% points; zeta and correlations: 1",
             .formula = "100 (1/n) sum_i ([image i is right] - [image i is right with x_{t+1} = x_t]), beside the mean "
                        "zeta of the block; rank correlation of both over blocks (Spearman's rho, Kendall's tau-b)",
             .source = "claim that stiff blocks matter: Huang et al., ICCV 2023; the measurement is ours",
             .scales = scales,
             .reading =
                 "one block is skipped at a time, without training; a ReLU after the addition stays. The interval is "
                 "that of a difference of paired proportions (Agresti and Min 2005), 95 %, for each block alone. zeta "
                 "is nsi in its reading attention, with skip_block:per=block that of nsi:per=block. The correlations "
                 "leave out the first step of each stage; their n is the number of blocks, and their 95 % intervals "
                 "(Fisher's z; Bonett and Wright 2000) take these blocks for independent, which they are not",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .needs_labels = true,
             .costly = true,
             .statistics = statistics,
             .excluded = "the first step of its stage, which TNS leaves out"},
    .request = request,
    .state = {size, observe, merge, report},
    .study = &skip_study,
};
