#include "evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "labels.h"
#include "progress.h"

static const cli_option data_options[] = {
    {"data-dir", .alias = "data", .kind = CLI_TEXT, .value = "DATA",
     .help = "the data set, where it is not the operand", CLI_AT(cli_evaluation_data, data_dir)},
    {"split", .kind = CLI_TEXT, .value = "NAME", .help = "train, validation or test",
     CLI_AT(cli_evaluation_data, split)},
    {"class-map", .kind = CLI_TEXT, .value = "FILE", .help = "one class a line; its line is its number, from 0",
     CLI_AT(cli_evaluation_data, class_map)},
    {"coarse-labels", .kind = CLI_FLAG, .help = "CIFAR-100: its 20 superclasses instead of its 100 classes",
     CLI_AT(cli_evaluation_data, coarse_labels)},
    {"cache-bytes", .kind = CLI_LONG, .value = "N", .help = "most memory for the files of a .tar.gz",
     CLI_AT(cli_evaluation_data, cache_bytes), .low = 0, .high = 1e15},
    {"checkpoint", .kind = CLI_TEXT, .value = "FILE",
     .help = "the network's weights, or a folder with such a file: of a training its best checkpoint",
     CLI_AT(cli_evaluation_data, checkpoint)},
    {"use-ema", .kind = CLI_FLAG, .help = "take the averaged weights", CLI_AT(cli_evaluation_data, use_ema)},
    {"batch-size", .letter = 'b', .kind = CLI_INT, .value = "N", .help = "images of one run",
     CLI_AT(cli_evaluation_data, batch_size), .low = 1, .high = 65536},
    {"workers", .letter = 'j', .kind = CLI_INT, .value = "N", .help = "threads that read and decode images",
     CLI_AT(cli_evaluation_data, workers), .low = 0, .high = 256},
    {"skip-corrupt", .kind = CLI_FLAG, .help = "leave images that cannot be decoded out of the figures",
     CLI_AT(cli_evaluation_data, skip_corrupt)},
};

static void data_defaults(void *values)
{
    cli_evaluation_data *d = values;
    att_evaluate_options options = att_evaluate_options_defaults();
    d->split = "validation";
    d->batch_size = options.batch_size;
    d->workers = options.workers;
    d->cache_bytes = (int64_t)att_dataset_options_defaults().cache_bytes;
}

const cli_group cli_group_evaluation_data = {"Data and weights", data_options,
                                             sizeof data_options / sizeof *data_options, .defaults = data_defaults};

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static void warn_of_names(cli_app *cli, int number, const char *in_data, const char *in_network, int length)
{
    cli_warn(cli,
             "class %d is \"%s\" in the data and \"%.*s\" in the network; the evaluation means something "
             "only where both are the same",
             number, in_data, length, in_network);
}

/* The number that a data set's class has in a list, by its label or synset; -1: none. */
static int known_number(const att_known_classes *known, const char *name)
{
    int c = known->count - 1;
    while (c >= 0 && strcmp(known->labels[c], name) != 0 && !(known->synsets && strcmp(known->synsets[c], name) == 0))
        c--;
    return c;
}

/* Says which class of the data has another number in the network's list. */
static void compare_known(cli_app *cli, const att_known_classes *known, const att_dataset *dataset)
{
    for (int c = 0; c < att_dataset_class_count(dataset); c++) {
        const char *name = att_dataset_class_name(dataset, c);
        int number = known_number(known, name);
        if (number >= 0 && number != c) {
            warn_of_names(cli, c, name, known->labels[c], (int)strlen(known->labels[c]));
            return;
        }
    }
}

/* Says which class has one name in the network's training and another in the data. Numbers are no names. */
static void compare_names(cli_app *cli, const cli_loaded *loaded, const att_dataset *dataset)
{
    const char *line = att_checkpoint_classes(loaded->file);
    for (int c = 0; line && *line && c < att_dataset_class_count(dataset); c++) {
        const char *name = att_dataset_class_name(dataset, c);
        size_t length = strcspn(line, "\n");
        if (!is_number(name) && (strlen(name) != length || strncmp(name, line, length) != 0)) {
            warn_of_names(cli, c, name, line, (int)length);
            return;
        }
        line += length + (line[length] != '\0');
    }
}

/* What CIFAR-100 has two of. */
static const char *coarse_advice(int network, int found)
{
    return network == 20 && found == 100   ? "--coarse-labels takes CIFAR-100's 20 superclasses, "
           : network == 100 && found == 20 ? "without --coarse-labels CIFAR-100 has 100 classes, "
                                           : "";
}

static bool numbers_agree(int network, const att_dataset *dataset)
{
    return att_dataset_class_count(dataset) == network || att_dataset_numbering(dataset) != ATT_NUMBERED_BY_FOLDERS;
}

bool cli_classes_fit(int network, const att_dataset *dataset)
{
    for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
        int32_t label = att_dataset_label(dataset, i);
        if (label < 0 || label >= network)
            return false;
    }
    return numbers_agree(network, dataset);
}

int cli_classes_check(int network, const att_dataset *dataset)
{
    if (numbers_agree(network, dataset))
        return CLI_OK;
    return cli_failure(
        "the network has %d class%s, the data %d, numbered by their sorted names: the evaluation would mean nothing; "
        "--class-map FILE gives the network's order",
        network, network == 1 ? "" : "es", att_dataset_class_count(dataset));
}

int cli_classes_compare(cli_app *cli, const cli_loaded *loaded, const att_dataset *dataset, bool refuses)
{
    int network = cli_identity_classes(loaded->identity), found = att_dataset_class_count(dataset);
    int code = refuses ? cli_classes_check(network, dataset) : CLI_OK;
    if (code != CLI_OK || att_dataset_numbering(dataset) == ATT_NUMBERED_BY_TRAINING)
        return code;
    const att_known_classes *known = att_checkpoint_known_classes(loaded->file, network);
    if (network == found && known)
        compare_known(cli, known, dataset);
    else if (network == found)
        compare_names(cli, loaded, dataset);
    else
        cli_note(
            cli,
            "the network has %d class%s, the data %d; the evaluation means something only where their numbers agree "
            "(%s--class-map)",
            network, network == 1 ? "" : "es", found, coarse_advice(network, found));
    return CLI_OK;
}

int cli_evaluation_load(cli_app *cli, const cli_evaluation *options, cli_loaded *loaded)
{
    const cli_evaluation_data *d = &options->data;
    return cli_load(cli, d->checkpoint,
                    &(cli_load_options){&options->network, &options->preprocess, &options->engine, d->use_ema}, loaded);
}

/* The images of all paths. */
static int open_images(cli_app *cli, const cli_evaluation_data *data, const att_dataset_options *options,
                       att_dataset **dataset)
{
    int count = 1 + data->more_count;
    if (data->class_map)
        return cli_usage("--class-map numbers the classes of one data set; of %d paths the images have none", count);
    const char **paths = calloc((size_t)count, sizeof *paths);
    if (!paths)
        return cli_failure("out of memory for a list of %d paths", count);
    paths[0] = data->data_dir;
    for (int i = 1; i < count; i++)
        paths[i] = data->more[i - 1];
    int code = cli_check(cli, att_dataset_open_images(cli->context, paths, count, options, dataset));
    free(paths);
    if (code == CLI_OK)
        cli_note(cli, "%lld image%s in %d paths, without classes", (long long)att_dataset_count(*dataset),
                 att_dataset_count(*dataset) == 1 ? "" : "s", count);
    return code;
}

int cli_evaluation_open(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, att_dataset **dataset)
{
    const cli_evaluation_data *d = &options->data;
    att_dataset_options asked = att_dataset_options_defaults();
    asked.split = d->split;
    asked.class_map = d->class_map;
    asked.coarse = d->coarse_labels;
    asked.unlabelled = d->unlabelled;
    if (d->cache_bytes > 0)
        asked.cache_bytes = (size_t)d->cache_bytes;
    cli_labels trained = {0};
    int code = cli_labels_take(att_checkpoint_classes(loaded->file), cli_identity_classes(loaded->identity), &trained);
    asked.trained = trained.count > 0 ? (const char *const *)trained.names : NULL;
    asked.trained_count = trained.count;
    const att_known_classes *known = att_checkpoint_known_classes(loaded->file, cli_identity_classes(loaded->identity));
    if (known && known->synsets) {
        asked.trained = known->synsets;
        asked.trained_count = known->count;
    }
    if (code == CLI_OK)
        code = d->more_count > 0 ? open_images(cli, d, &asked, dataset)
                                 : cli_dataset_open(cli, d->data_dir, &asked, dataset);
    cli_labels_free(&trained);
    if (code != CLI_OK)
        return code;
    cli_colours_say(cli, *dataset, loaded->identity->preprocess.in_chans);
    if (loaded->identity->preprocess.in_chans == 3 && cli_colours_of(cli, *dataset) == CLI_COLOURS_GREY)
        cli_note(cli, "the images are grey; the network takes colours and gets the same in each channel");
    return CLI_OK;
}

static att_status evaluate(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded,
                           const att_dataset *dataset, att_measure *measure, att_evaluation *result)
{
    cli_progress progress = cli_progress_to(cli, 1, 1);
    att_evaluate_options evaluate = att_evaluate_options_defaults();
    evaluate.batch_size = options->data.batch_size;
    evaluate.workers = options->data.workers;
    evaluate.skip_corrupt = options->data.skip_corrupt;
    evaluate.unlabelled = options->data.unlabelled;
    evaluate.measure = measure;
    evaluate.stage = measure ? "measure" : "evaluate";
    evaluate.progress = cli_progress_show;
    evaluate.progress_user = &progress;
    att_status status = att_network_evaluate(loaded->network, dataset, &evaluate, result);
    cli_bar_clear(cli);
    return status;
}

int cli_evaluate(cli_app *cli, const cli_evaluation *options, const cli_loaded *loaded, const att_dataset *dataset,
                 att_measure *measure, att_evaluation *result)
{
    att_status status = evaluate(cli, options, loaded, dataset, measure, result);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped before every image was seen; there is no result");
        return CLI_STOPPED;
    }
    int code = cli_check(cli, status);
    if (status == ATT_ERR_FORMAT && !options->data.skip_corrupt && att_dataset_count(dataset) > 1)
        cli_note(cli, "--skip-corrupt goes on without such images");
    if (code != CLI_OK)
        return code;
    if (result->not_finite > 0)
        return cli_failure("%s: the network answers with NaN or infinity; its weights are damaged",
                           options->data.checkpoint);
    if (result->corrupt > 0)
        cli_note(cli, "left out because they cannot be decoded or resized: %lld image%s", (long long)result->corrupt,
                 result->corrupt == 1 ? "" : "s");
    cli_note(cli, "%.1f images/s, %.0f %% of the time waiting for data", result->images_per_second,
             100 * result->wait_share);
    return CLI_OK;
}
