/* attscope reproduce: the results of four papers, executed and judged. */
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "flags.h"
#include "result_source.h"
#include "result_steps.h"
#include "results_page.h"

typedef struct settings {
    const char *root, *records, *page;
    att_texts data; /* "NAME=PATH" each */
    bool commands;
    cli_output output;
} settings;

static const att_flag options[] = {
    {"data", .kind = ATT_FLAG_TEXTS, .value = "NAME=PATH",
     .help = "where a data set is, or weights are: cifar10=PATH, fashion-mnist=PATH, camvid=PATH, deit-tiny=FILE, "
             "minilm=FOLDER, long-texts=FILE, short-texts=FILE; may be given several times",
     ATT_FLAG_AT(settings, data)},
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER", .start = "output/results", .help = "folder of the runs",
     ATT_FLAG_AT(settings, root)},
    {"records", .kind = ATT_FLAG_TEXT, .value = "FOLDER",
     .help = "folder of the records, small files with the figures of finished runs (default: that of the runs)",
     ATT_FLAG_AT(settings, records)},
    {"commands", .kind = ATT_FLAG_SWITCH, .help = "print the commands that are left, and execute none",
     ATT_FLAG_AT(settings, commands)},
    {"page", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "write all results as a page of Markdown; -: to standard output", ATT_FLAG_AT(settings, page)},
};
static const att_flag_group group = {"Results", .rows = options, .row_count = sizeof options / sizeof *options};
static const att_flag_use uses[] = {{&group, 0}, {&cli_group_output, offsetof(settings, output)}};

/* --- the operands ------------------------------------------------------------------------------------------------- */

static const char *name_of(const void *user, int index)
{
    (void)user;
    const int results = att_result_count();
    return index < results ? att_result_at(index)->name : att_result_run_at(index - results)->name;
}

static int count_of_names(void)
{
    return att_result_count() + att_result_run_count();
}

/* Marks the results and the runs that `name` selects: a result, a run, or all. */
static int choose(const char *name, bool *results)
{
    bool found = strcmp(name, "all") == 0;
    for (int i = 0; i < att_result_count(); i++) {
        const att_result_info *info = att_result_at(i);
        const bool wanted =
            strcmp(name, "all") == 0 || strcmp(name, info->name) == 0 || (info->run && strcmp(name, info->run) == 0);
        results[i] = results[i] || wanted;
        found = found || wanted;
    }
    const char *nearest = found ? NULL : att_text_nearest(name, name_of, NULL, count_of_names());
    if (nearest)
        return cli_usage("there is no result \"%s\"; did you mean \"%s\"?", name, nearest);
    return found ? CLI_OK : cli_usage("there is no result \"%s\"; attscope reproduce lists all", name);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* Whether a value of --data gives the place of `name`, which may be NULL. */
static bool gives(const char *value, const char *name)
{
    return name && strncmp(value, name, strlen(name)) == 0 && value[strlen(name)] == '=';
}

/* Returns the path of a data set or of weights; NULL if --data does not give it. */
static const char *data_of(const settings *s, const char *name)
{
    for (int i = 0; i < s->data.count; i++)
        if (gives(s->data.values[i], name))
            return s->data.values[i] + strlen(name) + 1;
    return NULL;
}

static bool needs(const bool *results, const att_result_run *run)
{
    for (int i = 0; i < att_result_count(); i++)
        if (results[i] && att_result_at(i)->run && strcmp(att_result_at(i)->run, run->name) == 0)
            return true;
    return false;
}

static const char *records_of(const settings *s)
{
    return s->records ? s->records : s->root;
}

/* The name of what the run needs and --data does not give; NULL if it has all. */
static const char *missing_of(const settings *s, const att_result_run *run)
{
    return run->data && !data_of(s, run->data)         ? run->data
           : run->weights && !data_of(s, run->weights) ? run->weights
                                                       : NULL;
}

/* Executes what is left of run `index`, and writes its record. */
static int execute_run(cli_app *cli, const settings *s, int index)
{
    const att_result_run *run = att_result_run_at(index);
    const result_place place = {s->root, run->data ? data_of(s, run->data) : NULL,
                                run->weights ? data_of(s, run->weights) : NULL, s->commands};
    att_result_source source = {.seconds = 0};
    cli_note(cli, "%s: %s, about %.3g hours of two cores from the start", run->name, run->about, run->hours);
    int code = result_run(cli, run, &place, &source.seconds);
    if (code != CLI_OK || s->commands)
        return code;
    result_source_describe(&source);
    return cli_check(cli, att_result_record_write(cli->context, s->root, index, &source, records_of(s)));
}

/* Sets *due: whether run `index` is to be executed. Notes a record that makes this unnecessary. */
static int is_due(cli_app *cli, const settings *s, const bool *results, int index, bool *due)
{
    const att_result_run *run = att_result_run_at(index);
    att_result_record record;
    *due = needs(results, run);
    if (!*due)
        return CLI_OK;
    int code = cli_check(cli, att_result_record_read(cli->context, records_of(s), index, &record));
    *due = code == CLI_OK && record.state != ATT_RECORD_CURRENT;
    if (code == CLI_OK && !*due)
        cli_note(cli, "%s: recorded on %s; to repeat the run, remove %s/%s.json", run->name, record.source.date,
                 records_of(s), run->name);
    const char *missing = *due ? missing_of(s, run) : NULL;
    return missing ? cli_usage("the run %s needs %s: give its place by --data %s=PATH", run->name, missing, missing)
                   : code;
}

static int execute(cli_app *cli, const settings *s, const bool *results)
{
    const int count = att_result_run_count();
    bool *due = calloc((size_t)count, sizeof *due);
    int code = due ? CLI_OK : cli_failure("out of memory");
    for (int i = 0; code == CLI_OK && i < count; i++)
        code = is_due(cli, s, results, i, &due[i]);
    for (int i = 0; code == CLI_OK && i < count; i++)
        if (due[i])
            code = execute_run(cli, s, i);
    free(due);
    return code;
}

static int check_data(const settings *s)
{
    for (int i = 0; i < s->data.count; i++) {
        bool known = false;
        for (int r = 0; r < att_result_run_count(); r++)
            known = known || gives(s->data.values[i], att_result_run_at(r)->data) ||
                    gives(s->data.values[i], att_result_run_at(r)->weights);
        if (!known)
            return cli_usage(
                "--data %s: expected cifar10=PATH, fashion-mnist=PATH, camvid=PATH, deit-tiny=FILE, "
                "minilm=FOLDER, long-texts=FILE or short-texts=FILE",
                s->data.values[i]);
    }
    return CLI_OK;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void print_list(const att_judgement *judgements)
{
    const char *paper = "";
    for (int i = 0; i < att_result_count(); i++) {
        const att_result_info *info = att_result_at(i);
        if (strcmp(paper, info->paper) != 0)
            cli_print("%s%s\n", *paper ? "\n" : "", info->paper);
        paper = info->paper;
        cli_left(info->name, 20);
        cli_left(att_verdict_name(judgements[i].verdict), 11);
        cli_left(info->run ? info->run : "-", 11);
        cli_print("  %s%s\n", judgements[i].outdated ? "(outdated) " : "", info->claim);
    }
    cli_print("\nattscope reproduce NAME runs what a result lacks, and prints its figures.\n");
}

static void print_criterion(const att_judged *judged)
{
    char value[96];
    cli_format_interval(judged->value.mean, judged->value.low, judged->value.high, value, sizeof value);
    cli_print("  %s\n      %s, n %d, expected %s: %s\n", judged->says, judged->value.count > 0 ? value : "-",
              judged->value.count, judged->expects, att_verdict_name(judged->verdict));
}

static void print_result(const att_result_info *info, const att_judgement *judgement)
{
    cli_print("%s  %s, %s: %s%s\n", info->name, info->paper, info->place, att_verdict_name(judgement->verdict),
              judgement->outdated ? " (outdated)" : "");
    cli_explain("finding", info->claim);
    cli_explain("scale", info->scale);
    if (info->note)
        cli_explain("note", info->note);
    for (int i = 0; i < judgement->count; i++)
        print_criterion(&judgement->criteria[i]);
    cli_print("\n");
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int judge_all(cli_app *cli, const char *records, att_judgement *judgements)
{
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < att_result_count(); i++)
        code = cli_check(cli, att_result_judge(cli->context, records, i, &judgements[i]));
    return code;
}

static int write_json(cli_app *cli, const char *path, const att_judgement *judgements, const bool *chosen, int code)
{
    att_json_writer *writer = NULL;
    if (code == CLI_OK)
        code = cli_json_begin_list(cli, path, &writer);
    for (int i = 0; code == CLI_OK && writer && i < att_result_count(); i++) {
        if (!chosen[i])
            continue;
        att_json_begin_object(writer);
        att_result_write_json(i, &judgements[i], writer);
        att_json_end_object(writer);
    }
    return cli_json_end_list(cli, writer, path, code);
}

static int show(cli_app *cli, const settings *s, const bool *chosen, bool listed, att_judgement *judgements)
{
    int code = judge_all(cli, records_of(s), judgements);
    if (code != CLI_OK)
        return code;
    if (cli_prints(s->output.json) && cli_prints(s->page)) {
        if (listed)
            print_list(judgements);
        for (int i = 0; !listed && i < att_result_count(); i++)
            if (chosen[i])
                print_result(att_result_at(i), &judgements[i]);
    }
    if (s->page)
        code = results_page_write(cli, s->page, records_of(s), judgements);
    return write_json(cli, s->output.json, judgements, chosen, code);
}

static int reproduce(cli_app *cli, const settings *s, const char *const *names, int count, bool *chosen,
                     att_judgement *judgements)
{
    int code = check_data(s);
    for (int i = 0; code == CLI_OK && i < count; i++)
        code = choose(names[i], chosen);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK && count > 0)
        code = execute(cli, s, chosen);
    for (int i = 0; count == 0 && i < att_result_count(); i++)
        chosen[i] = true;
    return code == CLI_OK && !s->commands ? show(cli, s, chosen, count == 0, judgements) : code;
}

static int run(cli_app *cli, void *user, const char *const *names, int count)
{
    const settings *s = user;
    const size_t results = (size_t)att_result_count();
    bool *chosen = calloc(results, sizeof *chosen);
    att_judgement *judgements = calloc(results, sizeof *judgements);
    const cli_named_output outputs[] = {{"--json", s->output.json, false}, {"--page", s->page, false}};
    int code = cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
    if (code == CLI_OK)
        code =
            chosen && judgements ? reproduce(cli, s, names, count, chosen, judgements) : cli_failure("out of memory");
    free(chosen);
    free(judgements);
    return code;
}

const cli_command cli_command_reproduce = {
    .name = "reproduce",
    .summary = "runs and judges the published results of four papers",
    .operands = "[NAME...]",
    .most_operands = 64,
    .about =
        "Without NAME, lists all results with their verdicts. NAME is a result, a run, or\n"
        "all. Its commands are executed as far as they are left, so that a stopped run\n"
        "continues; then the figures are printed beside what the paper's finding lets\n"
        "expect:\n"
        "  agrees       the 95 % interval over seeds lies on the expected side\n"
        "  disagrees    it lies on the other side\n"
        "  cannot tell  it contains the bound\n"
        "A result agrees if all its criteria do, and disagrees if one of them does. The\n"
        "criteria were fixed before the runs. Runs are smaller than those of the papers;\n"
        "each result says how much.",
    .example =
        "  attscope reproduce\n"
        "  attscope reproduce stacks\n"
        "  attscope reproduce huang-table1 --data cifar10=CIFAR10\n"
        "  attscope reproduce uniform context --data cifar10=CIFAR10 \\\n"
        "      --data fashion-mnist=/usr/share/datasets/fashion-mnist --page results.md",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
