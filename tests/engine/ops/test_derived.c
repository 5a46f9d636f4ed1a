/* Values derived from parameters alone: computed once; their gradients are summed over the samples and propagated once.
 * */
#include "engine/ops/finite_difference.h"
#include "engine/session/session.h"

TEST_GROUP(fd_setup, close_context)

static att_value parameter(att_graph *graph, const char *name, att_shape shape)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, 0.6}, true);
}

static void check(fd_model *model, const char *what)
{
    /* Measured: up to 8e-11, 2e-9 with batch norm. */
    printf("%s: largest error of a gradient %.2g\n", what, fd_check(model, what, 1, 1e-8));
    fd_destroy(model);
}

/* y = x tanh(W)^T, like a standardised weight. */
TEST(weights_can_be_derived)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(3, 4), 1, 0, 0);
    att_value weight = att_tanh(graph, parameter(graph, "weight", att_shape_of(5, 4)));
    assert_int_equal(att_value_kind(graph, weight), ATT_SHARED);
    fd_loss_of(&model, att_linear(graph, x, weight, parameter(graph, "bias", att_shape_of(5))));
    check(&model, "weights");
}

/* A table is read at constant positions, and a network uses the result, as for relative positions. */
TEST(tables_can_be_read_at_constant_places)
{
    static const int32_t places[] = {0, 5, 2, 2, 1, 0, 4, 5, 5, 3, 0, 1};
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(3, 4), 1, 0, 0);
    att_value constant = att_graph_constant(graph, ATT_I32, att_shape_of(3, 4), places);
    att_value read = att_embed(graph, parameter(graph, "table", att_shape_of(6, 2)), constant);
    att_value rows = att_reshape(graph, read, att_shape_of(3, 8));
    att_value bias = att_tanh(graph, att_linear(graph, rows, parameter(graph, "mix.weight", att_shape_of(4, 8)),
                                                parameter(graph, "mix.bias", att_shape_of(4))));
    fd_loss_of(&model, att_silu(graph, att_add(graph, x, bias)));
    check(&model, "tables");
}

/* Samples read one derived value; another derived value reads it too, with a parameter and a derived weight as
 * operands; samples also read a parameter. */
TEST(derived_values_can_be_read_by_others)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(3, 4), 1, 0, 0);
    att_value a = parameter(graph, "a", att_shape_of(3, 4)), b = parameter(graph, "b", att_shape_of(4, 4));
    att_value first = att_silu(graph, a), weight = att_tanh(graph, b);
    att_value second = att_linear(graph, first, weight, ATT_NONE), third = att_linear(graph, a, weight, ATT_NONE);
    att_value y = att_add(graph, att_add(graph, att_add(graph, x, first), second), a);
    fd_loss_of(&model, att_silu(graph, att_linear(graph, att_add(graph, y, third), b, ATT_NONE)));
    check(&model, "others");
}

/* The body has several segments, and each adds to the gradient of the same derived weight. */
TEST(segments_can_read_derived_weights)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, 3, 4), 2, 1, 0);
    att_value weight = att_tanh(graph, parameter(graph, "weight", att_shape_of(4, 4)));
    for (int i = 0; i < 2; i++) {
        char name[4][32];
        const char *const parts[] = {"gamma", "beta", "mean", "variance"};
        for (int j = 0; j < 4; j++)
            snprintf(name[j], sizeof name[j], "norm%d.%s", i, parts[j]);
        x = att_linear(graph, att_silu(graph, x), weight, ATT_NONE);
        x = att_batch_norm(graph, x, parameter(graph, name[0], att_shape_of(4)),
                           parameter(graph, name[1], att_shape_of(4)),
                           att_graph_buffer(graph, name[2], att_shape_of(4), 0),
                           att_graph_buffer(graph, name[3], att_shape_of(4), 1), NULL);
    }
    fd_loss_of(&model, att_silu(graph, x));
    check(&model, "segments");
}

static int64_t calls_of(const att_session *session, const char *op)
{
    for (int i = 0; i < att_session_profile_count(session); i++)
        if (strcmp(att_session_profile_at(session, i).op, op) == 0)
            return att_session_profile_at(session, i).calls;
    return 0;
}

static fd_model tanh_weight(void)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, att_shape_of(3, 4), 1, 0, 0);
    att_value weight = att_tanh(model.graph, parameter(model.graph, "weight", att_shape_of(5, 4)));
    fd_loss_of(&model, att_linear(model.graph, x, weight, ATT_NONE));
    return model;
}

TEST(derived_values_are_computed_once_after_weights_changed)
{
    fd_model model = tanh_weight();
    fd_run run = fd_open(&model, 1);
    double values[20];
    must(att_session_profile(run.session, true));
    fd_evaluate(&run);
    fd_evaluate(&run);
    assert_int_equal(calls_of(run.session, "tanh"), 1);
    assert_int_equal(calls_of(run.session, "tanh_grad"), 2); /* once per batch */
    must(att_weights_get(run.weights, -1, 0, values, 20));
    must(att_weights_set(run.weights, -1, 0, values, 20));
    fd_evaluate(&run);
    assert_int_equal(calls_of(run.session, "tanh"), 2);
    assert_true(att_graph_cost(model.graph).macs == 3 * 4 * 5); /* per sample */
    fd_close(&run);
    fd_destroy(&model);
}

static double loss_at(fd_run *run, int64_t step)
{
    double loss[FD_BATCH];
    att_gradient_begin(run->gradient);
    must(att_session_accumulate(run->session, run->gradient, FD_BATCH, fd_scale, 9, step, 0));
    must(att_session_output(run->session, "loss", 0, FD_BATCH, loss));
    return loss[1];
}

/* One draw for all samples of an update, and another one for the next, even if the weights are the same. */
TEST(derived_values_are_dropped_once_for_each_update)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, att_shape_of(3, 4), 1, 0, 0);
    att_value weight = att_tanh(model.graph, parameter(model.graph, "weight", att_shape_of(5, 4)));
    weight = att_dropout(model.graph, weight, 0.4);
    assert_int_equal(att_value_kind(model.graph, weight), ATT_SHARED);
    fd_loss_of(&model, att_linear(model.graph, x, weight, ATT_NONE));
    fd_run run = fd_open(&model, 1);
    double first = loss_at(&run, 1), second = loss_at(&run, 2);
    assert_true(first != second);
    assert_true(loss_at(&run, 1) == first);
    fd_close(&run);
    check(&model, "dropped weights");
}

TEST(ops_that_need_samples_refuse_derived_values)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_graph_scope(graph, "table");
    att_drop_path(graph, parameter(graph, "weight", att_shape_of(5, 4)), 0.5);
    assert_int_equal(att_graph_status(graph), ATT_ERR_UNSUPPORTED);
    assert_string_equal(att_context_message(context),
                        "table: op \"drop_path\" needs a sample input, but all its inputs are shared by "
                        "all samples");
    fd_destroy(&model);
}

/* --- other gradients ---------------------------------------------------------------------------------------------- */

/* The gradient of the loss by the input, and by an intermediate value, against central differences. */
TEST(gradients_of_inputs_and_named_values_come_back)
{
    enum { WIDTH = 4 };
    static const char *const names[] = {"input0", "middle", NULL};
    for (int frozen = 0; frozen < 2; frozen++) {
        fd_model model = fd_create();
        att_graph *graph = model.graph;
        att_value x = fd_input(&model, ATT_F64, att_shape_of(WIDTH), 1, 0, 0);
        att_value middle = att_linear(graph, x, parameter(graph, "weight", att_shape_of(WIDTH, WIDTH)), ATT_NONE);
        att_graph_output(graph, "middle", middle);
        fd_loss_of(&model, att_silu(graph, middle));
        fd_run run = fd_open(&model, 1);
        att_plan *plan;
        att_session *session;
        const bool all[] = {true};
        att_plan_options options = {.purpose = frozen ? ATT_GRADIENT : ATT_TRAIN,
                                    .backend = "ref",
                                    .group = FD_GROUP,
                                    .frozen = frozen ? all : NULL,
                                    .gradients = names};
        must(att_plan_compile(graph, &options, &plan));
        must(att_session_create(plan, run.weights, FD_BATCH, &session));
        double *rows = model.input[0].rows, given[FD_BATCH][WIDTH], inner[FD_BATCH][WIDTH], weight[WIDTH][WIDTH];
        for (int i = 0; i < model.input_count; i++)
            must(att_session_bind(session, model.input[i].name, model.input[i].rows));
        must(att_session_accumulate(session, frozen ? NULL : run.gradient, FD_BATCH, fd_scale, 9, 4, 0));
        must(att_session_output(session, "input0.grad", 0, FD_BATCH, given));
        must(att_session_output(session, "middle.grad", 0, FD_BATCH, inner));
        must(att_weights_get(run.weights, -1, 0, weight, sizeof weight / sizeof **weight));
        double worst = 0, through = 0;
        for (int i = 0; i < FD_BATCH * WIDTH; i++) {
            const double h = 1e-5, kept = rows[i];
            double side[2], chained = 0;
            for (int s = 0; s < 2; s++) {
                rows[i] = kept + (s ? h : -h);
                side[s] = fd_evaluate(&run);
            }
            rows[i] = kept;
            double off = fabs(given[i / WIDTH][i % WIDTH] - (side[1] - side[0]) / (2 * h));
            worst = isnan(off) ? INFINITY : fmax(worst, off);
            for (int j = 0; j < WIDTH; j++)
                chained += inner[i / WIDTH][j] * weight[j][i % WIDTH];
            through = fmax(through, fabs(given[i / WIDTH][i % WIDTH] - chained));
        }
        printf("input: off by %.2g, through the named value by %.2g\n", worst, through);
        assert_true(worst < 1e-9 && through < 1e-14); /* measured: 7e-12 and 0 */
        att_session_destroy(&session);
        att_plan_destroy(&plan);
        fd_close(&run);
        fd_destroy(&model);
    }
}

/* Batch norm uses running statistics, and dropout does nothing: the gradient is that of the loss of the inference plan.
 * */
TEST(gradients_of_the_network_of_inference)
{
    enum { WIDTH = 4 };
    static const char *const names[] = {"input0", NULL};
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(WIDTH), 1, 0, 0);
    x = att_dropout(graph, att_linear(graph, x, parameter(graph, "weight", att_shape_of(WIDTH, WIDTH)), ATT_NONE), 0.5);
    x = att_batch_norm(graph, x, parameter(graph, "gamma", att_shape_of(WIDTH)),
                       parameter(graph, "beta", att_shape_of(WIDTH)),
                       att_graph_buffer(graph, "mean", att_shape_of(WIDTH), 0.7),
                       att_graph_buffer(graph, "variance", att_shape_of(WIDTH), 3), NULL);
    fd_loss_of(&model, att_silu(graph, x));
    fd_run run = fd_open(&model, 1);
    att_plan *plans[2];
    att_session *sessions[2];
    double *rows = model.input[0].rows, given[FD_BATCH][WIDTH], loss[2][FD_BATCH], worst = 0, mean[WIDTH];
    for (int i = 0; i < 2; i++) {
        att_plan_options options = {
            .purpose = i ? ATT_INFER : ATT_GRADIENT, .backend = "ref", .gradients = i ? NULL : names};
        must(att_plan_compile(graph, &options, &plans[i]));
        must(att_session_create(plans[i], run.weights, FD_BATCH, &sessions[i]));
        for (int j = 0; j < model.input_count; j++)
            must(att_session_bind(sessions[i], model.input[j].name, model.input[j].rows));
    }
    must(att_session_accumulate(sessions[0], run.gradient, FD_BATCH, 1, 9, 4, 0));
    must(att_session_output(sessions[0], "input0.grad", 0, FD_BATCH, given));
    for (int i = 0; i < FD_BATCH * WIDTH; i++) {
        const double h = 1e-5, kept = rows[i];
        for (int s = 0; s < 2; s++) {
            rows[i] = kept + (s ? h : -h);
            must(att_session_run(sessions[1], FD_BATCH));
            must(att_session_output(sessions[1], "loss", 0, FD_BATCH, loss[s]));
        }
        rows[i] = kept;
        double off = fabs(given[i / WIDTH][i % WIDTH] - (loss[1][i / WIDTH] - loss[0][i / WIDTH]) / (2 * h));
        worst = isnan(off) ? INFINITY : fmax(worst, off);
    }
    printf("inference: off by %.2g\n", worst);
    assert_true(worst < 1e-8); /* measured: 4e-11 */
    must(att_weights_get(run.weights, -1, att_weights_find(run.weights, "mean"), mean, WIDTH));
    assert_true(mean[0] == 0.7); /* buffers do not change */
    for (int i = 0; i < 2; i++) {
        att_session_destroy(&sessions[i]);
        att_plan_destroy(&plans[i]);
    }
    fd_close(&run);
    fd_destroy(&model);
}

/* y = x + d with d = dropout(x), which is the identity in an ATT_GRADIENT plan: the gradient of d is that of y, and
 * that of x is twice as large. */
TEST(values_passed_by_identities_have_their_own_gradients)
{
    enum { WIDTH = 4 };
    static const char *const names[] = {"x", "d", "first", "input0", NULL};
    double given[4][FD_BATCH * WIDTH];
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value first = att_dropout(graph, fd_input(&model, ATT_F64, att_shape_of(WIDTH), 1, 0, 0), 0.5);
    att_value x = att_tanh(graph, first), d = att_dropout(graph, x, 0.5);
    att_graph_output(graph, "first", first);
    att_graph_output(graph, "x", x);
    att_graph_output(graph, "d", d);
    fd_loss_of(&model, att_silu(graph, att_add(graph, x, d)));
    must(att_graph_status(graph));
    att_plan_options options = {.purpose = ATT_GRADIENT, .backend = "ref", .gradients = names};
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    must(att_plan_compile(graph, &options, &plan));
    must(att_weights_create(graph, "ref", &weights));
    must(att_session_create(plan, weights, FD_BATCH, &session));
    for (int i = 0; i < model.input_count; i++)
        must(att_session_bind(session, model.input[i].name, model.input[i].rows));
    must(att_session_accumulate(session, NULL, FD_BATCH, 1, 9, 4, 0));
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s.grad", names[i]);
        must(att_session_output(session, name, 0, FD_BATCH, given[i]));
    }
    for (int e = 0; e < FD_BATCH * WIDTH; e++) {
        assert_true(given[1][e] != 0 && given[0][e] == 2 * given[1][e]);
        assert_true(given[2][e] == given[3][e]);
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    fd_destroy(&model);
}

static void assert_refused(const fd_model *model, const char *name, att_status status, const char *message)
{
    const char *const names[] = {name, NULL};
    att_plan_options options = {.purpose = ATT_TRAIN, .backend = "ref", .gradients = names};
    att_plan *plan = NULL;
    assert_int_equal(att_plan_compile(model->graph, &options, &plan), status);
    assert_null(plan);
    assert_string_equal(att_context_message(context), message);
}

TEST(gradients_that_cannot_be_are_refused)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(3), 1, 0, 0);
    att_value indices = fd_input(&model, ATT_I32, att_shape_of(2), 1, 0, 4);
    att_value unused = fd_input(&model, ATT_F64, att_shape_of(3), 1, 0, 0);
    att_graph_output(graph, "beside", att_tanh(graph, unused));
    att_value read = att_embed(graph, parameter(graph, "table", att_shape_of(4, 3)), indices);
    att_graph_probe(graph, "observed", read);
    fd_loss_of(&model, att_add(graph, x, att_token_mean(graph, read, 0)));
    must(att_graph_status(graph));
    assert_refused(&model, "middle", ATT_ERR_NOT_FOUND, "there is no input or output \"middle\" to differentiate by");
    assert_refused(&model, "observed", ATT_ERR_NOT_FOUND,
                   "there is no input or output \"observed\" to differentiate by");
    assert_refused(&model, "input1", ATT_ERR_ARGUMENT, "\"input1\" holds integers, which have no gradient");
    assert_refused(&model, "beside", ATT_ERR_ARGUMENT,
                   "no gradient reaches \"beside\": the loss does not depend on it");
    const char *const twice[] = {"input0", "input2", "input0", NULL};
    att_plan_options options = {.purpose = ATT_TRAIN, .backend = "ref", .gradients = twice};
    att_plan *plan = NULL;
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "the gradient of \"input0\" is requested twice");
    assert_null(plan);
    fd_destroy(&model);
}
