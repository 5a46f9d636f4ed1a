#include "engine/ops/cosine_heads.h"
#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, LOGITS, IN_COUNT };
enum { GRAD_X, GRAD_LOGITS, GRAD_DY, GRAD_IN_COUNT };

att_value att_cosine_heads(att_graph *graph, att_value x, att_value logits, const att_cosine_options *options)
{
    att_cosine_heads_attrs attrs = {
        .eps = options->eps, .heads = options->heads, .key_heads = options->key_heads, .width = options->width};
    att_value in[IN_COUNT] = {x, logits};
    return att_emit(graph, "cosine_heads", &attrs, in, IN_COUNT, NULL);
}

static att_status check(const att_infer *infer)
{
    const att_cosine_heads_attrs *attrs = infer->attrs;
    const att_desc *x = &infer->in[X], *logits = &infer->in[LOGITS];
    ATT_TRY(att_rule_require_rank(infer, X, "x", ATT_SAMPLE, 2));
    ATT_TRY(att_rule_require_eps(infer, attrs->eps));
    int64_t count = att_cosine_heads_count(attrs), columns = x->shape.dims[1];
    if (attrs->heads < 0 || attrs->key_heads < 0 || attrs->width < 1 || count < 1 || count > columns / attrs->width)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "%d heads of queries and %d of keys, of %lld channels, do not fit into the rows of x %s",
                             (int)attrs->heads, (int)attrs->key_heads, (long long)attrs->width, ATT_SHOWN(x));
    if (!att_desc_present(logits))
        return ATT_OK;
    ATT_TRY(att_rule_require(infer, LOGITS, "logits", ATT_SHARED));
    if (att_shape_count(logits->shape) != attrs->heads)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "logits %s must have an element for each of %d heads",
                             ATT_SHOWN(logits), (int)attrs->heads);
    return ATT_OK;
}

static att_status cosine_heads_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(check(infer));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

static void cosine_heads_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_in(backward, X), att_backward_in(backward, LOGITS),
                                   att_backward_gradient(backward, 0)};
    att_rule_add_outputs(backward, "cosine_heads_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT, LOGITS + 1);
}

/* Elements of x that are divided by norms. */
static double divided(const att_desc *x, const void *attrs)
{
    const att_cosine_heads_attrs *a = attrs;
    return (double)x->shape.dims[0] * (double)(att_cosine_heads_count(a) * a->width);
}

/* Sum of squares: 2 operations per element; scaling: 1. */
static void cosine_heads_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost->flops = 3 * divided(&in[X], attrs);
}

#define WITH_EPS(eps_, heads_, keys_, width_) \
    ATTRS(cosine_heads, .eps = (eps_), .heads = (heads_), .key_heads = (keys_), .width = (width_))
#define HEADS(heads_, keys_, width_) WITH_EPS(1e-12, heads_, keys_, width_)
#define CLAMPED(heads_, keys_, width_) WITH_EPS(100, heads_, keys_, width_)
#define SOME(heads_, keys_, width_) WITH_EPS(3, heads_, keys_, width_)
#define NEAR_LIMIT(...) DRAWN(ATT_SHARED, 2, 4.6, __VA_ARGS__)
static const att_op_case cosine_heads_cases[] = {
    {.name = "limit", HEADS(6, 0, 3), IN(SAMPLE(5, 18), NEAR_LIMIT(6)), .gradient = true},
    {.name = "packed", HEADS(2, 2, 3), IN(SAMPLE(5, 18), SHARED(2, 1, 1)), .gradient = true},
    {.name = "no_logits", HEADS(0, 2, 4), IN(SAMPLE(3, 9), ABSENT), .gradient = true},
    {.name = "clamped", CLAMPED(1, 1, 4), IN(SAMPLE(3, 12), SHARED(1)), .gradient = true},
    {.name = "zeros", HEADS(1, 1, 4), IN(DRAWN(ATT_SAMPLE, 0, 0, 3, 12), SHARED(1))},
    {.name = "large_values", HEADS(1, 1, 33), IN(DRAWN(ATT_SAMPLE, 1e6, 0, 3, 99), SHARED(1))},
    {.name = "wide", HEADS(3, 2, 35), IN(SAMPLE(7, 190), SHARED(3))},
    {.name = "swinv2_tiny", HEADS(3, 3, 32), IN(SAMPLE(4096, 288), SHARED(3, 1, 1)), .bench = true},
};

const att_op att_op_cosine_heads = {
    .name = "cosine_heads",
    .help = "the first heads of x, divided by their norms, times exp(min(logit, ln 100)) of each head",
    .attrs_size = sizeof(att_cosine_heads_attrs),
    .flags = ATT_OP_RECOMPUTE,
    .infer = cosine_heads_infer,
    .backward = cosine_heads_backward,
    .cost = cosine_heads_cost,
    .autocast_in = 1 << X,
    .autocast_out = 1,
    ATT_CASES(cosine_heads_cases),
};

/* Without logits there is no gradient of them. */
static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(check(infer));
    ATT_TRY(att_rule_require_like(infer, GRAD_DY, "dy", ATT_SAMPLE, GRAD_X));
    const att_desc *x = &infer->in[GRAD_X], *logits = &infer->in[GRAD_LOGITS];
    att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
    if (att_desc_present(logits))
        att_rule_out(infer, x->dtype, ATT_SUMMED, logits->shape);
    return ATT_OK;
}

/* Norm and sum of products: 4 operations per element; dx: 4. */
static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost->flops = 8 * divided(&in[GRAD_X], attrs);
}

#define GRAD_IN(n, c, logits) SAMPLE(n, c), logits, SAMPLE(n, c)
static const att_op_case grad_cases[] = {
    {.name = "limit", HEADS(6, 0, 3), IN(GRAD_IN(5, 18, NEAR_LIMIT(6)))},
    {.name = "packed", HEADS(2, 2, 3), IN(GRAD_IN(5, 18, SHARED(2, 1, 1)))},
    {.name = "no_logits", HEADS(0, 2, 4), IN(GRAD_IN(3, 9, ABSENT))},
    {.name = "some_clamped", SOME(2, 1, 9), IN(GRAD_IN(9, 27, SHARED(2)))},
    {.name = "zeros", HEADS(1, 1, 4), IN(DRAWN(ATT_SAMPLE, 0, 0, 3, 12), SHARED(1), SAMPLE(3, 12))},
    {.name = "wide", HEADS(3, 2, 35), IN(GRAD_IN(7, 190, SHARED(3)))},
    {.name = "swinv2_tiny", HEADS(3, 3, 32), IN(GRAD_IN(4096, 288, SHARED(3, 1, 1))), .bench = true},
};

const att_op att_op_cosine_heads_grad = {
    .name = "cosine_heads_grad",
    .help = "dx = f (dy - n sum(dy n)) / |x|, n = x / |x|, where |x| > eps, else f dy / eps; dlogits = sum(dy y)",
    .attrs_size = sizeof(att_cosine_heads_attrs),
    .infer = grad_infer,
    .cost = grad_cost,
    .autocast_in = 1 << GRAD_X | 1 << GRAD_DY,
    .autocast_out = 1,
    ATT_CASES(grad_cases),
};
