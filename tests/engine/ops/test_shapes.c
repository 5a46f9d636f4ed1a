/* Shape rules: the shapes that builders give, and messages for wrong inputs. */
#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/drop.h"
#include "engine/ops/finite_difference.h"

TEST_GROUP(fd_setup, close_context)

static const att_init zero = {ATT_INIT_CONSTANT, 0};

static att_graph *new_graph(void)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    return graph;
}

/* Adds an input with a new name. */
static att_value sample(att_graph *graph, att_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "x%d", graph->values.count);
    return att_graph_input(graph, name, ATT_F32, shape);
}

static att_value shared(att_graph *graph, att_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "p%d", graph->values.count);
    return att_graph_parameter(graph, name, shape, zero, false);
}

static void assert_shape(const att_graph *graph, att_value value, att_shape shape)
{
    char text[96];
    must(att_graph_status(graph));
    if (!att_shape_equal(att_value_shape(graph, value), shape))
        fail_msg("shape is %s", att_shape_format(att_value_shape(graph, value), text, sizeof text));
    assert_int_equal(att_value_kind(graph, value), ATT_SAMPLE);
    assert_int_equal(att_value_dtype(graph, value), ATT_F32);
}

TEST(builders_yield_the_stated_shapes)
{
    att_graph *g = new_graph();
    const att_attention_options options = {.heads = 2, .prefix = 1, .grid_h = 2, .grid_w = 2};
    att_value x = sample(g, att_shape_of(5, 6)), c6 = shared(g, att_shape_of(6));
    att_value target = att_graph_input(g, "target", ATT_I32, (att_shape){.rank = 0});
    assert_shape(g, att_linear(g, x, shared(g, att_shape_of(4, 6)), ATT_NONE), att_shape_of(5, 4));
    assert_shape(g, att_linear(g, x, shared(g, att_shape_of(4, 3, 1, 2)), shared(g, att_shape_of(4))),
                 att_shape_of(5, 4));
    assert_shape(g, att_layer_norm(g, x, c6, c6, 1e-6), att_shape_of(5, 6));
    assert_shape(g, att_group_norm(g, x, 3, c6, ATT_NONE, 1e-5), att_shape_of(5, 6));
    assert_shape(g, att_gelu(g, x), att_shape_of(5, 6));
    assert_shape(g, att_add(g, sample(g, att_shape_of(5, 1)), shared(g, att_shape_of(1))), att_shape_of(5, 1));
    assert_shape(g, att_add(g, x, shared(g, att_shape_of(1, 5, 6))), att_shape_of(5, 6));
    assert_shape(g, att_scale(g, x, c6), att_shape_of(5, 6));
    assert_shape(g, att_patchify(g, sample(g, att_shape_of(4, 6, 3)), 2, 2), att_shape_of(6, 12));
    assert_shape(g, att_prepend_tokens(g, shared(g, att_shape_of(1, 2, 6)), x), att_shape_of(7, 6));
    assert_shape(g, att_slice_tokens(g, x, 1, 3), att_shape_of(3, 6));
    assert_shape(g, att_token_mean(g, x, 1), att_shape_of(6));
    assert_shape(g, att_attention(g, sample(g, att_shape_of(5, 18)), ATT_NONE, ATT_NONE, &options), att_shape_of(5, 6));
    assert_shape(g,
                 att_attention(g, sample(g, att_shape_of(5, 12)), sample(g, att_shape_of(7, 6)),
                               sample(g, att_shape_of(7, 10)),
                               &(att_attention_options){.heads = 4, .key_heads = 2, .value_heads = 1}),
                 att_shape_of(5, 40));
    assert_shape(g, att_context_broadcast(g, x, 0.5, 0.5, ATT_NONE), att_shape_of(5, 6));
    assert_shape(g, att_dropout(g, x, 0.1), att_shape_of(5, 6));
    assert_shape(g, att_channel_dropout(g, x, 0.1), att_shape_of(5, 6));
    assert_shape(g, att_drop_path(g, x, 0.1), att_shape_of(5, 6));
    assert_shape(g, att_cross_entropy(g, sample(g, att_shape_of(9)), target, 0.1), (att_shape){.rank = 0});
    assert_shape(g, att_binary_cross_entropy(g, sample(g, att_shape_of(9)), target, NULL), (att_shape){.rank = 0});
    att_value classes = att_graph_input(g, "classes", ATT_I32, att_shape_of(5));
    assert_shape(g, att_token_cross_entropy(g, sample(g, att_shape_of(5, 9)), classes), (att_shape){.rank = 0});
    att_graph_destroy(&g);
}

static att_value norm(att_graph *g, att_value x, int64_t width, const att_batch_norm_options *options)
{
    att_value vector = shared(g, att_shape_of(width));
    return att_batch_norm(g, x, vector, vector, vector, vector, options);
}

TEST(builders_on_maps_yield_the_stated_shapes)
{
    att_graph *g = new_graph();
    const att_dct_pool_options frequencies = {.count = 3, .rows = {0, 1, 2}, .height = 7, .width = 7};
    att_value x = sample(g, att_shape_of(4, 5, 6)), c6 = sample(g, att_shape_of(6));
    assert_shape(g, norm(g, x, 6, NULL), att_shape_of(4, 5, 6));
    assert_shape(g, att_relu(g, x), att_shape_of(4, 5, 6));
    assert_shape(g, att_sigmoid(g, x), att_shape_of(4, 5, 6));
    assert_shape(g, att_global_mean(g, x), att_shape_of(6));
    assert_shape(g, att_global_max(g, x), att_shape_of(6));
    assert_shape(g, att_global_style(g, x, 1e-5), att_shape_of(6, 2));
    assert_shape(g, att_channel_pool(g, x), att_shape_of(4, 5, 2));
    assert_shape(g, att_gate(g, x, c6), att_shape_of(4, 5, 6));
    assert_shape(g, att_pixel_gate(g, x, sample(g, att_shape_of(4, 5, 1))), att_shape_of(4, 5, 6));
    assert_shape(g, att_channel_conv(g, c6, shared(g, att_shape_of(1, 1, 3))), att_shape_of(6));
    assert_shape(g, att_channel_linear(g, sample(g, att_shape_of(6, 2)), shared(g, att_shape_of(6, 2))),
                 att_shape_of(6));
    assert_shape(g, att_dct_pool(g, x, &frequencies), att_shape_of(6));
    att_value mask = att_graph_input(g, "mask", ATT_I32, att_shape_of(16, 20));
    assert_shape(g, att_upsampled_cross_entropy(g, x, mask, 255, ATT_MEAN_OF_LABELED), (att_shape){.rank = 0});
    att_value top = att_upsampled_argmax(g, x, 16, 20);
    assert_true(att_shape_equal(att_value_shape(g, top), att_shape_of(16, 20)));
    assert_int_equal(att_value_dtype(g, top), ATT_I32);
    att_graph_destroy(&g);
}

TEST(batch_norm_has_the_usual_options)
{
    att_graph *g = new_graph();
    norm(g, sample(g, att_shape_of(4, 5, 6)), 6, NULL);
    const att_batch_norm_attrs *attrs = g->nodes.items[0].attrs;
    assert_true(attrs->eps == 1e-5 && attrs->momentum == 0.1 && !attrs->frozen);
    att_graph_destroy(&g);
}

/* The training form of batch norm: kinds of its values, and assigned buffers. */
TEST(batch_norm_in_training_is_of_the_batch)
{
    att_graph *g = new_graph();
    att_shape shape = att_shape_of(6);
    att_value mean = att_graph_buffer(g, "mean", shape, 0), variance = att_graph_buffer(g, "variance", shape, 1);
    for (int frozen = 0; frozen < 2; frozen++) {
        att_value y = att_batch_norm(g, sample(g, att_shape_of(4, 5, 6)), shared(g, shape), shared(g, shape), mean,
                                     variance, &(att_batch_norm_options){.frozen = frozen});
        const att_node *node = &g->nodes.items[g->nodes.count - 1];
        att_value trained = node->op->in_training(g, node);
        must(att_graph_status(g));
        assert_int_equal(trained == ATT_NONE, frozen); /* a frozen norm stays as it is */
        assert_shape(g, frozen ? y : trained, att_shape_of(4, 5, 6));
    }
    assert_int_equal(g->assigned.count, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(att_value_kind(g, g->assigned.items[i].value), ATT_BATCH);
    att_graph_destroy(&g);
}

TEST(a_rate_of_zero_adds_no_node)
{
    att_graph *g = new_graph();
    att_value x = sample(g, att_shape_of(5));
    assert_int_equal(att_dropout(g, x, 0), x);
    assert_int_equal(att_drop_path(g, x, 0), x);
    att_graph_destroy(&g);
}

static uint64_t stream_in(const char *scope, int drops_before, int nodes_before)
{
    att_graph *g = new_graph();
    att_value x = sample(g, att_shape_of(5));
    for (int i = 0; i < nodes_before; i++)
        att_gelu(g, x);
    att_graph_scope(g, scope);
    for (int i = 0; i < drops_before; i++)
        att_dropout(g, x, 0.5);
    att_drop_path(g, x, 0.5);
    uint64_t stream = ATT_ATTRS(&g->nodes.items[g->nodes.count - 1], drop)->stream;
    att_graph_destroy(&g);
    return stream;
}

TEST(the_stream_of_a_mask_follows_from_its_scope)
{
    assert_true(stream_in("blocks.1.attn", 0, 0) != stream_in("blocks.2.attn", 0, 0));
    assert_true(stream_in("blocks.1.attn", 0, 0) != stream_in("blocks.1.attn", 1, 0));
    assert_true(stream_in("blocks.1.attn", 1, 0) == stream_in("blocks.1.attn", 1, 3));
}

TEST(two_drops_in_one_scope_have_different_masks)
{
    att_graph *g = new_graph();
    att_value x = sample(g, att_shape_of(5, 2));
    uint64_t streams[6];
    for (int i = 0; i < 6; i++) {
        x = (i % 3 == 0 ? att_dropout : i % 3 == 1 ? att_drop_path : att_channel_dropout)(g, x, 0.5);
        streams[i] = ATT_ATTRS(&g->nodes.items[i], drop)->stream;
        for (int j = 0; j < i; j++)
            assert_true(streams[j] != streams[i]);
    }
    att_graph_destroy(&g);
}

/* The default scale is sqrt(1/16), whichever inputs hold queries, keys and values. */
TEST(attention_scales_by_its_width)
{
    enum { D = 16, TOKENS = 5 };
    att_graph *g = new_graph();
    const att_attention_options two = {.heads = 2}, scaled = {.heads = 2, .scale = 3},
                                grouped = {.heads = 4, .key_heads = 2, .value_heads = 1};
    att_value packed = sample(g, att_shape_of(TOKENS, 3 * 2 * D)), four = sample(g, att_shape_of(TOKENS, 4 * D)),
              six = sample(g, att_shape_of(TOKENS, 6 * D)), seven = sample(g, att_shape_of(TOKENS, 7 * D)),
              keys = sample(g, att_shape_of(TOKENS, 2 * D)), values = sample(g, att_shape_of(TOKENS, 3));
    att_attention(g, packed, ATT_NONE, ATT_NONE, &scaled);
    att_attention(g, packed, ATT_NONE, ATT_NONE, &two);
    att_attention(g, seven, ATT_NONE, ATT_NONE, &grouped);
    att_attention(g, six, ATT_NONE, values, &grouped);
    att_attention(g, four, keys, values, &grouped);
    att_attention(g, four, sample(g, att_shape_of(TOKENS, 3 * D)), ATT_NONE, &grouped);
    assert_int_equal(att_graph_status(g), ATT_OK);
    assert_true(ATT_ATTRS(&g->nodes.items[0], attention)->scale == 3);
    for (int i = 1; i < g->nodes.count; i++)
        assert_true(ATT_ATTRS(&g->nodes.items[i], attention)->scale == 0.25);
    assert_int_equal(g->nodes.count, 6);
    att_graph_destroy(&g);
}

/* --- wrong inputs ------------------------------------------------------------------------------------------------- */

/* Runs `build` on a new graph with x = [5, 6] and p = [6]. It must fail with a message that begins with `begin`. */
#define REFUSED(status, begin, build)                                                \
    do {                                                                             \
        att_graph *g = new_graph();                                                  \
        att_value x = sample(g, att_shape_of(5, 6)), p = shared(g, att_shape_of(6)); \
        (void)x, (void)p;                                                            \
        assert_int_equal(build, ATT_NONE);                                           \
        assert_int_equal(att_graph_status(g), status);                               \
        if (strncmp(att_context_message(context), begin, strlen(begin)))             \
            fail_msg("%s says: %s", #build, att_context_message(context));           \
        att_graph_destroy(&g);                                                       \
    } while (0)
#define MISFIT(begin, build) REFUSED(ATT_ERR_MISMATCH, begin, build)
#define WRONG(begin, build) REFUSED(ATT_ERR_ARGUMENT, begin, build)

TEST(layers_refuse_what_does_not_fit)
{
    MISFIT("linear: weight [4, 7] takes rows of 7, x [5, 6] has rows of 6",
           att_linear(g, x, shared(g, att_shape_of(4, 7)), ATT_NONE));
    MISFIT("linear: weight [6] must have at least 2 axes", att_linear(g, x, p, ATT_NONE));
    MISFIT("linear: bias [6] must have 4 elements", att_linear(g, x, shared(g, att_shape_of(4, 6)), p));
    MISFIT("linear: x [6] is a shared value, must be sample", att_linear(g, p, x, p));
    MISFIT("linear: weight [5, 6] is a sample value, must be shared", att_linear(g, x, x, p));
    WRONG("linear: weight is missing", att_linear(g, x, ATT_NONE, p));
    MISFIT("layer_norm: gamma [5] must have 6 elements, as many as the last axis of [5, 6]",
           att_layer_norm(g, x, shared(g, att_shape_of(5)), p, 1e-6));
    WRONG("layer_norm: eps is 0, must be positive", att_layer_norm(g, x, p, p, 0));
    WRONG("layer_norm: eps is nan", att_layer_norm(g, x, p, p, NAN));
    WRONG("group_norm: 6 channels of x [5, 6] in 4 groups, the number of groups must divide that of channels",
          att_group_norm(g, x, 4, p, p, 1e-5));
    WRONG("group_norm: 6 channels of x [5, 6] in 0 groups", att_group_norm(g, x, 0, p, p, 1e-5));
    WRONG("group_norm: 6 channels of x [5, 6] in -1 groups", att_group_norm(g, x, -1, p, p, 1e-5));
    WRONG("group_norm: eps is 0, must be positive", att_group_norm(g, x, 2, p, p, 0));
    MISFIT("group_norm: beta [5] must have 6 elements",
           att_group_norm(g, x, 2, ATT_NONE, shared(g, att_shape_of(5)), 1e-5));
    MISFIT("add: b [5, 5] must have the shape [5, 6]", att_add(g, x, sample(g, att_shape_of(5, 5))));
    MISFIT("add: shared b [5] must have the shape of the last axes of a [5, 6]",
           att_add(g, x, shared(g, att_shape_of(5))));
    MISFIT("add: shared b [2, 5, 6]", att_add(g, x, shared(g, att_shape_of(2, 5, 6))));
    MISFIT("scale: gamma [5] must have 6", att_scale(g, x, shared(g, att_shape_of(5))));
    MISFIT("gelu: x is I32, must be a float type", att_gelu(g, att_graph_input(g, "i", ATT_I32, att_shape_of(3))));
}

TEST(token_ops_refuse_what_does_not_fit)
{
    MISFIT("patchify: image [5, 6] must have 3 axes", att_patchify(g, x, 2, 2));
    MISFIT("patchify: an image of 4 x 5 has no patch of 2 x 6",
           att_patchify(g, sample(g, att_shape_of(4, 5, 1)), 2, 6));
    MISFIT("patchify: an image of 4 x 4 has no patch of 0", att_patchify(g, sample(g, att_shape_of(4, 4, 1)), 0, 0));
    MISFIT("prepend_tokens: tokens [4] must be whole rows of 6", att_prepend_tokens(g, shared(g, att_shape_of(4)), x));
    WRONG("slice_tokens: 3 tokens from token 3 on, but only 5 tokens", att_slice_tokens(g, x, 3, 3));
    WRONG("slice_tokens: 1 tokens from token -1 on", att_slice_tokens(g, x, -1, 1));
    WRONG("slice_tokens: 2147483647 tokens from token 2147483647 on", att_slice_tokens(g, x, INT32_MAX, INT32_MAX));
    WRONG("token_mean: the first token is 5, must be among 5", att_token_mean(g, x, 5));
    MISFIT("context_broadcast: scale [5] must have 6", att_context_broadcast(g, x, 1, 0, shared(g, att_shape_of(5))));
    WRONG("context_broadcast: keep is inf", att_context_broadcast(g, x, INFINITY, 0, ATT_NONE));
}

TEST(map_ops_refuse_what_does_not_fit)
{
    const att_batch_norm_options eps = {.eps = -1}, momentum = {.momentum = 2};
    const att_dct_pool_options uneven = {.count = 4, .height = 7, .width = 7},
                               many = {.count = 33, .height = 7, .width = 7},
                               high = {.count = 2, .rows = {0, 7}, .height = 7, .width = 7},
                               negative = {.count = 2, .columns = {-1, 0}, .height = 7, .width = 7};
    MISFIT("batch_norm: gamma [5] must have 6 elements", norm(g, x, 5, NULL));
    WRONG("batch_norm: eps is -1, must be positive", norm(g, x, 6, &eps));
    WRONG("batch_norm: momentum is 2, must be within 0 and 1", norm(g, x, 6, &momentum));
    MISFIT("token_mean: x [6] must be tokens [N, C] or a map [h, w, C]",
           att_global_mean(g, sample(g, att_shape_of(6))));
    MISFIT("global_style: x [1, 6] must have more than one row",
           att_global_style(g, sample(g, att_shape_of(1, 6)), 1e-5));
    WRONG("global_style: eps is 0, must be positive", att_global_style(g, x, 0));
    MISFIT("gate: gate [5] must have the shape [6]", att_gate(g, x, sample(g, att_shape_of(5))));
    MISFIT("gate: gate [6] is a shared value, must be sample", att_gate(g, x, p));
    MISFIT("pixel_gate: gate [6] must have the shape [5, 1]", att_pixel_gate(g, x, sample(g, att_shape_of(6))));
    MISFIT("channel_conv: weight [1, 1, 4] must be [1, 1, k], k odd",
           att_channel_conv(g, sample(g, att_shape_of(6)), shared(g, att_shape_of(1, 1, 4))));
    MISFIT("channel_conv: weight [3, 3]",
           att_channel_conv(g, sample(g, att_shape_of(6)), shared(g, att_shape_of(3, 3))));
    MISFIT("channel_linear: weight [6] must have the shape [5, 6]", att_channel_linear(g, x, p));
    att_shape map = att_shape_of(4, 5, 6);
    WRONG("dct_pool: 6 channels do not divide into 4 groups; 1 to 32 groups of equal size",
          att_dct_pool(g, sample(g, map), &uneven));
    WRONG("dct_pool: 6 channels do not divide into 33 groups", att_dct_pool(g, sample(g, map), &many));
    WRONG("dct_pool: 6 channels do not divide into 0 groups", att_dct_pool(g, sample(g, map), NULL));
    WRONG("dct_pool: every frequency must be smaller", att_dct_pool(g, sample(g, map), &high));
    WRONG("dct_pool: every frequency must be smaller", att_dct_pool(g, sample(g, map), &negative));
    MISFIT("dct_pool: x [5, 6] must have 3 axes", att_dct_pool(g, x, &high));
}

TEST(attention_refuses_what_does_not_fit)
{
    const att_attention_options four = {.heads = 4}, none = {.heads = 0}, prefix = {.heads = 1, .prefix = 6},
                                grid = {.heads = 1, .prefix = 1, .grid_h = 2, .grid_w = 3},
                                flat = {.heads = 1, .grid_h = 5}, scale = {.heads = 1, .scale = NAN},
                                back = {.heads = 1, .grid_h = 1, .grid_w = 5, .step_w = -1},
                                nowhere = {.heads = 1, .grid_h = 1, .grid_w = 5, .step_h = NAN};
    const att_attention_options two = {.heads = 2, .key_heads = 1}, three = {.heads = 6, .key_heads = 4},
                                uneven = {.heads = 6, .key_heads = 4, .value_heads = 2},
                                crossed = {.heads = 2, .key_heads = 1, .value_heads = 1, .grid_h = 1, .grid_w = 7};
    MISFIT("attention: 7 keys, but 6 values",
           att_attention(g, x, sample(g, att_shape_of(7, 3)), sample(g, att_shape_of(6, 4)), &two));
    MISFIT("attention: rows of q [5, 6], k [7, 3] do not divide into 2 heads of queries, 1 of keys and 2 of values",
           att_attention(g, x, sample(g, att_shape_of(7, 3)), ATT_NONE, &two));
    MISFIT("attention: rows of q [5, 6] do not divide into 6 heads of queries, 4 of keys and 6 of values",
           att_attention(g, x, ATT_NONE, ATT_NONE, &three));
    MISFIT("attention: rows of q [5, 12] do not divide into 6 heads of queries, 4 of keys and 2 of values",
           att_attention(g, sample(g, att_shape_of(5, 12)), ATT_NONE, ATT_NONE, &uneven));
    MISFIT("attention: a grid needs as many queries as keys, not 5 and 7",
           att_attention(g, x, sample(g, att_shape_of(7, 3)), sample(g, att_shape_of(7, 4)), &crossed));
    MISFIT("attention: rows of q [5, 6] do not divide into 4 heads of queries, 4 of keys and 4 of values",
           att_attention(g, x, ATT_NONE, ATT_NONE, &four));
    MISFIT("attention: rows of q [5, 6] do not divide into 0 heads", att_attention(g, x, ATT_NONE, ATT_NONE, &none));
    MISFIT("attention: rows of q [5, 6]", att_attention(g, x, ATT_NONE, ATT_NONE, NULL));
    WRONG("attention: 6 prefix tokens, but only 5 tokens", att_attention(g, x, ATT_NONE, ATT_NONE, &prefix));
    MISFIT("attention: 5 tokens without 1 prefix tokens do not fill a grid of 2 x 3",
           att_attention(g, x, ATT_NONE, ATT_NONE, &grid));
    MISFIT("attention: 5 tokens without 0 prefix tokens do not fill a grid of 5 x 0",
           att_attention(g, x, ATT_NONE, ATT_NONE, &flat));
    WRONG("attention: scale is nan", att_attention(g, x, ATT_NONE, ATT_NONE, &scale));
    WRONG("attention: the steps of the grid are 1 and -1", att_attention(g, x, ATT_NONE, ATT_NONE, &back));
    WRONG("attention: the steps of the grid are nan and 1", att_attention(g, x, ATT_NONE, ATT_NONE, &nowhere));
}

static att_value attend(att_graph *g, att_value x, att_attention_options options)
{
    return att_attention(g, x, ATT_NONE, ATT_NONE, &options);
}

/* Attention over a row of `tokens` tokens; 0: without a grid. */
static att_value attend_terms(att_graph *g, att_value x, int tokens, att_value relative, att_value rows,
                              att_value columns)
{
    att_attention_terms terms = att_attention_no_terms();
    terms.relative = relative, terms.rows = rows, terms.columns = columns;
    return attend(g, x, (att_attention_options){.heads = 2, .grid_h = tokens > 0, .grid_w = tokens, .terms = &terms});
}

/* Terms of rows and columns are for the whole grid. */
static att_value attend_terms_in_windows(att_graph *g, att_value x)
{
    att_attention_terms terms = att_attention_no_terms();
    terms.rows = sample(g, att_shape_of(5, 2)), terms.columns = sample(g, att_shape_of(5, 10));
    return attend(
        g, x,
        (att_attention_options){.heads = 2, .grid_h = 1, .grid_w = 5, .window_h = 1, .window_w = 5, .terms = &terms});
}

TEST(terms_of_attention_must_fit)
{
    MISFIT("attention: relative [8, 2] does not fit 2 heads and a grid of 1 x 5",
           attend_terms(g, x, 5, shared(g, att_shape_of(8, 2)), ATT_NONE, ATT_NONE));
    MISFIT("attention: relative [9, 1] does not fit 2 heads",
           attend_terms(g, x, 5, shared(g, att_shape_of(9, 1)), ATT_NONE, ATT_NONE));
    MISFIT("attention: relative [12, 2] does not fit 2 heads",
           attend_terms(g, x, 5, shared(g, att_shape_of(12, 2)), ATT_NONE, ATT_NONE));
    MISFIT("attention: relative [9, 2] is a sample value",
           attend_terms(g, x, 5, sample(g, att_shape_of(9, 2)), ATT_NONE, ATT_NONE));
    WRONG("attention: rows and columns must be given both",
          attend_terms(g, x, 5, ATT_NONE, sample(g, att_shape_of(5, 2)), ATT_NONE));
    MISFIT("attention: columns [5, 2]",
           attend_terms(g, x, 5, ATT_NONE, sample(g, att_shape_of(5, 2)), sample(g, att_shape_of(5, 2))));
    WRONG("attention: rows and columns cannot be given with windows", attend_terms_in_windows(g, x));
    WRONG("attention: terms need a grid", attend_terms(g, x, 0, p, ATT_NONE, ATT_NONE));
}

/* Terms of queries of two heads of width 3 over a row of five tokens. */
static att_value axis_terms(att_graph *g, att_value x, int width, int tokens, att_shape rows, att_shape columns)
{
    const att_axis_terms_options options = {.heads = 2, .width = width, .grid_h = 1, .grid_w = tokens};
    att_attention_terms terms;
    att_axis_terms(g, x, shared(g, rows), shared(g, columns), &options, &terms);
    return terms.rows;
}

TEST(terms_of_axes_must_fit)
{
    const att_shape rows = att_shape_of(1, 3), columns = att_shape_of(9, 2);
    MISFIT("axis_terms: q [5, 6] does not hold 2 heads of width 4", axis_terms(g, x, 4, 5, rows, columns));
    MISFIT("axis_terms: 5 tokens without 0 prefix tokens do not fill a grid of 1 x 4",
           axis_terms(g, x, 3, 4, rows, columns));
    MISFIT("axis_terms: the table of rows [9, 2] must have 2 x 1 - 1 rows", axis_terms(g, x, 3, 5, columns, columns));
    MISFIT("axis_terms: tables of 3 and 2 columns, must both have the width of a head, 3, or divide it",
           axis_terms(g, x, 3, 5, rows, columns));
}

static att_attention_options windows(int height, int width, int shift)
{
    return (att_attention_options){
        .heads = 2, .grid_h = 1, .grid_w = 5, .window_h = height, .window_w = width, .shift_w = shift};
}

TEST(windows_of_attention_must_fit)
{
    MISFIT("attention: windows of 1 x 2 do not divide a grid of 1 x 5", attend(g, x, windows(1, 2, 0)));
    MISFIT("attention: windows of 0 x 0 do not divide", attend(g, x, windows(0, 0, 1)));
    WRONG("attention: a shift of 0 and 5, must be at least 0 and below the window, 1 x 5",
          attend(g, x, windows(1, 5, 5)));
    WRONG("attention: a shift of 0 and -1", attend(g, x, windows(1, 5, -1)));
    WRONG("attention: windows need a grid without prefix tokens",
          attend(g, x, (att_attention_options){.heads = 2, .window_h = 1, .window_w = 1}));
    MISFIT("attention: causality needs as many queries as keys, not 5 and 7",
           att_attention(g, x, sample(g, att_shape_of(7, 6)), sample(g, att_shape_of(7, 6)),
                         &(att_attention_options){.heads = 2, .causal = true}));
}

/* Each of 6 x 4 queries meets the keys of its window: 24 queries, 4 keys, 2 heads, 3 channels for the scores and 3 for
 * the values. */
TEST(windows_divide_the_cost_of_attention)
{
    for (int windows = 0; windows < 2; windows++) {
        att_graph *graph = new_graph();
        att_attention_options options = {.heads = 2, .grid_h = 6, .grid_w = 4};
        options.window_h = options.window_w = windows ? 2 : 0;
        att_graph_output(graph, "y", attend(graph, sample(graph, att_shape_of(24, 18)), options));
        must(att_graph_status(graph));
        assert_true(att_graph_cost(graph).macs == 24.0 * (windows ? 4 : 24) * 2 * (3 + 3));
        att_graph_destroy(&graph);
    }
}

TEST(training_ops_refuse_what_does_not_fit)
{
    WRONG("dropout: rate is 1, must be in [0, 1)", att_dropout(g, x, 1));
    WRONG("channel_dropout: rate is 1, must be in [0, 1)", att_channel_dropout(g, x, 1));
    WRONG("drop_path: rate is nan", att_drop_path(g, x, NAN));
    MISFIT("cross_entropy: logits [5, 6] must have 1 axes", att_cross_entropy(g, x, x, 0));
    MISFIT("cross_entropy: target [6] must have the shape [7]",
           att_cross_entropy(g, sample(g, att_shape_of(7)), sample(g, att_shape_of(6)), 0));
    MISFIT("cross_entropy: integer target [7] must be one number per sample",
           att_cross_entropy(g, sample(g, att_shape_of(7)), att_graph_input(g, "t", ATT_I32, att_shape_of(7)), 0));
    MISFIT("cross_entropy: logits [7] must have 2 axes",
           att_token_cross_entropy(g, sample(g, att_shape_of(7)), att_graph_input(g, "t", ATT_I32, att_shape_of(7))));
    MISFIT("cross_entropy: target [6] of type I32 must be one number of type I32 for each of the 5 tokens",
           att_token_cross_entropy(g, x, att_graph_input(g, "t", ATT_I32, att_shape_of(6))));
    WRONG("cross_entropy: smoothing is 0.1, must be 0 with a target for each class",
          att_cross_entropy(g, sample(g, att_shape_of(7)), sample(g, att_shape_of(7)), 0.1));
    WRONG("cross_entropy: smoothing is 1, must be in [0, 1)",
          att_cross_entropy(g, sample(g, att_shape_of(7)), sample(g, att_shape_of(7)), 1));
}

static att_value upsampled(att_graph *g, att_value logits, att_dtype type, att_shape mask, int mean)
{
    return att_upsampled_cross_entropy(g, logits, att_graph_input(g, "mask", type, mask), 255, (att_pixel_mean)mean);
}

TEST(ops_on_upsampled_logits_refuse_what_does_not_fit)
{
    const att_shape map = att_shape_of(2, 3, 5);
    MISFIT("upsampled_cross_entropy: logits [5, 6] must have 3 axes",
           upsampled(g, x, ATT_I32, att_shape_of(4, 6), ATT_MEAN_OF_ALL));
    MISFIT("upsampled_cross_entropy: mask [4, 6, 1] of type I32 must be a class of type I32 for each pixel",
           upsampled(g, sample(g, map), ATT_I32, att_shape_of(4, 6, 1), ATT_MEAN_OF_ALL));
    MISFIT("upsampled_cross_entropy: mask [4, 6] of type F32 must be a class of type I32 for each pixel",
           upsampled(g, sample(g, map), ATT_F32, att_shape_of(4, 6), ATT_MEAN_OF_ALL));
    WRONG("upsampled_cross_entropy: there is no mean 2 over pixels",
          upsampled(g, sample(g, map), ATT_I32, att_shape_of(4, 6), 2));
    MISFIT("upsampled_argmax: logits [5, 6] must have 3 axes", att_upsampled_argmax(g, x, 4, 6));
    WRONG("upsampled_argmax: the result is 0 x 6, must be at least 1 x 1",
          att_upsampled_argmax(g, sample(g, map), 0, 6));
    WRONG("upsampled_argmax: the result is 4 x 0, must be at least 1 x 1",
          att_upsampled_argmax(g, sample(g, map), 4, 0));
}

/* Binary cross entropy of seven logits. */
static att_value binary(att_graph *g, att_value target, att_binary_cross_entropy_options options)
{
    return att_binary_cross_entropy(g, sample(g, att_shape_of(7)), target, &options);
}

TEST(binary_cross_entropy_refuses_what_does_not_fit)
{
    const att_binary_cross_entropy_options plain = {.positive_weight = 1};
    att_binary_cross_entropy_options smoothed = plain, sure = plain, negative = plain, infinite = plain,
                                     nowhere = plain;
    smoothed.smoothing = 0.1;
    sure.smoothing = 1;
    negative.positive_weight = -1;
    infinite.positive_weight = INFINITY;
    nowhere.binary = true;
    nowhere.threshold = NAN;
    MISFIT("binary_cross_entropy: logits [5, 6] must have 1 axes", att_binary_cross_entropy(g, x, x, &plain));
    MISFIT("binary_cross_entropy: target [6] must have the shape [7]", binary(g, sample(g, att_shape_of(6)), plain));
    MISFIT("binary_cross_entropy: integer target [6] must be one number for each of the logits [7]",
           binary(g, att_graph_input(g, "t", ATT_I32, att_shape_of(6)), plain));
    MISFIT("binary_cross_entropy: integer target [1, 7] must be one number per sample",
           binary(g, att_graph_input(g, "t", ATT_I32, att_shape_of(1, 7)), plain));
    WRONG("binary_cross_entropy: smoothing is 0.1, must be 0 with a target for each class",
          binary(g, att_graph_input(g, "t", ATT_I32, att_shape_of(7)), smoothed));
    WRONG("binary_cross_entropy: smoothing is 0.1, must be 0 with a target for each class",
          binary(g, sample(g, att_shape_of(7)), smoothed));
    WRONG("binary_cross_entropy: smoothing is 1, must be in [0, 1)", binary(g, sample(g, att_shape_of(7)), sure));
    WRONG("binary_cross_entropy: positive_weight is -1, must be", binary(g, sample(g, att_shape_of(7)), negative));
    WRONG("binary_cross_entropy: positive_weight is inf, must be", binary(g, sample(g, att_shape_of(7)), infinite));
    WRONG("binary_cross_entropy: threshold is not a number", binary(g, sample(g, att_shape_of(7)), nowhere));
}

static att_value sample_boxes(att_graph *g, int64_t columns, att_box_sampling sampling)
{
    const att_box_targets_options options = {.sampling = sampling, .weights = {1, 1, 1, 1}, .classes = 2};
    att_box_targets targets;
    return att_box_sample(g, sample(g, att_shape_of(9, 4)), att_graph_input(g, "count", ATT_I32, (att_shape){0}),
                          att_graph_input(g, "true_boxes", ATT_F32, att_shape_of(3, columns)), &options, &targets);
}

static att_value sample_anchors(att_graph *g, int levels)
{
    static const att_anchors anchors = {.size = 8, .stride = {{4, 4}}};
    static const att_box_sampling sampling = {.positive = 0.7, .samples = 8};
    att_value map = sample(g, att_shape_of(2, 3, 3)), maps[] = {map, map};
    att_anchor_targets targets;
    return att_anchor_sample(g, att_graph_input(g, "true_boxes", ATT_F32, att_shape_of(3, 5)), maps, levels, &anchors,
                             &sampling, &targets);
}

TEST(the_sampling_of_boxes_refuses_what_does_not_fit)
{
    const att_box_sampling plain = {.positive = 0.5, .negative = 0.3, .samples = 8};
    att_box_sampling never = plain, crossed = plain, none = plain, more = plain;
    never.positive = 0;
    crossed.negative = 0.6;
    none.samples = 0;
    more.share = 1.5;
    MISFIT("box_sample: true boxes [3, 4] must be four numbers and a class each", sample_boxes(g, 4, plain));
    WRONG("box_sample: overlaps of at least 0 are positive, below 0.3 negative", sample_boxes(g, 5, never));
    WRONG("box_sample: overlaps of at least 0.5 are positive, below 0.6 negative", sample_boxes(g, 5, crossed));
    WRONG("box_sample: least overlap 0, share in a crowd 0, share of positive ones 0, 0 samples: must be in",
          sample_boxes(g, 5, none));
    WRONG("box_sample: least overlap 0, share in a crowd 0, share of positive ones 1.5, 8 samples: must be in",
          sample_boxes(g, 5, more));
    WRONG("anchor_sample: 0 levels, anchors of 8 pixels: must be 1 to 5", sample_anchors(g, 0));
    WRONG("anchor_sample: level 1 has the stride 0 and the side 2", sample_anchors(g, 2));
}

static att_value smooth(att_graph *g, int64_t columns, att_shape chosen, double beta)
{
    return att_smooth_l1(g, sample(g, att_shape_of(5, 12)),
                         att_graph_input(g, "target", ATT_F32, att_shape_of(5, columns)),
                         att_graph_input(g, "columns", ATT_I32, chosen), beta);
}

TEST(smooth_l1_refuses_what_does_not_fit)
{
    MISFIT("smooth_l1: x [5, 12] must have as many rows as the target [5, 5]", smooth(g, 5, att_shape_of(5), 1));
    MISFIT("smooth_l1: columns [4] must be one number of type", smooth(g, 4, att_shape_of(4), 1));
    WRONG("smooth_l1: beta is -1, must be finite and at least 0", smooth(g, 4, att_shape_of(5), -1));
}

/* Every rule refuses missing inputs and a wrong number of inputs. */
static void refused(att_graph *g, att_status expected, const char *words)
{
    assert_int_equal(att_graph_status(g), expected);
    assert_message(context, words);
    att_graph_destroy(&g);
}

TEST(operations_on_places_refuse_what_does_not_fit)
{
    att_graph *g = new_graph();
    att_transpose(g, sample(g, att_shape_of(2, 3)), (int[]){1, 1}, 2);
    refused(g, ATT_ERR_ARGUMENT, "axis 1 of the result is axis 1");
    g = new_graph();
    att_reshape(g, sample(g, att_shape_of(2, 3)), att_shape_of(5));
    refused(g, ATT_ERR_MISMATCH, "as many elements");
    g = new_graph();
    att_matmul(g, sample(g, att_shape_of(2, 3)), sample(g, att_shape_of(2, 3)), false, 1);
    refused(g, ATT_ERR_MISMATCH, "cannot be multiplied");
    g = new_graph();
    att_windows(g, sample(g, att_shape_of(4, 6, 1)), &(att_window_options){.height = 3, .width = 3});
    refused(g, ATT_ERR_MISMATCH, "4 x 6 does not divide into windows of 3 x 3");
    g = new_graph();
    att_windows(g, sample(g, att_shape_of(4, 6, 1)), &(att_window_options){.height = 2, .width = 3, .shift_x = 6});
    refused(g, ATT_ERR_ARGUMENT, "the shift is");
    g = new_graph();
    att_upsample_bilinear(g, sample(g, att_shape_of(4, 6, 1)), 0, 3);
    refused(g, ATT_ERR_ARGUMENT, "must be at least 1 x 1");
}

/* The sides of a map are stored as 32-bit integers. */
TEST(windows_take_sides_of_up_to_31_bits)
{
    const att_window_options pixel = {.height = 1, .width = 1};
    const int64_t most = INT32_MAX;
    att_graph *graph = new_graph();
    assert_shape(graph, att_windows(graph, sample(graph, att_shape_of(most, 1, 1)), &pixel), att_shape_of(most, 1, 1));
    assert_shape(graph, att_windows(graph, sample(graph, att_shape_of(1, most, 1)), &pixel), att_shape_of(most, 1, 1));
    att_graph_destroy(&graph);
    MISFIT("windows: a map of 2147483648 x 1", att_windows(g, sample(g, att_shape_of(most + 1, 1, 1)), &pixel));
    MISFIT("windows: a map of 1 x 2147483648", att_windows(g, sample(g, att_shape_of(1, most + 1, 1)), &pixel));
}

TEST(operations_on_places_have_the_shapes_they_say)
{
    att_graph *g = new_graph();
    att_value map = sample(g, att_shape_of(4, 6, 5));
    const att_window_options window = {.height = 2, .width = 3, .shift_y = 1};
    att_value windows = att_windows(g, map, &window);
    const att_shape shapes[] = {att_value_shape(g, att_transpose(g, map, (int[]){2, 0, 1}, 3)),
                                att_value_shape(g, att_reshape(g, map, att_shape_of(24, 5))),
                                att_value_shape(g, windows),
                                att_value_shape(g, att_windows_reverse(g, windows, 4, 6, &window)),
                                att_value_shape(g, att_merge_patches(g, map)),
                                att_value_shape(g, att_upsample_bilinear(g, map, 8, 7)),
                                att_value_shape(g, att_matmul(g, map, map, true, 1))};
    const att_shape expected[] = {att_shape_of(5, 4, 6), att_shape_of(24, 5),    att_shape_of(4, 6, 5),
                                  att_shape_of(4, 6, 5), att_shape_of(2, 3, 20), att_shape_of(8, 7, 5),
                                  att_shape_of(4, 6, 6)};
    must(att_graph_status(g));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(att_shape_equal(shapes[i], expected[i]));
    att_graph_destroy(&g);
}

TEST(every_rule_refuses_missing_inputs)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        const att_op_case *definition = &(*op)->cases[0];
        att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS];
        for (int i = 0; i < definition->in_count; i++)
            in[i] = definition->in[i].desc;
        att_infer infer = {
            context, *op,  att_op_case_attrs(*op, definition), in, definition->in_count - 1, out, ATT_CASE_OUTPUTS,
            0,       false};
        assert_int_equal((*op)->infer(&infer), ATT_ERR_ARGUMENT);
        infer.in_count = definition->in_count;
        in[0].shape.rank = -1;
        assert_int_equal((*op)->infer(&infer), ATT_ERR_ARGUMENT);
        assert_int_equal(strncmp(att_context_message(context), (*op)->name, strlen((*op)->name)), 0);
    }
}

static bool same_outputs(const att_infer *a, const att_infer *b)
{
    bool same = a->out_count == b->out_count;
    for (int i = 0; i < a->out_count && same; i++)
        same = att_shape_equal(a->out[i].shape, b->out[i].shape);
    return same;
}

/* Widens one axis of one input of a case. The rule must refuse the inputs or give an output another shape. */
static void widen(const att_op *op, const att_op_case *definition, int input, int axis)
{
    att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS], wide_out[ATT_CASE_OUTPUTS];
    for (int i = 0; i < definition->in_count; i++)
        in[i] = definition->in[i].desc;
    att_infer infer = {
        context, op, att_op_case_attrs(op, definition), in, definition->in_count, out, ATT_CASE_OUTPUTS, 0, false};
    must(op->infer(&infer));
    att_infer wide = {
        context, op, att_op_case_attrs(op, definition), in, definition->in_count, wide_out, ATT_CASE_OUTPUTS, 0, false};
    in[input].shape.dims[axis]++;
    if (op->infer(&wide) == ATT_OK && same_outputs(&infer, &wide))
        fail_msg("%s, case %s: takes input %d although axis %d is one longer", op->name, definition->name, input, axis);
}

/* The output of a sum over an axis does not depend on the axis's length, but only for an op's first input. A stride
 * rounds the size of a map, so a convolution may have the same outputs for a map or window that is one pixel larger.
 * The weights of score_norm may have rows of other layers before and after those of its heads. A mask has any size, and
 * upsampled_cross_entropy sums over its columns. Maps that roi_align reads have any size, and true boxes any
 * number. */
TEST(every_rule_checks_each_axis_of_later_inputs)
{
    for (const att_op *const *op = att_ops; *op; op++)
        for (int c = 0; c < (*op)->case_count; c++)
            for (int i = 1; i < (*op)->cases[c].in_count; i++) {
                const att_desc *in = &(*op)->cases[c].in[i].desc;
                bool strided = i == 1 && !strncmp((*op)->name, "conv2d", 6);
                bool summed = in->dtype == ATT_I32 && !strncmp((*op)->name, "upsampled_cross_entropy", 23);
                bool read = in->shape.rank == 3 && !strcmp((*op)->name, "roi_align");
                bool listed = i == 2 && !strcmp((*op)->name, "box_sample");
                int first = read ? 2 : listed || !strcmp((*op)->name, "score_norm") ? 1 : 0;
                for (int axis = first; !strided && axis < in->shape.rank - summed; axis++)
                    widen(*op, &(*op)->cases[c], i, axis);
            }
}
