#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/channel_gram.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/list.h"
#include "engine/patterns/list.h"
#include "engine/patterns/match.h"

/* A 1 x 1 convolution and the batch norm after it become one affine map of each pixel, y = x B + b. The channels' mean
 * w m and variance w' C w follow from the mean m and the covariance C of the rows of x, which the op channel_gram sums
 * for each sample. So the output of the convolution is never stored: before differentiation, the op affine absorbs the
 * gate, the residual and the ReLU that follow the norm, and the gradient of [B; b] is the sum of [x 1]' dy over rows.
 */

enum { CONV_X, CONV_WEIGHT, CONV_BIAS };
enum { NORM_X, NORM_GAMMA, NORM_BETA };

/* Whether the convolution is a linear map of each pixel. */
static bool is_pointwise(const att_graph *graph, const att_node *conv)
{
    const att_conv_attrs *attrs = conv->attrs;
    att_shape weight = att_value_shape(graph, conv->in[CONV_WEIGHT]);
    return weight.dims[2] == 1 && weight.dims[3] == 1 && attrs->stride == 1 && attrs->padding == 0 &&
           attrs->groups == 1 && conv->in[CONV_BIAS] == ATT_NONE;
}

/* Whether the rewriting saves memory: the convolution at least doubles the channels, so that its output y is the larger
 * map; and x has no more channels than pixels, so that its second moments are no larger than x. */
static bool is_worthwhile(att_shape x, att_shape y)
{
    if (x.rank != 3)
        return false;
    int64_t pixels = x.dims[0] * x.dims[1], channels = x.dims[2];
    return y.dims[2] >= 2 * channels && channels <= pixels && pixels > 1;
}

static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    if (node->op != &att_op_batch_norm || node->frozen || ATT_ATTRS(node, batch_norm)->frozen)
        return false;
    const att_node *conv = att_match(graph, node->in[NORM_X], &att_op_conv2d);
    if (!conv || !is_pointwise(graph, conv) ||
        !is_worthwhile(att_value_shape(graph, conv->in[CONV_X]), att_value_shape(graph, conv->out[0])))
        return false;
    att_value x = conv->in[CONV_X], weight = conv->in[CONV_WEIGHT], out[2];
    att_shape shape = att_value_shape(graph, x);
    const att_moments_attrs merged = {.rows = shape.dims[0] * shape.dims[1]};
    const att_gram_norm_attrs norm = {.eps = ATT_ATTRS(node, batch_norm)->eps, .rows = merged.rows};
    att_value gram = att_emit(graph, "channel_gram", NULL, &x, 1, NULL);
    gram = att_emit(graph, "merge_gram", &merged, &gram, 1, NULL);
    att_value in[] = {gram, weight, node->in[NORM_GAMMA], node->in[NORM_BETA]};
    att_emit(graph, "gram_norm", &norm, in, 4, out);
    att_batch_norm_follow(graph, node, out[1], merged.rows);
    replacements[0] = att_emit_affine(graph, x, out[0]);
    return true;
}

const att_pattern att_pattern_affine_norm = {
    .name = "affine_norm",
    .help =
        "norm(x W') = x B + b, with B, b and the channels' mean w m and variance w' C w from the mean m and the "
        "covariance C of x",
    .stage = ATT_BEFORE_GRADIENTS,
    .apply = apply,
};
