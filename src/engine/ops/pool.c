#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/pool.h"
#include "engine/ops/rule.h"
#include "engine/ops/window.h"

static att_value emit_pool(att_graph *graph, const char *op, att_value x, const att_pool_options *given)
{
    att_pool_options options = given ? *given : (att_pool_options){0};
    att_pool_attrs attrs = {.kernel = options.kernel,
                            .stride = options.stride == 0 ? options.kernel : options.stride,
                            .padding = options.padding,
                            .ceil = options.ceil,
                            .count_padding = options.count_padding};
    return att_emit(graph, op, &attrs, &x, 1, NULL);
}

att_value att_max_pool(att_graph *graph, att_value x, const att_pool_options *options)
{
    return emit_pool(graph, "max_pool", x, options);
}

att_value att_avg_pool(att_graph *graph, att_value x, const att_pool_options *options)
{
    return emit_pool(graph, "avg_pool", x, options);
}

static att_status infer_pool(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 3));
    const att_shape *x = &infer->in[0].shape;
    int64_t to[2];
    ATT_TRY(att_pool_size(infer, x->dims, to));
    att_shape shape = att_shape_of(to[0], to[1], x->dims[2]);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of x %s is too large", ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

/* The output is x, a map of `size` with dy's channels. Checks that pooling x gives the shape of dy. */
static att_status infer_pool_grad(att_infer *infer, const int64_t size[2])
{
    const int64_t *dy = infer->in[0].shape.dims;
    int64_t to[2];
    ATT_TRY(att_pool_size(infer, size, to));
    att_shape x = att_shape_of(size[0], size[1], dy[2]);
    if (dy[0] != to[0] || dy[1] != to[1] || att_shape_count(x) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy must be %lld x %lld, not %s", (long long)to[0],
                             (long long)to[1], ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, x);
}

static void pool_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in;
    double kernel = ((const att_pool_attrs *)attrs)->kernel;
    cost->flops = (double)att_shape_count(out->shape) * kernel * kernel;
}

static void pool_grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    double kernel = ((const att_pool_attrs *)attrs)->kernel;
    cost->flops = (double)att_shape_count(in->shape) * kernel * kernel;
}

/* --- maximum ------------------------------------------------------------------------------------------------------ */

static att_status max_pool_infer(att_infer *infer)
{
    return infer_pool(infer);
}

static void max_pool_backward(att_backward *backward)
{
    att_value in[] = {att_backward_gradient(backward, 0), att_backward_in(backward, 0)};
    att_rule_add_node(backward, 0, "max_pool_grad", att_backward_attrs(backward), in, 2);
}

#define POOL(k, s, p) .kernel = (k), .stride = (s), .padding = (p)
#define PLAIN(k, s, p) ATTRS(pool, POOL(k, s, p))
#define CEIL(k, s, p) ATTRS(pool, POOL(k, s, p), .ceil = true)
static const att_op_case max_pool_cases[] = {
    {.name = "odd", PLAIN(3, 2, 1), IN(SAMPLE(5, 7, 3)), .gradient = true},
    {.name = "even", PLAIN(3, 2, 1), IN(SAMPLE(6, 8, 19))},
    {.name = "apart", PLAIN(2, 2, 0), IN(SAMPLE(5, 4, 33)), .gradient = true},
    {.name = "wide", PLAIN(2, 2, 0), IN(SAMPLE(4, 5, 147))},
    {.name = "ceil", CEIL(3, 2, 0), IN(SAMPLE(6, 4, 5)), .gradient = true},
    {.name = "no_window_behind", CEIL(2, 2, 1), IN(SAMPLE(3, 4, 5))},
    {.name = "one_pixel", PLAIN(3, 2, 1), IN(SAMPLE(1, 1, 17))},
    {.name = "gaps", PLAIN(1, 2, 0), IN(SAMPLE(5, 6, 4)), .gradient = true},
    {.name = "equal_elements", PLAIN(3, 1, 1), IN(DRAWN(ATT_SAMPLE, 0, 2, 4, 4, 18))},
    {.name = "resnet50", PLAIN(3, 2, 1), IN(SAMPLE(112, 112, 64)), .bench = true},
    {.name = "neck", PLAIN(2, 2, 0), IN(SAMPLE(32, 32, 384)), .bench = true},
};

const att_op att_op_max_pool = {
    .name = "max_pool",
    .attrs_size = sizeof(att_pool_attrs),
    .help = "y: the maximum of each kernel x kernel window of x, per channel",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = max_pool_infer,
    .backward = max_pool_backward,
    .cost = pool_cost,
    ATT_CASES(max_pool_cases),
};

static att_status max_pool_grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 3));
    ATT_TRY(att_rule_require_rank(infer, 1, "x", ATT_SAMPLE, 3));
    ATT_TRY(infer_pool_grad(infer, infer->in[1].shape.dims));
    if (!att_shape_equal(infer->out[0].shape, infer->in[1].shape))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s and x %s must have equally many channels",
                             ATT_SHOWN(&infer->in[0]), ATT_SHOWN(&infer->in[1]));
    return ATT_OK;
}

static const att_op_case max_pool_grad_cases[] = {
    {.name = "odd", PLAIN(3, 2, 1), IN(SAMPLE(3, 4, 3), SAMPLE(5, 7, 3))},
    {.name = "even", PLAIN(3, 2, 1), IN(SAMPLE(3, 4, 19), SAMPLE(6, 8, 19))},
    {.name = "apart", PLAIN(2, 2, 0), IN(SAMPLE(2, 3, 35), SAMPLE(5, 6, 35))},
    {.name = "ceil", CEIL(3, 2, 0), IN(SAMPLE(3, 2, 33), SAMPLE(6, 4, 33))},
    {.name = "gaps", PLAIN(1, 2, 0), IN(SAMPLE(3, 3, 4), SAMPLE(5, 6, 4))},
    {.name = "equal_elements", PLAIN(3, 1, 1), IN(SAMPLE(4, 4, 18), DRAWN(ATT_SAMPLE, 0, 2, 4, 4, 18))},
    {.name = "resnet50", PLAIN(3, 2, 1), IN(SAMPLE(56, 56, 64), SAMPLE(112, 112, 64)), .bench = true},
    {.name = "neck", PLAIN(2, 2, 0), IN(SAMPLE(16, 16, 384), SAMPLE(32, 32, 384)), .bench = true},
};

const att_op att_op_max_pool_grad = {
    .name = "max_pool_grad",
    .attrs_size = sizeof(att_pool_attrs),
    .help = "dx: dy, added where the first maximum of its window is",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = max_pool_grad_infer,
    .cost = pool_grad_cost,
    ATT_CASES(max_pool_grad_cases),
};

/* --- average ------------------------------------------------------------------------------------------------------ */

static att_status avg_pool_infer(att_infer *infer)
{
    return infer_pool(infer);
}

static void avg_pool_backward(att_backward *backward)
{
    att_pool_attrs attrs = *(const att_pool_attrs *)att_backward_attrs(backward);
    att_shape x = att_backward_in_desc(backward, 0).shape;
    attrs.height = (int32_t)x.dims[0];
    attrs.width = (int32_t)x.dims[1];
    att_rule_add_of_dy(backward, "avg_pool_grad", &attrs);
}

#define COUNTED(k, s, p) ATTRS(pool, POOL(k, s, p), .ceil = true, .count_padding = true)
static const att_op_case avg_pool_cases[] = {
    {.name = "odd", PLAIN(3, 2, 1), IN(SAMPLE(5, 7, 3)), .gradient = true},
    {.name = "counted", COUNTED(3, 2, 1), IN(SAMPLE(6, 4, 19)), .gradient = true},
    {.name = "ceil", CEIL(2, 2, 0), IN(SAMPLE(5, 4, 5)), .gradient = true},
    {.name = "one_pixel", PLAIN(3, 2, 1), IN(SAMPLE(1, 1, 17))},
    {.name = "large_values", PLAIN(2, 2, 0), IN(DRAWN(ATT_SAMPLE, 1, 1e4, 4, 4, 33))},
    {.name = "resnet50d", CEIL(2, 2, 0), IN(SAMPLE(56, 56, 256)), .bench = true},
};

const att_op att_op_avg_pool = {
    .name = "avg_pool",
    .attrs_size = sizeof(att_pool_attrs),
    .help = "y: the mean of each kernel x kernel window of x, per channel",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = avg_pool_infer,
    .backward = avg_pool_backward,
    .cost = pool_cost,
    ATT_CASES(avg_pool_cases),
};

static att_status avg_pool_grad_infer(att_infer *infer)
{
    const att_pool_attrs *attrs = infer->attrs;
    const int64_t size[2] = {attrs->height, attrs->width};
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 3));
    return infer_pool_grad(infer, size);
}

#define OF(h, w) .height = (h), .width = (w)
static const att_op_case avg_pool_grad_cases[] = {
    {.name = "odd", ATTRS(pool, POOL(3, 2, 1), OF(5, 7)), IN(SAMPLE(3, 4, 3))},
    {.name = "counted",
     ATTRS(pool, POOL(3, 2, 1), OF(6, 4), .ceil = true, .count_padding = true),
     IN(SAMPLE(4, 3, 19))},
    {.name = "ceil", ATTRS(pool, POOL(2, 2, 0), OF(5, 4), .ceil = true), IN(SAMPLE(3, 2, 33))},
    {.name = "resnet50d", ATTRS(pool, POOL(2, 2, 0), OF(56, 56)), IN(SAMPLE(28, 28, 256)), .bench = true},
};

const att_op att_op_avg_pool_grad = {
    .name = "avg_pool_grad",
    .attrs_size = sizeof(att_pool_attrs),
    .help = "dx: dy over the number of elements of its window, added to each of them",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = avg_pool_grad_infer,
    .cost = pool_grad_cost,
    ATT_CASES(avg_pool_grad_cases),
};
