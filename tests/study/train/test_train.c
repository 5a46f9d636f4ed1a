/* Training on four easy classes: the effect of an update, events, and refused options. */
#include "study/train/fixture.h"
#include "study/train/inference.h"
#include "study/train/options.h"

FIXTURE_TEST(a_small_network_learns)
{
    att_train_options options = small_training();
    options.epochs = 40;
    options.lr = 1e-2;
    fixture_model(f, 0);
    att_train_result result;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    assert_int_equal(result.epochs, 40);
    assert_int_equal(result.updates, 200);
    printf("after 40 epochs: training loss %.3f, top-1 %g %%\n", result.train_loss, result.eval[TOP1]);
    assert_true(result.train_loss < 0.5);
    assert_true(result.eval[LOSS] < 0.5);
    assert_true(result.eval[TOP1] == 100);
    assert_true(result.eval[TOP5] == 100);
    assert_true(result.best_metric == 100);
    assert_true(result.images_per_second > 0);
    assert_true(result.wait_share >= 0 && result.wait_share <= 1);
}

/* One update by plain gradient descent from the fixture's weights. */
static att_train_options one_update(int batch_size, int steps)
{
    att_train_options options = att_train_options_defaults();
    options.epochs = 1;
    options.batch_size = batch_size;
    options.grad_accum_steps = steps;
    options.optimizer = "momentum";
    options.schedule = "none";
    options.lr = 0.5;
    options.weight_decay = 0;
    options.workers = 0;
    return options;
}

FIXTURE_TEST(clipping_bounds_the_step)
{
    att_train_options options = one_update(40, 1);
    options.clip_grad = 1e-3;
    int64_t count;
    float *before = values_of(f->weights, NULL, &count);
    assert_trains(f, &options);
    float *after = values_of(f->weights, NULL, &count);
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += pow((double)after[i] - before[i], 2);
    /* lr clip_grad, except for the 1e-6 that torch adds to the norm of about one. Measured: 1.3e-6 */
    assert_float_equal(sqrt(squares), 0.5 * 1e-3, 0.5 * 1e-3 * 1e-5);
    free(before);
    free(after);
}

static att_status keep_loss(void *user, const att_event *event)
{
    double *losses = user;
    for (int i = 0; event->kind == ATT_EVENT_EPOCH && i < event->field_count; i++)
        if (strcmp(event->fields[i].name, "train_loss") == 0)
            losses[event->epoch] = event->fields[i].number;
    return ATT_OK;
}

/* One image repeatedly, with steps too small to change a weight: only dropout can make a difference. */
FIXTURE_TEST(every_update_drops_anew)
{
    fixture_close(f);
    write_idx(f->folder, "train", 1, 1);
    fixture_open(f);
    fixture_model(f, 0.5);
    f->train_transform = f->eval_transform;
    double losses[4] = {0};
    att_sink sink = {.emit = keep_loss, .user = losses};
    att_train_options options = one_update(1, 1);
    options.epochs = 4;
    options.lr = 1e-30;
    options.sinks = &sink;
    options.sink_count = 1;
    assert_trains(f, &options);
    for (int i = 1; i < 4; i++)
        assert_true(losses[i] != losses[0]);
}

static double largest_difference(const float *a, const float *b, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - b[i]);
        most = difference <= most ? most : difference; /* keeps NaN */
    }
    return most;
}

FIXTURE_TEST(accumulation_is_a_larger_batch)
{
    int64_t count;
    float *values[2];
    for (int i = 0; i < 2; i++) {
        att_train_options options = i ? one_update(8, 5) : one_update(40, 1);
        fixture_model(f, 0.1);
        assert_trains(f, &options);
        values[i] = values_of(f->weights, NULL, &count);
    }
    double difference = largest_difference(values[0], values[1], count);
    printf("accumulated against whole batch: %.2g\n", difference);
    assert_true(difference <= 1e-6); /* measured: 6e-8 on the three tiers */
    free(values[0]);
    free(values[1]);
}

/* 43 images are five batches of eight, in two updates of three and two batches. */
FIXTURE_TEST(the_last_update_may_be_smaller)
{
    att_train_options options = one_update(8, 3);
    att_train_result result;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    assert_int_equal(result.updates, 2);
}

FIXTURE_TEST(the_average_follows_its_formula)
{
    int64_t count;
    float *weights[2], *average[2];
    for (int i = 0; i < 2; i++) {
        att_train_options options = one_update(40, 1);
        options.epochs = i + 1;
        options.model_ema = true;
        options.model_ema_decay = 0.75;
        fixture_model(f, 0);
        assert_trains(f, &options);
        weights[i] = values_of(f->weights, NULL, &count);
        average[i] = values_of(f->weights, "ema", &count);
    }
    assert_memory_equal(average[0], weights[0], (size_t)count * sizeof(float));
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        double expected = 0.75 * weights[0][i] + 0.25 * weights[1][i];
        most = fmax(most, fabs(expected - average[1][i]));
    }
    assert_true(most <= 2e-7); /* one rounding of values near one; measured: 6e-8 */
    for (int i = 0; i < 2; i++) {
        free(weights[i]);
        free(average[i]);
    }
}

/* A second training of the same weights resets its optimiser state. */
FIXTURE_TEST(nothing_is_left_of_an_earlier_training)
{
    int64_t count;
    att_train_options options = one_update(8, 1);
    assert_trains(f, &options);
    fixture_model(f, 0);
    float *start = values_of(f->weights, NULL, &count);
    assert_trains(f, &options);
    float *first = values_of(f->weights, NULL, &count), *at = start;
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        int64_t part = att_shape_count(att_weights_at(f->weights, i).shape);
        assert_int_equal(att_weights_set(f->weights, -1, i, at, part), ATT_OK);
        at += part;
    }
    assert_trains(f, &options);
    float *second = values_of(f->weights, NULL, &count);
    assert_memory_equal(first, second, (size_t)count * sizeof(float));
    free(start);
    free(first);
    free(second);
}

FIXTURE_TEST(seeds_decide_and_workers_do_not)
{
    int64_t count;
    float *values[3];
    for (int i = 0; i < 3; i++) {
        att_train_options options = small_training();
        options.workers = i == 1 ? 3 : 0;
        options.seed = i == 2 ? 7 : 42;
        fixture_model(f, 0);
        assert_trains(f, &options);
        values[i] = values_of(f->weights, NULL, &count);
    }
    assert_memory_equal(values[0], values[1], (size_t)count * sizeof(float));
    assert_memory_not_equal(values[0], values[2], (size_t)count * sizeof(float));
    for (int i = 0; i < 3; i++)
        free(values[i]);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

typedef struct heard {
    int kinds[5], batches, evaluations;
    double step_loss[10], epoch_loss[2];
    bool fields_finite;
    char status[32];
} heard;

static const att_event_field *field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0)
            return &event->fields[i];
    fail_msg("an event lacks %s", name);
    return NULL;
}

static att_status hear(void *user, const att_event *event)
{
    heard *h = user;
    h->kinds[event->kind]++;
    for (int i = 0; i < event->field_count; i++)
        h->fields_finite &= event->fields[i].text || isfinite(event->fields[i].number);
    if (event->kind == ATT_EVENT_RUN_BEGIN) {
        assert_string_equal(field(event, "batch_size")->text, "8");
        assert_true(field(event, "tokens")->number == 5);
        assert_string_equal(field(event, "task")->text, "classification");
    }
    if (event->kind == ATT_EVENT_STEP)
        h->step_loss[event->step - 1] = field(event, "loss")->number;
    if (event->kind == ATT_EVENT_EPOCH) {
        h->epoch_loss[event->epoch] = field(event, "train_loss")->number;
        field(event, "eval_top1");
        field(event, "eval_plain_top1");
        assert_int_equal(event->step, 5 * (event->epoch + 1));
    }
    if (event->kind == ATT_EVENT_RUN_END)
        snprintf(h->status, sizeof h->status, "%s", field(event, "status")->text);
    return ATT_OK;
}

static bool watch(void *user, const att_progress *progress)
{
    heard *h = user;
    assert_int_equal(progress->epochs, 2);
    assert_true(progress->batch >= 1 && progress->batch <= progress->batches);
    assert_true(progress->seconds_left >= 0 && progress->images_per_second > 0);
    assert_true(isfinite(progress->loss) && isfinite(progress->lr));
    if (strcmp(progress->stage, "train") == 0)
        h->batches++;
    else
        h->evaluations++;
    return true;
}

FIXTURE_TEST(every_step_and_epoch_emits_an_event)
{
    heard h = {.fields_finite = true};
    att_sink sink = {.emit = hear, .user = &h};
    att_train_options options = small_training();
    options.log_interval = 1;
    options.sinks = &sink;
    options.sink_count = 1;
    options.progress = watch;
    options.progress_user = &h;
    assert_trains(f, &options);
    const int kinds[] = {1, 10, 0, 2, 1};
    assert_memory_equal(h.kinds, kinds, sizeof kinds);
    assert_true(h.fields_finite);
    assert_string_equal(h.status, "OK");
    assert_int_equal(h.batches, 10);
    assert_int_equal(h.evaluations, 2 * 2 * 2); /* epochs, weights and average, batches of eight among ten images */
    for (int epoch = 0; epoch < 2; epoch++) {
        double sum = 0;
        for (int i = 0; i < 5; i++)
            sum += h.step_loss[5 * epoch + i];
        assert_float_equal(h.epoch_loss[epoch], sum / 5, 1e-12);
    }
}

/* --- lengths in updates ------------------------------------------------------------------------------------------ */

enum { MOST_EVALUATIONS = 4, MOST_STEPS = 7 };

/* What a training run in updates reports: the losses of its updates; step, epoch and loss of its evaluations. */
typedef struct counted {
    double losses[MOST_STEPS], train_losses[MOST_EVALUATIONS];
    int64_t steps[MOST_EVALUATIONS], epochs[MOST_EVALUATIONS];
    int evaluations;
    int64_t last_update; /* by the progress */
} counted;

static att_status count_evaluations(void *user, const att_event *event)
{
    counted *c = user;
    if (event->kind == ATT_EVENT_RUN_BEGIN) {
        assert_string_equal(field(event, "updates")->text, "7");
        assert_string_equal(field(event, "epochs")->text, "3");
    }
    if (event->kind == ATT_EVENT_STEP)
        c->losses[event->step - 1] = field(event, "loss")->number;
    if (event->kind == ATT_EVENT_EPOCH) {
        assert_true(c->evaluations < MOST_EVALUATIONS);
        c->steps[c->evaluations] = event->step;
        c->epochs[c->evaluations] = event->epoch;
        c->train_losses[c->evaluations++] = field(event, "train_loss")->number;
    }
    return ATT_OK;
}

static bool watch_updates(void *user, const att_progress *progress)
{
    counted *c = user;
    assert_int_equal(progress->updates, 7);
    assert_int_equal(progress->epochs, 3);
    assert_true(progress->update >= c->last_update && progress->update <= 7);
    assert_true(progress->batch <= progress->batches && progress->batches <= 5 && progress->seconds_left >= 0);
    c->last_update = progress->update;
    return true;
}

/* Five batches are three updates, of which the third has one batch. The third epoch ends after its first update. */
FIXTURE_TEST(evaluations_come_after_so_many_updates)
{
    char output[160];
    counted c = {.evaluations = 0};
    att_sink sink = {.emit = count_evaluations, .user = &c};
    att_train_options options = small_training();
    options.grad_accum_steps = 2;
    options.updates = 7;
    options.eval_every = 2;
    options.log_interval = 1;
    options.output = path_in(f, "run", output);
    options.sinks = &sink;
    options.sink_count = 1;
    options.progress = watch_updates;
    options.progress_user = &c;
    att_train_result result;
    CHECK(f->context, att_train(f->model, f->weights, &f->data, &options, &result));
    const int64_t steps[] = {2, 4, 6, 7}, epochs[] = {0, 1, 1, 2};
    const double *l = c.losses;
    const double means[] = {(l[0] + l[1]) / 2, (l[2] + 2 * l[3]) / 3, (2 * l[4] + l[5]) / 3, l[6]};
    assert_int_equal(c.evaluations, 4);
    assert_memory_equal(c.steps, steps, sizeof steps);
    assert_memory_equal(c.epochs, epochs, sizeof epochs);
    for (int i = 0; i < 4; i++) {
        char name[48];
        snprintf(name, sizeof name, "run/checkpoint-%d.safetensors", (int)steps[i]);
        assert_true(exists(f, name));
        assert_float_equal(c.train_losses[i], means[i], 1e-12); /* sums of doubles; measured: 2e-16 */
    }
    assert_false(exists(f, "run/checkpoint-0.safetensors") || exists(f, "run/checkpoint-3.safetensors"));
    assert_int_equal(c.last_update, 7);
    assert_int_equal(result.updates, 7);
    assert_int_equal(result.epochs, 2);
    assert_true(result.best_update >= 2 && result.best_epoch == (result.best_update - 1) / 3);
}

/* Nothing that instruments, files and weights show depends on how the length was given. */
FIXTURE_TEST(an_epoch_is_an_interval_of_its_updates)
{
    int64_t count;
    float *values[2];
    att_train_result results[2];
    for (int i = 0; i < 2; i++) {
        att_train_options options = small_training();
        options.epochs = i ? 300 : 2;
        options.updates = i ? 10 : 0;
        options.eval_every = i ? 5 : 0;
        options.warmup_epochs = i ? 300 : 1;
        options.warmup_updates = i ? 5 : 0;
        fixture_model(f, 0.1);
        CHECK(f->context, att_train(f->model, f->weights, &f->data, &options, &results[i]));
        values[i] = values_of(f->weights, "ema", &count);
    }
    assert_memory_equal(values[0], values[1], (size_t)count * sizeof(float));
    assert_memory_equal(results[0].eval, results[1].eval, sizeof results[0].eval);
    assert_true(results[0].train_loss == results[1].train_loss);
    assert_int_equal(results[0].best_update, results[1].best_update);
    assert_int_equal(results[0].best_epoch, results[1].best_epoch);
    free(values[0]);
    free(values[1]);
}

static bool stop_at_the_seventh(void *user, const att_progress *progress)
{
    (void)user;
    return strcmp(progress->stage, "train") != 0 || progress->update < 7;
}

/* Seven updates are those with which a longer training begins. Without eval_every, evaluations come after epochs. */
FIXTURE_TEST(the_last_epoch_ends_with_the_last_update)
{
    int64_t count;
    char output[160];
    att_train_options options = small_training();
    options.schedule = "none";
    options.progress = stop_at_the_seventh;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED);
    float *longer = values_of(f->weights, NULL, &count);
    options.progress = NULL;
    options.updates = 7;
    options.output = path_in(f, "run", output);
    fixture_model(f, 0.1);
    att_train_result result;
    CHECK(f->context, att_train(f->model, f->weights, &f->data, &options, &result));
    float *values = values_of(f->weights, NULL, &count);
    assert_memory_equal(values, longer, (size_t)count * sizeof(float));
    assert_int_equal(result.updates, 7);
    assert_true(result.best_update == 5 || result.best_update == 7);
    assert_int_equal(result.best_epoch, result.best_update / 7);
    assert_true(exists(f, "run/checkpoint-0.safetensors") && exists(f, "run/checkpoint-1.safetensors"));
    free(longer);
    free(values);
}

/* A head of zeros that hardly learns: every image has the loss log(classes), for any update, batch or progress within
 * an epoch. */
typedef struct even_losses {
    int steps, calls;
} even_losses;

static att_status hear_step_loss(void *user, const att_event *event)
{
    if (event->kind == ATT_EVENT_STEP) {
        assert_float_equal(field(event, "loss")->number, log(CLASSES), 1e-6); /* measured: 4e-9 */
        ((even_losses *)user)->steps++;
    }
    return ATT_OK;
}

static bool watch_loss(void *user, const att_progress *progress)
{
    if (strcmp(progress->stage, "train") == 0) {
        assert_float_equal(progress->loss, log(CLASSES), 1e-6);
        ((even_losses *)user)->calls++;
    }
    return true;
}

FIXTURE_TEST(losses_are_means_over_images)
{
    const float zeros[16 * CLASSES] = {0};
    for (int accumulated = 1; accumulated <= 2; accumulated++) {
        even_losses e = {0};
        att_sink sink = {.emit = hear_step_loss, .user = &e};
        att_train_options options = small_training();
        options.log_interval = 1;
        options.lr = options.warmup_lr = options.min_lr = 1e-9;
        options.grad_accum_steps = accumulated;
        options.sinks = &sink;
        options.sink_count = 1;
        options.progress = watch_loss;
        options.progress_user = &e;
        fixture_model(f, 0);
        int head = att_weights_find(f->weights, "head.weight");
        assert_int_equal(att_weights_set(f->weights, -1, head, zeros, 16 * CLASSES), ATT_OK);
        assert_trains(f, &options);
        assert_int_equal(e.steps, accumulated == 1 ? 10 : 6);
        assert_int_equal(e.calls, 10);
    }
}

/* --- instruments -------------------------------------------------------------------------------------------------- */

typedef struct measured {
    int events;

} measured;

static att_status take_figures(void *user, const att_event *event)
{
    measured *m = user;
    if (event->kind != ATT_EVENT_MEASURE)
        return ATT_OK;
    assert_int_equal(event->step, 3 * m->events + 1);
    assert_true(field(event, "images")->number == 2 * BATCH);
    for (int i = 0; i < event->measurement_count; i++) {
        const att_measurement *figure = &event->measurements[i];
        assert_int_equal(figure->count, 2 * BATCH);
        assert_true(isfinite(figure->mean) && isfinite(figure->deviation));
    }
    m->events++;
    return ATT_OK;
}

FIXTURE_TEST(instruments_see_every_third_update)
{
    measured m = {0};
    att_sink sink = {.emit = take_figures, .user = &m};
    att_train_options options = small_training();
    options.grad_accum_steps = 2;
    options.epochs = 3; /* three updates, the last one of one batch */
    int64_t count;
    assert_trains(f, &options);
    float *plain = values_of(f->weights, NULL, &count);

    fixture_model(f, 0.1);
    att_measure *measure;
    assert_int_equal(att_measure_create(att_model_graph(f->model), "accuracy,entropy,nsi", "*", &measure), ATT_OK);
    options.measure = measure;
    options.measure_every = 3;
    options.sinks = &sink;
    options.sink_count = 1;
    assert_trains(f, &options);
    float *observed = values_of(f->weights, NULL, &count);
    assert_memory_equal(observed, plain, (size_t)count * sizeof *plain);
    assert_int_equal(m.events, 3);

    att_evaluation e;
    att_evaluate_options how = att_evaluate_options_defaults();
    how.measure = measure;
    att_measure_clear(measure);
    assert_int_equal(att_evaluate(f->model, f->weights, f->eval, &f->eval_transform, &how, &e), ATT_OK);
    assert_int_equal(att_measure_at(measure, 0).count, EVAL_IMAGES);
    options.measure_every = 0;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT);
    att_measure_destroy(&measure);
    free(plain);
    free(observed);
}

FIXTURE_TEST(instruments_agree_with_the_evaluation)
{
    att_option_values options = tiny_options();
    att_model *model;
    att_measure *measure;
    att_evaluation e;
    assert_int_equal(att_model_create(f->context, "vit_tiny_patch16_224", &options, ATT_F32, &model), ATT_OK);
    assert_int_equal(att_measure_create(att_model_graph(model), "accuracy", "*", &measure), ATT_OK);
    att_evaluate_options how = att_evaluate_options_defaults();
    how.batch_size = 4;
    how.measure = measure;
    assert_int_equal(att_evaluate(model, f->weights, f->eval, &f->eval_transform, &how, &e), ATT_OK);
    assert_int_equal(att_measure_at(measure, 0).count, e.count);
    assert_float_equal(att_measure_at(measure, 0).mean, e.metrics[TOP1], 1e-9);
    assert_float_equal(att_measure_at(measure, 1).mean, e.metrics[TOP5], 1e-9);
    assert_float_equal(att_measure_at(measure, 2).mean, e.metrics[LOSS], 1e-9);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
}

static att_status refuse(void *user, const att_event *event)
{
    (void)user;
    return event->kind == ATT_EVENT_STEP ? ATT_ERR_IO : ATT_OK;
}

FIXTURE_TEST(a_failing_sink_stops_the_run)
{
    att_sink sink = {.emit = refuse};
    att_train_options options = small_training();
    options.log_interval = 3;
    options.sinks = &sink;
    options.sink_count = 1;
    att_train_result result;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_ERR_IO);
    assert_int_equal(result.updates, 3);
}

/* --- what stops a training run, and options
 * --------------------------------------------------------------------------- */

typedef struct poison {
    att_weights *weights;
    int batches_left;
} poison;

static bool poison_later(void *user, const att_progress *progress)
{
    poison *p = user;
    (void)progress;
    if (p->batches_left-- == 0) {
        float bad[CLASSES] = {0, NAN};
        assert_int_equal(att_weights_set(p->weights, -1, att_weights_find(p->weights, "head.bias"), bad, CLASSES),
                         ATT_OK);
    }
    return true;
}

FIXTURE_TEST(nan_stops_before_the_update)
{
    char output[160];
    int64_t count;
    poison p = {f->weights, 2};
    att_train_options options = small_training();
    options.output = path_in(f, "run", output);
    options.checkpoint_every_updates = 1;
    options.progress = poison_later;
    options.progress_user = &p;
    att_train_result result;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_ERR_NONFINITE);
    /* The third batch changes the weights to NaN after its gradient was computed, so the fourth update detects it. */
    assert_message_has(f, "update 4 ");
    assert_message_has(f, "head.bias");
    /* These weights were written after the third update, so there is no good checkpoint. */
    assert_message_has(f, "the weights are those of ");
    assert_message_has(f, "run/last.safetensors");
    assert_int_equal(result.updates, 3);
    float *values = values_of(f->weights, "exp_avg", &count);
    for (int64_t i = 0; i < count; i++)
        assert_true(isfinite(values[i]));
    free(values);
}

/* The last update of the second epoch makes the weights not finite. */
FIXTURE_TEST(nan_in_the_evaluation_leaves_no_checkpoint)
{
    char output[160], path[160];
    poison p = {f->weights, 5 + 2 * 2 + 4};
    att_train_options options = small_training();
    options.output = path_in(f, "run", output);
    options.progress = poison_later;
    options.progress_user = &p;
    att_train_result result;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, &result), ATT_ERR_NONFINITE,
                 "the evaluation after update 10 (epoch 2) gave NaN or infinity");
    assert_message_has(f, "the last good checkpoint is ");
    assert_message_has(f, "run/last.safetensors");
    assert_int_equal(result.epochs, 1);
    assert_false(exists(f, "run/checkpoint-1.safetensors"));
    options.progress = NULL;
    options.resume = path_in(f, "run/last.safetensors", path);
    fixture_model(f, 0.1);
    assert_trains(f, &options);
}

/* With a mixing probability of 0, the targets are the smoothed labels of a training run without mixing. */
FIXTURE_TEST(unmixed_targets_are_smoothed_labels)
{
    att_train_options options = small_training();
    double plain[2], mixing[2];
    att_sink sink = {.emit = keep_loss, .user = plain};
    options.sinks = &sink;
    options.sink_count = 1;
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    options.mixup = 0.8;
    options.mixup_prob = 0;
    sink.user = mixing;
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    for (int epoch = 0; epoch < 2; epoch++)
        assert_float_equal(mixing[epoch], plain[epoch], 1e-6); /* measured: 4e-8 */
    options.mixup_prob = 1;
    fixture_model(f, 0.1);
    assert_trains(f, &options);
    assert_true(fabs(mixing[1] - plain[1]) > 1e-4);
}

/* One update by plain gradient descent: weight decay adds -lr weight_decay p to the parameters it applies to. */
FIXTURE_TEST(decay_is_of_weights_or_of_all)
{
    att_train_options options = small_training();
    options.optimizer = "momentum";
    options.epochs = 1, options.warmup_epochs = 0, options.clip_grad = 0, options.momentum = 0, options.lr = 0.5;
    options.model_ema = false;
    options.batch_size = TRAIN_IMAGES;
    static const char *const kinds[] = {NULL, "weights", "all"};
    float *after[3], *before = NULL;
    int64_t count;
    for (int kind = 0; kind < 3; kind++) {
        fixture_model(f, 0);
        free(before);
        before = values_of(f->weights, NULL, &count);
        options.weight_decay = kinds[kind] ? 0.125 : 0;
        options.weight_decay_on = kinds[kind] ? kinds[kind] : "weights";
        assert_trains(f, &options);
        after[kind] = values_of(f->weights, NULL, &count);
    }
    int64_t at = 0;
    for (int i = 0; i < att_weights_count(f->weights); i++) {
        att_parameter_info info = att_graph_parameter_at(att_model_graph(f->model), i);
        for (int64_t end = at + att_shape_count(info.shape); at < end; at++) {
            double pull = -0.5 * 0.125 * (double)before[at];
            assert_float_equal(after[2][at] - after[0][at], pull, 1e-6); /* parameters of about 1, rounded twice */
            assert_float_equal(after[1][at] - after[0][at], info.decay ? pull : 0, 1e-6);
        }
    }
    free(before);
    for (int kind = 0; kind < 3; kind++)
        free(after[kind]);
}

FIXTURE_TEST(wrong_options_are_refused)
{
    att_train_options good = small_training(), options = good;
    options.optimizer = "adanw";
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "--opt (train.optimizer): there is no \"adanw\"; did you mean adamw?");
    options = good;
    options.schedule = "triangle";
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "cosine, poly, step");
    options = good;
    options.eps = NAN;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "--opt-eps (train.eps): \"nan\" is not a number from 1e-30 to 1");
    options = good;
    options.batch_size = TRAIN_IMAGES + 1;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT, "43 images");
    options = good;
    options.weight_decay_on = "norms";
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "there is no \"norms\", only weights, all");
    static const char *const spellings[] = {"top5", "TOP5", "top-5", "Top-5"};
    const att_task_info task = att_model_task(f->model);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        int metric = -1;
        options.eval_metric = spellings[i];
        CHECK(f->context, att_train_metric(f->context, &options, &task, &metric));
        assert_string_equal(task.metrics[metric].name, "top5");
    }
    options = good;
    options.eval_metric = "top3";
    assert_fails(
        f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
        "the task \"classification\" has no metric \"top3\" (--eval-metric, eval_metric); there are: loss, top1, top5");
    options = good;
    const att_option_values most = smoothing_of(1);
    options.task_options = &most;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT, "smoothing");
    options = good;
    options.mixup = 0.2;
    options.mixup_mode = "half";
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "there is no \"half\", only batch, pair, elem");
    options = good;
    options.decay_milestones[0] = 200;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "--decay-milestones (train.decay_milestones): 180 follows 200");
    options = good;
    options.lr = options.lr_base = 0;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "one of them must be above 0");
    options = good;
    options.mixup_mode = NULL;
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_ARGUMENT,
                 "must be given");
    f->train_transform.width = 2 * SIDE;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &good, NULL), ATT_ERR_MISMATCH);
}
