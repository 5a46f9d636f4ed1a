/* Batch norm in training plans: statistics over all samples, gradients through them, running statistics; the same
 * results for any group size and number of lanes. */
#include "engine/ops/finite_difference.h"
#include "engine/plan/plan.h"

TEST_GROUP(fd_setup, close_context)

enum { ROWS = 6, CHANNELS = 5, HIDDEN = 7 };

static att_value norm(att_graph *graph, const char *name, att_value x, bool frozen)
{
    char text[4][48];
    const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof text[i], "%s.%s", name, parts[i]);
    att_shape of = att_value_shape(graph, x), shape = att_shape_of(of.dims[of.rank - 1]);
    att_graph_scope(graph, name);
    att_value gamma = att_graph_parameter(graph, text[0], shape, (att_init){ATT_INIT_UNIFORM, 1}, false);
    att_value beta = att_graph_parameter(graph, text[1], shape, (att_init){ATT_INIT_UNIFORM, 1}, false);
    att_value mean = att_graph_buffer(graph, text[2], shape, 0.25);
    att_value variance = att_graph_buffer(graph, text[3], shape, 2);
    return att_batch_norm(graph, x, gamma, beta, mean, variance, &(att_batch_norm_options){.frozen = frozen});
}

static att_value linear(att_graph *graph, const char *name, att_value x, int64_t inputs, int64_t outputs)
{
    char text[48];
    snprintf(text, sizeof text, "%s.weight", name);
    att_value weight =
        att_graph_parameter(graph, text, att_shape_of(outputs, inputs), (att_init){ATT_INIT_NORMAL, 0.5}, true);
    return att_linear(graph, x, weight, ATT_NONE);
}

/* Two residual branches with two norms each: values are used in several segments and computed again, and gradients are
 * added. */
static fd_model make_network(bool frozen)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, ROWS / 2, CHANNELS), 2, 1, 0);
    x = linear(graph, "stem", x, CHANNELS, CHANNELS);
    for (int i = 0; i < 2; i++) {
        const char *const names[2][4] = {{"a1", "b1", "a2", "b2"}, {"a3", "b3", "a4", "b4"}};
        att_value y =
            att_relu(graph, norm(graph, names[i][1], linear(graph, names[i][0], x, CHANNELS, HIDDEN), frozen));
        y = norm(graph, names[i][3], linear(graph, names[i][2], y, HIDDEN, CHANNELS), frozen);
        x = att_relu(graph, att_add(graph, x, y));
    }
    fd_loss_of(&model, x);
    return model;
}

/* Two parallel branches whose weight gradients are computed in one segment, with another parameter between them. */
static fd_model make_branches(void)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, ROWS / 2, CHANNELS), 2, 1, 0), weights[3];
    const char *const names[] = {"left.weight", "stem.weight", "right.weight"};
    for (int i = 0; i < 3; i++)
        weights[i] = att_graph_parameter(graph, names[i], att_shape_of(CHANNELS, CHANNELS),
                                         (att_init){ATT_INIT_NORMAL, 0.5}, true);
    x = norm(graph, "first", att_linear(graph, x, weights[1], ATT_NONE), false);
    att_value left = norm(graph, "second", att_linear(graph, x, weights[0], ATT_NONE), false);
    att_value right = norm(graph, "third", att_linear(graph, x, weights[2], ATT_NONE), false);
    fd_loss_of(&model, att_relu(graph, att_add(graph, left, right)));
    return model;
}

/* The lanes of a segment have room for the gradients that it adds to, wherever these lie. */
TEST(gradients_of_a_segment_need_not_be_neighbours)
{
    fd_model model = make_branches();
    printf("largest error of a gradient: %.2g\n", fd_check(&model, "branches", 1, 1e-7));
    fd_run run = fd_open(&model, 1);
    /* In units of 64 bytes: two of three weights, and the vectors of the first norm. */
    size_t most = 2 * 256 + 2 * 64;
    assert_int_equal(att_plan_describe(run.plan).gradient_bytes, (FD_LANES - 1) * most);
    fd_close(&run);
    fd_destroy(&model);
}

TEST(gradients_go_through_the_statistics)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        fd_model model = make_network(frozen);
        printf("largest error of a gradient: %.2g\n", fd_check(&model, frozen ? "frozen" : "training", 1, 1e-7));
        fd_destroy(&model);
    }
}

/* One norm on the input. */
static fd_model make_single(int64_t rows)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, att_shape_of(rows, CHANNELS), 2, 1, 0);
    fd_loss_of(&model, norm(model.graph, "bn", x, false));
    return model;
}

TEST(running_statistics_follow_the_batch)
{
    fd_model model = make_single(ROWS);
    fd_run run = fd_open(&model, 1);
    fd_evaluate(&run);
    double mean[CHANNELS], variance[CHANNELS];
    must(att_weights_get(run.weights, -1, att_weights_find(run.weights, "bn.running_mean"), mean, CHANNELS));
    must(att_weights_get(run.weights, -1, att_weights_find(run.weights, "bn.running_var"), variance, CHANNELS));
    const double *x = model.input[0].rows;
    const int count = FD_BATCH * ROWS;
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < count; i++)
            sum += x[i * CHANNELS + c] / count;
        for (int i = 0; i < count; i++)
            squares += (x[i * CHANNELS + c] - sum) * (x[i * CHANNELS + c] - sum);
        assert_true(fabs(mean[c] - (0.9 * 0.25 + 0.1 * sum)) < 1e-14); /* measured: 1e-16 */
        assert_true(fabs(variance[c] - (0.9 * 2 + 0.1 * squares / (count - 1))) < 1e-14);
    }
    fd_close(&run);
    fd_destroy(&model);
}

TEST(one_row_in_all_is_refused)
{
    fd_model model = make_single(1);
    fd_run run = fd_open(&model, 1);
    assert_fails(context, att_session_accumulate(run.session, run.gradient, 1, 1, 9, 4, 0), ATT_ERR_ARGUMENT,
                 "batch norm needs more than one row");
    must(att_session_accumulate(run.session, run.gradient, 2, 1, 9, 4, 0));
    fd_close(&run);
    fd_destroy(&model);
}

typedef struct cut {
    int group, lanes;
} cut;

/* Returns the norm of the gradient with these group sizes and lanes. */
static double norm_with(const fd_model *model, cut how, int *segments)
{
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.backend = "ref";
    options.group = how.group;
    options.lanes = how.lanes;
    fd_run run = {0};
    must(att_plan_compile(model->graph, &options, &run.plan));
    must(att_weights_create(model->graph, "ref", &run.weights));
    must(att_weights_initialise(run.weights, 1));
    must(att_session_create(run.plan, run.weights, FD_BATCH + 3, &run.session));
    must(att_gradient_create(run.weights, &run.gradient));
    for (int i = 0; i < model->input_count; i++)
        must(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    fd_evaluate(&run);
    double norm_of_gradient = fd_norm(&run);
    *segments = att_plan_describe(run.plan).segments;
    fd_close(&run);
    return norm_of_gradient;
}

TEST(groups_and_lanes_do_not_change_the_gradient)
{
    fd_model model = make_network(false);
    int segments;
    double first = norm_with(&model, (cut){1, 1}, &segments);
    assert_int_equal(segments, 9); /* four norms forward, four backward */
    const cut cuts[] = {{1, 2}, {2, 1}, {4, 2}, {8, 3}};
    for (int i = 0; i < 4; i++) {
        double other = norm_with(&model, cuts[i], &segments);
        assert_true(fabs(other / first - 1) < 1e-13); /* measured: 4e-16 */
    }
    fd_destroy(&model);
}
