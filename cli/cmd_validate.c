/* attscope validate: accuracy of a checkpoint on a data set. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli.h"
#include "flags.h"
#include "network.h"
#include "progress.h"

typedef struct data {
    const char *data_dir, *split, *class_map;
    int64_t cache_bytes;
    const char *checkpoint;
    bool use_ema;
    int batch_size, workers;
    bool skip_corrupt;
} data;

typedef struct settings {
    data data;
    cli_network network;
    cli_preprocess preprocess;
    cli_engine engine;
    cli_output output;
    const char *results_file;
} settings;

static const cli_option data_options[] = {
    {"data-dir", .alias = "data", .kind = CLI_TEXT, .value = "DATA",
     .help = "the data set, where it is not the operand", CLI_AT(data, data_dir)},
    {"split", .kind = CLI_TEXT, .value = "NAME", .help = "train, validation or test", CLI_AT(data, split)},
    {"class-map", .kind = CLI_TEXT, .value = "FILE", .help = "one class a line; its line is its number, from 0",
     CLI_AT(data, class_map)},
    {"cache-bytes", .kind = CLI_LONG, .value = "N", .help = "most memory for the files of a .tar.gz",
     CLI_AT(data, cache_bytes), .low = 0, .high = 1e15},
    {"checkpoint", .kind = CLI_TEXT, .value = "FILE", .help = "the network's weights", CLI_AT(data, checkpoint)},
    {"use-ema", .kind = CLI_FLAG, .help = "take the averaged weights", CLI_AT(data, use_ema)},
    {"batch-size", .letter = 'b', .kind = CLI_INT, .value = "N", .help = "images of one run", CLI_AT(data, batch_size),
     .low = 1, .high = 65536},
    {"workers", .letter = 'j', .kind = CLI_INT, .value = "N", .help = "threads that read and decode images",
     CLI_AT(data, workers), .low = 0, .high = 256},
    {"skip-corrupt", .kind = CLI_FLAG, .help = "leave images that cannot be decoded out of the figures",
     CLI_AT(data, skip_corrupt)},
};

static void data_defaults(void *values)
{
    data *d = values;
    att_evaluate_options options = att_evaluate_options_defaults();
    d->split = "validation";
    d->batch_size = options.batch_size;
    d->workers = options.workers;
    d->cache_bytes = (int64_t)att_dataset_options_defaults().cache_bytes;
}

static const cli_group data_group = {"Data and weights", data_options, sizeof data_options / sizeof *data_options,
                                     data_defaults};

static const cli_option file_options[] = {
    {"results-file", .kind = CLI_TEXT, .value = "FILE", .help = "write the figures as CSV with timm's columns",
     CLI_AT(settings, results_file), .once = true},
};
static const cli_group file_group = {"Files", file_options, 1, NULL};

static const cli_use uses[] = {
    {&data_group, offsetof(settings, data)},
    {&cli_group_network, offsetof(settings, network)},
    {&cli_group_preprocess, offsetof(settings, preprocess)},
    {&cli_group_engine, offsetof(settings, engine)},
    {&file_group, 0},
    {&cli_group_output, offsetof(settings, output)},
};

static int64_t parameters_of(const cli_loaded *loaded)
{
    return att_graph_parameter_elements(att_model_graph(loaded->model));
}

static int write_csv(const char *path, const cli_loaded *loaded, const att_evaluation *e)
{
    const att_preprocess *p = &loaded->identity.preprocess;
    char text[512];
    int length = snprintf(text, sizeof text,
                          "model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation\n"
                          "%s,%d,%.4f,%.4f,%.4f,%.4f,%.2f,%g,%s\n",
                          loaded->identity.name, p->img_size, e->top1, 100 - e->top1, e->top5, 100 - e->top5,
                          1e-6 * (double)parameters_of(loaded), p->crop_pct, p->interpolation);
    return cli_file_write(path, text, (size_t)length);
}

static int write_json(cli_app *cli, const char *path, const cli_loaded *loaded, const att_evaluation *e)
{
    att_json_writer *writer;
    int code = cli_check(cli, att_json_writer_create(cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    const att_preprocess *p = &loaded->identity.preprocess;
    att_json_begin_object(writer);
    cli_json_text(writer, "model", loaded->identity.name);
    cli_json_number(writer, "img_size", p->img_size);
    cli_json_number(writer, "top1", e->top1);
    cli_json_number(writer, "top1_err", 100 - e->top1);
    cli_json_number(writer, "top5", e->top5);
    cli_json_number(writer, "top5_err", 100 - e->top5);
    cli_json_number(writer, "param_count", 1e-6 * (double)parameters_of(loaded));
    cli_json_number(writer, "crop_pct", p->crop_pct);
    cli_json_text(writer, "interpolation", p->interpolation);
    cli_json_number(writer, "loss", e->loss);
    cli_json_number(writer, "count", (double)e->count);
    cli_json_integer(writer, "corrupt", e->corrupt);
    cli_json_number(writer, "images_per_second", e->images_per_second);
    cli_json_number(writer, "wait_share", e->wait_share);
    att_json_end_object(writer);
    return cli_json_write(cli, writer, path);
}

static int evaluate(cli_app *cli, const settings *s, const cli_loaded *loaded, const att_dataset *dataset)
{
    cli_progress progress = cli_progress_to(cli, 1);
    att_evaluate_options options = att_evaluate_options_defaults();
    options.backend = s->engine.backend;
    options.precision = cli_engine_precision(&s->engine);
    options.batch_size = s->data.batch_size;
    options.workers = s->data.workers;
    options.skip_corrupt = s->data.skip_corrupt;
    options.progress = cli_progress_show;
    options.progress_user = &progress;
    att_evaluation e;
    att_status status = att_evaluate(loaded->model, loaded->weights, dataset, &loaded->transform, &options, &e);
    cli_bar_clear(cli);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped before every image was seen; there is no result");
        return CLI_STOPPED;
    }
    int code = cli_check(cli, status);
    if (status == ATT_ERR_FORMAT && !s->data.skip_corrupt)
        cli_note(cli, "--skip-corrupt goes on without such images");
    if (code != CLI_OK)
        return code;
    if (!isfinite(e.loss))
        return cli_failure("%s: the network answers with NaN or infinity; its weights are damaged", s->data.checkpoint);
    if (cli_prints(s->output.json))
        printf("top-1 %.2f %%   top-5 %.2f %%   loss %.4f   %lld images\n", e.top1, e.top5, e.loss, (long long)e.count);
    if (e.corrupt > 0)
        cli_note(cli, "left out because they cannot be decoded: %lld images", (long long)e.corrupt);
    cli_note(cli, "%.1f images/s, %.0f %% of the time waiting for data", e.images_per_second, 100 * e.wait_share);
    if (s->results_file)
        code = write_csv(s->results_file, loaded, &e);
    return code == CLI_OK && s->output.json ? write_json(cli, s->output.json, loaded, &e) : code;
}

static void compare_classes(cli_app *cli, const cli_loaded *loaded, const att_dataset *dataset)
{
    int network = loaded->identity.options.num_classes, found = att_dataset_class_count(dataset);
    if (network != found)
        cli_note(cli,
                 "the network has %d classes, the data %d; the figures mean something only where their numbers agree "
                 "(--class-map)",
                 network, found);
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    const char *path = count > 0 ? operands[0] : s->data.data_dir;
    if (!path)
        return cli_usage("validate needs DATA; see attscope validate --help");
    if (!s->data.checkpoint)
        return cli_usage("validate needs --checkpoint FILE; see attscope validate --help");
    int code = cli_engine_open(cli, &s->engine);
    cli_loaded loaded = {0};
    att_dataset *dataset = NULL;
    if (code == CLI_OK)
        code = cli_load(cli, s->data.checkpoint, &s->network, &s->preprocess, s->data.use_ema, &loaded);
    if (code == CLI_OK)
        code = cli_dataset_open(cli, path, s->data.split, s->data.class_map, s->data.cache_bytes, &dataset);
    if (code == CLI_OK)
        compare_classes(cli, &loaded, dataset);
    if (code == CLI_OK)
        code = evaluate(cli, s, &loaded, dataset);
    att_dataset_close(&dataset);
    cli_unload(&loaded);
    return code;
}

const cli_command cli_command_validate = {
    .name = "validate",
    .summary = "evaluates a checkpoint on a data set",
    .operands = "DATA",
    .most_operands = 1,
    .about =
        "DATA is a folder of class folders, a .tar, .tar.gz or .zip of one, or a folder\n"
        "of IDX files.",
    .example =
        "  attscope validate imagenet/val --model deit_tiny_patch16_224 \\\n"
        "      --checkpoint deit_tiny_patch16_224.safetensors --class-map synsets.txt",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
