/* attscope measure: what attention and residual steps of a checkpoint do on a data set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <attscope/lab/runs.h>

#include "choose.h"
#include "evaluation.h"
#include "figures.h"
#include "paths.h"
#include "stop.h"

typedef struct instruments {
    const char *with, *nodes, *map_images;
    int maps, samples;
    const char *labels; /* NULL: not given */
} instruments;

typedef struct files {
    const char *output, *experiment;
} files;

typedef struct settings {
    instruments instruments;
    cli_evaluation on;
    files files;
    cli_output output;
} settings;

typedef struct job {
    cli_app *cli;
    settings *settings;
    cli_loaded loaded;
    att_dataset *dataset;
    cli_choice chosen; /* images with maps, where they are named */
    att_measure *measure;
    att_checkpoint_info stood; /* where the checkpoint's training stood */
    char checkpoint[CLI_PATH]; /* where that was named by its folder */
    char folder[CLI_PATH];     /* for what is found; "": it is printed only */
    bool folder_is_new;
    att_sink records;                    /* open where there is a folder */
    char with[CLI_PATH];                 /* the instruments at work */
    char weights[ATT_WEIGHTS_DIGEST];    /* what is measured, */
    char contents[ATT_DATASET_CONTENTS]; /* and on which images */
    int64_t images;                      /* that were measured */
    struct timespec begun;
} job;

static const cli_option instrument_options[] = {
    {"with", .kind = CLI_TEXT, .value = "LIST",
     .help = "instruments, by commas, options behind a colon; all: every one; -NAME: not that, alone: all but that",
     .choice = cli_choice_instrument, .advisory = true, CLI_AT(instruments, with)},
    {"nodes", .kind = CLI_TEXT, .value = "PATTERN",
     .help = "only nodes whose name fits, as in 'blocks.*.attn' or 'blocks.1?*'", CLI_AT(instruments, nodes)},
    {"maps", .kind = CLI_INT, .value = "K",
     .help = "keep the attention maps of the first K images; not together with --map-images", CLI_AT(instruments, maps),
     .low = 0, .high = 65536},
    {"map-images", .kind = CLI_TEXT, .value = "LIST",
     .help =
         "keep the attention maps of these images instead: names or numbers from 0, by commas ('\\,' is a comma in a "
         "name); '*' and '?' match any characters in names",
     CLI_AT(instruments, map_images)},
    {"samples", .kind = CLI_INT, .value = "K",
     .help =
         "keep figures of each of the first K images as well, of instruments that have a trajectory along the network "
         "(nsi): the report draws a line for each",
     CLI_AT(instruments, samples), .low = 0, .high = ATT_MEASURE_MOST_SAMPLES},
    {"labels", .kind = CLI_TEXT, .value = "NAME", .help = "of maps: " CLI_LABELS_HELP, CLI_AT(instruments, labels)},
};

static void instrument_defaults(void *values)
{
    instruments *i = values;
    i->with = "all";
    i->nodes = "*";
}

static const cli_group instrument_group = {"Instruments", instrument_options,
                                           sizeof instrument_options / sizeof *instrument_options,
                                           .defaults = instrument_defaults};

static const cli_option file_options[] = {
    {"output", .kind = CLI_TEXT, .value = "FOLDER",
     .help = "where runs lie; without it the checkpoint's folder takes the records, if it is a run's",
     CLI_AT(files, output)},
    {"experiment", .kind = CLI_TEXT, .value = "NAME",
     .help =
         "the folder in there; without it named as the checkpoint's file, or as its folder where the file is called "
         "model, pytorch_model or the like",
     CLI_AT(files, experiment)},
};

static const cli_group file_group = {"Files", .options = file_options,
                                     .count = sizeof file_options / sizeof *file_options};

static const cli_use uses[] = {
    {&instrument_group, offsetof(settings, instruments)}, {&cli_group_evaluation_data, offsetof(settings, on.data)},
    {&cli_group_network, offsetof(settings, on.network)}, {&cli_group_preprocess, offsetof(settings, on.preprocess)},
    {&cli_group_engine, offsetof(settings, on.engine)},   {&file_group, offsetof(settings, files)},
    {&cli_group_output, offsetof(settings, output)},
};

static bool wants_maps(const settings *s)
{
    return s->instruments.maps > 0 || s->instruments.map_images;
}

/* --- where the records go ----------------------------------------------------------------------------------------- */

/* "deit_tiny" of "weights/deit_tiny.safetensors" */
static void stem_of(const char *checkpoint, char *name, size_t size)
{
    const char *slash = strrchr(checkpoint, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : checkpoint);
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
}

/* Whether files of many networks have this name, in a folder for each. */
static bool is_common(const char *stem)
{
    static const char *const common[] = {"model", "pytorch_model", "open_clip_model", "open_clip_pytorch_model",
                                         "weights"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(stem, common[i]) == 0)
            return true;
    return false;
}

/* "deit_tiny" of "weights/deit_tiny.safetensors" and of "deit_tiny/model.safetensors" */
static void name_of(const char *checkpoint, char *name, size_t size)
{
    char folder[CLI_PATH];
    stem_of(checkpoint, name, size);
    char *whole = is_common(name) ? realpath(cli_folder_of(checkpoint, folder, sizeof folder), NULL) : NULL;
    const char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash && slash[1])
        snprintf(name, size, "%s", slash + 1);
    free(whole);
}

static int settle_folder(job *j)
{
    const files *f = &j->settings->files;
    const char *checkpoint = j->settings->on.data.checkpoint;
    char name[256];
    name_of(checkpoint, name, sizeof name);
    const att_run_place place = {.output = f->output, .experiment = f->experiment};
    int code = cli_check(j->cli, att_run_place_check(j->cli->context, &place));
    if (code != CLI_OK)
        return code;
    if (f->output)
        cli_join(f->output, f->experiment ? f->experiment : name, j->folder, sizeof j->folder);
    else if (f->experiment)
        return cli_usage("--experiment names a folder in --output FOLDER, which is missing");
    else if (!att_run_is_folder(cli_folder_of(checkpoint, j->folder, sizeof j->folder)))
        *j->folder = '\0';
    if (f->output && !*j->folder)
        return cli_usage("\"%.64s...\" is longer than a path may be", f->output);
    if (wants_maps(j->settings) && !*j->folder)
        return cli_usage("maps need --output FOLDER: %s does not lie in a run's folder", checkpoint);
    return CLI_OK;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static const char *split_of(const job *j)
{
    const char *split = att_dataset_split(j->dataset);
    return *split ? split : "all";
}

static double seconds_since(const struct timespec *begun)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun->tv_sec) + 1e-9 * (double)(now.tv_nsec - begun->tv_nsec);
}

static att_status emit(const job *j, att_event_kind kind, const att_event_field *fields, int count)
{
    att_event event = {.kind = kind,
                       .epoch = j->stood.epoch,
                       .step = j->stood.update,
                       .seconds = seconds_since(&j->begun),
                       .fields = fields,
                       .field_count = count};
    if (kind == ATT_EVENT_MEASURE) {
        event.measurements = att_measure_observed(j->measure, &event.measurement_count);
    }
    return j->records.emit(j->records.user, &event);
}

static const char *number_text(double value, char text[24])
{
    snprintf(text, 24, "%.9g", value);
    return text;
}

enum { NETWORK_FIELDS = ATT_MOST_OPTIONS + 2 };

/* The options of the network, called as those of a training are, and what attention has. Returns how many; texts lie in
 * `texts`. */
static int put_network(const job *j, att_event_field fields[NETWORK_FIELDS],
                       char texts[ATT_MOST_OPTIONS][ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES])
{
    const att_option_values *options = &j->loaded.identity->options;
    att_family_info family = cli_family_of(j->loaded.identity);
    int64_t tokens = att_model_tokens(j->loaded.model);
    int count = 0;
    for (int i = 0; i < family.option_count; i++) {
        const att_option *option = &family.options[i];
        const att_option_value *value = att_options_find(options, option->key);
        int parts = att_option_format(option, options, texts[i]);
        bool is_text = option->kind == ATT_OPTION_TEXT || option->kind == ATT_OPTION_SWITCH || parts > 1;
        if (parts == 0 || option->internal || option->training)
            continue;
        if (parts > 1)
            cli_sides_text((int)value->numbers[0], (int)value->numbers[1], texts[i][0]);
        fields[count++] = is_text ? (att_event_field){.name = option->key, .text = texts[i][0]}
                                  : (att_event_field){.name = option->key, .number = value->numbers[0]};
    }
    if (tokens > 0) {
        fields[count++] = (att_event_field){.name = "tokens", .number = (double)tokens};
        fields[count++] = (att_event_field){.name = "entropy_bound", .number = cli_entropy_bound(j->loaded.model)};
    }
    return count;
}

/* What was measured, in words: the data set, or the first of the images' paths. */
static const char *data_text(const job *j, char text[CLI_PATH])
{
    const cli_evaluation_data *d = &j->settings->on.data;
    snprintf(text, CLI_PATH, "%s", d->data_dir);
    if (d->more_count > 0)
        snprintf(text, CLI_PATH, "%s and %d more", d->data_dir, d->more_count);
    return text;
}

/* What decides the figures, so that those of another call can be told apart or kept. */
static att_status emit_begin(const job *j)
{
    const settings *s = j->settings;
    const att_identity *identity = j->loaded.identity;
    const att_preprocess *p = &identity->preprocess;
    char mean[3][24], std[3][24], means[80], stds[80], data[CLI_PATH];
    int last = p->in_chans - 1;
    for (int c = 0; c < 3; c++) {
        number_text(p->mean[c], mean[c]);
        number_text(p->std[c], std[c]);
    }
    snprintf(means, sizeof means, last > 0 ? "%s %s %s" : "%s", mean[0], mean[1], mean[2]);
    snprintf(stds, sizeof stds, last > 0 ? "%s %s %s" : "%s", std[0], std[1], std[2]);
    const att_event_field common[] = {
        {.name = "model", .text = identity->name},
        {.name = "checkpoint", .text = s->on.data.checkpoint},
        {.name = "weights", .text = j->weights},
        {.name = "use_ema", .text = s->on.data.use_ema ? "true" : "false"},
        {.name = "data", .text = data_text(j, data)},
        {.name = "contents", .text = j->contents},
        {.name = "split", .text = split_of(j)},
        {.name = "images", .number = (double)j->images},
        {.name = "precision", .text = att_precision_name(cli_engine_precision(&s->on.engine))},
        {.name = "backend", .text = s->on.engine.backend},
        {.name = "mean", .text = means},
        {.name = "std", .text = stds},
        {.name = "crop_pct", .number = p->crop_pct},
        {.name = "crop_mode", .text = p->crop_mode},
        {.name = "interpolation", .text = p->interpolation},
        {.name = "parameters", .number = (double)att_graph_parameter_elements(att_model_graph(j->loaded.model))},
    };
    enum { COMMON = sizeof common / sizeof *common };
    att_event_field fields[COMMON + NETWORK_FIELDS];
    char texts[ATT_MOST_OPTIONS][ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
    memcpy(fields, common, sizeof common);
    return emit(j, ATT_EVENT_RUN_BEGIN, fields, COMMON + put_network(j, fields + COMMON, texts));
}

static att_status emit_all(const job *j)
{
    const settings *s = j->settings;
    const att_event_field found[] = {{.name = "split", .text = split_of(j)},
                                     {.name = "images", .number = (double)j->images},
                                     {.name = "class_map", .text = s->on.data.class_map ? s->on.data.class_map : ""},
                                     {.name = "with", .text = j->with},
                                     {.name = "nodes", .text = s->instruments.nodes}};
    const att_event_field end[] = {{.name = "status", .text = att_status_name(ATT_OK)}};
    att_status status = emit_begin(j);
    if (status == ATT_OK)
        status = emit(j, ATT_EVENT_MEASURE, found, sizeof found / sizeof *found);
    return status == ATT_OK ? emit(j, ATT_EVENT_RUN_END, end, 1) : status;
}

/* Before the work, so that a folder that takes none is told of at once. */
static int open_records(job *j)
{
    char database[CLI_PATH];
    const char *checkpoint = j->settings->on.data.checkpoint;
    if (!*j->folder)
        return CLI_OK;
    bool belongs = true;
    int code = CLI_OK;
    if (att_run_is_folder(j->folder))
        code = cli_check(j->cli, att_run_owns(j->cli->context, j->folder, checkpoint, &belongs));
    if (code == CLI_OK)
        code = cli_check(j->cli, att_run_database(j->cli->context, j->folder, database, sizeof database));
    if (code != CLI_OK)
        return code;
    if (!belongs)
        return cli_failure("%s holds a training that %s is no checkpoint of; another --experiment takes its figures",
                           j->folder, checkpoint);
    j->folder_is_new = !cli_exists(j->folder);
    return cli_check(j->cli, att_store_open_measured(j->cli->context, j->folder, database, &j->records));
}

/* A folder that was made for records that never came goes again. */
static void close_records(job *j)
{
    if (j->records.close)
        j->records.close(j->records.user);
    if (j->folder_is_new)
        rmdir(j->folder);
}

/* A few images only: nothing to draw a bar for. */
static bool goes_on(void *user, const att_progress *progress)
{
    (void)user;
    (void)progress;
    return !cli_stop_asked();
}

static int write_maps(const job *j)
{
    const settings *s = j->settings;
    char path[CLI_PATH];
    att_maps_options options = att_maps_options_defaults();
    options.class_names = att_network_class_names(j->loaded.network, &options.class_count);
    options.unlabelled = !att_dataset_fits_classes(j->dataset, cli_identity_classes(j->loaded.identity));
    options.nodes = s->instruments.nodes;
    options.images = j->chosen.images;
    options.count = j->chosen.images ? j->chosen.count : s->instruments.maps;
    options.backend = s->on.engine.backend;
    options.precision = cli_engine_precision(&s->on.engine);
    options.skip_corrupt = s->on.data.skip_corrupt;
    options.weights = j->weights;
    options.progress = goes_on;
    cli_join(j->folder, "maps.safetensors", path, sizeof path);
    const att_transform_options transform = att_network_transform(j->loaded.network);
    att_status status =
        att_maps_write(j->loaded.model, att_network_weights(j->loaded.network), j->dataset, &transform, &options, path);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped; the records are written, maps are not");
        return CLI_STOPPED;
    }
    return cli_check(j->cli, status);
}

static int write_json(const job *j, const att_evaluation *e)
{
    att_json_writer *writer;
    char data[CLI_PATH];
    int code = cli_check(j->cli, att_json_writer_create(j->cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    att_json_begin_object(writer);
    cli_json_text(writer, "model", j->loaded.identity->name);
    cli_json_text(writer, "checkpoint", j->settings->on.data.checkpoint);
    cli_json_text(writer, "data", data_text(j, data));
    cli_json_text(writer, "split", split_of(j));
    cli_json_text(writer, "folder", *j->folder ? j->folder : NULL);
    cli_json_integer(writer, "images", e->count);
    cli_json_integer(writer, "corrupt", e->corrupt);
    cli_json_number(writer, "images_per_second", e->images_per_second);
    cli_json_number(writer, "entropy_bound", cli_entropy_bound(j->loaded.model));
    cli_figures_json(writer, j->measure);
    att_json_end_object(writer);
    return cli_json_write(j->cli, writer, j->settings->output.json);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* Maps of an earlier call stay; those of other weights belong to no figure here. */
static int look_at_old_maps(const job *j)
{
    char path[CLI_PATH];
    att_tensors *file = NULL;
    if (!cli_exists(cli_join(j->folder, "maps.safetensors", path, sizeof path)) ||
        att_tensors_open(j->cli->context, path, &file) != ATT_OK)
        return CLI_OK;
    const char *weights = att_tensors_metadata(file, "weights");
    if (weights && strcmp(weights, j->weights) != 0)
        cli_note(j->cli, "%s shows other weights: attscope report leaves it out; --maps K replaces it", path);
    att_tensors_close(&file);
    return CLI_OK;
}

static int write_records(const job *j)
{
    if (!*j->folder) {
        cli_note(j->cli, "no record is kept: %s does not lie in a run's folder, and --output FOLDER names none",
                 j->settings->on.data.checkpoint);
        return CLI_OK;
    }
    int code = cli_check(j->cli, emit_all(j));
    if (code != CLI_OK)
        return code;
    return wants_maps(j->settings) ? write_maps(j) : look_at_old_maps(j);
}

/* Records first: whatever becomes of the output, they are there. */
static int write_everything(const job *j, const att_evaluation *e)
{
    const char *json = j->settings->output.json;
    int code = write_records(j);
    int told = json && (code == CLI_OK || code == CLI_STOPPED) ? write_json(j, e) : CLI_OK;
    if (cli_prints(json)) {
        cli_figures_print(j->loaded.model, j->measure);
        if (*j->folder && code == CLI_OK)
            cli_print("\n%s\n", j->folder);
    }
    return code != CLI_OK ? code : told;
}

/* --- instruments and labels --------------------------------------------------------------------------------------- */

static bool is_named(const char *with, const char *instrument)
{
    size_t length = strlen(instrument);
    for (const char *at = with;; at++) {
        if (strncmp(at, instrument, length) == 0 && (at[length] == '\0' || at[length] == ',' || at[length] == ':'))
            return true;
        at += strcspn(at, ",");
        if (!*at)
            return false;
    }
}

/* The first named instrument that needs labels; NULL: none. "all" names none: it works without labels, too. */
static const char *labels_wanted_by(const char *with)
{
    for (int i = 0; i < att_instrument_count(); i++)
        if (att_instrument_at(i).needs_labels && is_named(with, att_instrument_at(i).name))
            return att_instrument_at(i).name;
    return NULL;
}

/* "all", or nothing but what is left out of it. */
static bool takes_all(const char *with)
{
    for (const char *at = with; *at == '-'; at++) {
        at += strcspn(at, ",");
        if (!*at)
            return true;
    }
    return is_named(with, "all");
}

/* Leaves instruments that need labels out of "all". */
static void leave_out_unlabelled(job *j)
{
    bool has_classes = cli_identity_classes(j->loaded.identity) > 0, any = false;
    char left_out[64];
    for (int i = 0; i < att_instrument_count(); i++) {
        att_instrument_info info = att_instrument_at(i);
        snprintf(left_out, sizeof left_out, "-%s", info.name);
        if (!info.needs_labels || is_named(j->settings->instruments.with, left_out))
            continue;
        cli_note(j->cli, "%s is left out: %s", info.name,
                 has_classes ? "the images have no classes, or others than the network" : "the network has no classes");
        any = true;
    }
    if (any)
        cli_instruments_without_labels(j->with, sizeof j->with);
}

/* Settles which instruments work on the open images. */
static int settle_instruments(job *j)
{
    const instruments *i = &j->settings->instruments;
    if (wants_maps(j->settings) && att_model_tokens(j->loaded.model) == 0)
        return cli_usage("maps show attention between tokens, and %s has none", j->loaded.identity->name);
    bool all = takes_all(i->with);
    snprintf(j->with, sizeof j->with, "%s", i->with);
    if (all && att_dataset_fits_classes(j->dataset, cli_identity_classes(j->loaded.identity)))
        j->settings->on.data.unlabelled = false;
    else if (all)
        leave_out_unlabelled(j);
    char reason[96];
    const char *wanted_by = labels_wanted_by(i->with);
    snprintf(reason, sizeof reason, "%s cannot be told", wanted_by ? wanted_by : "");
    int code = all || !wanted_by ? CLI_OK : cli_check(j->cli, att_network_need_head(j->loaded.network, reason));
    if (code == CLI_OK && !j->settings->on.data.unlabelled)
        code = cli_check(j->cli, att_network_compare_classes(j->loaded.network, j->dataset, !all));
    if (code == CLI_OK)
        code = cli_instruments_result(j->cli, att_network_watch(j->loaded.network, j->with, i->nodes, &j->measure));
    return code == CLI_OK ? cli_check(j->cli, att_measure_keep_samples(j->measure, i->samples)) : code;
}

/* Names that do not fit are refused before the work. */
static int choose_labels(job *j)
{
    const char *said = j->settings->instruments.labels;
    if (!said && !wants_maps(j->settings))
        return CLI_OK;
    return cli_classes_name(j->cli, j->loaded.network, said);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int measure(job *j)
{
    const settings *s = j->settings;
    att_evaluation e;
    clock_gettime(CLOCK_MONOTONIC, &j->begun);
    int code = cli_check(j->cli, att_checkpoint_describe(j->cli->context, j->loaded.file, &j->stood));
    if (code == CLI_OK)
        code = open_records(j);
    if (code == CLI_OK)
        code = cli_evaluate(j->cli, &s->on, &j->loaded, j->dataset, j->measure, &e);
    if (code != CLI_OK)
        return code;
    j->images = e.count;
    code = cli_check(j->cli, att_dataset_contents(j->dataset, j->cli->context, j->contents));
    if (code == CLI_OK)
        code = cli_check(j->cli, att_weights_digest(att_network_weights(j->loaded.network), j->weights));
    return code == CLI_OK ? write_everything(j, &e) : code;
}

/* Operands are what flags did not name: CHECKPOINT, then DATA, then more paths of images. */
static int take_operands(settings *s, const char *const *operands, int count)
{
    cli_evaluation_data *d = &s->on.data;
    bool named = d->data_dir;
    int taken = 0;
    if (!d->checkpoint && taken < count)
        d->checkpoint = operands[taken++];
    if (!d->data_dir && taken < count)
        d->data_dir = operands[taken++];
    if (!d->checkpoint || !d->data_dir)
        return cli_usage("measure needs CHECKPOINT and DATA; see attscope measure --help");
    if (taken < count && named)
        return cli_usage("measure: \"%s\" is one operand too many; see attscope measure --help", operands[taken]);
    d->more = operands + taken;
    d->more_count = count - taken;
    return CLI_OK;
}

/* What can be refused before anything is read. */
static int check(job *j)
{
    settings *s = j->settings;
    int code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_engine_open(j->cli, &s->on.engine);
    const char *wanted_by = labels_wanted_by(s->instruments.with);
    s->on.data.unlabelled = !wanted_by;
    if (code == CLI_OK && s->instruments.maps > 0 && s->instruments.map_images)
        return cli_usage("--maps K takes the first K images, --map-images LIST names them: one of the two");
    if (code == CLI_OK && s->on.data.more_count > 0 && wanted_by)
        return cli_usage("%s needs classes: name one data set instead of %d paths of images", wanted_by,
                         s->on.data.more_count + 1);
    if (code == CLI_OK)
        code = cli_instruments_check(j->cli, s->instruments.with);
    if (code == CLI_OK)
        code = cli_checkpoint_locate(j->cli, s->on.data.checkpoint, j->checkpoint);
    s->on.data.checkpoint = j->checkpoint;
    return code == CLI_OK ? settle_folder(j) : code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    job j = {.cli = cli, .settings = user};
    int code = take_operands(user, operands, count);
    if (code == CLI_OK)
        code = check(&j);
    if (code == CLI_OK)
        code = cli_evaluation_load(cli, &j.settings->on, &j.loaded);
    if (code == CLI_OK)
        code = choose_labels(&j);
    if (code == CLI_OK)
        code = cli_evaluation_open(cli, &j.settings->on, &j.loaded, &j.dataset);
    if (code == CLI_OK)
        code = settle_instruments(&j);
    if (code == CLI_OK && j.settings->instruments.map_images)
        code = cli_choose_images(j.dataset, j.settings->instruments.map_images, &j.chosen);
    if (code == CLI_OK)
        code = measure(&j);
    close_records(&j);
    cli_choice_free(&j.chosen);
    att_measure_destroy(&j.measure);
    att_dataset_close(&j.dataset);
    cli_unload(&j.loaded);
    return code;
}

const cli_command cli_command_measure = {
    .name = "measure",
    .summary = "measures what attention in a checkpoint does on a data set",
    .operands = "CHECKPOINT DATA...",
    .most_operands = 1000000,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "Shows CHECKPOINT every image of DATA and prints a table for each instrument:\n"
    "for each node of the network the mean over images, the standard deviation\n"
    "between images (n - 1), the number of images n, and the mean of each head; where\n"
    "a network is right or wrong about an image, the standard error of the mean,\n"
    "deviation / sqrt(n), instead.\n" CLI_DATA_HELP
    "\n\n"
    "DATA can be an image file too, and there can be several: image files, folders\n"
    "and archives. Their images are measured without classes, in the order of the\n"
    "paths.\n\n"
    "Instruments look on: the network's results are the same to the bit. The records\n"
    "go to measure.jsonl in the checkpoint's folder, where that is a run's, or in\n"
    "OUTPUT/EXPERIMENT, maps to maps.safetensors beside it, and the figures to the\n"
    "database of all runs there, OUTPUT/runs.sqlite.",
    .example =
        "  attscope measure output/first/model_best.safetensors \\\n"
        "      /usr/share/datasets/fashion-mnist --with entropy,nsi --maps 8\n"
        "  attscope measure deit_tiny_patch16_224.safetensors imagenet/val \\\n"
        "      --model deit_tiny_patch16_224 --output output\n"
        "  attscope measure output/first/last.safetensors cat.jpg dogs/ \\\n"
        "      --map-images cat.jpg",
    .explain = cli_figures_explain,
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
