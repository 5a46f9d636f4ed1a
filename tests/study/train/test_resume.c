/* A training run that was stopped or killed and then resumed writes the same files as an uninterrupted one. */
#include "study/train/fixture.h"
#include "study/train/trainer.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static att_train_options training_in(const fixture *f, const char *name, char output[160])
{
    att_train_options options = small_training();
    options.grad_accum_steps = 2; /* five batches are three updates */
    options.checkpoint_hist = 1;
    options.checkpoint_every_updates = 1;
    options.output = path_in(f, name, output);
    return options;
}

/* Four epochs and one update, evaluated after each second update: within epochs, and at the end of one. */
static att_train_options training_in_updates(const fixture *f, const char *name, char output[160])
{
    att_train_options options = training_in(f, name, output);
    options.updates = 13;
    options.eval_every = 2;
    options.schedule = "poly";
    options.warmup_updates = 3;
    options.checkpoint_hist = 2;
    return options;
}

enum { MOST_UPDATES = 13 };

typedef struct stopper {
    int calls_left, calls;
    double losses[MOST_UPDATES + 1]; /* of the evaluations, by the updates done */
} stopper;

static bool count_calls(void *user, const att_progress *progress)
{
    (void)progress;
    ((stopper *)user)->calls++;
    return true;
}

static bool stop_later(void *user, const att_progress *progress)
{
    (void)progress;
    return --((stopper *)user)->calls_left != 0;
}

static att_status keep_loss(void *user, const att_event *event)
{
    if (event->kind == ATT_EVENT_EPOCH)
        ((stopper *)user)->losses[event->step] = event->fields[0].number;
    return ATT_OK;
}

/* Stops at every `step`th call. */
static void stop_anywhere(fixture *f, att_train_options options, int step)
{
    char output[160], last[160];
    stopper whole = {0};
    att_sink sink = {.emit = keep_loss, .user = &whole};
    options.output = path_in(f, "whole", output);
    options.sinks = &sink;
    options.sink_count = 1;
    options.progress = count_calls;
    options.progress_user = &whole;
    assert_trains(f, &options);
    for (int calls = 1; calls < whole.calls; calls += step) {
        stopper s = {.calls_left = calls};
        char name[32], last_name[64];
        snprintf(name, sizeof name, "stopped-%d", calls);
        snprintf(last_name, sizeof last_name, "%s/last.safetensors", name);
        sink.user = &s;
        options.output = path_in(f, name, output);
        options.resume = NULL;
        options.progress = stop_later;
        options.progress_user = &s;
        fixture_model(f, 0.1);
        assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED, last_name);
        options.progress = NULL;
        options.resume = path_in(f, last_name, last);
        fixture_model(f, 0.1);
        assert_trains(f, &options);
        assert_same_run(f, "whole", name);
        assert_memory_equal(s.losses, whole.losses, sizeof s.losses);
    }
}

FIXTURE_TEST(a_stopped_training_continues_to_the_same_bits)
{
    char output[160];
    stop_anywhere(f, training_in(f, "whole", output), 1);
}

FIXTURE_TEST(a_stopped_training_in_updates_continues_to_the_same_bits)
{
    char output[160];
    stop_anywhere(f, training_in_updates(f, "whole", output), 3);
}

/* Mixing is switched off during the training; images are repeated. */
FIXTURE_TEST(a_stopped_training_that_mixes_continues_to_the_same_bits)
{
    char output[160];
    att_train_options options = training_in(f, "whole", output);
    options.mixup = 0.8;
    options.cutmix = 1;
    options.mixup_mode = "elem";
    options.mixup_off_epoch = 1;
    options.aug_repeats = 2;
    f->train_transform.erase = 0.5;
    f->train_transform.erase_mode = ATT_ERASE_PIXEL;
    f->train_transform.color_jitter[1] = 0.4;
    f->train_transform.rand_augment = (att_rand_augment){2, 9, 0.5, 10, 0.5, true};
    fixture_model(f, 0.1);
    stop_anywhere(f, options, 4);
}

FIXTURE_TEST(a_stopped_training_with_layer_decay_continues_to_the_same_bits)
{
    char unused[160];
    att_train_options options = training_in(f, "", unused);
    options.layer_decay = 0.75;
    options.layer_decay_no_opt_scale = 0.5; /* freezes the stem */
    stop_anywhere(f, options, 4);
}

FIXTURE_TEST(resuming_a_finished_training_changes_nothing)
{
    char output[160], last[160];
    att_train_options options = training_in(f, "whole", output);
    assert_trains(f, &options);
    size_t size, again_size;
    char *bytes = read_all(f, "whole/last.safetensors", &size);
    options.resume = path_in(f, "whole/last.safetensors", last);
    fixture_model(f, 0.1);
    att_train_result result;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, &result), ATT_OK);
    assert_int_equal(result.epochs, 2);
    assert_int_equal(result.updates, 6);
    assert_true(isfinite(result.best_metric) && isnan(result.train_loss));
    char *again = read_all(f, "whole/last.safetensors", &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    free(bytes);
    free(again);
}

/* As after a kill between writing `last` and adding its other names. */
FIXTURE_TEST(missing_names_are_given_again)
{
    char output[160], path[160];
    att_train_options options = training_in(f, "whole", output);
    options.checkpoint_hist = 2;
    assert_trains(f, &options);
    assert_int_equal(unlink(path_in(f, "whole/checkpoint-1.safetensors", path)), 0);
    options.resume = path_in(f, "whole/last.safetensors", path);
    assert_trains(f, &options);
    assert_same_file(f, "whole/checkpoint-1.safetensors", "whole/last.safetensors");
}

/* As after a kill between writing `last` and removing the checkpoint that is no longer kept. */
FIXTURE_TEST(checkpoints_no_longer_kept_are_removed)
{
    char output[160], path[160];
    att_train_options options = training_in(f, "whole", output);
    f->data.eval = NULL; /* the newest is kept */
    assert_trains(f, &options);
    assert_false(exists(f, "whole/checkpoint-0.safetensors"));
    FILE *file = fopen(path_in(f, "whole/checkpoint-0.safetensors", path), "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    options.resume = path_in(f, "whole/last.safetensors", path);
    assert_trains(f, &options);
    assert_false(exists(f, "whole/checkpoint-0.safetensors"));
    assert_true(exists(f, "whole/checkpoint-1.safetensors"));
}

/* If a checkpoint cannot have a second name, it is written again from memory. */
FIXTURE_TEST(other_file_systems_get_a_copy)
{
    char output[160], away[64], command[320];
    att_train_options options = training_in(f, "whole", output);
    options.checkpoint_hist = 2;
    assert_trains(f, &options);
    snprintf(away, sizeof away, "/dev/shm/%s.safetensors", strrchr(f->folder, '/') + 1);
    snprintf(command, sizeof command, "cp %s/last.safetensors %s", output, away);
    if (system(command) != 0) {
        print_message("skipped: /dev/shm, another file system, cannot be written\n");
        skip();
    }
    options.output = path_in(f, "moved", output);
    options.resume = away;
    att_status status = att_train(f->model, f->weights, &f->data, &options, NULL);
    unlink(away);
    assert_int_equal(status, ATT_OK);
    assert_same_file(f, "moved/checkpoint-1.safetensors", "whole/last.safetensors");
}

/* The number of lanes in the checkpoint counts, not the threads of the resuming process. */
FIXTURE_TEST(other_threads_continue_to_the_same_bits)
{
    char output[160], last[160];
    stopper s = {.calls_left = 3};
    att_train_options options = training_in(f, "whole", output);
    assert_trains(f, &options);
    options.output = path_in(f, "moved", output);
    options.progress = stop_later;
    options.progress_user = &s;
    fixture_model(f, 0.1);
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED);

    options.progress = NULL;
    options.resume = path_in(f, "moved/last.safetensors", last);
    for (int threads = 4; threads >= 1; threads -= 3) { /* four threads, two for each lane of the checkpoint */
        fixture other = {0};
        strcpy(other.folder, f->folder);
        other.threads = threads;
        fixture_open(&other);
        options.progress_user = &(stopper){.calls_left = 3};
        options.progress = threads > 1 ? stop_later : NULL;
        att_status status = att_train(other.model, other.weights, &other.data, &options, NULL);
        if (status != (threads > 1 ? ATT_ERR_STOPPED : ATT_OK))
            fail_msg("on %d threads: %s", threads, att_context_message(other.context));
        fixture_close(&other);
    }
    assert_same_run(f, "whole", "moved");
}

/* Two threads share the only lane. */
FIXTURE_TEST(fewer_threads_than_share_a_lane_are_refused)
{
    char output[160], last[160];
    att_train_options options = training_in(f, "whole", output);
    options.lanes = 1;
    assert_trains(f, &options);
    options.lanes = 0;
    options.resume = path_in(f, "whole/last.safetensors", last);
    fixture other = {.threads = 1};
    strcpy(other.folder, f->folder);
    fixture_open(&other);
    assert_fails(other.context, att_train(other.model, other.weights, &other.data, &options, NULL), ATT_ERR_MISMATCH,
                 "needs at least 2 threads to continue, and there is 1; pass --threads 2");
    fixture_close(&other);
}

/* The memory option in the checkpoint counts for a resume without that option. */
FIXTURE_TEST(the_memory_of_the_checkpoint_is_taken)
{
    char output[160], last[160];
    stopper s = {.calls_left = 3};
    att_train_options options = training_in(f, "whole", output);
    options.memory = 64 << 20;
    assert_trains(f, &options);
    options.output = path_in(f, "moved", output);
    options.progress = stop_later;
    options.progress_user = &s;
    fixture_model(f, 0.1);
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_STOPPED);
    options.progress = NULL;
    options.memory = 0;
    options.resume = path_in(f, "moved/last.safetensors", last);
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_OK);
    assert_same_run(f, "whole", "moved"); /* including their metadata */
    options.memory = 1000;
    assert_int_equal(att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MEMORY);
}

/* The smallest memory that the message names works; one byte less does not. */
FIXTURE_TEST(too_little_memory_is_refused_with_the_least_that_works)
{
    att_train_options options = small_training();
    options.memory = 1000;
    assert_int_equal(att_train_check(f->model, f->weights, &f->data, &options), ATT_ERR_MEMORY);
    const char *message = att_context_message(f->context), *named = strchr(message, '(');
    assert_non_null(strstr(message, "at least"));
    assert_non_null(named);
    options.memory = atoll(named + 1);
    CHECK(f->context, att_train_check(f->model, f->weights, &f->data, &options));
    options.memory--;
    assert_int_equal(att_train_check(f->model, f->weights, &f->data, &options), ATT_ERR_MEMORY);
}

static void assert_refused(fixture *f, const att_train_options *options, const char *what, const char *there,
                           const char *here)
{
    int64_t count;
    float *before = values_of(f->weights, NULL, &count);
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, options, NULL), ATT_ERR_MISMATCH, what);
    assert_message_has(f, there);
    assert_message_has(f, here);
    float *after = values_of(f->weights, NULL, &count);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    free(before);
    free(after);
}

FIXTURE_TEST(the_first_difference_is_named)
{
    char output[160], last[160];
    att_train_options good = training_in(f, "whole", output), options;
    assert_trains(f, &good);
    good.resume = path_in(f, "whole/last.safetensors", last);
    options = good;
    options.batch_size = 4;
    assert_refused(f, &options, "batch_size", "\"8\"", "\"4\"");
    options = good;
    options.seed = 7;
    assert_refused(f, &options, "seed", "\"42\"", "\"7\"");
    options = good;
    options.optimizer = "sgd";
    assert_refused(f, &options, "optimizer", "\"adamw\"", "\"sgd\"");
    options = good;
    options.beta2 = 0.5;
    assert_refused(f, &options, "beta2 (--opt-betas)", "\"0.999\"", "\"0.5\"");
    options = good;
    options.eps = 1e-6;
    assert_refused(f, &options, "eps (--opt-eps)", "\"1e-08\"", "\"1e-06\"");
    options = good;
    options.eval_metric = "loss";
    assert_refused(f, &options, "eval_metric", "\"top1\"", "\"loss\"");
    options = good;
    options.lanes = 3;
    assert_refused(f, &options, "fingerprint", "\"lanes=2\"", "\"lanes=3\"");
    att_dataset *given = f->train;
    f->data.train = f->eval; /* another number of images */
    assert_refused(f, &good, "trained on", "43 images", "has 10");
    f->data.train = given;
    f->data.eval = f->train;
    assert_refused(f, &good, "evaluated on other images", "than those", "here");
    f->data.eval = f->eval;
    f->train_transform.flip = 0.5;
    assert_refused(f, &good, "transform", "numbers=", "0.5");
    f->train_transform.flip = 0;
    f->train_transform.erase = 0.25;
    assert_refused(f, &good, "augment", "\"\"", "layers=0");
    f->train_transform.erase = 0;
    f->train_transform.three_augment = true;
    assert_refused(f, &good, "augment", "\"\"", "\"three_augment\"");
    f->train_transform.three_augment = false;
    options = good;
    options.updates = 6;
    assert_refused(f, &options, "updates", "\"0\"", "\"6\"; its learning rates depend on the length");
    options = good;
    options.eval_every = 2;
    assert_refused(f, &options, "eval_every", "\"0\"", "\"2\"");
    options = good;
    options.layer_decay = 0.75;
    assert_refused(f, &options, "layer_decay", "\"0\"", "\"0.75\"");
    options = good;
    options.aug_repeats = 3;
    assert_refused(f, &options, "aug_repeats", "\"0\"", "\"3\"");
    options = good;
    options.decay_milestones[1] = 100;
    assert_refused(f, &options, "decay_milestones", "90,180,270", "90,100,270");
    fixture_model_with(f, 0.2, 0.1);
    assert_refused(f, &good, "trained with drop_rate", "\"0.1\"", "\"0.2\"");
    fixture_model_with(f, 0.1, 0.2);
    assert_refused(f, &good, "trained with drop_path_rate", "\"0.1\"", "\"0.2\"");
}

FIXTURE_TEST(weights_alone_cannot_be_continued)
{
    char path[160];
    att_train_options options = small_training();
    options.resume = path_in(f, "weights.safetensors", path);
    assert_int_equal(att_checkpoint_export(f->model, f->weights, path), ATT_OK);
    assert_fails(f->context, att_train(f->model, f->weights, &f->data, &options, NULL), ATT_ERR_MISMATCH,
                 "no training");
}

/* --- killed ------------------------------------------------------------------------------------------------------- */

static bool linger(void *user, const att_progress *progress)
{
    (void)user;
    (void)progress;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return true;
}

static att_train_options killed_training(const fixture *f, const char *name, bool in_updates, char output[160])
{
    return in_updates ? training_in_updates(f, name, output) : training_in(f, name, output);
}

/* A process of its own, which resumes the training in `folder` if there is one. */
static int work(const char *folder, bool in_updates)
{
    fixture f = {0};
    char output[160], last[160];
    snprintf(f.folder, sizeof f.folder, "%s", folder);
    fixture_open(&f);
    att_train_options options = killed_training(&f, "killed", in_updates, output);
    options.progress = linger;
    options.resume = exists(&f, "killed/last.safetensors") ? path_in(&f, "killed/last.safetensors", last) : NULL;
    att_status status = att_train(f.model, f.weights, &f.data, &options, NULL);
    if (status != ATT_OK)
        fprintf(stderr, "%s\n", att_context_message(f.context));
    fixture_close(&f);
    return status == ATT_OK ? 0 : 1;
}

static pid_t start(const fixture *f, bool in_updates)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_resume", f->folder, in_updates ? "updates" : "epochs", (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Returns the exit status of a process, -1 if it was killed. */
static int end_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void kill_often(fixture *f, bool in_updates)
{
    char output[160];
    att_train_options options = killed_training(f, "whole", in_updates, output);
    options.progress = linger;
    double started = seconds_now();
    assert_trains(f, &options);
    double whole = seconds_now() - started;
    int kills = 0, status = -1;
    uint32_t random = 12345;
    for (int i = 0; i < 20 && status != 0; i++) {
        random = random * 1664525 + 1013904223;
        pid_t child = start(f, in_updates);
        nanosleep(&(struct timespec){.tv_nsec = (long)(fmin(0.6 * whole, 0.9) * 1e9 * (random >> 8) / (1 << 24))},
                  NULL);
        kill(child, SIGKILL);
        status = end_of(child);
        assert_true(status <= 0);
        kills += status < 0;
    }
    printf("killed %d times, each within %.2f s\n", kills, 0.6 * whole);
    if (status != 0)
        assert_int_equal(end_of(start(f, in_updates)), 0);
    assert_same_run(f, "whole", "killed");
}

FIXTURE_TEST(a_killed_training_continues_to_the_same_bits)
{
    kill_often(f, false);
}

FIXTURE_TEST(a_killed_training_in_updates_continues_to_the_same_bits)
{
    kill_often(f, true);
}

int main(int argc, char **argv)
{
    return argc > 2 ? work(argv[1], strcmp(argv[2], "updates") == 0) : test_run("resume");
}
