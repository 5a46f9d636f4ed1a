#include "base/core/error.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/mixing_rule.h"
#include "engine/ops/rule.h"

enum { V, MAP, IN_COUNT };

static att_status check_map(const att_infer *infer, int i, int64_t tokens)
{
    const att_attention_attrs *attrs = infer->attrs;
    return att_rule_require_shape(infer, i, "the map", ATT_SHARED, att_shape_of(attrs->heads, tokens, tokens));
}

static att_status mix_infer(att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_mixing_check_rows(infer, V, "v", attrs->value_heads));
    const int64_t *dims = infer->in[V].shape.dims;
    ATT_TRY(check_map(infer, MAP, dims[0]));
    return att_rule_out(infer, infer->in[V].dtype, ATT_SAMPLE,
                        att_shape_of(dims[0], dims[1] / attrs->value_heads * attrs->heads));
}

static void mix_backward(att_backward *backward)
{
    const void *attrs = att_backward_attrs(backward);
    att_rule_add_product(backward, V, "mix_tokens_values_grad", attrs, MAP);
    att_rule_add_product(backward, MAP, "mix_tokens_map_grad", attrs, V);
}

/* y: [N, H e] */
static void cost_of(const att_desc *y, att_cost *cost)
{
    cost->macs = (double)att_shape_count(y->shape) * (double)y->shape.dims[0];
}

static void mix_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in, (void)attrs;
    cost_of(&out[0], cost);
}

#define MAP_OF(h, n) DRAWN(ATT_SHARED, 0.1, 0, h, n, n)
static const att_op_case mix_cases[] = {
    {.name = "odd", MIXING(2, 2, 1, 2, 3), IN(SAMPLE(7, 6), MAP_OF(2, 7)), .gradient = true},
    {.name = "shared_values", MIXING(3, 1, 0, 2, 2), IN(SAMPLE(4, 5), MAP_OF(3, 4)), .gradient = true},
    {.name = "grouped_values", MIXING(6, 2, 2, 9, 7), IN(SAMPLE(65, 38), MAP_OF(6, 65))},
    {.name = "one_token", MIXING(2, 1, 0, 1, 1), IN(SAMPLE(1, 3), SHARED(2, 1, 1))},
    {.name = "many_tokens", MIXING(1, 1, 0, 17, 11), IN(SAMPLE(187, 33), MAP_OF(1, 187))},
    {.name = "small", MIXING(6, 6, 0, 14, 14), IN(SAMPLE(196, 384), MAP_OF(6, 196)), .bench = true},
    {.name = "cordonnier", MIXING(9, 1, 0, 16, 16), IN(SAMPLE(256, 400), MAP_OF(9, 256)), .bench = true},
};

const att_op att_op_mix_tokens = {
    .name = "mix_tokens",
    .attrs_size = sizeof(att_attention_attrs),
    .help = "o_i = sum_j a_ij v_j, per head; a is the same for all samples",
    .autocast_in = 1u << V,
    .autocast_out = 1,
    .infer = mix_infer,
    .backward = mix_backward,
    .in_training = att_mixing_in_training,
    .cost = mix_cost,
    ATT_CASES(mix_cases),
};

static att_status values_grad_infer(att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_mixing_check_rows(infer, 0, "dy", attrs->heads));
    const int64_t *dims = infer->in[0].shape.dims;
    ATT_TRY(check_map(infer, MAP, dims[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE,
                        att_shape_of(dims[0], dims[1] / attrs->heads * attrs->value_heads));
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost_of(&in[0], cost);
}

static const att_op_case values_grad_cases[] = {
    {.name = "odd", MIXING(2, 2, 1, 2, 3), IN(SAMPLE(7, 6), MAP_OF(2, 7))},
    {.name = "grouped_values", MIXING(6, 2, 2, 9, 7), IN(SAMPLE(65, 114), MAP_OF(6, 65))},
    {.name = "one_token", MIXING(2, 1, 0, 1, 1), IN(SAMPLE(1, 6), SHARED(2, 1, 1))},
    {.name = "many_tokens", MIXING(1, 1, 0, 17, 11), IN(SAMPLE(187, 33), MAP_OF(1, 187))},
    {.name = "small", MIXING(6, 6, 0, 14, 14), IN(SAMPLE(196, 384), MAP_OF(6, 196)), .bench = true},
    {.name = "cordonnier", MIXING(9, 1, 0, 16, 16), IN(SAMPLE(256, 3600), MAP_OF(9, 256)), .bench = true},
};

const att_op att_op_mix_tokens_values_grad = {
    .name = "mix_tokens_values_grad",
    .attrs_size = sizeof(att_attention_attrs),
    .help = "dv_j = sum_i a_ij do_i, summed over the heads that share a value",
    .autocast_in = 1u << 0,
    .autocast_out = 1,
    .infer = values_grad_infer,
    .cost = grad_cost,
    ATT_CASES(values_grad_cases),
};

static att_status map_grad_infer(att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_mixing_check_rows(infer, 0, "dy", attrs->heads));
    const int64_t *dims = infer->in[0].shape.dims;
    ATT_TRY(att_rule_require_shape(infer, 1, "v", ATT_SAMPLE,
                                   att_shape_of(dims[0], dims[1] / attrs->heads * attrs->value_heads)));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SUMMED, att_shape_of(attrs->heads, dims[0], dims[0]));
}

static const att_op_case map_grad_cases[] = {
    {.name = "odd", MIXING(2, 2, 1, 2, 3), IN(SAMPLE(7, 6), SAMPLE(7, 6))},
    {.name = "grouped_values", MIXING(6, 2, 2, 9, 7), IN(SAMPLE(65, 114), SAMPLE(65, 38))},
    {.name = "one_token", MIXING(2, 1, 0, 1, 1), IN(SAMPLE(1, 6), SAMPLE(1, 3))},
    {.name = "many_tokens", MIXING(1, 1, 0, 17, 11), IN(SAMPLE(187, 33), SAMPLE(187, 33))},
    {.name = "small", MIXING(6, 6, 0, 14, 14), IN(SAMPLE(196, 384), SAMPLE(196, 384)), .bench = true},
    {.name = "cordonnier", MIXING(9, 1, 0, 16, 16), IN(SAMPLE(256, 3600), SAMPLE(256, 400)), .bench = true},
};

const att_op att_op_mix_tokens_map_grad = {
    .name = "mix_tokens_map_grad",
    .attrs_size = sizeof(att_attention_attrs),
    .help = "da_ij = do_i . v_j, summed over the samples",
    .autocast_in = 3,
    .infer = map_grad_infer,
    .cost = grad_cost,
    ATT_CASES(map_grad_cases),
};
