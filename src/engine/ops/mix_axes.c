#include "base/core/error.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/mixing_rule.h"
#include "engine/ops/rule.h"
#include "engine/ops/two_maps_rule.h"

/* first: the node's input v */
static att_status check_inputs(const att_infer *infer, int first)
{
    const att_attention_attrs *attrs = infer->attrs;
    int64_t heads = attrs->heads, h = attrs->grid_h, w = attrs->grid_w;
    ATT_TRY(att_mixing_check_rows(infer, first + V, "v", attrs->value_heads));
    if (attrs->prefix != 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "prefix tokens lie on no axis");
    ATT_TRY(att_rule_require_shape(infer, first + ROW_MAP, "the map of rows", ATT_SHARED, att_shape_of(heads, h, h)));
    return att_rule_require_shape(infer, first + COLUMN_MAP, "the map of columns", ATT_SHARED,
                                  att_shape_of(heads, w, w));
}

/* [N, H e] */
static att_shape out_shape(const att_infer *infer, int v)
{
    const att_attention_attrs *attrs = infer->attrs;
    const int64_t *dims = infer->in[v].shape.dims;
    return att_shape_of(dims[0], dims[1] / attrs->value_heads * attrs->heads);
}

static att_status axes_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(check_inputs(infer, V));
    return att_rule_out(infer, infer->in[V].dtype, ATT_SAMPLE, out_shape(infer, V));
}

static void axes_backward(att_backward *backward)
{
    att_two_maps_backward(backward, "mix_axes_grad");
}

/* `products` products along each axis. y: [N, H e] */
static void cost_of(att_shape y, const att_attention_attrs *attrs, int products, att_cost *cost)
{
    cost->macs = products * (double)att_shape_count(y) * ((double)attrs->grid_h + attrs->grid_w);
}

static void axes_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in;
    cost_of(out[0].shape, attrs, 1, cost);
}

#define MAP_OF(h, n) DRAWN(ATT_SHARED, 0.3, 0, h, n, n)
#define OPERANDS(n, ue, heads, h, w) SAMPLE(n, ue), MAP_OF(heads, h), MAP_OF(heads, w)
static const att_op_case axes_cases[] = {
    {.name = "odd", MIXING(2, 2, 0, 2, 3), IN(OPERANDS(6, 6, 2, 2, 3)), .gradient = true},
    {.name = "shared_values", MIXING(3, 1, 0, 3, 2), IN(OPERANDS(6, 5, 3, 3, 2)), .gradient = true},
    {.name = "grouped_values", MIXING(6, 2, 0, 9, 7), IN(OPERANDS(63, 38, 6, 9, 7))},
    {.name = "one_token", MIXING(2, 1, 0, 1, 1), IN(OPERANDS(1, 3, 2, 1, 1))},
    {.name = "one_row", MIXING(1, 1, 0, 1, 19), IN(OPERANDS(19, 35, 1, 1, 19))},
    {.name = "wide", MIXING(2, 1, 0, 5, 6), IN(OPERANDS(30, 147, 2, 5, 6))},
    {.name = "many_tokens", MIXING(2, 1, 0, 32, 32), IN(OPERANDS(1024, 131, 2, 32, 32))},
    {.name = "small", MIXING(6, 6, 0, 14, 14), IN(OPERANDS(196, 384, 6, 14, 14)), .bench = true},
    {.name = "cordonnier", MIXING(9, 1, 0, 16, 16), IN(OPERANDS(256, 400, 9, 16, 16)), .bench = true},
};

const att_op att_op_mix_axes = {
    .name = "mix_axes",
    .attrs_size = sizeof(att_attention_attrs),
    .help = "o_yx = sum_y' r_yy' sum_x' c_xx' v_y'x', per head; r and c are the same for all samples",
    .autocast_in = 1u << V,
    .autocast_out = 1,
    .infer = axes_infer,
    .backward = axes_backward,
    .in_training = att_mixing_in_training,
    .cost = axes_cost,
    ATT_CASES(axes_cases),
};

static att_status grad_infer(att_infer *infer)
{
    static const att_two_maps_rule rule = {check_inputs, out_shape};
    return att_two_maps_infer_grad(infer, &rule);
}

/* Forward along the columns, then, along each axis, the gradients of values and map. */
static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost_of(in[GRAD_DY].shape, attrs, 2, cost);
    cost->macs += (double)att_shape_count(in[GRAD_DY].shape) * ((const att_attention_attrs *)attrs)->grid_w;
}

#define GRAD_IN(n, he, ue, heads, h, w) SAMPLE(n, he), OPERANDS(n, ue, heads, h, w)
static const att_op_case grad_cases[] = {
    {.name = "odd", MIXING(2, 2, 0, 2, 3), IN(GRAD_IN(6, 6, 6, 2, 2, 3))},
    {.name = "grouped_values", MIXING(6, 2, 0, 9, 7), IN(GRAD_IN(63, 114, 38, 6, 9, 7))},
    {.name = "one_token", MIXING(2, 1, 0, 1, 1), IN(GRAD_IN(1, 6, 3, 2, 1, 1))},
    {.name = "one_row", MIXING(1, 1, 0, 1, 19), IN(GRAD_IN(19, 35, 35, 1, 1, 19))},
    {.name = "wide", MIXING(2, 1, 0, 5, 6), IN(GRAD_IN(30, 294, 147, 2, 5, 6))},
    {.name = "small", MIXING(6, 6, 0, 14, 14), IN(GRAD_IN(196, 384, 384, 6, 14, 14)), .bench = true},
    {.name = "cordonnier", MIXING(9, 1, 0, 16, 16), IN(GRAD_IN(256, 3600, 400, 9, 16, 16)), .bench = true},
};

const att_op att_op_mix_axes_grad = {
    .name = "mix_axes_grad",
    .attrs_size = sizeof(att_attention_attrs),
    .help =
        "dv_y'x' = sum_x c_xx' g_y'x, g_y'x = sum_y r_yy' do_yx; dc_xx' = sum of g_y'x . v_y'x' over y'; dr_yy' = sum "
        "of do_yx . (sum_x' c_xx' v_y'x') over x",
    .autocast_in = 1u << GRAD_DY | 1u << GRAD_V,
    .autocast_out = 1u << V,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};
