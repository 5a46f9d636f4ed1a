#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention_cases.h"
#include "engine/ops/attention_rule.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { GRAD_DO, GRAD_O, GRAD_LSE, GRAD_Q, GRAD_PLAIN = GRAD_Q + ATT_ATTENTION_OPERANDS };
enum { GRAD_IN_COUNT = GRAD_Q + ATT_ATTENTION_INPUTS, GRAD_MOST = GRAD_Q + ATT_ATTENTION_MOST_INPUTS };

att_value att_score_gradient_norms(att_graph *graph, const att_node *node, att_value gradient)
{
    att_value in[GRAD_MOST] = {gradient, node->out[0], node->out[1]}, out[ATT_ATTENTION_INPUTS + 1];
    int norms = 0;
    for (int i = 0; i < node->in_count; i++) {
        in[GRAD_Q + i] = node->in[i];
        norms += i < ATT_ATTENTION_INPUTS && node->in[i] != ATT_NONE;
    }
    if (att_emit(graph, "attention_grad", node->attrs, in, GRAD_Q + node->in_count, out) == ATT_NONE)
        return ATT_NONE;
    return out[norms];
}

static att_status grad_infer(att_infer *infer)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    ATT_TRY(att_attention_check_count(infer, GRAD_Q));
    ATT_TRY(att_rule_require(infer, GRAD_DO, "do", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, GRAD_O, "o", ATT_SAMPLE, GRAD_DO));
    ATT_TRY(att_rule_require(infer, GRAD_LSE, "lse", ATT_SAMPLE));
    ATT_TRY(att_attention_check_operands(infer, GRAD_Q, operand));
    const att_desc *in = infer->in;
    int64_t queries = operand[ATT_ATTENTION_Q].tokens, heads = operand[ATT_ATTENTION_Q].heads;
    if (!att_shape_equal(in[GRAD_DO].shape, att_shape_of(queries, heads * operand[ATT_ATTENTION_V].width)) ||
        !att_shape_equal(in[GRAD_LSE].shape, att_shape_of(heads, queries)))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "do %s and lse %s do not fit q %s with %lld heads",
                             ATT_SHOWN(&in[GRAD_DO]), ATT_SHOWN(&in[GRAD_LSE]), ATT_SHOWN(&in[GRAD_Q]),
                             (long long)heads);
    ATT_TRY(att_attention_check_terms(infer, GRAD_Q, operand));
    for (int i = GRAD_Q; i < infer->in_count && i < GRAD_IN_COUNT; i++)
        if (att_desc_present(&in[i]))
            att_rule_out(infer, in[i].dtype, ATT_SAMPLE, in[i].shape);
    return att_rule_out(infer, in[GRAD_LSE].dtype, ATT_SAMPLE, in[GRAD_LSE].shape);
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    att_attention_cost(in + GRAD_Q, attrs, 3, 2, cost);
}

/* o and lse are drawn rather than computed: the formula does not require that the rows of exp(s - lse) sum to 1. lse is
 * near the logarithm of the number of tokens, as in real networks. */
#define GRAD_OF(n, h, e, lse) SAMPLE(n, (h) * (e)), SAMPLE(n, (h) * (e)), DRAWN(ATT_SAMPLE, 0.3, lse, h, n)
#define GRAD_IN(n, h, d, lse) GRAD_OF(n, h, d, lse), SAMPLE(n, 3 * (h) * (d)), ABSENT, ABSENT
static const att_op_case grad_cases[] = {
    {.name = "odd", HEADS(2, 0.6, 1, 2, 2, ), IN(GRAD_IN(5, 2, 3, 2))},
    {.name = "one_token", HEADS(1, 0.4, 0, 1, 1, ), IN(GRAD_IN(1, 1, 7, 0))},
    {.name = "two_prefixes", HEADS(3, 0.5, 2, 3, 5, ), IN(GRAD_IN(17, 3, 5, 3))},
    {.name = "cross", GROUPED(2, 2, 2, 0.5, 0, ), IN(GRAD_OF(5, 2, 5, 2), SAMPLE(5, 6), SAMPLE(7, 6), SAMPLE(7, 10))},
    {.name = "grouped", GROUPED(4, 2, 2, 0.6, 0, ), IN(GRAD_OF(5, 4, 3, 2), SAMPLE(5, 24), ABSENT, ABSENT)},
    {.name = "shared_values",
     GROUPED(4, 2, 1, 0.6, 0, ),
     IN(GRAD_OF(6, 4, 7, 2), SAMPLE(6, 12), SAMPLE(6, 13), ABSENT)},
    {.name = "shared_keys",
     GROUPED(6, 2, 3, 0.5, 0, ),
     IN(GRAD_OF(70, 6, 2, 4), SAMPLE(70, 24), ABSENT, SAMPLE(70, 6))},
    {.name = "many_grouped_keys",
     GROUPED(4, 1, 2, 0.35, 0, ),
     IN(GRAD_OF(5, 4, 3, 7), SAMPLE(5, 16), SAMPLE(1101, 4), SAMPLE(1101, 6))},
    {.name = "relative_prefixes", GRID(2, 2, 3, 2, ), IN(GRAD_IN(8, 2, 3, 2), SHARED(18, 2), ABSENT, ABSENT)},
    {.name = "relative_grouped",
     ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 3, .grid_w = 4, .scale = 0.5, .step_h = 1,
           .step_w = 1),
     IN(GRAD_OF(12, 4, 7, 2), SAMPLE(12, 12), SAMPLE(12, 13), ABSENT, SHARED(35, 4), ABSENT, ABSENT)},
    {.name = "terms_of_many_tokens",
     GRID(1, 2, 31, 17, ),
     IN(GRAD_IN(529, 1, 4, 6), SHARED(2016, 1), SAMPLE(529, 31), SAMPLE(529, 17))},
    {.name = "shifted_windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3, .shift_h = 1, .shift_w = 1),
     IN(GRAD_IN(24, 2, 3, 2), SHARED(15, 2), ABSENT, ABSENT)},
    {.name = "grouped_windows",
     ATTRS(attention, .heads = 4, .key_heads = 2, .value_heads = 1, .grid_h = 6, .grid_w = 10, .scale = 0.5,
           .step_h = 4, .step_w = 2, .window_h = 3, .window_w = 5, .shift_h = 2, .shift_w = 1),
     IN(GRAD_OF(60, 4, 7, 2), SAMPLE(60, 12), SAMPLE(60, 13), ABSENT, SHARED(45, 4), ABSENT, ABSENT)},
    {.name = "windows_of_many_tokens",
     GRID(1, 0, 6, 200, .window_h = 3, .window_w = 200, .shift_h = 1, .shift_w = 190),
     IN(GRAD_IN(1200, 1, 4, 6))},
    {.name = "causal_many_tokens",
     ATTRS(attention, ATT_ATTENTION_HEADS(1), .scale = 0.5, .causal = 1),
     IN(GRAD_IN(530, 1, 4, 6))},
    {.name = "keys",
     GROUPED(4, 2, 1, 0.6, 0, ),
     IN(GRAD_OF(5, 4, 5, 2), SAMPLE(5, 12), SAMPLE(7, 6), SAMPLE(7, 5), NO_TERMS, SAMPLE(7))},
    {.name = "keys_and_terms",
     GRID(2, 2, 3, 2, .causal = 1),
     IN(GRAD_IN(8, 2, 3, 2), SHARED(18, 2), SAMPLE(8, 6), SAMPLE(8, 4), SAMPLE(8))},
    {.name = "drop", HEADS(2, 0.6, 1, 2, 2, DROPS(0.4)), IN(GRAD_IN(5, 2, 3, 2))},
    {.name = "drop_many_keys",
     GROUPED(4, 1, 2, 0.35, 0, DROPS(0.1)),
     IN(GRAD_OF(5, 4, 3, 7), SAMPLE(5, 16), SAMPLE(1101, 4), SAMPLE(1101, 6))},
    {.name = "drop_windows",
     GRID(2, 0, 4, 6, .window_h = 2, .window_w = 3, .shift_h = 1, .shift_w = 1, DROPS(0.5)),
     IN(GRAD_IN(24, 2, 3, 2), SHARED(15, 2), ABSENT, ABSENT)},
    {.name = "many_tokens", HEADS(1, 0.35, 1, 20, 30, ), IN(GRAD_IN(601, 1, 8, 6.5))},
    {.name = "demo", HEADS(4, 0.25, 1, 7, 7, ), IN(GRAD_IN(50, 4, 16, 4)), .bench = true},
    {.name = "tiny", HEADS(3, 0.125, 1, 14, 14, ), IN(GRAD_IN(197, 3, 64, 5.5)), .bench = true},
    {.name = "small", HEADS(6, 0.125, 1, 14, 14, ), IN(GRAD_IN(197, 6, 64, 5.5)), .bench = true},
    {.name = "small_relative",
     HEADS(6, 0.125, 1, 14, 14, ),
     IN(GRAD_IN(197, 6, 64, 5.5), SHARED(732, 6), ABSENT, ABSENT),
     .bench = true},
    {.name = "small_rows_and_columns",
     HEADS(6, 0.125, 1, 14, 14, ),
     IN(GRAD_IN(197, 6, 64, 5.5), ABSENT, SAMPLE(197, 84), SAMPLE(197, 84)),
     .bench = true},
    {.name = "small_drop", HEADS(6, 0.125, 1, 14, 14, DROPS(0.1)), IN(GRAD_IN(197, 6, 64, 5.5)), .bench = true},
    {.name = "cordonnier",
     GROUPED(9, 9, 1, 0.05, 0, .grid_h = 16, .grid_w = 16, .step_h = 2, .step_w = 2),
     IN(GRAD_OF(256, 9, 400, 5.5), SAMPLE(256, 3600), SAMPLE(256, 3600), SAMPLE(256, 400), ABSENT, SAMPLE(256, 144),
        SAMPLE(256, 144)),
     .bench = true},
    {.name = "swin_tiny",
     ATTRS(attention, ATT_ATTENTION_HEADS(6), .grid_h = 28, .grid_w = 28, .scale = 0.177, .step_h = 1, .step_w = 1,
           .window_h = 7, .window_w = 7, .shift_h = 3, .shift_w = 3),
     IN(GRAD_IN(784, 6, 32, 4), SHARED(169, 6), ABSENT, ABSENT),
     .bench = true},
};

const att_op att_op_attention_grad = {
    .name = "attention_grad",
    .attrs_size = sizeof(att_attention_attrs),
    .help =
        "dv_j = sum_i a_ij do_i; ds_ij = a_ij (do_i . v_j - do_i . o_i); dq_i = scale sum_j ds_ij k_j; "
        "dk_j = scale sum_i ds_ij q_i; a_ij = exp(scale q_i . k_j + t_ij - lse_i); dt_ij = ds_ij; with dropout do_i of "
        "a key times its factor, except in do_i . o_i; last output: |ds_i|",
    .autocast_in = 1u << GRAD_DO | 1u << GRAD_O | 7u << GRAD_Q,
    .autocast_out = 7,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};
