#include "results_page.h"

#include <stdio.h>
#include <stdlib.h>

#include "cells.h"

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

int results_page_write(cli_app *cli, const char *path, const att_judgement *judgements)
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
    const bool written = fclose(out) == 0;
    int code = written ? cli_file_write(cli, path, text, size) : cli_failure("out of memory");
    free(text);
    return code;
}
