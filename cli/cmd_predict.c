/* attscope predict: predictions of a checkpoint for images. */
#include <string.h>

#include "answer.h"
#include "drawings.h"
#include "flags.h"
#include "metrics.h"
#include "network.h"
#include "paths.h"
#include "stop.h"

typedef struct settings {
    cli_answer answer;
    bool use_ema;
    const char *draw; /* folder; NULL: none */
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    cli_passes passes;
    att_recipe_engine engine;
    cli_output output;
} settings;

static const att_flag weight_options[] = {
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(settings, use_ema)},
    {"draw", .kind = ATT_FLAG_TEXT, .value = "DIR", .empty = true,
     .help = "draw each prediction into its image: DIR/NAME.drawn.png, and DIR/NAME.classes.png with the number of its "
             "class in each pixel, for tasks whose predictions can be drawn",
     ATT_FLAG_AT(settings, draw)},
    {"batch-size", .letter = 'b', .kind = ATT_FLAG_INT, .value = "N", .start = "8",
     .help = "windows of a photograph in a run (--stride); changes only speed and memory",
     ATT_FLAG_AT(settings, passes.batch_size), .low = 1, .high = 65536},
};
static const att_flag_group weight_group = {"Answers", .rows = weight_options,
                                            .row_count = sizeof weight_options / sizeof *weight_options};

static const att_flag_use uses[] = {
    {&cli_group_answer, offsetof(settings, answer)},
    {&weight_group, 0},
    {&att_recipe_network_group, offsetof(settings, network)},
    {&att_recipe_preprocess_group, offsetof(settings, preprocess)},
    {&cli_group_passes, offsetof(settings, passes)},
    {&att_recipe_engine_group, offsetof(settings, engine)},
    {&cli_group_output, offsetof(settings, output)},
};

/* --- answers ------------------------------------------------------------------------------------------------------ */

typedef struct job {
    cli_app *cli;
    const settings *settings;
    att_network *network;
    att_answer_options shown;
    cli_drawings drawings;
    att_json_writer *writer;   /* NULL: no JSON */
    int channels;              /* channels of the network's images */
    bool colours_checked;      /* the first image has been checked for colours */
    int64_t processed, failed; /* number of images so far; number of images without a prediction */
} job;

static void print_line(void *user, const char *text)
{
    (void)user;
    cli_print("  %s\n", text);
}

static att_status print_answer(const job *j, const char *path, const att_batch *answer, const cli_drawn *drawn)
{
    cli_print("%s\n", path);
    const att_status status = att_network_describe(j->network, answer, &j->shown, print_line, NULL);
    if (status == ATT_OK && drawn)
        cli_print("  drawn: %s\n", drawn->image);
    return status;
}

static att_status write_answer(const job *j, const char *path, const att_batch *answer, const cli_drawn *drawn)
{
    att_json_begin_object(j->writer);
    att_json_put_string(j->writer, ATT_ANSWER_IMAGE, path);
    const att_status status = att_network_write(j->network, answer, &j->shown, j->writer);
    if (drawn)
        att_json_put_string(j->writer, "drawing", drawn->image);
    if (drawn && *drawn->index)
        att_json_put_string(j->writer, "index", drawn->index);
    att_json_end_object(j->writer);
    return status;
}

/* drawn: NULL: nothing was drawn. */
static att_status show_answer(const job *j, const char *path, const att_batch *answer, const cli_drawn *drawn)
{
    att_status status = ATT_OK;
    if (cli_prints(j->settings->output.json))
        status = print_answer(j, path, answer, drawn);
    return j->writer && status == ATT_OK ? write_answer(j, path, answer, drawn) : status;
}

/* An image of a data set, or a file. */
typedef struct source {
    const char *name;           /* for messages and names of drawings; the path of a file */
    const att_dataset *dataset; /* NULL: a file */
    int64_t index;
} source;

/* Draws the answer into the image, which is read again for that, in colours. */
static int draw_answer(job *j, const source *from, const att_batch *answer, cli_drawn *drawn)
{
    enum { COLOURS = 3 };
    att_context *context = j->cli->context;
    att_image photograph = {0};
    int code =
        cli_check(j->cli, from->dataset ? att_dataset_read(from->dataset, context, from->index, COLOURS, &photograph)
                                        : att_network_read_image(j->network, from->name, COLOURS, &photograph));
    if (code == CLI_OK)
        code = cli_drawings_add(&j->drawings, from->name, &photograph, answer, drawn);
    att_image_free(context, &photograph);
    return code;
}

/* Reports an image that cannot be read. The other images are still processed. */
static void report_unreadable(job *j, const char *name)
{
    j->failed++;
    cli_say("%s", att_context_message(j->cli->context));
    if (!j->writer)
        return;
    att_json_begin_object(j->writer);
    att_json_put_string(j->writer, ATT_ANSWER_IMAGE, name);
    att_json_put_string(j->writer, "error", att_context_message(j->cli->context));
    att_json_end_object(j->writer);
}

/* Shows the prediction for the image, or the reason why there is none. */
static int show_prediction(job *j, const source *from, const att_batch *answer, att_status status)
{
    cli_drawn drawn;
    j->processed++;
    j->shown.image = from->name;
    if (status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED)
        return cli_check(j->cli, status);
    if (status == ATT_ERR_NONFINITE)
        return cli_failure("%s: %s", from->name, att_context_message(j->cli->context));
    if (status != ATT_OK) {
        report_unreadable(j, from->name);
        return CLI_OK;
    }
    int code = j->settings->draw ? draw_answer(j, from, answer, &drawn) : CLI_OK;
    if (code == CLI_OK)
        code = cli_check(j->cli, show_answer(j, from->name, answer, j->settings->draw ? &drawn : NULL));
    return code;
}

static att_status predict(const job *j, const att_dataset *dataset, int64_t index, att_batch *answer)
{
    att_image image;
    att_status status = att_dataset_read(dataset, j->cli->context, index, j->channels, &image);
    if (status != ATT_OK)
        return status;
    status = att_network_run_images(j->network, &image, 1, answer);
    att_image_free(j->cli->context, &image);
    return status;
}

static const char colours_left_out[] = "the images have colours, but the network takes grey images: they are converted";

static void note_colours(job *j, const att_dataset *dataset)
{
    if (!j->colours_checked && j->channels == 1 && att_dataset_colours(dataset, j->cli->context) == ATT_COLOURS_ANY)
        cli_note(j->cli, "%s", colours_left_out);
    j->colours_checked = true;
}

/* As note_colours(), for an image given as a single file. */
static void note_colours_of_file(job *j, const char *path)
{
    att_image image;
    if (!j->colours_checked && j->channels == 1 && att_image_read(j->cli->context, path, 3, NULL, &image) == ATT_OK) {
        if (!att_image_is_grey(&image))
            cli_note(j->cli, "%s", colours_left_out);
        att_image_free(j->cli->context, &image);
    }
    j->colours_checked = true;
}

static int predict_file(job *j, const char *path)
{
    att_batch answer = {0};
    note_colours_of_file(j, path);
    att_status status = att_network_run_file(j->network, path, &answer);
    return show_prediction(j, &(source){.name = path}, &answer, status);
}

static int predict_dataset(job *j, const char *path)
{
    att_dataset *dataset;
    att_dataset_options options = att_dataset_options_defaults();
    options.unlabelled = true;
    options.limits.exif_transpose = att_network_identity(j->network)->preprocess.exif_transpose;
    att_status status = att_dataset_open(j->cli->context, path, &options, &dataset);
    if (status != ATT_OK)
        return show_prediction(j, &(source){.name = path}, NULL, status);
    note_colours(j, dataset);
    int code = CLI_OK;
    for (int64_t i = 0; code == CLI_OK && i < att_dataset_count(dataset); i++) {
        enum { NAME_SIZE = 8192 };
        char name[NAME_SIZE];
        att_dataset_name(dataset, i, name, sizeof name);
        if (cli_stop_asked()) {
            code = CLI_STOPPED;
        } else {
            att_batch answer = {0};
            att_status read = predict(j, dataset, i, &answer);
            code = show_prediction(j, &(source){name, dataset, i}, &answer, read);
        }
    }
    att_dataset_close(&dataset);
    return code;
}

static int predict_all(job *j, const char *const *paths, int count)
{
    for (int i = 0; i < count; i++) {
        if (cli_stop_asked())
            return CLI_STOPPED;
        int code = cli_is_collection(paths[i]) ? predict_dataset(j, paths[i]) : predict_file(j, paths[i]);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

static int prepare(job *j, const cli_loaded *loaded)
{
    const settings *s = j->settings;
    j->network = loaded->network;
    j->channels = loaded->identity->preprocess.in_chans;
    int code = cli_classes_name(j->cli, loaded->network, s->answer.labels);
    j->shown = (att_answer_options){.topk = s->answer.topk, .outputs = s->answer.outputs};
    if (code == CLI_OK && s->draw)
        code = cli_drawings_open(j->cli, s->draw, loaded->network, &j->drawings);
    return code == CLI_OK ? cli_json_begin_list(j->cli, s->output.json, &j->writer) : code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    job j = {.cli = cli, .settings = s};
    cli_loaded loaded = {0};
    int code = cli_output_check(s->output.json);
    if (code == CLI_OK && s->draw)
        code = cli_drawings_check("--draw", s->draw, operands + 1, count - 1);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->engine);
    if (code == CLI_OK)
        code = cli_load(
            cli, operands[0],
            &(cli_load_options){&s->network, &s->preprocess, &s->engine, s->use_ema, false, ATT_F32, &s->passes, 0},
            &loaded);
    if (code == CLI_OK)
        code = cli_check(cli, att_network_need_head(loaded.network, "it predicts nothing"));
    if (code == CLI_OK)
        code = prepare(&j, &loaded);
    if (code == CLI_OK)
        code = predict_all(&j, operands + 1, count - 1);
    code = cli_json_end_list(cli, j.writer, s->output.json, code);
    if (code == CLI_OK && j.failed > 0 && j.processed > 1)
        code = cli_failure("%lld of %lld image%s could not be processed", (long long)j.failed, (long long)j.processed,
                           cli_plural(j.processed));
    else if (code == CLI_OK && j.failed > 0)
        code = CLI_FAILURE;
    cli_drawings_close(&j.drawings);
    cli_unload(&loaded);
    return code;
}

const cli_command cli_command_predict = {
    .name = "predict",
    .summary = "prints a checkpoint's predictions for images",
    .operands = "CHECKPOINT IMAGE...",
    .least_operands = 2,
    .most_operands = 1000000,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "IMAGE is a JPEG, PNG or WebP file, or a folder, .tar, .tar.gz or .zip of such\n"
    "files. An image that cannot be read is reported and the others are processed;\n"
    "the exit status is then 1. Files of other formats in folders and archives are\n"
    "counted and skipped. A checkpoint without the name of its network needs --model.\n"
    "Names of classes come from --labels, else from the checkpoint or the\n"
    "config.json beside it, else from the data set of pretrained weights; other\n"
    "classes are numbers.",
    .example =
        "  attscope predict run/model_best.safetensors cat.jpg dog.png --topk 3 \\\n"
        "      --labels names.txt\n"
        "  attscope predict deit_tiny_patch16_224.safetensors cat.jpg \\\n"
        "      --model deit_tiny_patch16_224",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
