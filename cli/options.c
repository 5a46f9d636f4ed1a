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

const cli_option *cli_group_rows(const cli_group *group, int *count)
{
    if (group->rows)
        return group->rows(count);
    *count = group->count;
    return group->options;
}

cli_found cli_option_at(const cli_table *table, int index)
{
    for (int i = 0; i < table->use_count; i++) {
        int count;
        const cli_option *rows = cli_group_rows(table->uses[i].group, &count);
        if (index < count)
            return (cli_found){&rows[index], (char *)table->settings + table->uses[i].offset,
                               (const char *)table->defaults + table->uses[i].offset, false};
        index -= count;
    }
    return (cli_found){0};
}

void *cli_value_of(const cli_found *found)
{
    return found->values + found->option->offset;
}

int cli_option_count(const cli_table *table)
{
    int total = 0;
    for (int i = 0, count; i < table->use_count; i++, total += count)
        cli_group_rows(table->uses[i].group, &count);
    return total;
}

bool cli_option_is_switch(const cli_option *option)
{
    return option->kind == CLI_DECLARED && option->declared->kind == ATT_OPTION_SWITCH;
}

bool cli_option_is_text(const cli_option *option)
{
    return option->kind == CLI_TEXT || option->kind == CLI_TEXTS ||
           (option->kind == CLI_DECLARED && option->declared->kind == ATT_OPTION_TEXT);
}

static bool is_truth(const cli_option *option)
{
    return option->kind == CLI_FLAG || cli_option_is_switch(option);
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

static const char *default_text(const cli_found *f)
{
    const char *text;
    memcpy(&text, (const char *)f->defaults + f->option->offset, sizeof text);
    return text;
}

int cli_option_numbers(const cli_option *option)
{
    bool sides = option->kind == CLI_DECLARED && option->declared->kind == ATT_OPTION_SIDES;
    if (option->kind == CLI_REALS)
        return option->most > 0 ? option->most : 3;
    return sides ? ATT_OPTION_NUMBERS : !cli_option_is_text(option) && !is_truth(option);
}

static bool to_truth(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *value || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

/* Stores one value; a further one of CLI_REALS is added. */
static bool store_one(const cli_found *f, const char *text)
{
    const cli_option *option = f->option;
    void *to = cli_value_of(f);
    double real;
    switch (option->kind) {
    case CLI_FLAG:
        if (!to_truth(text, to))
            return false;
        *(bool *)to ^= f->no;
        return true;
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
        if (reals->count == cli_option_numbers(option) || !to_real(text, &real) || !in_range(option, real))
            return false;
        reals->values[reals->count++] = real;
        return true;
    }
    case CLI_TEXT:
        *(const char **)to = *text || option->empty ? text : default_text(f);
        return true;
    case CLI_TEXTS: {
        cli_texts *texts = to;
        if (texts->count == CLI_MOST_TEXTS)
            return false;
        texts->values[texts->count++] = text;
        return true;
    }
    case CLI_DECLARED: /* store_declared() */
        break;
    }
    return false;
}

static bool store_declared(const cli_found *f, const char *const *texts, int count)
{
    bool truth;
    const att_option *declared = f->option->declared;
    if (!cli_option_is_switch(f->option))
        return att_option_store(declared, texts, count, cli_value_of(f));
    if (count != 1 || !to_truth(texts[0], &truth))
        return false;
    att_options_set(cli_value_of(f), declared->key, truth != f->no);
    return true;
}

/* Stores what one flag or one entry of a file says. Returns how many texts were taken: the first that was not is the
 * wrong one; of a declared option none is taken where any is wrong. */
static int store(const cli_found *f, const char *const *texts, int count)
{
    int taken = 0;
    if (f->option->kind == CLI_DECLARED)
        return store_declared(f, texts, count) ? count : 0;
    if (f->option->kind == CLI_REALS)
        memset(cli_value_of(f), 0, sizeof(cli_reals));
    while (taken < count && (taken == 0 || f->option->kind == CLI_REALS) && store_one(f, texts[taken]))
        taken++;
    return taken;
}

static void describe_range(const cli_option *option, char *text, size_t size)
{
    static const char *const kinds[] = {
        [CLI_FLAG] = "true or false",
        [CLI_INT] = "a whole number",
        [CLI_LONG] = "a whole number",
        [CLI_SIZE] = "a size such as 800M or 4G, or a number of bytes",
        [CLI_SEED] = "a whole number from 0 to 2^64 - 1",
        [CLI_REAL] = "a number",
        [CLI_TEXT] = "a text",
        [CLI_REALS] = "a number",
        [CLI_TEXTS] = "a text, given at most 32 times",
    };
    if (option->kind == CLI_DECLARED) {
        att_option_describe(option->declared, text, size);
        return;
    }
    int length = snprintf(text, size, "%s", kinds[option->kind]);
    if (option->low != 0 || option->high != 0) {
        bool bounded = option->high < 1e9 && isfinite(option->high);
        length += snprintf(text + length, size - (size_t)length, bounded ? " from %.10g to %.10g" : " from %.10g up",
                           option->low, option->high);
    }
    if (option->kind == CLI_REALS)
        snprintf(text + length, size - (size_t)length, ", up to %d of them", cli_option_numbers(option));
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
    size_t named = option->detailed ? strcspn(text, ":@+") : strlen(text);
    for (int i = 0; i < count; i++)
        if (strncmp(text, option->choice(i), named) == 0 && !option->choice(i)[named])
            return true;
    if (count == 0 || !*text || option->advisory || (option->detailed && named == 0))
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
    for (int most = option->kind == CLI_REALS ? INT_MAX : cli_option_numbers(option);
         w->at - flag->begin < most && w->at < w->count && to_real(w->argv[w->at], &number);)
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

enum { ATTACHED_BYTES = 256 };

/* Splits the text that is attached to a flag of several numbers at spaces: --img-size='16 24' has two. Other texts, and
 * those too long for `copy`, stay whole. Returns the number of parts. */
static int split_attached(const cli_option *option, const char *text, char copy[ATTACHED_BYTES],
                          const char *parts[CLI_MOST_REALS + 1])
{
    int count = 0;
    char *rest = copy;
    parts[0] = text;
    if (cli_option_numbers(option) < 2 || strlen(text) >= ATTACHED_BYTES)
        return 1;
    strcpy(copy, text);
    for (char *part; count <= CLI_MOST_REALS && (part = strtok_r(rest, " ", &rest));)
        parts[count++] = part;
    return count > 0 ? count : 1;
}

/* Writes the texts with spaces between them, truncated to fit. */
static char *join(const char *const *texts, int count, char text[ATTACHED_BYTES])
{
    size_t length = 0;
    *text = '\0';
    for (int i = 0; i < count && length < ATTACHED_BYTES; i++)
        length += (size_t)snprintf(text + length, ATTACHED_BYTES - length, "%s%s", i ? " " : "", texts[i]);
    return text;
}

static bool store_flag(const cli_flag *flag, char **argv)
{
    const cli_option *option = flag->found.option;
    char shown[CLI_UNKNOWN_NAME + 4], expected[CLI_NUMBER_TEXT], copy[ATTACHED_BYTES], wrong[ATTACHED_BYTES];
    const char *text = flag->attached, *parts[CLI_MOST_REALS + 1];
    snprintf(shown, sizeof shown, "%s%s", flag->dashes, flag->name);
    describe_range(option, expected, sizeof expected);
    if (!text)
        text = is_truth(option) ? "true" : flag->count > 0 ? argv[flag->begin] : NULL;
    if (!text) {
        cli_say("%s needs a value: %s", shown, cli_option_is_text(option) ? option->value : expected);
        return false;
    }
    if (!is_choice(option, shown, text))
        return false;
    const char *const *texts = flag->count > 0 ? (const char *const *)argv + flag->begin : parts;
    int count = flag->count > 0 ? flag->count : split_attached(option, text, copy, parts);
    int taken = store(&flag->found, texts, count);
    if (taken == 0)
        cli_say("%s: \"%s\" is not %s", shown, join(texts, option->kind == CLI_DECLARED ? count : 1, wrong), expected);
    else if (taken < count)
        cli_say("%s: \"%s\" is one too many or out of range: %s", shown, texts[taken], expected);
    return taken == count;
}

void cli_options_defaults(const cli_table *table, size_t size)
{
    memset(table->settings, 0, size);
    for (int i = 0; i < table->use_count; i++)
        if (table->uses[i].group->defaults)
            table->uses[i].group->defaults((char *)table->settings + table->uses[i].offset);
    memcpy(table->defaults, table->settings, size);
}

static bool merge(const cli_table *table)
{
    for (int i = 0; i < table->use_count; i++)
        if (table->uses[i].group->merge &&
            !table->uses[i].group->merge((char *)table->settings + table->uses[i].offset))
            return false;
    return true;
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
    return merge(table);
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
    bool fine = entry->kind == ATT_YAML_SCALAR || cli_option_numbers(f.option) > 1;
    if (fine && f.option->choice) {
        char key[600];
        snprintf(key, sizeof key, "%s%s", where, entry->key);
        if (!is_choice(f.option, key, entry->values[0]))
            return false;
    }
    fine = fine && store(&f, entry->values, entry->value_count) == entry->value_count;
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
    return cli_unknown_none(table, &unknown) && merge(table);
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

bool cli_declared_same(const att_option *option, const att_option_values *a, const att_option_values *b)
{
    char of_a[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES], of_b[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
    int count = att_option_format(option, a, of_a);
    bool same = count == att_option_format(option, b, of_b);
    for (int i = 0; same && i < count; i++)
        same = strcmp(of_a[i], of_b[i]) == 0;
    return same;
}

static bool same_value(const cli_option *option, const void *a, const void *b)
{
    if (option->kind == CLI_TEXT)
        return same_text(*(const char *const *)a, *(const char *const *)b);
    if (option->kind == CLI_DECLARED)
        return cli_declared_same(option->declared, a, b);
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
