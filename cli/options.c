#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "not_here.h"
#include "options_inner.h"

/* --- finding a row ------------------------------------------------------------------------------------------------ */

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '_' || *a == '-') && (*b == '_' || *b == '-')))
            return false;
    return *a == *b;
}

cli_found cli_option_at(const cli_table *table, int index)
{
    for (int i = 0; i < table->use_count; i++) {
        const cli_group *group = table->uses[i].group;
        if (index < group->count)
            return (cli_found){&group->options[index], (char *)table->settings + table->uses[i].offset,
                               (const char *)table->defaults + table->uses[i].offset, false};
        index -= group->count;
    }
    return (cli_found){0};
}

void *cli_value_of(const cli_found *found)
{
    return found->values + found->option->offset;
}

int cli_option_count(const cli_table *table)
{
    int count = 0;
    for (int i = 0; i < table->use_count; i++)
        count += table->uses[i].group->count;
    return count;
}

static bool is_truth(const cli_option *option)
{
    return option->kind == CLI_FLAG || option->kind == CLI_SWITCH;
}

static cli_found find_name(const cli_table *table, const char *name)
{
    cli_found f;
    for (int i = 0; (f = cli_option_at(table, i)).option; i++) {
        if (same_name(name, f.option->name) || (f.option->alias && same_name(name, f.option->alias)))
            return f;
        bool no = strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0;
        if (no && is_truth(f.option) && same_name(name + 3, f.option->name)) {
            f.no = true;
            return f;
        }
    }
    return (cli_found){0};
}

bool cli_options_have(const cli_table *table, const char *name)
{
    return find_name(table, name).option != NULL;
}

static cli_found find_letter(const cli_table *table, char letter)
{
    cli_found f;
    for (int i = 0; (f = cli_option_at(table, i)).option; i++)
        if (f.option->letter == letter)
            break;
    return f;
}

/* --- storing a value ---------------------------------------------------------------------------------------------- */

static bool to_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

static bool to_whole(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && !*end && !errno;
}

static bool to_seed(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool in_range(const cli_option *option, double value)
{
    return (option->low == 0 && option->high == 0) || (value >= option->low && value <= option->high);
}

static bool store_whole(const cli_option *option, void *to, const char *text)
{
    int64_t value;
    if (!to_whole(text, &value) || !in_range(option, (double)value))
        return false;
    if (option->kind == CLI_LONG) {
        memcpy(to, &value, sizeof value);
        return true;
    }
    if (value < INT32_MIN || value > INT32_MAX)
        return false;
    int narrow = (int)value;
    memcpy(to, &narrow, sizeof narrow);
    return true;
}

static bool store_truth(const cli_option *option, void *to, bool value)
{
    if (option->kind == CLI_SWITCH)
        *(int *)to = value;
    else
        *(bool *)to = value;
    return true;
}

static const char *default_text(const cli_found *f)
{
    const char *text;
    memcpy(&text, (const char *)f->defaults + f->option->offset, sizeof text);
    return text;
}

static int most_reals(const cli_option *option)
{
    return option->most > 0 ? option->most : 3;
}

/* Stores one value; a further one of CLI_REALS is added. */
static bool store(const cli_found *f, const char *text)
{
    const cli_option *option = f->option;
    void *to = cli_value_of(f);
    double real;
    switch (option->kind) {
    case CLI_FLAG:
    case CLI_SWITCH:
        if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
            return store_truth(option, to, !f->no);
        if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
            return store_truth(option, to, f->no);
        return false;
    case CLI_INT:
    case CLI_LONG:
        return store_whole(option, to, text);
    case CLI_SEED:
        return to_seed(text, to);
    case CLI_REAL:
        if (!to_real(text, &real) || !in_range(option, real))
            return false;
        memcpy(to, &real, sizeof real);
        return true;
    case CLI_REALS: {
        cli_reals *reals = to;
        if (reals->count == most_reals(option) || !to_real(text, &real) || !in_range(option, real))
            return false;
        reals->values[reals->count++] = real;
        return true;
    }
    case CLI_TEXT:
        *(const char **)to = *text || option->empty ? text : default_text(f);
        return true;
    case CLI_WORD:
        if (!*text || strlen(text) >= option->size)
            return false;
        memcpy(to, text, strlen(text) + 1);
        return true;
    case CLI_TEXTS: {
        cli_texts *texts = to;
        if (texts->count == CLI_MOST_TEXTS)
            return false;
        texts->values[texts->count++] = text;
        return true;
    }
    }
    return false;
}

static void describe_range(const cli_option *option, char *text, size_t size)
{
    static const char *const kinds[] = {
        [CLI_FLAG] = "true or false",
        [CLI_SWITCH] = "true or false",
        [CLI_INT] = "a whole number",
        [CLI_LONG] = "a whole number",
        [CLI_SEED] = "a whole number from 0 to 2^64 - 1",
        [CLI_REAL] = "a number",
        [CLI_TEXT] = "a text",
        [CLI_REALS] = "a number",
        [CLI_WORD] = "a short name",
        [CLI_TEXTS] = "a text, given at most 32 times",
    };
    int length = snprintf(text, size, "%s", kinds[option->kind]);
    if (option->low != 0 || option->high != 0) {
        bool bounded = option->high < 1e9 && isfinite(option->high);
        length += snprintf(text + length, size - (size_t)length, bounded ? " from %.10g to %.10g" : " from %.10g up",
                           option->low, option->high);
    }
    if (option->kind == CLI_REALS)
        snprintf(text + length, size - (size_t)length, ", up to %d of them", most_reals(option));
}

/* --- unknown names ------------------------------------------------------------------------------------------------ */

static const char *option_name(const void *table, int index)
{
    return cli_option_at(table, index).option->name;
}

/* where: of a file, "" on the command line; dashes: before the name. */
static void say_unknown(const cli_table *table, const char *name, const char *where, const char *dashes)
{
    const char *instead;
    if (cli_not_here(name, &instead)) {
        cli_say("%s%s%s is timm's, but attscope does not have it yet%s%s", where, dashes, name, instead ? "; " : "",
                instead ? instead : "");
        return;
    }
    if (table->explain_unknown && table->explain_unknown(name))
        return;
    char dashed[64];
    snprintf(dashed, sizeof dashed, "%s", name);
    for (char *c = dashed; *c; c++)
        if (*c == '_')
            *c = '-';
    const char *nearest = att_text_nearest(dashed, option_name, table, cli_option_count(table));
    if (nearest)
        cli_say("%sunknown option %s%s; did you mean %s%s?", where, dashes, name, dashes, nearest);
    else
        cli_say("%sunknown option %s%s; see attscope %s --help", where, dashes, name, table->command);
}

/* --- choices ------------------------------------------------------------------------------------------------------ */

int cli_choice_count(const cli_option *option)
{
    int count = 0;
    while (option->choice && option->choice(count))
        count++;
    return count;
}

static const char *choice_name(const void *option, int index)
{
    return ((const cli_option *)option)->choice(index);
}

/* Says that there is no such value, and which come near. */
static bool is_choice(const cli_option *option, const char *where, const char *text)
{
    int count = cli_choice_count(option);
    size_t named = option->detailed ? strcspn(text, ":") : strlen(text);
    for (int i = 0; i < count; i++)
        if (strncmp(text, option->choice(i), named) == 0 && !option->choice(i)[named])
            return true;
    if (count == 0 || !*text)
        return true;
    const char *nearest = att_text_nearest(text, choice_name, option, count);
    if (nearest)
        cli_say("%s: there is no \"%s\"; did you mean %s?", where, text, nearest);
    else if (count > CLI_MOST_CHOICES)
        cli_say("%s: there is no \"%s\" (%s)", where, text, option->help);
    else {
        char list[256] = "";
        for (int i = 0, length = 0; i < count; i++)
            length += snprintf(list + length, sizeof list - (size_t)length, "%s%s", i ? ", " : "", option->choice(i));
        cli_say("%s: there is no \"%s\", only %s", where, text, list);
    }
    return false;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

typedef struct words {
    int at, count;
    char **argv;
} words;

/* Stores the value or values after a flag. attached: what followed '=' or the letter, NULL where nothing did. */
static bool take_values(const cli_found *f, const char *flag, const char *attached, words *w)
{
    char expected[CLI_NUMBER_TEXT];
    describe_range(f->option, expected, sizeof expected);
    const char *text = attached;
    if (!text && is_truth(f->option))
        text = "true";
    if (!text && w->at < w->count)
        text = w->argv[w->at++];
    if (!text) {
        cli_say("%s needs a value: %s", flag, expected);
        return false;
    }
    if (!is_choice(f->option, flag, text))
        return false;
    if (f->option->kind == CLI_REALS)
        memset(cli_value_of(f), 0, sizeof(cli_reals));
    if (!store(f, text)) {
        cli_say("%s: \"%s\" is not %s", flag, text, expected);
        return false;
    }
    double more;
    while (f->option->kind == CLI_REALS && !attached && w->at < w->count && to_real(w->argv[w->at], &more)) {
        if (!store(f, w->argv[w->at++])) {
            cli_say("%s: \"%s\" is one too many or out of range: %s", flag, w->argv[w->at - 1], expected);
            return false;
        }
    }
    return true;
}

static bool take_long(const cli_table *table, const char *word, words *w)
{
    char name[64];
    size_t length = strcspn(word + 2, "=");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word + 2);
    cli_found f = find_name(table, name);
    if (!f.option) {
        say_unknown(table, name, "", "--");
        return false;
    }
    char flag[72];
    snprintf(flag, sizeof flag, "--%s", name);
    return take_values(&f, flag, word[2 + length] ? word + 2 + length + 1 : NULL, w);
}

static bool take_short(const cli_table *table, const char *word, words *w)
{
    cli_found f = find_letter(table, word[1]);
    if (!f.option) {
        cli_say("unknown option %s; see attscope %s --help", word, table->command);
        return false;
    }
    char flag[3] = {'-', word[1], 0};
    return take_values(&f, flag, word[2] ? word + 2 : NULL, w);
}

void cli_options_defaults(const cli_table *table, size_t size)
{
    memset(table->settings, 0, size);
    for (int i = 0; i < table->use_count; i++)
        if (table->uses[i].group->defaults)
            table->uses[i].group->defaults((char *)table->settings + table->uses[i].offset);
    memcpy(table->defaults, table->settings, size);
}

bool cli_options_parse(const cli_table *table, int argc, char **argv, const char **operands, int *operand_count)
{
    words w = {0, argc, argv};
    bool only_operands = false;
    *operand_count = 0;
    while (w.at < w.count) {
        const char *word = argv[w.at++];
        bool fine = true;
        if (only_operands || word[0] != '-' || !word[1])
            operands[(*operand_count)++] = word;
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else if (word[1] == '-')
            fine = take_long(table, word, &w);
        else
            fine = take_short(table, word, &w);
        if (!fine)
            return false;
    }
    return true;
}

/* --- config files ------------------------------------------------------------------------------------------------- */

static bool take_entry(const cli_table *table, const char *path, const att_yaml_entry *entry)
{
    char where[512];
    snprintf(where, sizeof where, "%.400s, line %d: ", path, entry->line);
    cli_found f = find_name(table, entry->key);
    if (!f.option && cli_not_here_but_idle(entry->key, entry->values, entry->value_count))
        return true;
    if (!f.option || f.option->once) {
        say_unknown(table, entry->key, where, "");
        return false;
    }
    if (entry->kind == ATT_YAML_NULL)
        return true;
    if (f.option->kind == CLI_REALS)
        memset(cli_value_of(&f), 0, sizeof(cli_reals));
    bool fine = entry->kind == ATT_YAML_SCALAR || f.option->kind == CLI_REALS;
    if (fine && f.option->choice) {
        char key[600];
        snprintf(key, sizeof key, "%s%s", where, entry->key);
        if (!is_choice(f.option, key, entry->values[0]))
            return false;
    }
    for (int i = 0; fine && i < entry->value_count; i++)
        fine = store(&f, entry->values[i]);
    if (!fine) {
        char expected[CLI_NUMBER_TEXT];
        describe_range(f.option, expected, sizeof expected);
        cli_say("%s%s must be %s", where, entry->key, expected);
    }
    return fine;
}

bool cli_options_config(const cli_table *table, const char *path, const att_yaml *yaml)
{
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        att_yaml_entry entry = att_yaml_at(yaml, i);
        if (!take_entry(table, path, &entry))
            return false;
    }
    return true;
}

bool cli_options_complete(const cli_table *table)
{
    for (int i = 0; i < table->use_count; i++)
        if (table->uses[i].group->complete &&
            !table->uses[i].group->complete((char *)table->settings + table->uses[i].offset))
            return false;
    return true;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_reals(const cli_reals *a, const cli_reals *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = a->values[i] == b->values[i];
    return same;
}

static bool same_value(const cli_option *option, const void *a, const void *b)
{
    if (option->kind == CLI_TEXT)
        return same_text(*(const char *const *)a, *(const char *const *)b);
    if (option->kind == CLI_WORD)
        return strcmp(a, b) == 0;
    return option->kind == CLI_REALS ? same_reals(a, b) : memcmp(a, b, option->size) == 0;
}

bool cli_options_same(const cli_table *table, const void *others)
{
    cli_found f;
    bool same = true;
    for (int i = 0; same && (f = cli_option_at(table, i)).option; i++) {
        const void *value = cli_value_of(&f);
        size_t at = (size_t)((const char *)value - (const char *)table->settings);
        same = f.option->once || same_value(f.option, value, (const char *)others + at);
    }
    return same;
}
