#include "engine/ops/score_norm.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { W_Q, W_K, IN_COUNT };

att_value att_score_norm(att_graph *graph, const att_score_norm_attrs *attrs, att_value w_q, att_value w_k)
{
    att_value in[IN_COUNT] = {w_q, w_k};
    return att_emit(graph, "score_norm", attrs, in, IN_COUNT, NULL);
}

/* Whether `heads` heads from row `offset` on lie in weights with `rows` rows. */
static bool fits(int64_t heads, int64_t width, int64_t offset, int64_t rows)
{
    return heads >= 1 && width >= 1 && offset >= 0 && offset <= rows && heads <= (rows - offset) / width;
}

static att_status norm_infer(att_infer *infer)
{
    const att_score_norm_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rank(infer, W_Q, "w_q", ATT_SAMPLE, 2));
    ATT_TRY(att_rule_require_rank(infer, W_K, "w_k", ATT_SAMPLE, 2));
    const int64_t *q = infer->in[W_Q].shape.dims, *k = infer->in[W_K].shape.dims;
    if (q[1] != k[1])
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "w_q %s and w_k %s must have as many columns",
                             ATT_SHOWN(&infer->in[W_Q]), ATT_SHOWN(&infer->in[W_K]));
    if (!fits(attrs->heads, attrs->width, attrs->q_offset, q[0]) ||
        !fits(attrs->key_heads, attrs->width, attrs->k_offset, k[0]) || attrs->heads % attrs->key_heads)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "w_q %s and w_k %s do not hold %lld and %lld heads of width %lld",
                             ATT_SHOWN(&infer->in[W_Q]), ATT_SHOWN(&infer->in[W_K]), (long long)attrs->heads,
                             (long long)attrs->key_heads, (long long)attrs->width);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->heads));
}

static void norm_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    enum { SQUARINGS = 20 };
    const att_score_norm_attrs *a = attrs;
    const double width = (double)a->width;
    (void)out;
    cost->flops = (double)a->heads * width * width * (4 * (double)in[W_Q].shape.dims[1] + 2 * SQUARINGS * width);
}

#define NORM(...) ATTRS(score_norm, __VA_ARGS__)
#define MATRICES(rows, columns) IN(SAMPLE(rows, columns), SAMPLE(rows, columns))
static const att_op_case norm_cases[] = {
    {.name = "odd",
     NORM(.heads = 2, .key_heads = 2, .width = 3, .q_offset = 1, .k_offset = 7, .scale = 0.6),
     MATRICES(13, 5)},
    {.name = "grouped",
     NORM(.heads = 4, .key_heads = 2, .width = 4, .k_offset = 1, .scale = 0.5),
     IN(SAMPLE(16, 9), SAMPLE(9, 9))},
    {.name = "wide_heads", NORM(.heads = 1, .key_heads = 1, .width = 7, .scale = 1), MATRICES(7, 3)},
    {.name = "zero",
     NORM(.heads = 2, .key_heads = 2, .width = 2, .scale = 1),
     IN(DRAWN(ATT_SAMPLE, 0, 0, 4, 6), SAMPLE(4, 6))},
    {.name = "all_equal",
     NORM(.heads = 2, .key_heads = 2, .width = 2, .scale = 1),
     IN(DRAWN(ATT_SAMPLE, 0, 1, 4, 6), DRAWN(ATT_SAMPLE, 0, 2, 4, 6))},
    {.name = "tiny",
     NORM(.heads = 3, .key_heads = 3, .width = 64, .k_offset = 192, .scale = 0.125),
     MATRICES(576, 192),
     .bench = true},
};

const att_op att_op_score_norm = {
    .name = "score_norm",
    .attrs_size = sizeof(att_score_norm_attrs),
    .help = "largest singular value of scale W_q' W_k, for each head",
    .infer = norm_infer,
    .cost = norm_cost,
    ATT_CASES(norm_cases),
};
