#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/dct_pool.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* Options out of range become a grid of size 0, which the shape rule refuses. */
static void copy_options(const att_dct_pool_options *options, att_dct_attrs *attrs)
{
    *attrs = (att_dct_attrs){.count = options->count, .height = options->height, .width = options->width};
    for (int g = 0; g < options->count && g < ATT_DCT_GROUPS; g++) {
        bool among = options->rows[g] >= 0 && options->rows[g] < options->height && options->rows[g] <= UINT16_MAX &&
                     options->columns[g] >= 0 && options->columns[g] < options->width &&
                     options->columns[g] <= UINT16_MAX;
        if (!among)
            attrs->height = attrs->width = 0;
        attrs->rows[g] = (uint16_t)options->rows[g];
        attrs->columns[g] = (uint16_t)options->columns[g];
    }
}

att_value att_dct_pool(att_graph *graph, att_value x, const att_dct_pool_options *options)
{
    att_dct_attrs attrs = {0};
    if (options)
        copy_options(options, &attrs);
    att_shape shape = att_value_shape(graph, x);
    if (shape.rank == 3 && shape.dims[0] <= INT32_MAX && shape.dims[1] <= INT32_MAX) {
        attrs.map_height = (int32_t)shape.dims[0];
        attrs.map_width = (int32_t)shape.dims[1];
    }
    return att_emit(graph, "dct_pool", &attrs, &x, 1, NULL);
}

static att_status check_attrs(const att_infer *infer, int64_t channels)
{
    const att_dct_attrs *attrs = infer->attrs;
    if (attrs->count < 1 || attrs->count > ATT_DCT_GROUPS || channels % attrs->count != 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "%lld channels do not divide into %d groups; 1 to %d groups of equal size are allowed",
                             (long long)channels, attrs->count, ATT_DCT_GROUPS);
    if (attrs->height < 1 || attrs->width < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "every frequency must be smaller than the grid's height or width, and not negative");
    if (attrs->map_height < 1 || attrs->map_width < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the map is %d x %d, must have rows and columns",
                             attrs->map_height, attrs->map_width);
    return ATT_OK;
}

static att_status pool_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 3));
    const att_desc *x = &infer->in[0];
    ATT_TRY(check_attrs(infer, x->shape.dims[2]));
    const att_dct_attrs *attrs = infer->attrs;
    att_shape map = att_shape_of(attrs->map_height, attrs->map_width, x->shape.dims[2]);
    ATT_TRY(att_rule_require_shape(infer, 0, "x", ATT_SAMPLE, map));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, att_shape_of(x->shape.dims[2]));
}

static void pool_backward(att_backward *backward)
{
    att_rule_add_of_dy(backward, "dct_pool_grad", att_backward_attrs(backward));
}

#define SMALL(h, w) ATTRS(dct, 2, 3, 4, (h), (w), {1, 0}, {3, 2})
#define FCA(h, w)                                                                    \
    ATTRS(dct, 16, 7, 7, (h), (w), {0, 0, 6, 0, 0, 1, 1, 4, 5, 1, 3, 0, 0, 0, 3, 2}, \
          {0, 1, 0, 5, 2, 0, 2, 0, 0, 6, 0, 4, 6, 3, 5, 2})
static const att_op_case pool_cases[] = {
    {.name = "same_grid", SMALL(3, 4), IN(SAMPLE(3, 4, 6)), .gradient = true},
    {.name = "larger", SMALL(7, 9), IN(SAMPLE(7, 9, 2)), .gradient = true},
    {.name = "smaller", SMALL(2, 3), IN(SAMPLE(2, 3, 34)), .gradient = true},
    {.name = "cifar_16", FCA(32, 32), IN(SAMPLE(32, 32, 16)), .bench = true},
    {.name = "resnet_256", FCA(56, 56), IN(SAMPLE(56, 56, 256)), .bench = true},
};

const att_op att_op_dct_pool = {
    .name = "dct_pool",
    .attrs_size = sizeof(att_dct_attrs),
    .help = "y[c] = the sum of channel c, averaged to height x width, times its group's cosine basis",
    .autocast_in = 1,
    .infer = pool_infer,
    .backward = pool_backward,
    .flops_per_in = 2,
    ATT_CASES(pool_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_dct_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 1));
    int64_t channels = infer->in[0].shape.dims[0];
    ATT_TRY(check_attrs(infer, channels));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE,
                        att_shape_of(attrs->map_height, attrs->map_width, channels));
}

static const att_op_case grad_cases[] = {
    {.name = "same_grid", SMALL(3, 4), IN(SAMPLE(6))},
    {.name = "larger", SMALL(7, 9), IN(SAMPLE(34))},
    {.name = "resnet_256", FCA(56, 56), IN(SAMPLE(256)), .bench = true},
};

const att_op att_op_dct_pool_grad = {
    .name = "dct_pool_grad",
    .attrs_size = sizeof(att_dct_attrs),
    .help = "dx[i, j, c] = dy[c] times the weight of x[i, j, c] in y[c]",
    .autocast_out = 1,
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};
