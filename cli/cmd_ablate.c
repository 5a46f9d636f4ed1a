/* attscope ablate: evaluates a checkpoint without parts of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/lab/ablation.h>

#include "cells.h"
#include "evaluation.h"
#include "progress.h"
#include "texts.h"

typedef struct settings {
    cli_evaluation on;
    att_ablation_options options;
    cli_text_options texts;
    cli_output output;
    const char *npz;
    int rows;
    bool brief;
} settings;

static const att_flag part_options[] = {
    {"heads", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "all (the default if no parts are named): each head of each attention layer alone; blocks.3: each head of "
             "this layer; blocks.3:0,2: heads 0 and 2 together; ';' separates what is removed one after another, '+' "
             "joins what is removed together: 'blocks.3:0;blocks.4:1+blocks.5:1'; '*' and '?' are wildcards",
     ATT_FLAG_AT(settings, options.heads)},
    {"branches", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "residual branches: all, attention, mlp, convolution or pooling (each with this content alone), or names "
             "of additions such as blocks.3.add1, with ';', '+' and wildcards as above",
     ATT_FLAG_AT(settings, options.branches)},
    {"tokens", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "tokens that no query sees any more: all, class or registers (each alone), or numbers and ranges that are "
             "removed together: 1-4,7; ';' and '+' as above",
     ATT_FLAG_AT(settings, options.tokens)},
    {"uniform", .kind = ATT_FLAG_SWITCH,
     .help = "make heads uniform instead of removing them: every key that a query sees has the same weight",
     ATT_FLAG_AT(settings, options.uniform)},
    {"greedy", .kind = ATT_FLAG_SWITCH,
     .help = "remove the parts one after another for good, in each step the one without which accuracy is highest (of "
             "equals, loss lowest), as long as accuracy is not below --bound",
     ATT_FLAG_AT(settings, options.greedy)},
    {"bound", .kind = ATT_FLAG_REAL, .value = "PERCENT", .help = "greedy: the lowest accuracy, in per cent",
     ATT_FLAG_AT(settings, options.bound), .low = 0, .high = 100},
};
static const att_flag_group part_group = {"Parts", .rows = part_options,
                                          .row_count = sizeof part_options / sizeof *part_options};

static const att_flag file_options[] = {
    {"npz", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "write the numbers of each image for numpy.load(): loss, right and p_class [1 + parts, images]",
     ATT_FLAG_AT(settings, npz), .once = true},
    {"rows", .kind = ATT_FLAG_INT, .value = "N", .start = "0",
     .help = "show the N parts without which the loss rises most; 0: all", ATT_FLAG_AT(settings, rows), .low = 0,
     .high = 1000000},
    {"brief", .kind = ATT_FLAG_SWITCH, .help = "print the numbers without their formulas",
     ATT_FLAG_AT(settings, brief)},
};
static const att_flag_group file_group = {"Result", .rows = file_options,
                                          .row_count = sizeof file_options / sizeof *file_options};

static const att_flag_use uses[] = {
    {&part_group, 0},
    {&cli_group_evaluation_data, offsetof(settings, on.data)},
    {&att_recipe_network_group, offsetof(settings, on.network)},
    {&att_recipe_preprocess_group, offsetof(settings, on.preprocess)},
    {&att_recipe_engine_group, offsetof(settings, on.engine)},
    {&cli_group_texts, offsetof(settings, texts)},
    {&file_group, 0},
    {&cli_group_output, offsetof(settings, output)},
};

typedef struct job {
    cli_app *cli;
    const settings *settings;
    char checkpoint[CLI_PATH];
    cli_loaded loaded;
    att_dataset *dataset;
    att_token_texts texts; /* of a network that reads texts */
    att_ablation *found;
} job;

/* --- table -------------------------------------------------------------------------------------------------------- */

static void print_methods(const att_ablation *found)
{
    att_ablation_method method;
    char text[512];
    for (int i = 0; (method = att_ablation_method_at(found, i)).name; i++) {
        snprintf(text, sizeof text, "%s; %s", method.formula, method.reading);
        cli_explain(method.name, text);
    }
    cli_print("\n");
}

enum { NUMBER = 26 };

static void print_interval(const att_paired *paired)
{
    char text[96];
    cli_format_interval(paired->mean, paired->low, paired->high, text, sizeof text);
    cli_right(text, NUMBER);
}

/* vector: the only number is the distance of a vector. */
static void print_change(const att_ablation_change *change, int width, bool vector)
{
    char counts[64];
    cli_left(change->name, width);
    print_interval(&change->loss);
    if (vector) {
        cli_print("\n");
        return;
    }
    print_interval(&change->accuracy);
    print_interval(&change->probability);
    snprintf(counts, sizeof counts, "-%lld +%lld", (long long)change->lost, (long long)change->gained);
    cli_right(counts, 12);
    cli_print("\n");
}

static void print_changes(const job *j)
{
    const att_ablation *found = j->found;
    const int count = att_ablation_count(found), rows = j->settings->rows;
    const int shown = rows > 0 && rows < count ? rows : count;
    const bool vector = att_ablation_describe(found).vector;
    const char *first = j->settings->options.greedy ? "removed so far" : "without";
    int width = cli_width_of(first);
    for (int r = 0; r < shown; r++)
        width = cli_wider(width, att_ablation_at(found, att_ablation_ranked(found, r)).name);
    cli_left(first, width);
    cli_right(vector ? "distance" : "loss", NUMBER);
    if (!vector) {
        cli_right("accuracy (points)", NUMBER);
        cli_right("p_class", NUMBER);
        cli_right("lost, gained", 12);
    }
    cli_print("\n");
    for (int r = 0; r < shown; r++) {
        const att_ablation_change change = att_ablation_at(found, att_ablation_ranked(found, r));
        print_change(&change, width, vector);
    }
    if (shown < count)
        cli_print("  ... and %d more\n", count - shown);
}

static void print_correlations(const att_ablation *found)
{
    static const char *const parts[] = {
        [ATT_ABLATED_HEADS] = "heads", [ATT_ABLATED_BRANCHES] = "branches", [ATT_ABLATED_TOKENS] = "tokens"};
    char text[96], p[32];
    if (att_ablation_correlation_count(found) == 0)
        return;
    cli_print("\n");
    cli_left(att_ablation_describe(found).vector ? "distance with" : "change of the loss with", 32);
    cli_right("rho", NUMBER);
    cli_right("p", 8);
    cli_right("over", 14);
    cli_print("\n");
    for (int i = 0; i < att_ablation_correlation_count(found); i++) {
        const att_ablation_correlation c = att_ablation_correlation_at(found, i);
        cli_left(c.figure, 32);
        cli_format_interval(c.spearman.value, c.spearman.low, c.spearman.high, text, sizeof text);
        cli_right(text, NUMBER);
        snprintf(p, sizeof p, isnan(c.spearman.p) ? "-" : "%.2g", c.spearman.p);
        cli_right(p, 8);
        snprintf(text, sizeof text, "%d %s", c.count, parts[c.kind]);
        cli_right(text, 14);
        cli_print("\n");
    }
}

static void print_unchanged(const att_ablation_facts *facts)
{
    cli_print("unchanged: accuracy %.2f %%, loss %.4f, p_class %.4f; %lld ", facts->accuracy, facts->loss,
              facts->probability, (long long)facts->images);
    cli_print(facts->texts ? "text%s" : "image%s", cli_plural(facts->images));
    if (facts->unlabelled > 0)
        cli_print(", of which %lld have no class: that which the unchanged network predicts counts",
                  (long long)facts->unlabelled);
}

static void print_found(const job *j)
{
    const att_ablation_facts facts = att_ablation_describe(j->found);
    const bool uniform = j->settings->options.uniform;
    if (!j->settings->brief)
        print_methods(j->found);
    if (facts.vector)
        cli_print("%lld text%s, by the vector \"%s\"", (long long)facts.images, cli_plural(facts.images), facts.vector);
    else
        print_unchanged(&facts);
    cli_print("\n%s:\n\n", uniform ? "changes if heads are uniform" : "changes if parts are removed");
    print_changes(j);
    print_correlations(j->found);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void write_found(att_json_writer *writer, const void *from)
{
    const job *j = from;
    att_json_put_string(writer, "model", j->loaded.identity->name);
    att_json_put_string(writer, "checkpoint", j->checkpoint);
    att_json_put_string(writer, "data", j->settings->on.data.data_dir);
    if (j->dataset)
        att_json_put_string(writer, "split", att_dataset_split(j->dataset));
    else
        att_json_put_integer(writer, "shortened", j->texts.shortened);
    att_ablation_write_json(j->found, writer);
}

static int show(const job *j)
{
    const settings *s = j->settings;
    const att_ablation_facts facts = att_ablation_describe(j->found);
    char target[CLI_PATH];
    cli_note(j->cli, "%lld runs of %s in %.1f s: %.1f per second", (long long)facts.runs,
             facts.texts ? "a text" : "an image", facts.seconds, (double)facts.runs / facts.seconds);
    if (cli_prints(s->output.json))
        print_found(j);
    int code = s->npz ? cli_check(j->cli, att_ablation_write_npz(j->found, cli_file_target(s->npz, target))) : CLI_OK;
    return code == CLI_OK ? cli_json_save(j->cli, s->output.json, write_found, j) : code;
}

static int ablate(job *j)
{
    const settings *s = j->settings;
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_ablation_options options = s->options;
    options.batch_size = s->on.data.batch_size;
    options.workers = s->on.data.workers;
    options.skip_corrupt = s->on.data.skip_corrupt;
    options.progress = cli_progress_show;
    options.progress_user = &progress;
    const att_status status = j->dataset ? att_ablate(j->loaded.network, j->dataset, &options, &j->found)
                                         : att_ablate_texts(j->loaded.network, &j->texts, &options, &j->found);
    cli_bar_clear(j->cli);
    if (status == ATT_ERR_STOPPED) {
        cli_say("stopped before all parts were removed; there is no result");
        return CLI_STOPPED;
    }
    const int code = cli_check(j->cli, status);
    return code == CLI_OK ? show(j) : code;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int read_operands(settings *s, const char *const *operands, int count)
{
    int used;
    const int code = cli_evaluation_operands("ablate", &s->on.data, operands, count, &used);
    if (code != CLI_OK)
        return code;
    if (!s->options.greedy && s->options.bound > 0)
        return cli_usage("--bound requires --greedy");
    return CLI_OK;
}

static int open_images(job *j, const settings *s)
{
    int code = cli_texts_refuse(&j->loaded, &s->texts);
    if (code == CLI_OK)
        code = cli_check(j->cli, att_network_need_head(j->loaded.network, "its answers cannot be compared"));
    if (code == CLI_OK)
        code = cli_evaluation_open(j->cli, &s->on, &j->loaded, &j->dataset);
    if (code == CLI_OK && att_dataset_class_count(j->dataset) > 0)
        code = cli_check(j->cli, att_network_compare_classes(j->loaded.network, j->dataset, true));
    return code;
}

static int open_texts(job *j, const settings *s)
{
    const settings *usual = att_flags_defaults(j->cli->flags);
    att_texts_options ignored = att_texts_options_defaults();
    const int code = cli_texts_take(&j->loaded, &s->on.data, &usual->on.data, &ignored);
    return code == CLI_OK ? cli_texts_read(j->cli, &j->loaded, s->on.data.data_dir, &s->texts, 0, &j->texts) : code;
}

static int open_all(job *j, settings *s)
{
    const cli_named_output outputs[] = {{"--json", s->output.json, false}, {"--npz", s->npz, false}};
    int code = cli_engine_open(j->cli, &s->on.engine);
    if (code == CLI_OK)
        code = cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
    if (code == CLI_OK)
        code = cli_checkpoint_locate(j->cli, s->on.data.checkpoint, j->checkpoint);
    s->on.data.checkpoint = j->checkpoint;
    if (code == CLI_OK)
        code = cli_evaluation_load(j->cli, &s->on, &j->loaded);
    if (code == CLI_OK)
        code = cli_takes_texts(&j->loaded) ? open_texts(j, s) : open_images(j, s);
    return code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    int code = read_operands(s, operands, count);
    s->on.test_images = s->on.unlabelled = true;
    if (code == CLI_OK)
        code = open_all(&j, s);
    if (code == CLI_OK)
        code = ablate(&j);
    att_ablation_destroy(&j.found);
    att_dataset_close(&j.dataset);
    att_token_texts_free(cli->context, &j.texts);
    cli_unload(&j.loaded);
    return code;
}

const cli_command cli_command_ablate = {
    .name = "ablate",
    .summary = "evaluates a checkpoint without heads, branches or tokens",
    .operands = "CHECKPOINT DATA|TEXTS",
    .most_operands = 2,
    .flags_replace = true,
    .about = CLI_CHECKPOINT_HELP
    "\n\n"
    "Runs CHECKPOINT on every image of DATA, once unchanged and once without each of\n"
    "the parts, and prints by how much loss, accuracy and the probability of the right\n"
    "class change, with 95 % intervals over the images, and rank correlations with what\n"
    "`attscope measure` finds on the same images.\n\n" CLI_DATA_HELP
    "\n\n"
    "Of images without classes, the class that the unchanged network predicts counts as\n"
    "the right one.\n\n"
    "A network that reads texts takes a file of TEXTS in UTF-8, one a line. Without\n"
    "classes it is compared by the cosine distance of its vector, the mean over the\n"
    "tokens, to that of the unchanged network.",
    .example =
        "  attscope ablate deit_tiny_patch16_224.safetensors imagenet/val --heads all\n"
        "  attscope ablate output/first data --branches mlp --json mlp.json\n"
        "  attscope ablate output/first data --greedy --bound 90\n"
        "  attscope ablate all-MiniLM-L6-v2 sentences.txt --heads all",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
