/* The mean cosine similarity of tokens. The N x N similarities are not formed: their sum is the squared length of the
 * sum of the unit tokens. */
#include <math.h>

#include <attscope/ops.h>

#include "study/measure/list.h"
#include "study/measure/variants.h"

static const att_detail options[] = {ATT_PARTS_OPTION, ATT_NORMS_OPTION};

/* A token may have any scale: without norms, beyond the range in which f32 squares numbers. */
static att_value mean_unit(att_graph *graph, att_value x)
{
    return att_global_mean(graph, att_l2_norm(graph, x, graph->dtype == ATT_F64 ? 1e-150 : 1e-18));
}

static att_status request(att_requests *requests)
{
    att_variant_rows rows;
    ATT_TRY(att_variants_request_values(requests, "mean_unit", mean_unit, &rows));
    att_variants_add_series(requests, &rows, "cosine");
    att_arena_free(&rows.arena);
    return att_requests_graph(requests)->status;
}

static void observe(const att_observed *observed, double *values)
{
    for (int i = 0; i < observed->count; i++) {
        const double tokens = observed->constants[i];
        double squares = 0;
        for (int64_t c = 0; c < observed->lengths[i]; c++)
            squares += (double)observed->rows[i][c] * (double)observed->rows[i][c];
        values[i] = tokens > 1 ? (tokens * squares - 1) / (tokens - 1) : NAN;
    }
}

static const att_statistic_info statistics[] = {{"cosine", "cosine similarity", NULL}, {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {{"cosine both", "0.26 to 0.42 along DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
                                             {NULL, NULL, NULL}};

const att_instrument att_instrument_similarity = {
    .info = {.name = "similarity",
             .view = "rank",
             .title = "Token similarity",
             .summary = "how alike the tokens are: mean cosine similarity",
             .unit = "1",
             .formula = "(1 / (N (N - 1))) sum_{i != j} cos(x_i, x_j) = (N |u|^2 - 1) / (N - 1), u = (1/N) sum_i x_i / "
                        "|x_i|, over the N tokens x_i before the first residual addition (input) and after each; 1: "
                        "all tokens have the same direction, 0: they are orthogonal",
             .source = "usual (Gong et al., arXiv:2104.12753)",
             .scales = scales,
             .reading = "over all pairs of different tokens, the class token included; tokens are not 0; not defined "
                        "for one token; with similarity:parts=all, " ATT_VARIANTS_READING,
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .statistics = statistics,
             .readings = att_variant_names,
             .readings_agree = "nothing is switched off"},
    .request = request,
    .observe = observe,
};
