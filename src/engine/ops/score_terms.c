#include "engine/ops/score_terms.h"

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { RELATIVE, ROWS, COLUMNS };

att_value att_score_terms(att_graph *graph, const att_score_terms_attrs *attrs,
                          const att_value in[ATT_SCORE_MOST_INPUTS])
{
    return att_emit(graph, "score_terms", attrs, in, att_score_relative(attrs) + ATT_SCORE_EXTRA, NULL);
}

/* Parts of queries and keys are as wide as the first part, which may hold queries and keys side by side, or end with
 * the last head. */
static att_status check_parts(const att_infer *infer)
{
    const att_score_terms_attrs *attrs = infer->attrs;
    const att_attention_attrs *a = &attrs->attention;
    for (int i = 0; i < att_score_relative(attrs); i++) {
        bool is_key = i >= attrs->query_parts;
        ATT_TRY(att_rule_require_rank(infer, i, is_key ? "k" : "q", ATT_SAMPLE, 2));
        int64_t begin = is_key ? attrs->k_offset : attrs->q_offset, heads = is_key ? a->key_heads : a->heads;
        const int64_t *dims = infer->in[i].shape.dims, tokens = infer->in[0].shape.dims[0];
        int64_t end = begin + heads * attrs->width;
        bool fits = i == 0 ? end <= dims[1] : dims[1] == infer->in[0].shape.dims[1] || dims[1] == end;
        if (begin < 0 || end > dims[1] || !fits || dims[0] != tokens)
            return att_rule_fail(infer, ATT_ERR_MISMATCH,
                                 "%s %s must have %lld rows, and %lld heads of %lld columns from column %lld",
                                 is_key ? "k" : "q", ATT_SHOWN(&infer->in[i]), (long long)tokens, (long long)heads,
                                 (long long)attrs->width, (long long)begin);
    }
    return ATT_OK;
}

/* first: the input `relative` */
static att_status check_extra(const att_infer *infer, int first, int64_t tokens)
{
    const att_attention_attrs *a = infer->attrs;
    const att_desc *extra = infer->in + first;
    if (att_desc_present(&extra[RELATIVE])) {
        ATT_TRY(att_rule_require_rank(infer, first + RELATIVE, "relative", ATT_SHARED, 2));
        if (!att_attention_fits_shifts(a, extra[RELATIVE].shape))
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "relative %s does not fit the heads and the grid",
                                 ATT_SHOWN(&extra[RELATIVE]));
    }
    if (att_desc_present(&extra[ROWS]) != att_desc_present(&extra[COLUMNS]))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "rows and columns must be given both or not at all");
    if (!att_desc_present(&extra[ROWS]))
        return ATT_OK;
    ATT_TRY(att_rule_require_shape(infer, first + ROWS, "rows", ATT_SAMPLE,
                                   att_shape_of(tokens, (int64_t)a->heads * a->grid_h)));
    return att_rule_require_shape(infer, first + COLUMNS, "columns", ATT_SAMPLE,
                                  att_shape_of(tokens, (int64_t)a->heads * a->grid_w));
}

static int64_t terms_of(const att_infer *infer)
{
    const att_score_terms_attrs *attrs = infer->attrs;
    const att_desc *extra = infer->in + att_score_relative(attrs);
    return attrs->query_parts * attrs->key_parts + att_desc_present(&extra[RELATIVE]) + att_desc_present(&extra[ROWS]);
}

static att_status terms_infer(att_infer *infer)
{
    const att_score_terms_attrs *attrs = infer->attrs;
    const att_attention_attrs *a = &attrs->attention;
    if (attrs->query_parts < 1 || attrs->query_parts > ATT_SCORE_MOST_QUERY_PARTS || attrs->key_parts < 1 ||
        attrs->key_parts > ATT_SCORE_MOST_KEY_PARTS || attrs->width < 1 || a->heads < 1 || a->key_heads < 1 ||
        a->heads % a->key_heads || !isfinite(a->scale))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "invalid heads, parts, width or scale");
    ATT_TRY(att_rule_count(infer, att_score_relative(attrs) + ATT_SCORE_EXTRA));
    ATT_TRY(check_parts(infer));
    ATT_TRY(check_extra(infer, att_score_relative(attrs), infer->in[0].shape.dims[0]));
    int64_t terms = terms_of(infer);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(a->heads, terms, terms));
}

static void terms_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    const att_score_terms_attrs *own = attrs;
    double tokens = (double)in[0].shape.dims[0], terms = (double)out[0].shape.dims[1];
    double scores = tokens * tokens / (double)att_attention_windows(&own->attention) * own->attention.heads;
    cost->macs = scores * (double)(own->query_parts * own->key_parts * own->width);
    cost->flops = 2 * cost->macs + scores * terms * (terms + 2);
}

#define TERMS(parts_q, parts_k, width_, at_q, at_k, ...)                                                        \
    ATTRS(score_terms, .query_parts = (parts_q), .key_parts = (parts_k), .width = (width_), .q_offset = (at_q), \
          .k_offset = (at_k), .attention = {.value_heads = 1, .scale = 0.5, .step_h = 1, .step_w = 1, __VA_ARGS__})
#define NO_EXTRA ABSENT, ABSENT, ABSENT
static const att_op_case terms_cases[] = {
    {.name = "one_product",
     TERMS(1, 1, 3, 0, 6, .heads = 2, .key_heads = 2),
     IN(SAMPLE(5, 18), SAMPLE(5, 18), NO_EXTRA)},
    {.name = "six_products",
     TERMS(3, 2, 4, 0, 8, .heads = 2, .key_heads = 2, .prefix = 1, .grid_h = 2, .grid_w = 3),
     IN(SAMPLE(7, 24), SAMPLE(7, 24), SAMPLE(7, 8), SAMPLE(7, 16), SAMPLE(7, 24), NO_EXTRA)},
    {.name = "relative",
     TERMS(1, 1, 3, 0, 0, .heads = 4, .key_heads = 2, .prefix = 2, .grid_h = 3, .grid_w = 2),
     IN(SAMPLE(8, 12), SAMPLE(8, 6), SHARED(18, 4), ABSENT, ABSENT)},
    {.name = "axes",
     TERMS(1, 1, 5, 0, 10, .heads = 2, .key_heads = 2, .prefix = 1, .grid_h = 2, .grid_w = 3),
     IN(SAMPLE(7, 10), SAMPLE(7, 20), SHARED(15, 2), SAMPLE(7, 4), SAMPLE(7, 6))},
    {.name = "shifted_windows",
     TERMS(1, 1, 3, 0, 6, .heads = 2, .key_heads = 2, .grid_h = 4, .grid_w = 6, .window_h = 2, .window_w = 3,
           .shift_h = 1, .shift_w = 1),
     IN(SAMPLE(24, 18), SAMPLE(24, 18), SHARED(15, 2), ABSENT, ABSENT)},
    {.name = "causal",
     TERMS(1, 1, 3, 0, 0, .heads = 1, .key_heads = 1, .causal = 1),
     IN(SAMPLE(19, 3), SAMPLE(19, 3), NO_EXTRA)},
    {.name = "one_token", TERMS(1, 1, 3, 0, 0, .heads = 1, .key_heads = 1), IN(SAMPLE(1, 3), SAMPLE(1, 3), NO_EXTRA)},
    {.name = "tiny",
     TERMS(3, 2, 64, 0, 192, .heads = 3, .key_heads = 3, .prefix = 1, .grid_h = 14, .grid_w = 14),
     IN(SAMPLE(197, 576), SAMPLE(197, 576), SAMPLE(197, 576), SAMPLE(197, 576), SAMPLE(197, 576), NO_EXTRA),
     .bench = true},
};

const att_op att_op_score_terms = {
    .name = "score_terms",
    .attrs_size = sizeof(att_score_terms_attrs),
    .help = "mean over queries of the covariances over keys of the terms of attention's scores",
    .infer = terms_infer,
    .cost = terms_cost,
    ATT_CASES(terms_cases),
};
