#include "engine/ops/channel_gram.h"
#include "engine/ops/batch_moments.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* Batch norm after a 1 x 1 convolution, from the mean and the second moments of the convolution's input x. Mean and
 * variance of x W' follow from them, so convolution and norm combine into one affine op (affine.c), and the
 * convolution's output is never stored. Row 0 of a gram is the mean; the other rows are the second moments.
 *
 * Second moments are f32, so a variance w' C w has an absolute error of about 4e-7 (sum_c |w_c| deviation_c)^2. If
 * weights cancel correlated channels so that the variance falls below this error, the norm's eps must exceed the error.
 * The smallest ratio of the variance to (sum_c |w_c| deviation_c)^2 observed in training is 5e-3.
 */

static att_status require_gram(const att_infer *infer, int i, att_kind kind)
{
    ATT_TRY(att_rule_require_rank(infer, i, "gram", kind, 2));
    int64_t columns = infer->in[i].shape.dims[1];
    return att_rule_require_shape(infer, i, "gram", kind, att_shape_of(columns + 1, columns));
}

/* --- channel_gram ------------------------------------------------------------------------------------------------- */

static att_status gram_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    const att_desc *x = &infer->in[0];
    int64_t columns = att_rule_columns(x);
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, att_shape_of(columns + 1, columns));
}

/* The gradient of a gram is T, a value of the batch: dx = [x 1] T. */
static void gram_backward(att_backward *backward)
{
    att_value in[] = {att_backward_in(backward, 0), att_backward_gradient(backward, 0), ATT_NONE, ATT_NONE};
    att_rule_add_node(backward, 0, "affine", NULL, in, 4);
}

/* Half of a symmetric product. */
static void gram_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->macs = (double)att_shape_count(in->shape) * (double)(att_rule_columns(in) + 1) / 2;
}

/* x has mean 1 and deviation 1: means are not small compared with the deviation, as after a ReLU. */
#define MAP(...) IN(DRAWN(ATT_SAMPLE, 1, 1, __VA_ARGS__))
static const att_op_case gram_cases[] = {
    {.name = "odd", MAP(3, 5, 7)},
    {.name = "row", MAP(9)},
    {.name = "one_channel", MAP(19, 23, 1)},
    {.name = "many_rows", MAP(33, 31, 24)},
    {.name = "wide", MAP(9, 15, 133)},
    {.name = "large_mean", IN(DRAWN(ATT_SAMPLE, 0.1, 1e4, 17, 13, 33))},
    {.name = "resnet164_32", MAP(32, 32, 16), .bench = true},
    {.name = "resnet164_16", MAP(16, 16, 32), .bench = true},
    {.name = "resnet164_8", MAP(8, 8, 64), .bench = true},
    {.name = "resnet50_56", MAP(56, 56, 64), .bench = true},
    {.name = "resnet50_14", MAP(14, 14, 256), .bench = true},
};

const att_op att_op_channel_gram = {
    .name = "channel_gram",
    .help = "the mean m of a sample's rows, and the sum of (x - m)' (x - m)",
    .autocast_in = 1,
    .infer = gram_infer,
    .backward = gram_backward,
    .cost = gram_cost,
    ATT_CASES(gram_cases),
};

/* --- merge_gram --------------------------------------------------------------------------------------------------- */

static att_status merge_infer(att_infer *infer)
{
    const att_moments_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(require_gram(infer, 0, ATT_SAMPLE));
    if (attrs->rows < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "samples have %lld rows, must have at least 1",
                             (long long)attrs->rows);
    return att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, infer->in[0].shape);
}

/* T applies to the rows of all samples alike. */
static void merge_backward(att_backward *backward)
{
    att_backward_add_gradient(backward, 0, att_backward_gradient(backward, 0));
}

#define ROWS(n) ATTRS(moments, .rows = (n))
#define GRAM_OF(kind, c) DRAWN(kind, 0.1, 1, (c) + 1, c)
static const att_op_case merge_cases[] = {
    {.name = "odd", ROWS(15), IN(GRAM_OF(ATT_SAMPLE, 7))},
    {.name = "wide", ROWS(2), IN(GRAM_OF(ATT_SAMPLE, 133))},
    {.name = "resnet164_8", ROWS(64), IN(GRAM_OF(ATT_SAMPLE, 64)), .bench = true},
    {.name = "resnet50_14", ROWS(196), IN(GRAM_OF(ATT_SAMPLE, 256)), .bench = true},
};

const att_op att_op_merge_gram = {
    .name = "merge_gram",
    .attrs_size = sizeof(att_moments_attrs),
    .help = "mean and covariance of the rows of all samples, from each sample's gram",
    .infer = merge_infer,
    .backward = merge_backward,
    .flops_per_in = 3,
    ATT_CASES(merge_cases),
};

/* --- gram_norm ---------------------------------------------------------------------------------------------------- */

enum { GRAM, WEIGHT, GAMMA, BETA, NORM_IN_COUNT };
enum { DMATRIX, GRAD_GRAM, GRAD_WEIGHT, GRAD_GAMMA, GRAD_STATS, GRAD_IN_COUNT };

/* Checks the weight of a 1 x 1 convolution, and a vector of its output channels. */
static att_status require_weight(const att_infer *infer, int gram, int weight, int gamma)
{
    ATT_TRY(att_rule_require_rank(infer, weight, "weight", ATT_SHARED, 4));
    int64_t outputs = infer->in[weight].shape.dims[0], inputs = infer->in[gram].shape.dims[1];
    ATT_TRY(att_rule_require_shape(infer, weight, "weight", ATT_SHARED, att_shape_of(outputs, inputs, 1, 1)));
    return att_rule_require_shape(infer, gamma, "gamma", ATT_SHARED, att_shape_of(outputs));
}

static att_status norm_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, NORM_IN_COUNT));
    ATT_TRY(require_gram(infer, GRAM, ATT_BATCH));
    ATT_TRY(require_weight(infer, GRAM, WEIGHT, GAMMA));
    ATT_TRY(att_rule_require_like(infer, BETA, "beta", ATT_SHARED, GAMMA));
    int64_t outputs = infer->in[WEIGHT].shape.dims[0];
    att_rule_out(infer, infer->in[GRAM].dtype, ATT_BATCH, att_shape_of(infer->in[GRAM].shape.dims[0], outputs));
    return att_rule_out(infer, infer->in[GRAM].dtype, ATT_BATCH, att_shape_of(2, outputs));
}

/* gram_norm_grad reads the mean of the gradient over the samples. So its gradients of parameters are each sample's
 * equal share, and are summed over the samples. */
static void norm_backward(att_backward *backward)
{
    enum { DGRAM, DWEIGHT, DGAMMA, DBETA };
    att_graph *graph = att_backward_graph(backward);
    const att_moments_attrs whole = {.rows = 1};
    att_value mean = att_backward_gradient(backward, 0), out[4];
    mean = att_emit(graph, "batch_mean", &whole, &mean, 1, NULL);
    att_value in[GRAD_IN_COUNT] = {mean, att_backward_in(backward, GRAM), att_backward_in(backward, WEIGHT),
                                   att_backward_in(backward, GAMMA), att_backward_out(backward, 1)};
    att_emit(graph, "gram_norm_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT, out);
    if (att_backward_needs_gradient(backward, GRAM))
        att_backward_add_gradient(backward, GRAM, out[DGRAM]);
    if (att_backward_needs_gradient(backward, WEIGHT))
        att_rule_add_sum(backward, WEIGHT, out[DWEIGHT], 4);
    if (att_backward_needs_gradient(backward, GAMMA))
        att_rule_add_sum(backward, GAMMA, out[DGAMMA], 1);
    if (att_backward_needs_gradient(backward, BETA))
        att_rule_add_sum(backward, BETA, out[DBETA], 1);
}

static void norm_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    cost->flops = 2 * (double)att_shape_count(in->shape) * (double)att_rule_columns(out);
}

/* Random numbers, so the gram is not a covariance; near 1, so that variances are positive. */
#define NORM ATTRS(gram_norm, .eps = 1e-3, .rows = 15)
#define WEIGHT_OF(o, c) DRAWN(ATT_SHARED, 0.1, 0.2, o, c, 1, 1)
#define OF(o, c) IN(GRAM_OF(ATT_BATCH, c), WEIGHT_OF(o, c), DRAWN(ATT_SHARED, 0.3, 1, o), SHARED(o))
static const att_op_case norm_cases[] = {
    {.name = "odd", NORM, OF(15, 7)},
    {.name = "wide", NORM, OF(33, 133)},
    {.name = "resnet164_8", NORM, OF(256, 64), .bench = true},
    {.name = "resnet50_28", NORM, OF(512, 128), .bench = true},
};

const att_op att_op_gram_norm = {
    .name = "gram_norm",
    .attrs_size = sizeof(att_gram_norm_attrs),
    .help =
        "B and b of norm(x W') = x B + b, and the channels' mean w m and variance w' C w, m and C the mean and the "
        "covariance of x",
    .infer = norm_infer,
    .backward = norm_backward,
    .cost = norm_cost,
    ATT_CASES(norm_cases),
};

/* --- gram_norm_grad ----------------------------------------------------------------------------------------------- */

static att_status norm_grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require(infer, DMATRIX, "dmatrix", ATT_BATCH));
    ATT_TRY(require_gram(infer, GRAD_GRAM, ATT_BATCH));
    ATT_TRY(require_weight(infer, GRAD_GRAM, GRAD_WEIGHT, GRAD_GAMMA));
    int64_t outputs = infer->in[GRAD_WEIGHT].shape.dims[0], rows = infer->in[GRAD_GRAM].shape.dims[0];
    ATT_TRY(att_rule_require_shape(infer, DMATRIX, "dmatrix", ATT_BATCH, att_shape_of(rows, outputs)));
    ATT_TRY(att_rule_require_shape(infer, GRAD_STATS, "stats", ATT_BATCH, att_shape_of(2, outputs)));
    for (int i = GRAD_GRAM; i <= GRAD_GAMMA; i++)
        att_rule_out(infer, infer->in[i].dtype, ATT_BATCH, infer->in[i].shape);
    return att_rule_out(infer, infer->in[GRAD_GAMMA].dtype, ATT_BATCH, infer->in[GRAD_GAMMA].shape);
}

static void norm_grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 4 * (double)att_shape_count(in[GRAD_GRAM].shape) * (double)att_rule_columns(in);
}

#define GRAD_OF(o, c)                                                                                            \
    IN(DRAWN(ATT_BATCH, 1, 0, (c) + 1, o), GRAM_OF(ATT_BATCH, c), WEIGHT_OF(o, c), DRAWN(ATT_SHARED, 0.3, 1, o), \
       DRAWN(ATT_BATCH, 0.1, 1, 2, o))
static const att_op_case norm_grad_cases[] = {
    {.name = "odd", NORM, GRAD_OF(15, 7)},
    {.name = "wide", NORM, GRAD_OF(33, 133)},
    {.name = "resnet164_8", NORM, GRAD_OF(256, 64), .bench = true},
    {.name = "resnet50_28", NORM, GRAD_OF(512, 128), .bench = true},
};

const att_op att_op_gram_norm_grad = {
    .name = "gram_norm_grad",
    .attrs_size = sizeof(att_gram_norm_attrs),
    .help =
        "gradients of gram_norm's inputs from the mean over samples of d[B; b]: T, the gradient of the gram, with dx = "
        "[x 1] T; each sample's share of the gradients of W, gamma and beta",
    .infer = norm_grad_infer,
    .cost = norm_grad_cost,
    ATT_CASES(norm_grad_cases),
};
