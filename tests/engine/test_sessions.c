/* Sessions: nodes with equal shapes, weights that are set again, outputs under several names, probes, and gradient
 * clipping. */
#include <attscope/update.h>

#include "engine/fixture.h"

enum { SIZE = 4, BATCH = 6, WIDTH = 7, TOKENS = 3 };

/* Two nodes of one op and shape that differ only in their attributes. Powers of two, so results are exact. */
TEST(attributes_are_a_node_s_own)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, WIDTH));
    x = att_context_broadcast(graph, x, 2, 0, ATT_NONE);
    att_graph_output(graph, "y", att_context_broadcast(graph, x, 4, 0, ATT_NONE));
    runner it = make_runner(graph, att_plan_options_defaults(), 1);
    float in[TOKENS * WIDTH], out[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        in[i] = (float)i - 4;
    assert_int_equal(att_session_bind(it.session, "x", in), ATT_OK);
    assert_int_equal(att_session_run(it.session, 1), ATT_OK);
    assert_int_equal(att_session_output(it.session, "y", 0, 1, out), ATT_OK);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        assert_true(out[i] == 8 * in[i]);
    free_runner(&it);
}

/* One value with several names: as outputs, as a probe, and as the output of an op that only training runs run. */
TEST(a_value_comes_back_under_every_name)
{
    static const char *const names[] = {"probe", "first", "second", "dropped"};
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, WIDTH));
    att_value y = att_context_broadcast(graph, x, 2, 0, ATT_NONE);
    att_graph_probe(graph, names[0], y);
    att_graph_output(graph, names[1], y);
    att_graph_output(graph, names[2], y);
    att_graph_output(graph, names[3], att_dropout(graph, y, 0.5));
    runner it = make_runner(graph, att_plan_options_defaults(), BATCH);
    float in[BATCH * TOKENS * WIDTH], out[BATCH * TOKENS * WIDTH];
    for (int i = 0; i < BATCH * TOKENS * WIDTH; i++)
        in[i] = (float)i - 4;
    assert_int_equal(att_session_bind(it.session, "x", in), ATT_OK);
    for (int observing = 1; observing >= 0; observing--) {
        att_session_observe(it.session, observing);
        assert_int_equal(att_session_run(it.session, BATCH), ATT_OK);
        for (int name = observing ? 0 : 1; name < 4; name++) {
            assert_int_equal(att_session_output(it.session, names[name], 0, BATCH, out), ATT_OK);
            for (int i = 0; i < BATCH * TOKENS * WIDTH; i++)
                if (out[i] != 2 * in[i])
                    fail_msg("%s: element %d is %g, not %g", names[name], i, (double)out[i], 2.0 * (double)in[i]);
        }
        for (int i = 0; i < BATCH * TOKENS * WIDTH; i++)
            in[i] *= 3;
    }
    free_runner(&it);
}

/* A probe can be read after each run that observed, and only then, whatever the next run does. */
TEST(probes_are_of_the_last_run)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(WIDTH));
    att_value y = att_tanh(graph, x);
    att_graph_probe(graph, "probe", y);
    att_graph_output(graph, "y", att_gelu(graph, y));
    runner it = make_runner(graph, att_plan_options_defaults(), 1);
    float in[WIDTH] = {1, 2, 3}, out[WIDTH];
    assert_int_equal(att_session_bind(it.session, "x", in), ATT_OK);
    for (int observing = 0; observing < 2; observing++) {
        att_session_observe(it.session, observing);
        assert_int_equal(att_session_run(it.session, 1), ATT_OK);
        att_session_observe(it.session, !observing);
        assert_int_equal(att_session_output(it.session, "probe", 0, 1, out), observing ? ATT_OK : ATT_ERR_ARGUMENT);
        if (!observing)
            assert_message(context, "\"probe\" is a probe, and probes were off in the last run");
    }
    assert_true(fabs((double)out[1] - tanh(2)) < 1e-6);
    free_runner(&it);
}

/* Weights are packed again: twice the weights give twice the output. */
TEST(weights_that_are_set_are_used)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, WIDTH));
    att_value weight = network_parameter(graph, "weight", att_shape_of(WIDTH, WIDTH), 0.3);
    att_graph_output(graph, "y", att_linear(graph, x, weight, ATT_NONE));
    runner it = make_runner(graph, att_plan_options_defaults(), 1);
    float in[TOKENS * WIDTH], once[TOKENS * WIDTH], twice[TOKENS * WIDTH], values[WIDTH * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        in[i] = (float)i - 4;
    assert_int_equal(att_session_bind(it.session, "x", in), ATT_OK);
    assert_int_equal(att_session_run(it.session, 1), ATT_OK);
    assert_int_equal(att_session_output(it.session, "y", 0, 1, once), ATT_OK);
    assert_int_equal(att_weights_get(it.weights, -1, 0, values, WIDTH * WIDTH), ATT_OK);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        values[i] *= 2;
    assert_int_equal(att_weights_set(it.weights, -1, 0, values, WIDTH * WIDTH), ATT_OK);
    assert_int_equal(att_session_run(it.session, 1), ATT_OK);
    assert_int_equal(att_session_output(it.session, "y", 0, 1, twice), ATT_OK);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        assert_true(twice[i] == 2 * once[i]);
    free_runner(&it);
}

/* Outputs read by the caller are f32 in mixed precision too, even if all other readers take bf16. */
TEST(outputs_stay_wide)
{
    float in[BATCH][WIDTH], middle[2][BATCH][WIDTH];
    for (int i = 0; i < BATCH * WIDTH; i++)
        in[i / WIDTH][i % WIDTH] = (float)(i % 5) - 2;
    for (int mixed = 0; mixed < 2; mixed++) {
        att_graph *graph = make_graph();
        att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(WIDTH));
        x = network_linear(graph, "first", x, WIDTH);
        att_graph_output(graph, "middle", x);
        att_graph_output(graph, "y", network_linear(graph, "second", x, WIDTH));
        att_plan_options options = {.purpose = ATT_INFER, .backend = "ref", .precision = mixed ? ATT_MIXED : ATT_FULL};
        runner it = make_runner(graph, options, BATCH);
        assert_int_equal(att_session_bind(it.session, "x", in), ATT_OK);
        assert_int_equal(att_session_run(it.session, BATCH), ATT_OK);
        assert_int_equal(att_session_output(it.session, "middle", 0, BATCH, middle[mixed]), ATT_OK);
        free_runner(&it);
    }
    for (int i = 0; i < BATCH * WIDTH; i++) /* small whole numbers are exact in bf16 */
        assert_true(middle[1][i / WIDTH][i % WIDTH] == middle[0][i / WIDTH][i % WIDTH]);
}

/* Returns the largest change of the head's bias in one step of plain gradient descent; *norm: the norm of the gradient.
 * */
static double step_with_clip(double clip_norm, double *norm)
{
    att_graph *graph = make_graph();
    network_build(graph, SIZE);
    runner it = make_trainer(graph, (att_plan_options){.purpose = ATT_TRAIN, .backend = "cpu"}, "sgd", BATCH);
    float images[BATCH * SIZE * SIZE], before[NETWORK_CLASSES], after[NETWORK_CLASSES];
    int32_t targets[BATCH];
    network_data(images, targets, BATCH, SIZE);
    int bias = att_weights_find(it.weights, "head.bias");
    assert_int_equal(att_session_bind(it.session, "image", images), ATT_OK);
    assert_int_equal(att_session_bind(it.session, "target", targets), ATT_OK);
    assert_int_equal(att_weights_get(it.weights, -1, bias, before, NETWORK_CLASSES), ATT_OK);
    assert_int_equal(att_session_accumulate(it.session, it.gradient, BATCH, 1.0 / BATCH, 17, 0, 0), ATT_OK);
    assert_int_equal(att_update_reduce(it.update, norm), ATT_OK);
    att_hyper hyper = {.lr = 0.5, .clip_norm = clip_norm, .update = 1};
    assert_int_equal(att_update_apply(it.update, &hyper), ATT_OK);
    assert_int_equal(att_weights_get(it.weights, -1, bias, after, NETWORK_CLASSES), ATT_OK);
    double most = 0;
    for (int i = 0; i < NETWORK_CLASSES; i++)
        most = fmax(most, fabs((double)after[i] - before[i]));
    free_runner(&it);
    return most;
}

/* Measured: 9.7e-8 from half the step, mostly the 1e-6 that is added to the norm. */
TEST(clipping_shortens_long_gradients_only)
{
    double norm, same;
    double whole = step_with_clip(0, &norm);
    assert_true(whole > 1e-3);
    assert_true(step_with_clip(100 * norm, &same) == whole);
    assert_true(same == norm);
    double half = step_with_clip(norm / 2, &same);
    if (!(fabs(half / whole - 0.5) <= 5e-7))
        fail_msg("clipped to half the norm: %.9g of the step", half / whole);
}

/* The parts of a plan with three values of `rows` x 4 KiB that live at the same time. */
static int parts_of(int64_t rows)
{
    att_graph *graph = make_graph();
    att_plan *plan;
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(rows, 1024));
    att_value a = att_tanh(graph, x), b = att_tanh(graph, a), c = att_tanh(graph, b);
    att_graph_output(graph, "y", att_tanh(graph, att_add(graph, att_add(graph, a, b), c)));
    att_plan_options options = att_plan_options_defaults();
    CHECK(context, att_plan_compile(graph, &options, &plan));
    const int parts = att_plan_describe(plan).parts;
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    return parts;
}

TEST(threads_share_samples_that_need_much_memory)
{
    assert_int_equal(parts_of(3072), 2);
    assert_int_equal(parts_of(2048), 1);
}
