/* A training run from its recipe, in one call. */
#include "lab/runs/recipe/small.h"

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

FIXTURE_TEST(a_recipe_is_trained_into_its_folder)
{
    const att_recipe recipe = small_recipe(f);
    att_train_result result;
    listener l = {0};
    if (run(f, &recipe, &l, &result) != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
    assert_int_equal(result.epochs, 2);
    assert_int_equal(l.begins, 1);
    assert_int_equal(l.epochs, 2);
    static const char *const files[] = {"args.yaml",
                                        "classes.txt",
                                        "metrics.jsonl",
                                        "summary.csv",
                                        "last.safetensors",
                                        "model_best.safetensors",
                                        "timm/model.safetensors",
                                        "timm/config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        snprintf(name, sizeof name, "run/%s", files[i]);
        assert_true(exists(f, name));
    }
    assert_fails(f->context, run(f, &recipe, &l, &result), ATT_ERR_MISMATCH, "holds a training run already");
}

FIXTURE_TEST(a_training_runs_once)
{
    const att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    listener l = {0};
    const att_sink sink = {.emit = hear, .user = &l};
    const att_training_observer observer = {.sink = &sink};
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    assert_int_equal(att_training_run(training, NULL, NULL), ATT_OK);
    assert_fails(f->context, att_training_run(training, &observer, NULL), ATT_ERR_ARGUMENT,
                 "this training has run already");
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

FIXTURE_TEST(a_sink_that_fails_leaves_a_message)
{
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
        assert_fails(f->context, att_training_run(training, &observer, NULL), ATT_ERR_IO, messages[i]);
        att_training_close(&training);
    }
}

/* A training run stopped after its seventh batch is resumed with the settings in its args.yaml, and ends with the same
 * bits. */
FIXTURE_TEST(a_stopped_training_goes_on_to_the_same_bits)
{
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

static void assert_runs(const fixture *f, att_training *training)
{
    CHECK(f->context, att_training_run(training, NULL, NULL));
}

/* A resume that was opened before another one finished the training. */
FIXTURE_TEST(a_late_resume_keeps_the_records)
{
    att_recipe recipe = small_recipe(f);
    att_training *first = NULL, *second = NULL;
    listener stopped = {.stop_at = 4}, whole = {0};
    assert_int_equal(run(f, &recipe, &stopped, NULL), ATT_ERR_STOPPED);
    recipe.files.resume = "auto";
    assert_int_equal(att_training_open(f->context, &recipe, &first), ATT_OK);
    assert_int_equal(att_training_open(f->context, &recipe, &second), ATT_OK);
    assert_runs(f, first);
    assert_runs(f, second);
    att_training_close(&first);
    att_training_close(&second);
    recipe.files.resume = NULL;
    recipe.files.experiment = "whole";
    assert_int_equal(run(f, &recipe, &whole, NULL), ATT_OK);
    assert_same_file(f, "run/summary.csv", "whole/summary.csv");
    assert_same_file(f, "run/last.safetensors", "whole/last.safetensors");
}

FIXTURE_TEST(a_second_new_training_keeps_the_first)
{
    att_recipe recipe = small_recipe(f);
    att_training *first = NULL, *second = NULL;
    char path[160], copy[160];
    assert_int_equal(att_training_open(f->context, &recipe, &first), ATT_OK);
    recipe.train.seed = 7;
    assert_int_equal(att_training_open(f->context, &recipe, &second), ATT_OK);
    assert_runs(f, first);
    assert_int_equal(link(path_in(f, "run/args.yaml", path), path_in(f, "args.yaml", copy)), 0);
    assert_fails(f->context, att_training_run(second, NULL, NULL), ATT_ERR_MISMATCH, "holds a training run already");
    assert_same_file(f, "run/args.yaml", "args.yaml");
    att_training_close(&first);
    att_training_close(&second);
}

/* The weights to start from lie in the run's own folder, under the name of a checkpoint that the run would write. */
FIXTURE_TEST(initial_weights_are_not_overwritten)
{
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    char from[160], folder[160], path[160];
    listener l = {0};
    recipe.train.epochs = 1;
    assert_int_equal(run(f, &recipe, &l, NULL), ATT_OK);
    assert_int_equal(mkdir(path_in(f, "fine", folder), 0777), 0);
    assert_int_equal(rename(path_in(f, "run/last.safetensors", from), path_in(f, "fine/model_best.safetensors", path)),
                     0);
    recipe.files.experiment = "fine";
    recipe.files.initial_checkpoint = path;
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_MISMATCH,
                 "fine holds a training run already");
}

FIXTURE_TEST(open_settings_are_filled_in)
{
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

FIXTURE_TEST(a_resume_with_other_settings_is_refused_at_once)
{
    att_recipe recipe = small_recipe(f);
    char folder[160];
    listener l = {0};
    att_training *training = NULL;
    assert_int_equal(run(f, &recipe, &l, NULL), ATT_OK);
    recipe.files.resume = path_in(f, "run", folder);
    recipe.train.lr = 2e-3;
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_MISMATCH,
                 "cannot be resumed exactly: it was trained with lr \"0.001\", not \"0.002\"");
}

/* The message names the option of the network, or the network, that differs. */
FIXTURE_TEST(a_resume_with_another_network_is_refused)
{
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    listener l = {0};
    static const char *const keys[] = {"depth", "num_heads", "in_chans"};
    static const char *const parts[] = {"exactly: it was trained with depth \"2\", not \"3\"",
                                        "exactly: it was trained with num_heads \"2\", not \"4\"",
                                        "exactly: it was trained with in_chans \"1\", not \"3\""};
    static const double values[] = {3, 4, 3};
    recipe.train.epochs = 1;
    assert_int_equal(run(f, &recipe, &l, NULL), ATT_OK);
    recipe.files.resume = "auto";
    for (int i = 0; i < 3; i++) {
        att_recipe other = recipe;
        att_options_set(&other.network.options, keys[i], values[i]);
        assert_fails(f->context, att_training_open(f->context, &other, &training), ATT_ERR_MISMATCH, parts[i]);
    }
    recipe.network.model = "deit_tiny_patch16_224";
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_MISMATCH,
                 "its network is vit_tiny_patch16_224, here it is deit_tiny_patch16_224");
}

/* The data has fewer classes than the network. */
FIXTURE_TEST(a_resume_keeps_the_number_of_classes)
{
    att_recipe recipe = small_recipe(f);
    listener l = {0};
    recipe.train.epochs = 1;
    att_options_set(&recipe.network.options, "num_classes", CLASSES + 1);
    assert_int_equal(run(f, &recipe, &l, NULL), ATT_OK);
    recipe.files.resume = "auto";
    att_options_unset(&recipe.network.options, "num_classes");
    if (run(f, &recipe, &l, NULL) != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
}

/* A resume keeps the name and the initial weights of the run. */
FIXTURE_TEST(a_resume_of_another_run_is_refused)
{
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    char initial[160], same[170], folder[160], moved[160];
    listener l = {0};
    recipe.train.epochs = 1;
    assert_int_equal(att_checkpoint_export(f->model, f->weights, path_in(f, "initial.safetensors", initial)), ATT_OK);
    recipe.files.initial_checkpoint = initial;
    assert_int_equal(run(f, &recipe, &l, NULL), ATT_OK);

    recipe.files.resume = path_in(f, "run", folder);
    recipe.files.experiment = "other";
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_ARGUMENT,
                 "--experiment other contradicts --resume ");
    assert_message_has(f, "whose --experiment is run;");
    recipe.files.experiment = NULL;
    recipe.files.initial_checkpoint = "other.safetensors";
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_ARGUMENT,
                 "--initial-checkpoint other.safetensors contradicts --resume ");
    assert_message_has(f, "/initial.safetensors;");

    snprintf(same, sizeof same, "%s/./initial.safetensors", f->folder);
    recipe.files.initial_checkpoint = same;
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    assert_string_equal(att_training_recipe(training)->files.initial_checkpoint, same);
    assert_null(att_training_recipe(training)->files.resume); /* args.yaml describes the whole training */
    att_training_close(&training);
    recipe.files.initial_checkpoint = NULL;
    recipe.files.experiment = "run"; /* as in args.yaml */
    assert_int_equal(rename(folder, path_in(f, "moved", moved)), 0);
    recipe.files.resume = moved;
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    assert_string_equal(att_training_recipe(training)->files.initial_checkpoint, initial);
    assert_int_equal(att_training_run(training, NULL, NULL), ATT_OK);
    assert_string_equal(att_training_recipe(training)->files.experiment, "moved");
    att_training_close(&training);
}

FIXTURE_TEST(null_is_refused)
{
    const att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    assert_int_equal(att_training_open(f->context, NULL, &training), ATT_ERR_ARGUMENT);
    assert_int_equal(att_training_open(f->context, &recipe, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_training_run(NULL, NULL, NULL), ATT_ERR_ARGUMENT);
    att_training_close(&training);
    att_training_close(NULL);
}

/* Each setting has one place. */
FIXTURE_TEST(a_setting_in_the_wrong_place_is_refused)
{
    const att_recipe good = small_recipe(f);
    const att_sink sink = {.emit = hear};
    static const char *const messages[] = {"set engine.amp (--amp) instead",
                                           "set engine.backend (--backend) instead",
                                           "set measure.with (--measure) instead",
                                           "set files.output (--output) instead",
                                           "set files.resume (--resume) instead",
                                           "set att_training_observer.sink instead",
                                           "network.input_size (--input-size) and the options",
                                           "set task instead"};
    enum { COUNT = sizeof messages / sizeof *messages };
    static att_recipe wrong[COUNT];
    for (int i = 0; i < COUNT; i++)
        wrong[i] = good;
    wrong[0].train.precision = ATT_MIXED;
    wrong[1].train.backend = "ref";
    wrong[2].train.measure = (att_measure *)&sink; /* never read */
    wrong[3].train.output = f->folder;
    wrong[4].train.resume = f->folder;
    wrong[5].train.sinks = &sink;
    wrong[6].network.input_size = (att_reals){{1, 8, 8}, 3};
    wrong[7].train.task_options = &wrong[7].task;
    for (int i = 0; i < COUNT; i++) {
        att_training *training = NULL;
        assert_fails(f->context, att_training_open(f->context, &wrong[i], &training), ATT_ERR_ARGUMENT, messages[i]);
    }
}

/* Settings of att_recipe.train that flags write as lists. */
FIXTURE_TEST(settings_of_train_reach_the_training)
{
    att_recipe recipe = small_recipe(f), again;
    att_training *training = NULL;
    att_yaml *yaml = NULL;
    char path[160];
    recipe.train.beta1 = 0.5;
    recipe.train.decay_milestones[0] = 1;
    recipe.train.decay_milestone_count = 1;
    recipe.train.cutmix_minmax[0] = 0.25, recipe.train.cutmix_minmax[1] = 0.75;
    recipe.train.aug_repeats = 2;
    recipe.train.measure_every = 3;
    recipe.measure.with = "entropy";
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    assert_int_equal(att_recipe_write(f->context, path_in(f, "args.yaml", path), att_training_recipe(training)),
                     ATT_OK);
    again = *att_training_recipe(training);
    again.preprocess.std.count = 9;
    assert_fails(f->context, att_recipe_write(f->context, path, &again), ATT_ERR_ARGUMENT,
                 "--std (preprocess.std): its count is 9, expected 0 to 3");
    again = *att_training_recipe(training);
    again.train.decay_milestone_count = 99;
    assert_int_equal(att_recipe_write(f->context, path, &again), ATT_ERR_ARGUMENT);
    assert_int_equal(att_recipe_write(f->context, NULL, &recipe), ATT_ERR_ARGUMENT);
    att_training_close(&training);
    assert_int_equal(att_recipe_default(f->context, &again), ATT_OK);
    assert_int_equal(att_recipe_read(f->context, path, &again, &yaml), ATT_OK);
    assert_true(again.train.beta1 == 0.5 && again.train.beta2 == 0.999);
    assert_int_equal(again.train.decay_milestone_count, 1);
    assert_int_equal(again.train.decay_milestones[0], 1);
    assert_true(again.train.cutmix_minmax[0] == 0.25 && again.train.cutmix_minmax[1] == 0.75);
    assert_int_equal(again.train.aug_repeats, 2);
    assert_int_equal(again.train.measure_every, 3);
    att_yaml_destroy(&yaml);
}

FIXTURE_TEST(short_forms_of_options_are_moved_into_them)
{
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    recipe.network.model = "resnet20";
    recipe.network.options = att_options_none();
    att_options_set_text(&recipe.network.options, "modules", "step");
    recipe.network.input_size = (att_reals){{1, 8, 12}, 3};
    recipe.network.adaptor = "dct";
    CHECK(f->context, att_training_open(f->context, &recipe, &training));
    const att_recipe_network *network = &att_training_recipe(training)->network;
    const att_option_value *size = att_options_find(&network->options, "img_size");
    assert_true(size && size->numbers[0] == 8 && size->numbers[1] == 12);
    assert_non_null(strstr(att_options_text(&network->options, "modules"), "adaptor=dct"));
    assert_int_equal(network->input_size.count, 0);
    assert_null(network->adaptor);
    att_training_close(&training);
}

/* Values that no flag could have stored. */
FIXTURE_TEST(values_are_checked_as_those_of_flags)
{
    const att_recipe good = small_recipe(f);
    static const char *const messages[] = {
        "--batch-size (train.batch_size): \"0\" is not a whole number from 1 to 65536",
        "--opt (train.optimizer): there is no \"admw\"; did you mean adamw?",
        "--train-crop-mode (images.crop_mode): there is no \"rcc\"; did you mean rrc?",
        "--lr (train.lr): \"nan\" is not a number from 0",
        "--crop-pct (preprocess.crop_pct): \"-1\" is not a number",
        "--mean (preprocess.mean): its count is 9, expected 0 to 3",
        "--decay-milestones (train.decay_milestones): its count is -1, expected 0 to 8",
        "task: no task has an option \"smothing\"; did you mean \"smoothing\"?",
        "--smoothing: \"2\" is not a number",
        "--amp computes in bfloat16 only, not in float16",
        "--amp-force has no effect without --amp",
        "--img-scale (images.img_scale) is a setting of --train-crop-mode keep, within and rsc, which is not given",
        "--ratio-range (images.ratio_range) is a setting of --train-crop-mode rsc, which is not given",
        "--cat-max-ratio (images.cat_max_ratio) is a setting of --train-crop-mode rsc, which is not given",
        "--img-scale (images.img_scale) 512 2048: expected whole numbers, the longer side first",
        "--photometric-distortion excludes --aa and --three-augment: leave one of them out",
    };
    enum { COUNT = sizeof messages / sizeof *messages };
    static att_recipe wrong[COUNT];
    for (int i = 0; i < COUNT; i++)
        wrong[i] = good;
    wrong[0].train.batch_size = 0;
    wrong[1].train.optimizer = "admw";
    wrong[2].images.crop_mode = "rcc";
    wrong[3].train.lr = NAN;
    wrong[4].preprocess.crop_pct = -1;
    wrong[5].preprocess.mean.count = 9;
    wrong[6].train.decay_milestone_count = -1;
    att_options_set(&wrong[7].task, "smothing", 0.1);
    att_options_set(&wrong[8].task, "smoothing", 2);
    wrong[9].engine.amp = true, wrong[9].engine.amp_dtype = "float16";
    wrong[10].engine.amp_force = true;
    for (int i = 11; i < COUNT; i++)
        wrong[i].images.no_aug = false;
    wrong[11].images.img_scale[0] = wrong[11].images.img_scale[1] = 64;
    wrong[12].images.ratio_range[0] = 1;
    wrong[13].images.crop_mode = "keep", wrong[13].images.cat_max_ratio = 0.75;
    wrong[14].images.crop_mode = "rsc", wrong[14].images.img_scale[0] = 512, wrong[14].images.img_scale[1] = 2048;
    wrong[15].images.photometric_distortion = wrong[15].images.three_augment = true;
    for (int i = 0; i < COUNT; i++) {
        att_training *training = NULL;
        assert_fails(f->context, att_training_open(f->context, &wrong[i], &training), ATT_ERR_ARGUMENT, messages[i]);
    }
}

FIXTURE_TEST(texts_that_are_null_have_their_defaults)
{
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    recipe.data.train_split = recipe.data.val_split = NULL;
    recipe.images.crop_mode = recipe.images.remode = NULL;
    recipe.train.optimizer = recipe.train.schedule = recipe.train.mixup_mode = recipe.train.weight_decay_on = NULL;
    recipe.measure.nodes = NULL;
    recipe.files.output = recipe.files.experiment = recipe.files.resume = recipe.files.initial_checkpoint = "";
    recipe.engine.backend = recipe.engine.amp_dtype = NULL;
    CHECK(f->context, att_training_open(f->context, &recipe, &training));
    const att_recipe *filled = att_training_recipe(training);
    assert_string_equal(filled->train.optimizer, "sgd");
    assert_string_equal(filled->data.val_split, "validation");
    assert_string_equal(filled->files.output, "output/train");
    assert_string_equal(filled->engine.backend, "cpu");
    assert_true(att_training_folder(training)->unnamed);
    att_training_close(&training);
}

FIXTURE_TEST(recipes_that_cannot_be_trained_are_refused)
{
    const att_recipe good = small_recipe(f);
    char modules[ATT_OPTION_TEXT_BYTES];
    enum { COUNT = 13 };
    att_recipe wrong[COUNT];
    for (int i = 0; i < COUNT; i++)
        wrong[i] = good;
    wrong[0].network.model = NULL;
    wrong[1].network.model = "vit_tinny_patch16_224";
    wrong[2].data.data_dir = NULL;
    wrong[3].measure.with = "entropie";
    wrong[4].measure.nodes = "blocks.*";
    wrong[5].train.beta2 = 1.5;
    wrong[6].images.no_aug = false;
    wrong[6].images.scale[0] = 0.9, wrong[6].images.scale[1] = 0.1;
    wrong[7].files.experiment = "a/b";
    wrong[8].train.cutmix_minmax[0] = 0.5, wrong[8].train.cutmix_minmax[1] = 0.25;
    wrong[9].train.cutmix_minmax[0] = wrong[9].train.cutmix_minmax[1] = 0.5;
    wrong[10].preprocess.mean = (att_reals){{0.5, 0.5}, 2};
    wrong[11].preprocess.std = (att_reals){{0.5, 0.5, 0.5}, 3};
    wrong[12].network.adaptor = "dct";
    snprintf(modules, sizeof modules, "step@attn:%0*d", (int)sizeof modules - 12, 0);
    att_options_set_text(&wrong[12].network.options, "modules", modules);
    static const char *const parts[COUNT] = {
        "no network is named",
        "did you mean",
        "--data-dir",
        "did you mean",
        "need --measure",
        "--opt-betas (train.beta1, beta2): \"0.9 1.5\" is not two numbers from 0 to 0.999999",
        "the first number, the lower limit, is above",
        "is a path",
        "--cutmix-minmax 0.5 0.25: the first number, the lower limit, is above the second",
        "--cutmix-minmax 0.5 0.5: the second number must be above the first",
        "--mean has 2 numbers, but the network's images have 1 channel; give one number, or one a channel",
        "--std has 3 numbers, but the network's images have 1 channel; give one number, or one a channel",
        "--adaptor dct makes modules too long: step:adaptor=dct@attn:000"};
    for (int i = 0; i < COUNT; i++) {
        att_training *training = NULL;
        assert_int_equal(att_training_open(f->context, &wrong[i], &training), ATT_ERR_ARGUMENT);
        assert_null(training);
        assert_message_has(f, parts[i]);
    }
    att_recipe files = good;
    files.data.class_map = "/nowhere/map";
    att_training *unread = NULL;
    assert_fails(f->context, att_training_open(f->context, &files, &unread), ATT_ERR_IO,
                 "--class-map /nowhere/map could not be opened");
    att_recipe few = good;
    att_options_set(&few.network.options, "num_classes", CLASSES - 1);
    att_training *training = NULL;
    assert_fails(f->context, att_training_open(f->context, &few, &training), ATT_ERR_ARGUMENT,
                 "each of which needs an output");
}
