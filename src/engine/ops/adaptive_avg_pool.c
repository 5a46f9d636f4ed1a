#include <attscope/ops.h>

#include "engine/ops/adaptive_avg_pool.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_adaptive_avg_pool(att_graph *graph, att_value x, int height, int width)
{
    att_adaptive_attrs attrs = {.out_h = height, .out_w = width};
    return att_emit(graph, "adaptive_avg_pool", &attrs, &x, 1, NULL);
}

static att_status check_size(const att_infer *infer)
{
    const att_adaptive_attrs *attrs = infer->attrs;
    if (attrs->out_h < 1 || attrs->out_w < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the result is %d x %d, must be at least 1 x 1", attrs->out_h,
                             attrs->out_w);
    return ATT_OK;
}

static att_status adaptive_infer(att_infer *infer)
{
    const att_adaptive_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 3));
    ATT_TRY(check_size(infer));
    const int64_t *x = infer->in[0].shape.dims;
    att_shape shape = att_shape_of(attrs->out_h, attrs->out_w, x[2]);
    if (x[0] > INT32_MAX || x[1] > INT32_MAX || att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s is too large", ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static void adaptive_backward(att_backward *backward)
{
    att_adaptive_attrs attrs = *(const att_adaptive_attrs *)att_backward_attrs(backward);
    att_shape x = att_backward_in_desc(backward, 0).shape;
    attrs.height = (int32_t)x.dims[0];
    attrs.width = (int32_t)x.dims[1];
    att_rule_add_of_dy(backward, "adaptive_avg_pool_grad", &attrs);
}

#define TO(h, w) ATTRS(adaptive, (h), (w), 0, 0)
static const att_op_case adaptive_cases[] = {
    {.name = "smaller", TO(2, 3), IN(SAMPLE(5, 7, 3)), .gradient = true},
    {.name = "larger", TO(5, 4), IN(SAMPLE(3, 2, 3)), .gradient = true},
    {.name = "equal", TO(4, 4), IN(SAMPLE(4, 4, 18))},
    {.name = "wide", TO(2, 3), IN(SAMPLE(5, 4, 147))},
    {.name = "large_values", TO(2, 2), IN(DRAWN(ATT_SAMPLE, 1, 1e4, 4, 5, 33))},
    {.name = "fca_28", TO(7, 7), IN(SAMPLE(28, 28, 128)), .bench = true},
    {.name = "pyramid_1", TO(1, 1), IN(SAMPLE(16, 16, 512)), .bench = true},
    {.name = "pyramid_6", TO(6, 6), IN(SAMPLE(16, 16, 512)), .bench = true},
};

const att_op att_op_adaptive_avg_pool = {
    .name = "adaptive_avg_pool",
    .attrs_size = sizeof(att_adaptive_attrs),
    .help = "y [i, j]: the mean of rows floor(i h / height) .. ceil((i + 1) h / height) - 1 of x, columns alike",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = adaptive_infer,
    .backward = adaptive_backward,
    .flops_per_in = 1,
    ATT_CASES(adaptive_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_adaptive_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 3));
    ATT_TRY(check_size(infer));
    const int64_t *dy = infer->in[0].shape.dims;
    att_shape x = att_shape_of(attrs->height, attrs->width, dy[2]);
    if (dy[0] != attrs->out_h || dy[1] != attrs->out_w || att_shape_count(x) < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s is not the output of a pool of %d x %d to %d x %d",
                             ATT_SHOWN(&infer->in[0]), attrs->height, attrs->width, attrs->out_h, attrs->out_w);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, x);
}

#define BACK(h, w, from_h, from_w) ATTRS(adaptive, (h), (w), (from_h), (from_w))
static const att_op_case grad_cases[] = {
    {.name = "smaller", BACK(2, 3, 5, 7), IN(SAMPLE(2, 3, 3))},
    {.name = "larger", BACK(5, 4, 3, 2), IN(SAMPLE(5, 4, 19))},
    {.name = "fca_28", BACK(7, 7, 28, 28), IN(SAMPLE(7, 7, 128)), .bench = true},
    {.name = "pyramid_1", BACK(1, 1, 16, 16), IN(SAMPLE(1, 1, 512)), .bench = true},
    {.name = "pyramid_6", BACK(6, 6, 16, 16), IN(SAMPLE(6, 6, 512)), .bench = true},
};

const att_op att_op_adaptive_avg_pool_grad = {
    .name = "adaptive_avg_pool_grad",
    .attrs_size = sizeof(att_adaptive_attrs),
    .help = "dx: dy over the number of elements of its window, added to each of them",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};
