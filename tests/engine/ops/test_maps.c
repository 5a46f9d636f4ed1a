/* Operations on feature maps: the shapes that builders give, messages for wrong inputs, and what a convolution absorbs.
 * */
#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/activation.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/finite_difference.h"
#include "engine/ops/shortcut_pad.h"

TEST_GROUP(fd_setup, close_context)

static const att_init zero = {ATT_INIT_CONSTANT, 0};

static att_graph *new_graph(void)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    return graph;
}

/* Adds an input with a new name. */
static att_value map(att_graph *graph, int64_t height, int64_t width, int64_t channels)
{
    char name[32];
    snprintf(name, sizeof name, "x%d", graph->values.count);
    return att_graph_input(graph, name, ATT_F32, att_shape_of(height, width, channels));
}

static att_value weight(att_graph *graph, int64_t outputs, int64_t seen, int64_t height, int64_t width)
{
    char name[32];
    snprintf(name, sizeof name, "w%d", graph->values.count);
    return att_graph_parameter(graph, name, att_shape_of(outputs, seen, height, width), zero, true);
}

static att_value vector(att_graph *graph, int64_t count)
{
    char name[32];
    snprintf(name, sizeof name, "v%d", graph->values.count);
    return att_graph_parameter(graph, name, att_shape_of(count), zero, false);
}

static void assert_map(const att_graph *graph, att_value value, int64_t height, int64_t width, int64_t channels)
{
    char text[96];
    must(att_graph_status(graph));
    if (!att_shape_equal(att_value_shape(graph, value), att_shape_of(height, width, channels)))
        fail_msg("shape is %s", att_shape_format(att_value_shape(graph, value), text, sizeof text));
    assert_int_equal(att_value_kind(graph, value), ATT_SAMPLE);
}

/* As PyTorch's Conv2d. */
TEST(convolutions_yield_the_stated_shapes)
{
    att_graph *g = new_graph();
    const att_conv_options stem = {.stride = 2, .padding = 3}, same = {.padding = 2, .dilation = 2},
                           depthwise = {.padding = 1, .groups = 6};
    assert_map(g, att_conv2d(g, map(g, 224, 224, 3), weight(g, 64, 3, 7, 7), ATT_NONE, &stem), 112, 112, 64);
    assert_map(g, att_conv2d(g, map(g, 7, 9, 4), weight(g, 5, 4, 3, 3), vector(g, 5), &same), 7, 9, 5);
    assert_map(g, att_conv2d(g, map(g, 7, 9, 6), weight(g, 12, 1, 3, 3), ATT_NONE, &depthwise), 7, 9, 12);
    assert_map(g, att_conv2d(g, map(g, 3, 4, 2), weight(g, 5, 2, 3, 4), ATT_NONE, NULL), 1, 1, 5);
    att_graph_destroy(&g);
}

/* As PyTorch's ConvTranspose2d. */
TEST(transposed_convolutions_yield_the_stated_shapes)
{
    att_graph *g = new_graph();
    const att_conv_transpose_options twice = {.stride = 2}, smooth = {.stride = 2, .padding = 1},
                                     wider = {.stride = 2, .padding = 1, .output_padding = 1},
                                     apart = {.stride = 3, .dilation = 2, .groups = 2};
    assert_map(g, att_conv_transpose2d(g, map(g, 14, 13, 8), weight(g, 8, 5, 2, 2), vector(g, 5), &twice), 28, 26, 5);
    assert_map(g, att_conv_transpose2d(g, map(g, 14, 13, 8), weight(g, 8, 5, 4, 4), ATT_NONE, &smooth), 28, 26, 5);
    assert_map(g, att_conv_transpose2d(g, map(g, 7, 9, 4), weight(g, 4, 5, 3, 3), ATT_NONE, &wider), 14, 18, 5);
    assert_map(g, att_conv_transpose2d(g, map(g, 2, 4, 4), weight(g, 4, 3, 2, 1), vector(g, 6), &apart), 6, 10, 6);
    assert_map(g, att_conv_transpose2d(g, map(g, 1, 1, 2), weight(g, 2, 5, 3, 4), ATT_NONE, NULL), 3, 4, 5);
    att_graph_destroy(&g);
}

/* As PyTorch's MaxPool2d, AvgPool2d, AdaptiveAvgPool2d. */
TEST(pools_yield_the_stated_shapes)
{
    att_graph *g = new_graph();
    const att_pool_options stem = {.kernel = 3, .stride = 2, .padding = 1}, halves = {.kernel = 2},
                           ceil = {.kernel = 3, .stride = 2, .ceil = true},
                           behind = {.kernel = 2, .padding = 1, .ceil = true},
                           largest = {.kernel = INT32_MAX, .padding = INT32_MAX / 2};
    assert_map(g, att_max_pool(g, map(g, 112, 111, 64), &stem), 56, 56, 64);
    assert_map(g, att_avg_pool(g, map(g, 7, 6, 4), &halves), 3, 3, 4);
    assert_map(g, att_max_pool(g, map(g, 112, 2, 4), &ceil), 56, 1, 4);
    assert_map(g, att_avg_pool(g, map(g, 3, 4, 4), &behind), 2, 3, 4);
    assert_map(g, att_max_pool(g, map(g, 5, 6, 4), &largest), 1, 1, 4);
    assert_map(g, att_adaptive_avg_pool(g, map(g, 5, 6, 4), 7, 2), 7, 2, 4);
    assert_map(g, att_shortcut_pad(g, map(g, 5, 6, 4), 2, 9), 3, 3, 9);
    assert_int_equal(ATT_ATTRS(&g->nodes.items[g->nodes.count - 1], shortcut)->before, 2);
    assert_map(g, att_concat(g, map(g, 5, 6, 4), map(g, 5, 6, 3)), 5, 6, 7);
    att_graph_destroy(&g);
}

/* Runs `build` on a new graph with x = [5, 6, 4]. It must fail with a message that begins with `begin`. */
#define REFUSED(status, begin, build)                                      \
    do {                                                                   \
        att_graph *g = new_graph();                                        \
        att_value x = map(g, 5, 6, 4);                                     \
        assert_int_equal(build, ATT_NONE);                                 \
        assert_int_equal(att_graph_status(g), status);                     \
        if (strncmp(att_context_message(context), begin, strlen(begin)))   \
            fail_msg("%s says: %s", #build, att_context_message(context)); \
        att_graph_destroy(&g);                                             \
    } while (0)
#define MISFIT(begin, build) REFUSED(ATT_ERR_MISMATCH, begin, build)
#define WRONG(begin, build) REFUSED(ATT_ERR_ARGUMENT, begin, build)

TEST(convolutions_refuse_what_does_not_fit)
{
    const att_conv_options two = {.groups = 2}, three = {.groups = 3}, negative = {.stride = -1},
                           padding = {.padding = -1}, far = {.dilation = INT32_MAX}, most = {.padding = INT32_MAX};
    MISFIT("conv2d: weight [4, 3, 3, 3] does not fit x [5, 6, 4] in 1 groups",
           att_conv2d(g, x, weight(g, 4, 3, 3, 3), ATT_NONE, NULL));
    MISFIT("conv2d: weight [5, 2, 1, 1] does not fit x [5, 6, 4] in 2 groups",
           att_conv2d(g, x, weight(g, 5, 2, 1, 1), ATT_NONE, &two));
    MISFIT("conv2d: weight [3, 1, 1, 1] does not fit x [5, 6, 4] in 3 groups",
           att_conv2d(g, x, weight(g, 3, 1, 1, 1), ATT_NONE, &three));
    MISFIT("conv2d: a kernel of 6 x 3, dilation 1, does not fit into a map of 5 x 6 with padding 0",
           att_conv2d(g, x, weight(g, 4, 4, 6, 3), ATT_NONE, NULL));
    MISFIT("conv2d: a kernel of 2 x 2, dilation 2147483647, does not fit",
           att_conv2d(g, x, weight(g, 4, 4, 2, 2), ATT_NONE, &far));
    MISFIT("conv2d: the result of x [5, 6, 4] and weight [4, 4, 2, 2] is too large",
           att_conv2d(g, x, weight(g, 4, 4, 2, 2), ATT_NONE, &most));
    MISFIT("conv2d: bias [3] must have 4 elements for weight [4, 4, 1, 1]",
           att_conv2d(g, x, weight(g, 4, 4, 1, 1), vector(g, 3), NULL));
    MISFIT("conv2d: weight [4] must have 4 axes", att_conv2d(g, x, vector(g, 4), ATT_NONE, NULL));
    WRONG("conv2d: stride -1", att_conv2d(g, x, weight(g, 4, 4, 1, 1), ATT_NONE, &negative));
    WRONG("conv2d: stride 1, dilation 1 and groups 1 must be at least 1, padding -1 at least 0",
          att_conv2d(g, x, weight(g, 4, 4, 1, 1), ATT_NONE, &padding));
}

TEST(transposed_convolutions_refuse_what_does_not_fit)
{
    const att_conv_transpose_options three = {.groups = 3}, negative = {.output_padding = -1},
                                     wide = {.stride = 2, .output_padding = 2}, padded = {.padding = 3},
                                     far = {.stride = INT32_MAX, .dilation = INT32_MAX};
    MISFIT("conv_transpose2d: weight [3, 4, 1, 1] does not fit x [5, 6, 4] in 1 groups",
           att_conv_transpose2d(g, x, weight(g, 3, 4, 1, 1), ATT_NONE, NULL));
    MISFIT("conv_transpose2d: weight [4, 3, 1, 1] does not fit x [5, 6, 4] in 3 groups",
           att_conv_transpose2d(g, x, weight(g, 4, 3, 1, 1), ATT_NONE, &three));
    MISFIT("conv_transpose2d: the sides of the result must be 1 to 2147483647, not 0 x 1",
           att_conv_transpose2d(g, x, weight(g, 4, 4, 2, 2), ATT_NONE, &padded));
    MISFIT("conv_transpose2d: the sides of the result must be 1 to 2147483647, not 10737418236 x",
           att_conv_transpose2d(g, x, weight(g, 4, 4, 2, 2), ATT_NONE, &far));
    MISFIT("conv_transpose2d: bias [3] must have 5 elements for weight [4, 5, 2, 2]",
           att_conv_transpose2d(g, x, weight(g, 4, 5, 2, 2), vector(g, 3), NULL));
    WRONG("conv_transpose2d: output padding -1 must be from 0 to less than the stride, 1",
          att_conv_transpose2d(g, x, weight(g, 4, 4, 1, 1), ATT_NONE, &negative));
    WRONG("conv_transpose2d: output padding 2 must be from 0 to less than the stride, 2",
          att_conv_transpose2d(g, x, weight(g, 4, 4, 2, 2), ATT_NONE, &wide));
}

TEST(pools_refuse_what_does_not_fit)
{
    const att_pool_options padding = {.kernel = 3, .padding = 2}, large = {.kernel = 6};
    WRONG("max_pool: kernel 0 and stride 0 must be at least 1", att_max_pool(g, x, NULL));
    WRONG("max_pool: kernel 3 and stride 3 must be at least 1, padding 2 from 0 to half", att_max_pool(g, x, &padding));
    MISFIT("avg_pool: a window of 6 x 6 does not fit into a map of 5 x 6 with padding 0", att_avg_pool(g, x, &large));
    WRONG("adaptive_avg_pool: the result is 0 x 3", att_adaptive_avg_pool(g, x, 0, 3));
    MISFIT("adaptive_avg_pool: x [5, 6, 4] is too large", att_adaptive_avg_pool(g, x, INT32_MAX, INT32_MAX));
    WRONG("shortcut_pad: stride is 0", att_shortcut_pad(g, x, 0, 8));
    MISFIT("shortcut_pad: a map of 5 x 6 x 4 does not become one of 3 channels", att_shortcut_pad(g, x, 2, 3));
    MISFIT("concat: a [5, 6, 4] and b [5, 5, 4] must differ in the last axis only", att_concat(g, x, map(g, 5, 5, 4)));
}

/* --- absorbing ---------------------------------------------------------------------------------------------------- */

typedef struct fixture {
    att_graph *graph;
    att_value residual, y, vectors[4];
    att_node node; /* the convolution */
} fixture;

static fixture new_fixture(void)
{
    fixture f = {.graph = new_graph()};
    f.residual = map(f.graph, 5, 6, 8);
    for (int i = 0; i < 4; i++)
        f.vectors[i] = vector(f.graph, 8);
    f.y = att_conv2d(f.graph, map(f.graph, 5, 6, 4), weight(f.graph, 8, 4, 1, 1), ATT_NONE, NULL);
    must(att_graph_status(f.graph));
    f.node = f.graph->nodes.items[f.graph->nodes.count - 1];
    return f;
}

static bool absorbs_norm(fixture *f)
{
    att_value in[5] = {f->node.out[0]};
    memcpy(in + 1, f->vectors, sizeof f->vectors);
    att_node norm = {.op = &att_op_batch_norm, .attrs = &(att_batch_norm_attrs){.eps = 0.25}, .in = in, .in_count = 5};
    return f->node.op->absorb(&f->node, &norm);
}

static bool absorbs_relu(fixture *f)
{
    att_node relu = {.op = &att_op_relu, .in = f->node.out, .in_count = 1};
    return f->node.op->absorb(&f->node, &relu);
}

static bool absorbs_residual(fixture *f)
{
    att_add(f->graph, f->residual, f->y);
    return f->node.op->absorb(&f->node, &f->graph->nodes.items[f->graph->nodes.count - 1]);
}

TEST(a_convolution_absorbs_norm_residual_and_relu_in_this_order)
{
    enum { RESIDUAL = 3, GAMMA = 4 };
    fixture f = new_fixture();
    assert_true(absorbs_norm(&f));
    assert_true(ATT_ATTRS(&f.node, conv)->eps == 0.25);
    assert_memory_equal(f.node.in + GAMMA, f.vectors, sizeof f.vectors);
    assert_false(absorbs_norm(&f));
    assert_true(absorbs_residual(&f));
    assert_int_equal(f.node.in[RESIDUAL], f.residual);
    assert_false(absorbs_residual(&f));
    assert_true(absorbs_relu(&f));
    assert_int_equal(ATT_ATTRS(&f.node, conv)->activation, ATT_ACT_RELU);
    assert_false(absorbs_relu(&f));
    assert_false(absorbs_residual(&f));
    att_graph_destroy(&f.graph);
}

TEST(a_norm_behind_something_else_stays)
{
    fixture f = new_fixture();
    assert_true(absorbs_residual(&f));
    assert_false(absorbs_norm(&f));
    att_graph_destroy(&f.graph);
    f = new_fixture();
    assert_true(absorbs_relu(&f));
    assert_false(absorbs_norm(&f));
    assert_false(absorbs_residual(&f));
    att_graph_destroy(&f.graph);
}
