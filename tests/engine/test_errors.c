/* What building, compiling and running say when they refuse. */
#include <attscope/update.h>

#include "engine/fixture.h"
#include <math.h>

enum { SIZE = 4, BATCH = 6 };

static void building_keeps_its_first_failure(void **state)
{
    (void)state;
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(3, 4));
    att_value bad = att_add(graph, x, att_graph_input(graph, "y", ATT_F32, att_shape_of(4, 3)));
    assert_int_equal(bad, ATT_NONE);
    char message[256];
    snprintf(message, sizeof message, "%s", att_context_message(context));
    assert_int_equal(att_gelu(graph, bad), ATT_NONE);
    assert_string_equal(att_context_message(context), message);
    att_plan *plan = NULL;
    att_plan_options options = att_plan_options_defaults();
    assert_int_equal(att_plan_compile(graph, &options, &plan), att_graph_status(graph));
    assert_null(plan);
    att_graph_destroy(&graph);
}

static void names_are_unique(void **state)
{
    (void)state;
    att_graph *graph = make_graph();
    att_graph_input(graph, "x", ATT_F32, att_shape_of(3));
    assert_int_equal(att_graph_input(graph, "x", ATT_F32, att_shape_of(3)), ATT_NONE);
    assert_message("\"x\"");
    att_graph_destroy(&graph);
    assert_int_equal(att_graph_create(context, ATT_I32, &graph), ATT_ERR_ARGUMENT);
}

static void training_needs_a_loss(void **state)
{
    (void)state;
    att_graph *graph = make_graph();
    att_plan *plan;
    att_graph_output(graph, "y", att_gelu(graph, att_graph_input(graph, "x", ATT_F32, att_shape_of(3))));
    att_plan_options options = {.purpose = ATT_TRAIN, .backend = "cpu"};
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_ERR_NOT_FOUND);
    assert_message("\"loss\"");
    options = (att_plan_options){.purpose = ATT_INFER, .backend = "cqu"};
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_ERR_NOT_FOUND);
    assert_message("did you mean \"cpu\"");
    att_graph_destroy(&graph);
}

static void backends_name_the_kernel_they_lack(void **state)
{
    (void)state;
    att_graph *graph;
    att_plan *plan;
    assert_int_equal(att_graph_create(context, ATT_F64, &graph), ATT_OK);
    att_graph_output(graph, "y", att_gelu(graph, att_graph_input(graph, "x", ATT_F64, att_shape_of(3))));
    att_plan_options options = att_plan_options_defaults();
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_ERR_UNSUPPORTED);
    assert_message("\"gelu\"");
    assert_message("F64");
    att_graph_destroy(&graph);
}

/* --- what is not finite ------------------------------------------------------------------------------------------- */

typedef struct trainer {
    runner run;
    float images[BATCH * SIZE * SIZE];
    int32_t targets[BATCH];
} trainer;

static void trainer_make(trainer *it)
{
    att_graph *graph = make_graph();
    network_build(graph, SIZE);
    att_plan_options options = {.purpose = ATT_TRAIN, .backend = "cpu", .group = 4};
    it->run = make_trainer(graph, options, "adamw", BATCH);
    network_data(it->images, it->targets, BATCH, SIZE);
    assert_int_equal(att_session_bind(it->run.session, "image", it->images), ATT_OK);
    assert_int_equal(att_session_bind(it->run.session, "target", it->targets), ATT_OK);
}

static void assert_blames(trainer *it, const char *culprit)
{
    char text[128];
    att_gradient_begin(it->run.gradient);
    assert_int_equal(att_session_accumulate(it->run.session, it->run.gradient, BATCH, 1.0 / BATCH, 1, 0, 0), ATT_OK);
    assert_int_equal(att_update_reduce(it->run.update, NULL), ATT_ERR_NONFINITE);
    assert_int_equal(att_update_apply(it->run.update, &(att_hyper){.lr = 1, .update = 1}), ATT_ERR_ARGUMENT);
    assert_int_equal(att_session_blame(it->run.session, text, sizeof text), ATT_OK);
    assert_string_equal(text, culprit);
}

static void set_parameter(trainer *it, const char *name, int64_t count, float value)
{
    float values[4096];
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
    int index = att_weights_find(it->run.weights, name);
    assert_int_equal(att_weights_set(it->run.weights, -1, index, values, count), ATT_OK);
}

static void a_bad_input_is_blamed(void **state)
{
    (void)state;
    trainer it;
    trainer_make(&it);
    it.images[3 * SIZE * SIZE + 2] = NAN;
    assert_blames(&it, "input \"image\", sample 3");
    free_runner(&it.run);
}

static void a_bad_parameter_is_blamed(void **state)
{
    (void)state;
    trainer it;
    trainer_make(&it);
    set_parameter(&it, "head.bias", NETWORK_CLASSES, INFINITY);
    assert_blames(&it, "parameter \"head.bias\"");
    free_runner(&it.run);
}

static void an_overflowing_node_is_blamed(void **state)
{
    (void)state;
    trainer it;
    trainer_make(&it);
    set_parameter(&it, "mlp.fc1.bias", 2 * NETWORK_WIDTH, 3e38f);
    set_parameter(&it, "mlp.fc2.weight", 2 * NETWORK_WIDTH * NETWORK_WIDTH, 3e38f);
    assert_blames(&it, "mlp.fc2 (linear), sample 0");
    free_runner(&it.run);
}

/* The second group of the batch; the sums over samples are not finite any more when the first group is looked at. */
static void the_sample_that_overflows_is_blamed(void **state)
{
    (void)state;
    trainer it;
    trainer_make(&it);
    set_parameter(&it, "patch_embed.proj.weight", 4 * NETWORK_WIDTH, 4);
    for (int i = 0; i < SIZE * SIZE; i++)
        it.images[5 * SIZE * SIZE + i] = 3e38f;
    assert_blames(&it, "patch_embed.proj (linear), sample 5");
    free_runner(&it.run);
}

static void a_class_that_does_not_exist_is_blamed(void **state)
{
    (void)state;
    trainer it;
    trainer_make(&it);
    it.targets[2] = NETWORK_CLASSES;
    assert_blames(&it, "loss (cross_entropy), sample 2");
    free_runner(&it.run);
}

static void sessions_refuse_what_they_cannot_run(void **state)
{
    (void)state;
    trainer it;
    trainer_make(&it);
    float row[NETWORK_CLASSES];
    assert_int_equal(att_session_bind(it.run.session, "imag", it.images), ATT_ERR_NOT_FOUND);
    assert_message("did you mean \"image\"");
    assert_int_equal(att_session_accumulate(it.run.session, it.run.gradient, BATCH + 1, 1, 1, 0, 0), ATT_ERR_ARGUMENT);
    assert_int_equal(att_session_run(it.run.session, 1), ATT_ERR_ARGUMENT);
    assert_int_equal(att_session_output(it.run.session, "logits", 0, 1, row), ATT_ERR_ARGUMENT);
    assert_int_equal(att_update_reduce(it.run.update, NULL), ATT_ERR_ARGUMENT);
    free_runner(&it.run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_keeps_its_first_failure),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(training_needs_a_loss),
        cmocka_unit_test(backends_name_the_kernel_they_lack),
        cmocka_unit_test(a_bad_input_is_blamed),
        cmocka_unit_test(a_bad_parameter_is_blamed),
        cmocka_unit_test(an_overflowing_node_is_blamed),
        cmocka_unit_test(the_sample_that_overflows_is_blamed),
        cmocka_unit_test(a_class_that_does_not_exist_is_blamed),
        cmocka_unit_test(sessions_refuse_what_they_cannot_run),
    };
    return cmocka_run_group_tests(tests, make_context, free_context);
}
