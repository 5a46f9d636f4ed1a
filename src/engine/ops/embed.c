#include "engine/ops/embed.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_embed(att_graph *graph, att_value table, att_value indices)
{
    att_value in[2] = {table, indices};
    return att_emit(graph, "embed", NULL, in, 2, NULL);
}

static att_status require_indices(const att_infer *infer)
{
    const att_desc *indices = &infer->in[1];
    if (!att_desc_present(indices))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "indices are missing");
    if (indices->dtype != ATT_I32 || !att_rule_is(infer, 1, ATT_SAMPLE) || indices->shape.rank >= ATT_MAX_RANK ||
        att_shape_count(indices->shape) < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "indices %s of type %s must be a sample value of type %s with 0 to %d axes and not empty",
                             ATT_SHOWN(indices), att_dtype_name(indices->dtype), att_dtype_name(ATT_I32),
                             ATT_MAX_RANK - 1);
    return ATT_OK;
}

/* The shape of the indices with an axis of `columns` appended. */
static att_shape rows_shape(const att_infer *infer, int64_t columns)
{
    att_shape shape = infer->in[1].shape;
    shape.dims[shape.rank++] = columns;
    return shape;
}

static att_status embed_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "table", ATT_SHARED, 2));
    ATT_TRY(require_indices(infer));
    att_shape shape = rows_shape(infer, infer->in[0].shape.dims[1]);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of table %s and indices %s is too large",
                             ATT_SHOWN(&infer->in[0]), ATT_SHOWN(&infer->in[1]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static void embed_backward(att_backward *backward)
{
    att_embed_attrs attrs = {.rows = att_backward_in_desc(backward, 0).shape.dims[0]};
    att_value in[2] = {att_backward_gradient(backward, 0), att_backward_in(backward, 1)};
    att_rule_add_node(backward, 0, "embed_grad", &attrs, in, 2);
}

static const att_op_case embed_cases[] = {
    {.name = "odd", IN(SHARED(5, 7), INDICES(5, 9)), .gradient = true},
    {.name = "grid", IN(SHARED(7, 3), INDICES(7, 2, 3)), .gradient = true},
    {.name = "one", IN(SHARED(3, 19), CLASS(3))},
    {.name = "tiny_positions", IN(SHARED(197, 192), INDICES(197, 197)), .bench = true},
    {.name = "swin_tiny_bias", IN(SHARED(169, 3), INDICES(169, 49, 49)), .bench = true},
};

const att_op att_op_embed = {
    .name = "embed",
    .help = "y [.., C]: for each index [..] that row of the table [V, C]; NaN for an index outside [0, V)",
    .infer = embed_infer,
    .backward = embed_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(embed_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_embed_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rows(infer, 0, "dy"));
    ATT_TRY(require_indices(infer));
    int64_t columns = att_rule_columns(&infer->in[0]);
    ATT_TRY(att_rule_require_shape(infer, 0, "dy", ATT_SAMPLE, rows_shape(infer, columns)));
    att_shape table = att_shape_of(attrs->rows, columns);
    if (att_shape_count(table) < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "a table of %lld rows of %lld is empty or too large",
                             (long long)attrs->rows, (long long)columns);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SUMMED, table);
}

#define ROWS(n) ATTRS(embed, .rows = (n))
static const att_op_case grad_cases[] = {
    {.name = "odd", ROWS(5), IN(SAMPLE(9, 7), INDICES(5, 9))},
    {.name = "grid", ROWS(7), IN(SAMPLE(2, 3, 3), INDICES(7, 2, 3))},
    {.name = "one", ROWS(3), IN(SAMPLE(19), CLASS(3))},
    {.name = "tiny_positions", ROWS(197), IN(SAMPLE(197, 192), INDICES(197, 197)), .bench = true},
    {.name = "swin_tiny_bias", ROWS(169), IN(SAMPLE(49, 49, 3), INDICES(169, 49, 49)), .bench = true},
};

const att_op att_op_embed_grad = {
    .name = "embed_grad",
    .attrs_size = sizeof(att_embed_attrs),
    .help = "dtable [V, C]: the rows of dy summed by their index; an index outside [0, V) adds nothing",
    .infer = grad_infer,
    .flops_per_in = 1,
    ATT_CASES(grad_cases),
};
