/* attscope validate: evaluates a checkpoint on a data set. */
#include <errno.h>
#include <string.h>

#include "evaluation.h"
#include "metrics.h"
#include "processes.h"
#include "show_figures.h"

typedef struct settings {
    cli_evaluation on;
    cli_processes processes;
    cli_output output;
    const char *results_file;
    bool use_train_size, f64;
} settings;

static const att_flag evaluation_options[] = {
    {"use-train-size", .kind = ATT_FLAG_SWITCH,
     .help = "evaluate at the image size and crop of the pretrained weights' training, not at those that timm's "
             "validate.py uses for some weights",
     ATT_FLAG_AT(settings, use_train_size)},
    {"f64", .kind = ATT_FLAG_SWITCH,
     .help = "run the network, and the gradient of --fgsm, in double precision; many times slower",
     ATT_FLAG_AT(settings, f64)},
};
static const att_flag_group evaluation_group = {"Evaluation", .rows = evaluation_options,
                                                .row_count = sizeof evaluation_options / sizeof *evaluation_options};

static const att_flag file_options[] = {
    {"results-file", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "write the results as CSV with timm's columns, which do not say how the images were changed"
             " or which precision was used, as --json does",
     ATT_FLAG_AT(settings, results_file), .once = true},
};
static const att_flag_group file_group = {"Files", .rows = file_options, .row_count = 1};

static const att_flag_use uses[] = {
    {&cli_group_evaluation_data, offsetof(settings, on.data)},
    {&att_recipe_network_group, offsetof(settings, on.network)},
    {&att_recipe_preprocess_group, offsetof(settings, on.preprocess)},
    {&evaluation_group, 0},
    {&cli_group_passes, offsetof(settings, on.passes)},
    {&cli_group_robustness, offsetof(settings, on.evaluate)},
    {&att_recipe_engine_group, offsetof(settings, on.engine)},
    {&cli_group_processes, offsetof(settings, processes)},
    {&file_group, 0},
    {&cli_group_output, offsetof(settings, output)},
};

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_loaded loaded;
    att_dataset *dataset;
    att_evaluation found;
    cli_details details;
} job;

/* Parameters in millions. */
/* In millions, as timm writes them. Divided, because 1e-6 is not exact: 208074 becomes 0.208074. */
static double parameters_of(const job *j)
{
    return (double)att_graph_parameter_elements(att_model_graph(j->loaded.model)) / 1e6;
}

static int write_csv(const job *j)
{
    const att_preprocess *p = &j->loaded.identity->preprocess;
    const att_task_info task = att_model_task(j->loaded.model);
    const att_evaluation *e = &j->found;
    char names[1024] = "", values[1024] = "", text[4096], size[CLI_SIDES_TEXT];
    size_t name_length = 0, value_length = 0;
    for (int i = 0; i < task.metric_count; i++) {
        const att_metric *metric = &task.metrics[i];
        if (!cli_metric_is_share(metric) || name_length >= sizeof names || value_length >= sizeof values)
            continue;
        name_length +=
            (size_t)snprintf(names + name_length, sizeof names - name_length, "%s,%s_err,", metric->name, metric->name);
        value_length += (size_t)snprintf(values + value_length, sizeof values - value_length, "%.4f,%.4f,",
                                         e->metrics[i], 100 - e->metrics[i]);
    }
    int length =
        snprintf(text, sizeof text, "model,img_size,%sparam_count,crop_pct,interpolation\n%s,%s,%s%.2f,%g,%s\n", names,
                 j->loaded.identity->name, cli_sides_text(p->height, p->width, size), values, parameters_of(j),
                 p->crop_pct, p->interpolation);
    return cli_file_write(j->cli, j->settings->results_file, text, (size_t)length);
}

/* shares true: writes the metrics in per cent, each with its error (100 - metric). shares false: writes the other
 * metrics. */
static void write_metrics(att_json_writer *writer, const att_task_info *task, bool shares, const att_evaluation *e)
{
    for (int i = 0; i < task->metric_count; i++) {
        char name[64];
        if (cli_metric_is_share(&task->metrics[i]) != shares)
            continue;
        att_json_put_number(writer, task->metrics[i].name, e->metrics[i]);
        snprintf(name, sizeof name, "%s_err", task->metrics[i].name);
        if (shares)
            att_json_put_number(writer, name, 100 - e->metrics[i]);
    }
}

/* Writes what was evaluated, and how. */
static void write_setting(att_json_writer *writer, const job *j)
{
    static const char *const numbered[] = {[ATT_NUMBERED_BY_FOLDERS] = "sorted folder names",
                                           [ATT_NUMBERED_BY_NAMES] = "folder names",
                                           [ATT_NUMBERED_BY_TRAINING] = "training",
                                           [ATT_NUMBERED_BY_MAP] = "class map",
                                           [ATT_NUMBERED_BY_LABELS] = "labels"};
    const settings *s = j->settings;
    const att_evaluate_options *robustness = &s->on.evaluate;
    att_json_put_string(writer, "checkpoint", s->on.data.checkpoint);
    att_json_put_bool(writer, "use_ema", s->on.data.use_ema);
    att_json_put_string(writer, "data", s->on.data.data_dir);
    att_json_put_string(writer, "split", att_dataset_split(j->dataset));
    att_json_put_string(writer, "numbered_by", numbered[att_dataset_numbering(j->dataset)]);
    att_json_put_string(writer, "precision",
                        s->f64 ? "f64" : att_precision_name(att_network_precision(j->loaded.network)));
    cli_json_passes(writer, &s->on.passes);
    att_json_put_integer(writer, "occlude", robustness->occlude);
    att_json_put_number(writer, "fgsm", robustness->fgsm);
    att_json_put_bool(writer, "subset", robustness->subset);
    att_json_put_string(writer, "real_labels", robustness->real_labels);
}

static void write_result(att_json_writer *writer, const void *from)
{
    const job *j = from;
    const att_preprocess *p = &j->loaded.identity->preprocess;
    const att_task_info task = att_model_task(j->loaded.model);
    const att_evaluation *e = &j->found;
    att_json_put_string(writer, "model", j->loaded.identity->name);
    cli_json_sides(writer, "img_size", p->height, p->width);
    write_metrics(writer, &task, true, e);
    att_json_put_number(writer, "param_count", parameters_of(j));
    att_json_put_number(writer, "crop_pct", p->crop_pct);
    att_json_put_string(writer, "crop_mode", p->crop_mode);
    att_json_put_string(writer, "interpolation", p->interpolation);
    write_metrics(writer, &task, false, e);
    write_setting(writer, j);
    att_json_put_number(writer, "count", (double)e->count);
    att_json_put_integer(writer, "judged", e->judged);
    att_json_put_integer(writer, "corrupt", e->corrupt);
    att_json_put_number(writer, "images_per_second", e->images_per_second);
    att_json_put_number(writer, "wait_share", e->wait_share);
    cli_details_json(writer, &j->details);
}

/* How the images were changed, and the end of the line. */
static void print_robustness(const att_evaluate_options *robustness, const att_evaluation *e)
{
    if (robustness->occlude > 0)
        cli_print("   centre %d x %d black", robustness->occlude, robustness->occlude);
    if (robustness->fgsm > 0)
        cli_print("   FGSM %g", robustness->fgsm);
    if (robustness->subset)
        cli_print("   classes of the data only");
    if (robustness->real_labels)
        cli_print("   ReaL: %lld of %lld image%s judged", (long long)e->judged, (long long)e->count,
                  cli_plural(e->count));
    cli_print("\n");
}

static int validate(job *j)
{
    const settings *s = j->settings;
    const att_evaluation *e = &j->found;
    cli_evaluation on = s->on;
    on.evaluate.detailed = cli_details_keep;
    on.evaluate.detailed_user = &j->details;
    int code = cli_evaluate(j->cli, &on, &j->loaded, j->dataset, &j->found);
    if (code != CLI_OK)
        return code;
    if (cli_prints(s->output.json) && cli_prints(s->results_file)) {
        const att_task_info task = att_model_task(j->loaded.model);
        cli_metrics_print(&task, e->metrics);
        cli_print("   %lld image%s", (long long)e->count, cli_plural(e->count));
        print_robustness(&s->on.evaluate, e);
        if (att_graph_find_output(att_model_graph(j->loaded.model), "pixel_logits") != ATT_NONE)
            cli_passes_print(&s->on.passes, &j->loaded.identity->preprocess);
        cli_details_print(&j->details);
    }
    if (s->results_file)
        code = write_csv(j);
    return code == CLI_OK ? cli_json_save(j->cli, s->output.json, write_result, j) : code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    const char *flag = s->on.data.checkpoint ? "--checkpoint" : NULL;
    int used, code = cli_evaluation_operands("validate", &s->on.data, operands, count, &used);
    if (code != CLI_OK)
        return code;
    s->on.test_images = !s->use_train_size;
    const cli_named_output outputs[] = {{"--json", s->output.json, false}, {"--results-file", s->results_file, false}};
    job j = {.cli = cli, .settings = s};
    code = cli_evaluation_precision("validate", s->f64, &s->on);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->on.engine);
    if (code == CLI_OK)
        code = cli_processes_open(cli, &s->processes);
    if (code == CLI_OK)
        code = cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
    if (code == CLI_OK)
        code = cli_checkpoint_check(flag, s->on.data.checkpoint);
    if (code == CLI_OK)
        code = cli_evaluation_load(cli, &s->on, &j.loaded);
    if (code == CLI_OK)
        code = cli_check(cli, att_network_need_head(j.loaded.network, "it cannot be evaluated"));
    if (code == CLI_OK)
        code = cli_evaluation_open(cli, &s->on, &j.loaded, &j.dataset);
    if (code == CLI_OK)
        code = cli_check(cli, att_network_compare_classes(j.loaded.network, j.dataset, true));
    if (code == CLI_OK)
        code = validate(&j);
    cli_details_free(&j.details);
    att_dataset_close(&j.dataset);
    cli_unload(&j.loaded);
    return code;
}

const cli_command cli_command_validate = {
    .name = "validate",
    .summary = "evaluates a checkpoint on a data set",
    .operands = "CHECKPOINT DATA",
    .most_operands = 2,
    .flags_replace = true,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "As in timm's validate.py, DATA can be the only operand, with --checkpoint FILE.\n\n" CLI_DATA_HELP,
    .example =
        "  attscope validate deit_tiny_patch16_224.safetensors imagenet/val\n"
        "  attscope validate imagenet/val --model deit_tiny_patch16_224 \\\n"
        "      --checkpoint deit_tiny_patch16_224.safetensors",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .processes = true,
    .run = run,
};
