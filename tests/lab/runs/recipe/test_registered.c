/* A recipe may name modules, instruments and tasks that were registered with its context. */
#include "data/picture.h"
#include "lab/runs/recipe/small.h"

#include "networks/tasks/list.h"
#include "study/measure/list.h"

/* Copies of built-in ones with other names. */
static att_module module;
static att_instrument instrument;
static att_task task;
static att_option task_options[ATT_MOST_OPTIONS];
static char task_keys[ATT_MOST_OPTIONS][ATT_OPTION_KEY];

/* Those of classification, with other keys. */
static void own_defaults(att_option_values *options)
{
    att_option_values values = att_options_none();
    att_task_classification.defaults(&values);
    for (int i = 0; i < task.info.option_count; i++) {
        const att_option_value *value = att_options_find(&values, att_task_classification.info.options[i].key);
        if (value->count == 0)
            att_options_set_text(options, task_keys[i], value->text);
        else
            att_options_set(options, task_keys[i], value->numbers[0]);
    }
    att_options_set(options, "own_smoothing", 0.2);
}

static void rename_task_options(void)
{
    for (int i = 0; i < task.info.option_count; i++) {
        task_options[i] = task.info.options[i];
        snprintf(task_keys[i], sizeof task_keys[i], "own_%s", task_options[i].key);
        task_options[i].key = task_keys[i];
    }
    task.info.options = task_options;
    task.defaults = own_defaults;
}

static void add_own(fixture *f)
{
    size_t before = att_context_allocations(f->context).bytes_now;
    module = *att_module_at(NULL, 1);
    module.name = "own_module";
    instrument = att_instrument_entropy;
    instrument.info.name = "own_entropy";
    task = att_task_classification;
    task.info.name = "own_task";
    rename_task_options();
    assert_int_equal(att_module_register(f->context, &module), ATT_OK);
    assert_int_equal(att_instrument_register(f->context, &instrument), ATT_OK);
    assert_int_equal(att_task_register(f->context, &task), ATT_OK);
    f->bytes_at_first += att_context_allocations(f->context).bytes_now - before;
}

static void write_recipe(const fixture *f, const char *modules, const char *own, char path[160])
{
    FILE *file = fopen(path_in(f, "recipe.yaml", path), "w");
    assert_non_null(file);
    fprintf(file, "modules: %s\ntask: %s\n%s", modules, own,
            strcmp(own, "own_task") == 0 ? "own_smoothing: 0.3\nmeasure: own_entropy\neval_metric: top5\n" : "");
    assert_int_equal(fclose(file), 0);
}

FIXTURE_TEST(a_recipe_names_what_is_registered)
{
    char path[160], folder[160];
    att_yaml *yaml = NULL, *again_yaml = NULL;
    att_training *training = NULL;
    att_train_result result;
    add_own(f);
    att_recipe recipe = small_recipe(f), again;
    recipe.train.measure_every = 1;
    write_recipe(f, "own_module:init=0.5@after_attn:1", "own_task", path);
    if (att_recipe_read(f->context, path, &recipe, &yaml) != ATT_OK ||
        att_training_open(f->context, &recipe, &training) != ATT_OK ||
        att_training_run(training, NULL, &result) != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
    assert_string_equal(att_model_task(att_training_model(training)).name, "own_task");
    assert_true(att_weights_find(att_training_weights(training), "blocks.1.attn.cb.weight") >= 0);
    att_training_close(&training);
    att_yaml_destroy(&yaml);

    size_t size;
    char *records = read_all(f, "run/metrics.jsonl", &size);
    records[size] = '\0';
    assert_non_null(strstr(records, "own_task"));
    assert_non_null(strstr(records, "own_entropy"));
    free(records);
    assert_int_equal(att_recipe_default(f->context, &again), ATT_OK);
    assert_int_equal(att_recipe_read(f->context, path_in(f, "run/args.yaml", path), &again, &again_yaml), ATT_OK);
    assert_string_equal(att_options_text(&again.network.options, "modules"), "own_module:init=0.5@after_attn:1");
    assert_true(att_options_number(&again.task, "own_smoothing", 0) == 0.3);
    again.files.resume = path_in(f, "run", folder);
    if (att_training_open(f->context, &again, &training) != ATT_OK ||
        att_training_run(training, NULL, &result) != ATT_OK)
        fail_msg("%s", att_context_message(f->context));
    assert_int_equal(result.epochs, 2); /* it was finished */
    att_training_close(&training);
    att_yaml_destroy(&again_yaml);
}

FIXTURE_TEST(a_recipe_names_nothing_that_is_not_registered)
{
    char path[160];
    att_yaml *yaml = NULL;
    att_recipe recipe = small_recipe(f);
    write_recipe(f, "own_module", "classification", path);
    assert_fails(f->context, att_recipe_read(f->context, path, &recipe, &yaml), ATT_ERR_ARGUMENT,
                 "there is no \"own_module\"");
    write_recipe(f, "none", "own_tusk", path);
    assert_fails(f->context, att_recipe_read(f->context, path, &recipe, &yaml), ATT_ERR_ARGUMENT,
                 "there is no \"own_tusk\", only classification");
    add_own(f);
    assert_fails(f->context, att_recipe_read(f->context, path, &recipe, &yaml), ATT_ERR_ARGUMENT,
                 "there is no \"own_tusk\"; did you mean own_task?");
    assert_null(yaml);
}

FIXTURE_TEST(a_head_scope_of_the_network_is_refused)
{
    att_recipe recipe = small_recipe(f);
    static const char *const scopes[] = {"blocks", "head"};
    add_own(f);
    for (int i = 0; i < 2; i++) {
        att_training *training = NULL;
        task.info.head_scope = scopes[i]; /* att_task_register() knows no networks */
        att_options_set_text(&recipe.network.options, "task", "own_task");
        assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_ARGUMENT,
                     "is a scope of the network vit_tiny_patch16_224");
    }
}

static void write_picture(const char *path)
{
    void *bytes;
    size_t size;
    picture_make(100, &bytes, &size);
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    free(bytes);
}

/* Data are opened with the annotations that the recipe's task reads, and with the recipe's options about masks. */
FIXTURE_TEST(a_recipe_opens_masks_for_a_task_that_reads_them)
{
    static const char *const folders[] = {"photographs", "photographs/images", "photographs/masks"};
    char path[160], data[160];
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    add_own(f);
    task.annotations = ATT_ANNOTATION_MASK;
    att_options_set_text(&recipe.network.options, "task", "own_task");
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_MISMATCH, "masks are needed; ");
    for (int i = 0; i < 3; i++)
        mkdir(path_in(f, folders[i], path), 0777);
    write_picture(path_in(f, "photographs/images/a.png", path));
    write_picture(path_in(f, "photographs/masks/a.png", path));
    recipe.data.data_dir = path_in(f, "photographs", data);
    recipe.data.ignore_label = 100;
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_FORMAT,
                 "fewer than two classes");
    att_options_set_text(&recipe.network.options, "task", "classification");
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_MISMATCH,
                 "classes are needed; ");
}

FIXTURE_TEST(a_task_may_refuse_teachers)
{
    att_recipe recipe = small_recipe(f);
    att_training *training = NULL;
    char teacher[160];
    static att_task half;
    recipe.train.epochs = 0;
    recipe.files.experiment = "teacher";
    assert_int_equal(att_training_open(f->context, &recipe, &training), ATT_OK);
    assert_int_equal(att_training_run(training, NULL, NULL), ATT_OK);
    att_training_close(&training);
    add_own(f);
    att_options_set_text(&recipe.network.options, "task", "own_task");
    recipe.files.teacher = path_in(f, "teacher", teacher);
    recipe.files.experiment = "taught";
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_MISMATCH,
                 "is for the task \"classification\", the network for \"own_task\"");
    task.teacher_field = NULL;
    task.read_teacher = NULL;
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_UNSUPPORTED,
                 "networks for the task \"own_task\" cannot learn from a teacher");
    half = task;
    half.info.name = "half_a_task";
    half.info.option_count = 0;
    half.defaults = NULL;
    half.teacher_field = att_task_classification.teacher_field;
    assert_fails(f->context, att_task_register(f->context, &half), ATT_ERR_ARGUMENT,
                 "it needs both functions `teacher_field` and `read_teacher`, or none");
    half.teacher_field = NULL;
    half.pixel_logits = "maps";
    assert_fails(f->context, att_task_register(f->context, &half), ATT_ERR_ARGUMENT,
                 "it needs all of `pixel_logits`, `pixel_classes`, `observe_pixels` and `counts`, or none");
}

static int too_many_fields(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS])
{
    (void)settings;
    fields[0] = (att_field){.name = "target", .dtype = ATT_I32};
    return 99;
}

static int nameless_field(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS])
{
    too_many_fields(settings, fields);
    fields[0].name = NULL;
    return 1;
}

static int other_field(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS])
{
    too_many_fields(settings, fields);
    fields[0].name = "other";
    return 1;
}

static int real_field(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS])
{
    too_many_fields(settings, fields);
    fields[0].dtype = ATT_F32;
    return 1;
}

static int no_field(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS])
{
    (void)settings, (void)fields;
    return 0;
}

static void empty_head(att_graph *graph, const att_backbone *backbone)
{
    (void)graph, (void)backbone;
}

FIXTURE_TEST(a_task_that_does_not_fit_together_is_refused)
{
    att_recipe recipe = small_recipe(f);
    const struct {
        int (*fields)(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS]);
        const char *class_field, *key, *message;
    } wrong[] = {
        {too_many_fields, NULL, "own", "its function `fields` returned 99, expected 0 to 16"},
        {nameless_field, NULL, "own", "its function `fields` gave target 0 no name"},
        {other_field, NULL, "own", "reads the target \"target\", which its function `fields` does not give"},
        {no_field, NULL, "own", "reads the target \"target\", which its function `fields` does not give"},
        {real_field, NULL, "own", "the target \"target\" does not have the type and shape of the loss's input"},
        {att_task_classification.fields, "nope", "own", "its `class_field` is \"nope\", but none of its targets"},
        {att_task_classification.fields, "target", "depth", "option \"depth\": networks have an option of this key"},
    };
    add_own(f);
    att_options_set_text(&recipe.network.options, "task", "own_task");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_training *training = NULL;
        task.fields = wrong[i].fields;
        task.class_field = wrong[i].class_field;
        task_options[0].key = strcmp(wrong[i].key, "own") == 0 ? "own_smoothing" : wrong[i].key;
        assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_ARGUMENT,
                     "task \"own_task\"");
        assert_message_has(f, wrong[i].message);
        assert_null(training);
    }
    task_options[0].key = "own_smoothing";
    task.head = empty_head;
    att_training *training = NULL;
    assert_fails(f->context, att_training_open(f->context, &recipe, &training), ATT_ERR_ARGUMENT,
                 "task \"own_task\": its function `head` adds no output");
    assert_null(training);
}
