/* --freeze: the patterns, what stays as it is, and values that are computed once for each image. */
#include "study/train/freeze.h"

#include "networks/models/family.h"
#include "study/train/fixture.h"
#include "study/train/trainer.h"

/* All but the last block and the head. */
static const char backbone[] = "patch_embed.*, cls_token,pos_embed ,blocks.0.*";

static void refuses(fixture *f, const char *patterns, const char *message)
{
    att_train_options options = small_training();
    options.freeze = patterns;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT, message);
}

FIXTURE_TEST(patterns_without_effect_are_refused)
{
    char many[300];
    refuses(f, "blocks.0.*,block.1.*",
            "\"block.1.*\" matches no parameter of vit_tiny_patch16_224; did you mean "
            "\"blocks.1.*\"?");
    refuses(f, "blocks", "\"blocks\" matches no parameter of vit_tiny_patch16_224; did you mean \"blocks.*\"?");
    refuses(f, "hed.weight", "did you mean \"head.weight\"?");
    refuses(f, "nothing at all", "\"nothing\" matches no parameter of vit_tiny_patch16_224; attscope inspect");
    refuses(f, "*", "\"*\" freezes every parameter of vit_tiny_patch16_224, so there is nothing to train");
    refuses(f, "h*, [!h]*,?[!x]*,b*,p*,c*,n*", "matches no parameter"); /* only * and ? have a meaning */
    memset(many, 'x', sizeof many), many[sizeof many - 1] = '\0';
    refuses(f, many, "has 299 characters; at most 255 are possible");
}

static void read_named(const fixture *f, const char *name, float *values, int64_t count)
{
    assert_int_equal(att_weights_get(f->weights, -1, att_weights_find(f->weights, name), values, count), ATT_OK);
}

static bool is_frozen(const char *name)
{
    return strncmp(name, "patch_embed.", 12) == 0 || strcmp(name, "cls_token") == 0 || strcmp(name, "pos_embed") == 0 ||
           strncmp(name, "blocks.0.", 9) == 0;
}

/* One update of plain SGD without decay. The parameters that are not frozen change as if nothing were frozen, and as
 * if the gradient of the others were 0. */
FIXTURE_TEST(other_parameters_change_as_without_freezing)
{
    enum { MOST = 4096 };
    static float first[MOST], whole[MOST], frozen[MOST];
    att_train_options options = small_training();
    options.epochs = 1;
    options.warmup_epochs = 0;
    options.optimizer = "momentum";
    options.momentum = 0;
    options.weight_decay = 0;
    options.model_ema = false;
    options.clip_grad = 0;
    options.lr = 1;
    options.grad_accum_steps = 5; /* the epoch is one update */
    int64_t count;
    fixture_model(f, 0);
    float *before = values_of(f->weights, NULL, &count);
    assert_trains(f, &options);
    float *after = values_of(f->weights, NULL, &count);
    fixture_model(f, 0);
    options.freeze = backbone;
    assert_trains(f, &options);
    int64_t at = 0;
    int stays = 0, changes = 0;
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        const att_parameter_info parameter = att_weights_at(f->weights, i);
        const int64_t elements = att_shape_count(parameter.shape);
        memcpy(first, before + at, (size_t)elements * sizeof *first);
        memcpy(whole, after + at, (size_t)elements * sizeof *whole);
        read_named(f, parameter.name, frozen, elements);
        if (is_frozen(parameter.name)) {
            assert_memory_equal(frozen, first, (size_t)elements * sizeof *first);
            stays++;
        } else {
            assert_memory_not_equal(frozen, first, (size_t)elements * sizeof *first);
            for (int64_t e = 0; e < elements; e++)
                assert_float_equal(frozen[e], whole[e], 1e-6); /* rounding of sums over samples; measured: 0 */
            changes++;
        }
        at += elements;
    }
    assert_int_equal(stays, 2 + 2 + 12);
    assert_int_equal(changes, 12 + 2 + 2);
    free(before);
    free(after);
}

/* --- the same bits ------------------------------------------------------------------------------------------------ */

/* AdamW with decay, clipping, an average, dropout, drop path and layer-wise rates on images that repeat with flips. */
static att_train_options frozen_training(fixture *f, const char *name, char output[160])
{
    att_train_options options = small_training();
    options.epochs = 4;
    options.layer_decay = 0.75;
    options.freeze = backbone;
    options.lanes = 2;
    options.checkpoint_hist = 1;
    options.checkpoint_every_updates = 1;
    options.output = path_in(f, name, output);
    f->train_transform.crop = ATT_CROP_CENTER;
    f->train_transform.flip = 0.5;
    fixture_model(f, 0.1);
    return options;
}

static float *train_frozen(fixture *f, const att_train_options *options, int64_t *count)
{
    fixture_model(f, 0.1);
    assert_trains(f, options);
    return values_of(f->weights, NULL, count);
}

/* Instruments at every update compute the frozen part again each time. */
static void compare_with_measured(fixture *f, const char *freeze)
{
    char once[160], again[160];
    int64_t count;
    att_measure *measure;
    att_train_options options = frozen_training(f, "once", once);
    options.freeze = freeze;
    free(train_frozen(f, &options, &count));
    options.output = path_in(f, "again", again);
    fixture_model(f, 0.1);
    assert_int_equal(att_measure_create(att_model_graph(f->model), "entropy", "*", &measure), ATT_OK);
    options.measure = measure;
    options.measure_every = 1;
    assert_trains(f, &options);
    att_measure_destroy(&measure);
    assert_same_run(f, "once", "again");
}

FIXTURE_TEST(values_that_are_computed_once_change_no_bit)
{
    compare_with_measured(f, backbone);
    compare_with_measured(f, "patch_embed.*,cls_token,pos_embed,blocks.*,norm.*"); /* dropout of frozen values */
}

/* The checkpoints differ only in the setting. */
FIXTURE_TEST(too_little_memory_changes_no_bit)
{
    char output[160];
    int64_t count;
    att_train_options options = frozen_training(f, "much", output);
    options.output = NULL;
    float *much = train_frozen(f, &options, &count);
    options.memory = 1;
    fixture_model(f, 0.1);
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MEMORY);
    const char *message = att_context_message(f->context), *at = strchr(message, '(');
    assert_non_null(at);
    options.memory = strtoll(at + 1, NULL, 10); /* the least: nothing is left for the values */
    float *little = train_frozen(f, &options, &count);
    assert_memory_equal(much, little, (size_t)count * sizeof *much);
    free(much);
    free(little);
}

FIXTURE_TEST(threads_change_no_bit)
{
    char output[160];
    int64_t count;
    att_train_options options = frozen_training(f, "two", output);
    options.output = NULL;
    float *two = train_frozen(f, &options, &count);
    fixture_close(f);
    f->threads = 1;
    fixture_open(f);
    options = frozen_training(f, "one", output);
    options.output = NULL;
    float *one = train_frozen(f, &options, &count);
    assert_memory_equal(one, two, (size_t)count * sizeof *one);
    free(one);
    free(two);
}

/* The optimiser keeps nothing for frozen parameters; their average is the parameter. */
FIXTURE_TEST(frozen_parameters_have_no_slots)
{
    enum { MOST = 4096 };
    float value[MOST], average[MOST];
    char output[160], path[160], name[128];
    att_tensors *file = NULL;
    att_train_options options = frozen_training(f, "run", output);
    assert_trains(f, &options);
    const int moment = 0, mean = att_trainer_average_slot(f->weights);
    assert_string_equal(att_weights_slot_name(f->weights, moment), "exp_avg");
    assert_int_equal(att_tensors_open(f->context, path_in(f, "run/last.safetensors", path), &file), ATT_OK);
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        const att_parameter_info parameter = att_weights_at(f->weights, i);
        const int64_t count = att_shape_count(parameter.shape);
        const bool frozen = is_frozen(parameter.name);
        assert_int_equal(att_weights_in_slot(f->weights, moment, i), !frozen);
        snprintf(name, sizeof name, "optimizer.exp_avg.%s", parameter.name);
        assert_int_equal(att_tensors_find(file, name) >= 0, !frozen);
        snprintf(name, sizeof name, "ema.%s", parameter.name);
        assert_true(att_tensors_find(file, name) >= 0);
        assert_int_equal(att_weights_get(f->weights, -1, i, value, count), ATT_OK);
        assert_int_equal(att_weights_get(f->weights, mean, i, average, count), ATT_OK);
        assert_int_equal(memcmp(value, average, (size_t)count * sizeof *value) == 0, frozen);
        if (frozen)
            assert_fails(f->context, att_weights_get(f->weights, moment, i, value, count), ATT_ERR_ARGUMENT,
                         "has no slot \"exp_avg\"");
    }
    att_tensors_close(&file);
    options = frozen_training(f, "run", output);
    options.output = NULL;
    const att_weights *weights = f->weights;
    assert_trains(f, &options);
    const size_t few = att_weights_held_bytes(weights) - att_weights_bytes(weights);
    options.freeze = NULL;
    assert_trains(f, &options); /* of the same weights, with other slots */
    assert_true(att_weights_in_slot(weights, moment, 0));
    assert_true(few < (att_weights_held_bytes(weights) - att_weights_bytes(weights)) * 6 / 10);
}

static bool stop_later(void *user, const att_progress *progress)
{
    (void)progress;
    return --*(int *)user != 0;
}

FIXTURE_TEST(a_stopped_training_continues_to_the_same_bits)
{
    char output[160], last[160];
    att_train_options options = frozen_training(f, "whole", output);
    int64_t count;
    free(train_frozen(f, &options, &count));
    for (int calls = 1; calls < 24; calls += 6) {
        int left = calls;
        char name[32], last_name[64];
        snprintf(name, sizeof name, "stopped-%d", calls);
        snprintf(last_name, sizeof last_name, "%s/last.safetensors", name);
        options = frozen_training(f, name, output);
        options.progress = stop_later;
        options.progress_user = &left;
        assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED, last_name);
        options = frozen_training(f, name, output);
        options.resume = path_in(f, last_name, last);
        assert_trains(f, &options);
        assert_same_run(f, "whole", name);
    }
    options.freeze = "blocks.0.*";
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MISMATCH,
                 "it was trained with freeze");
    options.freeze = NULL;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MISMATCH, ", not \"\"");
}

/* Replaces the network by a residual one, which has batch norm. */
static void use_residual_network(fixture *f)
{
    att_weights_destroy(&f->weights);
    att_model_destroy(&f->model);
    att_option_values residual = att_options_none();
    att_options_set(&residual, "img_size", SIDE), att_options_set(&residual, "in_chans", 1),
        att_options_set(&residual, "num_classes", CLASSES);
    assert_int_equal(att_model_create(f->context, "resnet20", &residual, ATT_F32, &f->model), ATT_OK);
    assert_int_equal(att_weights_create(att_model_graph(f->model), "cpu", &f->weights), ATT_OK);
    assert_int_equal(att_weights_initialise(f->weights, 1), ATT_OK);
}

/* Returns what att_freeze_count() does for these patterns, and whether it freezes a buffer of bn1 and of layer1. */
static int count_frozen(const fixture *f, const char *patterns, bool buffers, bool frozen_norms[2])
{
    enum { MOST = 256 };
    static const char *const names[] = {"bn1.running_mean", "layer1.0.bn1.running_var"};
    att_parameter_rates rates[MOST] = {0};
    bool frozen[MOST];
    const int count = att_weights_count(f->weights);
    assert_in_range(count, 1, MOST);
    assert_int_equal(att_freeze_apply(f->context, f->model, patterns, rates), ATT_OK);
    for (int i = 0; i < count; i++)
        frozen[i] = rates[i].frozen;
    const int counted = att_freeze_count(f->model, buffers, frozen);
    for (int i = 0; i < 2; i++)
        frozen_norms[i] = frozen[att_weights_find(f->weights, names[i])];
    return counted;
}

/* Running statistics are no parameters: they follow those of their norm, or a pattern names them alone. */
FIXTURE_TEST(buffers_follow_their_parameters_or_are_named)
{
    bool norms[2];
    use_residual_network(f);
    assert_int_equal(count_frozen(f, "bn1.running_*", true, norms), 0);
    assert_true(norms[0] && !norms[1]);
    assert_int_equal(count_frozen(f, "bn1.*", true, norms), 2);
    assert_true(norms[0] && !norms[1]);
    assert_int_equal(count_frozen(f, "layer1.0.*", true, norms), 2 * 3); /* two convolutions with their norms */
    assert_true(!norms[0] && norms[1]);
    assert_int_equal(count_frozen(f, "bn1.weight,bn1.bias", false, norms), 2);
    assert_true(!norms[0] && !norms[1]);
}

static bool has_changed(const fixture *f, const char *name, float before)
{
    float values[64];
    const int index = att_weights_find(f->weights, name);
    assert_int_equal(
        att_weights_get(f->weights, -1, index, values, att_shape_count(att_weights_at(f->weights, index).shape)),
        ATT_OK);
    return values[0] != before;
}

/* As mmdetection's norm_eval. */
FIXTURE_TEST(running_statistics_can_be_frozen_alone)
{
    att_train_options options = small_training();
    options.batch_size = 1; /* which batch norm in training refuses */
    options.epochs = 1;
    options.warmup_epochs = 0;
    options.freeze = "*.running_*";
    use_residual_network(f);
    assert_trains(f, &options);
    assert_false(has_changed(f, "layer1.0.bn1.running_mean", 0));
    assert_false(has_changed(f, "layer1.0.bn1.running_var", 1));
    assert_true(has_changed(f, "layer1.0.bn1.weight", 1));
    assert_true(has_changed(f, "layer1.0.bn1.bias", 0));
}

FIXTURE_TEST(frozen_parts_allow_a_batch_of_one)
{
    att_train_options options = small_training();
    options.batch_size = 1;
    options.epochs = 1;
    options.warmup_epochs = 0;
    use_residual_network(f);
    options.freeze = "conv1.*,bn1.*,layer?.*";
    int64_t count;
    float *before = values_of(f->weights, NULL, &count);
    assert_trains(f, &options);
    float *after = values_of(f->weights, NULL, &count);
    int64_t head = 0;
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        const att_parameter_info parameter = att_weights_at(f->weights, i);
        if (!att_model_is_head(f->model, parameter.name)) /* running statistics stay, too */
            assert_memory_equal(after + head, before + head, (size_t)att_shape_count(parameter.shape) * sizeof *after);
        head += att_shape_count(parameter.shape);
    }
    free(before);
    free(after);
}
