/* attscope sweep: a recipe over seeds and settings.
 *
 * Every step of a run, attscope train and then attscope measure, is a process of its own: a sweep's run is by
 * definition what that command line gives, memory starts anew each time, and one that crashes, is killed or does not
 * fit costs this run only. What stands between two calls is in the runs' folders: nothing else is to be kept to go on.
 */
#include <inttypes.h>
#include <string.h>

#include "flags.h"
#include "stop.h"
#include "sweep_check.h"
#include "sweep_child.h"
#include "sweep_plan.h"
#include "sweep_table.h"

#define SWEEP_MEASURE "accuracy,entropy,distance,nsi,tns,gate"

typedef struct settings {
    sweep_asked asked;
    const char *measure; /* NULL: not given */
    cli_texts correlate; /* "X,Y" each */
    cli_output output;
} settings;

typedef struct job {
    cli_app *cli;
    const settings *settings;
    sweep_plan *plan;
    att_sweep_pair pairs[ATT_SWEEP_MOST_PAIRS]; /* what --correlate names */
    int pair_count;
    att_sweep *sweep; /* of the runs that are measured; NULL before */
} job;

static const cli_option sweep_options[] = {
    {"seeds", .kind = CLI_TEXT, .value = "LIST", .help = "one run each of every setting", CLI_AT(sweep_asked, seeds)},
    {"vary", .kind = CLI_TEXTS, .value = "FLAG=LIST",
     .help =
         "an option of attscope train and its values, by commas (a comma in a value: \\,; between numbers of one value "
         "a space: 'img_size=224,160 224'); given several times: every combination",
     CLI_AT(sweep_asked, vary), .once = true},
    {"set", .kind = CLI_TEXTS, .value = "FLAG=VALUE", .help = "an option of attscope train, over the recipe, for all",
     CLI_AT(sweep_asked, set), .once = true},
    {"output", .kind = CLI_TEXT, .value = "FOLDER", .help = "where sweeps lie", CLI_AT(sweep_asked, output)},
    {"experiment", .kind = CLI_TEXT, .value = "NAME",
     .help = "the sweep's folder in there; without it the recipe's name", CLI_AT(sweep_asked, experiment)},
};

static void sweep_defaults(void *values)
{
    sweep_asked *asked = values;
    asked->seeds = "1,2,3";
    asked->output = "output/sweep";
}

static const cli_option measure_options[] = {
    {"measure", .kind = CLI_TEXT, .value = "LIST",
     .help =
         "instruments for the last checkpoint, by commas, on the test split; left out of settings whose network has "
         "nothing for them; all: every one (default " SWEEP_MEASURE ", without those that no network has anything for)",
     .choice = cli_choice_instrument, .advisory = true, CLI_AT(settings, measure)},
    {"correlate", .kind = CLI_TEXTS, .value = "X,Y",
     .help = "two figures whose rank correlation over runs is told, each INSTRUMENT/STATISTIC or "
             "INSTRUMENT/NODE/STATISTIC, as in 'tns/tns unit,entropy/blocks.3.attn/mean'; given several times: several "
             "(default: total neural stiffness, in both readings, with the accuracy)",
     CLI_AT(settings, correlate), .once = true},
};

static const cli_group sweep_group = {"Sweep", sweep_options, sizeof sweep_options / sizeof *sweep_options,
                                      .defaults = sweep_defaults};
static const cli_group measure_group = {"Sweep", .options = measure_options,
                                        .count = sizeof measure_options / sizeof *measure_options};
static const cli_use uses[] = {
    {&sweep_group, offsetof(settings, asked)}, {&measure_group, 0}, {&cli_group_output, offsetof(settings, output)}};

static const char *measure_of(const settings *s)
{
    return s->measure ? s->measure : SWEEP_MEASURE;
}

/* --- the records -------------------------------------------------------------------------------------------------- */

/* Not interrupted: sweep.json is written after a stop, too. */
static int read_measured(job *j)
{
    att_sweep_run runs[ATT_SWEEP_MOST_RUNS];
    int count = 0;
    for (int i = 0; i < j->plan->run_count; i++) {
        const sweep_run *run = &j->plan->runs[i];
        if (strcmp(run->status, "measured") == 0)
            runs[count++] = (att_sweep_run){run->folder, run->setting, run->seed};
    }
    att_sweep_destroy(&j->sweep);
    j->cli->finishing = true;
    int code = cli_check(j->cli, att_sweep_read(j->cli->context, runs, count, j->pairs, j->pair_count, 0, &j->sweep));
    j->cli->finishing = false;
    return code;
}

static void write_runs(att_json_writer *writer, const sweep_plan *plan)
{
    att_json_key(writer, "runs");
    att_json_begin_array(writer);
    for (int i = 0; i < plan->run_count; i++) {
        att_json_begin_object(writer);
        cli_json_text(writer, "name", plan->runs[i].name);
        cli_json_text(writer, "setting", plan->runs[i].setting);
        cli_json_integer(writer, "seed", (int64_t)plan->runs[i].seed);
        cli_json_text(writer, "status", plan->runs[i].status);
        if (*plan->runs[i].failure)
            cli_json_text(writer, "failure", plan->runs[i].failure);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

/* The asked correlations, which the page of the sweep's folder reads; left out where they are the default ones. */
static void write_pairs(att_json_writer *writer, const job *j)
{
    if (j->pair_count == 0)
        return;
    att_json_key(writer, "correlate");
    att_json_begin_array(writer);
    for (int i = 0; i < j->pair_count; i++) {
        att_json_begin_object(writer);
        cli_json_text(writer, "x", j->pairs[i].x);
        cli_json_text(writer, "y", j->pairs[i].y);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static void write_texts(att_json_writer *writer, const char *key, const cli_texts *texts)
{
    att_json_key(writer, key);
    att_json_begin_array(writer);
    for (int i = 0; i < texts->count; i++)
        att_json_string(writer, texts->values[i]);
    att_json_end_array(writer);
}

/* The split that the measured runs are of; NULL: none is measured yet, or they are of different ones. */
static const char *split_of(const sweep_plan *plan)
{
    const char *split = NULL;
    for (int i = 0; i < plan->run_count; i++) {
        const sweep_run *run = &plan->runs[i];
        if (strcmp(run->status, "measured") != 0)
            continue;
        if (split && strcmp(split, run->found.split) != 0)
            return NULL;
        split = run->found.split;
    }
    return split;
}

/* write: cli_json_replace() into the folder of the sweep, cli_json_write() to what the user names. */
static int write_json(const job *j, const char *path,
                      int (*write)(cli_app *cli, att_json_writer *writer, const char *path))
{
    const sweep_asked *asked = &j->settings->asked;
    att_json_writer *writer;
    int code = cli_check(j->cli, att_json_writer_create(j->cli->context, true, &writer));
    if (code != CLI_OK)
        return code;
    att_json_begin_object(writer);
    cli_json_text(writer, "attscope", att_version());
    cli_json_text(writer, "folder", j->plan->folder);
    cli_json_text(writer, "recipe", asked->recipe);
    cli_json_text(writer, "data", j->plan->settings.data.data_dir);
    cli_json_text(writer, "split", split_of(j->plan));
    cli_json_text(writer, "measure", measure_of(j->settings));
    write_pairs(writer, j);
    write_texts(writer, "vary", &asked->vary);
    write_texts(writer, "set", &asked->set);
    write_runs(writer, j->plan);
    sweep_table_json(writer, j->sweep);
    att_json_end_object(writer);
    return write(j->cli, writer, path);
}

/* Before the first run and after each, so that the folder can be shown at any moment. */
static int write_sweep(job *j)
{
    char path[CLI_PATH];
    int code = read_measured(j);
    cli_join(j->plan->folder, "sweep.json", path, sizeof path);
    return code == CLI_OK ? write_json(j, path, cli_json_replace) : code;
}

/* --- one run ------------------------------------------------------------------------------------------------------ */

static int train(const sweep_run *run)
{
    char recipe[CLI_PATH];
    cli_join(run->folder, "recipe.yaml", recipe, sizeof recipe);
    const char *const arguments[] = {"attscope", "train", "--config", recipe, "--resume", "auto", NULL};
    return sweep_child(arguments);
}

/* The last checkpoint: the best one would be chosen by the images that it is measured on, where there is no third
 * split. */
static int measure(const job *j, const sweep_run *run)
{
    const train_settings *s = &j->plan->settings;
    char last[CLI_PATH], threads[16], workers[16], cache[24];
    cli_join(run->folder, "last.safetensors", last, sizeof last);
    snprintf(threads, sizeof threads, "%d", s->engine.threads);
    snprintf(workers, sizeof workers, "%d", s->recipe.workers);
    snprintf(cache, sizeof cache, "%" PRId64, s->data.cache_bytes);
    const char *arguments[32] = {
        "attscope",      "measure",   last,        s->data.data_dir, "--split", "test",      "--with",
        run->measure,    "--samples", "64",        "--threads",      threads,   "--workers", workers,
        "--cache-bytes", cache,       "--backend", s->engine.backend};
    int count = 18;
    if (s->recipe.skip_corrupt)
        arguments[count++] = "--skip-corrupt";
    if (s->data.coarse_labels)
        arguments[count++] = "--coarse-labels";
    if (s->data.class_map) {
        arguments[count++] = "--class-map";
        arguments[count++] = s->data.class_map;
    }
    return sweep_child(arguments);
}

static int read_state(const job *j, sweep_run *run)
{
    int code = cli_check(j->cli, att_run_state_read(j->cli->context, run->folder, run->measure, &run->found));
    if (code != CLI_OK)
        sweep_advise_removal(j->cli, run);
    return code;
}

/* Brings the run as far as it goes, from wherever it stands. */
static int run_steps(const job *j, int index)
{
    sweep_run *run = &j->plan->runs[index];
    const att_run_state *state = &run->found;
    int code = read_state(j, run);
    if (code != CLI_OK)
        return code;
    cli_note(j->cli, "[%d/%d] %s%s", index + 1, j->plan->run_count, run->name, state->measured ? ": done already" : "");
    if (!state->trained)
        code = train(run);
    run->status = code == CLI_OK ? "trained" : run->status;
    if (code == CLI_OK && !state->measured)
        code = measure(j, run);
    if (code == CLI_OK)
        code = read_state(j, run);
    if (code == CLI_OK && !state->measured)
        code = cli_failure("%s: its records do not say that it was measured", run->folder);
    if (code == CLI_OK)
        code = sweep_check_records(j->cli, run);
    run->status = code == CLI_OK ? "measured" : run->status;
    return code;
}

/* With what the training's records say; whoever else failed said why on stderr alone. */
static void mark_failed(const job *j, sweep_run *run)
{
    att_run_state state;
    run->status = "failed";
    if (att_run_state_read(j->cli->context, run->folder, run->measure, &state) == ATT_OK)
        memcpy(run->failure, state.failure, sizeof run->failure);
}

/* CLI_OK, CLI_FAILURE where the run failed and the others may go on, CLI_STOPPED. */
static int run_one(job *j, int index)
{
    sweep_run *run = &j->plan->runs[index];
    if (strcmp(run->status, "failed") == 0)
        return CLI_FAILURE;
    int code = sweep_plan_settle(j->plan, run);
    if (code == CLI_OK)
        code = run_steps(j, index);
    if (code == CLI_STOPPED) {
        run->status = "stopped";
        return CLI_STOPPED;
    }
    if (code == CLI_OK)
        return CLI_OK;
    mark_failed(j, run);
    if (code > 128)
        cli_say("%s was ended by signal %d; the others go on", run->name, code - 128);
    else
        cli_say("%s failed, for the reason above (exit status %d); the others go on", run->name, code);
    return CLI_FAILURE;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run_all(job *j)
{
    int failed = 0;
    for (int i = 0; i < j->plan->run_count; i++) {
        int code = cli_stop_asked() ? CLI_STOPPED : run_one(j, i);
        failed += code == CLI_FAILURE;
        int written = write_sweep(j);
        if (code == CLI_STOPPED) {
            cli_say("stopped; the same command goes on where it was");
            return CLI_STOPPED;
        }
        if (written != CLI_OK)
            return written;
    }
    return failed > 0 ? CLI_FAILURE : CLI_OK;
}

static void say_failed(const sweep_plan *plan)
{
    int failed = 0;
    for (int i = 0; i < plan->run_count; i++)
        failed += strcmp(plan->runs[i].status, "failed") == 0;
    if (failed == 0)
        return;
    cli_say(
        "%d of %d runs failed; the same command tries them again, from the beginning where their folder is removed:",
        failed, plan->run_count);
    for (int i = 0; i < plan->run_count; i++)
        if (strcmp(plan->runs[i].status, "failed") == 0)
            cli_say_item("%s", plan->runs[i].folder);
}

/* Settings with failed runs, which the table lacks or has fewer of. */
static void print_failed(const sweep_plan *plan)
{
    for (int first = 0; first < plan->run_count; first += plan->seed_count) {
        const char *reason = "";
        int failed = 0;
        for (int i = first; i < first + plan->seed_count; i++) {
            failed += strcmp(plan->runs[i].status, "failed") == 0;
            reason = *reason ? reason : plan->runs[i].failure;
        }
        if (failed > 0)
            cli_print("\n%s: %d of %d runs failed%s%s\n", plan->runs[first].setting, failed, plan->seed_count,
                      *reason ? ": " : "", reason);
    }
}

static const char *instrument_name(const void *user, int index)
{
    (void)user;
    return att_instrument_at(NULL, index).name;
}

/* Their names; sweep_check() sees the rest. */
static int check_instruments(const char *list)
{
    if (strlen(list) >= SWEEP_LIST)
        return cli_usage("--measure: the list is too long");
    for (const char *at = list;; at++) {
        char name[64];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ",:"), at);
        bool found = strcmp(name, "all") == 0;
        for (int i = 0; !found && i < att_instrument_count(NULL); i++)
            found = strcmp(name, instrument_name(NULL, i)) == 0;
        const char *nearest = att_text_nearest(name, instrument_name, NULL, att_instrument_count(NULL));
        if (!found && nearest)
            return cli_usage("--measure: there is no instrument \"%s\"; did you mean \"%s\"?", name, nearest);
        if (!found)
            return cli_usage("--measure: there is no instrument \"%s\"; attscope measure --help lists them", name);
        at += length;
        if (!*at)
            return CLI_OK;
    }
}

/* --- correlations ------------------------------------------------------------------------------------------------- */

/* Whether the figure is of an instrument that there is and that --measure names. */
static int check_figure(const char *figure, const char *measure)
{
    char name[64];
    att_instrument_info info;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(figure, "/"), figure);
    if (!strchr(figure, '/'))
        return cli_usage(
            "--correlate: \"%s\" is no figure; one is called INSTRUMENT/STATISTIC or "
            "INSTRUMENT/NODE/STATISTIC",
            figure);
    if (!att_instrument_find(NULL, name, &info)) {
        const char *nearest = att_text_nearest(name, instrument_name, NULL, att_instrument_count(NULL));
        return cli_usage("--correlate: there is no instrument \"%s\"%s%s%s", name, nearest ? "; did you mean \"" : "",
                         nearest ? nearest : "", nearest ? "\"?" : "");
    }
    for (const char *at = measure;; at++) {
        size_t length = strcspn(at, ",:");
        if ((length == strlen(name) && strncmp(at, name, length) == 0) || (length == 3 && strncmp(at, "all", 3) == 0))
            return CLI_OK;
        at += strcspn(at, ",");
        if (!*at)
            return cli_usage("--correlate: %s is not measured: --measure is %s", name, measure);
    }
}

/* Cuts "X,Y" of each --correlate, into `texts`. */
static int take_pairs(job *j, char texts[ATT_SWEEP_MOST_PAIRS][2 * SWEEP_NAME])
{
    const cli_texts *asked = &j->settings->correlate;
    for (int i = 0; i < asked->count && i < ATT_SWEEP_MOST_PAIRS; i++) {
        snprintf(texts[i], 2 * SWEEP_NAME, "%s", asked->values[i]);
        char *comma = strchr(texts[i], ',');
        if (!comma || strchr(comma + 1, ',') || strlen(asked->values[i]) >= 2 * SWEEP_NAME)
            return cli_usage("--correlate: \"%.64s\" is not of the form X,Y, two figures", asked->values[i]);
        *comma = '\0';
        j->pairs[j->pair_count++] = (att_sweep_pair){texts[i], comma + 1};
        int code = check_figure(texts[i], measure_of(j->settings));
        code = code == CLI_OK ? check_figure(comma + 1, measure_of(j->settings)) : code;
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* Whether a run has the figure. Where not, `other` becomes another figure of its instrument, as an example of their
 * names; "": there is none. */
static bool has_figure(const att_sweep *sweep, const char *figure, char other[SWEEP_NAME])
{
    *other = '\0';
    for (int i = 0; i < att_sweep_setting_count(sweep); i++)
        for (int f = 0; f < att_sweep_setting_at(sweep, i).figure_count; f++) {
            att_measurement m = att_sweep_figure_at(sweep, i, f);
            size_t length = strlen(m.instrument);
            if (att_measurement_is_called(&m, figure))
                return true;
            if (!*other && m.head < 0 && strncmp(figure, m.instrument, length) == 0 && figure[length] == '/')
                snprintf(other, SWEEP_NAME, "%s/%s%s%s", m.instrument, m.node, *m.node ? "/" : "", m.statistic);
        }
    return false;
}

/* Names of figures are known only after a measurement. The same command with another --correlate trains nothing again.
 */
static int check_figures_found(const job *j)
{
    for (int i = 0; i < j->pair_count; i++)
        for (int side = 0; side < 2; side++) {
            const char *figure = side == 0 ? j->pairs[i].x : j->pairs[i].y;
            char other[SWEEP_NAME];
            if (!has_figure(j->sweep, figure, other))
                return cli_failure("--correlate: no run has a figure \"%s\"%s%s%s; %s/sweep.json has the names of all",
                                   figure, *other ? ", but for example \"" : "", other, *other ? "\"" : "",
                                   j->plan->folder);
        }
    return CLI_OK;
}

/* --- all runs ----------------------------------------------------------------------------------------------------- */

/* What is done already counts from the beginning. Damaged records are said when their run's turn comes. */
static void find_states(job *j)
{
    for (int i = 0; i < j->plan->run_count; i++) {
        sweep_run *run = &j->plan->runs[i];
        if (att_run_state_read(j->cli->context, run->folder, run->measure, &run->found) == ATT_OK)
            run->status = run->found.measured ? "measured" : run->found.trained ? "trained" : run->status;
    }
}

/* Every folder, before anything runs: what is refused is refused at once. */
static int prepare_folders(job *j)
{
    for (int i = 0; i < j->plan->run_count; i++) {
        sweep_run *run = &j->plan->runs[i];
        int code = sweep_plan_write(j->cli, j->plan, run);
        if (code != CLI_OK)
            return code;
        if (strcmp(run->status, "measured") == 0 && sweep_check_records(j->cli, run) != CLI_OK)
            run->status = "failed";
    }
    return CLI_OK;
}

/* What commas and combinations come to, before anything is done about it. */
static void say_settings(const job *j)
{
    const sweep_plan *plan = j->plan;
    if (plan->axis_count == 0)
        return;
    int count = plan->run_count / plan->seed_count;
    cli_note(j->cli,
             "%d setting%s with %d seed%s each (a comma parts the values of --vary; within a value it is \\,):", count,
             count == 1 ? "" : "s", plan->seed_count, plan->seed_count == 1 ? "" : "s");
    for (int i = 0; i < plan->run_count; i += plan->seed_count)
        cli_note(j->cli, "  %s", plan->runs[i].setting);
}

static int sweep(job *j)
{
    say_settings(j);
    for (int i = 0; i < j->plan->run_count; i++)
        snprintf(j->plan->runs[i].measure, SWEEP_LIST, "%s", measure_of(j->settings));
    find_states(j);
    int code = sweep_check(j->cli, j->plan, measure_of(j->settings), j->settings->measure != NULL);
    if (code == CLI_OK)
        find_states(j); /* with what was left out */
    if (code == CLI_OK)
        code = sweep_check_images(j->cli, j->plan);
    if (code == CLI_OK)
        code = sweep_plan_lock(j->plan);
    if (code == CLI_OK)
        code = prepare_folders(j);
    if (code == CLI_OK)
        code = write_sweep(j);
    if (code == CLI_OK)
        code = run_all(j);
    const char *json = j->settings->output.json;
    if (code == CLI_STOPPED || !j->sweep)
        return code;
    if (cli_prints(json) && att_sweep_setting_count(j->sweep) > 0) {
        int printed = sweep_table_print(j->sweep, j->plan->folder);
        code = code != CLI_OK ? code : printed;
        code = code != CLI_OK ? code : check_figures_found(j);
        print_failed(j->plan);
        cli_print("\n%s\n", j->plan->folder);
    }
    int written = json ? write_json(j, json, cli_json_write) : CLI_OK;
    say_failed(j->plan);
    return code != CLI_OK ? code : written;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    sweep_plan plan = {0};
    char figures[ATT_SWEEP_MOST_PAIRS][2 * SWEEP_NAME];
    job j = {.cli = cli, .settings = s, .plan = &plan};
    s->asked.recipe = operands[0];
    s->asked.data = count > 1 ? operands[1] : NULL;
    int code = check_instruments(measure_of(s));
    if (code == CLI_OK)
        code = take_pairs(&j, figures);
    cli->warns_once = true;
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = sweep_plan_make(cli, &s->asked, &plan);
    if (code == CLI_OK)
        code = sweep(&j);
    att_sweep_destroy(&j.sweep);
    sweep_plan_free(&plan);
    return code;
}

const cli_command cli_command_sweep = {
    .name = "sweep",
    .summary = "runs a recipe over seeds and settings and takes the results together",
    .operands = "RECIPE [DATA]",
    .least_operands = 1,
    .most_operands = 2,
    .about =
        "RECIPE: a YAML file of attscope train's options, such as a run's args.yaml; DATA\n"
        "may stand in it as data_dir. Every combination of values that --vary names is a\n"
        "setting, and each setting is trained once with each seed: what\n"
        "  attscope train DATA --config RECIPE --FLAG VALUE --seed S\n"
        "does, in OUTPUT/EXPERIMENT/FLAG=VALUE-seedS. Then attscope measure looks at its\n"
        "last checkpoint on the test split. Settings that mean the same, such as\n"
        "--modules cb_s and cb_s@after_mlp, are trained once.\n\n"
        "What is done already is not done again: the same command continues a sweep that\n"
        "was stopped (Ctrl-C: a checkpoint, exit status 130) or killed, tries again what\n"
        "failed, and with more seeds or values adds runs. A run that fails leaves the\n"
        "others alone; the exit status is then 1. One whose files are damaged is made anew\n"
        "once its folder is removed. Data, networks and instruments of all settings are\n"
        "tried before the first run.\n\n"
        "The table has a column for each setting, by its number where names are long,\n"
        "and shows what was measured as mean ± deviation over seeds: of gates the mean,\n"
        "of attention the mean over heads. Rank correlations over runs follow, unless\n"
        "--correlate says otherwise of total neural stiffness with the accuracy, where\n"
        "both were measured. sweep.json in the folder has all figures; attscope\n"
        "report OUTPUT/EXPERIMENT shows them. Both are of the runs that the last command\n"
        "named.",
    .example =
        "  attscope sweep recipe.yaml /usr/share/datasets/fashion-mnist \\\n"
        "      --seeds 1,2,3 --vary modules=none,cb,cb_s --experiment modules\n"
        "  attscope report output/sweep/modules",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .explain_unknown = sweep_plan_explain,
    .run = run,
};
