/* Weights that are given back when they are packed, and made again when somebody needs them. */
#include "base/core/memory.h"
#include "engine/fixture.h"
#include "engine/session/session.h"
#include "engine/weights/weights.h"

/* A weight has 256 KiB, in whole pages. */
enum { WIDTH = 256, TOKENS = 3, SEED = 5 };

/* also_added: a sum reads the weight as it is. */
static att_graph *make_layer(bool also_added)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, WIDTH));
    att_value weight = network_parameter(graph, "weight", att_shape_of(WIDTH, WIDTH), 0.3);
    att_graph_output(graph, "y", att_linear(graph, x, weight, ATT_NONE));
    if (also_added)
        att_graph_output(graph, "z",
                         att_add(graph, att_graph_input(graph, "map", ATT_F32, att_shape_of(WIDTH, WIDTH)), weight));
    return graph;
}

static float *input(void)
{
    static float x[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        x[i] = (float)((i * 7919 + 13) % 1009) / 504.5f - 1;
    return x;
}

static void run(const runner *it, float *y)
{
    static const float map[WIDTH * WIDTH];
    must(att_session_bind(it->session, "x", input()));
    (void)att_session_bind(it->session, "map", map); /* an input of few */
    must(att_session_run(it->session, 1));
    must(att_session_output(it->session, "y", 0, 1, y));
}

static const float *plain(const runner *it)
{
    return it->weights->own.values;
}

static bool is_given_back(const runner *it)
{
    int zeros = 0;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        zeros += plain(it)[i] == 0;
    return zeros > WIDTH * WIDTH / 2;
}

static void check_values(const runner *it)
{
    static float values[WIDTH * WIDTH];
    att_weights *fresh;
    att_graph *graph = make_layer(false);
    must(att_weights_create(graph, "cpu", &fresh));
    must(att_weights_initialise(fresh, SEED));
    must(att_weights_get(it->weights, -1, 0, values, WIDTH * WIDTH));
    assert_memory_equal(values, fresh->own.values, sizeof values);
    att_weights_destroy(&fresh);
    att_graph_destroy(&graph);
}

TEST(packed_weights_are_given_back_and_made_again)
{
    float first[TOKENS * WIDTH], again[TOKENS * WIDTH];
    runner it = make_runner(make_layer(false), att_plan_options_defaults(), 1);
    assert_false(is_given_back(&it));
    run(&it, first);
    assert_true(is_given_back(&it));
    run(&it, again);
    assert_memory_equal(first, again, sizeof first);
    assert_true(is_given_back(&it));
    check_values(&it);
    assert_false(is_given_back(&it));
    run(&it, again);
    assert_memory_equal(first, again, sizeof first);
    free_runner(&it);
}

/* The second session packs the weights that the first has given back. Then they stay. */
TEST(another_session_gets_the_weights)
{
    float first[TOKENS * WIDTH], again[TOKENS * WIDTH];
    runner it = make_runner(make_layer(false), att_plan_options_defaults(), 1), other = {.weights = it.weights};
    run(&it, first);
    must(att_session_create(it.plan, it.weights, 1, &other.session));
    run(&other, again);
    assert_memory_equal(first, again, sizeof first);
    assert_false(is_given_back(&it));
    run(&it, again);
    assert_memory_equal(first, again, sizeof first);
    att_session_destroy(&other.session);
    free_runner(&it);
}

/* Twice the weights give twice the output, and are not given back: nobody could make them again. */
TEST(changed_weights_are_kept)
{
    static float values[WIDTH * WIDTH];
    float once[TOKENS * WIDTH], twice[TOKENS * WIDTH];
    runner it = make_runner(make_layer(false), att_plan_options_defaults(), 1);
    run(&it, once);
    must(att_weights_get(it.weights, -1, 0, values, WIDTH * WIDTH));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        values[i] *= 2;
    must(att_weights_set(it.weights, -1, 0, values, WIDTH * WIDTH));
    run(&it, twice);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        assert_true(twice[i] == 2 * once[i]);
    assert_memory_equal(plain(&it), values, sizeof values);
    free_runner(&it);
}

TEST(weights_that_another_step_reads_are_kept)
{
    float y[TOKENS * WIDTH];
    runner it = make_runner(make_layer(true), att_plan_options_defaults(), 1);
    run(&it, y);
    assert_false(is_given_back(&it));
    free_runner(&it);
}

TEST(weights_that_are_trained_are_kept)
{
    float y[TOKENS * WIDTH];
    att_gradient *gradient;
    runner it = make_runner(make_layer(false), att_plan_options_defaults(), 1);
    must(att_gradient_create(it.weights, &gradient));
    run(&it, y);
    assert_false(is_given_back(&it));
    att_gradient_destroy(&gradient);
    free_runner(&it);
}

enum { SIDE = 4, OUTPUTS = WIDTH / 4, CONVOLVED = (SIDE - 1) * (SIDE - 1) * OUTPUTS };

/* Runs a convolution whose weight is that of the layer, or the same weight alone if there is no layer. */
static void convolve(bool layer, float *y)
{
    static float map[SIDE * SIDE * WIDTH];
    att_graph *graph = layer ? make_layer(false) : make_graph();
    att_value weight =
        layer ? graph->parameters.items[0].value : network_parameter(graph, "weight", att_shape_of(WIDTH, WIDTH), 0.3);
    att_value x = att_graph_input(graph, "map", ATT_F32, att_shape_of(SIDE, SIDE, WIDTH));
    weight = att_reshape(graph, weight, att_shape_of(OUTPUTS, WIDTH, 2, 2));
    att_graph_output(graph, "convolved", att_conv2d(graph, x, weight, ATT_NONE, NULL));
    runner it = make_runner(graph, att_plan_options_defaults(), 1);
    for (int i = 0; i < SIDE * SIDE * WIDTH; i++)
        map[i] = input()[i % (TOKENS * WIDTH)];
    must(att_session_bind(it.session, "map", map));
    (void)att_session_bind(it.session, "x", input()); /* an input of the layer */
    must(att_session_run(it.session, 1));
    must(att_session_output(it.session, "convolved", 0, 1, y));
    assert_int_equal(it.session->packs_of[0], layer ? 2 : 1);
    assert_true(is_given_back(&it));
    free_runner(&it);
}

/* The second pack reads the weight after the first one. */
TEST(weights_that_are_packed_twice_are_given_back_at_the_end)
{
    float twice[CONVOLVED], once[CONVOLVED];
    convolve(true, twice);
    convolve(false, once);
    assert_memory_equal(twice, once, sizeof once);
}

static att_status fail_to_make(void *user, att_weights *weights)
{
    (void)weights;
    (*(int *)user)++;
    return ATT_ERR_IO;
}

/* Every later use fails, instead of computing with zeros. */
TEST(a_failure_to_make_weights_again_is_reported)
{
    static float values[WIDTH * WIDTH];
    float y[TOKENS * WIDTH];
    int calls = 0;
    runner it = make_runner(make_layer(false), att_plan_options_defaults(), 1), other = {.weights = it.weights};
    att_weights_set_source(it.weights, fail_to_make, &calls);
    run(&it, y);
    assert_true(is_given_back(&it));
    must(att_session_create(it.plan, it.weights, 1, &other.session));
    must(att_session_bind(other.session, "x", input()));
    for (int i = 0; i < 2; i++)
        assert_int_equal(att_session_run(other.session, 1), ATT_ERR_IO);
    assert_int_equal(att_weights_get(it.weights, -1, 0, values, WIDTH * WIDTH), ATT_ERR_IO);
    assert_int_equal(att_weights_set(it.weights, -1, 0, values, WIDTH * WIDTH), ATT_ERR_IO);
    assert_int_equal(calls, 4);
    run(&it, y); /* which needs them no more */
    att_session_destroy(&other.session);
    free_runner(&it);
}
