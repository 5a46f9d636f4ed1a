/* Training and evaluation by several processes, here threads: the same files and figures as by one. */
#include "study/train/fixture.h"

#include "base/comm/threads.h"
#include "base/core/error.h"
#include "study/train/inference.h"
#include "test.h"

/* What one process does. */
typedef struct process {
    const fixture *fixture;
    const char *network;
    bool has_tokens;
    int side; /* of images of a network without tokens */
    att_train_options options;
    const char *distillation; /* from a residual network; NULL: there is no teacher */
    att_status expected;
    int stops_at; /* call of progress that stops the training; 0: none */
    int calls;
    int events;
    char message[512];
    att_train_result result;
    att_evaluation alone; /* of the weights after a training run, by this process */
} process;

/* What a process opens, closed together. */
typedef struct opened {
    att_dataset *train, *eval;
    att_model *model, *teacher;
    att_weights *weights, *teacher_weights;
} opened;

static bool count_calls(void *user, const att_progress *progress)
{
    process *p = user;
    (void)progress;
    return ++p->calls != p->stops_at;
}

static att_status count_events(void *user, const att_event *event)
{
    process *p = user;
    (void)event;
    p->events++;
    return ATT_OK;
}

static att_option_values options_of(const process *p)
{
    att_option_values options = att_options_none();
    if (p->has_tokens) {
        options = tiny_options();
        att_options_set(&options, "drop_rate", 0.1);
        att_options_set(&options, "drop_path_rate", 0.1);
    } else {
        att_options_set(&options, "in_chans", 1);
        att_options_set(&options, "num_classes", CLASSES);
        att_options_set(&options, "img_size", p->side);
    }
    return options;
}

static att_status open_teacher(att_context *context, const process *p, opened *all)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "img_size", SIDE);
    if (!p->distillation)
        return ATT_OK;
    ATT_TRY(att_model_create(context, "resnet20", &options, ATT_F32, &all->teacher));
    ATT_TRY(att_weights_create(att_model_graph(all->teacher), "cpu", &all->teacher_weights));
    return att_weights_initialise(all->teacher_weights, 2);
}

static att_status open_all(att_context *context, const process *p, opened *all)
{
    att_dataset_options data = att_dataset_options_defaults();
    att_option_values options = options_of(p);
    data.split = "train";
    ATT_TRY(att_dataset_open(context, p->fixture->folder, &data, &all->train));
    data.split = "val";
    ATT_TRY(att_dataset_open(context, p->fixture->folder, &data, &all->eval));
    ATT_TRY(att_model_create(context, p->network, &options, ATT_F32, &all->model));
    ATT_TRY(att_weights_create(att_model_graph(all->model), "cpu", &all->weights));
    ATT_TRY(open_teacher(context, p, all));
    return att_weights_initialise(all->weights, 1);
}

static void close_all(opened *all)
{
    att_weights_destroy(&all->teacher_weights);
    att_model_destroy(&all->teacher);
    att_weights_destroy(&all->weights);
    att_model_destroy(&all->model);
    att_dataset_close(&all->eval);
    att_dataset_close(&all->train);
}

static const char *train_rank(att_context *context, att_comm *comm, void *user)
{
    process *p = user;
    opened all = {0};
    att_train_options options = p->options;
    const att_sink sink = {.emit = count_events, .user = p};
    options.sinks = &sink;
    options.sink_count = 1;
    options.comm = comm;
    options.progress = count_calls;
    options.progress_user = p;
    att_status status = open_all(context, p, &all);
    if (status == ATT_OK) {
        att_transform_options train = p->fixture->train_transform, eval = p->fixture->eval_transform;
        train.height = train.width = eval.height = eval.width = p->has_tokens ? SIDE : p->side;
        const att_train_data data = {all.train, all.eval, &train, &eval};
        const att_teacher teacher = {.model = all.teacher, .weights = all.teacher_weights};
        att_option_values loss = att_options_none();
        if (p->distillation) {
            att_options_set_text(&loss, "distillation_type", p->distillation);
            options.task_options = &loss;
            options.teacher = &teacher;
        }
        status = att_train(all.model, all.weights, &data, &options, &p->result);
        if (status == ATT_OK)
            status = att_evaluate(all.model, all.weights, all.eval, data.eval_transform, NULL, &p->alone);
    }
    snprintf(p->message, sizeof p->message, "%s", att_context_message(context));
    close_all(&all);
    return status == p->expected ? NULL : status == ATT_OK ? "the training succeeded" : p->message;
}

/* Runs the same in `count` processes of `threads` threads. */
static process run_all(const process *same, int count, int threads)
{
    process ranks[MOST_RANKS];
    for (int i = 0; i < count; i++)
        ranks[i] = *same;
    run_ranks(count, threads, train_rank, ranks, sizeof *ranks);
    return ranks[count - 1];
}

static process process_of(const fixture *f, const char *folder, char output[160])
{
    process p = {.fixture = f, .network = "vit_tiny_patch16_224", .has_tokens = true, .options = small_training()};
    p.options.grad_accum_steps = 2; /* five batches are three updates */
    p.options.lanes = 4;
    p.options.checkpoint_hist = 1;
    p.options.checkpoint_every_updates = 1;
    p.options.output = path_in(f, folder, output);
    return p;
}

/* One process with two threads, two with two, four with one. */
static void assert_same_files(const fixture *f, process p)
{
    char output[160];
    p.options.output = path_in(f, "one", output);
    run_all(&p, 1, 2);
    p.options.output = path_in(f, "two", output);
    run_all(&p, 2, 2);
    p.options.output = path_in(f, "four", output);
    run_all(&p, 4, 1);
    assert_same_run(f, "one", "two");
    assert_same_run(f, "one", "four");
}

FIXTURE_TEST(files_do_not_depend_on_the_number_of_processes)
{
    char output[160];
    assert_same_files(f, process_of(f, "one", output));
}

FIXTURE_TEST(mixed_images_and_repeats_do_not_either)
{
    char output[160];
    process p = process_of(f, "one", output);
    p.options.mixup = 0.8;
    p.options.cutmix = 1;
    p.options.mixup_mode = "elem";
    p.options.mixup_off_epoch = 1;
    p.options.aug_repeats = 2;
    f->train_transform.erase = 0.5;
    f->train_transform.erase_mode = ATT_ERASE_PIXEL;
    f->train_transform.rand_augment = (att_rand_augment){2, 9, 0.5, 10, 0.5, true};
    p.options.precision = ATT_MIXED;
    assert_same_files(f, p);
}

FIXTURE_TEST(evaluations_within_epochs_do_not_either)
{
    char output[160];
    process p = process_of(f, "one", output);
    p.options.updates = 7;
    p.options.eval_every = 2;
    assert_same_files(f, p);
}

/* The teacher normalises images in its own way. */
FIXTURE_TEST(answers_of_a_teacher_do_not_either)
{
    char output[160];
    process p = process_of(f, "one", output);
    f->train_transform.std[0] = 0.4;
    p.options.mixup = 0.8;
    p.distillation = "hard";
    assert_same_files(f, p);
    p.distillation = "soft";
    p.options.precision = ATT_MIXED;
    assert_same_files(f, p);
}

/* Two lanes: rank 0 has one thread for its lane, and rank 1 must not share its lane between two. */
FIXTURE_TEST(processes_may_have_different_numbers_of_threads)
{
    char output[160];
    process p = process_of(f, "one", output);
    p.options.lanes = 2;
    run_all(&p, 1, 2);
    p.options.lanes = 0;
    p.options.output = path_in(f, "two", output);
    run_all(&p, 2, 0);
    assert_same_run(f, "one", "two");
}

static process residual(const fixture *f, const char *folder, char output[160])
{
    process p = process_of(f, folder, output);
    p.network = "resnet20";
    p.has_tokens = false;
    p.side = SIDE;
    return p;
}

FIXTURE_TEST(batch_norm_does_not_if_its_statistics_are_shared)
{
    char output[160];
    process p = residual(f, "one", output);
    p.options.sync_bn = true;
    assert_same_files(f, p);
}

/* Values of the frozen part are computed once for each image, by each process that gets it. Frozen batch norm takes no
 * statistics. */
FIXTURE_TEST(frozen_parts_do_not_either)
{
    char output[160];
    process p = process_of(f, "one", output);
    f->train_transform.crop = ATT_CROP_CENTER;
    f->train_transform.flip = 0.5;
    p.options.epochs = 3;
    p.options.freeze = "patch_embed.*,cls_token,pos_embed,blocks.0.*";
    assert_same_files(f, p);
    p = residual(f, "one", output);
    p.options.freeze = "conv1.*,bn1.*,layer?.*";
    assert_same_files(f, p);
}

/* Otherwise results depend on the number of processes, but all processes have the same, and evaluate with the
 * statistics of rank 0, which the checkpoint has. Only rank 0 sends events. */
FIXTURE_TEST(statistics_of_each_process_give_other_results)
{
    char output[160];
    process p = residual(f, "one", output), ranks[2];
    p.options.model_ema = false;
    run_all(&p, 1, 2);
    p.options.output = path_in(f, "two", output);
    ranks[0] = ranks[1] = p;
    run_ranks(2, 2, train_rank, ranks, sizeof *ranks);
    assert_memory_equal(ranks[0].result.eval, ranks[1].result.eval, sizeof ranks[0].result.eval);
    assert_memory_equal(&ranks[0].result.train_loss, &ranks[1].result.train_loss, sizeof(double));
    for (int i = 0; i < 2; i++)
        assert_memory_equal(ranks[i].alone.metrics, ranks[0].result.eval, sizeof ranks[0].result.eval);
    assert_true(ranks[0].events > 0);
    assert_int_equal(ranks[1].events, 0);
    size_t one, two;
    char *a = read_all(f, "one/last.safetensors", &one), *b = read_all(f, "two/last.safetensors", &two);
    assert_int_equal(one, two);
    assert_memory_not_equal(a, b, one);
    free(a);
    free(b);
}

/* Calls of progress: five batches, two evaluations of two batches, twice. */
enum { CALLS = 2 * (5 + 2 * 2) };

/* Only the last process is asked to stop. */
FIXTURE_TEST(one_process_stops_all_and_others_resume)
{
    char output[160], last[160];
    process p = process_of(f, "whole", output);
    run_all(&p, 1, 2);
    for (int stop = 1; stop < CALLS; stop += 4) {
        char name[32], last_name[64];
        snprintf(name, sizeof name, "stopped-%d", stop);
        snprintf(last_name, sizeof last_name, "%s/last.safetensors", name);
        process ranks[MOST_RANKS];
        p.options.output = path_in(f, name, output);
        p.options.resume = NULL;
        p.expected = ATT_ERR_STOPPED;
        for (int i = 0; i < 4; i++)
            ranks[i] = p;
        ranks[3].stops_at = stop;
        run_ranks(4, 1, train_rank, ranks, sizeof *ranks);
        for (int i = 0; i < 4; i++)
            assert_non_null(strstr(ranks[i].message, last_name));
        p.options.resume = path_in(f, last_name, last);
        p.expected = ATT_OK;
        p.options.lanes = 0; /* the checkpoint's */
        run_all(&p, stop % 8 == 1 ? 2 : 1, 2);
        assert_same_run(f, "whole", name);
        p.options.lanes = 4;
    }
}

FIXTURE_TEST(other_settings_are_refused)
{
    char output[160];
    process ranks[2] = {process_of(f, "one", output), process_of(f, "one", output)};
    ranks[0].expected = ranks[1].expected = ATT_ERR_MISMATCH;
    ranks[1].options.lr = 2e-3;
    run_ranks(2, 1, train_rank, ranks, sizeof *ranks);
    for (int i = 0; i < 2; i++)
        if (!strstr(ranks[i].message, "the processes differ in option.lr: it is \"0.001\" for rank 0 on ") ||
            !strstr(ranks[i].message, "and \"0.002\" for rank 1 on "))
            fail_msg("rank %d: %s", i, ranks[i].message);
    ranks[1] = residual(f, "one", output);
    ranks[1].expected = ATT_ERR_MISMATCH;
    run_ranks(2, 1, train_rank, ranks, sizeof *ranks);
    assert_non_null(strstr(ranks[0].message, "the processes differ in the network: "));
    assert_false(exists(f, "one/last.safetensors"));
}

FIXTURE_TEST(numbers_that_cannot_be_shared_are_refused)
{
    char output[160];
    process p = process_of(f, "one", output);
    p.expected = ATT_ERR_ARGUMENT;
    p.options.lanes = 3;
    assert_non_null(strstr(run_all(&p, 2, 1).message, "3 lanes cannot be shared equally by 2 processes"));
    p.options.lanes = 0;
    p.options.batch_size = 2;
    assert_non_null(strstr(run_all(&p, 4, 1).message, "every one of the 4 processes needs at least one image"));
    p = residual(f, "one", output);
    p.network = "resnet18"; /* at the end, images of 32 x 32 have one value per channel */
    p.side = 32;
    p.expected = ATT_ERR_ARGUMENT;
    p.options.batch_size = 4;
    p = run_all(&p, 4, 1);
    if (!strstr(p.message, "so one image for each process"))
        fail_msg("%s", p.message);
}

/* All processes name the node that the one found which has the image. */
FIXTURE_TEST(every_process_names_the_first_value_that_is_not_finite)
{
    char output[160];
    process p = process_of(f, "one", output), ranks[2];
    p.options.clip_grad = 0;
    p.options.optimizer = "sgd";
    p.options.warmup_epochs = 0;
    p.options.lr = p.options.weight_decay = 1e3;
    p.expected = ATT_ERR_NONFINITE;
    ranks[0] = ranks[1] = p;
    run_ranks(2, 1, train_rank, ranks, sizeof *ranks);
    assert_string_equal(ranks[0].message, ranks[1].message);
    assert_non_null(strstr(ranks[0].message, "NaN or infinity, first in "));
}

/* --- evaluation -------------------------------------------------------------------------------------------------- */

enum { MOST_FIGURES = 256 };

typedef struct observer {
    const fixture *fixture;
    att_evaluation evaluation;
    double figures[MOST_FIGURES];
    int count;
} observer;

static att_status observe(att_context *context, att_comm *comm, const opened *all, observer *o)
{
    att_evaluate_options options = att_evaluate_options_defaults();
    att_measure *measure = NULL;
    ATT_TRY(att_measure_create(att_model_graph(all->model), "all", "*", &measure));
    options.batch_size = 3; /* the last batch has one image, so some processes have none */
    options.fgsm = 0.05;
    options.comm = comm;
    options.measure = measure;
    att_status status =
        att_evaluate(all->model, all->weights, all->eval, &o->fixture->eval_transform, &options, &o->evaluation);
    int count = 0;
    const att_measurement *figures = status == ATT_OK ? att_measure_observed(measure, &count) : NULL;
    o->count = 0;
    for (int i = 0; i < count && o->count + 2 <= MOST_FIGURES; i++) {
        o->figures[o->count++] = figures[i].mean;
        o->figures[o->count++] = figures[i].deviation;
    }
    att_measure_destroy(&measure);
    (void)context;
    return status;
}

static const char *evaluate_rank(att_context *context, att_comm *comm, void *user)
{
    observer *o = user;
    opened all = {0};
    const process p = {.fixture = o->fixture, .network = "vit_tiny_patch16_224", .has_tokens = true};
    att_status status = open_all(context, &p, &all);
    if (status == ATT_OK)
        status = observe(context, comm, &all, o);
    close_all(&all);
    return status == ATT_OK ? NULL : att_context_message(context);
}

FIXTURE_TEST(figures_are_those_of_one_process)
{
    observer one = {.fixture = f}, ranks[MOST_RANKS];
    run_ranks(1, 2, evaluate_rank, &one, sizeof one);
    assert_int_equal(one.evaluation.count, EVAL_IMAGES);
    assert_in_range(one.count, 8, MOST_FIGURES);
    for (int count = 2; count <= MOST_RANKS; count *= 2) {
        for (int i = 0; i < count; i++)
            ranks[i] = one;
        run_ranks(count, 1, evaluate_rank, ranks, sizeof *ranks);
        for (int i = 0; i < count; i++) {
            assert_int_equal(ranks[i].evaluation.count, EVAL_IMAGES);
            assert_memory_equal(ranks[i].evaluation.metrics, one.evaluation.metrics, sizeof one.evaluation.metrics);
            assert_memory_equal(ranks[i].figures, one.figures, (size_t)one.count * sizeof *one.figures);
        }
    }
}

/* With AVX2, the rounding of oneDNN's products depends on the number of their rows, and so on how many images of a
 * batch a process evaluates. Other tiers give the same bits. */
static void avoid_avx2(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512vl"))
        setenv("ATTSCOPE_CPU", "baseline", 1);
#endif
}

int main(void)
{
    avoid_avx2();
    return test_run("processes");
}
