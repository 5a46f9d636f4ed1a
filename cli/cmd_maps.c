/* attscope maps: pictures of attention and of relevance for a class. */
#include <string.h>

#include "drawings.h"
#include "flags.h"
#include "network.h"
#include "progress.h"
#include "texts.h"

typedef struct settings {
    const char *folder;
    att_map_options options;
    bool use_ema, f64;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_engine engine;
    cli_text_options texts;
    cli_output output;
} settings;

static const att_flag map_options[] = {
    {"output", .letter = 'o', .kind = ATT_FLAG_TEXT, .value = "DIR", .help = "folder for the files; required",
     ATT_FLAG_AT(settings, folder)},
    {"show", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "attention",
     .help = "maps, separated by commas: attention, the weights of a query; mean, their mean over all queries; and the "
             "methods of relevance, with options as occlusion:cell=8",
     ATT_FLAG_AT(settings, options.show)},
    {"attn-layers", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "of attention and mean: last, all, or numbers from 0 (default last; all with --form grid)",
     ATT_FLAG_AT(settings, options.layers)},
    {"heads", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "of attention and mean: mean, all, or numbers from 0 (default mean; all with --form grid)",
     ATT_FLAG_AT(settings, options.heads)},
    {"query", .kind = ATT_FLAG_TEXT, .value = "QUERY",
     .help = "of attention: class; prefix:N, such as a register; or ROW,COLUMN of the grid of patches (default class, "
             "or the mean over queries without such a token); of a text class, its first token, or token:N",
     ATT_FLAG_AT(settings, options.query)},
    {"at", .kind = ATT_FLAG_TEXT, .value = "X,Y",
     .help = "of attention: the patch at these parts of the image's width and height",
     ATT_FLAG_AT(settings, options.at), .low = 0, .high = 1},
    {"class", .kind = ATT_FLAG_INT, .value = "N", .start = "-1",
     .help = "of relevance: the class; -1: the most probable one of each image", ATT_FLAG_AT(settings, options.target),
     .low = -1, .high = 1e9},
    {"mean-maps", .kind = ATT_FLAG_TEXT, .value = "WHICH", .start = "none",
     .help = "means over the images instead of single images: none, all, or class for one of each class of the data",
     ATT_FLAG_AT(settings, options.means)},
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(settings, use_ema)},
    {"f64", .kind = ATT_FLAG_SWITCH, .help = "run the network in double precision, many times slower",
     ATT_FLAG_AT(settings, f64)},
};
static const att_flag style_options[] = {
    {"form", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "overlay",
     .help = "overlay, over the image or the words; map, alone; or grid, layers x heads in one picture",
     ATT_FLAG_AT(settings, options.form)},
    {"format", .kind = ATT_FLAG_TEXT, .value = "LIST", .help = "png, svg, pdf (default png); of texts svg",
     ATT_FLAG_AT(settings, options.format)},
    {"colours", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "viridis",
     .help = "viridis, magma, inferno, plasma, grey, or diverging with 0 in the middle",
     ATT_FLAG_AT(settings, options.colours)},
    {"scale", .kind = ATT_FLAG_TEXT, .value = "SCALE", .start = "map",
     .help = "of the colours: map, from the smallest to the largest value of each map; shared, of all maps of a kind "
             "and image; or LOW,HIGH",
     ATT_FLAG_AT(settings, options.scale)},
    {"smooth", .kind = ATT_FLAG_SWITCH, .help = "interpolate between the centres of cells",
     ATT_FLAG_AT(settings, options.smooth)},
    {"opacity", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.6", .help = "of the colours over the image",
     ATT_FLAG_AT(settings, options.opacity), .low = 0, .high = 1},
    {"zoom", .kind = ATT_FLAG_INT, .value = "N", .start = "2",
     .help = "pixels for a side of a pixel of the input; of texts an eighth of the font's size",
     ATT_FLAG_AT(settings, options.zoom), .low = 1, .high = 16},
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
    {&cli_group_texts, offsetof(settings, texts)},
    {&cli_group_output, offsetof(settings, output)},
};

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_loaded loaded;
    att_dataset *dataset;
    att_token_texts texts; /* of a network for texts */
    int64_t told;          /* of these, those in the JSON */
    att_map_files *files;
    att_json_writer *writer; /* NULL: no JSON */
} job;

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_tokens(job *j)
{
    const att_token_ids *text = &j->texts.texts[j->told++];
    att_json_put_array(j->writer, "tokens");
    for (int i = 0; i < text->count; i++)
        att_json_string(j->writer, att_tokenizer_piece(j->texts.tokenizer, text->tokens[i]));
    att_json_end_array(j->writer);
}

/* An att_map_options.found. */
static void write_json(void *user, const char *name, const att_named_map *maps, int count)
{
    job *j = user;
    att_json_writer *writer = j->writer;
    const att_relevance_map *relevance = NULL;
    for (int i = 0; i < count && !relevance; i++)
        relevance = maps[i].map.target >= 0 ? &maps[i].map : NULL;
    att_json_begin_object(writer);
    att_json_put_string(writer, j->texts.count > 0 ? "text" : ATT_ANSWER_IMAGE, name);
    if (j->texts.count > 0)
        write_tokens(j);
    if (relevance) {
        att_json_put_integer(writer, "class", relevance->target);
        att_json_put_number(writer, "logit", relevance->logit);
    }
    att_json_put_array(writer, "maps");
    for (int i = 0; i < count; i++) {
        const att_relevance_map *map = &maps[i].map;
        att_json_begin_object(writer);
        att_json_put_string(writer, "name", maps[i].name);
        att_json_put_integer(writer, "height", map->height);
        att_json_put_integer(writer, "width", map->width);
        cli_json_numbers(writer, "values", map->values, map->height * map->width);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    att_json_end_object(writer);
}

/* --- command ------------------------------------------------------------------------------------------------------ */

static int read_texts(job *j, const char *const *paths, int count)
{
    if (count > 1)
        return cli_usage("%s reads texts: give one file of them, with one a line", j->loaded.identity->name);
    return cli_texts_read(j->cli, &j->loaded, paths[0], &j->settings->texts, 0, &j->texts);
}

/* The data set has classes if means of classes are asked for. */
static int open_data(job *j, const char *const *paths, int count)
{
    att_dataset_options how = att_dataset_options_defaults();
    if (cli_takes_texts(&j->loaded))
        return read_texts(j, paths, count);
    int code = cli_texts_refuse(&j->loaded, &j->settings->texts);
    if (code == CLI_OK)
        code = cli_drawings_check("--output", j->settings->folder, paths, count);
    if (code != CLI_OK)
        return code;
    how.unlabelled = strcmp(j->settings->options.means, "class") != 0;
    return cli_check(j->cli, att_network_open_dataset(j->loaded.network, paths, count, &how, &j->dataset));
}

static int draw(job *j)
{
    const settings *s = j->settings;
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_map_options options = s->options;
    options.found = j->writer ? write_json : NULL;
    options.found_user = j;
    options.progress = cli_progress_show;
    options.progress_user = &progress;
    att_status status = att_map_files_open(j->loaded.network, &options, s->folder, &j->files);
    if (status == ATT_OK)
        status =
            j->dataset ? att_map_files_add_dataset(j->files, j->dataset) : att_map_files_add_texts(j->files, &j->texts);
    if (status == ATT_OK)
        status = att_map_files_finish(j->files);
    cli_bar_clear(j->cli);
    const int code = cli_check(j->cli, status);
    if (code == CLI_OK && cli_prints(s->output.json))
        cli_print("%lld files in %s\n", (long long)att_map_files_count(j->files), s->folder);
    return code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    if (!s->folder)
        return cli_usage("maps needs --output DIR; see attscope maps --help");
    if (s->f64 && s->engine.amp)
        return cli_usage("maps: --f64 and --amp exclude each other");
    int code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->engine);
    if (code == CLI_OK)
        code = cli_check(cli, att_map_options_check(cli->context, &s->options));
    if (code == CLI_OK)
        code = cli_load(cli, operands[0],
                        &(cli_load_options){&s->network, &s->preprocess, &s->engine, s->use_ema, false,
                                            s->f64 ? ATT_F64 : ATT_F32, NULL, 0},
                        &j.loaded);
    if (code == CLI_OK)
        code = open_data(&j, operands + 1, count - 1);
    if (code == CLI_OK)
        code = cli_json_begin_list(cli, s->output.json, &j.writer);
    if (code == CLI_OK)
        code = draw(&j);
    code = cli_json_end_list(cli, j.writer, s->output.json, code);
    att_map_files_close(&j.files);
    att_dataset_close(&j.dataset);
    att_token_texts_free(cli->context, &j.texts);
    cli_unload(&j.loaded);
    return code;
}

const cli_command cli_command_maps = {
    .name = "maps",
    .summary = "draws maps of attention and of relevance for a class",
    .operands = "CHECKPOINT IMAGE...|TEXTS",
    .least_operands = 2,
    .most_operands = 1000000,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "IMAGE is a JPEG, PNG or WebP file, or a folder or archive of such files. A network\n"
    "that reads texts takes a file of TEXTS in UTF-8, one a line, whose NAMEs are text1,\n"
    "text2 and so on. The\n"
    "files are DIR/NAME.MAP.FORMAT, and DIR/NAME.npz with the values of all maps of\n"
    "an image as float64 [height, width], of a text [1, tokens]. Pictures show the\n"
    "network's input.\n\n"
    "`attscope explain --help` lists the methods of relevance, and the command\n"
    "measures which of them are faithful.",
    .example =
        "  attscope maps deit_tiny_patch16_224.safetensors cat.jpg -o maps --show chefer,grad_cam\n"
        "  attscope maps deit_tiny_patch16_224.safetensors cat.jpg -o maps --form grid \\\n"
        "      --format pdf --at 0.5,0.4 --scale shared\n"
        "  attscope maps all-MiniLM-L6-v2 sentences.txt -o maps --form grid --query token:3",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
