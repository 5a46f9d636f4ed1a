/* Flags on a command line. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/flags/flags.h"
#include "base/flags/unknown.h"
#include "base/flags/unsupported_flags.h"

typedef struct words {
    int at, count;
    char **argv;
} words;

/* A flag on the command line. */
typedef struct flag_words {
    att_named_flag named;
    char name[ATT_UNKNOWN_NAME]; /* without dashes; truncated if it is too long */
    const char *dashes;
    const char *attached; /* the text after '=' or the letter; NULL: none */
    int begin, count;     /* the following words that are its values */
    att_flag_words takes; /* for a flag of timm's that has no effect in attscope */
} flag_words;

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1];
}

/* Skips the values of a flag of timm's that is ignored. */
static void skip_ignored_values(const flag_words *flag, words *w)
{
    int most = flag->attached || flag->takes == ATT_TAKES_NOTHING ? 0 : flag->takes == ATT_TAKES_SEVERAL ? INT_MAX : 1;
    while (w->at < w->count && w->at - flag->begin < most && !is_flag(w->argv[w->at]) &&
           (flag->takes != ATT_TAKES_COMPILER || att_is_torch_compiler(w->argv[w->at])))
        w->at++;
}

/* Whether a flag of timm's that attscope lacks has a value that turns it off. */
static bool is_turned_off(const flag_words *flag, const words *w)
{
    const char *word = flag->attached ? flag->attached : w->at < w->count ? w->argv[w->at] : NULL;
    return word && att_unsupported_flag_is_off(flag->name, word);
}

/* Also of words such as nan and inf, which no flag takes: they are then refused as values of the flag, and not taken
 * for operands. */
static bool reads_as_number(const char *word)
{
    char *end;
    strtod(word, &end);
    return end != word && !*end;
}

/* Skips the words that are the flag's values, without checking them. */
static void skip_values(const flag_words *flag, words *w)
{
    const att_flag *row = flag->named.flag;
    if (flag->attached || att_flag_is_truth(row) || w->at == w->count)
        return;
    w->at++;
    for (int most = att_flag_is_list(row) ? INT_MAX : att_flag_numbers(row);
         w->at - flag->begin < most && w->at < w->count && reads_as_number(w->argv[w->at]);)
        w->at++;
}

/* Reads the flag that begins with `word`. w is at the next word. */
static flag_words read_flag(const att_flags *flags, const char *word, words *w)
{
    bool is_long = word[1] == '-';
    size_t length = is_long ? strcspn(word + 2, "=") : 1;
    flag_words flag = {.dashes = is_long ? "--" : "-", .begin = w->at};
    snprintf(flag.name, sizeof flag.name, "%.*s", (int)(length < sizeof flag.name ? length : sizeof flag.name - 1),
             word + strlen(flag.dashes));
    const char *rest = word + strlen(flag.dashes) + length;
    if (*rest)
        flag.attached = rest + is_long;
    flag.named = is_long ? att_flags_by_name(flags, flag.name) : att_flags_by_letter(flags, word[1]);
    if (flag.named.flag)
        skip_values(&flag, w);
    else if (is_long && (flag.takes = att_unsupported_flag_takes(flag.name)) != ATT_TAKES_UNKNOWN)
        skip_ignored_values(&flag, w);
    else if (is_long && is_turned_off(&flag, w)) {
        flag.takes = ATT_TAKES_ONE;
        skip_ignored_values(&flag, w);
    }
    flag.count = w->at - flag.begin;
    return flag;
}

/* Refuses unknown flags before any value is checked. */
static att_status check_names(const att_flags *flags, int argc, char **argv)
{
    att_unknown_flags unknown = {0};
    words w = {0, argc, argv};
    while (w.at < w.count && strcmp(argv[w.at], "--") != 0) {
        const char *word = argv[w.at++];
        if (!is_flag(word))
            continue;
        flag_words flag = read_flag(flags, word, &w);
        if (!flag.named.flag && flag.takes == ATT_TAKES_UNKNOWN)
            att_unknown_flags_add(&unknown, flag.dashes, word[1] == '-' ? flag.name : word + 1, 0);
    }
    return att_unknown_flags_refuse(flags, &unknown);
}

static att_status store_flag(const att_flags *flags, const flag_words *flag, char **argv, void *values)
{
    const att_flag *row = flag->named.flag;
    char shown[ATT_UNKNOWN_NAME + 4], copy[ATT_FLAG_TEXT_BYTES];
    const char *parts[ATT_MOST_REALS + 1] = {"true"};
    snprintf(shown, sizeof shown, "%s%s", flag->dashes, flag->name);
    const bool is_one = flag->count == 1 && row->kind == ATT_FLAG_INTS; /* it may hold several numbers: "10,20" */
    const char *text = is_one ? argv[flag->begin] : flag->attached;
    if (flag->count > 0 && !is_one)
        return att_flags_store(flags, &flag->named, shown, (const char *const *)argv + flag->begin, flag->count,
                               values);
    int count = text ? att_flag_split(row, text, copy, parts) : att_flag_is_truth(row);
    return att_flags_store(flags, &flag->named, shown, parts, count, values);
}

/* Checks the value of a flag of timm's that has no effect in attscope, and adds it to `ignored`. */
static att_status skip_ignored(const att_flags *flags, const flag_words *flag, att_ignored_flags *ignored)
{
    if (flag->attached && !att_unsupported_flag_accepts(flag->name, flag->attached))
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "--%s: \"%s\" is not true or false", flag->name,
                        flag->attached);
    if (ignored)
        att_unsupported_flag_ignore(ignored, flag->name);
    return ATT_OK;
}

att_status att_flags_parse(const att_flags *flags, int argc, char **argv, void *values, const char **operands,
                           int *operand_count, att_ignored_flags *ignored)
{
    words w = {0, argc, argv};
    bool only_operands = false;
    *operand_count = 0;
    ATT_TRY(check_names(flags, argc, argv));
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
        flag_words flag = read_flag(flags, word, &w);
        ATT_TRY(flag.named.flag ? store_flag(flags, &flag, argv, values) : skip_ignored(flags, &flag, ignored));
    }
    return att_flags_merge(flags, values);
}

att_status att_flags_set(const att_flags *flags, const char *name, const char *text, void *values)
{
    char copy[ATT_FLAG_TEXT_BYTES], shown[ATT_UNKNOWN_NAME + 4];
    const char *parts[ATT_MOST_REALS + 1];
    att_unknown_flags unknown = {0};
    ATT_TRY(att_require(flags->context, name, "the name of a flag"));
    ATT_TRY(att_require(flags->context, text, "the value of a flag"));
    ATT_TRY(att_require(flags->context, values, "the struct for the values of flags"));
    if (name[0] == '-')
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "\"%s\" is not the name of a flag: omit the leading dashes",
                        name);
    att_named_flag named = att_flags_by_name(flags, name);
    if (!named.flag &&
        (att_unsupported_flag_takes(name) != ATT_TAKES_UNKNOWN || att_unsupported_flag_is_off(name, text)))
        return ATT_OK;
    if (!named.flag) {
        att_unknown_flags_add(&unknown, "--", name, 0);
        return att_unknown_flags_refuse(flags, &unknown);
    }
    int count = att_flag_split(named.flag, text, copy, parts);
    snprintf(shown, sizeof shown, "--%s", name);
    ATT_TRY(att_flags_store(flags, &named, shown, parts, count, values));
    return att_flags_merge(flags, values);
}
