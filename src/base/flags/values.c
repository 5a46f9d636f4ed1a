/* Parses and formats the values of flags. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/options.h"
#include "base/core/text.h"
#include "base/flags/flags.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static bool to_seed(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool is_in_range(const att_flag *flag, double value)
{
    return (flag->low == 0 && flag->high == 0) || (value >= flag->low && value <= flag->high);
}

/* timm's files contain whole numbers written as reals: "aug_repeats: 3.0". */
static bool to_whole(const char *text, int64_t *value)
{
    const double exact = 9007199254740992; /* 2^53 */
    double real;
    if (att_text_to_i64(text, value))
        return true;
    if (!att_text_to_f64(text, &real) || real != rint(real) || fabs(real) > exact)
        return false;
    *value = (int64_t)real;
    return true;
}

static bool store_whole(const att_flag *flag, const char *text, void *to)
{
    int64_t value;
    if (!to_whole(text, &value) || !is_in_range(flag, (double)value))
        return false;
    if (flag->kind == ATT_FLAG_LONG) {
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

static bool store_size(const att_flag *flag, const char *text, void *to)
{
    int64_t value;
    if (!to_size(text, &value) || !is_in_range(flag, (double)value))
        return false;
    memcpy(to, &value, sizeof value);
    return true;
}

static bool store_real(const att_flag *flag, const char *text, void *to)
{
    double value;
    if (!att_text_to_f64(text, &value) || !is_in_range(flag, value))
        return false;
    memcpy(to, &value, sizeof value);
    return true;
}

/* The following functions return how many of the texts were stored, from the first on; the next text is invalid. */

static int store_reals(const att_flag *flag, const char *const *texts, int count, att_reals *reals)
{
    *reals = (att_reals){.count = 0};
    while (reals->count < count && reals->count < att_flag_numbers(flag) &&
           store_real(flag, texts[reals->count], &reals->values[reals->count]))
        reals->count++;
    return reals->count;
}

static int *ints_count(const att_flag *flag, void *values)
{
    return (int *)((char *)values - flag->offset + flag->count_offset);
}

int att_flag_ints_count(const att_flag *flag, const void *values)
{
    return *(const int *)((const char *)values - flag->offset + flag->count_offset);
}

static int store_ints(const att_flag *flag, const char *const *texts, int count, int *values)
{
    int stored = 0;
    while (stored < count && stored < att_flag_numbers(flag) && store_whole(flag, texts[stored], &values[stored]))
        stored++;
    *ints_count(flag, values) = stored;
    return stored;
}

/* Stores both numbers or none. */
static int store_pair(const att_flag *flag, const char *const *texts, int count, double *pair)
{
    double read[2];
    if (count != 2 || !store_real(flag, texts[0], &read[0]) || !store_real(flag, texts[1], &read[1]))
        return 0;
    memcpy(pair, read, sizeof read);
    return count;
}

/* --- storing ------------------------------------------------------------------------------------------------------ */

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcmp(text, *words) != 0)
        words++;
    return *words;
}

bool att_flag_to_truth(const char *text, bool *value)
{
    static const char *const on[] = {"true", "True", "TRUE", "1", NULL}, *const off[] = {"false", "False", "FALSE", "0",
                                                                                         NULL};
    *value = is_one_of(text, on);
    return *value || is_one_of(text, off);
}

/* The value that a word of YAML 1.1 stands for, which YAML 1.2 takes for a text; NULL: it is no such word. */
static const char *truth_of_old_yaml(const char *text)
{
    static const char *const on[] = {"yes", "Yes", "YES", "y", "Y", "on", "On", "ON", NULL}, *const off[] = {
                                                                                                 "no",  "No",  "NO",
                                                                                                 "n",   "N",   "off",
                                                                                                 "Off", "OFF", NULL};
    return is_one_of(text, on) ? "true" : is_one_of(text, off) ? "false" : NULL;
}

static bool add_text(const char *text, att_texts *texts)
{
    if (texts->count == ATT_MOST_TEXTS)
        return false;
    texts->values[texts->count++] = text;
    return true;
}

static bool store_one(const att_named_flag *named, const char *text, const void *otherwise, void *to)
{
    const att_flag *flag = named->flag;
    switch (flag->kind) {
    case ATT_FLAG_SWITCH:
        if (!att_flag_to_truth(text, to))
            return false;
        *(bool *)to ^= named->no;
        return true;
    case ATT_FLAG_INT:
    case ATT_FLAG_LONG:
        return store_whole(flag, text, to);
    case ATT_FLAG_SIZE:
        return store_size(flag, text, to);
    case ATT_FLAG_SEED:
        return to_seed(text, to);
    case ATT_FLAG_REAL:
        return store_real(flag, text, to);
    case ATT_FLAG_TEXT:
        *(const char **)to = *text || flag->empty ? text : *(const char *const *)otherwise;
        return true;
    case ATT_FLAG_TEXTS:
        return add_text(text, to);
    case ATT_FLAG_PAIR: /* store() */
    case ATT_FLAG_REALS:
    case ATT_FLAG_INTS:
    case ATT_FLAG_DECLARED:
        break;
    }
    return false;
}

static bool store_declared(const att_named_flag *named, const char *const *texts, int count, void *to)
{
    bool truth;
    const att_option *declared = named->flag->declared;
    if (!att_flag_is_declared_switch(named->flag))
        return att_option_store(declared, texts, count, to);
    if (count != 1 || !att_flag_to_truth(texts[0], &truth))
        return false;
    att_options_set(to, declared->key, truth != named->no);
    return true;
}

/* Returns how many of the texts were stored; the next text is invalid. For a pair or a declared option, either all
 * texts are stored or none. */
static int store(const att_named_flag *named, const char *const *texts, int count, const void *otherwise, void *to)
{
    switch (named->flag->kind) {
    case ATT_FLAG_DECLARED:
        return store_declared(named, texts, count, to) ? count : 0;
    case ATT_FLAG_PAIR:
        return store_pair(named->flag, texts, count, to);
    case ATT_FLAG_REALS:
        return store_reals(named->flag, texts, count, to);
    case ATT_FLAG_INTS:
        return store_ints(named->flag, texts, count, to);
    default:
        return store_one(named, texts[0], otherwise, to);
    }
}

/* --- choices ------------------------------------------------------------------------------------------------------ */

static const char *choice_at(const att_context *context, const att_flag *flag, int index)
{
    return flag->choice_in ? flag->choice_in(context, index) : att_flag_choice(flag, index);
}

static int count_choices(const att_context *context, const att_flag *flag)
{
    int count = 0;
    while (choice_at(context, flag, count))
        count++;
    return count;
}

typedef struct choices {
    const att_context *context;
    const att_flag *flag;
} choices;

static const char *choice_name(const void *user, int index)
{
    const choices *of = user;
    return choice_at(of->context, of->flag, index);
}

enum { SHOWN_CHOICES = 8 };

static att_status refuse_choice(att_context *context, const att_flag *flag, const char *where, const char *text)
{
    const choices of = {context, flag};
    int count = count_choices(context, flag);
    const char *nearest = att_text_nearest(text, choice_name, &of, count);
    if (nearest)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: there is no \"%s\"; did you mean %s?", where, text, nearest);
    if (count > SHOWN_CHOICES)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: there is no \"%s\" (%s)", where, text, flag->help);
    char list[256] = "";
    for (size_t i = 0, length = 0; i < (size_t)count && length < sizeof list; i++)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", choice_name(&of, (int)i));
    return att_fail(context, ATT_ERR_ARGUMENT, "%s: there is no \"%s\", only %s", where, text, list);
}

/* Refuses a text that is not one of the choices; the message suggests the nearest choice. */
static att_status check_choice(att_context *context, const att_flag *flag, const char *where, const char *text)
{
    int count = count_choices(context, flag);
    size_t named = flag->detailed ? strcspn(text, ":@+,") : strlen(text);
    if (count == 0 || !*text || flag->advisory || (flag->detailed && named == 0))
        return ATT_OK;
    for (int i = 0; i < count; i++) {
        const char *choice = choice_at(context, flag, i);
        if (strncmp(text, choice, named) == 0 && !choice[named])
            return ATT_OK;
    }
    return refuse_choice(context, flag, where, text);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

static const char *kind_name(att_flag_kind kind)
{
    switch (kind) {
    case ATT_FLAG_SWITCH:
        return "true or false";
    case ATT_FLAG_INT:
    case ATT_FLAG_LONG:
    case ATT_FLAG_INTS:
        return "a whole number";
    case ATT_FLAG_SIZE:
        return "a size such as 800M or 4G, or a number of bytes";
    case ATT_FLAG_SEED:
        return "a whole number from 0 to 2^64 - 1";
    case ATT_FLAG_REAL:
    case ATT_FLAG_REALS:
        return "a number";
    case ATT_FLAG_PAIR:
        return "two numbers";
    case ATT_FLAG_TEXTS:
        return "a text, given at most 32 times";
    case ATT_FLAG_TEXT:
    case ATT_FLAG_DECLARED:
        break;
    }
    return "a text";
}

char *att_flag_describe(const att_flag *flag, char text[ATT_FLAG_VALUE_BYTES])
{
    if (flag->kind == ATT_FLAG_DECLARED)
        return att_option_describe(flag->declared, text, ATT_FLAG_VALUE_BYTES);
    size_t length = (size_t)snprintf(text, ATT_FLAG_VALUE_BYTES, "%s", kind_name(flag->kind));
    if (flag->low != 0 || flag->high != 0) {
        bool bounded = flag->high < 1e9 && isfinite(flag->high);
        length += (size_t)snprintf(text + length, ATT_FLAG_VALUE_BYTES - length,
                                   bounded ? " from %.10g to %.10g" : " from %.10g up", flag->low, flag->high);
    }
    if (flag->kind == ATT_FLAG_REALS || flag->kind == ATT_FLAG_INTS)
        snprintf(text + length, ATT_FLAG_VALUE_BYTES - length, ", up to %d of them", att_flag_numbers(flag));
    return text;
}

/* Writes the texts with spaces between them, truncated to fit, and returns `text`. */
static char *join(const char *const *texts, int count, char text[ATT_FLAG_TEXT_BYTES])
{
    size_t length = 0;
    *text = '\0';
    for (int i = 0; i < count && length < ATT_FLAG_TEXT_BYTES; i++)
        length += (size_t)snprintf(text + length, ATT_FLAG_TEXT_BYTES - length, "%s%s", i ? " " : "", texts[i]);
    return text;
}

att_status att_flags_store(const att_flags *flags, const att_named_flag *named, const char *where,
                           const char *const *texts, int count, void *values)
{
    const att_flag *flag = named->flag;
    char expected[ATT_FLAG_VALUE_BYTES], wrong[ATT_FLAG_TEXT_BYTES];
    if (count == 0 && att_flag_is_text(flag) && flag->help)
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s needs a value: %s (%s)", where, flag->value, flag->help);
    if (count == 0)
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s needs a value: %s", where,
                        att_flag_is_text(flag) ? flag->value : att_flag_describe(flag, expected));
    ATT_TRY(check_choice(flags->context, flag, where, texts[0]));
    int taken = store(named, texts, count, (const char *)flags->defaults + named->at, (char *)values + named->at);
    if (taken == count)
        return ATT_OK;
    bool whole = flag->kind == ATT_FLAG_DECLARED || flag->kind == ATT_FLAG_PAIR;
    const char *truth = att_flag_is_truth(flag) ? truth_of_old_yaml(texts[0]) : NULL;
    att_flag_describe(flag, expected);
    if (truth)
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s: \"%s\" is not %s; write %s", where, texts[0], expected,
                        truth);
    if (taken == 0)
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s: \"%s\" is not %s", where,
                        join(texts, whole ? count : 1, wrong), expected);
    return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s: \"%s\" is one too many or out of range: %s", where,
                    texts[taken], expected);
}

int att_flag_split(const att_flag *flag, const char *text, char copy[ATT_FLAG_TEXT_BYTES],
                   const char *parts[ATT_MOST_REALS + 1])
{
    int count = 0;
    char *rest = copy;
    const char *between = flag->kind == ATT_FLAG_INTS ? " ," : " ";
    parts[0] = text;
    if (att_flag_numbers(flag) < 2 || strlen(text) >= ATT_FLAG_TEXT_BYTES)
        return 1;
    strcpy(copy, text);
    for (char *part; count <= ATT_MOST_REALS && (part = strtok_r(rest, between, &rest));)
        parts[count++] = part;
    return count > 0 ? count : 1;
}

void att_flag_store_start(const att_flag *flag, void *values)
{
    char copy[ATT_FLAG_TEXT_BYTES];
    const char *parts[ATT_MOST_REALS + 1];
    const att_named_flag named = {.flag = flag};
    if (!flag->start)
        return;
    const int count = att_flag_split(flag, flag->start, copy, parts);
    const int stored = store(&named, parts, count, NULL, (char *)values + flag->offset);
    assert(stored == count);
    (void)stored;
}

/* --- formatting --------------------------------------------------------------------------------------------------- */

/* Bounds the count of a list, which a program may have set, by the room for its numbers. */
static int within(const att_flag *flag, int count)
{
    const int most = att_flag_numbers(flag);
    return count < most ? count : most;
}

bool att_flag_is_given(const att_flag *flag, const void *at)
{
    switch (flag->kind) {
    case ATT_FLAG_INT:
        return !flag->open || *(const int *)at != 0;
    case ATT_FLAG_REAL:
        return flag->open ? *(const double *)at != 0 : !isnan(*(const double *)at);
    case ATT_FLAG_SIZE:
        return !flag->open || *(const int64_t *)at != 0;
    case ATT_FLAG_PAIR:
        return !flag->open || ((const double *)at)[0] != 0 || ((const double *)at)[1] != 0;
    case ATT_FLAG_REALS:
        return ((const att_reals *)at)->count > 0;
    case ATT_FLAG_INTS:
        return att_flag_ints_count(flag, at) > 0;
    case ATT_FLAG_TEXTS: /* belong to a single call: neither shown nor written */
        return false;
    case ATT_FLAG_TEXT:
        return *(const char *const *)at != NULL;
    case ATT_FLAG_DECLARED:
        return att_options_find(at, flag->declared->key) != NULL;
    default:
        return true;
    }
}

int att_flag_texts(const att_flag *flag, const void *at, char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES],
                   const char *texts[ATT_MOST_REALS])
{
    int count = 1;
    for (int i = 0; i < ATT_MOST_REALS; i++)
        texts[i] = numbers[i];
    switch (flag->kind) {
    case ATT_FLAG_SWITCH:
        texts[0] = *(const bool *)at ? "true" : "false";
        break;
    case ATT_FLAG_INT:
        snprintf(numbers[0], ATT_FLAG_VALUE_BYTES, "%d", *(const int *)at);
        break;
    case ATT_FLAG_LONG:
    case ATT_FLAG_SIZE:
        snprintf(numbers[0], ATT_FLAG_VALUE_BYTES, "%" PRId64, *(const int64_t *)at);
        break;
    case ATT_FLAG_SEED:
        snprintf(numbers[0], ATT_FLAG_VALUE_BYTES, "%" PRIu64, *(const uint64_t *)at);
        break;
    case ATT_FLAG_REAL:
        att_format_number(*(const double *)at, numbers[0]);
        break;
    case ATT_FLAG_PAIR:
        count = 2;
        for (int i = 0; i < count; i++)
            att_format_number(((const double *)at)[i], numbers[i]);
        break;
    case ATT_FLAG_INTS:
        count = within(flag, att_flag_ints_count(flag, at));
        for (int i = 0; i < count; i++)
            snprintf(numbers[i], ATT_FLAG_VALUE_BYTES, "%d", ((const int *)at)[i]);
        break;
    case ATT_FLAG_REALS:
        count = within(flag, ((const att_reals *)at)->count);
        for (int i = 0; i < count; i++)
            att_format_number(((const att_reals *)at)->values[i], numbers[i]);
        break;
    case ATT_FLAG_TEXT:
        texts[0] = *(const char *const *)at;
        break;
    case ATT_FLAG_DECLARED:
        count = att_option_format(flag->declared, at, numbers);
        break;
    case ATT_FLAG_TEXTS:
        count = 0;
        break;
    }
    return count;
}

int att_flag_format(const att_flag_place *place, const void *values, char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES],
                    const char *texts[ATT_MOST_REALS])
{
    const void *at = (const char *)values + place->offset + place->flag->offset;
    return att_flag_is_given(place->flag, at) ? att_flag_texts(place->flag, at, numbers, texts) : 0;
}
