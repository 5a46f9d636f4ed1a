/* attscope maps: pictures of attention and of relevance for a class. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "drawings.h"
#include "flags.h"
#include "map_means.h"
#include "map_pictures.h"
#include "network.h"
#include "stop.h"

typedef struct settings {
    const char *folder;
    cli_map_choice choice;
    cli_map_style style;
    const char *mean;
    bool use_ema;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_engine engine;
    cli_output output;
} settings;

static const att_flag map_options[] = {
    {"output", .letter = 'o', .kind = ATT_FLAG_TEXT, .value = "DIR", .help = "folder for the files; required",
     ATT_FLAG_AT(settings, folder)},
    {"show", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "attention",
     .help = "maps, separated by commas: attention, the weights of a query; mean, their mean over all queries; and the "
             "methods of relevance, with options as occlusion:cell=8",
     ATT_FLAG_AT(settings, choice.show)},
    {"layers", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "of attention and mean: last, all, or numbers from 0 (default last; all with --form grid)",
     ATT_FLAG_AT(settings, choice.layers)},
    {"heads", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "of attention and mean: mean, all, or numbers from 0 (default mean; all with --form grid)",
     ATT_FLAG_AT(settings, choice.heads)},
    {"query", .kind = ATT_FLAG_TEXT, .value = "QUERY",
     .help = "of attention: class; prefix:N, such as a register; or ROW,COLUMN of the grid of patches (default class, "
             "or the mean over queries without such a token)",
     ATT_FLAG_AT(settings, choice.query)},
    {"at", .kind = ATT_FLAG_TEXT, .value = "X,Y",
     .help = "of attention: the patch at these parts of the image's width and height", ATT_FLAG_AT(settings, choice.at),
     .low = 0, .high = 1},
    {"class", .kind = ATT_FLAG_INT, .value = "N", .start = "-1",
     .help = "of relevance: the class; -1: the most probable one of each image", ATT_FLAG_AT(settings, choice.target),
     .low = -1, .high = 1e9},
    {"mean-maps", .kind = ATT_FLAG_TEXT, .value = "WHICH", .start = "none",
     .help = "means over the images instead of single images: none, all, or class for one of each class of the data",
     ATT_FLAG_AT(settings, mean)},
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(settings, use_ema)},
};
static const att_flag style_options[] = {
    {"form", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "overlay",
     .help = "overlay, over the image; map, alone; or grid, layers x heads in one picture",
     ATT_FLAG_AT(settings, style.form)},
    {"format", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "png", .help = "png, svg, pdf",
     ATT_FLAG_AT(settings, style.formats)},
    {"colours", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "viridis",
     .help = "viridis, magma, inferno, plasma, grey, or diverging with 0 in the middle",
     ATT_FLAG_AT(settings, style.colours)},
    {"scale", .kind = ATT_FLAG_TEXT, .value = "SCALE", .start = "map",
     .help = "of the colours: map, from the smallest to the largest value of each map; shared, of all maps of a kind "
             "and image; or LOW,HIGH",
     ATT_FLAG_AT(settings, style.scale)},
    {"smooth", .kind = ATT_FLAG_SWITCH, .help = "interpolate between the centres of cells",
     ATT_FLAG_AT(settings, style.smooth)},
    {"opacity", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.6", .help = "of the colours over the image",
     ATT_FLAG_AT(settings, style.opacity), .low = 0, .high = 1},
    {"zoom", .kind = ATT_FLAG_INT, .value = "N", .start = "2", .help = "pixels for a side of a pixel of the input",
     ATT_FLAG_AT(settings, style.zoom), .low = 1, .high = 16},
};
static const att_flag_group map_group = {"Maps", .rows = map_options,
                                         .row_count = sizeof map_options / sizeof *map_options};
static const att_flag_group style_group = {"Pictures", .rows = style_options,
                                           .row_count = sizeof style_options / sizeof *style_options};
static const att_flag_use uses[] = {
    {&map_group, 0},
    {&style_group, 0},
    {&att_recipe_network_group, offsetof(settings, network)},
    {&att_recipe_preprocess_group, offsetof(settings, preprocess)},
    {&att_recipe_engine_group, offsetof(settings, engine)},
    {&cli_group_output, offsetof(settings, output)},
};

/* --- images ------------------------------------------------------------------------------------------------------- */

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_image_input input;
    att_dataset *dataset;
    cli_map_list list;
    cli_map_means means;
    cli_picture_names names;
    att_json_writer *writer; /* NULL: no JSON */
    int64_t files;
} job;

/* Takes a name for the files of an image: its short name, with '_' for '/'. */
static int name_image(job *j, int64_t index, char name[CLI_PATH])
{
    char given[CLI_PATH];
    att_dataset_short_name(j->dataset, index, given, sizeof given);
    for (char *at = given; *at; at++)
        *at = *at == '/' ? '_' : *at;
    return cli_picture_names_take(&j->names, given, name);
}

static void write_json(const job *j, const char *name)
{
    att_json_begin_object(j->writer);
    att_json_put_string(j->writer, ATT_ANSWER_IMAGE, name);
    if (j->list.target >= 0) {
        att_json_put_integer(j->writer, "class", j->list.target);
        att_json_put_number(j->writer, "logit", j->list.logit);
    }
    att_json_put_array(j->writer, "maps");
    for (int i = 0; i < j->list.count; i++) {
        const cli_map *map = &j->list.items[i];
        att_json_begin_object(j->writer);
        att_json_put_string(j->writer, "name", map->name);
        att_json_put_integer(j->writer, "height", map->map.height);
        att_json_put_integer(j->writer, "width", map->map.width);
        cli_json_numbers(j->writer, "values", map->map.values, map->map.height * map->map.width);
        att_json_end_object(j->writer);
    }
    att_json_end_array(j->writer);
    att_json_end_object(j->writer);
}

static int write_files(job *j, const float *pixels, double count, const char *name)
{
    att_image background;
    if (!cli_map_background(&j->input.transform, pixels, count, j->settings->style.zoom, &background))
        return cli_failure("out of memory for an image");
    const int code = cli_map_pictures_write(j->cli, &j->list, &j->settings->style, &background, j->settings->folder,
                                            name, &j->files);
    free(background.pixels);
    if (code == CLI_OK && j->writer)
        write_json(j, name);
    return code;
}

static int show_image(job *j, int64_t index)
{
    char name[CLI_PATH];
    att_image image = {0};
    att_status status = att_dataset_read(j->dataset, j->cli->context, index, j->input.transform.channels, &image);
    if (status == ATT_OK)
        status = cli_image_input_set(&j->input, &image);
    att_image_free(j->cli->context, &image);
    int code = cli_check(j->cli, status);
    if (code == CLI_OK)
        code = cli_map_list_find(&j->input, &j->settings->choice, &j->list);
    if (code == CLI_OK && strcmp(j->settings->mean, "none") != 0)
        return cli_map_means_add(&j->means, att_dataset_label(j->dataset, index), j->input.pixels, &j->list);
    if (code == CLI_OK)
        code = name_image(j, index, name);
    return code == CLI_OK ? write_files(j, j->input.pixels, 1, name) : code;
}

/* Writes the mean maps of each group as those of an image. */
static int show_means(job *j)
{
    int code = CLI_OK;
    for (int g = 0; g < j->means.count && code == CLI_OK; g++) {
        const cli_map_mean *mean = &j->means.items[g];
        char name[CLI_PATH];
        if (mean->label < 0)
            snprintf(name, sizeof name, "mean");
        else
            snprintf(name, sizeof name, "mean.class%d", mean->label);
        cli_map_means_take(mean, &j->list);
        code = write_files(j, mean->pixels, mean->images, name);
    }
    return code;
}

static int show_all(job *j)
{
    int code = CLI_OK;
    for (int64_t i = 0; i < att_dataset_count(j->dataset) && code == CLI_OK; i++)
        code = cli_stop_asked() ? CLI_STOPPED : show_image(j, i);
    if (code == CLI_OK)
        code = show_means(j);
    if (code == CLI_OK && cli_prints(j->settings->output.json))
        cli_print("%lld files in %s\n", (long long)j->files, j->settings->folder);
    return code;
}

/* --- command ------------------------------------------------------------------------------------------------------ */

static int check(cli_app *cli, settings *s, const char *const *images, int count)
{
    const bool grid = strcmp(s->style.form, "grid") == 0;
    if (!s->folder)
        return cli_usage("maps needs --output DIR; see attscope maps --help");
    s->choice.layers = s->choice.layers ? s->choice.layers : grid ? "all" : "last";
    s->choice.heads = s->choice.heads ? s->choice.heads : grid ? "all" : "mean";
    if (strcmp(s->mean, "none") != 0 && strcmp(s->mean, "all") != 0 && strcmp(s->mean, "class") != 0)
        return cli_usage("--mean-maps %s: expected none, all or class", s->mean);
    int code = cli_map_choice_check(cli, &s->choice);
    if (code == CLI_OK)
        code = cli_map_style_check(&s->style);
    if (code == CLI_OK)
        code = cli_drawings_check("--output", s->folder, images, count);
    return code;
}

static int open_data(job *j, const char *const *paths, int count)
{
    att_dataset_options how = att_dataset_options_defaults();
    how.unlabelled = strcmp(j->settings->mean, "class") != 0;
    j->means.by_class = !how.unlabelled;
    j->means.pixels =
        (size_t)j->input.transform.height * (size_t)j->input.transform.width * (size_t)j->input.transform.channels;
    return cli_check(j->cli, att_network_open_dataset(j->input.network, paths, count, &how, &j->dataset));
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    cli_loaded loaded = {0};
    int code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->engine);
    if (code == CLI_OK)
        code = check(cli, s, operands + 1, count - 1);
    if (code == CLI_OK)
        code = cli_load(cli, operands[0],
                        &(cli_load_options){&s->network, &s->preprocess, &s->engine, s->use_ema, false, ATT_F32, NULL},
                        &loaded);
    if (code == CLI_OK)
        code = cli_image_input_open(cli, loaded.network, &j.input);
    if (code == CLI_OK)
        code = open_data(&j, operands + 1, count - 1);
    if (code == CLI_OK)
        code = cli_check(cli, att_file_make_folders(cli->context, s->folder));
    if (code == CLI_OK)
        code = cli_json_begin_list(cli, s->output.json, &j.writer);
    if (code == CLI_OK)
        code = show_all(&j);
    code = cli_json_end_list(cli, j.writer, s->output.json, code);
    cli_map_list_free(&j.list);
    cli_map_means_free(&j.means);
    cli_picture_names_free(&j.names);
    att_dataset_close(&j.dataset);
    cli_image_input_close(&j.input);
    cli_unload(&loaded);
    return code;
}

const cli_command cli_command_maps = {
    .name = "maps",
    .summary = "draws maps of attention and of relevance for a class",
    .operands = "CHECKPOINT IMAGE...",
    .least_operands = 2,
    .most_operands = 1000000,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "IMAGE is a JPEG, PNG or WebP file, or a folder or archive of such files. The\n"
    "files are DIR/NAME.MAP.FORMAT, and DIR/NAME.npz with the values of all maps of\n"
    "an image as float64 [height, width]. Pictures show the network's input.\n\n"
    "`attscope explain --help` lists the methods of relevance, and the command\n"
    "measures which of them are faithful.",
    .example =
        "  attscope maps deit_tiny_patch16_224.safetensors cat.jpg -o maps --show chefer,grad_cam\n"
        "  attscope maps deit_tiny_patch16_224.safetensors cat.jpg -o maps --form grid \\\n"
        "      --format pdf --at 0.5,0.4 --scale shared",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
