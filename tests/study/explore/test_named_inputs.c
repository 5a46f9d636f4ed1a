/* Networks whose inputs are tokens, or tokens and an image: a family needs nothing but its descriptor. */
#include "study/network/fixture.h"
#include "study/network/registered.h"

#include <attscope/convert.h>

#include "study/network/text_family.h"

typedef struct text {
    att_model *model;
    att_weights *weights;
    att_network *network;
} text;

static text text_of(const fixture *f, const att_family *family, const att_option_values *options, att_dtype dtype)
{
    const att_variant variant = {.family = family, .tag = att_config_none()};
    att_network_options how = att_network_options_defaults();
    text t = {0};
    how.backend = dtype == ATT_F64 ? "f64" : "cpu";
    CHECK(f->context, att_model_build(f->context, &variant, options, dtype, &t.model));
    CHECK(f->context, att_weights_create(att_model_graph(t.model), how.backend, &t.weights));
    CHECK(f->context, att_weights_initialise(t.weights, 1));
    CHECK(f->context, att_network_wrap(t.model, t.weights, &how, &t.network));
    return t;
}

static void text_free(text *t)
{
    att_network_close(&t->network);
    att_weights_destroy(&t->weights);
    att_model_destroy(&t->model);
}

enum { SAMPLES = 3 };
static const int32_t tokens_of_samples[SAMPLES * LENGTH] = {1, 2, 3, 0, 0, 0, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0, 0};
static const int32_t counts[SAMPLES] = {3, 6, 1};
static const float pictures[SAMPLES * SIDE * SIDE] = {0.25F, -1, 2, 3};

/* The inputs "tokens", "count" and "image"; the first two are those of a text. */
static const att_field fields[] = {
    {"tokens", ATT_I32, {1, {LENGTH}}}, {"count", ATT_I32, {0, {0}}}, {"image", ATT_F32, {3, {SIDE, SIDE, 1}}}};
static const void *const data[] = {tokens_of_samples, counts, pictures};
static const att_batch texts = {.count = SAMPLES, .field_count = 2, .fields = fields, .data = data};
static const att_batch pairs = {.count = SAMPLES, .field_count = 3, .fields = fields, .data = data};

/* The logits of a session that was bound by hand. */
static void expect_logits(const fixture *f, const text *t, const att_batch *inputs, const float *logits)
{
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    float expected[SAMPLES * CLASSES];
    CHECK(f->context, att_plan_compile(att_model_graph(t->model), &options, &plan));
    CHECK(f->context, att_session_create(plan, t->weights, SAMPLES, &session));
    for (int i = 0; i < inputs->field_count; i++)
        CHECK(f->context, att_session_bind(session, inputs->fields[i].name, inputs->data[i]));
    CHECK(f->context, att_session_run(session, SAMPLES));
    CHECK(f->context, att_session_output(session, "logits", 0, SAMPLES, expected));
    assert_memory_equal(logits, expected, sizeof expected);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

FIXTURE_TEST(tokens_are_inputs)
{
    text t = text_of(f, &text_family, NULL, ATT_F32);
    att_batch answers;
    char described[ATT_INPUTS_TEXT];
    assert_string_equal(att_model_inputs_describe(t.model, described), "\"tokens\" ([6], I32), \"count\" ([], I32)");
    assert_null(att_model_input_at(t.model, 0).image);
    assert_null(att_model_input_at(t.model, 2).field.name);
    assert_int_equal(att_network_identity(t.network)->preprocess.height, 0);
    att_batch strange = texts;
    strange.first_row = 7; /* not read */
    CHECK(f->context, att_network_run(t.network, &strange, &answers));
    assert_int_equal(answers.count, SAMPLES);
    expect_logits(f, &t, &texts, att_batch_field(&answers, "logits"));
    CHECK(f->context, att_network_select_outputs(t.network, "tokens,blocks.0.attn.map"));
    CHECK(f->context, att_network_run(t.network, &texts, &answers));
    assert_int_equal(answers.field_count, 2);
    text_free(&t);
}

/* In F64, numbers are converted, and integers are not. */
FIXTURE_TEST(numbers_are_converted_to_f64_and_integers_stay)
{
    text narrow = text_of(f, &pair_family, NULL, ATT_F32), wide = text_of(f, &pair_family, NULL, ATT_F64);
    att_batch answers;
    float logits[SAMPLES * CLASSES];
    CHECK(f->context, att_network_run(narrow.network, &pairs, &answers));
    expect_logits(f, &narrow, &pairs, att_batch_field(&answers, "logits"));
    memcpy(logits, att_batch_field(&answers, "logits"), sizeof logits);
    CHECK(f->context, att_network_run(wide.network, &pairs, &answers));
    const float *others = att_batch_field(&answers, "logits");
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        assert_float_equal(logits[i], others[i], 1e-6); /* measured: 7e-8 */
    text_free(&narrow);
    text_free(&wide);
}

/* A text of four tokens has the answer that a network for four tokens gives. Without allocating memory, the plans of
 * both lengths answer again. */
FIXTURE_TEST(plans_are_kept_by_the_shapes_of_all_inputs)
{
    enum { SHORT = 4 };
    static const int32_t shorter[SAMPLES * SHORT] = {1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 10, 0};
    const att_field short_fields[] = {fields[2], {"tokens", ATT_I32, att_shape_of(SHORT)}, fields[1]};
    const void *const short_data[] = {pictures, shorter, counts};
    const att_batch shorts = {.count = SAMPLES, .field_count = 3, .fields = short_fields, .data = short_data};
    att_option_values options = att_options_none();
    att_options_set(&options, "context_length", SHORT);
    text t = text_of(f, &pair_family, NULL, ATT_F32), other = text_of(f, &pair_family, &options, ATT_F32);
    att_batch answers;
    for (int round = 0; round < 2; round++) {
        CHECK(f->context, att_network_run(t.network, &shorts, &answers));
        if (round == 0)
            expect_logits(f, &other, &shorts, att_batch_field(&answers, "logits"));
        CHECK(f->context, att_network_run(t.network, &pairs, &answers));
        if (round == 0)
            expect_logits(f, &t, &pairs, att_batch_field(&answers, "logits"));
        f->memory.left = 0;
    }
    f->memory.left = -1;
    text_free(&t);
    text_free(&other);
}

FIXTURE_TEST(wrong_inputs_are_named)
{
    text t = text_of(f, &text_family, NULL, ATT_F32);
    const att_field cases[][2] = {
        {fields[0], {"length", ATT_I32, {0}}},
        {fields[0], {NULL, ATT_I32, {0}}},
        {fields[0], fields[0]},
        {{"tokens", ATT_F32, {1, {LENGTH}}}, fields[1]},
        {{"tokens", ATT_I32, {2, {LENGTH, 1}}}, fields[1]},
        {{"tokens", ATT_I32, {1, {0}}}, fields[1]},
        {fields[0], {"count", ATT_I32, {1, {1}}}},
    };
    static const struct {
        att_status status;
        const char *message;
    } expected[] = {
        {ATT_ERR_ARGUMENT, "text has no input \"length\"; its inputs are: \"tokens\" ([6], I32), \"count\" ([], I32)"},
        {ATT_ERR_ARGUMENT, "text has no input \"\"; its inputs are"},
        {ATT_ERR_ARGUMENT, "text takes one input \"tokens\"; its inputs are"},
        {ATT_ERR_ARGUMENT, "the input \"tokens\" is F32, expected I32"},
        {ATT_ERR_MISMATCH, "the input \"tokens\" of text has the shape [6, 1], expected [6]"},
        {ATT_ERR_ARGUMENT, "context_length must be in 1..1024, not 0"},
        {ATT_ERR_MISMATCH, "the input \"count\" of text has the shape [1], expected []"},
    };
    att_batch inputs = texts, answers;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        inputs.fields = cases[i];
        assert_fails(f->context, att_network_run(t.network, &inputs, &answers), expected[i].status,
                     expected[i].message);
    }
    inputs = texts;
    inputs.field_count = 1;
    assert_fails(f->context, att_network_run(t.network, &inputs, &answers), ATT_ERR_ARGUMENT,
                 "the input \"count\" is not given; the inputs of text are: \"tokens\" ([6], I32)");
    const void *const without[] = {NULL, counts};
    inputs = texts;
    inputs.data = without;
    assert_fails(f->context, att_network_run(t.network, &inputs, &answers), ATT_ERR_ARGUMENT,
                 "the input \"tokens\" is not given");
    inputs = texts;
    inputs.count = 0;
    assert_fails(f->context, att_network_run(t.network, &inputs, &answers), ATT_ERR_ARGUMENT, "a run of 0 samples");
    inputs.count = 1;
    inputs.data = NULL;
    assert_int_equal(att_network_run(t.network, &inputs, &answers), ATT_ERR_ARGUMENT);
    assert_int_equal(att_network_run(t.network, NULL, &answers), ATT_ERR_ARGUMENT);
    text_free(&t);
}

FIXTURE_TEST(what_takes_images_refuses_a_network_without_one)
{
    static const char refusal[] = "text reads texts, and this needs a network that reads images";
    text t = text_of(f, &text_family, NULL, ATT_F32), pair = text_of(f, &pair_family, NULL, ATT_F32);
    const float *planes[] = {pictures};
    att_image image = {SIDE, SIDE, 1, NULL};
    att_batch answers;
    char path[160];
    write_picture(path_to(f, "picture.png", path));
    assert_fails(f->context, att_network_run_file(t.network, path, &answers), ATT_ERR_UNSUPPORTED, refusal);
    assert_fails(f->context, att_network_run_images(t.network, &image, 1, &answers), ATT_ERR_UNSUPPORTED, refusal);
    assert_fails(f->context, att_network_run_planes(t.network, planes, 1, SIDE, SIDE, &answers), ATT_ERR_UNSUPPORTED,
                 refusal);
    assert_fails(f->context, att_network_evaluate(t.network, f->eval, NULL, NULL), ATT_ERR_UNSUPPORTED, refusal);
    const att_train_options options = small_training();
    assert_fails(f->context, att_train(t.model, t.weights, &f->data, &options, NULL), ATT_ERR_UNSUPPORTED, refusal);
    assert_fails(f->context, att_network_run_file(pair.network, path, &answers), ATT_ERR_ARGUMENT,
                 "the input \"tokens\" is not given; the inputs of pair are: \"image\" (8 x 8 pixels, 1 channel)");
    text_free(&t);
    text_free(&pair);
}

static void count_row(void *user, const char *scope, const char *op, const char *kernel, double seconds)
{
    assert_true(scope && op && kernel && seconds >= 0);
    ++*(int *)user;
}

FIXTURE_TEST(tokens_are_explored_measured_and_timed)
{
    text t = text_of(f, &text_family, NULL, ATT_F32);
    att_explorer *explorer = NULL;
    att_measure *measure = NULL;
    att_batch answers, plain;
    float rows[2][2 * LENGTH];
    CHECK(f->context, att_network_run(t.network, &texts, &plain));
    CHECK(f->context, att_explorer_create(t.network, &explorer));
    CHECK(f->context, att_explorer_run(explorer, &texts, &answers));
    const float *logits = att_batch_field(&answers, "logits"), *expected = att_batch_field(&plain, "logits");
    for (int c = 0; c < CLASSES; c++)
        assert_float_equal(logits[c], expected[c], 1e-6); /* measured: 3e-8 */
    CHECK(f->context, att_explorer_row(explorer, 0, 1, NULL, rows[0]));
    CHECK(f->context, att_network_select_outputs(t.network, "blocks.0.attn.map"));
    CHECK(f->context, att_network_run(t.network, &texts, &plain));
    const float *map = att_batch_field(&plain, "blocks.0.attn.map");
    for (int head = 0; head < 2; head++)
        for (int key = 0; key < LENGTH; key++)
            assert_float_equal(rows[0][head * LENGTH + key], map[(head * LENGTH + 1) * LENGTH + key],
                               1e-6); /* measured: 3e-8 */
    att_explorer_destroy(&explorer);

    CHECK(f->context, att_network_observe(t.network, "entropy", NULL, &measure));
    CHECK(f->context, att_network_measure(t.network, measure, &texts, NULL));
    assert_int_equal(att_measure_at(measure, 0).count, SAMPLES);
    att_batch wrong = texts;
    const att_field longer[] = {{"tokens", ATT_I32, {1, {LENGTH + 1}}}, fields[1]};
    wrong.fields = longer;
    assert_fails(f->context, att_network_measure(t.network, measure, &wrong, NULL), ATT_ERR_MISMATCH,
                 "the input \"tokens\" of text has the shape [7], expected [6]");
    att_measure_destroy(&measure);

    int operations = 0;
    CHECK(f->context, att_network_time(t.network, 1, count_row, &operations));
    assert_true(operations > 0);
    text_free(&t);
}

FIXTURE_TEST(networks_for_tokens_are_compared)
{
    text t = text_of(f, &text_family, NULL, ATT_F32), other = text_of(f, &text_family, NULL, ATT_F32);
    text pair = text_of(f, &pair_family, NULL, ATT_F32);
    double error = 1;
    CHECK(f->context, att_models_compare(t.model, t.weights, other.model, other.weights, 4, 1, &error));
    assert_true(error == 0);
    CHECK(f->context, att_weights_initialise(other.weights, 2));
    CHECK(f->context, att_models_compare(t.model, t.weights, other.model, other.weights, 4, 1, &error));
    assert_true(error > 0.01);
    assert_fails(f->context, att_models_compare(t.model, t.weights, pair.model, pair.weights, 4, 1, &error),
                 ATT_ERR_MISMATCH,
                 "have other inputs: \"tokens\" ([6], I32), \"count\" ([], I32), and \"image\" (8 x 8");
    text_free(&t);
    text_free(&other);
    text_free(&pair);
}

/* --- a task that gives the tokens of a sample --------------------------------------------------------------------- */

static void paired_head(att_graph *graph, const att_backbone *backbone)
{
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "pairing");
    att_graph_output(graph, "number", att_nn_linear(&scope, backbone->features.pooled, 1, true));
}

static int paired_fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    (void)settings;
    out[0] = fields[0];
    out[1] = fields[1];
    out[2] = (att_field){"true_number", ATT_F32, {1, {1}}};
    return 3;
}

/* The tokens tell the class, which the task asks for. */
static att_status paired_fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                              const att_geometry *geometry, void *const *out)
{
    const int32_t label = att_dataset_label(dataset, index);
    (void)user, (void)context, (void)geometry;
    for (int i = 0; i < LENGTH; i++)
        ((int32_t *)out[0])[i] = label;
    *(int32_t *)out[1] = LENGTH;
    *(float *)out[2] = (float)label;
    return ATT_OK;
}

static att_value paired_loss(att_graph *graph, const att_task_settings *settings)
{
    const float minus = -1;
    (void)settings;
    att_value number = att_graph_input(graph, "true_number", ATT_F32, att_shape_of(1));
    att_value negative = att_scale(graph, number, att_graph_constant(graph, ATT_F32, att_shape_of(1), &minus));
    att_value error = att_add(graph, att_graph_find_output(graph, "number"), negative);
    att_value row = att_reshape(graph, error, att_shape_of(1, 1));
    return att_reshape(graph, att_matmul(graph, row, row, true, 1), (att_shape){0});
}

typedef struct squares {
    double sum, count;
} squares;

static att_status paired_observe(att_context *context, void *state, const att_task_settings *settings,
                                 const att_batch *batch, const att_batch *answers)
{
    const float *truth = att_batch_field(batch, "true_number"), *number = att_batch_field(answers, "number");
    squares *all = state;
    (void)context, (void)settings;
    for (int i = 0; i < batch->count; i++)
        all->sum += ((double)number[i] - (double)truth[i]) * ((double)number[i] - (double)truth[i]);
    all->count += batch->count;
    return ATT_OK;
}

static void paired_report(const void *state, double *values)
{
    values[0] = ((const squares *)state)->sum / ((const squares *)state)->count;
}

static const att_metric paired_metrics[] = {{.name = "error", .label = "error", .unit = ""}};
static const att_task paired = {.info = {.name = "paired",
                                         .help = "tells the class from tokens",
                                         .head_scope = "pairing",
                                         .metrics = paired_metrics,
                                         .metric_count = 1},
                                .head = paired_head,
                                .fields = paired_fields,
                                .fill = paired_fill,
                                .loss = paired_loss,
                                .state_size = sizeof(squares),
                                .observe = paired_observe,
                                .report = paired_report};

FIXTURE_TEST(an_image_with_tokens_is_trained_evaluated_and_attacked)
{
    add_task(f, &paired);
    att_option_values chosen = att_options_none();
    att_options_set_text(&chosen, "task", "paired");
    att_options_set(&chosen, "num_classes", 1);
    text t = text_of(f, &pair_family, &chosen, ATT_F32);
    att_train_options options = small_training();
    att_evaluate_options attacked = att_evaluate_options_defaults();
    att_evaluation before, after, fooled;
    options.epochs = 30;
    options.lr = 0.03;
    options.model_ema = false;
    CHECK(f->context, att_network_evaluate(t.network, f->eval, NULL, &before));
    CHECK(f->context, att_train(t.model, t.weights, &f->data, &options, NULL));
    CHECK(f->context, att_network_evaluate(t.network, f->eval, NULL, &after));
    assert_int_equal(after.count, EVAL_IMAGES);
    assert_true(before.metrics[0] > 1);   /* measured: 2.9 */
    assert_true(after.metrics[0] < 0.01); /* measured: 3e-4 */
    attacked.fgsm = 0.1;
    attacked.batch_size = 3;
    CHECK(f->context, att_network_evaluate(t.network, f->eval, &attacked, &fooled));
    assert_true(fooled.metrics[0] > 2 * after.metrics[0]); /* measured: 0.015 */
    text_free(&t);
}
