/* Sizes beyond the memory limit, or beyond what can be counted, are refused with a message before anything is
 * allocated. */
#include "base/core/memory.h"
#include "engine/network.h"
#include "test.h"

enum { SIZE = 16, THREADS = 2 };

static att_context *context_of(size_t memory_limit)
{
    att_context *context;
    att_settings settings = att_settings_defaults();
    settings.threads = THREADS;
    settings.memory_limit = memory_limit;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    return context;
}

static att_graph *network_of(att_context *context)
{
    att_graph *graph;
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    network_build(graph, SIZE);
    return graph;
}

/* With one byte less than it needs, a session is refused before it allocates anything. */
TEST(sessions_are_refused_a_byte_below_their_need)
{
    size_t before = 0, need = 0, limit = SIZE_MAX;
    for (int round = 0; round < 3; round++) {
        att_context *context = context_of(limit);
        att_graph *graph = network_of(context);
        att_plan_options options = {.purpose = ATT_TRAIN, .backend = "cpu"};
        att_plan *plan;
        att_weights *weights;
        att_session *session = NULL;
        assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
        assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
        att_allocation_count count = att_context_allocations(context);
        att_status status = att_session_create(plan, weights, 40, &session);
        if (round == 0) {
            before = count.bytes_now;
            need = att_context_allocations(context).bytes_now - before;
            limit = before + need;
        } else if (round == 1) {
            limit = before + need * 3 / 4;
        } else {
            assert_null(session);
            assert_int_equal(att_context_allocations(context).calls, count.calls); /* nothing was allocated */
            assert_message(context, " for a session on 2 threads (");
            assert_message(context, " of values between layers");
            assert_message(context, "; smaller images, a smaller network, fewer threads or samples need less) (");
        }
        assert_int_equal(status, round == 2 ? ATT_ERR_MEMORY : ATT_OK);
        att_session_destroy(&session);
        att_weights_destroy(&weights);
        att_plan_destroy(&plan);
        att_graph_destroy(&graph);
        att_context_destroy(&context);
    }
}

TEST(outputs_of_a_batch_count)
{
    att_context *context = context_of(64 << 20);
    att_graph *graph = network_of(context);
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, INT32_MAX, &session), ATT_ERR_MEMORY);
    assert_message(context,
                   "out of memory: cannot allocate 48.0 GiB for a session on 2 threads (48.0 GiB of outputs; ");
    assert_message(context, "of at most 64.0 MiB are in use");
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

TEST(weights_name_their_largest)
{
    att_context *context = context_of(64 << 20);
    att_graph *graph;
    att_weights *weights;
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    network_parameter(graph, "small", att_shape_of(10, 3), 1);
    network_parameter(graph, "head.weight", att_shape_of(10000000, 192), 1);
    network_parameter(graph, "middle", att_shape_of(1000, 3), 1);
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_ERR_MEMORY);
    assert_message(
        context,
        "out of memory: cannot allocate 7.2 GiB for the weights (the largest are \"head.weight\", [10000000, 192]) (");
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* Initialising weights needs no second copy of them. */
TEST(initialising_weights_allocates_nothing)
{
    att_context *context = context_of(10 << 20);
    att_graph *graph;
    att_weights *weights;
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    network_parameter(graph, "weight", att_shape_of(2 << 20), 1);
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    size_t before = att_context_allocations(context).bytes_peak;
    assert_int_equal(att_weights_initialise(weights, 1), ATT_OK);
    assert_int_equal(att_context_allocations(context).bytes_peak, before);
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* More elements than can be counted are refused; the attention map, which no plan stores, may be large. */
TEST(shapes_stay_countable)
{
    att_context *context = context_of(64 << 20);
    const int64_t most = (int64_t)1 << 38;
    att_graph *graph;
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    assert_true(att_graph_input(graph, "x", ATT_F32, att_shape_of(most)) != ATT_NONE);
    assert_true(network_parameter(graph, "w", att_shape_of(most), 1) != ATT_NONE);
    assert_int_equal(att_graph_input(graph, "y", ATT_F32, att_shape_of(most + 1)), ATT_NONE);
    assert_message(context, "\"y\" cannot have the shape [274877906945]");
    att_graph_destroy(&graph);
    for (int side = 1 << 12; side <= 1 << 14; side *= 4) { /* [4, side^2, side^2] */
        assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
        att_value qkv = att_graph_input(graph, "qkv", ATT_F32, att_shape_of((int64_t)side * side, 12));
        att_attention_options options = {.heads = 4, .grid_h = side, .grid_w = side};
        if (side == 1 << 12) {
            assert_true(att_attention(graph, qkv, ATT_NONE, ATT_NONE, &options) != ATT_NONE);
        } else {
            assert_int_equal(att_attention(graph, qkv, ATT_NONE, ATT_NONE, &options), ATT_NONE);
            assert_message(context, "a value of the shape [4, 268435456, 268435456] has too many elements");
        }
        att_graph_destroy(&graph);
    }
    att_context_destroy(&context);
}

TEST(a_value_of_terabytes_is_not_planned)
{
    att_context *context = context_of(0);
    att_graph *graph;
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of((int64_t)1 << 30, 1));
    att_value weight = network_parameter(graph, "w", att_shape_of((int64_t)1 << 16, 1), 1);
    att_value wide = att_linear(graph, x, weight, ATT_NONE);
    att_value back = network_parameter(graph, "v", att_shape_of(1, (int64_t)1 << 16), 1);
    att_graph_output(graph, "y", att_linear(graph, wide, back, ATT_NONE));
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_ERR_MEMORY);
    assert_message(context, "out of memory: cannot allocate 256.0 TiB for a value between layers");
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}
