#include "evaluation.h"

#include "progress.h"

/* The first rows are OPERANDS; the hidden ones are known to commands that refuse them. */
static const att_flag data_options[] = {
    {"data-dir", .alias = "data", .kind = ATT_FLAG_TEXT, .value = "DATA",
     .help = "the data set, if it is not an operand", ATT_FLAG_AT(cli_evaluation_data, data_dir)},
    {"checkpoint", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "file of weights, a folder (a run's folder stands for its best checkpoint), or a name of pretrained "
             "weights (timm/NETWORK.TAG, hf-hub:ORG/NAME, torchvision/NETWORK.WEIGHTS)",
     ATT_FLAG_AT(cli_evaluation_data, checkpoint)},
    {"split", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "validation",
     .help = "train, validation or test, or tars in DATA", ATT_FLAG_AT(cli_evaluation_data, split)},
    {"class-map", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "file with one class per line, in the order of their numbers",
     ATT_FLAG_AT(cli_evaluation_data, class_map)},
    {"coarse-labels", .kind = ATT_FLAG_SWITCH, .help = "CIFAR-100: use the 20 superclasses instead of the 100 classes",
     ATT_FLAG_AT(cli_evaluation_data, coarse_labels)},
    {"reduce-zero-label", .kind = ATT_FLAG_INT, .value = "N",
     .help = "masks: 1: label 0 is no class, and label n is class n - 1; 0: label n is class n; -1: as DATA is usually "
             "read",
     ATT_FLAG_AT(cli_evaluation_data, reduce_zero_label), .low = -1, .high = 1},
    {"ignore-label", .kind = ATT_FLAG_INT, .value = "N",
     .help = "masks: a label that is no class, besides the usual ones; -1: none",
     ATT_FLAG_AT(cli_evaluation_data, ignore_label), .low = -1, .high = 65535},
    {"cache-bytes", .kind = ATT_FLAG_LONG, .value = "N", .help = "maximum memory for the files of a .tar.gz",
     ATT_FLAG_AT(cli_evaluation_data, cache_bytes), .low = 0, .high = 1e15},
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(cli_evaluation_data, use_ema)},
    {"batch-size", .letter = 'b', .kind = ATT_FLAG_INT, .value = "N", .help = "images per batch",
     ATT_FLAG_AT(cli_evaluation_data, batch_size), .low = 1, .high = 65536},
    {"workers", .letter = 'j', .kind = ATT_FLAG_INT, .value = "N", .help = "threads that read and decode images",
     ATT_FLAG_AT(cli_evaluation_data, workers), .low = 0, .high = 256},
    {"skip-corrupt", .kind = ATT_FLAG_SWITCH, .help = "skip images that cannot be decoded",
     ATT_FLAG_AT(cli_evaluation_data, skip_corrupt)},
};

static void data_defaults(att_context *context, void *values)
{
    (void)context;
    cli_evaluation_data *d = values;
    att_evaluate_options options = att_evaluate_options_defaults();
    d->batch_size = options.batch_size;
    d->workers = options.workers;
    const att_dataset_options data = att_dataset_options_defaults();
    d->cache_bytes = (int64_t)data.cache_bytes;
    d->reduce_zero_label = data.reduce_zero_label;
    d->ignore_label = data.ignore_label;
}

enum { OPERANDS = 2, ROWS = sizeof data_options / sizeof *data_options };
static const char title[] = "Data and weights";
const att_flag_group cli_group_evaluation_data = {title, data_options, ROWS, .defaults = data_defaults};

static const att_flag hidden_options[OPERANDS] = {
    {"data-dir", .alias = "data", .kind = ATT_FLAG_TEXT, .value = "DATA", ATT_FLAG_AT(cli_evaluation_data, data_dir)},
    {"checkpoint", .kind = ATT_FLAG_TEXT, .value = "FILE", ATT_FLAG_AT(cli_evaluation_data, checkpoint)},
};
static const att_flag_group hidden_group = {title, .rows = hidden_options, .row_count = OPERANDS},
                            shown_group = {title, data_options + OPERANDS, ROWS - OPERANDS, .defaults = data_defaults};
static const att_flag_use operand_parts[] = {{&hidden_group, 0}, {&shown_group, 0}};
const att_flag_group cli_group_operand_data = {.parts = operand_parts, .part_count = 2};

static const att_flag robustness_options[] = {
    {"occlude", .kind = ATT_FLAG_INT, .value = "N",
     .help = "make the centre N x N pixels of every image black (0 before normalisation)",
     ATT_FLAG_AT(att_evaluate_options, occlude), .low = 0, .high = 65536},
    {"fgsm", .kind = ATT_FLAG_REAL, .value = "EPS",
     .help = "attack every image x, in [0, 1], by the fast gradient sign method: x + EPS sign(dL/dx), limited to [0, "
             "1]; L is the loss without label smoothing, with --subset over its classes; 1/255 is 0.00392",
     ATT_FLAG_AT(att_evaluate_options, fgsm), .low = 0, .high = 1},
    {"subset", .kind = ATT_FLAG_SWITCH,
     .help = "only the classes of the images in DATA compete, as is usual for ImageNet-A and ImageNet-R",
     ATT_FLAG_AT(att_evaluate_options, subset)},
    {"real-labels", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "real.json of ReaL: several right classes for each validation image of ImageNet; images without any are "
             "left out of top-1 and top-5; loss and --fgsm still use the labels of DATA",
     ATT_FLAG_AT(att_evaluate_options, real_labels), .once = true},
};

static void robustness_defaults(att_context *context, void *values)
{
    (void)context;
    *(att_evaluate_options *)values = att_evaluate_options_defaults();
}

const att_flag_group cli_group_robustness = {"Robustness", robustness_options,
                                             sizeof robustness_options / sizeof *robustness_options,
                                             .defaults = robustness_defaults};

int cli_evaluation_operands(const char *command, cli_evaluation_data *data, const char *const *operands, int count,
                            int *used)
{
    *used = 0;
    if (!data->checkpoint && *used < count)
        data->checkpoint = operands[(*used)++];
    if (!data->data_dir && *used < count)
        data->data_dir = operands[(*used)++];
    return data->checkpoint && data->data_dir
               ? CLI_OK
               : cli_usage("%s needs CHECKPOINT and DATA; see attscope %s --help", command, command);
}

int cli_evaluation_precision(const char *command, bool f64, cli_evaluation *options)
{
    options->dtype = f64 ? ATT_F64 : ATT_F32;
    return f64 && options->engine.amp ? cli_usage("%s: --f64 and --amp exclude each other", command) : CLI_OK;
}

int cli_evaluation_load(cli_app *cli, const cli_evaluation *options, cli_loaded *loaded)
{
    const cli_evaluation_data *d = &options->data;
    return cli_load(cli, d->checkpoint,
                    &(cli_load_options){&options->network, &options->preprocess, &options->engine, d->use_ema,
                                        options->test_images, options->dtype, &options->passes, options->init_seed},
                    loaded);
}

int cli_evaluation_open(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, att_dataset **dataset)
{
    const cli_evaluation_data *d = &options->data;
    att_dataset_options dataset_options = att_dataset_options_defaults();
    dataset_options.split = d->split;
    dataset_options.class_map = d->class_map;
    dataset_options.coarse = d->coarse_labels;
    dataset_options.reduce_zero_label = d->reduce_zero_label;
    dataset_options.ignore_label = d->ignore_label;
    dataset_options.unlabelled = options->unlabelled;
    if (d->cache_bytes > 0)
        dataset_options.cache_bytes = (size_t)d->cache_bytes;
    int code = cli_file_check("--class-map", d->class_map);
    if (code != CLI_OK)
        return code;
    return cli_check(cli, att_network_open_dataset(loaded->network, &d->data_dir, 1, &dataset_options, dataset));
}

void cli_evaluation_say(cli_app *cli, const att_evaluation *evaluation)
{
    if (evaluation->corrupt > 0)
        cli_note(cli, "skipped because they cannot be decoded or resized: %lld image%s", (long long)evaluation->corrupt,
                 cli_plural(evaluation->corrupt));
    cli_note(cli, "%.1f images/s, %.0f %% of the time waiting for data", evaluation->images_per_second,
             100 * evaluation->wait_share);
}

int cli_evaluate(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const att_dataset *dataset,
                 att_evaluation *result)
{
    cli_progress progress = cli_progress_to(cli, 1, 1);
    att_evaluate_options evaluate = options->evaluate;
    evaluate.batch_size = options->data.batch_size;
    evaluate.workers = options->data.workers;
    evaluate.skip_corrupt = options->data.skip_corrupt;
    evaluate.comm = cli->comm;
    evaluate.progress = cli_progress_show;
    evaluate.progress_user = &progress;
    att_status status = att_network_evaluate(loaded->network, dataset, &evaluate, result);
    cli_bar_clear(cli);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped before all images were evaluated; there is no result");
        return CLI_STOPPED;
    }
    int code = cli_check(cli, status);
    if (code == CLI_OK)
        cli_evaluation_say(cli, result);
    return code;
}
