#include "unknown.h"

#include <string.h>

#include "cli.h"
#include "not_here.h"
#include "options_inner.h"

enum { REASON = 320 };

void cli_unknown_add(cli_unknown *unknown, const char *dashes, const char *name, int line)
{
    int index = unknown->count++;
    if (index >= CLI_MOST_UNKNOWN)
        return;
    snprintf(unknown->items[index].name, CLI_UNKNOWN_NAME, "%s%s", dashes, name);
    unknown->items[index].line = line;
}

/* The table's options, then timm's flags that are ignored. */
static const char *option_name(const void *table, int index)
{
    int count = cli_option_count(table);
    return index < count ? cli_option_at(table, index).option->name : cli_not_here_ignored_name(index - count);
}

static bool is_negation(const char *name)
{
    return strncmp(name, "no-", 3) == 0;
}

/* The option that the name was probably meant to be; NULL: none comes near, or none that may stand in a file. */
static const char *find_nearest(const cli_table *table, const char *name, bool in_file)
{
    char dashed[CLI_UNKNOWN_NAME];
    snprintf(dashed, sizeof dashed, "%s", name);
    for (char *c = dashed; *c; c++)
        if (*c == '_')
            *c = '-';
    int count = cli_option_count(table);
    while (option_name(table, count))
        count++;
    const char *nearest = att_text_nearest(dashed, option_name, table, count);
    if (nearest && is_negation(dashed) != is_negation(nearest)) /* the opposite of what was asked for */
        return NULL;
    const cli_option *option = nearest ? cli_option_find(table, nearest).option : NULL;
    return in_file && option && option->once ? NULL : nearest;
}

/* "unknown option --batch-szie; did you mean --batch-size?" */
static void give_reason(const cli_table *table, const char *shown, bool in_file, char reason[REASON])
{
    size_t dashes = strspn(shown, "-");
    const char *name = shown + dashes, *instead, *nearest = NULL;
    bool is_letter = dashes == 1;
    if (!is_letter && cli_not_here(name, &instead)) {
        snprintf(reason, REASON, "%s is timm's, but attscope does not have it yet%s%s", shown, instead ? "; " : "",
                 instead ? instead : "");
        return;
    }
    const cli_option *option = cli_option_find(table, name).option;
    bool is_help = strcmp(name, "help") == 0;
    if (in_file && (option || is_help)) { /* one of a single call */
        snprintf(reason, REASON, "%s belongs to a single call; give --%s on the command line", shown,
                 is_help ? name : option->name);
        return;
    }
    if (!is_letter && table->explain_unknown && table->explain_unknown(name, reason, REASON))
        return;
    if (!is_letter)
        nearest = find_nearest(table, name, in_file);
    if (nearest)
        snprintf(reason, REASON, "unknown option %s; did you mean %.*s%s?", shown, (int)dashes, shown, nearest);
    else
        snprintf(reason, REASON, "unknown option %s; see attscope %s --help", shown, table->command);
}

static void say_one(const cli_table *table, const cli_unknown *unknown)
{
    char reason[REASON];
    give_reason(table, unknown->items[0].name, unknown->file, reason);
    if (unknown->file)
        cli_say("%.400s, line %d: %s", unknown->file, unknown->items[0].line, reason);
    else
        cli_say("%s", reason);
}

static void say_all(const cli_table *table, const cli_unknown *unknown)
{
    cli_say("%.400s%s%d options are refused:", unknown->file ? unknown->file : "", unknown->file ? ": " : "",
            unknown->count);
    for (int i = 0; i < unknown->count && i < CLI_MOST_UNKNOWN; i++) {
        char reason[REASON], line[24] = "";
        if (unknown->file)
            snprintf(line, sizeof line, "line %d: ", unknown->items[i].line);
        give_reason(table, unknown->items[i].name, unknown->file, reason);
        cli_say_item("%s%s", line, reason);
    }
    if (unknown->count > CLI_MOST_UNKNOWN)
        cli_say_item("and %d more", unknown->count - CLI_MOST_UNKNOWN);
}

bool cli_unknown_none(const cli_table *table, const cli_unknown *unknown)
{
    if (unknown->count == 1)
        say_one(table, unknown);
    else if (unknown->count > 1)
        say_all(table, unknown);
    return unknown->count == 0;
}
