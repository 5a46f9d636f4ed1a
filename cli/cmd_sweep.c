/* attscope sweep: runs a recipe over seeds and settings.
 *
 * Each step of a run (attscope train, then attscope measure) is a separate process. So a step of a run gives the same
 * results as its command line, each step starts with fresh memory, and a crash or an out-of-memory kill affects a
 * single run. The runs' folders hold all state between two calls. */
#include <string.h>

#include "flags.h"
#include "pairs.h"
#include "paths.h"
#include "sweep_steps.h"
#include "sweep_table.h"

typedef struct settings {
    att_sweep_options sweep;
    const char *seeds;
    att_texts vary, set;
    att_texts correlate; /* "X,Y" each */
    cli_output output_to;
} settings;

typedef struct job {
    cli_app *cli;
    const settings *settings;
    sweep_seeds seeds;
    cli_pairs pairs;
    att_sweep_plan *plan;
} job;

static const att_flag sweep_options[] = {
    {"seeds", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "1,2,3",
     .help = "each setting is run once with each of these seeds", ATT_FLAG_AT(settings, seeds)},
    {"vary", .kind = ATT_FLAG_TEXTS, .value = "FLAG=LIST",
     .help = "an option of attscope train and its values, separated by commas (\\, is a comma in a value; a space "
             "separates "
             "numbers of one value: 'img_size=224,160 224'); several --vary: all combinations",
     ATT_FLAG_AT(settings, vary), .once = true},
    {"set", .kind = ATT_FLAG_TEXTS, .value = "FLAG=VALUE",
     .help = "an option of attscope train for all runs; overrides the recipe", ATT_FLAG_AT(settings, set),
     .once = true},
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER", .start = "output/sweep", .help = "parent folder of sweeps",
     ATT_FLAG_AT(settings, sweep.output)},
    {"experiment", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "folder within --output; without it, the recipe's name", ATT_FLAG_AT(settings, sweep.experiment)},
    {"lease", .kind = ATT_FLAG_REAL, .value = "SECONDS",
     .help = "a worker that does not show for this time that it is alive loses its run to another one",
     ATT_FLAG_AT(settings, sweep.lease), .low = 1, .high = ATT_SWEEP_MOST_LEASE},
};

static void sweep_defaults(att_context *context, void *values)
{
    (void)context;
    ((settings *)values)->sweep.lease = ATT_SWEEP_LEASE;
}

static const att_flag measure_options[] = {
    {"measure", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "instruments for the last checkpoint on the test split, separated by commas; skipped in settings whose "
             "network "
             "they cannot observe; all: all instruments (default " ATT_SWEEP_MEASURE
             ", without those that can observe none of the networks)",
     .choice = att_choose_instrument, .advisory = true, ATT_FLAG_AT(settings, sweep.measure)},
    {"correlate", .kind = ATT_FLAG_TEXTS, .value = "X,Y", .help = CLI_CORRELATE_HELP, ATT_FLAG_AT(settings, correlate),
     .once = true},
};

static const att_flag_group sweep_group = {"Sweep", .rows = sweep_options,
                                           .row_count = sizeof sweep_options / sizeof *sweep_options,
                                           .defaults = sweep_defaults};
static const att_flag_group measure_group = {"Sweep", .rows = measure_options,
                                             .row_count = sizeof measure_options / sizeof *measure_options};
static const att_flag_use uses[] = {
    {&sweep_group, 0}, {&measure_group, 0}, {&cli_group_output, offsetof(settings, output_to)}};

static const char *measure_of(const settings *s)
{
    return s->sweep.measure ? s->sweep.measure : ATT_SWEEP_MEASURE;
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

/* Explains options of attscope train that are not options of a sweep. */
static bool explain_unknown(att_context *context, const char *name, char *text, size_t size)
{
    static const char *const sweep_options_only[] = {"seed", "output",   "experiment", "resume",
                                                     "json", "data-dir", "data"};
    att_flags *train;
    for (size_t i = 0; i < sizeof sweep_options_only / sizeof *sweep_options_only; i++)
        if (strcmp(name, sweep_options_only[i]) == 0)
            return false;
    if (att_recipe_flags(context, &train) != ATT_OK)
        return false;
    bool found = att_flags_find(train, name).flag;
    att_flags_destroy(&train);
    if (found)
        snprintf(text, size,
                 "--%s is an option of attscope train: --set %s=VALUE sets it for all runs, --vary %s=LIST makes a "
                 "setting of each value",
                 name, name, name);
    return found;
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

/* Lists the settings with failed runs, which are missing from the table. */
static void print_failed(const job *j)
{
    for (int first = 0; first < att_sweep_plan_count(j->plan); first += j->seeds.count) {
        const char *reason = "";
        int failed = 0;
        for (int i = first; i < first + j->seeds.count; i++) {
            failed += sweep_run_has_failed(j->plan, i);
            reason = *reason ? reason : att_sweep_plan_at(j->plan, i).failure;
        }
        if (failed > 0)
            cli_print("\n%s: %d of %d runs failed%s%s\n", att_sweep_plan_at(j->plan, first).setting, failed,
                      j->seeds.count, *reason ? ": " : "", reason);
    }
}

/* --- instruments -------------------------------------------------------------------------------------------------- */

/* Checks the instruments' names. The plan checks their options. */
static int check_instruments(const char *list)
{
    for (const char *at = list;; at++) {
        char name[64];
        size_t length = att_instruments_item(at);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ",:"), at);
        bool found = strcmp(name, "all") == 0;
        for (int i = 0; !found && i < att_instrument_count(NULL); i++)
            found = strcmp(name, cli_instrument_name(NULL, i)) == 0;
        const char *nearest = att_text_nearest(name, cli_instrument_name, NULL, att_instrument_count(NULL));
        if (!found && nearest)
            return cli_usage("--measure: there is no instrument \"%s\"; did you mean \"%s\"?", name, nearest);
        if (!found)
            return cli_usage("--measure: there is no instrument \"%s\"; attscope measure --help lists them", name);
        at += length;
        if (!*at)
            return CLI_OK;
    }
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int open_plan(job *j)
{
    const settings *s = j->settings;
    att_sweep_options options = s->sweep;
    options.seeds = j->seeds.values;
    options.seed_count = j->seeds.count;
    options.vary = s->vary.values;
    options.vary_count = s->vary.count;
    options.set = s->set.values;
    options.set_count = s->set.count;
    options.pairs = j->pairs.pairs;
    options.pair_count = j->pairs.count;
    return cli_check(j->cli, att_sweep_plan_open(j->cli->context, &options, &j->plan));
}

/* Checks --correlate again, because names of figures are known only after a measurement. After an error, the user can
 * correct --correlate and call the command again; nothing is trained again. */
static int check_figures_found(const job *j)
{
    char where[CLI_PATH];
    cli_join(att_sweep_plan_folder(j->plan), "sweep.json", where, sizeof where);
    return cli_pairs_find(&j->pairs, att_sweep_plan_results(j->plan), where);
}

static int print_results(const job *j)
{
    const att_sweep *results = att_sweep_plan_results(j->plan);
    const char *folder = att_sweep_plan_folder(j->plan);
    if (!cli_prints(j->settings->output_to.json) || att_sweep_setting_count(results) == 0)
        return CLI_OK;
    int code = sweep_table_print(results, folder);
    if (code == CLI_OK)
        code = check_figures_found(j);
    print_failed(j);
    cli_print("\n%s\n", folder);
    return code;
}

static int write_json(const job *j)
{
    const char *path = j->settings->output_to.json;
    att_json_writer *writer;
    if (!path)
        return CLI_OK;
    int code = cli_check(j->cli, att_json_writer_create(j->cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    att_sweep_plan_write_json(j->plan, writer);
    return cli_json_write(j->cli, writer, path);
}

static int sweep(job *j)
{
    sweep_steps own = {.cli = j->cli, .plan = j->plan};
    const att_sweep_steps steps = sweep_steps_of(&own);
    int code = cli_check(j->cli, att_sweep_plan_run(j->plan, &steps));
    if (code == CLI_STOPPED || !att_sweep_plan_results(j->plan))
        return code;
    if (code == CLI_OK && sweep_count_failed(j->plan) > 0)
        code = CLI_FAILURE;
    int printed = print_results(j), written = write_json(j);
    sweep_report_failed(j->plan);
    return code != CLI_OK ? code : printed != CLI_OK ? printed : written;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    s->sweep.recipe = operands[0];
    s->sweep.data = count > 1 ? operands[1] : NULL;
    int code = check_instruments(measure_of(s));
    if (code == CLI_OK)
        code = cli_pairs_read(&s->correlate, measure_of(s), &j.pairs);
    if (code == CLI_OK)
        code = sweep_seeds_read(s->seeds, &j.seeds);
    cli->warns_once = true;
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = open_plan(&j);
    if (code == CLI_OK)
        code = sweep(&j);
    att_sweep_plan_close(&j.plan);
    return code;
}

const cli_command cli_command_sweep = {
    .name = "sweep",
    .summary = "runs a recipe over seeds and settings and compares the results",
    .operands = "RECIPE [DATA]",
    .least_operands = 1,
    .most_operands = 2,
    .about =
        "RECIPE: a YAML file of attscope train's options, such as a run's args.yaml. It\n"
        "can name DATA as data_dir. Every combination of values of --vary is a setting.\n"
        "Each setting is trained once with each seed, as by\n"
        "  attscope train DATA --config RECIPE --FLAG VALUE --seed S\n"
        "in the folder OUTPUT/EXPERIMENT/FLAG=VALUE-seedS. Then attscope measure observes\n"
        "its last checkpoint on the test split. Equivalent settings, such as --modules\n"
        "cb_s and cb_s@after_mlp, are trained once.\n\n"
        "Finished work is not repeated: the same command continues a sweep that was\n"
        "stopped (Ctrl-C: a checkpoint, exit status 130) or killed, and retries failed\n"
        "runs; with more seeds or values it adds runs. A failed run does not affect the\n"
        "others; the exit status is then 1. A run whose files are damaged starts anew\n"
        "after its folder is removed. Data, networks and instruments of all settings are\n"
        "checked before the first run.\n\n"
        "The same command, started several times, also on several machines that share the\n"
        "folder, divides the runs: each process takes the next free run. If a process\n"
        "dies, another one continues its run. A process without a run to do waits until\n"
        "all runs are finished, then prints the table of all runs.\n\n"
        "The table has a column for each setting, headed by its number if names are long,\n"
        "and shows the measured figures as mean ± deviation over seeds: for gates the\n"
        "mean, for attention the mean over heads. Rank correlations over runs follow: by\n"
        "default of total neural stiffness with the accuracy, where both were measured.\n"
        "sweep.json in the folder has all figures; attscope report OUTPUT/EXPERIMENT\n"
        "shows them. Both contain the runs that the last command named.",
    .example =
        "  attscope sweep recipe.yaml /usr/share/datasets/fashion-mnist \\\n"
        "      --seeds 1,2,3 --vary modules=none,cb,cb_s --experiment modules\n"
        "  attscope report output/sweep/modules",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .explain_unknown = explain_unknown,
    .run = run,
};
