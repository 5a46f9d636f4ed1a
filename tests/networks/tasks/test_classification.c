/* Classification: targets against timm's (tests/goldens/mix.txt), the loss in a graph, and metrics with a state. */
#include <attscope/ops.h>

#include "base/io/golden.h"
#include "base/io/json.h"
#include "data/label_sets.h"
#include "data/mix.h"
#include "data/pictures.h"
#include "engine/graph/graph.h"
#include "engine/ops/binary_cross_entropy.h"
#include "networks/tasks/caption.h"
#include "networks/tasks/list.h"
#include "networks/tasks/score.h"

static const att_task *const task = &att_task_classification;

/* --- targets -------------------------------------------------------------------------------------------------------
 */

enum { COUNT = 4, CLASSES = 3 };

static att_task_settings settings_of(int classes, bool mixed)
{
    const att_task_setup setup = {.classes = classes, .mixed = mixed};
    att_task_settings settings;
    assert_int_equal(att_task_configure(NULL, task, &setup, &settings), ATT_OK);
    return settings;
}

static void fill_target(const att_task_settings *settings, const att_dataset *dataset, int64_t index, void *target)
{
    void *fields[1] = {target};
    assert_int_equal(task->fill(settings, NULL, dataset, index, NULL, fields), ATT_OK);
}

static void check_mixed(const att_dataset *dataset, double lambda, const char *hash, const char *line)
{
    static const int64_t labels[COUNT] = {2, 0, 1, 1}; /* image i of the data set has class i */
    const att_task_settings settings = settings_of(CLASSES, true);
    const att_mixing mixing = {.lambda = lambda};
    float targets[COUNT][CLASSES], other[CLASSES];
    for (int i = 0; i < COUNT; i++) {
        fill_target(&settings, dataset, labels[i], targets[i]);
        fill_target(&settings, dataset, labels[COUNT - 1 - i], other);
        task->mix(&settings, &(void *){targets[i]}, &(const void *){other}, &mixing);
    }
    char found[32];
    snprintf(found, sizeof found, "%016" PRIx64, golden_hash(targets, sizeof targets));
    if (strcmp(found, hash) != 0)
        fail_msg("%s: found %s", line, found);
}

static att_dataset *open_images(scratch *self)
{
    att_dataset *dataset = NULL;
    idx_write(self, "train", 7, 7);
    assert_int_equal(att_dataset_open(self->context, self->folder, NULL, &dataset), ATT_OK);
    return dataset;
}

SCRATCH_TEST(mixed_targets_are_timms)
{
    att_dataset *dataset = open_images(self);
    char path[4096], line[256], hash[32];
    int kind, y, x, count = 0;
    double lambda;
    golden_path("mix.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "mixed %d %lf %d %d %*s %31s", &kind, &lambda, &y, &x, hash) != 5)
            continue;
        if (kind == 1) /* the share of 6 x 8 pixels that CutMix's box leaves */
            lambda = att_mix_box(6, 8, lambda, y, x).lambda;
        check_mixed(dataset, lambda, hash, line);
        count++;
    }
    fclose(file);
    assert_int_equal(count, 4);
    att_dataset_close(&dataset);
}

SCRATCH_TEST(tasks_are_found_by_name)
{
    att_task_info info;
    for (int i = 0; i < att_task_count(NULL); i++) {
        assert_int_equal(att_task_find(self->context, att_task_at(NULL, i).name, &info), ATT_OK);
        assert_string_equal(info.name, att_task_at(NULL, i).name);
        assert_true(info.metric_count > 0 && info.best >= 0 && info.best < info.metric_count);
        assert_int_equal(att_task_metric(&info, "no metric"), -1);
    }
    assert_fails(self->context, att_task_find(self->context, "no task", &info), ATT_ERR_NOT_FOUND,
                 "there are: classification");
}

SCRATCH_TEST(a_target_is_a_class_where_nothing_is_mixed)
{
    att_dataset *dataset = open_images(self);
    const att_task_settings settings = settings_of(7, false);
    att_field fields[ATT_MAX_TARGETS];
    att_target_rules rules;
    assert_int_equal(att_task_targets(self->context, task, &settings, fields, &rules), ATT_OK);
    assert_int_equal(rules.count, 1);
    assert_string_equal(rules.fields[0].name, "target");
    assert_int_equal(rules.fields[0].dtype, ATT_I32);
    int32_t label = -1;
    fill_target(&settings, dataset, 5, &label);
    assert_int_equal(label, 5);
    att_dataset_close(&dataset);
}

static att_status check(att_context *context, int classes, const att_dataset *dataset)
{
    const att_task_settings settings = settings_of(classes, false);
    return task->check(context, &settings, dataset);
}

SCRATCH_TEST(classes_beyond_the_network_are_refused)
{
    att_dataset *dataset = open_images(self);
    assert_int_equal(check(self->context, 7, dataset), ATT_OK);
    assert_fails(self->context, check(self->context, 6, dataset), ATT_ERR_MISMATCH,
                 "is of class 6, but the model has 6 classes");
    assert_fails(self->context, check(self->context, 0, dataset), ATT_ERR_MISMATCH, "no head");
    att_dataset_close(&dataset);
}

/* --- metrics -------------------------------------------------------------------------------------------------------
 */

enum { WIDTH = 6, SAMPLES = 5 };

static const int32_t labels[SAMPLES] = {0, 5, 2, 3, 1};
static const float some_logits[SAMPLES][WIDTH] = {
    {3, 1, 0, 0, 0, 0}, /* the class ranks first */
    {9, 8, 7, 6, 5, 4}, /* sixth */
    {0, 0, 1, 2, 0, 0}, /* second */
    {1, 1, 1, 1, 1, 1}, /* fourth: of equal logits, the lower class ranks first */
    {0, NAN, 0, 0, 0, 0}};

static void observe(void *state, int first, int count)
{
    static const att_field target = {.name = "target", .dtype = ATT_I32},
                           answer = {.name = "logits", .dtype = ATT_F32, .shape = {1, {WIDTH}}};
    const att_task_settings settings = settings_of(WIDTH, false);
    const void *targets = labels + first, *rows = some_logits + first;
    const att_batch batch = {.count = count, .field_count = 1, .fields = &target, .data = &targets};
    const att_batch answers = {.count = count, .field_count = 1, .fields = &answer, .data = &rows};
    assert_int_equal(task->observe(NULL, state, &settings, &batch, &answers), ATT_OK);
}

static double metric(const char *name, const double *values)
{
    int index = att_task_metric(&task->info, name);
    assert_true(index >= 0);
    return values[index];
}

TEST(metrics_are_by_definition)
{
    _Alignas(16) char whole[64] = {0}, empty[64] = {0};
    double values[ATT_MAX_METRICS];
    assert_true(task->state_size <= sizeof whole);
    task->report(empty, values);
    assert_true(isnan(metric("top1", values)) && isnan(metric("top5", values)) && isnan(metric("loss", values)));
    observe(whole, 0, SAMPLES);
    task->report(whole, values);
    assert_float_equal(metric("top1", values), 20, 1e-12);
    assert_float_equal(metric("top5", values), 60, 1e-12);
    assert_true(isnan(metric("loss", values)));
    memset(whole, 0, sizeof whole);
    observe(whole, 0, 1);
    observe(whole, 1, 3);
    task->report(whole, values);
    double expected = log(1 + exp(-2) + 4 * exp(-3)) + (log(1 + exp(-1) + exp(-2) + exp(-3) + exp(-4) + exp(-5)) + 5) +
                      (log(exp(1) + exp(2) + 4) - 1) + log(6);
    assert_float_equal(metric("loss", values), expected / 4, 1e-12);
}

/* --- loss ----------------------------------------------------------------------------------------------------------
 */

/* Returns a graph whose only output has this name. */
static att_graph *graph_with(att_context **context, const char *output)
{
    att_graph *graph;
    assert_int_equal(att_context_create(NULL, context), ATT_OK); /* a context with operations */
    assert_int_equal(att_graph_create(*context, ATT_F32, &graph), ATT_OK);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(WIDTH));
    att_graph_output(graph, output, att_gelu(graph, x));
    return graph;
}

TEST(the_loss_is_added_with_its_target)
{
    for (int mixed = 0; mixed < 2; mixed++) {
        att_context *context;
        att_graph *graph = graph_with(&context, "logits");
        const att_task_setup setup = {.classes = WIDTH, .mixed = mixed};
        assert_int_equal(att_task_add_loss("classification", graph, &setup), ATT_OK);
        att_value target = graph->inputs.items[1].value;
        assert_string_equal(graph->inputs.items[1].name, "target");
        assert_int_equal(att_value_dtype(graph, target), mixed ? ATT_F32 : ATT_I32);
        assert_int_equal(att_value_shape(graph, target).rank, mixed);
        assert_int_equal(att_value_shape(graph, att_graph_find_output(graph, "loss")).rank, 0);
        att_graph_destroy(&graph);
        att_context_destroy(&context);
    }
}

static void add_loss_with(const char *key, double value, double threshold, att_graph **graph, att_context **context,
                          att_status status)
{
    att_option_values options = att_options_none();
    att_options_set(&options, key, value);
    att_options_set(&options, "bce_target_thresh", threshold);
    *graph = graph_with(context, "logits");
    const att_task_setup setup = {.classes = WIDTH, .mixed = true, .options = &options};
    assert_int_equal(att_task_add_loss("classification", *graph, &setup), status);
}

TEST(binary_cross_entropy_is_an_option)
{
    att_context *context;
    att_graph *graph;
    static const double thresholds[] = {-1, 0, 0.2};
    for (int i = 0; i < 3; i++) {
        add_loss_with("bce_loss", 1, thresholds[i], &graph, &context, ATT_OK);
        const att_node *node = &graph->nodes.items[graph->nodes.count - 1];
        assert_string_equal(node->op->name, "binary_cross_entropy");
        const att_binary_cross_entropy_attrs *attrs = node->attrs;
        assert_int_equal(attrs->binary, thresholds[i] >= 0);
        assert_true(!attrs->binary || attrs->threshold == thresholds[i]);
        assert_true(attrs->smoothing == 0 && attrs->positive_weight == 1 && !attrs->sum);
        att_graph_destroy(&graph);
        att_context_destroy(&context);
    }
}

TEST(settings_of_another_loss_are_refused)
{
    att_context *context;
    att_graph *graph;
    add_loss_with("bce_sum", 1, -1, &graph, &context, ATT_ERR_ARGUMENT);
    assert_message(context, "are settings of bce_loss, which is not set");
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

static void expect_refused(att_graph *graph, const char *name, const att_task_setup *setup, att_status status,
                           const char *part)
{
    assert_fails(graph->context, att_task_add_loss(name, graph, setup), status, part);
}

TEST(losses_that_cannot_be_added_are_refused)
{
    att_context *context;
    att_graph *graph = graph_with(&context, "features");
    expect_refused(graph, "detection", &(att_task_setup){.classes = WIDTH}, ATT_ERR_NOT_FOUND,
                   "no task is named \"detection\"; there are: classification");
    att_option_values options = att_options_none();
    att_options_set(&options, "smoothing", 1);
    expect_refused(graph, "classification", &(att_task_setup){.options = &options}, ATT_ERR_ARGUMENT, "smoothing");
    options = att_options_none(), att_options_set(&options, "threshold", 1);
    expect_refused(graph, "classification", &(att_task_setup){.options = &options}, ATT_ERR_ARGUMENT,
                   "the task \"classification\" has no option \"threshold\"");
    expect_refused(graph, "classification", &(att_task_setup){.classes = WIDTH}, ATT_ERR_NOT_FOUND,
                   "needs a network with a head");
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

TEST(ranking_orders_classes)
{
    const float logits[] = {1, 3, 3, -2, 0};
    att_ranked top[5];
    assert_int_equal(att_rank_classes(logits, 5, top, 3), 3);
    const int classes[] = {1, 2, 0};
    /* e^-2, relative to the two largest: 1 / (2 + e^-2 + e^-5 + e^-3) */
    double sum = 2 + exp(-2) + exp(-5) + exp(-3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(top[i].class_number, classes[i]);
        assert_true(top[i].logit == logits[classes[i]]);
        assert_float_equal(top[i].probability, exp((double)logits[classes[i]] - 3) / sum, 1e-15);
    }
    assert_int_equal(att_rank_classes(logits, 5, top, 9), 5);
    assert_int_equal(top[4].class_number, 3);
    assert_int_equal(att_rank_classes(logits, 5, top, 0), 0);
    assert_int_equal(att_rank_classes(logits, 5, top, -2), 0);
    const float large[] = {1e30f, -1e30f};
    assert_int_equal(att_rank_classes(large, 2, top, 1), 1);
    assert_float_equal(top[0].probability, 1, 0);
}

/* A better class removes the k-th one, for every k. */
TEST(ranking_keeps_the_best)
{
    const float rising[] = {1, 2, 3, 4};
    att_ranked top[4];
    for (int k = 1; k <= 4; k++) {
        assert_int_equal(att_rank_classes(rising, 4, top, k), k);
        for (int i = 0; i < k; i++)
            assert_int_equal(top[i].class_number, 3 - i);
    }
}

/* Fractional labels of mixed images are not classes. */
TEST(only_whole_numbers_are_classes)
{
    static const int32_t numbers[] = {1};
    const void *data = numbers;
    att_field field = {.name = task->class_field, .dtype = ATT_I32};
    const att_batch batch = {.count = 1, .field_count = 1, .fields = &field, .data = &data};
    assert_ptr_equal(att_task_classes(task, &batch), numbers);
    field.dtype = ATT_F32;
    assert_null(att_task_classes(task, &batch));
}

/* --- a teacher's answers ------------------------------------------------------------------------------------------ */

/* Of equal logits the first class counts. */
TEST(a_teachers_answer_is_its_first_class_or_its_logits)
{
    static const float logits[3][CLASSES] = {{1, 3, 2}, {-1, -2, 0.5f}, {4, 4, 1}};
    static const int32_t first[] = {1, 2, 0};
    const att_field field = {.name = "logits", .dtype = ATT_F32, .shape = att_shape_of(CLASSES)};
    const void *rows = logits;
    const att_batch answers = {.count = 3, .field_count = 1, .fields = &field, .data = &rows};
    att_option_values soft = att_options_none(), none = att_options_none();
    att_options_set_text(&soft, "distillation_type", "soft");
    att_options_set_text(&none, "distillation_type", "none");
    att_task_setup setup = {.classes = CLASSES, .taught = true};
    att_task_settings settings;
    assert_int_equal(att_task_configure(NULL, task, &setup, &settings), ATT_OK);
    assert_string_equal(task->teacher_field(&settings).name, "teacher_class");
    for (int i = 0; i < 3; i++) {
        int32_t found = -1;
        task->read_teacher(&settings, &answers, i, &found);
        assert_int_equal(found, first[i]);
    }
    setup.options = &soft;
    assert_int_equal(att_task_configure(NULL, task, &setup, &settings), ATT_OK);
    assert_string_equal(task->teacher_field(&settings).name, "teacher_logits");
    for (int i = 0; i < 3; i++) {
        float found[CLASSES] = {0};
        task->read_teacher(&settings, &answers, i, found);
        assert_memory_equal(found, logits[i], sizeof found);
    }
    setup.options = &none;
    assert_int_equal(att_task_configure(NULL, task, &setup, &settings), ATT_OK);
    assert_null(task->teacher_field(&settings).name);
}

/* --- which answers are right ---------------------------------------------------------------------------------------
 */

enum { JUDGED = 4, FIVE = 5 };

/* Metrics of four samples with five classes. The labels are the first, second, second and last class in their rows. */
static void score_samples(const att_task_settings *settings, double values[ATT_MAX_METRICS])
{
    static const float logits[JUDGED][FIVE] = {{4, 3, 2, 1, 0}, {4, 3, 2, 1, 0}, {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}};
    static const int32_t classes[JUDGED] = {0, 1, 3, 4};
    static const int64_t indices[JUDGED] = {2, 0, 1, 3};
    const void *rows = logits, *targets = classes;
    const att_field logit_field = {.name = "logits", .dtype = ATT_F32, .shape = att_shape_of(FIVE)};
    const att_field target_field = {.name = "target", .dtype = ATT_I32};
    const att_batch batch = {
        .count = JUDGED, .indices = indices, .field_count = 1, .fields = &target_field, .data = &targets};
    const att_batch answers = {.count = JUDGED, .field_count = 1, .fields = &logit_field, .data = &rows};
    att_context *context;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    void *scores = calloc(1, task->state_size);
    assert_int_equal(task->observe(context, scores, settings, &batch, &answers), ATT_OK);
    task->report(scores, values);
    free(scores);
    att_context_destroy(&context);
}

TEST(only_classes_that_compete_count)
{
    static const bool competing[FIVE] = {false, true, false, true, true};
    att_task_settings settings = settings_of(FIVE, false);
    double values[ATT_MAX_METRICS];
    score_samples(&settings, values);
    assert_float_equal(values[1], 25, 0);
    assert_float_equal(values[2], 100, 0);
    settings.competing = competing;
    score_samples(&settings, values);
    /* The second sample is right among three classes; the first one's label does not compete, so its loss is infinite.
     */
    assert_float_equal(values[1], 25, 0);
    assert_true(isinf(values[0]));
    static const bool others[FIVE] = {true, true, false, true, true};
    settings.competing = others;
    score_samples(&settings, values);
    /* Logits 4, 3, 1, 0 compete; those of the labels are 4, 3, 3 and 0. */
    assert_float_equal(values[0], log(1 + exp(-1) + exp(-3) + exp(-4)) + (0 + 1 + 1 + 4) / 4.0, 1e-12);
}

/* Image 2 has the classes 3 and 4, image 0 the class 0, image 1 none, image 3 the classes 1 and 0. */
TEST(an_answer_is_right_if_it_is_in_the_set)
{
    int64_t first[] = {0, 1, 1, 3, 5};
    int32_t right[] = {0, 3, 4, 1, 0};
    const att_label_sets sets = {.count = JUDGED, .first = first, .labels = right};
    att_task_settings settings = settings_of(FIVE, false);
    double plain[ATT_MAX_METRICS], values[ATT_MAX_METRICS];
    score_samples(&settings, plain);
    settings.real = &sets;
    score_samples(&settings, values);
    assert_float_equal(values[1], 200.0 / 3, 1e-12); /* of three that have classes, those of images 0 and 3 */
    assert_float_equal(values[2], 100, 0);
    assert_float_equal(values[0], plain[0], 0);
}

/* --- predictions ---------------------------------------------------------------------------------------------------
 */

typedef struct lines {
    char text[4][64];
    int count;
} lines;

static void keep_line(void *user, const char *text)
{
    lines *kept = user;
    assert_true(kept->count < 4);
    snprintf(kept->text[kept->count++], sizeof kept->text[0], "%s", text);
}

static att_batch answer_of(const char *name, const float *row)
{
    static att_field field;
    static const void *data;
    field = (att_field){.name = name, .dtype = ATT_F32, .shape = att_shape_of(3)};
    data = row;
    return (att_batch){.count = 1, .field_count = 1, .fields = &field, .data = &data};
}

static const char *write_answer(const scratch *self, const att_batch *answer, const att_answer_options *options,
                                att_json_writer **writer)
{
    const char *text;
    assert_int_equal(att_json_writer_create(self->context, false, writer), ATT_OK);
    att_json_begin_object(*writer);
    assert_int_equal(att_task_write(self->context, "classification", answer, options, *writer), ATT_OK);
    att_json_end_object(*writer);
    assert_int_equal(att_json_writer_finish(*writer, &text, &(size_t){0}), ATT_OK);
    return text;
}

SCRATCH_TEST(predictions_are_described_by_class)
{
    static const char *const names[] = {"cat", "dog"};
    static const float row[3] = {1, 0, 1};
    att_answer_options options = {.labels = names, .label_count = 2, .topk = 2};
    att_batch answer = answer_of("logits", row);
    att_json_writer *writer;
    lines kept = {.count = 0};
    /* e / (2 e + 1) = 0.4223 each */
    assert_int_equal(att_task_describe(self->context, "classification", &answer, &options, keep_line, &kept), ATT_OK);
    assert_int_equal(kept.count, 2);
    assert_string_equal(kept.text[0], " 42.23 %       0  cat");
    assert_string_equal(kept.text[1], " 42.23 %       2");
    assert_non_null(strstr(write_answer(self, &answer, &options, &writer),
                           "{\"top\":[{\"class\":0,\"label\":\"cat\",\"probability\":0.42"));
    att_json_writer_destroy(&writer);
    options.topk = 0; /* at least one class is described */
    kept.count = 0;
    assert_int_equal(att_task_describe(self->context, "classification", &answer, &options, keep_line, &kept), ATT_OK);
    assert_int_equal(kept.count, 1);
    options.topk = 9;
    options.outputs = true;
    kept.count = 0;
    assert_int_equal(att_task_describe(self->context, "classification", &answer, &options, keep_line, &kept), ATT_OK);
    assert_int_equal(kept.count, 3);
    assert_string_equal(kept.text[2], " 15.54 %     0.0000       1  dog");
    assert_non_null(strstr(write_answer(self, &answer, &options, &writer), "],\"logits\":[1,0,1]}"));
    att_json_writer_destroy(&writer);
    answer = answer_of("features", row);
    assert_fails(self->context, att_task_describe(self->context, "classification", &answer, &options, keep_line, &kept),
                 ATT_ERR_MISMATCH, "no head");
}

/* Computes logits whose softmax gives these probabilities. */
static void logits_of(const double *probabilities, int count, float *row)
{
    for (int i = 0; i < count; i++)
        row[i] = (float)log(probabilities[i]);
}

/* Checks the caption of a prediction for image `index` of the data set, whose class is `index`. */
static void expect_caption(const scratch *self, const att_dataset *dataset, int64_t index, bool unlabelled,
                           const double *probabilities, int classes, const char *const *names, const char *wanted)
{
    float row[32];
    if (probabilities)
        logits_of(probabilities, classes, row);
    const att_field field = {
        .name = probabilities ? "logits" : "features", .dtype = ATT_F32, .shape = att_shape_of(classes)};
    const void *data = row;
    const att_batch answer = {.count = 1, .field_count = 1, .fields = &field, .data = &data};
    const att_answer_options options = {.labels = names, .label_count = names ? classes : 0};
    const att_task_image image = {.dataset = dataset, .index = index, .unlabelled = unlabelled};
    att_text text = {.context = self->context};
    assert_int_equal(task->caption(self->context, &answer, &options, &image, &text), ATT_OK);
    assert_string_equal(text.data ? text.data : "", wanted);
    att_text_free(&text);
}

SCRATCH_TEST(captions_tell_answer_and_class)
{
    static const double sure[] = {0.9306, 0.04, 0.0294}, other[] = {0.1, 0.6, 0.3},
                        tiny[] = {1 - 1.2e-7 - 1e-9, 1.2e-7, 1e-9};
    static const char *const fish[] = {"tench", "coho", ""}, *const synsets[] = {"n01440764", "n02085620", "n0"};
    att_dataset *dataset = open_images(self); /* class names are numbers */
    expect_caption(self, dataset, 0, false, sure, 3, fish,
                   "tench, recognised (93.1 %). Next: coho 4 %, class 2 2.94 %.");
    expect_caption(self, dataset, 0, false, other, 3, fish,
                   "tench, predicted: coho (60 %). Next: class 2 30 %, tench 10 %.");
    expect_caption(self, dataset, 2, false, sure, 2, fish, "2, predicted: tench (95.9 %). Next: coho 4.12 %.");
    expect_caption(self, dataset, 1, true, other, 3, fish,
                   "1, predicted: coho (60 %). Next: class 2 30 %, tench 10 %.");
    expect_caption(self, dataset, -1, false, other, 1, fish, "predicted: tench (100 %).");
    expect_caption(self, dataset, 1, false, other, 3, NULL, "1, recognised (60 %). Next: class 2 30 %, class 0 10 %.");
    expect_caption(self, dataset, 0, false, tiny, 3, synsets,
                   "n01440764 tench, recognised (100 %). Next: n02085620 Chihuahua 1.2e-5 %, n0 1e-7 %.");
    expect_caption(self, dataset, 1, false, NULL, 3, fish, "coho.");
    expect_caption(self, dataset, -1, false, NULL, 3, fish, "");
    /* 1/32 is 3.125 % */
    double even[32];
    for (int i = 0; i < 32; i++)
        even[i] = 1;
    expect_caption(self, dataset, 0, false, even, 32, NULL,
                   "0, recognised (3.13 %). Next: class 1 3.13 %, class 2 3.13 %, class 3 3.13 %, class 4 3.13 %.");
    att_dataset_close(&dataset);
}

/* A letter of two bytes, and bytes that are not UTF-8, each of which becomes three bytes in JSON. */
SCRATCH_TEST(captions_are_cut_between_characters)
{
    static const char *const units[] = {"x", "\xC3\xA4", "\xFF"};
    static const size_t kept[] = {4096, 4096, 4096 / 3};
    for (int i = 0; i < 3; i++) {
        att_text text = {.context = self->context};
        for (int n = 0; n < 5000; n++)
            att_text_append(&text, "%s", units[i]);
        att_caption_truncate(&text);
        assert_int_equal(text.length, kept[i]);
        assert_int_equal(strlen(text.data), kept[i]);
        text.length = 3;
        att_caption_truncate(&text);
        assert_int_equal(text.length, 3);
        att_text_free(&text);
    }
}
