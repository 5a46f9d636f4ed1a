/* What keeps the tokens of a network apart: the rank residual along the network with parts of it switched off. */
#include <math.h>
#include <stdio.h>

#include <attscope/ops.h>

#include "study/measure/list.h"
#include "study/measure/variants.h"

enum { NORMS }; /* options */
static const att_detail options[] = {ATT_NORMS_OPTION};

/* Copies without norms may have any scale, beyond the range of F32 to which the rows of a graph in F64 are rounded:
 * such a copy is divided by its norm. */
static att_value norms_of(att_graph *graph, att_value x, bool copied)
{
    const att_shape shape = att_value_shape(graph, x);
    if (copied && graph->dtype == ATT_F64) {
        x = att_reshape(graph, x, att_shape_of(1, att_shape_count(shape)));
        x = att_reshape(graph, att_l2_norm(graph, x, 1e-300), shape);
    }
    return att_residual_norms(graph, x, false);
}

/* A row's constant: index of the variant, plus flags. */
enum { VARIANT_BITS = 7, SELECTED = 8, ENDS_LAYER = 16, WIDE = 32 };

static void request_row(att_requests *requests, const att_variant_row *row)
{
    att_graph *graph = att_requests_graph(requests);
    char name[sizeof row->probe + 16];
    int constant = row->variant | (row->selected ? SELECTED : 0) | (row->ends_layer ? ENDS_LAYER : 0) |
                   (graph->dtype == ATT_F64 ? WIDE : 0);
    snprintf(name, sizeof name, "%s.collapse", row->probe);
    att_graph_scope(graph, row->scope);
    att_requests_value(requests, name, norms_of(graph, row->x, !row->original), constant);
}

static att_status request(att_requests *requests)
{
    bool chosen[ATT_VARIANTS];
    att_variant_rows rows;
    att_variants_choose(ATT_PARTS_ALL, att_requests_option(requests, NORMS), chosen);
    ATT_TRY(att_variants_request(requests, chosen, &rows));
    for (int i = 0; i < rows.count; i++)
        request_row(requests, &rows.items[i]);
    att_variants_add_series(requests, &rows, "composite");
    att_variants_add_series(requests, &rows, "frobenius");
    for (int v = 0; v < ATT_VARIANTS; v++)
        if (chosen[v])
            att_requests_reading(requests, "", -1, "rate", att_variant_names[v]);
    att_arena_free(&rows.arena);
    return att_requests_graph(requests)->status;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Sums over the pairs (ln r_l, ln r_{l+1}) of a variant's layers. */
typedef struct fit {
    double last; /* ln r_l of the last layer; NaN: at the rounding floor */
    double n, x, y, xx, xy;
} fit;

/* Rounding leaves a composite residual of about 13 times the machine precision (measured with DeiT-Tiny: 1.2e-6 to
 * 1.6e-6 in f32, 2.5e-15 to 3.1e-15 in f64). Values below 64 times that precision are not fitted. */
static double least_fitted(int constant)
{
    return 64 * (constant & WIDE ? 0x1p-52 : 0x1p-23);
}

static void add_layer(fit *f, double residual, double floor)
{
    double y = residual > floor ? log(residual) : NAN, x = f->last;
    f->last = y;
    if (isnan(x) || isnan(y))
        return;
    f->n++;
    f->x += x;
    f->y += y;
    f->xx += x * x;
    f->xy += x * y;
}

/* The slope of the least-squares line; NaN for fewer than two pairs, or if all ln r_l are equal. */
static double slope_of(const fit *f)
{
    double variance = f->xx - f->x * f->x / f->n, covariance = f->xy - f->x * f->y / f->n;
    return f->n >= 2 && variance > 0 ? covariance / variance : NAN;
}

static void observe(const att_observed *observed, double *values)
{
    fit fits[ATT_VARIANTS] = {0};
    bool used[ATT_VARIANTS] = {false};
    int count = 0, at = 0;
    for (int i = 0; i < observed->count; i++)
        count += ((int)observed->constants[i] & SELECTED) != 0;
    for (int i = 0; i < observed->count; i++) {
        const int constant = (int)observed->constants[i], v = constant & VARIANT_BITS;
        double composite = att_residual_composite(observed->rows[i]);
        if (!used[v])
            fits[v].last = NAN;
        used[v] = true;
        if (constant & ENDS_LAYER)
            add_layer(&fits[v], composite, least_fitted(constant));
        if (!(constant & SELECTED))
            continue;
        values[at] = composite;
        values[count + at++] = att_residual_frobenius(observed->rows[i]);
    }
    for (int v = 0; v < ATT_VARIANTS; v++)
        if (used[v])
            values[count + at++] = slope_of(&fits[v]);
}

static const att_statistic_info statistics[] = {{"composite", "composite norm", NULL},
                                                {"frobenius", "Frobenius norm", NULL},
                                                {"rate", "collapse rate", NULL},
                                                {NULL, NULL, NULL}};

#define OF_THE_BOUND                                                               \
    {                                                                              \
        "rate attention", "1: exponential decay, 3: the cubic decay of the bound", \
            "the formula; Dong et al., ICML 2021"                                  \
    }
static const att_statistic_scale scales[] = {
    OF_THE_BOUND,
    {"rate attention", "2.6 in DeiT-Tiny, 0.57 with skips and MLPs (rate both)", ATT_OF_PHOTOGRAPHS},
    {"composite attention", "1e-6, that is rounding, after 12 layers of DeiT-Tiny without skips and MLPs",
     ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};
static const att_statistic_scale scales_f64[] = {
    OF_THE_BOUND,
    {"rate attention", "3.0 in DeiT-Tiny, 0.57 with skips and MLPs (rate both)",
     "attscope measure --f64, deit_tiny_patch16_224, 200 photographs of ImageNet"},
    {"composite attention", "3e-15, that is rounding, after 12 layers of DeiT-Tiny without skips and MLPs",
     "attscope measure --f64, deit_tiny_patch16_224, 200 photographs of ImageNet"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_collapse = {
    .info = {.name = "collapse",
             .view = "rank",
             .title = "Rank collapse",
             .summary = "rank collapse: the rank residual with skips and MLPs switched off, without retraining",
             .unit = "1",
             .formula = "|res(X)| / |X|, res(X) = X - 1 m', m the mean token, |X| = sqrt(|X|_1 |X|_inf) (composite) or "
                        "Frobenius, of the tokens X before the first residual addition (input) and after each; rate: "
                        "slope of the least-squares line of ln r_{l+1} against ln r_l, r the composite residual (1: "
                        "exponential decay, 3: cubic)",
             .source = "Dong et al., ICML 2021",
             .scales = scales,
             .scales_f64 = scales_f64,
             .reading = ATT_VARIANTS_READING
             "; rate: a layer reaches from one attention step to the next, and pairs with a residual below 8e-6 (with "
             "--f64: 1e-14) are left out; rounding alone leaves a residual of about 1e-6 in f32, and of 3e-15 with "
             "--f64: values near it are noise, not collapse; a stream that underflows is undefined",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .costly = true,
             .statistics = statistics,
             .readings = att_variant_names},
    .request = request,
    .observe = observe,
};
