/* attscope train: trains a network on images, and continues a training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/file.h>
#include <attscope/lab/bench.h>
#include <attscope/lab/runs.h>
#include <attscope/store.h>

#include "cli.h"
#include "metrics.h"
#include "network.h"
#include "paths.h"
#include "progress.h"
#include "train_network.h"
#include "train_settle.h"

typedef struct job {
    cli_app *cli;
    train_settings *settings;
    att_dataset *train, *eval;
    cli_train_network network;
    att_transform_options train_transform, eval_transform;
    att_run_folder run;
    att_sink log; /* open from the training's first event on */
} job;

/* --- data --------------------------------------------------------------------------------------------- */

/* A class that training does not know has no number: with the folders' own, all of evaluation would be wrong. */
static int check_classes(const job *j, const char *path, const att_dataset_options *eval)
{
    bool by_folders = att_dataset_numbering(j->eval) == ATT_NUMBERED_BY_FOLDERS;
    const char *unknown = by_folders ? att_dataset_unknown_class(j->eval, eval->trained, eval->trained_count) : NULL;
    if (!unknown)
        return CLI_OK;
    return cli_failure("%s, %s: class \"%s\" is none of those in %s, which are trained", path,
                       att_dataset_split(j->eval), unknown, att_dataset_split(j->train));
}

static int open_data(job *j, const char *path)
{
    const train_data *d = &j->settings->data;
    att_dataset_options train = cli_train_data_options(d, d->train_split),
                        eval = cli_train_data_options(d, d->val_split);
    int code = cli_dataset_open(j->cli, path, &train, &j->train);
    if (code != CLI_OK && *j->run.resume && path == d->data_dir && !cli_exists(path))
        cli_note(j->cli, "%s/args.yaml names it; attscope train DATA --resume %s says where the data is now",
                 j->run.folder, j->run.resume);
    if (code != CLI_OK)
        return code;
    if (!*att_dataset_split(j->train)) {
        cli_note(j->cli, "%s has no splits: nothing to evaluate on", path);
        return CLI_OK;
    }
    if (!*d->val_split) {
        cli_note(j->cli, "--val-split names nothing to evaluate on");
        return CLI_OK;
    }
    eval.trained = att_dataset_class_names(j->train);
    eval.trained_count = att_dataset_class_count(j->train);
    code = cli_dataset_open(j->cli, path, &eval, &j->eval);
    if (code == CLI_OK)
        code = check_classes(j, path, &eval);
    if (code != CLI_OK)
        cli_note(j->cli, "--val-split NAME says what to evaluate on, --val-split '' that there is nothing");
    return code;
}

static void make_transforms(job *j)
{
    j->eval_transform = j->train_transform = att_evaluate_transform(&j->network.preprocess);
    cli_train_transform(&j->settings->images, &j->train_transform);
}

/* --- the run's folder --------------------------------------------------------------------------------------------- */

static void effective_channels(cli_reals *reals, const double *values, int count)
{
    reals->count = count;
    memcpy(reals->values, values, (size_t)count * sizeof *values);
}

/* Makes the settings say what is taken where they left it open. */
static void settle_settings(job *j, const char *data)
{
    train_settings *s = j->settings;
    s->data.data_dir = data;
    s->network.model = att_model_name(j->network.model);
    s->network.options = *att_model_options(j->network.model);
    effective_channels(&s->preprocess.mean, j->network.preprocess.mean, j->network.preprocess.in_chans);
    effective_channels(&s->preprocess.std, j->network.preprocess.std, j->network.preprocess.in_chans);
    s->preprocess.crop_pct = j->network.preprocess.crop_pct;
    s->preprocess.crop_mode = j->network.preprocess.crop_mode;
    s->preprocess.interpolation = j->network.preprocess.interpolation;
    const char *slash = strrchr(j->run.folder, '/');
    s->files.experiment = slash ? slash + 1 : j->run.folder;
    s->files.resume = NULL;
    const att_task_info task = att_model_task(j->network.model);
    cli_train_task_settle(s, &task);
    s->recipe.backend = s->engine.backend;
    s->recipe.precision = cli_engine_precision(&s->engine);
    s->recipe.output = j->run.folder;
    s->recipe.resume = *j->run.resume ? j->run.resume : NULL;
    s->recipe.beta1 = s->betas.values[0];
    s->recipe.beta2 = s->betas.values[1];
}

/* One name a line, for --labels and, where names are single words, --class-map. */
static att_status write_classes(const job *j)
{
    char path[CLI_PATH], *text = NULL;
    size_t length;
    cli_join(j->run.folder, "classes.txt", path, sizeof path);
    FILE *out = open_memstream(&text, &length);
    bool fine = out;
    for (int c = 0; fine && c < att_dataset_class_count(j->train); c++)
        fine = fprintf(out, "%s\n", att_dataset_class_name(j->train, c)) > 0;
    if (out)
        fine = fclose(out) == 0 && fine;
    att_status status = fine ? att_file_replace(j->cli->context, path, text, length) : ATT_ERR_MEMORY;
    free(text);
    return status;
}

/* The folder's files are made or cut where the training begins: one that is refused leaves them as they are. */
static att_status open_folder(job *j)
{
    char path[CLI_PATH];
    att_store_resume at = {j->network.stood.epoch, j->network.stood.update};
    att_store_options options = {.resume = *j->run.resume ? &at : NULL, .database = j->run.database};
    att_status status = att_store_open(j->cli->context, j->run.folder, &options, &j->log);
    cli_join(j->run.folder, "args.yaml", path, sizeof path);
    if (status == ATT_OK)
        status = cli_options_write(&j->cli->table, j->cli->context, path);
    return status == ATT_OK ? write_classes(j) : status;
}

/* --- what is said while it runs ----------------------------------------------------------------------------------- */

static double field(const att_event *event, const char *name)
{
    for (int i = 0; i < event->field_count; i++)
        if (strcmp(event->fields[i].name, name) == 0 && !event->fields[i].text)
            return event->fields[i].number;
    return NAN;
}

/* What is evaluated, where that is not plain. */
static const char *whose_weights(const job *j)
{
    return j->settings->recipe.model_ema ? " of the averaged weights" : "";
}

/* "  eval loss 0.1234  top-1 97.00 %"; "" where nothing was evaluated. */
static void describe_evaluation(const job *j, const att_event *event, char *text, size_t size)
{
    const att_task_info task = att_model_task(j->network.model);
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
    snprintf(text + length, size - length, "%s", whose_weights(j));
}

static void say_epoch(job *j, const att_event *event)
{
    char evaluated[512];
    describe_evaluation(j, event, evaluated, sizeof evaluated);
    cli_note(j->cli, "epoch %lld/%d  loss %.4f%s  lr %.3g  %.0f %% waiting for data", (long long)event->epoch + 1,
             j->settings->recipe.epochs, field(event, "train_loss"), evaluated, field(event, "lr"),
             100 * field(event, "wait_share"));
}

static att_status hear(void *user, const att_event *event)
{
    job *j = user;
    if (event->kind == ATT_EVENT_RUN_BEGIN) {
        att_status status = open_folder(j);
        if (status != ATT_OK)
            return status;
        if (*j->run.resume && event->epoch == j->settings->recipe.epochs)
            cli_note(j->cli,
                     "%s: all %lld epochs are done already, nothing is left to train; --initial-checkpoint starts "
                     "another training from its weights",
                     j->run.resume, (long long)event->epoch);
        else if (event->step > 0)
            cli_note(j->cli, "%s: goes on in epoch %lld after %lld updates", j->run.resume, (long long)event->epoch + 1,
                     (long long)event->step);
    }
    if (event->kind == ATT_EVENT_EPOCH)
        say_epoch(j, event);
    return j->log.emit ? j->log.emit(j->log.user, event) : ATT_OK;
}

static void print_result(const job *j, const att_train_result *r)
{
    cli_print("%s: %d epoch%s, %lld updates\n", att_model_name(j->network.model), r->epochs, r->epochs == 1 ? "" : "s",
              (long long)r->updates);
    if (isfinite(r->train_loss))
        cli_print("training loss %.4f\n", r->train_loss);
    const att_task_info task = att_model_task(j->network.model);
    if (isfinite(r->eval[task.best])) {
        cli_metrics_print(&task, r->eval);
        cli_print("%s\n", whose_weights(j));
    }
    if (r->best_epoch >= 0)
        cli_print("best %s %.4g in epoch %d%s\n", j->settings->recipe.eval_metric, r->best_metric, r->best_epoch + 1,
                  whose_weights(j));
    cli_print("%s\n", j->run.folder);
}

static int write_json(const job *j, const att_train_result *r)
{
    att_json_writer *w;
    int code = cli_check(j->cli, att_json_writer_create(j->cli->context, true, &w));
    if (code != CLI_OK)
        return code;
    const att_task_info task = att_model_task(j->network.model);
    att_json_begin_object(w);
    cli_json_text(w, "model", att_model_name(j->network.model));
    cli_json_text(w, "folder", j->run.folder);
    cli_json_integer(w, "epochs", r->epochs);
    cli_json_integer(w, "updates", r->updates);
    cli_json_number(w, "train_loss", r->train_loss);
    cli_metrics_json(w, &task, "eval_", r->eval);
    cli_json_number(w, "best_metric", r->best_metric);
    cli_json_integer(w, "best_epoch", r->best_epoch);
    cli_json_number(w, "train_samples_per_sec", r->images_per_second);
    cli_json_number(w, "wait_share", r->wait_share);
    cli_json_integer(w, "train_corrupt", r->train_corrupt);
    cli_json_integer(w, "eval_corrupt", r->eval_corrupt);
    att_json_end_object(w);
    return cli_json_write(j->cli, w, j->settings->output.json);
}

/* What the same network reaches without a data set, measured where that takes at most a twentieth of the training: a
 * handful of batches. "" otherwise. */
static void bench_beside(const job *j, const att_train_result *result, char *text, size_t size)
{
    const train_settings *s = j->settings;
    att_bench_options options = att_bench_options_defaults();
    options.model = att_model_name(j->network.model);
    options.network = &s->network.options;
    options.training = true;
    options.backend = s->engine.backend;
    options.precision = cli_engine_precision(&s->engine);
    options.batch_size = s->recipe.batch_size;
    options.repeats = 3;
    options.warmup = 1;
    att_bench_result alone;
    *text = '\0';
    bool worth = (double)result->updates * s->recipe.grad_accum_steps > 20 * (options.repeats + options.warmup);
    if (worth && att_bench_run(j->cli->context, &options, &alone) == ATT_OK)
        snprintf(text, size, " (%.1f by attscope bench, without a data set)", alone.images_per_second);
}

/* Where images come more slowly than the network takes them. */
static void advise_on_waiting(const job *j, double wait_share)
{
    const double noticeable = 0.05;
    int workers = j->settings->recipe.workers, processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (wait_share < noticeable)
        return;
    if (workers < processors)
        cli_note(j->cli, "the network waited for images: --workers %d would make them on more threads", processors);
    else
        cli_note(j->cli,
                 "the network waited for images, which %d threads (--workers) decode on %d processors: smaller image "
                 "files would be decoded faster",
                 workers, processors);
}

/* What a training says whose images were replaced or left out. */
static void say_corrupt(const job *j, const att_train_result *result)
{
    if (result->train_corrupt + result->eval_corrupt > 0)
        cli_note(j->cli, "images that cannot be decoded: %lld of an epoch's were replaced, %lld left out of evaluation",
                 (long long)result->train_corrupt, (long long)result->eval_corrupt);
}

static int finish(const job *j, att_status status, const att_train_result *result)
{
    const train_settings *s = j->settings;
    cli_bar_clear(j->cli);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped after %lld updates; to go on: attscope train --resume %s/last.safetensors",
                (long long)result->updates, j->run.folder);
        return CLI_STOPPED;
    }
    int code = cli_check(j->cli, status);
    if (status == ATT_ERR_MISMATCH && !j->log.emit && *j->run.resume)
        cli_note(j->cli,
                 "it continues with the options and the data that %s/args.yaml names; to train its weights on, with a "
                 "new schedule: attscope train DATA --initial-checkpoint %s --experiment NAME --epochs MORE",
                 j->run.folder, j->run.resume);
    if (status == ATT_ERR_NONFINITE)
        cli_note(j->cli, "a training that diverges may need a lower --lr, or --clip-grad");
    if (j->log.emit && !s->recipe.skip_corrupt && (status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED))
        cli_note(j->cli, "--skip-corrupt goes on without such images");
    if (code != CLI_OK)
        return code;
    if (result->images_per_second > 0) {
        char alone[96];
        bench_beside(j, result, alone, sizeof alone);
        cli_note(j->cli, "%.1f images/s%s, %.0f %% of the time waiting for data", result->images_per_second, alone,
                 100 * result->wait_share);
        advise_on_waiting(j, result->wait_share);
    }
    say_corrupt(j, result);
    if (cli_prints(s->output.json))
        print_result(j, result);
    return s->output.json ? write_json(j, result) : CLI_OK;
}

static att_train_options options_of(const job *j)
{
    att_train_options options = j->settings->recipe;
    options.measure = j->network.measure;
    options.task_options = &j->settings->task;
    return options;
}

static att_train_data data_of(const job *j)
{
    return (att_train_data){j->train, j->eval, &j->train_transform, &j->eval_transform};
}

static int train(job *j)
{
    const train_settings *s = j->settings;
    int64_t batches = s->recipe.grad_accum_steps;
    cli_progress progress = cli_progress_to(j->cli, batches, s->recipe.log_interval * batches);
    att_sink sink = {.emit = hear, .user = j};
    att_train_options options = options_of(j);
    options.sinks = &sink;
    options.sink_count = 1;
    options.progress = cli_progress_show;
    options.progress_user = &progress;
    att_train_data data = data_of(j);
    att_train_result result = {0};
    att_status status = att_train(j->network.model, j->network.weights, &data, &options, &result);
    if (j->log.close)
        j->log.close(j->log.user);
    return finish(j, status, &result);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* The default outlasts a short training. */
static void say_warmup(const job *j)
{
    const att_train_options *recipe = &j->settings->recipe;
    if (recipe->epochs > 0 && recipe->warmup_epochs >= recipe->epochs && strcmp(recipe->schedule, "none") != 0)
        cli_note(j->cli,
                 "the warm-up lasts the whole training: with --warmup-epochs %d and --epochs %d the rate never "
                 "reaches --lr",
                 recipe->warmup_epochs, recipe->epochs);
}

/* Weights are drawn or read, which takes its time, where nothing else can be refused any more. */
static int fill_weights(job *j)
{
    att_train_options options = options_of(j);
    att_train_data data = data_of(j);
    int code = cli_check(j->cli, att_train_check(j->network.model, j->network.weights, &data, &options));
    return code == CLI_OK ? cli_train_network_fill(j->cli, j->settings, &j->network) : code;
}

static att_run_place place_of(const train_files *files)
{
    return (att_run_place){.output = files->output, .experiment = files->experiment, .resume = files->resume};
}

static int prepare(job *j, const char *data)
{
    const att_run_place place = place_of(&j->settings->files);
    att_context *context = j->cli->context;
    int code = cli_train_settle(j->cli, j->settings);
    /* The folder of a continued run says where the network is; that of a new one is named after the network. */
    if (code == CLI_OK)
        code = cli_check(j->cli, att_run_find_resume(context, &place, j->run.resume, sizeof j->run.resume));
    if (code == CLI_OK)
        code = cli_train_network_find(j->cli, j->settings, j->run.resume, &j->network);
    if (code == CLI_OK)
        code = cli_check(j->cli, att_run_folder_settle(context, &place, j->network.name, j->network.height,
                                                       j->network.width, &j->run));
    if (code == CLI_OK)
        code = open_data(j, data);
    if (code == CLI_OK)
        code = cli_train_network_make(j->cli, j->settings, j->train, &j->network);
    if (code != CLI_OK)
        return code;
    make_transforms(j);
    settle_settings(j, data);
    say_warmup(j);
    code = fill_weights(j);
    return code == CLI_OK ? cli_check(j->cli, att_run_folder_claim(context, &j->run)) : code;
}

/* The data set is named neither here nor by what is continued. */
static int refuse_no_data(cli_app *cli, const train_files *files)
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

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    job j = {.cli = cli, .settings = user};
    const char *data = count > 0 ? operands[0] : j.settings->data.data_dir;
    int code = cli_engine_open(cli, &j.settings->engine);
    if (code == CLI_OK && !data)
        code = refuse_no_data(cli, &j.settings->files);
    if (code == CLI_OK)
        code = prepare(&j, data);
    if (code == CLI_OK)
        code = train(&j);
    cli_train_network_free(&j.network);
    att_dataset_close(&j.eval);
    att_dataset_close(&j.train);
    return code;
}

/* --config, or else the args.yaml beside the checkpoint that is continued. */
static int config(cli_app *cli, const void *user, char *path, size_t size)
{
    const train_settings *s = user;
    const att_run_place place = place_of(&s->files);
    char resume[CLI_PATH], folder[CLI_PATH];
    *path = '\0';
    if (s->files.config) {
        snprintf(path, size, "%s", s->files.config);
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

const cli_command cli_command_train = {
    .name = "train",
    .summary = "trains a network on images",
    .operands = "DATA",
    .most_operands = 1,
    .about = CLI_DATA_HELP
    "\n\n"
    "Ctrl-C writes a checkpoint. --resume continues with the same results, bit for\n"
    "bit, as an uninterrupted run. What is printed counts epochs from 1; files and\n"
    "--json count from 0 (checkpoint-0, best_epoch).",
    .example =
        "  attscope train /usr/share/datasets/fashion-mnist --img-size 28 \\\n"
        "      --patch-size 4 --model vit_tiny_patch16_224 --in-chans 1 --embed-dim 64 \\\n"
        "      --depth 4 --num-heads 4 --epochs 7 --opt adamw --lr 2e-3 \\\n"
        "      --weight-decay 0.05 --output output --experiment first\n"
        "  attscope train --resume output/first/last.safetensors",
    .uses = cli_train_uses,
    .use_count = CLI_TRAIN_USES,
    .settings_size = sizeof(train_settings),
    .config = config,
    .run = run,
};
