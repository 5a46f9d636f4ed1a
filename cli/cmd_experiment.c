/* attscope experiment: the four tasks of Dong et al. (ICML 2021) on self-attention networks. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "experiment.h"
#include "flags.h"
#include "help.h"
#include "progress.h"

typedef struct settings {
    att_experiment_options options; /* repeats: 0: not given */
    int threads;
    const char *folder, *experiment;
    att_texts quirks;
    cli_output output;
} settings;

#define EXPERIMENT(member) ATT_FLAG_AT(settings, options.member)
static const att_flag options[] = {
    {"epochs", .kind = ATT_FLAG_INT, .value = "N", .help = "epochs of the training (default: the experiment's)",
     EXPERIMENT(epochs), .low = 1, .high = 1000000, .open = true},
    {"lr", .kind = ATT_FLAG_REAL, .value = "RATE", .help = "learning rate (default: the experiment's)", EXPERIMENT(lr),
     .low = 1e-12, .high = 1000, .open = true},
    {"repeats", .kind = ATT_FLAG_INT, .value = "N",
     .help = "draws of paths for each length, for each network (default: 5)", EXPERIMENT(repeats), .low = 1,
     .high = 1000, .open = true},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .help = "seed of data, weights, training and paths",
     EXPERIMENT(seed)},
    {"seeds", .kind = ATT_FLAG_INT, .value = "N",
     .help = "networks to train, with the seeds --seed, --seed + 1 and so on; with more than one, deviations are over "
             "networks",
     EXPERIMENT(seeds), .low = 1, .high = 1000},
    {"texts", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "memorize: a file in UTF-8 with one text per line, of which the first 500 are taken (default: texts are "
             "made)",
     EXPERIMENT(texts)},
    {"tokenizer", .kind = ATT_FLAG_TEXT, .value = "PATH",
     .help =
         "memorize: divides the texts of --texts: tokenizer.json, vocab.txt, or a folder with one of them (default: "
         "tokens are words and single other characters)",
     EXPERIMENT(tokenizer)},
    {"mlp", .kind = ATT_FLAG_SWITCH,
     .help = "an MLP in every layer, as in the public code's memorisation (circle trains both)", EXPERIMENT(mlp)},
    {"quirk", .kind = ATT_FLAG_TEXTS, .value = "NAME",
     .help = "do as the public code where it differs, see above; may be given several times",
     ATT_FLAG_AT(settings, quirks)},
    {"threads", .kind = ATT_FLAG_INT, .value = "N", .help = "threads (default: all)", ATT_FLAG_AT(settings, threads),
     .low = 1, .high = 4096, .open = true},
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER", .help = "parent folder of records, for attscope report",
     ATT_FLAG_AT(settings, folder)},
    {"experiment", .kind = ATT_FLAG_TEXT, .value = "RECORD", .help = "folder within --output; without it, NAME",
     ATT_FLAG_AT(settings, experiment)},
};

static void defaults(att_context *context, void *values)
{
    (void)context;
    settings *s = values;
    s->options = att_experiment_options_defaults();
    s->options.repeats = 0;
    s->folder = "output/experiment";
}

static const att_flag_group group = {"Experiment", options, sizeof options / sizeof *options, .defaults = defaults};

static const att_flag_use uses[] = {{&group, 0}, {&cli_group_output, offsetof(settings, output)}};

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run_experiment(cli_app *cli, const settings *s, const char *name)
{
    experiment e = {.options = s->options};
    att_experiment_options *o = &e.options;
    char folder[CLI_PATH];
    cli_progress progress = cli_progress_to(cli, 1, 1000);
    int code = cli_check(cli, att_experiment_find(cli->context, name, &e.info));
    if (code != CLI_OK)
        return CLI_USAGE;
    if (!e.info->paths && o->repeats > 0)
        return cli_usage("experiment %s draws no paths, so that --repeats has no effect", name);
    int length = snprintf(folder, sizeof folder, "%s/%s", s->folder, s->experiment ? s->experiment : name);
    if (length >= (int)sizeof folder)
        return cli_usage("--output and --experiment: the path has %d letters, expected at most %d", length,
                         CLI_PATH - 1);
    o->repeats = o->repeats > 0 ? o->repeats : att_experiment_options_defaults().repeats;
    o->quirks = s->quirks.values;
    o->quirk_count = s->quirks.count;
    o->folder = folder;
    o->progress = cli_progress_show;
    o->user = &progress;
    code = cli_check(cli, att_experiment_run(cli->context, name, o, &e.result));
    cli_bar_clear(cli);
    if (code == CLI_OK && cli_prints(s->output.json))
        experiment_print(&e);
    return code == CLI_OK ? cli_json_save(cli, s->output.json, experiment_write, &e) : code;
}

static int refuse_no_name(void)
{
    char names[256] = "";
    for (int i = 0; i < att_experiment_count(); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 att_experiment_at(i)->name);
    return cli_usage("experiment needs NAME, one of %s; see attscope experiment --help", names);
}

static int run(cli_app *cli, void *user, const char *const *names, int count)
{
    const settings *s = user;
    if (count == 0)
        return refuse_no_name();
    int code = cli_file_check("--texts", s->options.texts);
    if (code == CLI_OK)
        code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_open(cli, s->threads);
    return code == CLI_OK ? run_experiment(cli, s, names[0]) : code;
}

static void explain(FILE *out)
{
    fprintf(out, "\nQuirks of the public code, by NAME; \"all\" turns all of them on:\n");
    for (int i = 0; i < att_experiment_count(); i++) {
        const att_experiment_info *info = att_experiment_at(i);
        for (const att_experiment_quirk *quirk = info->quirks; quirk && quirk->name; quirk++) {
            int indent = fprintf(out, "  %-8s  %-10s  ", quirk == info->quirks ? info->name : "", quirk->name);
            cli_print_wrapped(out, quirk->summary, indent);
        }
    }
}

const cli_command cli_command_experiment = {
    .name = "experiment",
    .summary = "repeats four published tasks on rank collapse",
    .operands = "NAME",
    .most_operands = 1,
    .about =
        "The tasks of \"Attention is not all you need\" (Dong et al., ICML 2021).\n"
        "NAME is one of\n"
        "  sort      sorts 8 digits\n"
        "  hull      finds the vertices of the convex hull of 10 points\n"
        "  memorize  memorises random classes of the tokens of up to 500 texts\n"
        "  circle    moves two points along a circle, 300 steps from its own output\n"
        "The first three train a self-attention network of 6 layers without MLPs, and\n"
        "show how well single paths through it do: a path of length k uses k of the\n"
        "layers and one head in each, without skip connections. circle trains one layer\n"
        "with and without a skip connection and an MLP.\n"
        "The record in output/experiment/NAME is for attscope report, which draws\n"
        "accuracy by path length, sampled paths, and the trajectories of circle.",
    .explain = explain,
    .example =
        "  attscope experiment sort\n"
        "  attscope report output/experiment/sort\n"
        "  attscope experiment sort --lr 1e-5 --quirk unshuffled --quirk padding\n"
        "  attscope experiment memorize --texts sentences.txt --tokenizer minilm\n"
        "  attscope experiment circle --quirk all --seeds 5 --json circle.json",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
