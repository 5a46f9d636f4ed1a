#include "base/flags/unknown.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/flags/flags.h"
#include "base/flags/unsupported_flags.h"

enum { REASON = 320 };

void att_unknown_flags_add(att_unknown_flags *unknown, const char *dashes, const char *name, int line)
{
    int index = unknown->count++;
    if (index >= ATT_MOST_UNKNOWN)
        return;
    snprintf(unknown->items[index].name, ATT_UNKNOWN_NAME, "%s%s", dashes, name);
    unknown->items[index].line = line;
}

/* Name `index` of a list: the table's flags, then timm's flags that are ignored. NULL past the last. */
static const char *flag_name(const void *user, int index)
{
    const att_flags *flags = user;
    return index < flags->count ? flags->rows[index].name : att_unsupported_flag_ignored_name(index - flags->count);
}

static bool is_negation(const char *name)
{
    return strncmp(name, "no-", 3) == 0;
}

/* The flag that was probably meant; NULL: no flag is similar, or it is not allowed in a file. */
static const char *find_nearest(const att_flags *flags, const char *name, bool in_file)
{
    char dashed[ATT_UNKNOWN_NAME];
    snprintf(dashed, sizeof dashed, "%s", name);
    for (char *c = dashed; *c; c++)
        if (*c == '_')
            *c = '-';
    int count = flags->count;
    while (flag_name(flags, count))
        count++;
    const char *nearest = att_text_nearest(dashed, flag_name, flags, count);
    if (nearest && is_negation(dashed) != is_negation(nearest)) /* the opposite of the given flag */
        return NULL;
    const att_flag *flag = nearest ? att_flags_by_name(flags, nearest).flag : NULL;
    return in_file && flag && flag->once ? NULL : nearest;
}

/* Writes the reason why a flag of timm's or DeiT's is refused. Returns false if it is neither, or if the command has no
 * flag with its meaning. */
static bool explain_unsupported(const att_flags *flags, const char *shown, const char *name, char reason[REASON])
{
    const att_unsupported_flag flag = att_unsupported_flag_find(name);
    if (flag.own && (!*flag.own || att_flags_by_name(flags, flag.own).flag)) {
        snprintf(reason, REASON, "unknown option %s; %s", shown, flag.instead);
        return true;
    }
    if (!flag.script)
        return false;
    snprintf(reason, REASON, "%s is %s, but attscope does not have it yet%s%s", shown, flag.script,
             flag.instead ? "; " : "", flag.instead ? flag.instead : "");
    return true;
}

/* Writes the reason, such as "unknown option --batch-szie; did you mean --batch-size?". */
static void explain(const att_flags *flags, const char *shown, bool in_file, char reason[REASON])
{
    const att_flags_options *options = &flags->options;
    size_t dashes = strspn(shown, "-");
    const char *name = shown + dashes, *nearest = NULL;
    bool is_letter = dashes == 1;
    if (!is_letter && explain_unsupported(flags, shown, name, reason))
        return;
    const att_flag *flag = att_flags_by_name(flags, name).flag;
    bool is_help = strcmp(name, "help") == 0;
    if (in_file && (flag || is_help)) { /* a flag of a single call */
        snprintf(reason, REASON, "%s belongs to a single call; give --%s on the command line", shown,
                 is_help ? name : flag->name);
        return;
    }
    if (!is_letter && options->explain_unknown && options->explain_unknown(flags->context, name, reason, REASON))
        return;
    if (!is_letter)
        nearest = find_nearest(flags, name, in_file);
    if (nearest)
        snprintf(reason, REASON, "unknown option %s; did you mean %.*s%s?", shown, (int)dashes, shown, nearest);
    else if (options->command)
        snprintf(reason, REASON, "unknown option %s; see attscope %s --help", shown, options->command);
    else
        snprintf(reason, REASON, "unknown option %s", shown);
}

/* Writes "recipe.yaml, line 3: "; "" for a flag that is not from a file. Returns `text`. */
static char *place_text(const att_unknown_flags *unknown, int index, char text[448])
{
    *text = '\0';
    if (unknown->file)
        snprintf(text, 448, "%.400s, line %d: ", unknown->file, unknown->items[index].line);
    return text;
}

static att_status refuse_several(const att_flags *flags, const att_unknown_flags *unknown)
{
    char reason[REASON], place[448];
    for (int i = 0; i < unknown->count && i < ATT_MOST_UNKNOWN; i++) {
        explain(flags, unknown->items[i].name, unknown->file, reason);
        att_log(flags->context, ATT_LOG_INFO, "  %s%s", place_text(unknown, i, place), reason);
    }
    if (unknown->count > ATT_MOST_UNKNOWN)
        att_log(flags->context, ATT_LOG_INFO, "  and %d more", unknown->count - ATT_MOST_UNKNOWN);
    return att_fail(flags->context, ATT_ERR_ARGUMENT, "%.400s%s%d options are refused, for the reasons given above",
                    unknown->file ? unknown->file : "", unknown->file ? ": " : "", unknown->count);
}

att_status att_unknown_flags_refuse(const att_flags *flags, const att_unknown_flags *unknown)
{
    char reason[REASON], place[448];
    if (unknown->count == 0)
        return ATT_OK;
    if (unknown->count > 1)
        return refuse_several(flags, unknown);
    explain(flags, unknown->items[0].name, unknown->file, reason);
    return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s%s", place_text(unknown, 0, place), reason);
}
