/* attscope train: trains a network on images, or resumes a training run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/file.h>
#include <attscope/lab/bench.h>
#include <attscope/lab/runs.h>

#include "cli.h"
#include "flags.h"
#include "metrics.h"
#include "paths.h"
#include "processes.h"
#include "progress.h"

typedef struct train_settings {
    att_recipe recipe;
    const char *config; /* NULL if not given */
    cli_processes processes;
    cli_output output;
} train_settings;

typedef struct job {
    cli_app *cli;
    train_settings *settings;
    att_training *training;
    const att_recipe *recipe; /* owned by `training` */
    const att_run_folder *run;
    bool has_begun;  /* the begin event has been received */
    int64_t updates; /* of the whole training, by the begin event */
    att_train_result result;
} job;

/* --- output ------------------------------------------------------------------------------------------------------- */

static double field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0 && !event->fields[i].text)
            return event->fields[i].number;
    return NAN;
}

/* The number in a text of the event; 0 if there is none. */
static int64_t whole_field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0 && event->fields[i].text)
            return strtoll(event->fields[i].text, NULL, 10);
    return 0;
}

/* Whether the training, or its evaluations, are counted in updates, not in epochs. */
static bool counts_updates(const job *j)
{
    return j->recipe->train.updates > 0 || j->recipe->train.eval_every > 0;
}

/* Says which weights were evaluated, unless they are the plain ones. */
static const char *evaluated_weights(const job *j)
{
    return j->recipe->train.model_ema ? " of the averaged weights" : "";
}

/* Writes "  eval loss 0.1234  top-1 97.00 %"; "" if nothing was evaluated. */
static void describe_evaluation(const job *j, const att_event *event, char *text, size_t size)
{
    const att_task_info task = att_model_task(att_training_model(j->training));
    char figure[64], name[64];
    size_t length = 0;
    *text = '\0';
    for (int i = 0; i < task.metric_count; i++) {
        snprintf(name, sizeof name, "eval_%s", task.metrics[i].name);
        double value = field(event, name);
        if (!isfinite(value))
            return;
        cli_metric_format(&task.metrics[i], value, figure, sizeof figure);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? "  " : "  eval ", figure);
        if (length >= size)
            return;
    }
    snprintf(text + length, size - length, "%s", evaluated_weights(j));
}

/* Writes the shares of time that are not the network's own: "3 % waiting for data, 20 % the teacher". */
static void describe_shares(double wait, double teacher, const char *of_time, char *text, size_t size)
{
    const size_t length = (size_t)snprintf(text, size, "%.0f %% %swaiting for data", 100 * wait, of_time);
    if (isfinite(teacher) && length < size)
        snprintf(text + length, size - length, ", %.0f %% the teacher", 100 * teacher);
}

static void print_evaluation(job *j, const att_event *event)
{
    char evaluated[512], shares[96];
    const bool updates = counts_updates(j);
    describe_evaluation(j, event, evaluated, sizeof evaluated);
    describe_shares(field(event, "wait_share"), field(event, "teacher_share"), "", shares, sizeof shares);
    cli_note(j->cli, "%s %lld/%lld  loss %.4f%s  lr %.3g  %s", updates ? "update" : "epoch",
             (long long)(updates ? event->step : event->epoch + 1),
             (long long)(updates ? j->updates : j->recipe->train.epochs), field(event, "train_loss"), evaluated,
             field(event, "lr"), shares);
}

/* Prints where a resumed training continues. */
static void print_resume(const job *j, const att_event *begin)
{
    const bool updates = j->recipe->train.updates > 0;
    const int64_t length = updates ? j->updates : j->recipe->train.epochs;
    if (*j->run->resume && begin->step == j->updates && !(field(begin, "unevaluated") > 0))
        cli_note(j->cli,
                 "%s: its training of %lld %s%s is complete, so there is nothing left to train; "
                 "--initial-checkpoint starts a new training from its weights",
                 j->run->resume, (long long)length, updates ? "update" : "epoch", cli_plural(length));
    else if (begin->step > 0)
        cli_note(j->cli, "%s: resumes in epoch %lld after %lld updates", j->run->resume, (long long)begin->epoch + 1,
                 (long long)begin->step);
}

/* Prints the learning rates of the layers, if they differ, and how many parameters are frozen, if any. */
static void print_rates(const job *j, const att_event *begin)
{
    double layers = field(begin, "lr_layers"), frozen = field(begin, "frozen_parameters");
    if (layers > 0)
        cli_note(j->cli, "--layer-decay %g: learning rates of %.0f layers, from %.4g to 1 (head) of --lr",
                 j->recipe->train.layer_decay, layers, field(begin, "lr_scale_min"));
    if (frozen > 0)
        cli_note(j->cli, "%.0f parameter tensors are frozen (%s)", frozen,
                 !(j->recipe->train.layer_decay_no_opt_scale > 0) ? "--freeze"
                 : j->recipe->train.freeze                        ? "--freeze, --layer-decay-no-opt-scale"
                                                                  : "--layer-decay-no-opt-scale");
}

static att_status on_event(void *user, const att_event *event)
{
    job *j = user;
    if (event->kind == ATT_EVENT_RUN_BEGIN) {
        j->has_begun = true;
        j->updates = whole_field(event, "updates");
        print_resume(j, event);
        print_rates(j, event);
    }
    if (event->kind == ATT_EVENT_EPOCH)
        print_evaluation(j, event);
    return ATT_OK;
}

static void print_result(const job *j, const att_train_result *r)
{
    cli_print("%s: %d epoch%s, %lld update%s\n", j->recipe->network.model, r->epochs, cli_plural(r->epochs),
              (long long)r->updates, cli_plural(r->updates));
    if (isfinite(r->train_loss))
        cli_print("training loss %.4f\n", r->train_loss);
    const att_task_info task = att_model_task(att_training_model(j->training));
    if (isfinite(r->eval[task.best])) {
        cli_metrics_print(&task, r->eval);
        cli_print("%s\n", evaluated_weights(j));
    }
    if (r->best_epoch >= 0)
        cli_print("best %s %.4g %s %lld%s\n", j->recipe->train.eval_metric, r->best_metric,
                  counts_updates(j) ? "after update" : "in epoch",
                  (long long)(counts_updates(j) ? r->best_update : r->best_epoch + 1), evaluated_weights(j));
    cli_print("%s\n", j->run->folder);
}

static void write_result(att_json_writer *w, const void *from)
{
    const job *j = from;
    const att_train_result *r = &j->result;
    const att_task_info task = att_model_task(att_training_model(j->training));
    att_json_put_string(w, "model", j->recipe->network.model);
    att_json_put_string(w, "folder", j->run->folder);
    att_json_put_integer(w, "epochs", r->epochs);
    att_json_put_integer(w, "updates", r->updates);
    att_json_put_number(w, "train_loss", r->train_loss);
    cli_metrics_json(w, &task, "eval_", r->eval);
    att_json_put_number(w, "best_metric", r->best_metric);
    att_json_put_integer(w, "best_epoch", r->best_epoch);
    att_json_put_integer(w, "best_update", r->best_update);
    att_json_put_number(w, "train_samples_per_sec", r->images_per_second);
    att_json_put_number(w, "wait_share", r->wait_share);
    if (isfinite(r->teacher_share))
        att_json_put_number(w, "teacher_share", r->teacher_share);
    att_json_put_integer(w, "train_corrupt", r->train_corrupt);
    att_json_put_integer(w, "eval_corrupt", r->eval_corrupt);
}

/* Writes the speed of the network without a data set. It is measured, with a handful of batches, only for one process,
 * and if this takes at most a twentieth of the training; otherwise writes "". */
static void measure_network_alone(const job *j, const att_train_result *result, char *text, size_t size)
{
    const att_recipe *recipe = j->recipe;
    att_bench_options options = att_bench_options_defaults();
    options.model = recipe->network.model;
    options.network = &recipe->network.options;
    options.training = true;
    options.backend = recipe->engine.backend;
    options.precision = att_recipe_precision(&recipe->engine);
    options.batch_size = recipe->train.batch_size;
    options.repeats = 3;
    options.warmup = 1;
    att_bench_result alone;
    *text = '\0';
    bool worth = att_comm_size(j->cli->comm) == 1 &&
                 (double)result->updates * recipe->train.grad_accum_steps > 20 * (options.repeats + options.warmup);
    if (worth && att_bench_run(j->cli->context, &options, &alone) == ATT_OK)
        snprintf(text, size, " (%.1f by attscope bench, without a data set)", alone.images_per_second);
}

/* Advises if the network waited for images, unless the training was so short that its start was most of it. */
static void advise_on_waiting(const job *j, const att_train_result *result)
{
    const double noticeable = 0.05, short_seconds = 10;
    enum { SMALL_SIDE = 64 }; /* decoding images for such networks is rarely what takes long */
    const double images = (double)result->updates * j->recipe->train.batch_size * j->recipe->train.grad_accum_steps;
    const att_preprocess taken = att_model_preprocess(att_training_model(j->training));
    int workers = j->recipe->train.workers, processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (result->wait_share < noticeable || images < short_seconds * result->images_per_second)
        return;
    if (workers < processors)
        cli_note(j->cli, "the network waited for images: --workers %d would decode them on more threads", processors);
    else if (taken.height >= SMALL_SIDE)
        cli_note(j->cli,
                 "the network waited for images, which %d threads (--workers) decode on %d processors: smaller image "
                 "files would be decoded faster",
                 workers, processors);
}

/* Reports how many images were replaced or skipped. */
static void report_corrupt(const job *j, const att_train_result *result)
{
    if (result->train_corrupt + result->eval_corrupt > 0)
        cli_note(j->cli, "images that cannot be decoded: %lld replaced per epoch, %lld skipped in the evaluation",
                 (long long)result->train_corrupt, (long long)result->eval_corrupt);
}

static int finish(const job *j, att_status status)
{
    const train_settings *s = j->settings;
    const att_train_result *result = &j->result;
    cli_bar_clear(j->cli);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped after %lld update%s; resume with: attscope train --resume %s/last.safetensors",
                (long long)result->updates, cli_plural(result->updates), j->run->folder);
        return CLI_STOPPED;
    }
    int code = cli_check(j->cli, status);
    if (status == ATT_ERR_NONFINITE)
        cli_note(j->cli, "a training run that diverges may need a lower --lr, or --clip-grad");
    if (j->has_begun && !j->recipe->train.skip_corrupt && (status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED))
        cli_note(j->cli, "--skip-corrupt skips such images");
    if (code != CLI_OK)
        return code;
    if (result->images_per_second > 0) {
        char alone[96], shares[96];
        measure_network_alone(j, result, alone, sizeof alone);
        describe_shares(result->wait_share, result->teacher_share, "of the time ", shares, sizeof shares);
        cli_note(j->cli, "%.1f images/s%s, %s", result->images_per_second, alone, shares);
        advise_on_waiting(j, result);
    }
    report_corrupt(j, result);
    if (cli_prints(s->output.json))
        print_result(j, result);
    return cli_json_save(j->cli, s->output.json, write_result, j);
}

static int train(job *j)
{
    int64_t batches = j->recipe->train.grad_accum_steps;
    cli_progress progress = cli_progress_to(j->cli, batches, j->recipe->train.log_interval * batches);
    progress.in_updates = j->recipe->train.updates > 0;
    const att_sink sink = {.emit = on_event, .user = j};
    const att_training_observer observer = {.sink = &sink, .progress = cli_progress_show, .progress_user = &progress};
    return finish(j, att_training_run(j->training, &observer, &j->result));
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static att_run_place place_of(const att_recipe_files *files)
{
    return (att_run_place){.output = files->output, .experiment = files->experiment, .resume = files->resume};
}

/* Reports that neither the command line nor the resumed training names a data set. */
static int fail_without_data(cli_app *cli, const att_recipe_files *files)
{
    const att_run_place place = place_of(files);
    char resume[CLI_PATH];
    int code = cli_check(cli, att_run_find_resume(cli->context, &place, resume, sizeof resume));
    if (code != CLI_OK)
        return code;
    if (!*resume)
        return cli_usage("train needs DATA; see attscope train --help");
    if (!cli_exists(resume))
        return cli_failure("%s does not exist", resume);
    return cli_usage("train needs DATA: no args.yaml beside %s names it", resume);
}

/* If a resumed training's data set is missing: says that args.yaml names it, and how to give another path. */
static void advise_on_data(cli_app *cli, const att_recipe *recipe)
{
    const att_run_place place = place_of(&recipe->files);
    char resume[CLI_PATH], folder[CLI_PATH];
    if (cli_exists(recipe->data.data_dir) ||
        att_run_find_resume(cli->context, &place, resume, sizeof resume) != ATT_OK || !*resume)
        return;
    cli_note(cli, "%s/args.yaml names it; if the data has moved: attscope train DATA --resume %s",
             cli_folder_of(resume, folder, sizeof folder), resume);
}

/* If a resume is refused because its settings differ: says which options a resume uses, and how to start a new training
 * from the weights. */
static void advise_on_resume(cli_app *cli, const att_recipe *recipe)
{
    const att_run_place place = place_of(&recipe->files);
    char resume[CLI_PATH], folder[CLI_PATH], options[CLI_PATH + 128] = "";
    if (att_run_find_resume(cli->context, &place, resume, sizeof resume) != ATT_OK || !*resume)
        return;
    const int length = snprintf(options, sizeof options, "%s/args.yaml", cli_folder_of(resume, folder, sizeof folder));
    if (cli_exists(options))
        snprintf(options + length, sizeof options - (size_t)length, " has the options and the data of a resume; ");
    else
        *options = '\0';
    cli_note(cli,
             "%sto train its weights further with a new schedule: attscope train DATA --initial-checkpoint %s "
             "--experiment NAME --epochs MORE",
             options, resume);
}

static int open_training(job *j, const char *data)
{
    att_recipe *recipe = &j->settings->recipe;
    if (data)
        recipe->data.data_dir = data;
    int code = cli_output_check(j->settings->output.json);
    if (code == CLI_OK && !recipe->data.data_dir)
        code = fail_without_data(j->cli, &recipe->files);
    if (code != CLI_OK)
        return code;
    att_status status = att_training_open(j->cli->context, recipe, &j->training);
    code = cli_check(j->cli, status);
    if (code != CLI_OK && !data)
        advise_on_data(j->cli, recipe);
    if (status == ATT_ERR_MISMATCH)
        advise_on_resume(j->cli, recipe);
    if (code != CLI_OK)
        return code;
    j->recipe = att_training_recipe(j->training);
    j->run = att_training_folder(j->training);
    return CLI_OK;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    job j = {.cli = cli, .settings = user};
    int code = cli_engine_open(cli, &j.settings->recipe.engine);
    if (code == CLI_OK)
        code = cli_processes_open(cli, &j.settings->processes);
    j.settings->recipe.train.comm = cli->comm;
    if (code == CLI_OK)
        code = open_training(&j, count > 0 ? operands[0] : NULL);
    if (code == CLI_OK)
        code = train(&j);
    att_training_close(&j.training);
    return code;
}

/* The config file: --config, or else the args.yaml in the folder of the checkpoint to resume from. */
static int config(cli_app *cli, const void *user, char *path, size_t size)
{
    const train_settings *s = user;
    const att_run_place place = place_of(&s->recipe.files);
    char resume[CLI_PATH], folder[CLI_PATH];
    *path = '\0';
    if (s->config) {
        snprintf(path, size, "%s", s->config);
        return CLI_OK;
    }
    int code = cli_check(cli, att_run_find_resume(cli->context, &place, resume, sizeof resume));
    if (code != CLI_OK || !*resume)
        return code;
    cli_join(cli_folder_of(resume, folder, sizeof folder), "args.yaml", path, size);
    if (!cli_exists(path))
        *path = '\0';
    return CLI_OK;
}

static const att_flag config_rows[] = {
    {"config", .letter = 'c', .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "YAML file of these options; the command line overrides it", ATT_FLAG_AT(train_settings, config),
     .once = true},
};
static const att_flag_group config_group = {"Recipe file", .rows = config_rows,
                                            .row_count = sizeof config_rows / sizeof *config_rows};
static const att_flag_use uses[] = {{&config_group, 0},
                                    {&att_recipe_group, offsetof(train_settings, recipe)},
                                    {&cli_group_processes, offsetof(train_settings, processes)},
                                    {&cli_group_output, offsetof(train_settings, output)}};

const cli_command cli_command_train = {
    .name = "train",
    .summary = "trains a network on images",
    .operands = "DATA",
    .most_operands = 1,
    .about = CLI_DATA_HELP
    "\n\n"
    "Ctrl-C writes a checkpoint. --resume continues with the same results, bit for\n"
    "bit, as an uninterrupted run. What is printed counts epochs from 1; files and\n"
    "--json count from 0 (checkpoint-0, best_epoch). With --eval-every, the number of\n"
    "a checkpoint is the number of its updates (checkpoint-4000).\n\n"
    "mpirun or srun start several processes, on one machine or on several, which\n"
    "train one network together: the same results as one process with as many\n"
    "--lanes (networks with batch norm: with --sync-bn).",
    .example =
        "  attscope train /usr/share/datasets/fashion-mnist --img-size 28 \\\n"
        "      --patch-size 4 --model vit_tiny_patch16_224 --in-chans 1 --embed-dim 64 \\\n"
        "      --depth 4 --num-heads 4 --epochs 7 --opt adamw --lr 2e-3 \\\n"
        "      --weight-decay 0.05 --output output --experiment first\n"
        "  attscope train --resume output/first/last.safetensors\n"
        "  mpirun -n 4 --bind-to none attscope train imagenet --model resnet50 --sync-bn",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(train_settings),
    .processes = true,
    .config = config,
    .run = run,
};
