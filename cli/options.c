#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "not_here.h"
#include "options_inner.h"
#include "unknown.h"

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

cli_found cli_option_find(const cli_table *table, const char *name)
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
    return cli_option_find(table, name).option != NULL;
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

/* Whole bytes of "4G", "1.5GiB", "800M", "4096"; units are powers of 1024. */
static bool to_size(const char *text, int64_t *value)
{
    static const char units[] = "KMGT";
    char *end;
    double number = strtod(text, &end);
    const char *unit = isalpha((unsigned char)*end) ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (*text < '0' || *text > '9')
        return false;
    if (unit) {
        number = ldexp(number, 10 * (int)(unit - units + 1));
        end += strcmp(end + 1, "iB") == 0 || strcmp(end + 1, "B") == 0 ? strlen(end) : 1;
    }
    if (*end || number > 1e18)
        return false;
    *value = (int64_t)number;
    return true;
}

static bool store_size(const cli_option *option, void *to, const char *text)
{
    int64_t value;
    if (!to_size(text, &value) || !in_range(option, (double)value))
        return false;
    memcpy(to, &value, sizeof value);
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
    case CLI_SIZE:
        return store_size(option, to, text);
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
        [CLI_SIZE] = "a size such as 800M or 4G, or a number of bytes",
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
    if (count == 0 || !*text || option->advisory)
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

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1];
}

/* A flag as it stands on the command line. */
typedef struct cli_flag {
    cli_found found;
    char name[CLI_UNKNOWN_NAME]; /* without dashes, for messages cut where it is too long */
    const char *dashes;
    const char *attached; /* what follows '=' or the letter; NULL: nothing does */
    int begin, count;     /* the further words that are its values */
    cli_takes ignored;    /* not CLI_TAKES_UNKNOWN: a flag of timm's that changes nothing here */
} cli_flag;

/* Takes the values of a flag of timm's that is ignored. */
static void take_ignored(const cli_flag *flag, words *w)
{
    int most = flag->attached || flag->ignored == CLI_TAKES_NOTHING ? 0
               : flag->ignored == CLI_TAKES_SEVERAL                 ? INT_MAX
                                                                    : 1;
    while (w->at < w->count && w->at - flag->begin < most && !is_flag(w->argv[w->at]) &&
           (flag->ignored != CLI_TAKES_COMPILER || cli_is_torch_compiler(w->argv[w->at])))
        w->at++;
}

/* Whether a flag of timm's that is refused otherwise has a value that leaves it without effect. */
static bool takes_idle_word(const cli_flag *flag, const words *w)
{
    const char *word = flag->attached ? flag->attached : w->at < w->count ? w->argv[w->at] : NULL;
    return word && cli_not_here_idle_word(flag->name, word);
}

/* Takes the words that are the option's values, whatever they say. */
static void take_values(const cli_flag *flag, words *w)
{
    const cli_option *option = flag->found.option;
    double number;
    if (flag->attached || is_truth(option) || w->at == w->count)
        return;
    w->at++;
    while (option->kind == CLI_REALS && w->at < w->count && to_real(w->argv[w->at], &number))
        w->at++;
}

/* Reads the flag that begins with `word`, the last that was taken. */
static cli_flag take_flag(const cli_table *table, const char *word, words *w)
{
    bool is_long = word[1] == '-';
    size_t length = is_long ? strcspn(word + 2, "=") : 1;
    cli_flag flag = {.dashes = is_long ? "--" : "-", .begin = w->at};
    snprintf(flag.name, sizeof flag.name, "%.*s", (int)(length < sizeof flag.name ? length : sizeof flag.name - 1),
             word + strlen(flag.dashes));
    const char *rest = word + strlen(flag.dashes) + length;
    if (*rest)
        flag.attached = rest + is_long;
    flag.found = is_long ? cli_option_find(table, flag.name) : find_letter(table, word[1]);
    if (flag.found.option)
        take_values(&flag, w);
    else if (is_long && (flag.ignored = cli_not_here_takes(flag.name)) != CLI_TAKES_UNKNOWN)
        take_ignored(&flag, w);
    else if (is_long && takes_idle_word(&flag, w)) {
        flag.ignored = CLI_TAKES_ONE;
        take_ignored(&flag, w);
    }
    flag.count = w->at - flag.begin;
    return flag;
}

/* Whether every flag is known, before values are looked at. */
static bool check_names(const cli_table *table, int argc, char **argv)
{
    cli_unknown unknown = {0};
    words w = {0, argc, argv};
    while (w.at < w.count && strcmp(argv[w.at], "--") != 0) {
        const char *word = argv[w.at++];
        if (!is_flag(word))
            continue;
        cli_flag flag = take_flag(table, word, &w);
        if (!flag.found.option && flag.ignored == CLI_TAKES_UNKNOWN)
            cli_unknown_add(&unknown, flag.dashes, word[1] == '-' ? flag.name : word + 1, 0);
    }
    return cli_unknown_none(table, &unknown);
}

static bool store_flag(const cli_flag *flag, char **argv)
{
    const cli_option *option = flag->found.option;
    char shown[CLI_UNKNOWN_NAME + 4], expected[CLI_NUMBER_TEXT];
    const char *text = flag->attached;
    snprintf(shown, sizeof shown, "%s%s", flag->dashes, flag->name);
    describe_range(option, expected, sizeof expected);
    if (!text)
        text = is_truth(option) ? "true" : flag->count > 0 ? argv[flag->begin] : NULL;
    if (!text) {
        bool is_text = option->kind == CLI_TEXT || option->kind == CLI_WORD || option->kind == CLI_TEXTS;
        cli_say("%s needs a value: %s", shown, is_text ? option->value : expected);
        return false;
    }
    if (!is_choice(option, shown, text))
        return false;
    if (option->kind == CLI_REALS)
        memset(cli_value_of(&flag->found), 0, sizeof(cli_reals));
    if (!store(&flag->found, text)) {
        cli_say("%s: \"%s\" is not %s", shown, text, expected);
        return false;
    }
    for (int i = 1; i < flag->count; i++)
        if (!store(&flag->found, argv[flag->begin + i])) {
            cli_say("%s: \"%s\" is one too many or out of range: %s", shown, argv[flag->begin + i], expected);
            return false;
        }
    return true;
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
    if (!check_names(table, argc, argv))
        return false;
    while (w.at < w.count) {
        const char *word = argv[w.at++];
        if (!only_operands && strcmp(word, "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || !is_flag(word)) {
            operands[(*operand_count)++] = word;
            continue;
        }
        cli_flag flag = take_flag(table, word, &w);
        if (flag.found.option && !store_flag(&flag, argv))
            return false;
        if (!flag.found.option && flag.attached && !cli_not_here_is_value(flag.name, flag.attached)) {
            cli_say("--%s: \"%s\" is not true or false", flag.name, flag.attached);
            return false;
        }
        if (!flag.found.option && table->ignored)
            cli_not_here_ignore(table->ignored, flag.name);
    }
    return true;
}

/* --- config files ------------------------------------------------------------------------------------------------- */

static bool take_entry(const cli_table *table, const char *path, const att_yaml_entry *entry, cli_unknown *unknown)
{
    char where[512];
    snprintf(where, sizeof where, "%.400s, line %d: ", path, entry->line);
    cli_found f = cli_option_find(table, entry->key);
    if (!f.option && cli_not_here_but_idle(entry->key, entry->values, entry->value_count))
        return true;
    if (!f.option && cli_not_here_takes(entry->key) != CLI_TAKES_UNKNOWN) {
        if (!cli_not_here_is_value(entry->key, entry->values[0])) {
            cli_say("%s%s must be true or false", where, entry->key);
            return false;
        }
        if (table->ignored)
            cli_not_here_ignore(table->ignored, entry->key);
        return true;
    }
    if (!f.option || f.option->once) {
        cli_unknown_add(unknown, "", entry->key, entry->line);
        return true;
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
    cli_unknown unknown = {.file = path};
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        att_yaml_entry entry = att_yaml_at(yaml, i);
        if (!take_entry(table, path, &entry, &unknown))
            return false;
    }
    return cli_unknown_none(table, &unknown);
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
