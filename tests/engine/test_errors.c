/* Messages of errors in building, compiling and running graphs. */
#include <attscope/update.h>

#include "engine/fixture.h"
#include "engine/session/session.h"
#include <limits.h>

enum { SIZE = 4, BATCH = 6 };

TEST(building_keeps_its_first_failure)
{
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

TEST(names_are_unique)
{
    att_graph *graph = make_graph();
    att_graph_input(graph, "x", ATT_F32, att_shape_of(3));
    assert_int_equal(att_graph_input(graph, "x", ATT_F32, att_shape_of(3)), ATT_NONE);
    assert_message(context, "\"x\"");
    att_graph_destroy(&graph);
    assert_int_equal(att_graph_create(context, ATT_I32, &graph), ATT_ERR_ARGUMENT);
}

/* After an error a graph stays failed, so each case has a graph of its own. */
TEST(inputs_and_parameters_are_checked)
{
    const att_shape six = {.rank = 6, .dims = {1, 1, 1, 1, 1}}, below = {.rank = -1};
    const float zero = 0;
    for (int i = 0; i < 6; i++) {
        att_graph *graph = make_graph();
        att_value made = i == 0   ? att_graph_input(graph, "x", ATT_F32, six)
                         : i == 1 ? att_graph_parameter(graph, "x", six, (att_init){0}, true)
                         : i == 2 ? att_graph_constant(graph, ATT_F32, six, &zero)
                         : i == 3 ? att_graph_input(graph, "x", ATT_F32, below)
                         : i == 4 ? att_graph_input(graph, "x", (att_dtype)9, att_shape_of(1))
                                  : att_graph_constant(graph, (att_dtype)-1, att_shape_of(1), &zero);
        assert_int_equal(made, ATT_NONE);
        assert_fails(context, att_graph_status(graph), ATT_ERR_ARGUMENT,
                     i < 3    ? "cannot have the shape of rank 6"
                     : i == 3 ? "cannot have"
                              : "does not exist");
        att_graph_destroy(&graph);
    }
    assert_int_equal(att_shape_count(six), -1);
    assert_false(att_shape_equal(six, six));
}

TEST(messages_of_the_empty_scope_begin_with_a_word)
{
    for (int named = 0; named < 2; named++) {
        att_graph *graph = make_graph();
        if (named)
            att_graph_scope(graph, "table");
        att_drop_path(graph, network_parameter(graph, "weight", att_shape_of(3), 1), 0.5);
        assert_int_equal(att_graph_status(graph), ATT_ERR_UNSUPPORTED);
        const char *start = named ? "table: op \"drop_path\"" : "op \"drop_path\"";
        assert_memory_equal(att_context_message(context), start, strlen(start));
        att_graph_destroy(&graph);
    }
}

TEST(plans_check_their_options)
{
    att_graph *graph = make_graph();
    att_plan *plan = NULL;
    att_graph_output(graph, "y", att_gelu(graph, att_graph_input(graph, "x", ATT_F32, att_shape_of(3))));
    att_plan_options options = att_plan_options_defaults();
    for (int wrong = -1; wrong <= 9; wrong += 10) {
        options.purpose = (att_purpose)wrong, options.precision = ATT_FULL;
        assert_fails(context, att_plan_compile(graph, &options, &plan), ATT_ERR_ARGUMENT, "is not a purpose of a plan");
        options.purpose = ATT_INFER, options.precision = (att_precision)wrong;
        assert_fails(context, att_plan_compile(graph, &options, &plan), ATT_ERR_ARGUMENT,
                     "is not a precision of a plan");
    }
    assert_null(plan);
    att_graph_destroy(&graph);
}

TEST(training_needs_a_loss)
{
    att_graph *graph = make_graph();
    att_plan *plan;
    att_graph_output(graph, "y", att_gelu(graph, att_graph_input(graph, "x", ATT_F32, att_shape_of(3))));
    att_plan_options options = {.purpose = ATT_TRAIN, .backend = "cpu"};
    assert_fails(context, att_plan_compile(graph, &options, &plan), ATT_ERR_NOT_FOUND, "\"loss\"");
    options = (att_plan_options){.purpose = ATT_INFER, .backend = "cqu"};
    assert_fails(context, att_plan_compile(graph, &options, &plan), ATT_ERR_NOT_FOUND, "did you mean \"cpu\"");
    att_graph_destroy(&graph);
}

TEST(backends_name_the_kernel_they_lack)
{
    att_graph *graph;
    att_plan *plan;
    assert_int_equal(att_graph_create(context, ATT_F64, &graph), ATT_OK);
    att_graph_output(graph, "y", att_gelu(graph, att_graph_input(graph, "x", ATT_F64, att_shape_of(3))));
    att_plan_options options = att_plan_options_defaults();
    assert_fails(context, att_plan_compile(graph, &options, &plan), ATT_ERR_UNSUPPORTED, "\"gelu\"");
    assert_message(context, "F64");
    att_graph_destroy(&graph);
}

/* --- non-finite values -------------------------------------------------------------------------------------------- */

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

static void assert_finds_nonfinite(trainer *it, const char *culprit)
{
    char text[128];
    att_gradient_begin(it->run.gradient);
    assert_int_equal(att_session_accumulate(it->run.session, it->run.gradient, BATCH, 1.0 / BATCH, 1, 0, 0), ATT_OK);
    assert_int_equal(att_update_reduce(it->run.update, NULL), ATT_ERR_NONFINITE);
    assert_int_equal(att_update_apply(it->run.update, &(att_hyper){.lr = 1, .update = 1}), ATT_ERR_ARGUMENT);
    assert_int_equal(att_session_find_nonfinite(it->run.session, text, sizeof text), ATT_OK);
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

TEST(a_bad_input_is_found)
{
    trainer it;
    trainer_make(&it);
    it.images[3 * SIZE * SIZE + 2] = NAN;
    assert_finds_nonfinite(&it, "input \"image\", sample 3");
    free_runner(&it.run);
}

TEST(a_bad_parameter_is_found)
{
    trainer it;
    trainer_make(&it);
    set_parameter(&it, "head.bias", NETWORK_CLASSES, INFINITY);
    assert_finds_nonfinite(&it, "parameter \"head.bias\"");
    free_runner(&it.run);
}

TEST(an_overflowing_node_is_found)
{
    trainer it;
    trainer_make(&it);
    set_parameter(&it, "mlp.fc1.bias", 2 * NETWORK_WIDTH, 3e38f);
    set_parameter(&it, "mlp.fc2.weight", 2 * NETWORK_WIDTH * NETWORK_WIDTH, 3e38f);
    assert_finds_nonfinite(&it, "mlp.fc2 (linear), sample 0");
    free_runner(&it.run);
}

/* The sample is in the second group of the batch. The sums over samples are already not finite when the first group is
 * searched. */
TEST(the_sample_that_overflows_is_found)
{
    trainer it;
    trainer_make(&it);
    set_parameter(&it, "patch_embed.proj.weight", 4 * NETWORK_WIDTH, 4);
    for (int i = 0; i < SIZE * SIZE; i++)
        it.images[5 * SIZE * SIZE + i] = 3e38f;
    assert_finds_nonfinite(&it, "patch_embed.proj (linear), sample 5");
    free_runner(&it.run);
}

TEST(a_class_that_does_not_exist_is_found)
{
    trainer it;
    trainer_make(&it);
    it.targets[2] = NETWORK_CLASSES;
    assert_finds_nonfinite(&it, "loss (cross_entropy), sample 2");
    free_runner(&it.run);
}

static runner bind_data(att_graph *graph, const char *input, const float *rows, const int32_t *targets)
{
    assert_int_equal(att_graph_status(graph), ATT_OK);
    runner it =
        make_trainer(graph, (att_plan_options){.purpose = ATT_TRAIN, .backend = "cpu", .group = 4}, "sgd", BATCH);
    assert_int_equal(att_session_bind(it.session, input, rows), ATT_OK);
    assert_int_equal(att_session_bind(it.session, "target", targets), ATT_OK);
    return it;
}

/* One image per value is multiplied by a gain before a batch norm; all nodes are in the empty scope. */
static runner make_norm(const float *images, const int32_t *targets)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "image", ATT_F32, att_shape_of(SIZE, SIZE));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_shape vector = att_shape_of(SIZE);
    x = att_scale(graph, x, att_graph_parameter(graph, "gain", vector, (att_init){ATT_INIT_CONSTANT, 1}, false));
    x = att_batch_norm(graph, x, network_parameter(graph, "gamma", vector, 1),
                       network_parameter(graph, "beta", vector, 1), att_graph_buffer(graph, "mean", vector, 0),
                       att_graph_buffer(graph, "variance", vector, 1), NULL);
    x = network_linear(graph, "head", att_token_mean(graph, x, 0), NETWORK_CLASSES);
    att_graph_output(graph, "loss", att_cross_entropy(graph, x, target, 0));
    return bind_data(graph, "image", images, targets);
}

/* The search restores running statistics, and does not report them if they are not finite. */
TEST(the_search_for_overflow_restores_running_statistics)
{
    float images[BATCH * SIZE * SIZE], gain[SIZE] = {1, 1, 3e38f, 1}, before[SIZE], after[SIZE];
    int32_t targets[BATCH];
    char text[128];
    network_data(images, targets, BATCH, SIZE);
    images[2 * SIZE * SIZE + 2] = 4; /* overflows in sample 2; the others stay below 1 */
    runner it = make_norm(images, targets);
    for (int overflows = 0; overflows < 2; overflows++) {
        if (overflows)
            assert_int_equal(att_weights_set(it.weights, -1, att_weights_find(it.weights, "gain"), gain, SIZE), ATT_OK);
        int mean = att_weights_find(it.weights, "mean");
        assert_int_equal(att_session_accumulate(it.session, it.gradient, BATCH, 1, 1, 0, 0), ATT_OK);
        assert_int_equal(att_weights_get(it.weights, -1, mean, before, SIZE), ATT_OK);
        assert_int_equal(isfinite(before[2]) != 0, !overflows);
        assert_int_equal(att_session_find_nonfinite(it.session, text, sizeof text), ATT_OK);
        assert_string_equal(text, overflows ? "scale, sample 2" : "");
        assert_int_equal(att_weights_get(it.weights, -1, mean, after, SIZE), ATT_OK);
        assert_memory_equal(before, after, sizeof before);
    }
    free_runner(&it);
}

/* A derived bias is a parameter times a factor. The summed gradient of the bias is close to the largest number; its
 * product with the factor overflows if the factor is 8. */
TEST(overflows_after_the_sums_are_found)
{
    for (int factor = 1; factor <= 8; factor += 7) {
        float rows[BATCH * NETWORK_CLASSES] = {0}, gradient[NETWORK_CLASSES];
        const int32_t targets[BATCH] = {0};
        char text[128];
        att_graph *graph = make_graph();
        att_shape vector = att_shape_of(NETWORK_CLASSES);
        att_value x = att_graph_input(graph, "rows", ATT_F32, vector);
        att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
        att_graph_scope(graph, "bias");
        att_value zero = att_graph_parameter(graph, "bias", vector, (att_init){ATT_INIT_CONSTANT, 0}, false);
        att_value times = att_graph_parameter(graph, "factor", vector, (att_init){ATT_INIT_CONSTANT, factor}, false);
        x = att_add(graph, x, att_scale(graph, zero, times));
        att_graph_output(graph, "loss", att_cross_entropy(graph, x, target, 0));
        runner it = bind_data(graph, "rows", rows, targets);
        double scale = 2e38 / (BATCH * (1 - 1.0 / NETWORK_CLASSES));
        assert_int_equal(att_session_accumulate(it.session, it.gradient, BATCH, scale, 1, 0, 0), ATT_OK);
        assert_int_equal(att_gradient_get(it.gradient, 0, gradient, NETWORK_CLASSES), ATT_OK);
        assert_int_equal(isfinite(gradient[0]) != 0, factor == 1);
        assert_int_equal(att_session_find_nonfinite(it.session, text, sizeof text), ATT_OK);
        assert_memory_equal(text, "bias (", factor == 1 ? 0 : 6);
        assert_int_equal(*text == '\0', factor == 1);
        free_runner(&it);
    }
}

TEST(sessions_refuse_what_they_cannot_run)
{
    trainer it;
    trainer_make(&it);
    float row[NETWORK_CLASSES];
    assert_fails(context, att_session_bind(it.run.session, "imag", it.images), ATT_ERR_NOT_FOUND,
                 "did you mean \"image\"");
    assert_int_equal(att_session_accumulate(it.run.session, it.run.gradient, BATCH + 1, 1, 1, 0, 0), ATT_ERR_ARGUMENT);
    assert_int_equal(att_session_accumulate(it.run.session, it.run.gradient, 2, 1, 1, 0, INT64_MAX - 1),
                     ATT_ERR_ARGUMENT);
    assert_fails(context, att_session_accumulate(it.run.session, it.run.gradient, 2, 1, 1, 0, -1), ATT_ERR_ARGUMENT,
                 "cannot begin at position -1");
    assert_int_equal(att_session_run(it.run.session, 1), ATT_ERR_ARGUMENT);
    assert_int_equal(att_session_output(it.run.session, "logits", 0, 1, row), ATT_ERR_ARGUMENT);
    assert_fails(context, att_session_output(it.run.session, "logits", INT_MAX, INT_MAX, row), ATT_ERR_ARGUMENT,
                 "from row 2147483647 on were requested, but the last run had 0 rows");
    assert_int_equal(att_update_reduce(it.run.update, NULL), ATT_ERR_ARGUMENT);
    free_runner(&it.run);
}
