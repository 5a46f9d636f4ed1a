#include "results_page.h"

#include <stdio.h>
#include <stdlib.h>

#include "cells.h"
#include "result_source.h"

static const char *const intro =
    "# Published results\n\n"
    "Written by `attscope reproduce --page docs/results.md`; [reproduce.md](reproduce.md) says how results are "
    "judged.\n"
    "Figures are means over n seeds with their 95 % interval. A result agrees if all its criteria do, and disagrees "
    "if\n"
    "one of them does.\n";

static void write_criterion(FILE *out, const att_judged *judged)
{
    char value[96];
    cli_format_interval(judged->value.mean, judged->value.low, judged->value.high, value, sizeof value);
    fprintf(out, "| %s | %s | %d | %s | %s |\n", judged->says, judged->value.count > 0 ? value : "-",
            judged->value.count, judged->expects, att_verdict_name(judged->verdict));
}

static void write_result(FILE *out, const att_result_info *info, const att_judgement *judgement)
{
    fprintf(out, "\n### %s, %s (`%s`)\n\n**%s** Scale: %s.", info->paper, info->place, info->name, info->claim,
            info->scale);
    if (info->run)
        fprintf(out, " Run: `%s`%s.", info->run, judgement->outdated ? ", outdated" : "");
    if (info->note)
        fprintf(out, " Note: %s.", info->note);
    fprintf(out, "\n");
    if (judgement->count == 0)
        return;
    fprintf(out, "\n| compared | mean | n | expected | verdict |\n| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < judgement->count; i++)
        write_criterion(out, &judgement->criteria[i]);
}

static void write_group(FILE *out, const char *title, att_verdict verdict, const att_judgement *judgements)
{
    bool begun = false;
    for (int i = 0; i < att_result_count(); i++) {
        if (judgements[i].verdict != verdict)
            continue;
        if (!begun)
            fprintf(out, "\n## %s\n", title);
        begun = true;
        write_result(out, att_result_at(i), &judgements[i]);
    }
}

/* --- the runs ----------------------------------------------------------------------------------------------------- */

static void write_run(FILE *out, const att_result_run *run, const att_result_record *record)
{
    const att_result_source *source = &record->source;
    fprintf(out, "| `%s` | %s | %.3g h | ", run->name, run->about, run->hours);
    if (record->state == ATT_RECORD_MISSING)
        fprintf(out, "- | - | - |\n");
    else
        fprintf(out, "%s%s | %.3g h | %s, attscope %s |\n", source->date, result_record_note(record->state),
                source->seconds / 3600, source->machine, source->version);
}

static int write_runs(cli_app *cli, FILE *out, const char *records)
{
    int code = CLI_OK;
    fprintf(out,
            "\n## Runs\n\n| run | what it is | estimated | recorded | took | by |\n| --- | --- | --- | --- | --- "
            "| --- |\n");
    for (int i = 0; code == CLI_OK && i < att_result_run_count(); i++) {
        att_result_record record;
        code = cli_check(cli, att_result_record_read(cli->context, records, i, &record));
        if (code == CLI_OK)
            write_run(out, att_result_run_at(i), &record);
    }
    return code;
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

int results_page_write(cli_app *cli, const char *path, const char *records, const att_judgement *judgements)
{
    static const struct {
        att_verdict verdict;
        const char *title;
    } groups[] = {{ATT_VERDICT_DISAGREES, "Disagree"},
                  {ATT_VERDICT_AGREES, "Agree"},
                  {ATT_VERDICT_CANNOT_TELL, "Cannot tell"},
                  {ATT_VERDICT_NONE, "Without a verdict"},
                  {ATT_VERDICT_NOT_RUN, "Not run"}};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return cli_failure("out of memory");
    fputs(intro, out);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        write_group(out, groups[i].title, groups[i].verdict, judgements);
    int code = write_runs(cli, out, records);
    if (fclose(out) != 0 && code == CLI_OK)
        code = cli_failure("out of memory");
    if (code == CLI_OK)
        code = cli_file_write(cli, path, text, size);
    free(text);
    return code;
}
