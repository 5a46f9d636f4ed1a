/* A sweep run by a program, in its own process or with its own steps. */
#include <attscope/lab/sweep_plan.h>

#include <pthread.h>

#include "lab/report/sweep.h"
#include "lab/runs/recipe/small.h"
#include "study/measure/list.h"

static const uint64_t seeds[] = {1, 2};
static const char *const lrs[] = {"lr=0.001,0.01"};

/* The recipe is in the fixture's folder. */
static att_sweep_options small_sweep(const fixture *f, char path[160])
{
    att_recipe recipe = small_recipe(f);
    recipe.files.experiment = NULL;
    recipe.train.epochs = 1;
    assert_int_equal(att_recipe_write(f->context, path_in(f, "tiny.yaml", path), &recipe), ATT_OK);
    return (att_sweep_options){.recipe = path,
                               .seeds = seeds,
                               .seed_count = 2,
                               .vary = lrs,
                               .vary_count = 1,
                               .output = f->folder,
                               .measure = "accuracy,entropy"};
}

static att_sweep_plan *open_plan(const fixture *f, const att_sweep_options *options)
{
    att_sweep_plan *plan = NULL;
    CHECK(f->context, att_sweep_plan_open(f->context, options, &plan));
    return plan;
}

static void assert_statuses(const att_sweep_plan *plan, const char *status)
{
    for (int i = 0; i < att_sweep_plan_count(plan); i++)
        assert_string_equal(att_sweep_plan_at(plan, i).status, status);
}

static void assert_file_is(const fixture *f, const char *name, const char *before, size_t before_size)
{
    size_t size;
    char *now = read_all(f, name, &size);
    assert_int_equal(size, before_size);
    assert_memory_equal(now, before, size);
    free(now);
}

FIXTURE_TEST(two_settings_are_trained_and_measured)
{
    char path[160];
    att_sweep_options options = small_sweep(f, path);
    options.experiment = ""; /* not given */
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_count(plan), 4);
    assert_string_equal(att_sweep_plan_at(plan, 3).name, "lr=0.01-seed2");
    assert_false(exists(f, "tiny")); /* nothing is written before it runs */
    assert_null(att_sweep_plan_results(plan));
    att_json_writer *writer;
    const char *text;
    size_t length;
    assert_int_equal(att_json_writer_create(f->context, true, &writer), ATT_OK);
    att_sweep_plan_write_json(plan, writer);
    assert_int_equal(att_json_writer_finish(writer, &text, &length), ATT_OK);
    assert_non_null(strstr(text, "\"status\": \"waiting\""));
    att_json_writer_destroy(&writer);
    CHECK(f->context, att_sweep_plan_run(plan, NULL));
    assert_statuses(plan, "measured");
    const att_sweep *results = att_sweep_plan_results(plan);
    assert_int_equal(att_sweep_setting_count(results), 2);
    assert_int_equal(att_sweep_setting_at(results, 1).runs, 2);
    att_measurement entropy = att_sweep_figure_find(results, 1, "entropy", "blocks.0.attn", "mean");
    assert_int_equal(entropy.count, 2);
    assert_true(entropy.mean > 0);
    assert_true(exists(f, "tiny/sweep.json"));
    att_sweep_plan_close(&plan);

    /* The same sweep again finds all runs done. */
    plan = open_plan(f, &options);
    assert_statuses(plan, "measured");
    att_sweep_plan_close(&plan);
}

FIXTURE_TEST(runs_begun_with_other_settings_are_refused)
{
    char path[160], recipe[160];
    static const char *const epochs[] = {"epochs=3"}, *const workers[] = {"workers=2"};
    att_sweep_options options = small_sweep(f, path);
    options.vary_count = 0;
    options.seed_count = 1;
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    att_sweep_plan_close(&plan);
    options.set_count = 1;
    options.set = epochs;
    assert_int_equal(att_sweep_plan_open(f->context, &options, &plan), ATT_ERR_MISMATCH);
    assert_null(plan);
    assert_message_has(f, "tiny-seed1 was begun with epochs: 1, here it is 3");
    options.set = workers; /* does not change the weights */
    plan = open_plan(f, &options);
    assert_statuses(plan, "measured");
    write_idx(f->folder, "t10k", EVAL_IMAGES, 3);
    att_sweep_plan *other = NULL;
    assert_fails(f->context, att_sweep_plan_open(f->context, &options, &other), ATT_ERR_MISMATCH,
                 "tiny-seed1 was measured on other images");
    write_idx(f->folder, "t10k", EVAL_IMAGES, 2);

    /* A damaged recipe.yaml makes its run fail, and is kept. */
    FILE *file = fopen(path_in(f, "tiny/tiny-seed1/recipe.yaml", recipe), "w");
    assert_non_null(file);
    fputs("[[", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    assert_statuses(plan, "failed");
    assert_file_is(f, "tiny/tiny-seed1/recipe.yaml", "[[", 2);
    assert_false(exists(f, "tiny/tiny-seed1/recipe.new.yaml"));
    att_sweep_plan_close(&plan);
}

typedef struct counted {
    int trained, measured;
    const char *fails; /* run that fails */
    const char *stops; /* run that stops */
} counted;

static att_status count_training(void *user, const att_planned_run *run, const att_recipe *recipe,
                                 char reason[ATT_SWEEP_REASON])
{
    counted *c = user;
    c->trained++;
    assert_true(recipe->train.seed == run->seed);
    if (c->stops && strcmp(run->name, c->stops) == 0)
        return ATT_ERR_STOPPED;
    snprintf(reason, ATT_SWEEP_REASON, "for a test");
    return c->fails && strcmp(run->name, c->fails) != 0 ? ATT_OK : ATT_ERR_IO;
}

static att_status count_measuring(void *user, const att_planned_run *run, const att_recipe *recipe,
                                  char reason[ATT_SWEEP_REASON])
{
    counted *c = user;
    (void)recipe;
    c->measured++;
    if (strcmp(run->name, "lr=0.01-seed1") == 0)
        return ATT_ERR_UNSUPPORTED; /* gives no reason */
    snprintf(reason, ATT_SWEEP_REASON, "for a measurement");
    return ATT_OK;
}

FIXTURE_TEST(a_run_that_fails_leaves_the_others_alone)
{
    char path[160];
    const att_sweep_options options = small_sweep(f, path);
    counted c = {.fails = "lr=0.001-seed2"};
    const att_sweep_steps steps = {.train = count_training, .measure = count_measuring, .user = &c};
    att_sweep_plan *plan = open_plan(f, &options);
    att_sweep_plan *other = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, &steps), ATT_OK);
    assert_message_has(f, "its records contain no measurement");
    assert_int_equal(c.trained, 4);
    assert_int_equal(c.measured, 3);
    assert_statuses(plan, "failed"); /* also runs whose steps left no records */
    assert_string_equal(att_sweep_plan_at(plan, 1).failure, "for a test");
    assert_string_equal(att_sweep_plan_at(plan, 0).failure, "its records contain no measurement");
    assert_int_equal(att_sweep_setting_count(att_sweep_plan_results(plan)), 0);

    /* Another call tries the runs again. */
    assert_int_equal(att_sweep_plan_run(other, NULL), ATT_OK);
    assert_statuses(other, "measured");
    att_sweep_plan_close(&other);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    assert_statuses(plan, "measured");
    assert_string_equal(att_sweep_plan_at(plan, 0).failure, "");
    att_sweep_plan_close(&plan);
}

FIXTURE_TEST(a_stop_ends_the_sweep)
{
    char path[160];
    const att_sweep_options options = small_sweep(f, path);
    counted c = {.stops = "lr=0.001-seed2"};
    const att_sweep_steps steps = {.train = count_training, .measure = count_measuring, .user = &c};
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, &steps), ATT_ERR_STOPPED);
    assert_int_equal(c.trained, 2);
    assert_string_equal(att_sweep_plan_at(plan, 1).status, "stopped");
    assert_string_equal(att_sweep_plan_at(plan, 2).status, "waiting");
    assert_true(exists(f, "tiny/sweep.json"));
    c.stops = NULL;
    c.fails = "none of them";
    assert_int_equal(att_sweep_plan_run(plan, &steps), ATT_OK);
    assert_int_equal(c.trained, 6);
    assert_statuses(plan, "failed");
    assert_string_equal(att_sweep_plan_at(plan, 0).failure, "its records contain no measurement");
    assert_string_equal(att_sweep_plan_at(plan, 2).failure, att_status_meaning(ATT_ERR_UNSUPPORTED));
    att_sweep_plan_close(&plan);
    plan = open_plan(f, &options);
    assert_statuses(plan, "waiting"); /* the folders hold no records of these runs */
    assert_string_equal(att_sweep_plan_at(plan, 0).failure, "");
    att_sweep_plan_close(&plan);
}

/* A training run of a program's own, from the recipe that the step gets; the first one is stopped in its second epoch.
 */
typedef struct own_training {
    att_context *context;
    int calls, first_epoch; /* of the last training */
} own_training;

static bool stop_first(void *user, const att_progress *progress)
{
    own_training *own = user;
    if (own->first_epoch < 0 && strcmp(progress->stage, "train") == 0)
        own->first_epoch = progress->epoch;
    return own->calls > 1 || progress->epoch == 0;
}

static att_status train_own(void *user, const att_planned_run *run, const att_recipe *recipe,
                            char reason[ATT_SWEEP_REASON])
{
    own_training *own = user;
    const att_training_observer observer = {.progress = stop_first, .progress_user = own};
    att_training *training = NULL;
    (void)reason; /* the context's message is the reason */
    own->calls++;
    own->first_epoch = -1;
    att_status status = att_training_open(own->context, recipe, &training);
    if (status == ATT_OK)
        status = att_training_run(training, &observer, NULL);
    if (training)
        assert_string_equal(att_training_folder(training)->folder, run->folder);
    att_training_close(&training);
    return status;
}

FIXTURE_TEST(a_program_trains_with_the_recipe_of_the_step)
{
    char path[160];
    att_sweep_options options = small_sweep(f, path);
    static const char *const epochs[] = {"epochs=2"};
    own_training own = {.context = f->context};
    const att_sweep_steps steps = {.train = train_own, .user = &own};
    options.vary_count = 0;
    options.seed_count = 1;
    options.set = epochs;
    options.set_count = 1;
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, &steps), ATT_ERR_STOPPED);
    assert_string_equal(att_sweep_plan_at(plan, 0).status, "stopped");
    CHECK(f->context, att_sweep_plan_run(plan, &steps));
    assert_statuses(plan, "measured");
    assert_int_equal(own.calls, 2);
    assert_int_equal(own.first_epoch, 1); /* continued */
    att_sweep_plan_close(&plan);
}

typedef struct watched {
    int trained, measured, most; /* batches, and those after which to stop */
} watched;

static bool watch(void *user, const att_progress *progress)
{
    watched *w = user;
    w->trained += strcmp(progress->stage, "train") == 0;
    w->measured += strcmp(progress->stage, "measure") == 0;
    return w->trained + w->measured < w->most;
}

FIXTURE_TEST(progress_is_reported_and_stops)
{
    char path[160];
    att_sweep_options options = small_sweep(f, path);
    watched w = {.most = 1};
    const att_sweep_steps steps = {.progress = watch, .progress_user = &w};
    options.vary_count = 0;
    options.seed_count = 1;
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, &steps), ATT_ERR_STOPPED);
    assert_int_equal(w.trained, 1);
    w.most = 1000;
    assert_int_equal(att_sweep_plan_run(plan, &steps), ATT_OK);
    assert_true(w.trained >= TRAIN_IMAGES / BATCH);
    assert_true(w.measured > 0);
    att_sweep_plan_close(&plan);
}

static bool is_asked_to_stop(void *user)
{
    return *(const bool *)user;
}

FIXTURE_TEST(a_stop_keeps_the_results_of_finished_runs)
{
    char path[160];
    size_t size;
    bool stops = false;
    const att_sweep_options options = small_sweep(f, path);
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.stop = is_asked_to_stop;
    settings.stop_user = &stops;
    att_context *context;
    att_sweep_plan *plan = NULL;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    assert_int_equal(att_sweep_plan_open(context, &options, &plan), ATT_OK);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    char *before = read_all(f, "tiny/sweep.json", &size);
    stops = true;
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_ERR_STOPPED);
    assert_statuses(plan, "measured");
    assert_int_equal(att_sweep_setting_count(att_sweep_plan_results(plan)), 2);
    assert_file_is(f, "tiny/sweep.json", before, size);
    free(before);
    att_sweep_plan_close(&plan);
    att_context_destroy(&context);
}

/* A worker with a context and a plan of its own. */
typedef struct worker {
    const att_sweep_options *options;
    att_context *context;
    att_sweep_plan *plan;
    counted count;
    att_status status;
} worker;

static att_status train_and_count(void *user, const att_planned_run *run, const att_recipe *recipe,
                                  char reason[ATT_SWEEP_REASON])
{
    worker *w = user;
    att_training *training = NULL;
    (void)reason;
    w->count.trained++;
    assert_string_equal(run->status, "running");
    assert_non_null(strchr(run->worker, ':'));
    assert_true(att_sweep_plan_has_claim(w->plan));
    att_status status = att_training_open(w->context, recipe, &training);
    if (status == ATT_OK)
        status = att_training_run(training, NULL, NULL);
    att_training_close(&training);
    return status;
}

static void *work(void *user)
{
    worker *w = user;
    const att_sweep_steps steps = {.train = train_and_count, .user = w};
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    w->status = att_context_create(&settings, &w->context);
    if (w->status == ATT_OK)
        w->status = att_sweep_plan_open(w->context, w->options, &w->plan);
    if (w->status == ATT_OK)
        w->status = att_sweep_plan_run(w->plan, &steps);
    return NULL;
}

FIXTURE_TEST(two_workers_of_a_program_share_a_sweep)
{
    enum { WORKERS = 2 };
    char path[160], name[80];
    size_t size;
    att_sweep_options options = small_sweep(f, path);
    worker workers[WORKERS] = {{.options = &options}, {.options = &options}};
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].status != ATT_OK)
            fail_msg("%s", att_context_message(workers[i].context));
        assert_statuses(workers[i].plan, "measured");
        assert_int_equal(att_sweep_setting_at(att_sweep_plan_results(workers[i].plan), 1).runs, 2);
        assert_false(att_sweep_plan_has_claim(workers[i].plan));
        att_sweep_plan_close(&workers[i].plan);
        att_context_destroy(&workers[i].context);
    }
    assert_int_equal(workers[0].count.trained + workers[1].count.trained, 4);
    assert_false(exists(f, "tiny/.workers"));
    options.experiment = "alone";
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    for (int i = 0; i < att_sweep_plan_count(plan); i++) {
        snprintf(name, sizeof name, "alone/%s/last.safetensors", att_sweep_plan_at(plan, i).name);
        char *expected = read_all(f, name, &size);
        snprintf(name, sizeof name, "tiny/%s/last.safetensors", att_sweep_plan_at(plan, i).name);
        assert_file_is(f, name, expected, size);
        free(expected);
    }
    att_sweep_plan_close(&plan);
}

FIXTURE_TEST(a_lease_out_of_range_is_refused)
{
    static const double leases[] = {-1, NAN, INFINITY, ATT_SWEEP_MOST_LEASE + 1.0};
    char path[160];
    att_sweep_options options = small_sweep(f, path);
    for (int i = 0; i < 4; i++) {
        att_sweep_plan *plan = NULL;
        options.lease = leases[i];
        assert_fails(f->context, att_sweep_plan_open(f->context, &options, &plan), ATT_ERR_ARGUMENT,
                     "the lease of a sweep is ");
        assert_null(plan);
    }
    assert_int_equal(att_sweep_guard_step(f->context, NULL), ATT_ERR_ARGUMENT);
}

/* Opens a sweep of one run, which has the status `expected`, and runs it if it is measured. Repeats this, each time
 * with another allocation failing, until none fails. */
static void let_allocations_fail(att_context *context, failing *memory, const att_sweep_options *options,
                                 const char *expected)
{
    for (long allowed = 0; memory->left < 0; allowed++) {
        att_sweep_plan *plan = NULL;
        memory->left = allowed;
        att_status status = att_sweep_plan_open(context, options, &plan);
        if (status == ATT_OK) {
            assert_int_equal(att_sweep_plan_count(plan), 1);
            assert_statuses(plan, expected);
        }
        if (status == ATT_OK && strcmp(expected, "measured") == 0) {
            status = att_sweep_plan_run(plan, NULL);
            assert_statuses(plan, expected);
        }
        att_sweep_plan_close(&plan);
        assert_int_equal(status, memory->left < 0 ? ATT_ERR_MEMORY : ATT_OK);
    }
}

FIXTURE_TEST(lack_of_memory_keeps_the_results_of_finished_runs)
{
    char path[160];
    size_t size;
    static const char *const modules[] = {"modules=cb_s,cb_s@after_mlp"}; /* both mean the same */
    att_sweep_options options = small_sweep(f, path);
    options.vary = modules;
    options.seed_count = 1;
    failing memory = {.recovers = true}; /* so that a failure that is not reported is not hidden by the next one */
    const att_settings settings = failing_settings(&memory);
    att_context *context;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    let_allocations_fail(context, &memory, &options, "waiting");
    att_sweep_plan *plan = open_plan(f, &options);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    att_sweep_plan_close(&plan);
    char *before = read_all(f, "tiny/sweep.json", &size);
    memory.left = -1;
    let_allocations_fail(context, &memory, &options, "measured");
    assert_file_is(f, "tiny/sweep.json", before, size);
    free(before);
    att_context_destroy(&context);
}

static int count_runs(fixture *f, const char *vary)
{
    char path[160];
    const char *const modules[] = {vary};
    att_sweep_options options = small_sweep(f, path);
    options.vary = modules;
    options.seed_count = 1;
    att_sweep_plan *plan = open_plan(f, &options);
    const int count = att_sweep_plan_count(plan);
    att_sweep_plan_close(&plan);
    return count;
}

/* Places are compared by the parameters of the module, which cb has with start=identity only. */
FIXTURE_TEST(equal_places_run_once)
{
    assert_int_equal(count_runs(f, "modules=cb_s,cb_s@after_mlp"), 1);
    assert_int_equal(count_runs(f, "modules=cb_s,cb_s@after_mlp:0"), 2);
    assert_int_equal(count_runs(f, "modules=cb,cb@after_mlp:0"), 2);
    assert_int_equal(count_runs(f, "modules=cb:start=identity,cb:start=identity@after_mlp"), 1);
    assert_int_equal(count_runs(f, "modules=cb:start=identity,cb:start=identity@after_mlp:0"), 2);
}

FIXTURE_TEST(the_list_of_instruments_has_no_limit)
{
    enum { COUNT = 40 };
    static att_instrument own[COUNT]; /* copies of a built-in one with other names */
    static char names[COUNT][32], list[COUNT * 32];
    char path[160];
    att_sweep_options options = small_sweep(f, path);
    size_t before = att_context_allocations(f->context).bytes_now;
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "own_entropy_number_%d", i);
        own[i] = att_instrument_entropy;
        own[i].info.name = names[i];
        assert_int_equal(att_instrument_register(f->context, &own[i]), ATT_OK);
        strcat(strcat(list, i > 0 ? "," : ""), names[i]);
    }
    f->bytes_at_first += att_context_allocations(f->context).bytes_now - before;
    options.measure = list;
    options.vary_count = 0;
    options.seed_count = 1;
    att_sweep_plan *plan = open_plan(f, &options);
    assert_string_equal(att_sweep_plan_at(plan, 0).measure, list);
    assert_int_equal(att_sweep_plan_run(plan, NULL), ATT_OK);
    assert_statuses(plan, "measured");
    for (int i = 0; i < COUNT; i++)
        assert_true(att_sweep_figure_find(att_sweep_plan_results(plan), 0, names[i], "blocks.0.attn", "mean").mean > 0);
    att_sweep_plan_close(&plan);
}

FIXTURE_TEST(runs_outside_the_plan_are_empty)
{
    char path[160];
    const att_sweep_options options = small_sweep(f, path);
    att_sweep_plan *plan = open_plan(f, &options);
    const int outside[] = {-1, att_sweep_plan_count(plan), INT32_MAX};
    for (int i = 0; i < 3; i++) {
        assert_null(att_sweep_plan_at(plan, outside[i]).name);
        assert_null(att_sweep_plan_at(plan, outside[i]).status);
    }
    att_sweep_plan_close(&plan);
    att_sweep *none;
    assert_int_equal(att_sweep_read(f->context, NULL, 0, NULL, 0, 0, &none), ATT_OK);
    assert_null(att_sweep_setting_at(none, 0).name);
    assert_int_equal(att_sweep_figure_at(none, 0, -1).count, 0);
    assert_int_equal(att_sweep_figure_find(none, 0, "entropy", NULL, "mean").count, 0);
    assert_int_equal(att_sweep_correlation_at(none, 0).runs.count, 0);
    att_sweep_destroy(&none);
}

FIXTURE_TEST(null_is_refused)
{
    char path[160];
    const att_sweep_options good = small_sweep(f, path);
    static const char *const none[] = {NULL};
    static const att_sweep_pair half[] = {{"tns/tns unit", NULL}};
    att_sweep_options wrong[8];
    for (int i = 0; i < 8; i++)
        wrong[i] = good;
    wrong[0].recipe = NULL;
    wrong[1].output = NULL;
    wrong[2].seeds = NULL;
    wrong[3].vary = NULL;
    wrong[4].vary = none;
    wrong[5].pair_count = 1;
    wrong[6].pairs = half;
    wrong[6].pair_count = 1;
    wrong[7].output = "";
    att_sweep_plan *plan = NULL;
    for (int i = 0; i < 8; i++) {
        assert_fails(f->context, att_sweep_plan_open(f->context, &wrong[i], &plan), ATT_ERR_ARGUMENT,
                     " of a sweep is missing: the pointer is NULL");
    }
    assert_int_equal(att_sweep_plan_open(f->context, NULL, &plan), ATT_ERR_ARGUMENT);
    assert_null(plan);
    att_sweep_plan_close(NULL);
    att_sweep *sweep;
    att_run_state found;
    const att_sweep_run nameless = {.setting = "s"};
    assert_int_equal(att_sweep_read(f->context, NULL, 1, NULL, 0, 0, &sweep), ATT_ERR_ARGUMENT);
    assert_int_equal(att_sweep_read(f->context, &nameless, 1, NULL, 0, 0, &sweep), ATT_ERR_ARGUMENT);
    assert_int_equal(att_sweep_read(f->context, NULL, 0, NULL, 1, 0, &sweep), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_state_read(f->context, NULL, NULL, &found), ATT_ERR_ARGUMENT);
}

FIXTURE_TEST(wrong_sweeps_are_refused_before_the_first_run)
{
    char path[160];
    const att_sweep_options good = small_sweep(f, path);
    static const char *const value[] = {"depth=1,0"}, *const flag[] = {"detph=1"}, *const ours[] = {"seed=1"},
                             *const twice[] = {"lr=1,1"}, *const decays[] = {"weight-decay=0.1", "weight_decay=0.3"},
                             *const rates[] = {"dr=0.1", "decay_rate=0.2"}, *const rate[] = {"--lr=1"};
    static const uint64_t same[] = {3, 3};
    att_sweep_options wrong[15];
    for (int i = 0; i < 15; i++)
        wrong[i] = good;
    wrong[0].vary = value;
    wrong[1].vary = flag;
    wrong[2].vary = ours;
    wrong[3].vary = twice;
    wrong[4].seeds = same;
    wrong[5].measure = "gate";
    wrong[6].measure = "entropie";
    wrong[7].data = "";
    wrong[8].vary_count = -1;
    wrong[9].set_count = -1;
    wrong[10].pair_count = -1;
    wrong[11].vary = wrong[12].set = decays;
    wrong[11].vary_count = wrong[12].set_count = 2;
    wrong[13].vary = rates;
    wrong[13].vary_count = 2;
    wrong[14].set = rate;
    wrong[14].set_count = 1;
    static const char *const parts[] = {"--depth: \"0\" is not",
                                        "did you mean --depth",
                                        "a sweep sets --seed",
                                        "share the folder",
                                        "3 is named twice",
                                        "has nothing to observe",
                                        "did you mean",
                                        "DATA of a sweep is an empty text",
                                        "vary_count of a sweep is -1",
                                        "set_count of a sweep is -1",
                                        "pair_count of a sweep is -1",
                                        "weight_decay is varied twice",
                                        "weight_decay is set twice",
                                        "decay_rate is varied twice",
                                        "lr is also varied"};
    for (int i = 0; i < 15; i++) {
        att_sweep_plan *plan = NULL;
        assert_int_equal(att_sweep_plan_open(f->context, &wrong[i], &plan), ATT_ERR_ARGUMENT);
        assert_null(plan);
        assert_message_has(f, parts[i]);
    }
    assert_false(exists(f, "tiny"));
}
