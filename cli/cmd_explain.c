/* attscope explain: which method of relevance is faithful to a checkpoint, on the images of a data set, and which
 * points to objects. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/lab/sweep.h>

#include "cells.h"
#include "explain_pointing.h"
#include "flags.h"
#include "image_input.h"
#include "network.h"
#include "progress.h"
#include "stop.h"
#include "texts.h"

typedef struct settings {
    const char *with, *split, *categories;
    int steps, samples;
    bool pointing;
    bool use_ema, f64;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_engine engine;
    cli_output output;
} settings;

static const att_flag options[] = {
    {"with", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "methods, separated by commas, with options as occlusion:cell=8; without it, all that apply",
     ATT_FLAG_AT(settings, with)},
    {"steps", .kind = ATT_FLAG_INT, .value = "N", .start = "28", .help = "steps of a curve; 0: no curves",
     ATT_FLAG_AT(settings, steps), .low = 0, .high = ATT_CURVE_MOST_STEPS},
    {"pointing", .kind = ATT_FLAG_SWITCH,
     .help = "also the pointing game; DATA then has photographs with boxes, as for a detector",
     ATT_FLAG_AT(settings, pointing)},
    {"categories", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "pointing game: the classes of the network that belong to a category of boxes, in lines such as "
             "\"dog: 151-268\"; without it, categories with the name of a class take part",
     ATT_FLAG_AT(settings, categories)},
    {"samples", .kind = ATT_FLAG_INT, .value = "N", .start = "0",
     .help = "images, spread evenly over the data set; 0: all", ATT_FLAG_AT(settings, samples), .high = 1e9},
    {"split", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "split of the data set", ATT_FLAG_AT(settings, split)},
    {"use-ema", .kind = ATT_FLAG_SWITCH, .help = "use the averaged weights", ATT_FLAG_AT(settings, use_ema)},
    {"f64", .kind = ATT_FLAG_SWITCH, .help = "run the network in double precision, many times slower",
     ATT_FLAG_AT(settings, f64)},
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
    double *hits;     /* of the questions of the pointing game: 0 or 1; NaN: it does not count */
    double seconds;   /* of the maps */
    int maps;
} method;

typedef struct job {
    cli_app *cli;
    const settings *settings;
    cli_image_input input;
    att_dataset *dataset;
    cli_pointing pointing;
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
    const size_t questions = j->settings->pointing ? (size_t)cli_pointing_most(&j->pointing) : 0;
    for (int i = 0; i < j->method_count; i++)
        if (!(j->methods[i].hits = calloc(questions + 1, sizeof *j->methods[i].hits)))
            return cli_failure("out of memory for the hits of %zu questions", questions);
    return CLI_OK;
}

static void free_room(job *j)
{
    for (int i = 0; i < j->method_count; i++)
        for (int c = ATT_DELETION; c <= ATT_INSERTION; c++)
            free(j->methods[i].areas[c]);
    for (int i = 0; i < j->method_count; i++)
        free(j->methods[i].hits);
}

static att_status find_map(job *j, method *m, int target, att_relevance_map *map)
{
    const double start = cli_now();
    const att_status status = att_relevance_run(j->input.relevance, &j->input.batch, m->text, target, map);
    m->seconds += cli_now() - start;
    m->maps++;
    return status;
}

/* The class is the most probable one. */
static att_status judge(job *j, method *m)
{
    double probabilities[ATT_CURVE_MOST_STEPS + 1];
    att_relevance_map map;
    att_status status = find_map(j, m, -1, &map);
    for (int c = ATT_DELETION; c <= ATT_INSERTION && status == ATT_OK; c++)
        status = att_relevance_curve(j->input.relevance, &j->input.batch, &map, map.target, (att_curve)c,
                                     j->settings->steps, probabilities, &m->areas[c][j->images]);
    return status;
}

/* A question of the pointing game. */
typedef struct question {
    att_geometry place;
    const att_true_box *boxes;
    int box_count, label, target;
} question;

static att_status point(job *j, method *m, const question *asked)
{
    att_relevance_map map;
    const att_status status = find_map(j, m, asked->target, &map);
    if (status != ATT_OK)
        return status;
    const att_pointing found =
        att_relevance_point(&map, &asked->place, asked->boxes, asked->box_count, asked->label, ATT_POINTING_MARGIN);
    m->hits[j->pointing.questions] = found == ATT_POINTING_NEITHER ? NAN : found == ATT_POINTING_HIT;
    return ATT_OK;
}

/* asked: NULL: the curves */
static int judge_with(job *j, const question *asked)
{
    for (int i = 0; i < j->method_count; i++) {
        method *m = &j->methods[i];
        att_status status = ATT_OK;
        if (!m->left_out)
            status = asked ? point(j, m, asked) : judge(j, m);
        if (status == ATT_ERR_UNSUPPORTED && !m->named) {
            m->left_out = true;
            cli_note(j->cli, "%s is left out: %s", m->text, att_context_message(j->cli->context));
        } else if (status != ATT_OK) {
            return cli_check(j->cli, status);
        }
    }
    return CLI_OK;
}

/* Asks about each category of the photograph. */
static int ask_all(job *j, int64_t index, const att_image *image)
{
    cli_pointing *p = &j->pointing;
    question asked = {0};
    asked.boxes = att_dataset_boxes(j->dataset, index, &asked.box_count);
    int code = cli_check(j->cli, att_transform_geometry(j->cli->context, &j->input.transform, image->width,
                                                        image->height, &asked.place));
    asked.label = -1;
    while (code == CLI_OK && (asked.label = cli_pointing_next(p, index, asked.label)) >= 0) {
        const cli_pointed *of = &p->categories[asked.label];
        code = cli_check(
            j->cli, att_relevance_choose(j->input.relevance, &j->input.batch, of->classes, of->count, &asked.target));
        if (code == CLI_OK)
            code = judge_with(j, &asked);
        if (code == CLI_OK)
            cli_pointing_ask(p, asked.label);
    }
    return code;
}

static int read_and_judge(job *j, int64_t index)
{
    att_image image = {0};
    att_status status = att_dataset_read(j->dataset, j->cli->context, index, j->input.transform.channels, &image);
    if (status == ATT_OK)
        status = cli_image_input_set(&j->input, &image);
    int code = cli_check(j->cli, status);
    if (code == CLI_OK && j->settings->steps > 0)
        code = judge_with(j, NULL);
    if (code == CLI_OK && j->settings->pointing)
        code = ask_all(j, index, &image);
    att_image_free(j->cli->context, &image);
    return code;
}

static bool show_progress(job *j, int64_t images, double started)
{
    const double seconds = cli_now() - started;
    const att_progress progress = {.stage = j->settings->steps > 0 ? "curves" : "pointing game",
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

/* The pointing game of a method. */
typedef struct pointed {
    att_paired share;   /* of hits among the questions that count */
    double by_category; /* the mean over categories of the share of each */
} pointed;

static pointed pointed_by(const job *j, const method *m)
{
    const cli_pointing *p = &j->pointing;
    pointed found = {.by_category = NAN};
    double *counted = calloc((size_t)p->questions + 1, sizeof *counted), sum = 0;
    int count = 0, categories = 0;
    for (int q = 0; counted && q < p->questions; q++)
        if (!isnan(m->hits[q]))
            counted[count++] = m->hits[q];
    found.share = att_paired_difference(counted, NULL, count);
    free(counted);
    for (int c = 0; c < p->count; c++) {
        double hits = 0;
        int asked = 0;
        for (int q = 0; q < p->questions; q++)
            if (p->asked[q] == c && !isnan(m->hits[q]))
                hits += m->hits[q], asked++;
        if (asked > 0)
            sum += hits / asked, categories++;
    }
    found.by_category = categories > 0 ? sum / categories : NAN;
    return found;
}

enum { CELL = 16 };

static void print_head(const job *j, int widest)
{
    const settings *s = j->settings;
    if (s->steps > 0)
        cli_print("%d image%s, %d steps: mean of the area ± half of its 95 %% interval\n", j->images,
                  cli_plural(j->images), s->steps);
    if (s->pointing)
        cli_print(
            "%d questions of the pointing game on %d image%s: per cent of hits ± half of their 95 %% interval, and "
            "mean over categories\n",
            j->pointing.questions, j->images, cli_plural(j->images));
    cli_print("\n");
    cli_left("method", widest);
    if (s->steps > 0) {
        cli_right("deletion", CELL);
        cli_right("insertion", CELL);
    }
    if (s->pointing) {
        cli_right("pointing, %", CELL);
        cli_right("by category, %", CELL);
    }
    cli_right("ms per map", CELL);
    cli_print("\n");
}

static void print_method(const job *j, const method *m, int widest)
{
    char text[64];
    cli_left(m->text, widest);
    for (int c = ATT_DELETION; c <= ATT_INSERTION && j->settings->steps > 0; c++) {
        const att_paired area = att_paired_difference(m->areas[c], NULL, j->images);
        cli_format_spread(area.mean, area.high - area.mean, text, sizeof text);
        cli_right(text, CELL);
    }
    if (j->settings->pointing) {
        const pointed found = pointed_by(j, m);
        cli_format_spread(100 * found.share.mean, 100 * (found.share.high - found.share.mean), text, sizeof text);
        cli_right(text, CELL);
        snprintf(text, sizeof text, "%.1f", 100 * found.by_category);
        cli_right(text, CELL);
    }
    snprintf(text, sizeof text, "%.1f", 1000 * m->seconds / m->maps);
    cli_right(text, CELL);
    cli_print("\n");
}

static void print_results(const job *j)
{
    int widest = 0;
    for (int i = 0; i < j->method_count; i++)
        widest = cli_wider(widest, j->methods[i].text);
    print_head(j, widest);
    for (int i = 0; i < j->method_count; i++)
        if (!j->methods[i].left_out)
            print_method(j, &j->methods[i], widest);
    if (j->settings->steps > 0)
        cli_print("\nA faithful map has a small area of deletion and a large one of insertion.\n");
    if (j->settings->pointing)
        cli_print(
            "\nA hit: the largest value of the map of a class lies in a box of an object of this class, or at most "
            "%d pixels beside it.\n",
            (int)ATT_POINTING_MARGIN);
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

static void write_pointed(att_json_writer *writer, const job *j, const method *m)
{
    const pointed found = pointed_by(j, m);
    att_json_put_object(writer, "pointing");
    att_json_put_integer(writer, "questions", found.share.count);
    att_json_put_number(writer, "share", found.share.mean);
    att_json_put_number(writer, "low", found.share.low);
    att_json_put_number(writer, "high", found.share.high);
    att_json_put_number(writer, "category_mean", found.by_category);
    att_json_end_object(writer);
}

/* The categories that were asked about, with the classes of the network that count as theirs. */
static void write_categories(att_json_writer *writer, const job *j)
{
    const cli_pointing *p = &j->pointing;
    att_json_put_integer(writer, "questions", p->questions);
    att_json_put_integer(writer, "margin", ATT_POINTING_MARGIN);
    att_json_put_array(writer, "categories");
    for (int c = 0; c < p->count; c++) {
        if (p->categories[c].questions == 0)
            continue;
        att_json_begin_object(writer);
        att_json_put_string(writer, "category", att_dataset_class_name(p->dataset, c));
        att_json_put_integer(writer, "questions", p->categories[c].questions);
        att_json_put_array(writer, "classes");
        for (int k = 0; k < p->categories[c].count; k++)
            att_json_integer(writer, p->categories[c].classes[k]);
        att_json_end_array(writer);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* As for cli_json_save(). */
static void write_results(att_json_writer *writer, const void *from)
{
    const job *j = from;
    att_json_put_integer(writer, "images", j->images);
    att_json_put_integer(writer, "steps", j->settings->steps);
    if (j->settings->pointing)
        write_categories(writer, j);
    att_json_put_array(writer, "methods");
    for (int i = 0; i < j->method_count; i++) {
        const method *m = &j->methods[i];
        if (m->left_out)
            continue;
        att_json_begin_object(writer);
        att_json_put_string(writer, "method", m->text);
        if (j->settings->steps > 0) {
            write_curve(writer, "deletion", m->areas[ATT_DELETION], j->images);
            write_curve(writer, "insertion", m->areas[ATT_INSERTION], j->images);
        }
        if (j->settings->pointing)
            write_pointed(writer, j, m);
        att_json_put_number(writer, "seconds_per_map", m->seconds / m->maps);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static int open_data(job *j, const char *path)
{
    att_dataset_options how = att_dataset_options_defaults();
    how.split = j->settings->split;
    if (!j->settings->pointing) {
        how.unlabelled = true;
        return cli_check(j->cli, att_network_open_dataset(j->input.network, &path, 1, &how, &j->dataset));
    }
    how.annotations = ATT_ANNOTATION_BOXES;
    const int code = cli_check(j->cli, att_dataset_open(j->cli->context, path, &how, &j->dataset));
    return code == CLI_OK
               ? cli_pointing_open(j->cli, j->input.network, j->dataset, j->settings->categories, &j->pointing)
               : code;
}

static int check(const settings *s)
{
    if (s->categories && !s->pointing)
        return cli_usage("--categories requires --pointing");
    if (s->steps == 0 && !s->pointing)
        return cli_usage("--steps 0 leaves nothing to measure without --pointing");
    if (s->f64 && s->engine.amp)
        return cli_usage("explain: --f64 and --amp exclude each other");
    return cli_output_check(s->output.json);
}

static int show(job *j)
{
    if (j->images == 0)
        return cli_failure("the data set has no images");
    if (j->settings->pointing && j->pointing.questions == 0)
        return cli_failure("no photograph has a box of a category that is a class of the network");
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
    int code = check(s);
    if (code == CLI_OK)
        code = cli_engine_open(cli, &s->engine);
    j->progress = cli_progress_to(cli, 1, 1);
    if (code == CLI_OK)
        code = choose_methods(j);
    if (code == CLI_OK)
        code = cli_load(cli, operands[0],
                        &(cli_load_options){&s->network, &s->preprocess, &s->engine, s->use_ema, false,
                                            s->f64 ? ATT_F64 : ATT_F32, NULL, 0},
                        &loaded);
    if (code == CLI_OK && cli_takes_texts(&loaded))
        code = cli_failure(
            "%s reads texts, and explain deletes pixels of images; attscope maps --show chefer draws the "
            "relevance of the tokens of a text",
            loaded.identity->name);
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
    cli_pointing_close(&j->pointing);
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
    "`attscope maps` draws the maps.\n\n"
    "With --pointing, DATA is a folder of photographs with boxes (COCO's JSON, Pascal\n"
    "VOC's XML or YOLO's text files), and for each class of the objects in a\n"
    "photograph a map should have its largest value in a box of such an object (Zhang\n"
    "et al., ECCV 2016).",
    .explain = explain_methods,
    .example =
        "  attscope explain deit_tiny_patch16_224.safetensors photographs\n"
        "  attscope explain run photographs --with chefer,grad_cam,random --samples 50\n"
        "  attscope explain deit_tiny_patch16_224.safetensors coco --pointing --steps 0",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
