/* The rank of the tokens X, by the singular values of X. */
#include <math.h>

#include <attscope/ops.h>

#include "base/core/quantile.h"
#include "study/measure/list.h"
#include "study/measure/variants.h"

enum { SPECTRUM = 2 };           /* option */
enum { NONE, FIRST, QUANTILES }; /* of SPECTRUM */
static const char *const spectrum_choices[] = {"none", "first", "quantiles", NULL};
static const att_detail options[] = {
    ATT_PARTS_OPTION,
    ATT_NORMS_OPTION,
    {.name = "spectrum",
     .meaning = "singular values to report: none, the shares of the first eight, or five quantiles of all",
     .high = QUANTILES,
     .choices = spectrum_choices},
};

enum { EFFECTIVE, STABLE, RANKS, SHARES = 8, LEVELS = 5, MOST_SPECTRUM = 8 };
static const att_statistic_info statistics[] = {{"effective", "effective rank", NULL},
                                                {"stable", "stable rank", NULL},
                                                {"share1", "s_1 / sum", NULL},
                                                {"share2", "s_2 / sum", NULL},
                                                {"share3", "s_3 / sum", NULL},
                                                {"share4", "s_4 / sum", NULL},
                                                {"share5", "s_5 / sum", NULL},
                                                {"share6", "s_6 / sum", NULL},
                                                {"share7", "s_7 / sum", NULL},
                                                {"share8", "s_8 / sum", NULL},
                                                {"quantile10", "10 % quantile / s_1", NULL},
                                                {"quantile25", "25 % quantile / s_1", NULL},
                                                {"quantile50", "median / s_1", NULL},
                                                {"quantile75", "75 % quantile / s_1", NULL},
                                                {"quantile90", "90 % quantile / s_1", NULL},
                                                {NULL, NULL, NULL}};
static const double levels[LEVELS] = {0.10, 0.25, 0.50, 0.75, 0.90};

/* Number of figures of the spectrum. */
static int spectrum_count(double spectrum)
{
    return spectrum == FIRST ? SHARES : spectrum == QUANTILES ? LEVELS : 0;
}

static att_status request(att_requests *requests)
{
    const double spectrum = att_requests_option(requests, SPECTRUM);
    const att_statistic_info *more = &statistics[spectrum == FIRST ? RANKS : RANKS + SHARES];
    att_variant_rows rows;
    ATT_TRY(att_variants_request_values(requests, "singular", att_singular_values, &rows));
    for (int i = 0; i < RANKS; i++)
        att_variants_add_series(requests, &rows, statistics[i].name);
    for (int i = 0; i < spectrum_count(spectrum); i++)
        att_variants_add_series(requests, &rows, more[i].name);
    att_arena_free(&rows.arena);
    return att_requests_graph(requests)->status;
}

static double sum_of(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)values[i];
    return sum;
}

static double effective_rank(const float *values, int64_t count)
{
    double sum = sum_of(values, count), entropy = 0;
    for (int64_t i = 0; i < count; i++) {
        double share = (double)values[i] / sum;
        entropy -= share > 0 ? share * log(share) : share;
    }
    return exp(entropy);
}

static double spectrum_figure(const float *values, int64_t count, double spectrum, int index)
{
    if (spectrum == QUANTILES)
        return att_quantile_of(values, count, levels[index], false) / (double)values[0];
    return index < count ? (double)values[index] / sum_of(values, count) : NAN;
}

static void observe(const att_observed *observed, double *figures)
{
    const double spectrum = observed->options[SPECTRUM];
    const int count = observed->count, more = spectrum_count(spectrum);
    for (int i = 0; i < count; i++) {
        const float *values = observed->rows[i];
        const int64_t length = observed->lengths[i];
        const double largest = (double)values[0];
        figures[EFFECTIVE * count + i] = effective_rank(values, length);
        figures[STABLE * count + i] = 1 / (largest * largest);
        for (int s = 0; s < more; s++)
            figures[(RANKS + s) * count + i] = spectrum_figure(values, length, spectrum, s);
    }
}

static const att_statistic_scale scales[] = {
    {NULL, "1 for a matrix of rank 1; at most the smaller of N and C", "the formula"},
    {"effective both", "73 to 105 along DeiT-Tiny, of 192", ATT_OF_PHOTOGRAPHS},
    {"stable both", "2.6 to 3.9 along DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_rank = {
    .info =
        {.name = "rank",
         .view = "rank",
         .title = "Rank of the tokens",
         .summary = "effective and stable rank of the tokens, and their singular values",
         .unit = "1",
         .formula = "effective: exp(-sum_i p_i ln p_i), p_i = s_i / sum_j s_j; stable: |X|_F^2 / s_1^2; s_1 >= s_2 >= "
                    "... the min(N, C) singular values of the tokens X [N, C] before the first residual addition "
                    "(input) and after each; both are 1 for a matrix of rank 1, and N for N orthonormal tokens",
         .source = "effective: Roy, Vetterli, EUSIPCO 2007; stable: Rudelson, Vershynin, J. ACM 2007",
         .scales = scales,
         .reading =
             "of X itself, whose mean token counts; without regard to the order of tokens, the class token included; "
             "by dgesdd on X in f64, not by a Gram matrix, so that small singular values keep their digits; tokens in "
             "f32 carry rounding noise: a matrix of rank 1 then has singular values of about 1e-7 s_1 beside s_1; "
             "share1 to share8 (rank:spectrum=first): s_i / sum_j s_j; quantile10 to quantile90 "
             "(rank:spectrum=quantiles): quantiles of all s_i over s_1; with rank:parts=all, " ATT_VARIANTS_READING,
         .options = options,
         .option_count = sizeof options / sizeof *options,
         .costly = true,
         .statistics = statistics,
         .readings = att_variant_names,
         .readings_agree = "nothing is switched off"},
    .request = request,
    .observe = observe,
};
