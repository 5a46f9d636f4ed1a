/* Tasks registered by a program: wrong ones are refused, and the others work like built-in ones in
 * their context and in no other. */
#include "study/network/fixture.h"
#include "study/network/registered.h"

#include "engine/graph/graph.h"
#include "networks/tasks/list.h"
#include "study/train/maps.h"

/* Predicts the number of each image, its class. The loss is (prediction - number)^2 times the option `weight`. */
typedef struct numbering_options {
    double weight;
} numbering_options;

static const att_option numbering_table[] = {{.key = "weight",
                                              .kind = ATT_OPTION_REAL,
                                              .value = "X",
                                              .help = "factor of the loss",
                                              .high = 10,
                                              .training = true,
                                              ATT_OPTION_AT(numbering_options, weight)}};

static void numbering_defaults(att_option_values *options)
{
    att_options_set(options, "weight", 1);
}

static void numbering_head(att_graph *graph, const att_backbone *backbone)
{
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "counter");
    att_graph_output(graph, "number", att_nn_linear(&scope, backbone->features.pooled, 1, true));
}

static int numbering_fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    (void)settings;
    out[0] = (att_field){.name = "true_number", .dtype = ATT_F32, .shape = att_shape_of(1)};
    return 1;
}

static att_status numbering_fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                                 const att_geometry *geometry, void *const *out)
{
    (void)user, (void)context, (void)geometry;
    *(float *)out[0] = (float)att_dataset_label(dataset, index);
    return ATT_OK;
}

static att_value numbering_loss(att_graph *graph, const att_task_settings *settings)
{
    att_value answer = att_graph_find_output(graph, "number");
    if (answer == ATT_NONE)
        return att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_NOT_FOUND, "no head to number with"));
    double weight = ((const numbering_options *)(const void *)&settings->options)->weight;
    float minus = -1;
    att_value number = att_graph_input(graph, "true_number", ATT_F32, att_shape_of(1));
    att_value negative = att_scale(graph, number, att_graph_constant(graph, ATT_F32, att_shape_of(1), &minus));
    att_value difference = att_reshape(graph, att_add(graph, answer, negative), att_shape_of(1, 1));
    return att_reshape(graph, att_matmul(graph, difference, difference, true, weight), (att_shape){0});
}

/* |prediction - number| of each sample, in an allocated list that end() frees. */
typedef struct errors {
    int64_t count, room;
    double *items;
} errors;

static att_status add_error(att_context *context, errors *e, double error)
{
    if (e->count == e->room) {
        e->room = e->room ? 2 * e->room : 4;
        double *grown = realloc(e->items, (size_t)e->room * sizeof *grown);
        if (!grown)
            return att_fail(context, ATT_ERR_MEMORY, "no memory for %lld errors", (long long)e->room);
        e->items = grown;
    }
    e->items[e->count++] = error;
    return ATT_OK;
}

static att_status numbering_observe(att_context *context, void *state, const att_task_settings *settings,
                                    const att_batch *batch, const att_batch *answers)
{
    (void)settings;
    const float *truth = att_batch_field(batch, "true_number"), *number = att_batch_field(answers, "number");
    att_status status = ATT_OK;
    for (int i = 0; i < batch->count && status == ATT_OK; i++)
        status = add_error(context, state, fabs((double)number[i] - (double)truth[i]));
    return status;
}

enum { ERROR, HITS };
static const att_metric numbering_metrics[] = {
    {.name = "error", .label = "mean error", .unit = ""},
    {.name = "hits", .label = "hits", .unit = "%", .larger_is_better = true}};

static void numbering_report(const void *state, double *values)
{
    const errors *e = state;
    double sum = 0, hits = 0;
    for (int64_t i = 0; i < e->count; i++) {
        sum += e->items[i];
        hits += e->items[i] < 0.5;
    }
    values[ERROR] = e->count > 0 ? sum / (double)e->count : (double)NAN;
    values[HITS] = e->count > 0 ? 100 * hits / (double)e->count : (double)NAN;
}

static void numbering_end(att_context *context, void *state)
{
    (void)context;
    free(((errors *)state)->items);
}

static att_status numbering_describe(att_context *context, const att_batch *answer, const att_answer_options *options,
                                     void (*line)(void *user, const char *text), void *user)
{
    (void)options;
    const float *number = att_batch_field(answer, "number");
    char text[32];
    if (!number)
        return att_fail(context, ATT_ERR_MISMATCH, "no number to tell");
    snprintf(text, sizeof text, "number %.0f", (double)*number);
    line(user, text);
    return ATT_OK;
}

#define NUMBERING                                                                                                 \
    .head = numbering_head, .fields = numbering_fields, .fill = numbering_fill, .loss = numbering_loss,           \
    .state_size = sizeof(errors), .observe = numbering_observe, .report = numbering_report, .end = numbering_end, \
    .describe = numbering_describe
#define NUMBERING_METRICS .metrics = numbering_metrics, .metric_count = 2, .best = ERROR
#define NUMBERING_OPTIONS .options = numbering_table, .option_count = 1

static const att_task numbering = {
    .info = {.name = "numbering", .help = "h", .head_scope = "counter", NUMBERING_METRICS, NUMBERING_OPTIONS},
    .options_size = sizeof(numbering_options),
    .defaults = numbering_defaults,
    NUMBERING,
};

static void strange_defaults(att_option_values *options)
{
    att_options_set(options, "weight", 11);
}

FIXTURE_TEST(descriptors_of_tasks_are_checked)
{
    att_context *context = f->context;
    static const att_metric bad_name[] = {{.name = "top 1", .label = "l", .unit = "%"}},
                            no_label[] = {{.name = "top", .unit = "%"}},
                            twice[] = {{.name = "a", .label = "a", .unit = ""},
                                       {.name = "a", .label = "a", .unit = ""}};
    static const att_option outside[] =
        {{.key = "weight", .kind = ATT_OPTION_REAL, .help = "h", .offset = 8, .size = 8}},
                            bad_size[] = {{.key = "weight", .kind = ATT_OPTION_REAL, .help = "h", .size = 4}},
                            no_key[] = {{.kind = ATT_OPTION_REAL, .help = "h", .size = 8}},
                            named[] = {{.key = "name", .kind = ATT_OPTION_REAL, .help = "h", .size = 8}};
    const struct {
        att_task task;
        const char *message;
    } wrong[] = {
        {{.info = {.help = "h", NUMBERING_METRICS}, NUMBERING}, "this task has no name"},
        {{.info = {.name = "", .help = "h", NUMBERING_METRICS}, NUMBERING}, "a name must be"},
        {{.info = {.name = "a b", .help = "h", NUMBERING_METRICS}, NUMBERING}, "a name must be"},
        {{.info = {.name = "classification", .help = "h", NUMBERING_METRICS}, NUMBERING}, "this name is in use"},
        {{.info = {.name = "mine", NUMBERING_METRICS}, NUMBERING}, "task \"mine\": it has no `help`"},
        {{.info = {.name = "mine", .help = "h", .head_scope = "a.b", NUMBERING_METRICS}, NUMBERING},
         "`head_scope` must"},
        {{.info = {.name = "mine", .help = "h"}, NUMBERING}, "1 to 16 metrics"},
        {{.info = {.name = "mine", .help = "h", .metrics = numbering_metrics, .metric_count = 2, .best = 2}, NUMBERING},
         "`best` must be"},
        {{.info = {.name = "mine", .help = "h", .metrics = bad_name, .metric_count = 1}, NUMBERING},
         "each metric needs a name"},
        {{.info = {.name = "mine", .help = "h", .metrics = no_label, .metric_count = 1}, NUMBERING},
         "metric \"top\": it needs `label`"},
        {{.info = {.name = "mine", .help = "h", .metrics = twice, .metric_count = 2}, NUMBERING}, "two of this name"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS}}, "it has no function `head`"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS},
          .head = numbering_head,
          .fields = numbering_fields,
          .fill = numbering_fill,
          .loss = numbering_loss,
          .observe = numbering_observe},
         "it has no function `report`"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, NUMBERING_OPTIONS}, NUMBERING},
         "option \"weight\": its offset or size"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, NUMBERING_OPTIONS}, .options_size = 8, NUMBERING},
         "`defaults` does not set it"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, NUMBERING_OPTIONS},
          .options_size = 8,
          .defaults = strange_defaults,
          NUMBERING},
         "weight must be in 0..10"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS},
          .options_size = 8,
          .defaults = numbering_defaults,
          NUMBERING},
         "it is not declared"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS}, .options_size = 1025, NUMBERING}, "`options_size`"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, .options = outside, .option_count = 1},
          .options_size = 8,
          NUMBERING},
         "its offset or size"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, .options = bad_size, .option_count = 1},
          .options_size = 8,
          NUMBERING},
         "its offset or size"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, .options = no_key, .option_count = 1},
          .options_size = 8,
          NUMBERING},
         "needs a key"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, .options = named, .option_count = 1},
          .options_size = 8,
          NUMBERING},
         "the task's name under this key"},
        {{.info = {.name = "mine", .help = "h", NUMBERING_METRICS, .option_count = 1}, NUMBERING},
         "options are missing"},
    };
    const int count = att_task_count(context);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(context, att_task_register(context, &wrong[i].task), ATT_ERR_ARGUMENT, wrong[i].message);
    assert_fails(context, att_task_register(context, NULL), ATT_ERR_ARGUMENT, "NULL");
    assert_int_equal(att_task_count(context), count);
    add_task(f, &numbering);
    assert_fails(context, att_task_register(context, &numbering), ATT_ERR_ARGUMENT, "this name is in use");
    att_task second = numbering;
    second.info.name = "second";
    assert_fails(context, att_task_register(context, &second), ATT_ERR_ARGUMENT,
                 "its `head_scope` \"counter\" is that of the task \"numbering\"");
    second.info.head_scope = NULL;
    assert_fails(context, att_task_register(context, &second), ATT_ERR_ARGUMENT,
                 "option \"weight\": the task \"numbering\" has an option of this key");
    CHECK(context, att_task_check(context, &att_task_classification));
}

static void numbering_model(fixture *f)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    att_option_values options = tiny_options();
    att_options_set_text(&options, "task", "numbering");
    CHECK(f->context, att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &f->model));
    CHECK(f->context, att_weights_create(att_model_graph(f->model), "cpu", &f->weights));
    CHECK(f->context, att_weights_initialise(f->weights, 1));
}

/* Chooses the first block, a block that does not exist, or none. */
static int first_tap(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES])
{
    assert_int_equal(block_count, 2);
    assert_string_equal(att_options_text(options, "task"), "numbering");
    blocks[0] = 0;
    return 1;
}

static int far_tap(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES])
{
    (void)options;
    blocks[0] = block_count;
    return 1;
}

static int no_tap(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES])
{
    (void)options, (void)block_count, (void)blocks;
    return 0;
}

static att_backbone seen;

static void watching_head(att_graph *graph, const att_backbone *backbone)
{
    seen = *backbone;
    numbering_head(graph, backbone);
}

FIXTURE_TEST(a_task_chooses_blocks_as_stages)
{
    static att_task task; /* outlives the context */
    att_option_values options = tiny_options();
    att_model *model = NULL;
    const char *name = "vit_tiny_patch16_224";
    task = numbering;
    task.head = watching_head;
    task.taps = first_tap;
    add_task(f, &task);
    att_options_set_text(&options, "task", "numbering");
    CHECK(f->context, att_model_create(f->context, name, &options, ATT_F32, &model));
    const att_features *features = &seen.features;
    const att_graph *graph = att_model_graph(model);
    assert_int_equal(features->prefix, 1);
    assert_int_equal(features->block_count, 2);
    assert_true(att_shape_equal(att_value_shape(graph, features->blocks[1]), att_shape_of(5, 16)));
    assert_int_equal(features->blocks[1], features->tokens);
    assert_int_equal(features->stage_count, 1);
    assert_true(att_shape_equal(att_value_shape(graph, features->stages[0]), att_shape_of(2, 2, 16)));
    const att_node *map = att_graph_producer(graph, features->stages[0]);
    assert_string_equal(map->scope, "stage1");
    assert_int_equal(att_graph_producer(graph, map->in[0])->in[0], features->blocks[0]);
    att_model_destroy(&model);

    task.taps = att_taps_last;
    CHECK(f->context, att_model_create(f->context, name, &options, ATT_F32, &model));
    assert_int_equal(seen.features.stage_count, 2);
    att_model_destroy(&model);
    task.taps = NULL;
    CHECK(f->context, att_model_create(f->context, name, &options, ATT_F32, &model));
    assert_int_equal(seen.features.stage_count, 0);
    att_model_destroy(&model);
    task.taps = far_tap;
    assert_fails(f->context, att_model_create(f->context, name, &options, ATT_F32, &model), ATT_ERR_ARGUMENT,
                 "task \"numbering\": its function `taps` must return 1 to 4 and choose blocks 0 to 1");
    task.taps = no_tap;
    assert_fails(f->context, att_model_create(f->context, name, &options, ATT_F32, &model), ATT_ERR_ARGUMENT,
                 "its function `taps` must return 1 to 4");
}

static void keep_line(void *user, const char *text)
{
    snprintf(user, 64, "%s", text);
}

FIXTURE_TEST(a_registered_task_is_trained_and_resumed)
{
    att_context *other = open_other();
    char whole[160], resumed[160], first[160], line[64] = "";
    att_train_options options = small_training();
    att_train_result result;
    add_task(f, &numbering);
    numbering_model(f);
    assert_true(att_weights_find(f->weights, "counter.weight") >= 0);
    options.epochs = 24;
    options.lr = 1e-2;
    options.checkpoint_hist = options.epochs;
    options.output = path_in(f, "whole", whole);
    CHECK(f->context, att_train(f->model, f->weights, &f->data, &options, &result));
    assert_true(result.eval[ERROR] < 0.7); /* measured: 0.37; predicting 1.5 for every image gives 1 */
    assert_true(exists(f, "whole/model_best.safetensors"));
    assert_true(result.best_metric <= result.eval[ERROR]); /* measured: 0.35, after epoch 19 of 24 */

    options.output = path_in(f, "resumed", resumed);
    options.resume = path_in(f, "whole/checkpoint-20.safetensors", first);
    numbering_model(f);
    CHECK(f->context, att_train(f->model, f->weights, &f->data, &options, &result));
    assert_same_file(f, "whole/last.safetensors", "resumed/last.safetensors");
    att_option_values heavier = att_options_none();
    att_options_set(&heavier, "weight", 2);
    options.task_options = &heavier;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MISMATCH, "weight");

    att_network *network = NULL;
    att_network_options averaged = att_network_options_defaults();
    att_evaluation evaluation;
    averaged.averaged = true; /* as for the evaluations of the training */
    CHECK(f->context, att_network_open(f->context, whole, &averaged, &network));
    assert_true(att_network_is_averaged(network));
    assert_string_equal(att_model_task(att_network_model(network)).name, "numbering");
    CHECK(f->context, att_network_evaluate(network, f->eval, NULL, &evaluation));
    assert_true(fabs(evaluation.metrics[ERROR] - result.best_metric) < 1e-6); /* measured: 0 */
    float pixels[SIDE * SIDE] = {0};
    att_batch answers;
    const att_answer_options shown = {.topk = 1};
    CHECK(f->context, run_pixels(network, pixels, 1, SIDE, SIDE, &answers));
    CHECK(f->context, att_network_describe(network, &answers, &shown, keep_line, line));
    assert_memory_equal(line, "number ", 7);
    assert_fails(f->context, att_network_write(network, &answers, &shown, NULL), ATT_ERR_UNSUPPORTED, "numbering");
    att_network_close(&network);
    assert_fails(other, att_network_open(other, whole, NULL, &network), ATT_ERR_UNSUPPORTED,
                 "its network has the task \"numbering\", which is neither built in nor registered");
    att_option_values asked = tiny_options();
    att_model *model = NULL;
    att_options_set_text(&asked, "task", "numbering");
    assert_fails(other, att_model_create(other, "vit_tiny_patch16_224", &asked, ATT_F32, &model), ATT_ERR_ARGUMENT,
                 "task must be one of \"classification\", \"segment\", \"detect\", not \"numbering\"");
    att_context_destroy(&other);
}

/* A task says what it reads of samples: data sets are opened with it, and refused without it. */
FIXTURE_TEST(a_task_that_reads_masks_needs_them)
{
    static att_task masked; /* outlives the context */
    char path[160], images[160], masks[160];
    const char *const data = path_in(f, "photographs", images);
    att_dataset_options options = att_dataset_options_defaults();
    const att_train_options training = small_training();
    att_dataset *dataset = NULL;
    masked = numbering;
    masked.annotations = ATT_ANNOTATION_MASK;
    add_task(f, &masked);
    numbering_model(f);
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &training, NULL), ATT_ERR_MISMATCH,
                 "the task \"numbering\" needs masks, which this data set lacks: ");
    CHECK(f->context, att_checkpoint_export(f->model, f->weights, path_in(f, "masked.safetensors", path)));
    att_network *network = open_network(f, path);
    mkdir(images, 0777);
    mkdir(path_in(f, "photographs/images", masks), 0777);
    write_picture(path_in(f, "photographs/images/a.png", masks));
    options.split = NULL;
    assert_fails(f->context, att_network_open_dataset(network, &data, 1, &options, &dataset), ATT_ERR_MISMATCH,
                 "has no masks: expected");
    options.unlabelled = true;
    CHECK(f->context, att_network_open_dataset(network, &data, 1, &options, &dataset));
    assert_int_equal(att_dataset_annotations(dataset), 0);
    att_dataset_close(&dataset);
    options.unlabelled = false;
    mkdir(path_in(f, "photographs/masks", masks), 0777);
    write_picture(path_in(f, "photographs/masks/a.png", masks));
    CHECK(f->context, att_network_open_dataset(network, &data, 1, &options, &dataset));
    assert_int_equal(att_dataset_annotations(dataset), ATT_ANNOTATION_MASK);
    att_dataset_close(&dataset);
    att_network_close(&network);
}

/* Without a caption, the lines below the images are empty. */
FIXTURE_TEST(maps_of_a_registered_task_are_written)
{
    att_tensors *file = NULL;
    char path[160];
    att_maps_options options = att_maps_options_defaults();
    options.count = 2;
    add_task(f, &numbering);
    numbering_model(f);
    CHECK(f->context, att_maps_write(f->model, f->weights, f->eval, &f->eval_transform, &options,
                                     path_in(f, "maps.safetensors", path)));
    CHECK(f->context, att_tensors_open(f->context, path, &file));
    assert_true(att_tensors_find(file, ATT_MAPS_OUTPUT "number") >= 0);
    assert_string_equal(att_tensors_metadata(file, "captions"), "[\"\",\"\"]");
    att_tensors_close(&file);
}

/* A task that uses the family's classifier. The caller's task takes precedence over the file's, which need not be
 * registered. */
FIXTURE_TEST(a_caller_gives_a_file_another_task)
{
    att_context *other = open_other();
    att_network *network = NULL;
    att_option_values task = att_options_none();
    att_network_options options = att_network_options_defaults();
    char path[160];
    CHECK(f->context, att_checkpoint_export(f->model, f->weights, path_in(f, "classes.safetensors", path)));
    write_with(f, "classes.safetensors", "classification", "klassification", "other.safetensors");
    path_in(f, "other.safetensors", path);
    assert_fails(other, att_network_open(other, path, NULL, &network), ATT_ERR_UNSUPPORTED, "\"klassification\"");
    att_options_set_text(&task, "task", "classification");
    options.options = &task;
    CHECK(other, att_network_open(other, path, &options, &network));
    assert_string_equal(att_model_task(att_network_model(network)).name, "classification");
    att_network_close(&network);
    att_options_set_text(&task, "task", "nothing");
    assert_fails(other, att_network_open(other, path, &options, &network), ATT_ERR_ARGUMENT,
                 "task must be one of \"classification\", \"segment\", \"detect\", not \"nothing\"");
    att_context_destroy(&other);
}

static att_value keep(const att_scope *scope, const double *values, const att_module_site *site)
{
    (void)scope, (void)values;
    return site->branch;
}

static att_status request_nothing(att_requests *requests)
{
    return att_requests_found_nothing(requests, "node");
}

static void observe_nothing(const att_observed *observed, double *values)
{
    (void)observed, (void)values;
}

#define MODULE .places = ATT_ON_TOKENS, .meaning = "x <- x", .scope = "keep", .apply = keep
#define INSTRUMENT .request = request_nothing, .observe = observe_nothing
static const att_module first_module = {.name = "first", MODULE}, second_module = {.name = "second", MODULE};
static const att_instrument features = {.info = {.name = "features", .summary = "s", .unit = "1", .formula = "f"},
                                        INSTRUMENT},
                            most = {.info = {.name = "most", .summary = "s", .unit = "1", .formula = "f"}, INSTRUMENT};

FIXTURE_TEST(each_kind_has_a_list_of_its_own)
{
    add_instrument(f, &features);
    add_task(f, &numbering);
    add_module(f, &first_module);
    add_instrument(f, &most);
    add_module(f, &second_module);
    const int modules = att_module_count(NULL), instruments = att_instrument_count(NULL), tasks = att_task_count(NULL);
    assert_int_equal(att_module_count(f->context), modules + 2);
    assert_int_equal(att_instrument_count(f->context), instruments + 2);
    assert_int_equal(att_task_count(f->context), tasks + 1);
    assert_ptr_equal(att_module_at(f->context, modules + 1), &second_module);
    assert_string_equal(att_instrument_at(f->context, instruments).name, "features");
    assert_string_equal(att_instrument_at(f->context, instruments + 1).name, "most");
    assert_string_equal(att_task_at(f->context, tasks).name, "numbering");
}

FIXTURE_TEST(instruments_read_the_output_that_a_task_names)
{
    static att_task task; /* outlives the context */
    att_measure *measure = NULL;
    task = numbering;
    add_task(f, &task);
    numbering_model(f);
    assert_fails(f->context, att_measure_create(att_model_graph(f->model), "accuracy", "*", &measure),
                 ATT_ERR_NOT_FOUND, "the network has no output named logits");
    task.class_output = "number";
    CHECK(f->context, att_measure_create(att_model_graph(f->model), "accuracy", "*", &measure));
    att_measure_destroy(&measure);
}

/* The backbone comes from a checkpoint of another task, and the head is initialised. */
FIXTURE_TEST(a_registered_task_takes_a_classifiers_backbone)
{
    char path[160];
    att_tensors *file = NULL;
    att_new_head head;
    CHECK(f->context, att_checkpoint_export(f->model, f->weights, path_in(f, "classes.safetensors", path)));
    add_task(f, &numbering);
    numbering_model(f);
    CHECK(f->context, att_tensors_open(f->context, path, &file));
    CHECK(f->context, att_model_load_pretrained(f->model, file, f->weights, &head));
    assert_string_equal(head.names, "counter.weight, counter.bias");
    att_tensors_close(&file);
}
