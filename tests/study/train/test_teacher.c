/* Training runs with a teacher: what it sees, resumes, and teachers that do not fit. The loss itself is compared with
 * PyTorch's in tests/networks/models/test_training.c, several processes in test_processes.c. */
#include "networks/models/family.h"
#include "study/train/fixture.h"
#include "study/train/trainer.h"

/* A teacher and what it owns. */
typedef struct tutor {
    att_model *model;
    att_weights *weights;
    att_teacher teacher;
} tutor;

static void tutor_close(tutor *t)
{
    att_weights_destroy(&t->weights);
    att_model_destroy(&t->model);
}

static tutor tutor_of(const fixture *f, const char *network, const att_option_values *options, uint64_t seed)
{
    tutor t = {0};
    assert_int_equal(att_model_create(f->context, network, options, ATT_F32, &t.model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(t.model), "cpu", &t.weights), ATT_OK);
    assert_int_equal(att_weights_initialise(t.weights, seed), ATT_OK);
    t.teacher = (att_teacher){.model = t.model, .weights = t.weights, .name = "teacher.safetensors"};
    return t;
}

/* A network of another family than the student's. */
static tutor residual_tutor(const fixture *f, uint64_t seed)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES);
    return tutor_of(f, "resnet20", &options, seed);
}

static att_option_values distillation(const char *type, double alpha, double tau)
{
    att_option_values options = att_options_none();
    att_options_set_text(&options, "distillation_type", type);
    att_options_set(&options, "distillation_alpha", alpha);
    att_options_set(&options, "distillation_tau", tau);
    return options;
}

/* --- what the teacher sees ---------------------------------------------------------------------------------------- */

/* Images with different sides and channels. */
enum { WIDE = 2 * SIDE, CHANNELS = 3 };

static att_option_values colour_options(void)
{
    att_option_values options = tiny_options();
    att_options_set_sides(&options, "img_size", SIDE, WIDE);
    att_options_set(&options, "in_chans", CHANNELS);
    return options;
}

static void take_colours(fixture *f, const double mean[CHANNELS], const double std[CHANNELS])
{
    const att_option_values options = colour_options();
    f->train_transform = f->eval_transform = att_transform_options_defaults(SIDE, WIDE, CHANNELS);
    f->train_transform.color_jitter[0] = 0.4;
    memcpy(f->train_transform.mean, mean, CHANNELS * sizeof *mean);
    memcpy(f->train_transform.std, std, CHANNELS * sizeof *std);
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    const tutor t = tutor_of(f, "vit_tiny_patch16_224", &options, 1);
    f->model = t.model;
    f->weights = t.weights;
}

/* A copy of the student that takes images with another mean and std: its patch embedding undoes the difference. */
static tutor copy_for_other_images(const fixture *f, const double mean[CHANNELS], const double std[CHANNELS])
{
    enum { WIDTH = 16, PATCH = SIDE * SIDE / 4, ROW = CHANNELS * PATCH };
    const att_option_values options = colour_options();
    tutor t = tutor_of(f, "vit_tiny_patch16_224", &options, 1);
    att_preprocess preprocess = att_model_preprocess(t.model);
    const double *student_mean = f->train_transform.mean, *student_std = f->train_transform.std;
    float weight[WIDTH * ROW], bias[WIDTH];
    const int weights = att_weights_find(t.weights, "patch_embed.proj.weight"),
              biases = att_weights_find(t.weights, "patch_embed.proj.bias");
    assert_int_equal(att_weights_get(t.weights, -1, weights, weight, WIDTH * ROW), ATT_OK);
    assert_int_equal(att_weights_get(t.weights, -1, biases, bias, WIDTH), ATT_OK);
    for (int i = 0; i < WIDTH * ROW; i++) {
        const int c = i % ROW / PATCH;
        bias[i / ROW] += weight[i] * (float)((mean[c] - student_mean[c]) / student_std[c]);
        weight[i] *= (float)(std[c] / student_std[c]);
    }
    assert_int_equal(att_weights_set(t.weights, -1, weights, weight, WIDTH * ROW), ATT_OK);
    assert_int_equal(att_weights_set(t.weights, -1, biases, bias, WIDTH), ATT_OK);
    memcpy(preprocess.mean, mean, sizeof preprocess.mean);
    memcpy(preprocess.std, std, sizeof preprocess.std);
    att_model_set_preprocess(t.model, &preprocess);
    return t;
}

/* A network that learns only from its own answers has nothing to learn. Augmented and mixed images are the teacher's,
 * too. */
static void check_own_answers(fixture *f, const double mean[CHANNELS], const double std[CHANNELS])
{
    const att_option_values soft = distillation("soft", 1, 2);
    att_train_options options = small_training();
    att_train_result result;
    int64_t count;
    tutor t = copy_for_other_images(f, mean, std);
    assert_int_equal(att_weights_initialise(f->weights, 1), ATT_OK);
    float *before = values_of(f->weights, NULL, &count);
    options.optimizer = "sgd";
    options.lr = 0.1;
    options.weight_decay = 0;
    options.mixup = 0.8;
    options.task_options = &soft;
    options.teacher = &t.teacher;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    float *after = values_of(f->weights, NULL, &count);
    double change = 0;
    for (int64_t i = 0; i < count; i++)
        change = fmax(change, fabs((double)after[i] - before[i]));
    print_message("mean %g, std %g: loss %.2g, weights change by %.2g\n", mean[0], std[0], result.train_loss, change);
    assert_true(fabs(result.train_loss) < 1e-6);
    assert_true(change < 1e-6);
    free(before);
    free(after);
    tutor_close(&t);
}

FIXTURE_TEST(the_teacher_sees_the_same_images)
{
    static const double mean[] = {0.2, 0.3, 0.6}, std[] = {0.4, 0.3, 0.2}, other_mean[] = {0.5, 0.1, 0.4},
                        other_std[] = {0.25, 0.5, 0.35};
    take_colours(f, mean, std);
    check_own_answers(f, mean, std);
    check_own_answers(f, other_mean, other_std);
}

typedef struct heard {
    char teacher[64];
    double steps, epoch; /* sum of the updates' shares, and the last epoch's share */
} heard;

static att_status hear(void *user, const att_event *event)
{
    heard *h = user;
    for (int i = 0; i < event->field_count; i++) {
        const att_event_field *field = &event->fields[i];
        if (strcmp(field->name, "teacher") == 0)
            snprintf(h->teacher, sizeof h->teacher, "%s", field->text);
        if (strcmp(field->name, "teacher_share") != 0)
            continue;
        if (event->kind == ATT_EVENT_EPOCH)
            h->epoch = field->number;
        else
            h->steps += field->number;
    }
    return ATT_OK;
}

FIXTURE_TEST(events_have_the_teachers_name_and_time)
{
    tutor t = residual_tutor(f, 3);
    heard h = {0}, alone = {0};
    att_sink sink = {.emit = hear, .user = &h};
    att_train_options options = small_training();
    att_train_result result;
    options.teacher = &t.teacher;
    options.log_interval = 1;
    options.sinks = &sink;
    options.sink_count = 1;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    assert_string_equal(h.teacher, "teacher.safetensors");
    assert_true(h.steps > 0 && h.epoch > 0 && h.epoch < 1);
    assert_true(result.teacher_share > 0 && result.teacher_share < 1);
    options.teacher = NULL;
    sink.user = &alone;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    assert_string_equal(alone.teacher, "");
    assert_true(alone.steps == 0 && alone.epoch == 0 && isnan(result.teacher_share));
    tutor_close(&t);
}

/* Without distillation the teacher is not even compared with the network. */
FIXTURE_TEST(type_none_trains_as_without_a_teacher)
{
    tutor t = residual_tutor(f, 3);
    const att_option_values none = distillation("none", 0.5, 1);
    att_train_options options = small_training();
    int64_t count;
    assert_trains(f, &options);
    float *alone = values_of(f->weights, NULL, &count);
    options.task_options = &none;
    options.teacher = &t.teacher;
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    float *unheard = values_of(f->weights, NULL, &count);
    assert_memory_equal(alone, unheard, (size_t)count * sizeof *alone);
    options.task_options = NULL;
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    float *taught = values_of(f->weights, NULL, &count);
    assert_memory_not_equal(alone, taught, (size_t)count * sizeof *alone);
    free(alone);
    free(unheard);
    free(taught);
    tutor_close(&t);
}

/* --- resuming ----------------------------------------------------------------------------------------------------- */

static bool stop_later(void *user, const att_progress *progress)
{
    (void)progress;
    return --*(int *)user != 0;
}

static att_status resume(fixture *f, att_train_options options, const att_teacher *teacher)
{
    char last[160];
    options.resume = path_in(f, "part/last.safetensors", last);
    options.progress = NULL;
    options.teacher = teacher;
    fixture_model(f, 0.1);
    return att_train(f->model, f->weights, &f->data, &options, NULL);
}

/* Trains "whole", and begins "part", which stops after a few batches. */
static att_train_options begin(fixture *f, const att_option_values *loss, const att_teacher *teacher, char output[160])
{
    int calls = 4;
    att_train_options options = small_training();
    options.checkpoint_hist = 1;
    options.task_options = loss;
    options.teacher = teacher;
    options.output = path_in(f, "whole", output);
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    options.output = path_in(f, "part", output);
    options.progress = stop_later;
    options.progress_user = &calls;
    fixture_model(f, 0.1);
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED);
    return options;
}

FIXTURE_TEST(a_resume_gives_the_same_bits)
{
    char output[160];
    tutor t = residual_tutor(f, 3);
    const att_teacher moved = {.model = t.model, .weights = t.weights, .name = "elsewhere.safetensors"};
    static const char *const types[] = {"hard", "soft"};
    for (int i = 0; i < 2; i++) {
        const att_option_values loss = distillation(types[i], 0.3, 2);
        const att_train_options options = begin(f, &loss, &t.teacher, output);
        assert_int_equal(resume(f, options, &t.teacher), ATT_OK);
        assert_same_file(f, "whole/last.safetensors", "part/last.safetensors");
    }
    const att_train_options options = begin(f, NULL, &t.teacher, output);
    assert_int_equal(resume(f, options, &moved), ATT_OK);
    tutor_close(&t);
}

FIXTURE_TEST(a_resume_with_another_teacher_is_refused)
{
    char output[160];
    tutor t = residual_tutor(f, 3), other = residual_tutor(f, 4);
    att_preprocess preprocess = att_model_preprocess(t.model);
    att_train_options options = begin(f, NULL, &t.teacher, output);
    other.teacher.name = "other.safetensors";
    assert_fails(f->context, resume(f, options, &other.teacher), ATT_ERR_MISMATCH,
                 "its teacher is teacher.safetensors, here it is other.safetensors");
    assert_fails(f->context, resume(f, options, NULL), ATT_ERR_MISMATCH,
                 "its teacher is teacher.safetensors, here there is none");
    preprocess.mean[0] = 0.3;
    att_model_set_preprocess(t.model, &preprocess);
    assert_fails(f->context, resume(f, options, &t.teacher), ATT_ERR_MISMATCH, "with other weights or preprocessing");
    options = begin(f, NULL, NULL, output);
    assert_fails(f->context, resume(f, options, &other.teacher), ATT_ERR_MISMATCH,
                 "it has no teacher, here it is other.safetensors");
    tutor_close(&t);
    tutor_close(&other);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void expect_options_refused(fixture *f, const att_option_values *changed, const char *part)
{
    tutor t = tutor_of(f, "vit_tiny_patch16_224", changed, 1);
    att_train_options options = small_training();
    options.teacher = &t.teacher;
    assert_fails(f->context, att_train_check(f->model, f->weights, &f->data, &options), ATT_ERR_MISMATCH, part);
    tutor_close(&t);
}

static void expect_refused(fixture *f, const char *option, double value, const char *part)
{
    att_option_values changed = tiny_options();
    att_options_set(&changed, option, value);
    expect_options_refused(f, &changed, part);
}

FIXTURE_TEST(teachers_that_do_not_fit_are_refused)
{
    att_option_values wide = tiny_options(), tall = tiny_options();
    att_options_set_sides(&wide, "img_size", SIDE, WIDE);
    att_options_set_sides(&tall, "img_size", WIDE, SIDE);
    expect_options_refused(
        f, &wide, "takes \"image\" (8 x 16 pixels, 1 channel), but the network \"image\" (8 x 8 pixels, 1 channel)");
    expect_options_refused(
        f, &tall, "takes \"image\" (16 x 8 pixels, 1 channel), but the network \"image\" (8 x 8 pixels, 1 channel)");
    expect_refused(f, "num_classes", 5, "the teacher teacher.safetensors has 5 classes, but the network has 4");
    expect_refused(f, "num_classes", 0, "the teacher teacher.safetensors has no head");
    expect_refused(f, "in_chans", 3,
                   "takes \"image\" (8 x 8 pixels, 3 channels), but the network \"image\" (8 x 8 pixels, 1 channel)");
    expect_refused(f, "img_size", 16,
                   "takes \"image\" (16 x 16 pixels, 1 channel), but the network \"image\" (8 x 8 pixels, 1 channel)");
}

FIXTURE_TEST(a_teacher_without_model_or_weights_is_refused)
{
    const att_teacher nobody = {0}, empty = {.model = f->model};
    att_train_options options = small_training();
    options.teacher = &nobody;
    assert_int_equal(att_train_check(f->model, f->weights, &f->data, &options), ATT_ERR_ARGUMENT);
    options.teacher = &empty;
    assert_fails(f->context, att_train_check(f->model, f->weights, &f->data, &options), ATT_ERR_ARGUMENT,
                 "the weights of the teacher");
}

FIXTURE_TEST(answers_that_are_not_finite_end_the_training)
{
    tutor t = residual_tutor(f, 3);
    float bias[CLASSES] = {0, NAN, 0, 0};
    const int index = att_weights_count(t.weights) - 1;
    assert_int_equal(att_weights_set(t.weights, -1, index, bias, CLASSES), ATT_OK);
    att_train_options options = small_training();
    options.teacher = &t.teacher;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_NONFINITE,
                 "the teacher teacher.safetensors answers an image with NaN or infinity");
    tutor_close(&t);
}

/* Returns the least memory that the training asks for. */
static size_t least_memory(fixture *f, const att_teacher *teacher)
{
    att_train_options options = small_training();
    options.memory = 1;
    options.teacher = teacher;
    assert_int_equal(att_train_check(f->model, f->weights, &f->data, &options), ATT_ERR_MEMORY);
    const char *number = strchr(att_context_message(f->context), '(');
    assert_non_null(number);
    return (size_t)strtoull(number + 1, NULL, 10);
}

FIXTURE_TEST(the_memory_limit_counts_the_teacher)
{
    tutor t = residual_tutor(f, 3);
    const size_t weights = (size_t)att_graph_parameter_elements(att_model_graph(t.model)) * sizeof(float);
    att_preprocess preprocess = att_model_preprocess(t.model);
    preprocess.mean[0] = f->train_transform.mean[0];
    preprocess.std[0] = f->train_transform.std[0];
    att_model_set_preprocess(t.model, &preprocess);
    const size_t least = least_memory(f, &t.teacher);
    assert_true(least > least_memory(f, NULL) + weights);
    preprocess.mean[0] += 0.1; /* now it needs a copy of the images */
    att_model_set_preprocess(t.model, &preprocess);
    assert_true(least_memory(f, &t.teacher) >= least + (size_t)BATCH * SIDE * SIDE * sizeof(float));
    tutor_close(&t);
}
