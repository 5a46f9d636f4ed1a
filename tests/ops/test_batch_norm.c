/* Batch norm as training plans have it: statistics of all samples, gradients through them, running statistics; the same
 * results however the batch is cut. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/finite_difference.h"

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
        att_value y = att_relu(graph, norm(graph, names[i][1], linear(graph, names[i][0], x, CHANNELS, HIDDEN), frozen));
        y = norm(graph, names[i][3], linear(graph, names[i][2], y, HIDDEN, CHANNELS), frozen);
        x = att_relu(graph, att_add(graph, x, y));
    }
    fd_loss_of(&model, x);
    return model;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_go_through_the_statistics),
    };
    return cmocka_run_group_tests(tests, fd_setup, fd_teardown);
}
