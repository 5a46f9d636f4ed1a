/* A training from its recipe, in one call. */
#include "training/small.h"

typedef struct listener {
    int epochs, begins, stop_at;
    int64_t batches;
} listener;

static att_status hear(void *user, const att_event *event)
{
    listener *l = user;
    l->begins += event->kind == ATT_EVENT_RUN_BEGIN;
    l->epochs += event->kind == ATT_EVENT_EPOCH;
    return ATT_OK;
}

static bool watch_batches(void *user, const att_progress *progress)
{
    listener *l = user;
    (void)progress;
    return ++l->batches != l->stop_at;
}

static att_status run(const fixture *f, const att_recipe *recipe, listener *l, att_train_result *result)
{
    const att_sink sink = {.emit = hear, .user = l};
    const att_training_observer observer = {.sink = &sink, .progress = watch_batches, .progress_user = l};
    att_training *training = NULL;
    att_status status = att_training_open(f->context, recipe, &training);
    if (status == ATT_OK)
        status = att_training_run(training, &observer, result);
    att_training_close(&training);
    return status;
}

static void a_recipe_is_trained_into_its_folder(void **state)
{
    fixture *f = *state;
    const att_recipe recipe = small_recipe(f);
    att_train_result result;
    listener l = {0};
    if (run(f, &recipe, &l, &result) != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
    assert_int_equal(result.epochs, 2);
    assert_int_equal(l.begins, 1);
    assert_int_equal(l.epochs, 2);
    static const char *const files[] = {"args.yaml",   "classes.txt",      "metrics.jsonl",
                                        "summary.csv", "last.safetensors", "model_best.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        snprintf(name, sizeof name, "run/%s", files[i]);
        assert_true(exists(f, name));
    }
    assert_int_equal(run(f, &recipe, &l, &result), ATT_ERR_MISMATCH);
    assert_message_has(f, "holds a training already");
}

static void a_training_runs_once(void **state)
{
    fixture *f = *state;
    const att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    listener l = {0};
    const att_sink sink = {.emit = hear, .user = &l};
    const att_training_observer observer = {.sink = &sink};
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    assert_int_equal(att_training_run(training, NULL, NULL), ATT_OK);
    assert_int_equal(att_training_run(training, &observer, NULL), ATT_ERR_ARGUMENT);
    assert_message_has(f, "this training has run already");
    assert_int_equal(l.begins, 0);
    att_training_close(&training);
}

static att_status fail_silently(void *user, const att_event *event)
{
    return event->kind == *(const att_event_kind *)user ? ATT_ERR_IO : ATT_OK;
}

static att_status fail_with_reason(void *user, const att_event *event)
{
    return event->kind == ATT_EVENT_EPOCH ? att_fail((att_context *)user, ATT_ERR_IO, "the disk is full") : ATT_OK;
}

static void a_sink_that_fails_leaves_a_message(void **state)
{
    fixture *f = *state;
    att_recipe recipe = small_recipe(f);
    att_event_kind kind = ATT_EVENT_EPOCH;
    const att_sink sinks[] = {{.emit = fail_silently, .user = &kind}, {.emit = fail_with_reason, .user = f->context}};
    static const char *const messages[] = {"the sink ended the training: it returned ERR_IO at ATT_EVENT_EPOCH",
                                           "the disk is full"};
    for (int i = 0; i < 2; i++) {
        const att_training_observer observer = {.sink = &sinks[i]};
        att_training *training = NULL;
        recipe.files.experiment = i == 0 ? "silent" : "reasoned";
        assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
        assert_int_equal(att_training_run(training, &observer, NULL), ATT_ERR_IO);
        assert_message_has(f, messages[i]);
        att_training_close(&training);
    }
}

/* A training stopped after its seventh batch is resumed with the settings in its args.yaml, and ends with the same
 * bits. */
static void a_stopped_training_goes_on_to_the_same_bits(void **state)
{
    fixture *f = *state;
    att_recipe recipe = small_recipe(f), again;
    att_yaml *yaml = NULL;
    char path[160], folder[160];
    listener whole = {0}, stopped = {.stop_at = 7}, rest = {0};
    assert_int_equal(run(f, &recipe, &whole, NULL), ATT_OK);
    recipe.files.experiment = "stopped";
    assert_int_equal(run(f, &recipe, &stopped, NULL), ATT_ERR_STOPPED);

    assert_int_equal(att_recipe_default(f->context, &again), ATT_OK);
    assert_int_equal(att_recipe_read(f->context, path_in(f, "stopped/args.yaml", path), &again, &yaml), ATT_OK);
    again.files.resume = path_in(f, "stopped", folder);
    if (run(f, &again, &rest, NULL) != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
    att_yaml_destroy(&yaml);
    assert_same_file(f, "run/last.safetensors", "stopped/last.safetensors");
    assert_same_file(f, "run/model_best.safetensors", "stopped/model_best.safetensors");
}

static void what_was_left_open_is_filled_in(void **state)
{
    fixture *f = *state;
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    att_options_unset(&recipe.network.options, "num_classes");
    recipe.measure.with = "entropy";
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    const att_recipe *chosen = att_training_recipe(training);
    assert_true(att_options_number(&chosen->network.options, "num_classes", 0) == CLASSES);
    assert_int_equal(chosen->preprocess.mean.count, 1);
    assert_string_equal(chosen->train.eval_metric, "top1");
    assert_string_equal(chosen->preprocess.crop_mode, "center");
    assert_int_equal(att_model_classes(att_training_model(training)), CLASSES);
    assert_non_null(att_training_weights(training));
    assert_string_equal(att_training_folder(training)->resume, "");
    att_training_close(&training);
    assert_false(exists(f, "run")); /* nothing is written before it runs */
}

static void what_cannot_be_trained_is_refused(void **state)
{
    fixture *f = *state;
    const att_recipe good = small_recipe(f);
    att_recipe wrong[8];
    for (int i = 0; i < 8; i++)
        wrong[i] = good;
    wrong[0].network.model = NULL;
    wrong[1].network.model = "vit_tinny_patch16_224";
    wrong[2].data.data_dir = NULL;
    wrong[3].measure.with = "entropie";
    wrong[4].measure.nodes = "blocks.*";
    wrong[5].betas.count = 1;
    wrong[6].images.no_aug = false;
    wrong[6].images.scale = (att_reals){{0.9, 0.1}, 2};
    wrong[7].files.experiment = "a/b";
    static const char *const parts[] = {"not named",
                                        "did you mean",
                                        "--data-dir",
                                        "did you mean",
                                        "need --measure",
                                        "--opt-betas needs two numbers",
                                        "the first number, the least, is above",
                                        "is a path"};
    for (int i = 0; i < 8; i++) {
        att_training *training = NULL;
        assert_int_equal(att_training_open(f->context, &wrong[i], &training), ATT_ERR_ARGUMENT);
        assert_null(training);
        assert_message_has(f, parts[i]);
    }
    att_recipe few = good;
    att_options_set(&few.network.options, "num_classes", CLASSES - 1);
    att_training *training = NULL;
    assert_int_equal(att_training_open(f->context, &few, &training), ATT_ERR_ARGUMENT);
    assert_message_has(f, "each of which needs an output");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_recipe_is_trained_into_its_folder), fixture_test(a_training_runs_once),
        fixture_test(a_sink_that_fails_leaves_a_message),  fixture_test(a_stopped_training_goes_on_to_the_same_bits),
        fixture_test(what_was_left_open_is_filled_in),     fixture_test(what_cannot_be_trained_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
