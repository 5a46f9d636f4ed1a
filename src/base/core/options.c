#include "base/core/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"

att_option_values att_options_none(void)
{
    return (att_option_values){.count = 0};
}

/* --- values by key ----------------------------------------------------------------------------------------------- */

static int index_of(const att_option_values *values, const char *key)
{
    int i = 0;
    while (i < values->count && (values->items[i].key[0] != key[0] || strcmp(values->items[i].key, key) != 0))
        i++;
    return i;
}

/* Returns the entry of the key, cleared, and adds the entry if it is missing. If there is no room, sets `overflowed`
 * and returns NULL. */
static att_option_value *entry_of(att_option_values *values, const char *key)
{
    int i = key ? index_of(values, key) : ATT_MOST_OPTIONS;
    if (i == ATT_MOST_OPTIONS || strlen(key) >= ATT_OPTION_KEY) {
        values->overflowed = true;
        return NULL;
    }
    att_option_value *entry = &values->items[i];
    *entry = (att_option_value){.count = 0};
    snprintf(entry->key, sizeof entry->key, "%s", key);
    if (i == values->count)
        values->count++;
    return entry;
}

void att_options_set(att_option_values *values, const char *key, double number)
{
    att_option_value *entry = entry_of(values, key);
    if (entry) {
        entry->count = 1;
        entry->numbers[0] = number;
    }
}

void att_options_set_sides(att_option_values *values, const char *key, int height, int width)
{
    att_option_value *entry = entry_of(values, key);
    if (entry) {
        entry->count = 2;
        entry->numbers[0] = height;
        entry->numbers[1] = width;
    }
}

void att_options_set_text(att_option_values *values, const char *key, const char *text)
{
    att_option_value *entry = entry_of(values, key);
    if (!entry)
        return;
    if (!text || strlen(text) >= sizeof entry->text)
        values->overflowed = true;
    else
        memcpy(entry->text, text, strlen(text) + 1);
}

void att_options_unset(att_option_values *values, const char *key)
{
    int i = index_of(values, key);
    if (i < values->count)
        values->items[i] = values->items[--values->count];
}

const att_option_value *att_options_find(const att_option_values *values, const char *key)
{
    int i = index_of(values, key);
    return i < values->count ? &values->items[i] : NULL;
}

double att_options_number(const att_option_values *values, const char *key, double otherwise)
{
    const att_option_value *value = att_options_find(values, key);
    return value && value->count > 0 ? value->numbers[0] : otherwise;
}

const char *att_options_text(const att_option_values *values, const char *key)
{
    const att_option_value *value = att_options_find(values, key);
    return value && value->count == 0 ? value->text : "";
}

void att_option_copy(const char *key, const att_option_values *from, att_option_values *to)
{
    const att_option_value *value = att_options_find(from, key);
    att_option_value *entry = value ? entry_of(to, key) : NULL;
    if (entry)
        *entry = *value;
    else if (!value)
        att_options_unset(to, key);
}

/* --- one option -------------------------------------------------------------------------------------------------- */

const att_option *att_option_find(const att_option_table *table, const char *key)
{
    for (int i = 0; i < table->count; i++) {
        const att_option *option = &table->options[i];
        if ((option->key[0] == key[0] && strcmp(option->key, key) == 0) ||
            (option->alias && strcmp(option->alias, key) == 0))
            return option;
    }
    return NULL;
}

static bool is_whole(const att_option *option)
{
    return option->kind != ATT_OPTION_REAL;
}

static bool in_range(const att_option *option, double number)
{
    double low = option->low, high = option->kind == ATT_OPTION_SWITCH ? 1 : option->high;
    return number >= low && number <= high && (!is_whole(option) || number == floor(number));
}

bool att_option_accepts(const att_option *option, const double *numbers, int count)
{
    bool accepted = option->kind != ATT_OPTION_TEXT && count >= 1 &&
                    count <= (option->kind == ATT_OPTION_SIDES ? ATT_OPTION_NUMBERS : 1);
    for (int i = 0; accepted && i < count; i++)
        accepted = in_range(option, numbers[i]);
    return accepted;
}

/* Number `index` of a value. A single number is both the height and the width. */
static double number_at(const att_option_value *value, int index)
{
    return value->numbers[index < value->count ? index : 0];
}

bool att_option_same(const att_option *option, const att_option_values *a, const att_option_values *b)
{
    const att_option_value *one = att_options_find(a, option->key), *other = att_options_find(b, option->key);
    if (!one || !other)
        return one == other;
    if (option->kind == ATT_OPTION_TEXT || one->count == 0 || other->count == 0)
        return one->count == other->count && strcmp(one->text, other->text) == 0;
    return number_at(one, 0) == number_at(other, 0) && number_at(one, 1) == number_at(other, 1);
}

/* Parses a number. A switch also accepts "true" and "false". */
static bool to_number(const att_option *option, const char *text, double *number)
{
    bool truth = strcmp(text, "true") == 0;
    if (option->kind == ATT_OPTION_SWITCH && (truth || strcmp(text, "false") == 0)) {
        *number = truth;
        return true;
    }
    return att_text_to_f64(text, number);
}

bool att_option_store(const att_option *option, const char *const *texts, int count, att_option_values *values)
{
    double numbers[ATT_OPTION_NUMBERS] = {0};
    if (count < 1 || count > ATT_OPTION_NUMBERS)
        return false;
    if (option->kind == ATT_OPTION_TEXT) {
        if (count > 1 || !texts[0][0] || strlen(texts[0]) >= ATT_OPTION_TEXT_BYTES)
            return false;
        att_options_set_text(values, option->key, texts[0]);
        return true;
    }
    for (int i = 0; i < count; i++)
        if (!to_number(option, texts[i], &numbers[i]))
            return false;
    if (!att_option_accepts(option, numbers, count))
        return false;
    if (option->kind == ATT_OPTION_SIDES)
        att_options_set_sides(values, option->key, (int)numbers[0], (int)numbers[count - 1]);
    else
        att_options_set(values, option->key, numbers[0]);
    return true;
}

int att_option_format(const att_option *option, const att_option_values *values,
                      char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES])
{
    const att_option_value *value = att_options_find(values, option->key);
    char number[ATT_NUMBER_TEXT];
    if (!value)
        return 0;
    if (value->count == 0) {
        memcpy(texts[0], value->text, sizeof value->text);
        return 1;
    }
    if (option->kind == ATT_OPTION_SWITCH) {
        snprintf(texts[0], ATT_OPTION_TEXT_BYTES, "%s", value->numbers[0] ? "true" : "false");
        return 1;
    }
    int count = value->count == 2 && value->numbers[0] != value->numbers[1] ? 2 : 1;
    for (int i = 0; i < count; i++)
        snprintf(texts[i], ATT_OPTION_TEXT_BYTES, "%s", att_format_number(value->numbers[i], number));
    return count;
}

char *att_option_describe(const att_option *option, char *text, size_t size)
{
    static const char *const kinds[] = {[ATT_OPTION_WHOLE] = "a whole number",
                                        [ATT_OPTION_SIDES] = "one or two whole numbers, height and width,",
                                        [ATT_OPTION_REAL] = "a number",
                                        [ATT_OPTION_SWITCH] = "true or false",
                                        [ATT_OPTION_TEXT] = "a text"};
    bool ranged = option->kind != ATT_OPTION_SWITCH && option->kind != ATT_OPTION_TEXT;
    int length = snprintf(text, size, "%s", kinds[option->kind]);
    if (option->kind == ATT_OPTION_TEXT && length < (int)size)
        snprintf(text + length, size - (size_t)length, " of 1 to %d bytes", ATT_OPTION_TEXT_BYTES - 1);
    if (ranged && length < (int)size)
        snprintf(text + length, size - (size_t)length, " from %.10g to %.10g", option->low, option->high);
    return text;
}

/* --- a struct of values ------------------------------------------------------------------------------------------ */

static const char *choice_at(const att_context *context, const att_option *option, int index)
{
    return option->choice_in ? option->choice_in(context, index) : option->choice(index);
}

static att_status fail_choice(att_context *context, const att_option *option, const char *text)
{
    char list[256] = "";
    const char *name;
    for (int i = 0; (name = choice_at(context, option, i)); i++) {
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s\"%s\"", i ? ", " : "", name);
    }
    return att_fail(context, ATT_ERR_ARGUMENT, "%s must be %s%s, not \"%.64s\"", option->key,
                    choice_at(context, option, 1) ? "one of " : "", list, text);
}

/* Does not check the choice of a `detailed` option: the function that parses its details also checks the name in front
 * of them. */
static att_status check_text(att_context *context, const att_option *option, const char *text)
{
    const char *name;
    if (strlen(text) >= option->size)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s is \"%.64s\", which is longer than %zu bytes", option->key, text,
                        option->size - 1);
    if (!option->choice || option->detailed)
        return ATT_OK;
    for (int i = 0; (name = choice_at(context, option, i)); i++)
        if (strcmp(name, text) == 0)
            return ATT_OK;
    return fail_choice(context, option, text);
}

static att_status check_numbers(att_context *context, const att_option *option, const att_option_value *value)
{
    int max_count = option->kind == ATT_OPTION_SIDES ? ATT_OPTION_NUMBERS : 1;
    if (value->count < 1 || value->count > max_count)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s must be %s", option->key,
                        max_count == 1 ? "one number" : "one number or two");
    for (int i = 0; i < value->count; i++)
        if (!in_range(option, value->numbers[i]))
            return att_fail(context, ATT_ERR_ARGUMENT, "%s must be in %.10g..%.10g, not %.10g", option->key,
                            option->low, option->kind == ATT_OPTION_SWITCH ? 1 : option->high, value->numbers[i]);
    return ATT_OK;
}

void att_options_use_keys(const att_option_table *table, att_option_values *values)
{
    for (int i = 0; i < values->count; i++) {
        const att_option *option = att_option_find(table, values->items[i].key);
        if (option && strcmp(option->key, values->items[i].key) != 0)
            snprintf(values->items[i].key, sizeof values->items[i].key, "%s", option->key);
    }
}

static att_status check_value(att_context *context, const att_option *option, const att_option_value *value)
{
    if (option->kind != ATT_OPTION_TEXT)
        return check_numbers(context, option, value);
    return value->count == 0 ? check_text(context, option, value->text)
                             : att_fail(context, ATT_ERR_ARGUMENT, "%s must be a text", option->key);
}

/* Stores a value in its member of the struct. value: NULL if not given. */
static void store_member(const att_option *option, const att_option_value *value, char *member)
{
    int whole[2] = {ATT_OPTION_UNSET, ATT_OPTION_UNSET};
    double real = value && value->count > 0 ? value->numbers[0] : ATT_OPTION_UNSET;
    for (int i = 0; i < 2 && value && is_whole(option) && value->count > 0; i++)
        whole[i] = (int)number_at(value, i);
    if (option->kind == ATT_OPTION_TEXT)
        snprintf(member, option->size, "%s", value ? value->text : "");
    else if (option->kind == ATT_OPTION_REAL)
        memcpy(member, &real, sizeof real);
    else
        memcpy(member, whole, option->size);
}

void att_options_clear(const att_option_table *table, void *owner)
{
    for (int i = 0; i < table->count; i++)
        store_member(&table->options[i], NULL, (char *)owner + table->options[i].offset);
}

/* An alias and its key may both have been given. */
static att_status check_unique(att_context *context, const att_option_values *values)
{
    for (int i = 0; i < values->count; i++)
        if (index_of(values, values->items[i].key) != i)
            return att_fail(context, ATT_ERR_ARGUMENT, "the option %s is given twice", values->items[i].key);
    return ATT_OK;
}

att_status att_options_read(att_context *context, const att_option_table *table, const att_option_values *values,
                            void *owner)
{
    if (values->overflowed)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "an option is NULL or longer than %d bytes, or there are more than %d options",
                        ATT_OPTION_TEXT_BYTES - 1, ATT_MOST_OPTIONS);
    ATT_TRY(check_unique(context, values));
    for (int i = 0; i < table->count; i++) {
        const att_option *option = &table->options[i];
        const att_option_value *value = att_options_find(values, option->key);
        if (value)
            ATT_TRY(check_value(context, option, value));
        store_member(option, value, (char *)owner + option->offset);
    }
    return ATT_OK;
}

static void load_member(const att_option *option, const char *member, att_option_values *values)
{
    int whole[2];
    double real;
    if (option->kind == ATT_OPTION_TEXT) {
        if (*member)
            att_options_set_text(values, option->key, member);
    } else if (option->kind == ATT_OPTION_REAL) {
        memcpy(&real, member, sizeof real);
        if (real != ATT_OPTION_UNSET)
            att_options_set(values, option->key, real);
    } else {
        memcpy(whole, member, option->size);
        if (whole[0] == ATT_OPTION_UNSET)
            return;
        if (option->kind == ATT_OPTION_SIDES)
            att_options_set_sides(values, option->key, whole[0], whole[1]);
        else
            att_options_set(values, option->key, whole[0]);
    }
}

void att_options_write(const att_option_table *table, const void *owner, att_option_values *values)
{
    for (int i = 0; i < table->count; i++)
        load_member(&table->options[i], (const char *)owner + table->options[i].offset, values);
}
