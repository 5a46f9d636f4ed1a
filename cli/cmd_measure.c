/* attscope measure: observes attention and residual steps of a checkpoint on a data set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/lab/measuring.h>

#include "evaluation.h"
#include "paths.h"
#include "processes.h"
#include "progress.h"
#include "show_figures.h"
#include "stop.h"
#include "texts.h"

typedef struct settings {
    att_measuring_options options;
    bool f64, brief;
    const char *labels; /* NULL if not given */
    cli_text_options texts;
    cli_evaluation on;
    cli_processes processes;
    cli_output output;
    const char *const *more; /* further image paths; not a flag */
    int more_count;
} settings;

typedef struct job {
    cli_app *cli;
    settings *settings;
    const char **paths; /* paths of images */
    cli_loaded loaded;
    char checkpoint[CLI_PATH]; /* path of the checkpoint's file */
    att_measured found;
    att_token_texts texts;
} job;

static const att_flag instrument_options[] = {
    {"with", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "all",
     .help = "instruments, separated by commas, with options after a colon; all: all instruments except those above "
             "with \"only if named\", which multiply the cost of a run or show more detail; -NAME: without this one; "
             "only -NAME: all others",
     .choice = att_choose_instrument, .advisory = true, .empty = true, ATT_FLAG_AT(settings, options.with)},
    {"budget", .kind = ATT_FLAG_REAL, .value = "SECONDS",
     .help = "also measure the costly instruments of the four views (step size, convolution, rank, uniform), in the "
             "order below, as far as this time is enough for them",
     ATT_FLAG_AT(settings, options.budget), .low = 0, .high = 1e9},
    {"limit", .kind = ATT_FLAG_LONG, .value = "N", .help = "measure N images or texts, evenly spread over DATA; 0: all",
     ATT_FLAG_AT(settings, options.limit), .low = 0, .high = 1e15},
    {"nodes", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "*",
     .help = "only nodes whose names match: names, which may contain * and ?, separated by commas, such as "
             "'blocks.*.attn' or 'blocks.1.*,blocks.2.*'",
     ATT_FLAG_AT(settings, options.nodes)},
    {"maps", .kind = ATT_FLAG_INT, .value = "K",
     .help = "record the attention maps of the first K images; cannot be combined with --map-images",
     ATT_FLAG_AT(settings, options.maps), .low = 0, .high = 65536},
    {"map-images", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help =
         "record the attention maps of these images instead: names, or numbers from 0, separated by commas ('\\,' is a "
         "comma in a name); '*' and '?' are wildcards in names",
     ATT_FLAG_AT(settings, options.map_images)},
    {"samples", .kind = ATT_FLAG_INT, .value = "K",
     .help = "also record the figures of each of the first K images (nsi, tns); the report draws histograms of them, "
             "and of nsi one line per image along the network",
     ATT_FLAG_AT(settings, options.samples), .low = 0, .high = ATT_MEASURE_MOST_SAMPLES},
    {"raw", .kind = ATT_FLAG_TEXT, .value = "PATH",
     .help = "also write values of each image: NAME.safetensors, NAME.npy (one array), or a folder of .npy files with "
             "an index (FOLDER/)",
     ATT_FLAG_AT(settings, options.raw)},
    {"raw-arrays", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "what --raw writes: zeta (NSI of each residual addition), rows (entropy and other statistics of each row "
             "of the attention maps), weights (the maps; large); default: zeta,rows",
     ATT_FLAG_AT(settings, options.raw_arrays)},
    {"f64", .kind = ATT_FLAG_SWITCH,
     .help =
         "run the network in double precision, for figures below the rounding of single precision, such as those of "
         "collapse; many times slower, and without maps",
     ATT_FLAG_AT(settings, f64)},
    {"brief", .kind = ATT_FLAG_SWITCH,
     .help = "print figures without their explanations (formula, source, reading, scale)",
     ATT_FLAG_AT(settings, brief)},
    {"init-seed", .kind = ATT_FLAG_INT, .value = "N",
     .help = "measure the network at initialisation: its weights are drawn anew from this seed; the records go to "
             "OUTPUT/NAME-init-N; CHECKPOINT can then be the name of a network (attscope models)",
     ATT_FLAG_AT(settings, options.init_seed), .low = 1, .high = 1000000000, .open = true},
    {"labels", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "for maps: " CLI_LABELS_HELP,
     ATT_FLAG_AT(settings, labels)},
};

static const att_flag_group instrument_group = {.title = "Instruments",
                                                .rows = instrument_options,
                                                .row_count = sizeof instrument_options / sizeof *instrument_options};

static const att_flag file_options[] = {
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER",
     .help = "parent folder of runs; without it, the records go to the checkpoint's folder if that is a run's",
     ATT_FLAG_AT(settings, options.output)},
    {"experiment", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "folder within --output; without it, the name of the checkpoint's file, or of its folder if the file is "
             "called model, pytorch_model or similar, or is last or model_best of a run",
     ATT_FLAG_AT(settings, options.experiment)},
};

static const att_flag_group file_group = {"Files", .rows = file_options,
                                          .row_count = sizeof file_options / sizeof *file_options};

static const att_flag_use uses[] = {
    {&instrument_group, 0},
    {&cli_group_texts, offsetof(settings, texts)},
    {&cli_group_evaluation_data, offsetof(settings, on.data)},
    {&att_recipe_network_group, offsetof(settings, on.network)},
    {&att_recipe_preprocess_group, offsetof(settings, on.preprocess)},
    {&att_recipe_engine_group, offsetof(settings, on.engine)},
    {&cli_group_processes, offsetof(settings, processes)},
    {&file_group, 0},
    {&cli_group_output, offsetof(settings, output)},
};

/* --- options ------------------------------------------------------------------------------------------------------ */

static bool wants_maps(const settings *s)
{
    return s->options.maps > 0 || s->options.map_images;
}

/* Draws no progress bar for maps, because there are maps of only a few images. */
static bool show_progress(void *user, const att_progress *progress)
{
    return strcmp(progress->stage, "maps") == 0 ? !cli_stop_asked() : cli_progress_show(user, progress);
}

/* The flags of the data are those of attscope validate, too. */
static void take_data_options(settings *s)
{
    const cli_evaluation_data *d = &s->on.data;
    att_measuring_options *options = &s->options;
    options->split = d->split;
    options->class_map = d->class_map;
    options->coarse_labels = d->coarse_labels;
    options->reduce_zero_label = d->reduce_zero_label;
    options->ignore_label = d->ignore_label;
    options->cache_bytes = d->cache_bytes > 0 ? (size_t)d->cache_bytes : att_measuring_options_defaults().cache_bytes;
    options->batch_size = d->batch_size;
    options->workers = d->workers;
    options->skip_corrupt = d->skip_corrupt;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void write_found(att_json_writer *writer, const void *from)
{
    const job *j = from;
    const att_measured *found = &j->found;
    const int more = j->settings->more_count;
    char data[CLI_PATH];
    snprintf(data, sizeof data, more > 0 ? "%s and %d more" : "%s", j->settings->on.data.data_dir, more);
    att_json_put_string(writer, "model", j->loaded.identity->name);
    att_json_put_string(writer, "checkpoint", j->checkpoint);
    att_json_put_string(writer, "data", data);
    att_json_put_string(writer, "split", found->split);
    att_json_put_string(writer, "folder", *found->folder ? found->folder : NULL);
    att_json_put_integer(writer, "images", found->evaluation.count);
    att_json_put_integer(writer, "corrupt", found->evaluation.corrupt);
    att_json_put_number(writer, "images_per_second", found->evaluation.images_per_second);
    cli_figures_json(writer, found->measure, false);
}

/* Shows the figures. code: result of the measurement; the figures exist even if writing records failed. */
static int show(const job *j, int code)
{
    const char *json = j->settings->output.json;
    cli_evaluation_say(j->cli, &j->found.evaluation);
    int written = code == CLI_OK || code == CLI_STOPPED ? cli_json_save(j->cli, json, write_found, j) : CLI_OK;
    if (cli_prints(json)) {
        cli_figures_print(j->found.measure, j->settings->brief, false);
        if (*j->found.folder && code == CLI_OK)
            cli_print("\n%s\n", j->found.folder);
    }
    return code != CLI_OK ? code : written;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int measure(job *j)
{
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_measuring_options *options = &j->settings->options;
    options->comm = j->cli->comm;
    options->progress = show_progress;
    options->progress_user = &progress;
    int code = cli_check(
        j->cli, att_measure_checkpoint(j->loaded.network, j->paths, 1 + j->settings->more_count, options, &j->found));
    cli_bar_clear(j->cli);
    return j->found.measure ? show(j, code) : code;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void write_text_figures(att_json_writer *writer, const void *from)
{
    const job *j = from;
    att_json_put_string(writer, "model", j->loaded.identity->name);
    att_json_put_string(writer, "checkpoint", j->checkpoint);
    att_json_put_string(writer, "data", j->settings->on.data.data_dir);
    att_json_put_integer(writer, "texts", j->texts.count);
    att_json_put_integer(writer, "shortened", j->texts.shortened);
    cli_figures_json(writer, j->found.measure, true);
}

/* Flags that have no effect on texts are refused. */
static int check_texts(const job *j)
{
    const settings *s = j->settings;
    const struct {
        const char *flag;
        bool given;
    } flags[] = {{"--maps", s->options.maps > 0},         {"--map-images", s->options.map_images},
                 {"--samples", s->options.samples > 0},   {"--raw", s->options.raw},
                 {"--raw-arrays", s->options.raw_arrays}, {"--labels", s->labels},
                 {"--budget", s->options.budget > 0},     {"--output", s->options.output},
                 {"--experiment", s->options.experiment}, {"a second path", s->more_count > 0}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].given)
            return cli_usage("measure: %s is for images; %s is a network for texts, whose figures are printed only",
                             flags[i].flag, j->loaded.identity->name);
    return att_comm_size(j->cli->comm) > 1 ? cli_usage("measure: texts are measured in one process") : CLI_OK;
}

static int observe_texts(job *j, const att_texts_options *how)
{
    const settings *s = j->settings;
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_texts_options options = *how;
    options.progress = show_progress;
    options.progress_user = &progress;
    int code = CLI_OK;
    if (s->options.init_seed > 0)
        code = cli_check(
            j->cli, att_weights_initialise(att_network_weights(j->loaded.network), (uint64_t)s->options.init_seed));
    if (code == CLI_OK)
        code = cli_check(j->cli,
                         att_network_measure_texts(j->loaded.network, j->texts.texts, j->texts.count, s->options.with,
                                                   s->options.nodes, &options, &j->found.measure));
    cli_bar_clear(j->cli);
    return code;
}

static int measure_texts(job *j)
{
    const settings *s = j->settings, *usual = att_flags_defaults(j->cli->flags);
    att_texts_options options = att_texts_options_defaults();
    int code = check_texts(j);
    if (code == CLI_OK)
        code = cli_texts_take(&j->loaded, &s->on.data, &usual->on.data, &options);
    if (code == CLI_OK)
        code = cli_texts_read(j->cli, &j->loaded, s->on.data.data_dir, &s->texts, s->options.limit, &j->texts);
    if (code == CLI_OK)
        code = observe_texts(j, &options);
    if (code == CLI_OK)
        code = cli_json_save(j->cli, s->output.json, write_text_figures, j);
    if (code == CLI_OK && cli_prints(s->output.json))
        cli_figures_print(j->found.measure, s->brief, true);
    return code;
}

/* Sets the class names before the work, so that a mismatch fails early. */
static int name_classes(const job *j)
{
    const char *labels = j->settings->labels;
    return labels || wants_maps(j->settings) ? cli_classes_name(j->cli, j->loaded.network, labels) : CLI_OK;
}

static int measure_images(job *j)
{
    int code = cli_texts_refuse(&j->loaded, &j->settings->texts);
    if (code == CLI_OK)
        code = name_classes(j);
    return code == CLI_OK ? measure(j) : code;
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

/* Reads the operands: CHECKPOINT and DATA, unless flags gave them, then more paths of images. */
static int read_operands(settings *s, const char *const *operands, int count)
{
    cli_evaluation_data *d = &s->on.data;
    const bool data_given = d->data_dir;
    int used;
    const int code = cli_evaluation_operands("measure", d, operands, count, &used);
    if (code != CLI_OK)
        return code;
    if (used < count && data_given)
        return cli_usage("measure: \"%s\" is one operand too many; see attscope measure --help", operands[used]);
    if (cli_is_checkpoint(d->data_dir))
        return cli_usage("measure takes one checkpoint at a time, and the operand after it, %s, is a checkpoint, too",
                         d->data_dir);
    s->more = operands + used;
    s->more_count = count - used;
    return CLI_OK;
}

static int check_precision(settings *s)
{
    int code = cli_evaluation_precision("measure", s->f64, &s->on);
    if (code == CLI_OK && s->f64 && wants_maps(s))
        return cli_usage(
            "measure: maps are recorded in single precision; leave out --f64, or measure maps on their own");
    return code;
}

/* Writes the path of the checkpoint's file, or the name of a network whose weights are drawn. */
static int locate(job *j)
{
    settings *s = j->settings;
    const char *checkpoint = s->on.data.checkpoint;
    s->on.init_seed = s->options.init_seed;
    if (!cli_is_network(j->cli, checkpoint))
        return cli_checkpoint_locate(j->cli, checkpoint, j->checkpoint);
    if (s->on.init_seed == 0)
        return cli_usage(
            "measure: %s is the name of a network, without weights: give a checkpoint, or --init-seed N "
            "for random weights",
            checkpoint);
    snprintf(j->checkpoint, sizeof j->checkpoint, "%s", checkpoint);
    return CLI_OK;
}

/* Checks the arguments before anything is read. */
static int check(job *j)
{
    settings *s = j->settings;
    const cli_named_output outputs[] = {{"--json", s->output.json, false}, {"--raw", s->options.raw, true}};
    int code = check_precision(s);
    if (code == CLI_OK)
        code = cli_engine_open(j->cli, &s->on.engine);
    if (code == CLI_OK)
        code = cli_processes_open(j->cli, &s->processes);
    if (code == CLI_OK)
        code = cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
    if (code == CLI_OK)
        code = *s->options.with ? cli_instruments_check(j->cli, s->options.with)
                                : cli_usage("--with: no instrument is named; expected names, or all");
    if (code == CLI_OK)
        code = cli_file_check("--class-map", s->on.data.class_map);
    if (code == CLI_OK)
        code = locate(j);
    if (code != CLI_OK)
        return code;
    return cli_check(j->cli, att_measuring_check(j->cli->context, j->checkpoint, 1 + s->more_count, &s->options));
}

static int list_paths(job *j)
{
    const settings *s = j->settings;
    j->paths = calloc((size_t)s->more_count + 1, sizeof *j->paths);
    if (!j->paths)
        return cli_failure("out of memory for a list of %d paths", s->more_count + 1);
    j->paths[0] = s->on.data.data_dir;
    for (int i = 0; i < s->more_count; i++)
        j->paths[i + 1] = s->more[i];
    return CLI_OK;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    int code = read_operands(s, operands, count);
    take_data_options(s);
    if (code == CLI_OK)
        code = check(&j);
    s->on.data.checkpoint = j.checkpoint;
    if (code == CLI_OK)
        code = list_paths(&j);
    if (code == CLI_OK)
        code = cli_evaluation_load(cli, &s->on, &j.loaded);
    if (code == CLI_OK)
        code = cli_takes_texts(&j.loaded) ? measure_texts(&j) : measure_images(&j);
    if (cli->context)
        att_token_texts_free(cli->context, &j.texts);
    att_measured_free(&j.found);
    cli_unload(&j.loaded);
    free(j.paths);
    return code;
}

const cli_command cli_command_measure = {
    .name = "measure",
    .summary = "measures what attention in a checkpoint does on a data set",
    .operands = "CHECKPOINT DATA...",
    .most_operands = 1000000,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "Runs CHECKPOINT on every image of DATA and prints a table for each instrument:\n"
    "for each node of the network the mean over images, the standard deviation\n"
    "between images (n - 1), the number of images n, and the mean of each head. For\n"
    "accuracy and loss, the standard error of the mean, deviation / sqrt(n), replaces\n"
    "the deviation.\n" CLI_DATA_HELP
    "\n\n"
    "For a network for texts DATA is a file of texts in UTF-8, one a line. Padding is\n"
    "in no figure: texts of one length run together.\n\n"
    "DATA can also be one or more image files, folders and archives. Their images are\n"
    "measured without classes and masks, in the order of the paths.\n\n"
    "Instruments only observe: the network's results are the same, bit by bit. The\n"
    "records are written to measure.jsonl in the checkpoint's folder if that is a\n"
    "run's, or in OUTPUT/EXPERIMENT; maps to maps.safetensors in the same folder; and\n"
    "the figures to the database of all runs, OUTPUT/runs.sqlite.",
    .example =
        "  attscope measure output/first/model_best.safetensors \\\n"
        "      /usr/share/datasets/fashion-mnist --with entropy,nsi --maps 8\n"
        "  attscope measure deit_tiny_patch16_224.safetensors imagenet/val \\\n"
        "      --model deit_tiny_patch16_224 --output output\n"
        "  attscope measure output/first/last.safetensors cat.jpg dogs/ \\\n"
        "      --map-images cat.jpg",
    .explain = cli_instruments_list,
    .more = "instruments",
    .explain_more = cli_figures_explain,
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .processes = true,
    .run = run,
};
