#include <math.h>

#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"
#include "study/measure/list.h"

/* In the order of their series. */
enum { ROW, COLUMN, ROW_SPREAD, COLUMN_SPREAD, CORRELATION, BETWEEN, ON_GRID, STATISTICS };
static const att_statistic_info statistics[] = {
    {"row", "Centre, rows", "tokens"},
    {"column", "Centre, columns", "tokens"},
    {"row spread", "Spread over rows", "tokens"},
    {"column spread", "Spread over columns", "tokens"},
    {"correlation", "Correlation of rows and columns", "1"},
    {"between queries", "Share of the variance between queries", "1"},
    {"on grid", "Attention on the grid", "1"},
    {0},
};

static const char *const by_head[] = {"row", "column", "row spread", "column spread", "correlation", NULL};

static att_status request(att_requests *requests)
{
    att_summary_column columns[STATISTICS];
    for (int s = 0; s < STATISTICS; s++)
        columns[s] = (att_summary_column){ATT_SUMMARY_Y, statistics[s].name}; /* any column without a bound */
    return att_summaries_request(requests, columns, STATISTICS, true);
}

/* From a head's row of the summary. A variance is the mean of those of queries plus that of their means. */
static double statistic_of(const float *summary, int statistic)
{
    double between = (double)summary[ATT_SUMMARY_BETWEEN_YY] + (double)summary[ATT_SUMMARY_BETWEEN_XX];
    double yy = (double)summary[ATT_SUMMARY_YY] + (double)summary[ATT_SUMMARY_BETWEEN_YY];
    double xx = (double)summary[ATT_SUMMARY_XX] + (double)summary[ATT_SUMMARY_BETWEEN_XX];
    double yx = (double)summary[ATT_SUMMARY_YX] + (double)summary[ATT_SUMMARY_BETWEEN_YX];
    switch (statistic) {
    case ROW:
        return summary[ATT_SUMMARY_Y];
    case COLUMN:
        return summary[ATT_SUMMARY_X];
    case ROW_SPREAD:
        return sqrt(yy);
    case COLUMN_SPREAD:
        return sqrt(xx);
    case CORRELATION:
        return yy > 0 && xx > 0 ? yx / sqrt(yy * xx) : NAN;
    case BETWEEN:
        return yy + xx > 0 ? between / (yy + xx) : NAN;
    default:
        return 1 - (double)summary[ATT_SUMMARY_PREFIX];
    }
}

static void observe(const att_observed *observed, double *values)
{
    for (int s = 0; s < STATISTICS; s++)
        for (int i = 0; i < observed->count; i++) {
            int64_t heads = observed->lengths[i] / ATT_SUMMARY_COUNT;
            double sum = 0;
            for (int64_t head = 0; head < heads; head++)
                sum += *values++ = statistic_of(observed->rows[i] + head * ATT_SUMMARY_COUNT, s);
            *values++ = sum / (double)heads;
        }
}

static const att_statistic_scale scales[] = {
    {"between queries",
     "0 if all queries attend at the same shifts, as a convolution does; 1 if each attends to one token",
     "the formula"},
    {"row spread", "2.3 to 5.5 tokens by layer in DeiT-Tiny, whose grid has 14 x 14", ATT_OF_PHOTOGRAPHS},
    {"between queries", "0.22 to 0.53 by layer in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_head_shape = {
    .info = {.name = "head_shape",
             .view = "convolution",
             .title = "Head shape",
             .summary = "centre and spread of each head's attention, as a function of the shift from query to key",
             .unit = "tokens",
             .formula = "centre = E[d], spread = sqrt(E[(d - E[d])^2]) along rows and columns, and their correlation; "
                        "E = (1/N) sum_i sum_j a_ij / (sum_j' a_ij'), d = p_j - p_i, i and j over the N grid tokens",
             .source = "Cordonnier et al., ICLR 2020 (centre and spread are parameters there; here they are measured)",
             .scales = scales,
             .reading = "p counts rows and columns of tokens, downwards and to the right, within the window if there "
                        "are windows; times the patch size, it is in pixels; between queries: share of the variance of "
                        "d that lies between the mean shifts of queries, 0 if all queries attend at the same shifts as "
                        "a convolution does, 1 if each attends to one token; on grid: attention not on the class token "
                        "or registers, mean over all queries; at the border of the grid shifts are cut off",
             .statistics = statistics,
             .by_head = by_head},
    .request = request,
    .observe = observe,
};
