/* attscope advise: where in a checkpoint's network would a module help? */
#include <math.h>
#include <string.h>

#include "cells.h"
#include "flags.h"
#include "help.h"
#include "progress.h"
#include "sweep_steps.h"

typedef struct settings {
    att_advise_options advise;
    const char *seeds;
    att_texts set;
    cli_output output_to;
} settings;

typedef struct job {
    cli_app *cli;
    settings *settings;
    sweep_seeds seeds;
    att_advice *advice;
} job;

static const att_flag options[] = {
    {"module", .kind = ATT_FLAG_TEXT, .value = "MODULE", .start = "se",
     .help = "the module to try, MODULE[:OPTION=VALUE,...][@PLACE], as in --modules of attscope train without blocks; "
             "start=identity is added where the module has it",
     ATT_FLAG_AT(settings, advise.module)},
    {"candidates", .kind = ATT_FLAG_INT, .value = "N",
     .help = "how many of the best blocks are fine-tuned; more candidates take longer, and widen all intervals",
     ATT_FLAG_AT(settings, advise.candidates), .low = 1, .high = ATT_ADVISE_MOST},
    {"seeds", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "1,2,3,4,5",
     .help = "each fine-tuning is run once with each of these seeds; at least two", ATT_FLAG_AT(settings, seeds)},
    {"recipe", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help =
         "YAML file with options of attscope train for the fine-tuning; without it, 400 updates without augmentation "
         "(momentum, lr 0.01 for networks with batch norm; AdamW, lr 1e-4 for others)",
     ATT_FLAG_AT(settings, advise.recipe)},
    {"set", .kind = ATT_FLAG_TEXTS, .value = "FLAG=VALUE",
     .help = "an option of attscope train for all fine-tunings; overrides the recipe", ATT_FLAG_AT(settings, set),
     .once = true},
    {"model", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "name of the network; without it, the file gives it",
     ATT_FLAG_AT(settings, advise.model)},
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER", .start = "output/advise", .help = "parent folder of advices",
     ATT_FLAG_AT(settings, advise.output)},
    {"experiment", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "folder within --output; without it, the names of checkpoint and module",
     ATT_FLAG_AT(settings, advise.experiment)},
};

static void defaults(att_context *context, void *values)
{
    (void)context;
    ((settings *)values)->advise.candidates = ATT_ADVISE_CANDIDATES;
}

static const att_flag_group group = {"Advice", .rows = options, .row_count = sizeof options / sizeof *options,
                                     .defaults = defaults};
static const att_flag_use uses[] = {{&group, 0}, {&cli_group_output, offsetof(settings, output_to)}};

/* --- the table ---------------------------------------------------------------------------------------------------- */

enum { CELL = 64 };

static void format_gain(const att_advised *candidate, char text[CELL])
{
    if (!candidate->tested || candidate->gain.count == 0)
        snprintf(text, CELL, "-");
    else
        cli_format_interval(candidate->gain.mean, candidate->gain.low, candidate->gain.high, text, CELL);
}

/* Column 0: block, 1: figure, 2: score, 3: gain, 4: verdict. */
static const char *cell(const att_advised *candidate, int column, char text[CELL])
{
    if (column == 0)
        snprintf(text, CELL, "%d  %s", candidate->block, candidate->node);
    else if (column == 1)
        snprintf(text, CELL, "%.3g", candidate->predicted);
    else if (column == 2 && candidate->tested)
        cli_format_spread(candidate->score, candidate->score_deviation, text, CELL);
    else if (column == 3)
        format_gain(candidate, text);
    else
        snprintf(text, CELL, "%s", column == 4 ? att_advised_verdict(candidate) : "-");
    return text;
}

static void print_candidates(const att_advice *advice, const att_advice_facts *facts)
{
    const char *const heads[] = {"block", facts->instrument, facts->metric ? facts->metric->label : "score",
                                 "gain [interval]", ""};
    char text[CELL];
    int widths[5];
    for (int c = 0; c < 5; c++) {
        widths[c] = cli_width_of(heads[c]);
        for (int i = 0; i < att_advice_count(advice); i++) {
            const att_advised candidate = att_advice_at(advice, i);
            widths[c] = cli_wider(widths[c], cell(&candidate, c, text));
        }
    }
    for (int c = 0; c < 5; c++)
        c == 0 ? cli_left(heads[c], widths[c]) : cli_right(heads[c], widths[c]);
    cli_print("\n");
    for (int i = 0; i < att_advice_count(advice); i++) {
        const att_advised candidate = att_advice_at(advice, i);
        for (int c = 0; c < 5; c++)
            c == 0 ? cli_left(cell(&candidate, c, text), widths[c]) : cli_right(cell(&candidate, c, text), widths[c]);
        cli_print("\n");
    }
}

static void print_correlation(const att_advice_facts *facts)
{
    const att_rank_correlation *rho = &facts->correlation.spearman;
    if (facts->correlation.count < 3 || isnan(rho->value)) {
        cli_print("rank correlation of %s with the gain: not defined for %d candidates\n", facts->instrument,
                  facts->correlation.count);
        return;
    }
    cli_print("rank correlation of %s with the gain over %d candidates: %.2f", facts->instrument,
              facts->correlation.count, rho->value);
    if (!isnan(rho->low))
        cli_print(" [%.2f, %.2f]", rho->low, rho->high);
    cli_print(", p %.3g (the smallest possible: %.2g)\n", rho->p, rho->least_p);
}

static void print(const job *j)
{
    const att_advice_facts facts = att_advice_facts_of(j->advice);
    char text[CELL];
    cli_format_spread(facts.score, facts.score_deviation, text, CELL);
    cli_explain("predicted", strcmp(facts.instrument, "nsi") == 0
                                 ? "zeta of the block's residual step (instrument nsi, reading attention)"
                                 : "entropy of the block's attention in nats (instrument entropy)");
    cli_explain("gain",
                "score with the module minus score without it after the same fine-tuning, paired over seeds; "
                "the intervals of all tested blocks hold together with a probability of 95 % (Student's t, "
                "Bonferroni); they describe the noise of fine-tunings on these images");
    cli_explain("verdict", "gain: the interval lies above 0; loss: below 0; no evidence: it contains 0");
    cli_print("without a further module (%s): %s %s %s\n\n", facts.base, text, facts.metric ? facts.metric->unit : "",
              facts.metric ? facts.metric->label : "");
    print_candidates(j->advice, &facts);
    cli_print("\n");
    print_correlation(&facts);
    cli_print("\n%s\n", att_sweep_plan_folder(att_advice_plan(j->advice)));
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static void write_found(att_json_writer *writer, const void *advice)
{
    att_advice_write_json(advice, writer);
}

static int open_advice(job *j)
{
    cli_progress progress = cli_progress_to(j->cli, 1, 1);
    att_advise_options *o = &j->settings->advise;
    o->seeds = j->seeds.values;
    o->seed_count = j->seeds.count;
    o->set = j->settings->set.values;
    o->set_count = j->settings->set.count;
    o->batch_size = att_advise_options_defaults().batch_size;
    o->progress = cli_progress_show;
    o->progress_user = &progress;
    int code = cli_check(j->cli, att_advice_open(j->cli->context, o, &j->advice));
    cli_bar_clear(j->cli);
    return code;
}

static int advise(job *j)
{
    const char *json = j->settings->output_to.json;
    sweep_steps own = {.cli = j->cli, .plan = att_advice_plan(j->advice)};
    const att_sweep_steps steps = sweep_steps_of(&own);
    int code = cli_check(j->cli, att_sweep_plan_run(own.plan, &steps));
    if (code == CLI_STOPPED || !att_sweep_plan_results(own.plan))
        return code;
    if (code == CLI_OK && sweep_count_failed(own.plan) > 0)
        code = CLI_FAILURE;
    int judged = cli_check(j->cli, att_advice_judge(j->advice));
    if (judged == CLI_OK && cli_prints(json))
        print(j);
    if (judged == CLI_OK)
        judged = cli_json_save(j->cli, json, write_found, j->advice);
    sweep_report_failed(own.plan);
    return code != CLI_OK ? code : judged;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    settings *s = user;
    job j = {.cli = cli, .settings = s};
    (void)count;
    s->advise.checkpoint = operands[0];
    s->advise.data = operands[1];
    const cli_named_output outputs[] = {{"--json", s->output_to.json, false}};
    int code = cli_outputs_check(outputs, 1);
    if (code == CLI_OK)
        code = sweep_seeds_read(s->seeds, &j.seeds);
    cli->warns_once = true;
    if (code == CLI_OK)
        code = cli_open(cli, 0);
    if (code == CLI_OK)
        code = open_advice(&j);
    if (code == CLI_OK)
        code = advise(&j);
    att_advice_close(&j.advice);
    return code;
}

const cli_command cli_command_advise = {
    .name = "advise",
    .summary = "finds where in a checkpoint's network a module would help",
    .operands = "CHECKPOINT DATA",
    .least_operands = 2,
    .most_operands = 2,
    .about =
        "Measures CHECKPOINT on the validation images of DATA and ranks its blocks: for a\n"
        "module with gates (se, step) by zeta, the size of the block's residual step\n"
        "(instrument nsi), for cb, cb_s and uniform_head by the entropy of its attention.\n"
        "Then it puts the module into each of the best blocks in turn, fine-tunes the\n"
        "network, fine-tunes it without the module with the same seeds, and prints the\n"
        "gain with its interval, or \"no evidence\"; and the rank correlation of the figure\n"
        "with the gain, which says whether the ranking was of use.\n\n"
        "A module starts as the identity, so that both fine-tunings start from the same\n"
        "answers: cb_s does, and cb, se and step with start=identity, which is added. A\n"
        "module that changes the network's answers at the start is refused.\n\n"
        "The fine-tunings are a sweep in OUTPUT/EXPERIMENT: the same command continues it\n"
        "after a stop, more --seeds or --candidates add runs, and attscope report\n"
        "OUTPUT/EXPERIMENT shows the runs. Few seeds and short fine-tunings find only\n"
        "large gains: \"no evidence\" does not mean that there is no gain.",
    .example =
        "  attscope advise resnet20.th cifar10 --module se\n"
        "  attscope advise output/vit cifar10 --module cb_s --candidates 6 \\\n"
        "      --seeds 1,2,3,4,5,6,7,8 --set lr=0.0003 --json advice.json",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
