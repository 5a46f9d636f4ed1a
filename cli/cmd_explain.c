/* attscope explain: which method of relevance is faithful to a checkpoint, on the images of a data set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/lab/sweep.h>

#include "cells.h"
#include "flags.h"
#include "image_input.h"
#include "network.h"
#include "progress.h"
#include "stop.h"

typedef struct settings {
    const char *with, *split;
    int steps, samples;
    bool use_ema;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_engine engine;
    cli_output output;
} settings;

static const att_flag options[] = {
    {"with", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "methods, separated by commas, with options as occlusion:cell=8; without it, all that apply",
     ATT_FLAG_AT(settings, with)},
    {"steps", .kind = ATT_FLAG_INT, .value = "N", .start = "28", .help = "steps of a curve",
     ATT_FLAG_AT(settings, steps), .low = 1, .high = ATT_CURVE_MOST_STEPS},
    {"samples", .kind = ATT_FLAG_INT, .value = "N", .start = "0",
     .help = "images, spread evenly over the data set; 0: all", ATT_FLAG_AT(settings, samples), .high = 1e9},
    {"split", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "split of the data set", ATT_FLAG_AT(settings, split)},
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(settings, use_ema)},
};
static const att_flag_group group = {"Methods", .rows = options, .row_count = sizeof options / sizeof *options};
static const att_flag_use uses[] = {
    {&group, 0},
    {&att_recipe_network_group, offsetof(settings, network)},
    {&att_recipe_preprocess_group, offsetof(settings, preprocess)},
    {&att_recipe_engine_group, offsetof(settings, engine)},
    {&cli_group_output, offsetof(settings, output)},
};

/* --- methods ------------------------------------------------------------------------------------------------------ */

enum { MOST_METHODS = 32, METHOD_TEXT = 256 };

typedef struct method {
    char text[METHOD_TEXT];
    bool named;       /* by the user: it must apply */
    bool left_out;    /* it does not apply */
    double *areas[2]; /* by att_curve: of the images */
    double seconds;   /* of the maps */
} method;

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_image_input input;
    att_dataset *dataset;
    cli_progress progress;
    method methods[MOST_METHODS];
    int method_count, images;
} job;

static int add_method(job *j, const char *text, size_t length, bool named)
{
    method *m = &j->methods[j->method_count];
    if (j->method_count == MOST_METHODS)
        return cli_usage("--with has more than %d methods", MOST_METHODS);
    if (length >= sizeof m->text)
        return cli_usage("--with: a method with its options has at most %zu bytes", sizeof m->text - 1);
    memcpy(m->text, text, length);
    m->named = named;
    j->method_count++;
    const int code = cli_check(j->cli, att_relevance_check(j->cli->context, m->text));
    return code == CLI_OK ? CLI_OK : CLI_USAGE;
}

static int choose_methods(job *j)
{
    int code = CLI_OK;
    for (int i = 0; !j->settings->with && i < att_relevance_method_count(); i++) {
        const char *name = att_relevance_method_at(i).name;
        code = code == CLI_OK ? add_method(j, name, strlen(name), false) : code;
    }
    for (const char *at = j->settings->with; at && code == CLI_OK;) {
        const size_t length = att_instruments_item(at);
        code = add_method(j, at, length, true);
        at = at[length] ? at + length + 1 : NULL;
    }
    return code;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static int make_room(job *j, int64_t images)
{
    for (int i = 0; i < j->method_count; i++)
        for (int c = ATT_DELETION; c <= ATT_INSERTION; c++)
            if (!(j->methods[i].areas[c] = calloc((size_t)images + 1, sizeof *j->methods[i].areas[c])))
                return cli_failure("out of memory for the areas of %lld images", (long long)images);
    return CLI_OK;
}

static void free_room(job *j)
{
    for (int i = 0; i < j->method_count; i++)
        for (int c = ATT_DELETION; c <= ATT_INSERTION; c++)
            free(j->methods[i].areas[c]);
}

/* The class is the most probable one. */
static att_status judge(job *j, method *m)
{
    double probabilities[ATT_CURVE_MOST_STEPS + 1];
    att_relevance_map map;
    const double start = cli_now();
    att_status status = att_relevance_run(j->input.relevance, &j->input.batch, m->text, -1, &map);
    m->seconds += cli_now() - start;
    for (int c = ATT_DELETION; c <= ATT_INSERTION && status == ATT_OK; c++)
        status = att_relevance_curve(j->input.relevance, &j->input.batch, &map, map.target, (att_curve)c,
                                     j->settings->steps, probabilities, &m->areas[c][j->images]);
    return status;
}

static int judge_image(job *j)
{
    for (int i = 0; i < j->method_count; i++) {
        method *m = &j->methods[i];
        const att_status status = m->left_out ? ATT_OK : judge(j, m);
        if (status == ATT_ERR_UNSUPPORTED && !m->named) {
            m->left_out = true;
            cli_note(j->cli, "%s is left out: %s", m->text, att_context_message(j->cli->context));
        } else if (status != ATT_OK) {
            return cli_check(j->cli, status);
        }
    }
    return CLI_OK;
}

static int read_and_judge(job *j, int64_t index)
{
    att_image image = {0};
    att_status status = att_dataset_read(j->dataset, j->cli->context, index, j->input.transform.channels, &image);
    if (status == ATT_OK)
        status = cli_image_input_set(&j->input, &image);
    att_image_free(j->cli->context, &image);
    return status == ATT_OK ? judge_image(j) : cli_check(j->cli, status);
}

static bool show_progress(job *j, int64_t images, double started)
{
    const double seconds = cli_now() - started;
    const att_progress progress = {.stage = "curves",
                                   .batch = j->images,
                                   .batches = images,
                                   .images_per_second = j->images / seconds,
                                   .seconds_left = seconds / j->images * (double)(images - j->images),
                                   .loss = NAN,
                                   .slowest_rank = -1};
    return cli_progress_show(&j->progress, &progress);
}

static int judge_all(job *j)
{
    const int64_t count = att_dataset_count(j->dataset), wanted = j->settings->samples;
    const int64_t images = wanted > 0 && wanted < count ? wanted : count;
    const double started = cli_now();
    int code = make_room(j, images);
    for (int64_t i = 0; i < images && code == CLI_OK; i++) {
        code = read_and_judge(j, i * count / images);
        j->images += code == CLI_OK; /* all methods have judged it */
        if (code == CLI_OK && !show_progress(j, images, started))
            code = CLI_STOPPED;
    }
    cli_bar_clear(j->cli);
    return code;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void print_results(const job *j)
{
    enum { AREA = 16 };
    char text[64];
    int widest = 0;
    for (int i = 0; i < j->method_count; i++)
        widest = cli_wider(widest, j->methods[i].text);
    cli_print("%d image%s, %d steps: mean of the area ± half of its 95 %% interval\n\n", j->images,
              cli_plural(j->images), j->settings->steps);
    cli_left("method", widest);
    cli_right("deletion", AREA);
    cli_right("insertion", AREA);
    cli_right("ms per map", AREA);
    cli_print("\n");
    for (int i = 0; i < j->method_count; i++) {
        const method *m = &j->methods[i];
        if (m->left_out)
            continue;
        cli_left(m->text, widest);
        for (int c = ATT_DELETION; c <= ATT_INSERTION; c++) {
            const att_paired area = att_paired_difference(m->areas[c], NULL, j->images);
            cli_format_spread(area.mean, area.high - area.mean, text, sizeof text);
            cli_right(text, AREA);
        }
        snprintf(text, sizeof text, "%.1f", 1000 * m->seconds / j->images);
        cli_right(text, AREA);
        cli_print("\n");
    }
    cli_print("\nA faithful map has a small area of deletion and a large one of insertion.\n");
}

static void write_curve(att_json_writer *writer, const char *name, const double *areas, int images)
{
    const att_paired area = att_paired_difference(areas, NULL, images);
    att_json_put_object(writer, name);
    att_json_put_number(writer, "area", area.mean);
    att_json_put_number(writer, "low", area.low);
    att_json_put_number(writer, "high", area.high);
    att_json_end_object(writer);
}

/* As for cli_json_save(). */
static void write_results(att_json_writer *writer, const void *from)
{
    const job *j = from;
    att_json_put_integer(writer, "images", j->images);
    att_json_put_integer(writer, "steps", j->settings->steps);
    att_json_put_array(writer, "methods");
    for (int i = 0; i < j->method_count; i++) {
        const method *m = &j->methods[i];
        if (m->left_out)
            continue;
        att_json_begin_object(writer);
        att_json_put_string(writer, "method", m->text);
        write_curve(writer, "deletion", m->areas[ATT_DELETION], j->images);
        write_curve(writer, "insertion", m->areas[ATT_INSERTION], j->images);
        att_json_put_number(writer, "seconds_per_map", m->seconds / j->images);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static int open_data(job *j, const char *path)
{
    att_dataset_options how = att_dataset_options_defaults();
    how.unlabelled = true;
    how.split = j->settings->split;
    return cli_check(j->cli, att_network_open_dataset(j->input.network, &path, 1, &how, &j->dataset));
}

static int show(job *j)
{
    if (j->images == 0)
        return cli_failure("the data set has no images");
    if (cli_prints(j->settings->output.json))
        print_results(j);
    return cli_json_save(j->cli, j->settings->output.json, write_results, j);
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    job *j = calloc(1, sizeof *j);
    cli_loaded loaded = {0};
    (void)count;
    if (!j)
        return cli_failure("out of memory for the figures of methods");
    *j = (job){.cli = cli, .settings = s};
    int code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->engine);
    j->progress = cli_progress_to(cli, 1, 1);
    if (code == CLI_OK)
        code = choose_methods(j);
    if (code == CLI_OK)
        code = cli_load(cli, operands[0],
                        &(cli_load_options){&s->network, &s->preprocess, &s->engine, s->use_ema, false, ATT_F32, NULL},
                        &loaded);
    if (code == CLI_OK)
        code = cli_image_input_open(cli, loaded.network, &j->input);
    if (code == CLI_OK)
        code = cli_image_input_explain(&j->input);
    if (code == CLI_OK)
        code = open_data(j, operands[1]);
    if (code == CLI_OK)
        code = judge_all(j);
    if (code == CLI_OK || (code == CLI_STOPPED && j->images > 0)) {
        const int shown = show(j); /* after a stop, the images so far */
        code = code == CLI_OK ? shown : code;
    }
    att_dataset_close(&j->dataset);
    cli_image_input_close(&j->input);
    cli_unload(&loaded);
    free_room(j);
    free(j);
    return code;
}

static void explain_methods(FILE *out)
{
    fprintf(out, "\nMethods:\n");
    for (int i = 0; i < att_relevance_method_count(); i++) {
        const att_relevance_method_info info = att_relevance_method_at(i);
        fprintf(out, "  %-22s %s%s%s%s\n", info.name, info.summary, info.source ? " (" : "",
                info.source ? info.source : "", info.source ? ")" : "");
        for (int o = 0; o < info.option_count; o++)
            fprintf(out, "    %s=%g%*s %s\n", info.options[o].name, info.options[o].start,
                    (int)(16 - strlen(info.options[o].name)), "", info.options[o].meaning);
    }
}

const cli_command cli_command_explain = {
    .name = "explain",
    .summary = "measures which maps of relevance are faithful to a checkpoint",
    .operands = "CHECKPOINT DATA",
    .least_operands = 2,
    .most_operands = 2,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "DATA is a folder or an archive of images, also without classes. For each image\n"
    "and method, the pixels of the network's input are ordered by their relevance for\n"
    "the most probable class. Deletion removes the most relevant first; insertion adds\n"
    "them first to a blurred image. The area under the probability of the class is\n"
    "small for deletion and large for insertion if the map is faithful (Petsiuk, Das\n"
    "and Saenko, BMVC 2018). The methods random and centre are for comparison.\n"
    "`attscope maps` draws the maps.",
    .explain = explain_methods,
    .example =
        "  attscope explain deit_tiny_patch16_224.safetensors photographs\n"
        "  attscope explain run photographs --with chefer,grad_cam,random --samples 50",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
