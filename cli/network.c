#include "network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "paths.h"

/* --- preprocessing ------------------------------------------------------------------------------------------------ */

void cli_json_preprocess(att_json_writer *writer, const att_preprocess *preprocess)
{
    cli_json_numbers(writer, "mean", preprocess->mean, preprocess->in_chans);
    cli_json_numbers(writer, "std", preprocess->std, preprocess->in_chans);
    att_json_put_number(writer, "crop_pct", preprocess->crop_pct);
    att_json_put_string(writer, "crop_mode", preprocess->crop_mode);
    att_json_put_string(writer, "interpolation", preprocess->interpolation);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

bool cli_has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void note_skipped(cli_app *cli, const att_tensors *file)
{
    if (*att_tensors_skipped(file))
        cli_note(cli, "%s: skipped, because the network does not use them: %s", att_tensors_path(file),
                 att_tensors_skipped(file));
}

int cli_tensors_open(cli_app *cli, const char *path, const char *network, att_tensors **file)
{
    int code = cli_check(cli, att_model_open_file_as(cli->context, path, network, file));
    if (code == CLI_OK)
        note_skipped(cli, *file);
    return code;
}

att_family_info cli_family_of(const att_identity *identity)
{
    return att_model_family_of(identity->name);
}

int cli_identity_classes(const att_identity *identity)
{
    return (int)att_options_number(&identity->options, "num_classes", 0);
}

char *cli_sides_text(int height, int width, char text[CLI_SIDES_TEXT])
{
    if (height == width)
        snprintf(text, CLI_SIDES_TEXT, "%d", height);
    else
        snprintf(text, CLI_SIDES_TEXT, "%dx%d", height, width);
    return text;
}

void cli_json_sides(att_json_writer *writer, const char *key, int height, int width)
{
    att_json_key(writer, key);
    if (height == width) {
        att_json_integer(writer, height);
        return;
    }
    att_json_begin_array(writer);
    att_json_integer(writer, height);
    att_json_integer(writer, width);
    att_json_end_array(writer);
}

void cli_json_option(att_json_writer *writer, const att_option *option, const att_option_values *values)
{
    const att_option_value *value = att_options_find(values, option->key);
    if (!value)
        return;
    if (option->kind == ATT_OPTION_TEXT)
        att_json_put_string(writer, option->key, value->text);
    else if (option->kind == ATT_OPTION_SIDES)
        cli_json_sides(writer, option->key, (int)value->numbers[0], (int)value->numbers[value->count - 1]);
    else if (option->kind == ATT_OPTION_REAL)
        att_json_put_number(writer, option->key, value->numbers[0]);
    else if (option->kind == ATT_OPTION_SWITCH) {
        att_json_put_bool(writer, option->key, value->numbers[0] != 0);
    } else {
        att_json_put_integer(writer, option->key, (int64_t)value->numbers[0]);
    }
}

int cli_model_check(cli_app *cli, const char *name)
{
    att_network_name found;
    int code = cli_check(cli, att_model_resolve(cli->context, name, &found));
    if (code == CLI_OK && found.deprecated)
        cli_note(cli, "%s is timm's deprecated name of %s%s%s", name, found.network, *found.tag ? "." : "", found.tag);
    return code == CLI_OK ? CLI_OK : CLI_USAGE;
}

int cli_identity_check(cli_app *cli, const char *name, att_status status)
{
    att_network_name found;
    int code = cli_check(cli, status);
    if (status == ATT_ERR_NOT_FOUND && !name)
        cli_say("name the network with --model NAME; attscope models lists the names");
    return code != CLI_OK && name && att_model_resolve(cli->context, name, &found) != ATT_OK ? CLI_USAGE : code;
}

/* Notes that images have the size and crop of timm's validate.py. */
static void note_test_images(cli_app *cli, const att_recipe_preprocess *flags, const att_network *network)
{
    const att_preprocess trained = att_network_trained_preprocess(network);
    const att_preprocess *used = &att_network_identity(network)->preprocess;
    double crop = flags->crop_pct > 0 ? trained.crop_pct : used->crop_pct;
    char size[CLI_SIDES_TEXT], own_size[CLI_SIDES_TEXT];
    if (used->height != trained.height || used->width != trained.width || crop != trained.crop_pct)
        cli_note(cli,
                 "%s: evaluated at %s pixels, crop %g, as timm's validate.py does with these weights; "
                 "--use-train-size uses %s pixels, crop %g",
                 att_network_path(network), cli_sides_text(used->height, used->width, size), crop,
                 cli_sides_text(trained.height, trained.width, own_size), trained.crop_pct);
}

int cli_preprocess_apply(cli_app *cli, const att_recipe_preprocess *flags, att_network *network)
{
    const att_identity identity = *att_network_identity(network);
    att_preprocess used = identity.preprocess;
    char text[ATT_IDENTITY_DESCRIPTION];
    int code = cli_check(cli, att_recipe_preprocess_apply(cli->context, flags, &used));
    if (code != CLI_OK)
        return code;
    cli_note(cli, "the %s: %s", att_network_file(network) ? "checkpoint" : "network",
             att_identity_describe(cli->context, &identity, &used, text));
    const bool images = used.in_chans > 0 || memcmp(&used, &identity.preprocess, sizeof used) != 0;
    return images ? cli_check(cli, att_network_set_preprocess(network, &used)) : CLI_OK;
}

/* Notes that --modules gives other modules than the checkpoint has. */
static void note_modules(cli_app *cli, const cli_load_options *options, const att_network *network)
{
    const char *given = att_options_text(&options->network->options, "modules");
    att_option_values others = options->network->options;
    att_identity own;
    att_options_unset(&others, "modules");
    if (*given && att_model_identify(cli->context, att_network_file(network), att_network_path(network),
                                     options->network->model, &others, &own) == ATT_OK) {
        const char *stored = att_options_text(&own.options, "modules");
        if (*stored && strcmp(stored, att_options_text(&att_network_identity(network)->options, "modules")) != 0)
            cli_note(cli, "--modules %s replaces the modules of the checkpoint: %s", given, stored);
    }
}

/* Notes that the file has averaged weights, which the training evaluated. */
static void note_average(cli_app *cli, const att_network *network)
{
    att_checkpoint_info info;
    if (att_checkpoint_describe(cli->context, att_network_file(network), &info) == ATT_OK && info.ema)
        cli_note(cli, "%s also has averaged weights, which its training evaluated: --use-ema uses them",
                 att_network_path(network));
}

static int open_network(cli_app *cli, const char *path, const cli_load_options *options, att_network **network)
{
    att_network_options network_options = att_network_options_defaults();
    network_options.model = options->network->model;
    network_options.options = &options->network->options;
    network_options.averaged = options->averaged;
    network_options.test_images = options->test_images;
    network_options.dtype = options->dtype;
    network_options.seed = (uint64_t)options->init_seed;
    network_options.backend = options->engine->backend;
    network_options.precision = att_recipe_precision(options->engine);
    att_status status = att_network_open(cli->context, path, &network_options, network);
    int code = cli_identity_check(cli, network_options.model, status);
    if (status == ATT_ERR_UNSUPPORTED && network_options.test_images)
        cli_note(cli, "--use-train-size uses the image size that the weights were trained with");
    return code;
}

int cli_checkpoint_check(const char *flag, const char *checkpoint)
{
    return checkpoint && !cli_exists(checkpoint) && (att_tensors_exist(checkpoint) || att_hub_is_name(checkpoint))
               ? CLI_OK
               : cli_file_check(flag, checkpoint);
}

int cli_checkpoint_locate(cli_app *cli, const char *checkpoint, char path[CLI_PATH])
{
    struct stat found;
    if (lstat(checkpoint, &found) != 0 && !att_tensors_exist(checkpoint) && !att_hub_is_name(checkpoint))
        return cli_failure("%s: %s", checkpoint, strerror(ENOENT));
    int code = cli_check(cli, att_network_find_file(cli->context, checkpoint, path, CLI_PATH));
    if (code == CLI_OK && cli_exists(checkpoint) && strcmp(checkpoint, path) != 0) {
        const char *name = path + strlen(checkpoint);
        cli_note(cli, "%s is a folder; using its %s", checkpoint, name + strspn(name, "/"));
    }
    return code;
}

/* --- passes over photographs -------------------------------------------------------------------------------------- */

static const att_flag pass_options[] = {
    {"img-scale", .kind = ATT_FLAG_PAIR, .value = "N N",
     .help = "longer and shorter side that a photograph is resized to, with its aspect ratio; default: those of the "
             "network's images",
     ATT_FLAG_AT(cli_passes, img_scale), .low = 1, .high = 16384, .open = true},
    {"stride", .kind = ATT_FLAG_INTS, .value = "N...",
     .help = "cut the photograph into overlapping windows of the size of the network's images (--img-size), each N "
             "pixels from the one before, and average their logits; two numbers: rows and columns; without it, the "
             "whole photograph is one image",
     ATT_FLAG_AT(cli_passes, stride), .count_offset = offsetof(cli_passes, stride_count), .low = 1, .high = 16384,
     .most = 2},
    {"scales", .kind = ATT_FLAG_REALS, .value = "X...",
     .help = "factors of --img-scale; probabilities are averaged over them: 0.5 0.75 1 1.25 1.5 1.75",
     ATT_FLAG_AT(cli_passes, scales), .low = 1e-2, .high = 100, .most = ATT_MOST_SCALES},
    {"flips", .kind = ATT_FLAG_SWITCH, .help = "see the photograph mirrored, too, and average the probabilities",
     ATT_FLAG_AT(cli_passes, flips)},
};

const att_flag_group cli_group_passes = {.title = "Passes over a photograph (networks that give each pixel a class)",
                                         .rows = pass_options,
                                         .row_count = sizeof pass_options / sizeof *pass_options};

static att_pass_options take_passes(const cli_passes *given)
{
    att_pass_options options = {.longer = (int)given->img_scale[0],
                                .shorter = (int)given->img_scale[1],
                                .scale_count = given->scales.count,
                                .flips = given->flips,
                                .batch_size = given->batch_size};
    for (int i = 0; i < given->stride_count; i++)
        options.stride[i] = options.stride[1] = given->stride[i];
    for (int i = 0; i < given->scales.count; i++)
        options.scales[i] = given->scales.values[i];
    return options;
}

static int set_passes(cli_app *cli, const cli_passes *given, att_network *network)
{
    const att_pass_options options = take_passes(given);
    if (options.longer != given->img_scale[0] || options.shorter != given->img_scale[1])
        return cli_usage("--img-scale %g %g: expected whole numbers, the longer side first", given->img_scale[0],
                         given->img_scale[1]);
    return cli_check(cli, att_network_set_passes(network, &options));
}

static void put_numbers(att_json_writer *writer, const char *key, const double *values, int count)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < count; i++)
        att_json_number(writer, values[i]);
    att_json_end_array(writer);
}

void cli_json_passes(att_json_writer *writer, const cli_passes *given)
{
    const att_pass_options options = take_passes(given);
    const double stride[] = {options.stride[0], options.stride[1]};
    if (options.longer > 0)
        put_numbers(writer, "img_scale", given->img_scale, 2);
    if (options.stride[0] > 0)
        put_numbers(writer, "stride", stride, 2);
    if (options.scale_count > 0)
        put_numbers(writer, "scales", options.scales, options.scale_count);
    if (options.flips)
        att_json_put_bool(writer, "flips", true);
}

static void print_sizes(const att_pass_options *options, const att_preprocess *images)
{
    const char *limit = options->longer > 0 ? ", its sides" : "";
    if (options->stride[0] > 0)
        cli_print("windows of %d x %d pixels of the photograph, stride %d x %d%s", images->height, images->width,
                  options->stride[0], options->stride[1], limit);
    else
        cli_print("the whole photograph%s", limit);
    if (options->longer > 0)
        cli_print(" at most %d and %d pixels", options->longer, options->shorter);
}

void cli_passes_print(const cli_passes *given, const att_preprocess *images)
{
    const att_pass_options options = take_passes(given);
    const int scales = options.scale_count > 0 ? options.scale_count : 1, passes = scales * (options.flips ? 2 : 1);
    cli_print("  %d pass%s: ", passes, passes == 1 ? "" : "es");
    if (options.longer > 0 || options.stride[0] > 0 || options.scale_count > 0 || options.flips)
        print_sizes(&options, images);
    else
        cli_print("one image of %d x %d pixels, --crop-mode %s --crop-pct %g", images->height, images->width,
                  images->crop_mode, images->crop_pct);
    for (int i = 0; i < options.scale_count; i++)
        cli_print("%s%g", i == 0 ? ", scales " : " ", options.scales[i]);
    cli_print("%s\n", options.flips ? ", each also mirrored" : "");
}

bool cli_is_network(cli_app *cli, const char *checkpoint)
{
    att_network_name found;
    return !cli_exists(checkpoint) && !att_tensors_exist(checkpoint) && !att_hub_is_name(checkpoint) &&
           att_model_resolve(cli->context, checkpoint, &found) == ATT_OK;
}

/* Writes what att_network_open() opens. */
static int locate_network(cli_app *cli, const char *checkpoint, const cli_load_options *options, char path[CLI_PATH])
{
    if (options->init_seed == 0 || !cli_is_network(cli, checkpoint))
        return cli_checkpoint_locate(cli, checkpoint, path);
    if (options->network->model)
        return cli_usage("--model %s: %s is already the name of a network; leave out one of both",
                         options->network->model, checkpoint);
    snprintf(path, CLI_PATH, "%s", checkpoint);
    return CLI_OK;
}

/* Notes what the file holds beside the weights that are used. */
static void note_file(cli_app *cli, const cli_load_options *options, const att_network *network)
{
    note_modules(cli, options, network);
    if (!options->averaged)
        note_average(cli, network);
}

int cli_load(cli_app *cli, const char *checkpoint, const cli_load_options *options, cli_loaded *loaded)
{
    char path[CLI_PATH];
    int code = locate_network(cli, checkpoint, options, path);
    if (code == CLI_OK)
        code = open_network(cli, path, options, &loaded->network);
    if (code != CLI_OK)
        return code;
    att_network *network = loaded->network;
    loaded->file = att_network_file(network);
    loaded->model = att_network_model(network);
    loaded->identity = att_network_identity(network);
    if (loaded->file)
        note_skipped(cli, loaded->file);
    if (options->test_images)
        note_test_images(cli, options->preprocess, network);
    code = cli_preprocess_apply(cli, options->preprocess, network);
    if (code == CLI_OK && options->passes)
        code = set_passes(cli, options->passes, network);
    if (code == CLI_OK && loaded->file)
        note_file(cli, options, network);
    return code;
}

void cli_unload(cli_loaded *loaded)
{
    att_network_close(&loaded->network);
}

int cli_classes_name(cli_app *cli, att_network *network, const char *labels)
{
    const char *known = att_network_known_classes(network);
    if (labels)
        return cli_check(cli, att_network_name_classes(network, labels));
    if (known)
        cli_note(cli, "the class names are those of %s; --labels NAME sets others", known);
    else if (!att_network_class_name(network, 0))
        cli_note(cli, "the names of the classes are not known; --labels, a file or a name such as cifar10, sets them");
    return CLI_OK;
}
