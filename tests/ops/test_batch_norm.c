/* Batch norm as training plans have it: statistics of all samples, gradients through them, running statistics; the same
 * results however the batch is cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/finite_difference.h"
#include "plan/plan.h"

enum { ROWS = 6, CHANNELS = 5, HIDDEN = 7 };

typedef struct norm_values {
    att_value gamma, beta, mean, variance;
} norm_values;

static norm_values make_norm(att_graph *graph, const char *name, int64_t channels)
{
    char text[4][48];
    const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof text[i], "%s.%s", name, parts[i]);
    return (norm_values){
        att_graph_parameter(graph, text[0], att_shape_of(channels), (att_init){ATT_INIT_UNIFORM, 1}, false),
        att_graph_parameter(graph, text[1], att_shape_of(channels), (att_init){ATT_INIT_UNIFORM, 1}, false),
        att_graph_buffer(graph, text[2], att_shape_of(channels), 0.25),
        att_graph_buffer(graph, text[3], att_shape_of(channels), 2)};
}

static att_value norm(att_graph *graph, const char *name, att_value x, bool frozen)
{
    att_shape shape = att_value_shape(graph, x);
    norm_values v = make_norm(graph, name, shape.dims[shape.rank - 1]);
    att_graph_scope(graph, name);
    return att_batch_norm(graph, x, v.gamma, v.beta, v.mean, v.variance, &(att_batch_norm_options){.frozen = frozen});
}

static att_value linear(att_graph *graph, const char *name, att_value x, int64_t inputs, int64_t outputs)
{
    char text[48];
    snprintf(text, sizeof text, "%s.weight", name);
    att_value weight =
        att_graph_parameter(graph, text, att_shape_of(outputs, inputs), (att_init){ATT_INIT_NORMAL, 0.5}, true);
    return att_linear(graph, x, weight, ATT_NONE);
}

/* Two residual branches with two norms each: values cross segments, are made again, and gradients meet. */
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

/* Residual branches behind a norm, or a relu behind that, gated by what is pooled of it, from row `first` on, and of
 * the trunk, by way of a norm. */
static fd_model make_gated(int first, bool relu)
{
    static const char *const names[2][3] = {{"a1", "b1", "c1"}, {"a2", "b2", "c2"}};
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, ROWS / 2, CHANNELS), 2, 1, 0);
    x = linear(graph, "stem", x, CHANNELS, CHANNELS);
    for (int i = 0; i < 2; i++) {
        att_value y = norm(graph, names[i][1], linear(graph, names[i][0], x, CHANNELS, CHANNELS), false);
        y = relu ? att_relu(graph, y) : y;
        att_value z = att_add(graph, att_global_mean(graph, x), att_token_mean(graph, y, first));
        att_value gate = att_sigmoid(graph, norm(graph, names[i][2], z, false));
        x = att_relu(graph, att_add(graph, x, att_gate(graph, y, gate)));
    }
    fd_loss_of(&model, x);
    return model;
}

static void gradients_go_through_gates_and_means(void **state)
{
    (void)state;
    static const char *const what[] = {"all", "rows but the first", "behind a relu"};
    for (int i = 0; i < 3; i++) {
        fd_model model = make_gated(i == 1, i == 2);
        printf("largest error of a gradient: %.2g\n", fd_check(&model, what[i], 1, 1e-7));
        fd_destroy(&model);
    }
}

static bool reads_map(const att_problem *problem)
{
    return problem->in[0].shape.rank == 3;
}

static bool makes_map(const att_problem *problem)
{
    return problem->out[0].shape.rank == 3;
}

static int count_steps(const att_plan *plan, const char *op, bool (*counts)(const att_problem *))
{
    int count = 0;
    for (int i = 0; i < plan->segment_count; i++)
        for (int j = 0; j < plan->segments[i].programs[0].step_count; j++) {
            const att_problem *problem = &plan->segments[i].programs[0].steps[j].unit->problem;
            count += strcmp(problem->op, op) == 0 && counts(problem);
        }
    return count;
}

static int reading_maps(const att_plan *plan, const char *op)
{
    return count_steps(plan, op, reads_map);
}

static int making_maps(const att_plan *plan, const char *op)
{
    return count_steps(plan, op, makes_map);
}

/* The mean is taken before the norm, the gate's gradient from the norm's sums, and no map is made for these. */
static void a_gate_of_what_is_pooled_reads_no_map_again(void **state)
{
    (void)state;
    fd_model model = make_gated(0, false);
    fd_run run = fd_open(&model, 1);
    assert_int_equal(reading_maps(run.plan, "channel_dot"), 0);
    assert_int_equal(reading_maps(run.plan, "gate"), 2); /* forward */
    assert_int_equal(reading_maps(run.plan, "normalize"), 2);
    assert_int_equal(reading_maps(run.plan, "normalize_sums"), 2);
    assert_int_equal(reading_maps(run.plan, "token_mean"), 4); /* of each branch and trunk */
    fd_close(&run);
    fd_destroy(&model);
}

/* Two branches side by side whose weights are made in one segment, and lie with another's between them. */
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

/* On lanes: those of a segment have room for what it adds to, wherever that lies. */
static void gradients_of_a_segment_need_not_be_neighbours(void **state)
{
    (void)state;
    fd_model model = make_branches();
    printf("largest error of a gradient: %.2g\n", fd_check(&model, "branches", 1, 1e-7));
    fd_run run = fd_open(&model, 1);
    size_t whole = (size_t)run.plan->layout.trained * sizeof(double);
    /* In units of 16 elements: two of three weights, and the first norm's vectors. */
    size_t most = (2 * 32 + 2 * 16) * sizeof(double);
    assert_int_equal(att_plan_describe(run.plan).gradient_bytes, whole + (FD_LANES - 1) * most);
    fd_close(&run);
    fd_destroy(&model);
}

static void gradients_go_through_the_statistics(void **state)
{
    (void)state;
    for (int frozen = 0; frozen < 2; frozen++) {
        fd_model model = make_network(frozen);
        printf("largest error of a gradient: %.2g\n", fd_check(&model, frozen ? "frozen" : "training", 1, 1e-7));
        fd_destroy(&model);
    }
}

static att_value convolution(att_graph *graph, const char *name, att_value x, int64_t outputs)
{
    char text[48];
    snprintf(text, sizeof text, "%s.weight", name);
    att_shape shape = att_shape_of(outputs, att_value_shape(graph, x).dims[2], 1, 1);
    att_value weight = att_graph_parameter(graph, text, shape, (att_init){ATT_INIT_NORMAL, 0.5}, true);
    return att_conv2d(graph, x, weight, ATT_NONE, NULL);
}

/* Squeeze and excitation. */
static att_value gated(att_graph *graph, att_value y)
{
    att_value z = linear(graph, "se", att_global_mean(graph, y), CHANNELS, CHANNELS);
    return att_gate(graph, y, att_sigmoid(graph, z));
}

/* Bottlenecks: the second convolution and the norm behind it are one map of what the first norm makes; where that is
 * read by a gate and its mean alone, these are part of it. */
static fd_model make_bottleneck(bool gates)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, ROWS / 2, CHANNELS), 2, 1, 0);
    att_value y = att_relu(graph, norm(graph, "b1", convolution(graph, "a1", x, 2), false));
    y = norm(graph, "b2", convolution(graph, "a2", y, CHANNELS), false);
    y = gates ? gated(graph, y) : y;
    fd_loss_of(&model, att_relu(graph, att_add(graph, x, y)));
    return model;
}

/* No step is a convolution that widens, a norm, a mean or a gate of what that makes. Measured: 4.9e-9 and 2.3e-9. */
static void a_convolution_that_widens_and_its_norm_are_one_map(void **state)
{
    (void)state;
    for (int gates = 0; gates < 2; gates++) {
        fd_model model = make_bottleneck(gates);
        printf("largest error of a gradient: %.2g\n", fd_check(&model, "bottleneck", 1, 1e-7));
        fd_run run = fd_open(&model, 1);
        assert_int_equal(reading_maps(run.plan, "conv2d"), 1);
        assert_int_equal(reading_maps(run.plan, "affine"), 2); /* the other one is of a gradient */
        assert_int_equal(reading_maps(run.plan, "affine_sums"), 1);
        assert_int_equal(reading_maps(run.plan, "normalize_grad"), 1);
        assert_int_equal(reading_maps(run.plan, "gate") + reading_maps(run.plan, "channel_dot"), 0);
        assert_int_equal(reading_maps(run.plan, "add") + reading_maps(run.plan, "relu"), 0);
        fd_close(&run);
        fd_destroy(&model);
    }
}

/* A bottleneck behind a convolution, gated by means of its branch and of the trunk. */
static fd_model make_step(void)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, ROWS / 2, CHANNELS), 2, 1, 0);
    x = att_relu(graph, convolution(graph, "stem", x, CHANNELS));
    att_value y = att_relu(graph, norm(graph, "b1", convolution(graph, "a1", x, 2), false));
    y = norm(graph, "b2", convolution(graph, "a2", y, CHANNELS), false);
    att_value z = att_add(graph, att_global_mean(graph, x), att_global_mean(graph, y));
    y = att_gate(graph, y, att_sigmoid(graph, linear(graph, "gate", z, CHANNELS, CHANNELS)));
    fd_loss_of(&model, att_relu(graph, att_add(graph, x, y)));
    return model;
}

/* What the trunk's mean hands to every pixel is added where the convolution's gradient is made. Measured: 4.1e-9. */
static void a_mean_of_the_trunk_hands_back_no_map(void **state)
{
    (void)state;
    fd_model model = make_step();
    printf("largest error of a gradient: %.2g\n", fd_check(&model, "step", 1, 1e-7));
    fd_run run = fd_open(&model, 1);
    assert_int_equal(reading_maps(run.plan, "add"), 0);
    assert_int_equal(making_maps(run.plan, "token_mean_grad"), 1); /* of the logits */
    assert_int_equal(reading_maps(run.plan, "conv2d_data_grad"), 1);
    fd_close(&run);
    fd_destroy(&model);
}

/* A widening convolution that may have a bias, which starts at 0, and a norm whose numbers are not the usual ones. */
static fd_model make_widened(const att_conv_options *options, int64_t kernel, bool bias)
{
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    int64_t seen = CHANNELS - 1, groups = options->groups ? options->groups : 1;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(2, ROWS / 2, seen), 2, 1, 0);
    att_shape shape = att_shape_of(4 * seen, seen / groups, kernel, kernel);
    att_value weight = att_graph_parameter(graph, "a.weight", shape, (att_init){ATT_INIT_NORMAL, 0.5}, true);
    att_value added =
        bias ? att_graph_parameter(graph, "a.bias", att_shape_of(4 * seen), (att_init){0}, false) : ATT_NONE;
    att_value y = att_conv2d(graph, x, weight, added, options);
    norm_values v = make_norm(graph, "bn", 4 * seen);
    y = att_batch_norm(graph, y, v.gamma, v.beta, v.mean, v.variance,
                       &(att_batch_norm_options){.eps = 0.25, .momentum = 0.3});
    fd_loss_of(&model, att_relu(graph, y));
    return model;
}

typedef struct outcome {
    double norm, loss[FD_BATCH], mean[4 * (CHANNELS - 1)], variance[4 * (CHANNELS - 1)];
    int maps;
} outcome;

static outcome outcome_of(fd_model *model)
{
    outcome o;
    fd_run run = fd_open(model, 1);
    o.maps = reading_maps(run.plan, "affine");
    fd_evaluate(&run);
    FD_OK(att_session_reduce(run.session, &o.norm));
    FD_OK(att_session_output(run.session, "loss", 0, FD_BATCH, o.loss));
    int mean = att_weights_find(run.weights, "bn.running_mean"), var = att_weights_find(run.weights, "bn.running_var");
    FD_OK(att_weights_get(run.weights, -1, mean, o.mean, 4 * (CHANNELS - 1)));
    FD_OK(att_weights_get(run.weights, -1, var, o.variance, 4 * (CHANNELS - 1)));
    fd_close(&run);
    return o;
}

static double worst_of(const double *a, const double *b, int count)
{
    double worst = 0;
    for (int i = 0; i < count; i++)
        worst = fmax(worst, fabs(a[i] - b[i]) / (1 + fabs(b[i])));
    return worst;
}

/* A bias keeps convolution and norm apart, and the norm does not see it. Measured: 8e-16. */
static void one_map_is_what_two_operations_are(void **state)
{
    (void)state;
    const att_conv_options plain = {0};
    fd_model one = make_widened(&plain, 1, false), two = make_widened(&plain, 1, true);
    outcome a = outcome_of(&one), b = outcome_of(&two);
    assert_int_equal(a.maps, 1);
    assert_int_equal(b.maps, 0);
    double worst = fmax(worst_of(a.loss, b.loss, FD_BATCH), fabs(a.norm / b.norm - 1));
    worst = fmax(worst, worst_of(a.mean, b.mean, 4 * (CHANNELS - 1)));
    worst = fmax(worst, worst_of(a.variance, b.variance, 4 * (CHANNELS - 1)));
    printf("one map and two operations differ by %.2g\n", worst);
    assert_true(worst < 1e-13);
    fd_destroy(&one);
    fd_destroy(&two);
}

/* Convolutions that are more than a map of each pixel. */
static void other_convolutions_stay_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        att_conv_options options;
        int64_t kernel;
    } others[] = {{"padding", {.padding = 1}, 1},
                  {"stride", {.stride = 2}, 1},
                  {"groups", {.groups = 2}, 1},
                  {"3 x 3", {.padding = 1}, 3}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        fd_model model = make_widened(&others[i].options, others[i].kernel, false);
        outcome o = outcome_of(&model);
        if (o.maps != 0)
            fail_msg("%s: taken for a map of each pixel", others[i].what);
        fd_destroy(&model);
    }
}

/* One norm on the input itself. */
static fd_model make_single(int64_t rows)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, att_shape_of(rows, CHANNELS), 2, 1, 0);
    fd_loss_of(&model, norm(model.graph, "bn", x, false));
    return model;
}

static void running_statistics_follow_the_batch(void **state)
{
    (void)state;
    fd_model model = make_single(ROWS);
    fd_run run = fd_open(&model, 1);
    fd_evaluate(&run);
    double mean[CHANNELS], variance[CHANNELS];
    FD_OK(att_weights_get(run.weights, -1, att_weights_find(run.weights, "bn.running_mean"), mean, CHANNELS));
    FD_OK(att_weights_get(run.weights, -1, att_weights_find(run.weights, "bn.running_var"), variance, CHANNELS));
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

static void one_row_in_all_is_refused(void **state)
{
    (void)state;
    fd_model model = make_single(1);
    fd_run run = fd_open(&model, 1);
    assert_int_equal(att_session_accumulate(run.session, 1, 1, 9, 4, 0), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_context_message(fd_context), "batch norm needs more than one row"));
    FD_OK(att_session_accumulate(run.session, 2, 1, 9, 4, 0));
    fd_close(&run);
    fd_destroy(&model);
}

typedef struct cut {
    int group, lanes;
} cut;

/* The gradient's norm with the batch cut so. */
static double norm_with(const fd_model *model, cut how, int *segments)
{
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.backend = "ref";
    options.group = how.group;
    options.lanes = how.lanes;
    fd_run run = {0};
    double norm_of_gradient;
    FD_OK(att_plan_compile(model->graph, &options, &run.plan));
    FD_OK(att_weights_create(model->graph, &run.weights));
    FD_OK(att_weights_initialise(run.weights, 1));
    FD_OK(att_session_create(run.plan, run.weights, FD_BATCH + 3, &run.session));
    for (int i = 0; i < model->input_count; i++)
        FD_OK(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    fd_evaluate(&run);
    FD_OK(att_session_reduce(run.session, &norm_of_gradient));
    *segments = att_plan_describe(run.plan).segments;
    fd_close(&run);
    return norm_of_gradient;
}

static void cuts_of_the_batch_agree(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_go_through_the_statistics),
        cmocka_unit_test(gradients_of_a_segment_need_not_be_neighbours),
        cmocka_unit_test(gradients_go_through_gates_and_means),
        cmocka_unit_test(a_gate_of_what_is_pooled_reads_no_map_again),
        cmocka_unit_test(a_convolution_that_widens_and_its_norm_are_one_map),
        cmocka_unit_test(a_mean_of_the_trunk_hands_back_no_map),
        cmocka_unit_test(one_map_is_what_two_operations_are),
        cmocka_unit_test(other_convolutions_stay_what_they_are),
        cmocka_unit_test(running_statistics_follow_the_batch),
        cmocka_unit_test(one_row_in_all_is_refused),
        cmocka_unit_test(cuts_of_the_batch_agree),
    };
    return cmocka_run_group_tests(tests, fd_setup, fd_teardown);
}
