/* Observing changes no result, and figures do not depend on the division into batches. */
#include "study/measure/measure.h"
#include "study/measure/small_vit.h"

enum { BATCH = 13 };

static float images[BATCH * SIZE * SIZE * 3];
static int32_t labels[BATCH];

static void fill_images(void)
{
    for (int i = 0; i < BATCH * SIZE * SIZE * 3; i++)
        images[i] = (float)((i * 7919 + 13) % 1009) / 504.5f - 1;
    for (int i = 0; i < BATCH; i++)
        labels[i] = i * 3 % CLASSES;
}

typedef enum observing { WITHOUT, WATCHED, LOOKED_AWAY } observing;

/* Returns the weights after three updates, which belong to the caller, and the plan's fingerprint. */
static float *train(const char *broadcast, double init_values, att_precision precision, observing how,
                    char *fingerprint, size_t size)
{
    att_model *model = make_model(broadcast, init_values, 0.2, true);
    att_measure *measure = NULL;
    if (how != WITHOUT)
        must(att_measure_create(att_model_graph(model), "all", "*", &measure));
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.precision = precision;
    att_update_options with = att_update_options_defaults();
    att_gradient *gradient;
    att_update *update;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_weights_initialise(weights, 3));
    must(att_session_create(plan, weights, BATCH, &session));
    must(att_gradient_create(weights, &gradient));
    must(att_update_create(gradient, &with, &update));
    att_session_observe(session, how == WATCHED);
    must(att_session_bind(session, "image", images));
    must(att_session_bind(session, "target", labels));
    for (int step = 0; step < 3; step++) {
        att_hyper hyper = {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .update = step + 1};
        att_gradient_begin(gradient);
        must(att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 5, step, 0));
        must(att_update_reduce(update, NULL));
        must(att_update_apply(update, &hyper));
        if (how == WATCHED)
            must(att_measure_observe(measure, session, BATCH, labels));
    }
    if (how == LOOKED_AWAY)
        assert_int_equal(att_measure_observe(measure, session, BATCH, labels), ATT_ERR_ARGUMENT);
    snprintf(fingerprint, size, "%s", att_plan_fingerprint(plan));
    int64_t count = att_graph_parameter_elements(att_model_graph(model)), at = 0;
    float *values = malloc((size_t)count * sizeof *values);
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t own = att_shape_count(att_weights_at(weights, i).shape);
        must(att_weights_get(weights, -1, i, values + at, own));
        at += own;
    }
    att_update_destroy(&update);
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return values;
}

TEST(observing_leaves_training_as_it_is)
{
    static const struct {
        const char *broadcast;
        double init_values;
    } networks[] = {{"none", 0}, {"cb", 0}, {"none", 0.3}, {"cb_s:init=0.1", 0.3}};
    int precisions = att_context_has_bf16(context) ? 2 : 1;
    if (precisions == 1)
        print_message("bf16 is left out: the processor has no AVX512_BF16\n");
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        for (int precision = 0; precision < precisions; precision++) {
            char names[3][512];
            float *weights[3];
            for (int how = 0; how < 3; how++)
                weights[how] = train(networks[i].broadcast, networks[i].init_values, (att_precision)precision,
                                     (observing)how, names[how], sizeof names[how]);
            att_model *model = make_model(networks[i].broadcast, networks[i].init_values, 0.2, true);
            size_t bytes = (size_t)att_graph_parameter_elements(att_model_graph(model)) * sizeof(float);
            att_model_destroy(&model);
            for (int how = 1; how < 3; how++) {
                assert_string_equal(names[how], names[0]);
                assert_memory_equal(weights[how], weights[0], bytes);
            }
            for (int how = 0; how < 3; how++)
                free(weights[how]);
        }
}

/* Computes figures and logits of an evaluation in batches of `batch`. */
static att_measurement *evaluate(const char *with, int batch, float *logits, int *count)
{
    att_model *model = make_model("cb", 0, 0, false);
    att_measure *measure = NULL;
    if (with)
        must(att_measure_create(att_model_graph(model), with, "*", &measure));
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_weights_initialise(weights, 3));
    must(att_session_create(plan, weights, batch, &session));
    for (int first = 0; first < BATCH; first += batch) {
        int size = BATCH - first < batch ? BATCH - first : batch;
        must(att_session_bind(session, "image", images + first * SIZE * SIZE * 3));
        must(att_session_run(session, size));
        must(att_session_output(session, "logits", 0, size, logits + first * CLASSES));
        if (with)
            must(att_measure_observe(measure, session, size, labels + first));
    }
    att_measurement *copy = NULL;
    if (with) {
        *count = att_measure_count(measure);
        copy = malloc((size_t)*count * sizeof *copy);
        memcpy(copy, att_measure_all(measure), (size_t)*count * sizeof *copy);
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return copy;
}

TEST(observing_leaves_logits_as_they_are)
{
    float plain[BATCH * CLASSES], observed[BATCH * CLASSES];
    int count;
    evaluate(NULL, BATCH, plain, &count);
    free(evaluate("all", BATCH, observed, &count));
    assert_memory_equal(observed, plain, sizeof plain);
}

/* Ranks are counted here from the logits alone. */
TEST(accuracy_counts_ranks)
{
    float logits[BATCH * CLASSES];
    int count, first = 0, among_five = 0, sixth = 0;
    att_measurement *all = evaluate("accuracy", BATCH, logits, &count);
    for (int i = 0; i < BATCH; i++) {
        int before = 0;
        for (int c = 0; c < CLASSES; c++)
            before += logits[i * CLASSES + c] > logits[i * CLASSES + labels[i]];
        first += before == 0;
        among_five += before < 5;
        sixth += before == 5;
    }
    assert_true(sixth > 0); /* otherwise the test would not check the limit of five */
    assert_float_equal(all[0].mean, 100.0 * first / BATCH, 1e-9);
    assert_float_equal(all[1].mean, 100.0 * among_five / BATCH, 1e-9);
    free(all);
}

TEST(figures_do_not_depend_on_batches)
{
    float logits[BATCH * CLASSES];
    int whole_count, part_count;
    att_measurement *whole = evaluate("all", BATCH, logits, &whole_count);
    double most = 0;
    for (int batch = 1; batch < BATCH; batch += 4) {
        att_measurement *parts = evaluate("all", batch, logits, &part_count);
        assert_int_equal(part_count, whole_count);
        for (int i = 0; i < whole_count; i++) {
            assert_int_equal(parts[i].count, BATCH);
            assert_true(isfinite(parts[i].mean) && isfinite(parts[i].deviation) == isfinite(whole[i].deviation));
            most = fmax(most, fabs(parts[i].mean - whole[i].mean) / (1e-3 + fabs(whole[i].mean)));
        }
        free(parts);
    }
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("largest relative difference between batch sizes %.2g\n", most);
    assert_true(most < 1e-5);
    free(whole);
}

static int setup_with_bf16(void **state)
{
    (void)state;
    fill_images();
    att_settings settings = att_settings_defaults();
    settings.features = ATT_ALL_FEATURES;
    return att_context_create(&settings, &context) == ATT_OK ? 0 : -1;
}
TEST_GROUP(setup_with_bf16, close_context)
