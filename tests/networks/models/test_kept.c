/* Which values of a sample a training plan keeps, and which it computes again. This test shows the effect of changes in
 * passes/keep.c on whole networks. */
#include <attscope/update.h>

#include "context.h"
#include "engine/session/session.h"
#include "engine/weights/weights.h"
#include "networks/models/fixture.h"
#include "networks/models/loss.h"
#include "sanitized.h"

SHARED_CONTEXT(threads, 2)

/* kept: KiB of one sample. steps: in the body of the training plan. */
static const struct {
    const char *name, *attn;
    int img_size, width, kept, steps;
} networks[] = {{"resnet50", "none", 224, 0, 47044, 755},   {"resnet50", "se", 224, 0, 44463, 1024},
                {"resnet18", "none", 224, 0, 11964, 305},   {"resnet164", "none", 32, 0, 10272, 2416},
                {"resnet164", "step", 32, 0, 10373, 3946},  {"preresnet29", "cbam", 32, 0, 2437, 901},
                {"preresnet29", "none", 96, 64, 80642, 419}};

TEST(networks_keep_the_expected_bytes_by_default)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        att_option_values model_options = att_options_none();
        att_options_set(&model_options, "img_size", networks[i].img_size),
            (networks[i].width > 0 ? att_options_set(&model_options, "width", networks[i].width) : (void)0);
        att_options_set_text(&model_options, "modules", networks[i].attn);
        att_plan_options options = att_plan_options_defaults();
        options.purpose = ATT_TRAIN, options.backend = "ref";
        att_model *model;
        att_plan *plan;
        must(att_model_create(context, networks[i].name, &model_options, ATT_F32, &model));
        loss_add(model, 0);
        must(att_plan_compile(att_model_graph(model), &options, &plan));
        att_plan_facts facts = att_plan_describe(plan);
        print_message("%s, %s, %d: %zu KiB, %d steps\n", networks[i].name, networks[i].attn, networks[i].img_size,
                      facts.kept_bytes >> 10, facts.steps);
        wrong += facts.kept_bytes >> 10 != (size_t)networks[i].kept || facts.steps != networks[i].steps;
        att_plan_destroy(&plan);
        att_model_destroy(&model);
    }
    assert_int_equal(wrong, 0);
}

static att_model *create(const char *name, const char *attn)
{
    att_model *model;
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 16), att_options_set(&options, "num_classes", 3);
    att_options_set_text(&options, "modules", attn);
    must(att_model_create(context, name, &options, ATT_F32, &model));
    loss_add(model, 0);
    return model;
}

static att_plan *compile(const att_model *model, att_precision precision, size_t keep_bytes)
{
    att_plan *plan;
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.lanes = 2;
    options.precision = precision, options.keep_bytes = keep_bytes;
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    return plan;
}

/* Networks whose blocks have all kinds of shortcuts, and gates that need values of the whole batch. */
static const char *const small[][2] = {{"resnet29", "se"}, {"preresnet29", "cbam"}, {"resnet20", "srm"}};
enum { SMALL = sizeof small / sizeof *small };

/* If more memory may be used, more is kept and less is computed again. Padding between short rows adds up to 2 % here.
 * */
TEST(kept_bytes_grow_within_what_they_may)
{
    for (int i = 0; i < SMALL; i++) {
        att_model *model = create(small[i][0], small[i][1]);
        att_plan *plan = compile(model, ATT_FULL, SIZE_MAX);
        size_t most = att_plan_describe(plan).kept_bytes, before = 0;
        int steps = INT32_MAX;
        att_plan_destroy(&plan);
        for (size_t part = 0; part <= 16; part += is_sanitized() ? 4 : 1) {
            /* the choice does not know that kept values share rows, so that it takes more than it needs */
            size_t keep_bytes = part == 16 ? SIZE_MAX : part ? most * part / 16 : 1;
            plan = compile(model, ATT_FULL, keep_bytes);
            att_plan_facts facts = att_plan_describe(plan);
            print_message("%s, %s: %zu of %zu bytes, %d steps\n", small[i][0], small[i][1], facts.kept_bytes,
                          keep_bytes, facts.steps);
            assert_true(facts.kept_bytes >= before);
            assert_true(facts.steps <= steps);
            assert_true(part == 16 || facts.kept_bytes <= keep_bytes + keep_bytes / 20 || facts.kept_bytes == before ||
                        part == 0);
            before = facts.kept_bytes;
            steps = facts.steps;
            att_plan_destroy(&plan);
        }
        assert_true(before == most);
        att_model_destroy(&model);
    }
}

enum { BATCH = 5, UPDATES = 3 };

/* Enough samples for kept values to need more memory than recomputation does. */
enum { MANY = 64 };

static size_t taken_by(const att_plan *plan, const att_weights *weights, int batch)
{
    return att_session_bytes(plan, batch) + 2 * att_weights_bytes(weights);
}

/* A session stays within the memory for which its plan was fitted, weights and slots included, and uses as much as it
 * can: with enough memory, everything is kept. */
TEST(sessions_stay_within_their_memory)
{
    for (int i = 0; i < SMALL; i++) {
        att_model *model = create(small[i][0], small[i][1]);
        const att_graph *graph = att_model_graph(model);
        att_plan_options options = att_plan_options_defaults();
        options.purpose = ATT_TRAIN, options.lanes = 2;
        size_t bytes[2], before = 0;
        att_weights *weights;
        must(att_weights_create(graph, "cpu", &weights));
        must(att_weights_add_slot(weights, "momentum_buffer", &weights->own.layout));
        size_t most = 0;
        for (size_t j = 0; j < 2; j++) {
            att_plan *plan = compile(model, ATT_FULL, j ? SIZE_MAX : 1);
            bytes[j] = taken_by(plan, weights, MANY);
            most = att_plan_describe(plan).kept_bytes;
            att_plan_destroy(&plan);
        }
        for (size_t part = 0; part <= 8; part += is_sanitized() ? 4 : 1) {
            att_plan *plan;
            size_t memory = bytes[0] + (bytes[1] - bytes[0]) * part / 8;
            must(att_session_fit(graph, &options, weights, MANY, memory, 0, &plan));
            size_t taken = taken_by(plan, weights, MANY);
            print_message("%s, %s: %zu of %zu bytes\n", small[i][0], small[i][1], taken, memory);
            assert_true(taken <= memory);
            assert_true(att_plan_describe(plan).kept_bytes >= before);
            before = att_plan_describe(plan).kept_bytes;
            att_plan_destroy(&plan);
        }
        assert_true(before == most);
        assert_true(before > 0);
        att_weights_destroy(&weights);
        att_model_destroy(&model);
    }
}

/* For a single sample, recomputation takes more memory than it saves, here about twice as much: the default rule fits
 * where keeping the least does not. */
TEST(one_sample_fits_by_the_default_rule)
{
    att_model *model = create(small[0][0], small[0][1]);
    const att_graph *graph = att_model_graph(model);
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.lanes = 2;
    att_weights *weights;
    must(att_weights_create(graph, "cpu", &weights));
    att_plan *least = compile(model, ATT_FULL, 1), *by_rule = compile(model, ATT_FULL, 0), *fitted;
    size_t memory = att_session_bytes(by_rule, 1) + att_weights_bytes(weights);
    assert_true(att_session_bytes(least, 1) > att_session_bytes(by_rule, 1));
    must(att_session_fit(graph, &options, weights, 1, memory, 0, &fitted));
    assert_true(att_session_bytes(fitted, 1) + att_weights_bytes(weights) <= memory);
    att_plan_destroy(&fitted);
    assert_int_equal(att_session_fit(graph, &options, weights, 1, memory - 1, 0, &fitted), ATT_ERR_MEMORY);
    att_plan_destroy(&by_rule);
    att_plan_destroy(&least);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
}

/* Returns the bytes of all tensors after some updates; the caller frees them. */
static float *train(const att_model *model, const att_plan *plan, int64_t *count)
{
    att_weights *weights;
    att_session *session;
    att_gradient *gradient;
    att_update *updates;
    int32_t targets[BATCH] = {0, 1, 2, 0, 1};
    size_t pixels = 3 * 16 * 16;
    float *images = malloc(BATCH * pixels * sizeof *images);
    assert_non_null(images);
    for (uint32_t i = 0; i < BATCH * pixels; i++)
        images[i] = (float)formula("image", i);
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_weights_initialise(weights, 1));
    must(att_session_create(plan, weights, BATCH, &session));
    must(att_gradient_create(weights, &gradient));
    must(att_update_create(gradient, &(att_update_options){.backend = "cpu", .optimizer = "sgd"}, &updates));
    must(att_session_bind(session, "image", images));
    must(att_session_bind(session, "target", targets));
    for (int update = 1; update <= UPDATES; update++) {
        att_hyper hyper = {.lr = 0.05, .momentum = 0.9, .update = update};
        att_gradient_begin(gradient);
        must(att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 1, update, 0));
        must(att_update_reduce(updates, NULL));
        must(att_update_apply(updates, &hyper));
    }
    *count = 0;
    for (int i = 0; i < att_weights_count(weights); i++)
        *count += att_shape_count(att_weights_at(weights, i).shape);
    float *values = malloc((size_t)*count * sizeof *values), *to = values;
    assert_non_null(values);
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t elements = att_shape_count(att_weights_at(weights, i).shape);
        must(att_weights_get(weights, -1, i, to, elements));
        to += elements;
    }
    att_update_destroy(&updates);
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    free(images);
    return values;
}

TEST(weights_do_not_depend_on_what_is_kept)
{
    static const size_t keep_bytes[] = {1, 0, SIZE_MAX};
    for (int i = 0; i < 2 * SMALL; i++) {
        att_precision precision = i % 2 ? ATT_MIXED : ATT_FULL;
        att_model *model = create(small[i / 2][0], small[i / 2][1]);
        float *first = NULL;
        char fingerprint[512] = "";
        for (int j = 0; j < 3; j++) {
            int64_t count;
            att_plan *plan = compile(model, precision, keep_bytes[j]);
            float *values = train(model, plan, &count);
            if (!first) {
                first = values;
                snprintf(fingerprint, sizeof fingerprint, "%s", att_plan_fingerprint(plan));
            } else {
                assert_memory_equal(values, first, (size_t)count * sizeof *values);
                assert_string_equal(att_plan_fingerprint(plan), fingerprint);
                free(values);
            }
            att_plan_destroy(&plan);
        }
        free(first);
        att_model_destroy(&model);
    }
}
