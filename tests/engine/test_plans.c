/* What compiling removes from a graph, and how it chooses group sizes. */
#include "engine/network.h"
#include "engine/plan/plan.h"
#include "test.h"

static att_plan_facts compile(att_graph *graph, att_purpose purpose)
{
    att_plan_options options = {.purpose = purpose, .backend = "cpu"};
    att_plan *plan;
    if (att_plan_compile(graph, &options, &plan) != ATT_OK)
        fail_msg("it does not compile");
    att_plan_facts facts = att_plan_describe(plan);
    att_plan_destroy(&plan);
    return facts;
}

static void make(att_context **context, att_graph **graph)
{
    assert_int_equal(att_context_create(NULL, context), ATT_OK);
    assert_int_equal(att_graph_create(*context, ATT_F32, graph), ATT_OK);
}

/* All nodes of a chain that leads to no output are removed, not only the last one. */
TEST(nothing_dead_is_left)
{
    att_context *context;
    att_graph *graph;
    make(&context, &graph);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(3, 4));
    att_graph_output(graph, "y", att_gelu(graph, x));
    att_gelu(graph, att_gelu(graph, att_gelu(graph, x)));
    assert_int_equal(compile(graph, ATT_INFER).steps, 1);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

enum { ROWS = 1, WIDE = 20, NARROW = 12 };

/* Runs x W' V' with weights W [20, 12], of which V is [12, 20]. */
static void run_views(const char *backend, float y[ROWS * NARROW])
{
    att_context *context;
    att_graph *graph;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_plan_options options = att_plan_options_defaults();
    float x[ROWS * NARROW];
    options.backend = backend;
    for (int i = 0; i < ROWS * NARROW; i++)
        x[i] = (float)(i % 7) - 3;
    make(&context, &graph);
    att_value in = att_graph_input(graph, "x", ATT_F32, att_shape_of(ROWS, NARROW));
    att_value w = att_graph_parameter(graph, "w", att_shape_of(WIDE, NARROW), (att_init){ATT_INIT_NORMAL, 1}, true);
    att_value v = att_reshape(graph, w, att_shape_of(NARROW, WIDE));
    att_graph_output(graph, "y", att_linear(graph, att_linear(graph, in, w, ATT_NONE), v, ATT_NONE));
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(plan->prologue.count, 0);
    assert_int_equal(plan->derived_bytes, 0);
    assert_int_equal(att_weights_create(graph, backend, &weights), ATT_OK);
    assert_int_equal(att_weights_initialise(weights, 1), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, 1, &session), ATT_OK);
    assert_int_equal(att_session_bind(session, "x", x), ATT_OK);
    assert_int_equal(att_session_run(session, 1), ATT_OK);
    assert_int_equal(att_session_output(session, "y", 0, 1, y), ATT_OK);
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* Another shape of a shared value takes no step and no memory. Layers that read both shapes pack them separately. */
TEST(a_shared_value_of_another_shape_is_a_view)
{
    float ref[ROWS * NARROW], cpu[ROWS * NARROW];
    run_views("ref", ref);
    run_views("cpu", cpu);
    for (int i = 0; i < ROWS * NARROW; i++)
        assert_true(fabsf(ref[i] - cpu[i]) <= 3e-5F); /* measured: 4.8e-6, of values up to 60 */
}

/* The gradient flows into the map that boxes are read from, and not through the boxes. */
TEST(boxes_are_constants_for_the_gradient)
{
    static const att_box_proposals_options proposing = {
        .anchors = {.size = 4, .stride = {{1, 1}}}, .per_level = 5, .most = 3, .overlap = 0.7};
    static const att_roi_align_options reading = {.side = 1, .samples = 2, .stride = 1, .finest = 4};
    att_context *context;
    att_graph *graph;
    att_proposals proposals;
    make(&context, &graph);
    att_value map = att_graph_input(graph, "map", ATT_F32, att_shape_of(6, 6, NETWORK_WIDTH));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value size = att_graph_input(graph, "size", ATT_F32, att_shape_of(2));
    map = network_linear(graph, "map", map, NETWORK_CLASSES);
    const att_value objectness = network_linear(graph, "objectness", map, ATT_BOX_RATIOS),
                    deltas = network_linear(graph, "deltas", map, 4 * ATT_BOX_RATIOS);
    att_box_proposals(graph, &objectness, &deltas, 1, size, &proposing, &proposals);
    att_value y = att_roi_align(graph, &map, 1, proposals.boxes, proposals.count, &reading);
    y = att_token_mean(graph, att_reshape(graph, y, att_shape_of(3, NETWORK_CLASSES)), 0);
    y = att_add(graph, y, network_linear(graph, "boxes", att_token_mean(graph, proposals.boxes, 0), NETWORK_CLASSES));
    att_graph_output(graph, "loss", att_cross_entropy(graph, y, target, 0));
    assert_true(compile(graph, ATT_TRAIN).steps > 0);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* Returns the number of training steps of a norm that `readers` linear layers read. */
static int steps_with(int readers)
{
    att_context *context;
    att_graph *graph;
    make(&context, &graph);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(3, NETWORK_WIDTH));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value norm = network_norm(graph, "norm", network_linear(graph, "first", x, NETWORK_WIDTH)), sum = ATT_NONE;
    for (int i = 0; i < readers; i++) {
        char name[32];
        snprintf(name, sizeof name, "reader%d", i);
        att_value y = network_linear(graph, name, norm, NETWORK_WIDTH);
        sum = i ? att_add(graph, sum, y) : y;
    }
    att_graph_output(graph, "loss", att_cross_entropy(graph, att_token_mean(graph, sum, 0), target, 0));
    int steps = compile(graph, ATT_TRAIN).steps;
    att_graph_destroy(&graph);
    att_context_destroy(&context);
    return steps;
}

/* Each further reader adds three steps: forward (which absorbs the sum) and both gradients (likewise), but no second
 * norm. */
TEST(a_value_is_recomputed_once)
{
    int one = steps_with(1), two = steps_with(2), three = steps_with(3);
    assert_int_equal(three - two, two - one);
    assert_int_equal(three - two, 3);
}

/* A value has 16 MiB per sample: 64 samples would take gigabytes. */
TEST(large_activations_make_groups_small)
{
    att_context *context;
    att_graph *graph;
    make(&context, &graph);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(4 << 20));
    for (int i = 0; i < 4; i++)
        x = att_gelu(graph, x);
    att_graph_output(graph, "y", x);
    att_plan_facts facts = compile(graph, ATT_INFER);
    assert_true(facts.arena_bytes <= 96u << 20);
    assert_true(facts.group >= 1 && facts.group <= 4);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* Only a probe reads two values of 4 MiB per sample: without them, the group has the largest possible size. */
TEST(probes_do_not_make_groups_small)
{
    for (int observed = 0; observed < 2; observed++) {
        att_context *context;
        att_graph *graph;
        make(&context, &graph);
        att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(1 << 10, 1 << 10));
        att_graph_output(graph, "y", att_token_mean(graph, x, 0));
        if (observed)
            att_graph_probe(graph, "probe", att_token_mean(graph, att_gelu(graph, att_gelu(graph, x)), 0));
        assert_int_equal(compile(graph, ATT_INFER).group, 64);
        att_graph_destroy(&graph);
        att_context_destroy(&context);
    }
}

/* An inference plan with both outputs, and one with "y" only. */
TEST(outputs_that_are_not_wanted_cost_nothing)
{
    static const char *const wanted[] = {"y", NULL}, *const unknown[] = {"y", "z", NULL};
    enum { ELEMENTS = 5 };
    const float in[ELEMENTS] = {-2, -1, 0, 1, 2};
    float all[ELEMENTS], alone[ELEMENTS];
    att_context *context;
    att_graph *graph;
    att_weights *weights;
    att_plan *plan = NULL;
    att_session *session;
    make(&context, &graph);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(ELEMENTS));
    att_value other = att_graph_input(graph, "other", ATT_F32, att_shape_of(ELEMENTS));
    att_value y = att_gelu(graph, x);
    att_graph_output(graph, "y", y);
    att_graph_output(graph, "sum", att_gelu(graph, att_add(graph, y, other)));
    att_graph_probe(graph, "probe", att_gelu(graph, y));
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    for (int only = 0; only < 2; only++) {
        att_plan_options options = {.purpose = ATT_INFER, .backend = "cpu", .outputs = only ? wanted : NULL};
        assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
        assert_string_equal(att_plan_input_at(plan, 0).name, "x");
        assert_int_equal(att_plan_input_at(plan, 0).shape.dims[0], ELEMENTS);
        assert_true(!att_plan_input_at(plan, only ? 1 : 2).name && !att_plan_input_at(plan, -1).name);
        assert_string_equal(att_plan_output_at(plan, 0).name, "y");
        assert_int_equal(att_plan_output_at(plan, 0).dtype, ATT_F32);
        assert_true(!att_plan_output_at(plan, only ? 1 : 3).name);
        if (only)
            assert_int_equal(att_plan_describe(plan).steps, 1);
        assert_int_equal(att_session_create(plan, weights, 1, &session), ATT_OK);
        assert_int_equal(att_session_bind(session, "x", in), ATT_OK);
        assert_int_equal(att_session_bind(session, "other", in), only ? ATT_ERR_NOT_FOUND : ATT_OK);
        assert_int_equal(att_session_run(session, 1), ATT_OK);
        assert_int_equal(att_session_output(session, "y", 0, 1, only ? alone : all), ATT_OK);
        if (only)
            assert_int_not_equal(att_session_output(session, "probe", 0, 1, alone), ATT_OK);
        att_session_destroy(&session);
        att_plan_destroy(&plan);
    }
    assert_memory_equal(all, alone, sizeof all);
    att_plan_options options = {.purpose = ATT_INFER, .backend = "cpu", .outputs = unknown};
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_ERR_NOT_FOUND);
    assert_string_equal(att_context_message(context), "there is no output \"z\"");
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}
