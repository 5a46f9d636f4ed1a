#include "networks/models/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"

att_config att_config_none(void)
{
    return (att_config){.options = att_options_none()};
}

/* --- options ----------------------------------------------------------------------------------------------------- */

void att_options_fill(att_option_values *to, const att_option_values *from)
{
    const att_option_values given = *to;
    for (int i = 0; i < from->count; i++) {
        const char *key = from->items[i].key;
        const att_option *option = att_family_option(key);
        bool implied = option && option->implied_by && att_options_find(&given, option->implied_by);
        if (!implied && !att_options_find(&given, key))
            att_option_copy(key, from, to);
    }
}

void att_options_drop_training(att_option_values *options)
{
    for (int i = options->count; i-- > 0;) {
        const att_option *option = att_family_option(options->items[i].key);
        if (option && option->training)
            att_options_unset(options, option->key);
    }
}

void att_options_size(const att_option_values *options, att_preprocess *preprocess)
{
    const att_option_value *sides = att_options_find(options, "img_size");
    if (sides) {
        preprocess->height = (int)sides->numbers[0];
        preprocess->width = (int)sides->numbers[sides->count - 1];
    }
    preprocess->in_chans = (int)att_options_number(options, "in_chans", preprocess->in_chans);
}

static void average(double values[3])
{
    if (values[0] != values[1] || values[1] != values[2])
        values[0] = values[1] = values[2] = (values[0] + values[1] + values[2]) / 3;
}

void att_preprocess_average(att_preprocess *preprocess)
{
    if (preprocess->in_chans != 1)
        return;
    average(preprocess->mean);
    average(preprocess->std);
}

bool att_options_agree(const att_option_values *found, const att_option_values *own)
{
    for (int i = 0; i < found->count; i++) {
        const char *key = found->items[i].key;
        const att_option *option = att_family_option(key);
        bool both_present =
            option->compare_presence && att_options_number(found, key, 0) > 0 && att_options_number(own, key, 0) > 0;
        if (!option->not_compared && !both_present && !att_option_same(option, found, own))
            return false;
    }
    return true;
}

static void append_value(att_text *text, const att_option_value *value)
{
    if (value->count == 0)
        att_text_append(text, "%s", value->text);
    else if (value->count == 1 || value->numbers[0] == value->numbers[1])
        att_text_append(text, "%g", value->numbers[0]);
    else
        att_text_append(text, "%g x %g", value->numbers[0], value->numbers[1]);
}

bool att_options_differences(att_text *text, const att_option_table *table, const att_option_values *options,
                             const att_option_values *own)
{
    const char *comma = "";
    for (int i = 0; i < table->count; i++) {
        const att_option *option = &table->options[i];
        const att_option_value *value = att_options_find(options, option->key);
        if (!value || option->internal || option->training || att_option_same(option, options, own))
            continue;
        att_text_append(text, "%s%s ", comma, option->key);
        append_value(text, value);
        comma = ", ";
    }
    return *comma != '\0';
}

static void write_sides(att_json_writer *writer, const double *sides)
{
    att_json_begin_array(writer);
    for (int i = 0; i < 2; i++)
        att_json_integer(writer, (int64_t)sides[i]);
    att_json_end_array(writer);
}

void att_option_write_json(att_json_writer *writer, const att_option *option, const att_option_value *value)
{
    if (value->count == 0)
        att_json_string(writer, value->text);
    else if (option->kind == ATT_OPTION_REAL)
        att_json_number(writer, value->numbers[0]);
    else if (value->count == 2 && value->numbers[0] != value->numbers[1])
        write_sides(writer, value->numbers);
    else
        att_json_integer(writer, (int64_t)value->numbers[0]);
}

void att_options_write_json(att_json_writer *writer, const att_option_table *table, const att_option_values *options)
{
    for (int i = 0; i < table->count; i++) {
        const att_option *option = &table->options[i];
        const att_option_value *value = att_options_find(options, option->key);
        if (!value || option->internal || option->training)
            continue;
        att_json_key(writer, option->key);
        att_option_write_json(writer, option, value);
    }
}

/* --- merging sources ---------------------------------------------------------------------------------------------- */

void att_config_fill(att_config *to, const att_config *from)
{
    att_options_fill(&to->options, &from->options);
    if (!to->name[0])
        memcpy(to->name, from->name, sizeof to->name);
    if (!to->has_mean)
        memcpy(to->mean, from->mean, sizeof to->mean);
    if (!to->has_std)
        memcpy(to->std, from->std, sizeof to->std);
    to->has_mean |= from->has_mean;
    to->has_std |= from->has_std;
    if (to->crop_pct == 0)
        to->crop_pct = from->crop_pct;
    if (!to->crop_mode[0])
        memcpy(to->crop_mode, from->crop_mode, sizeof to->crop_mode);
    if (!to->interpolation[0])
        memcpy(to->interpolation, from->interpolation, sizeof to->interpolation);
    if (to->test_height == 0) {
        to->test_height = from->test_height;
        to->test_width = from->test_width;
    }
    if (to->test_crop_pct == 0)
        to->test_crop_pct = from->test_crop_pct;
}

void att_config_apply(const att_config *config, att_preprocess *preprocess)
{
    if (config->has_mean)
        memcpy(preprocess->mean, config->mean, sizeof preprocess->mean);
    if (config->has_std)
        memcpy(preprocess->std, config->std, sizeof preprocess->std);
    if (config->crop_pct != 0)
        preprocess->crop_pct = config->crop_pct;
    if (config->crop_mode[0])
        memcpy(preprocess->crop_mode, config->crop_mode, sizeof preprocess->crop_mode);
    if (config->interpolation[0])
        memcpy(preprocess->interpolation, config->interpolation, sizeof preprocess->interpolation);
}

/* --- setting values ----------------------------------------------------------------------------------------------- */

typedef struct note {
    att_context *context;
    const char *what, *key;
    const att_fact *fact;
} note;

static att_status fail_note(const note *n, const char *expected)
{
    return att_fail(n->context, ATT_ERR_FORMAT, "%s: \"%s\" must be %s", n->what, n->key, expected);
}

static att_status note_word(const note *n, char *to, size_t size)
{
    if (n->fact->kind != ATT_FACT_TEXT)
        return fail_note(n, "a text");
    if (!n->fact->text[0] || strlen(n->fact->text) >= size)
        return att_fail(n->context, ATT_ERR_UNSUPPORTED, "%s: %s is \"%.64s\", which attscope does not support",
                        n->what, n->key, n->fact->text);
    if (!to[0])
        snprintf(to, size, "%s", n->fact->text);
    return ATT_OK;
}

/* A list of blocks or layers can be one number or, as in timm, a list of numbers. */
static att_status note_text(const note *n, const att_option *option, att_option_values *options)
{
    const att_fact *fact = n->fact;
    char list[64] = "", text[ATT_OPTION_TEXT_BYTES];
    bool numbers = fact->kind == ATT_FACT_NUMBERS;
    for (int i = 0; numbers && i < fact->count; i++) {
        numbers = fabs(fact->numbers[i]) <= 1e6;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.7g", i ? "," : "", fact->numbers[i]);
    }
    const att_fact word = {.kind = numbers ? ATT_FACT_TEXT : fact->kind, .text = numbers ? list : fact->text};
    const note as_word = {n->context, n->what, n->key, &word};
    text[0] = '\0';
    ATT_TRY(note_word(&as_word, text, option->size));
    if (!att_options_find(options, option->key))
        att_options_set_text(options, option->key, text);
    return ATT_OK;
}

/* timm writes some whole numbers as pairs of equal numbers. */
static att_status note_option(const note *n, const att_option *option, att_option_values *options)
{
    const att_fact *fact = n->fact;
    if (option->kind == ATT_OPTION_TEXT)
        return note_text(n, option, options);
    bool pair = fact->count == 2 && fact->numbers[0] == fact->numbers[1];
    if (fact->kind != ATT_FACT_NUMBERS || !att_option_accepts(option, fact->numbers, pair ? 1 : fact->count)) {
        char expected[96];
        return fail_note(n, att_option_describe(option, expected, sizeof expected));
    }
    if (att_options_find(options, option->key))
        return ATT_OK;
    if (option->kind == ATT_OPTION_SIDES)
        att_options_set_sides(options, option->key, (int)fact->numbers[0], (int)fact->numbers[fact->count - 1]);
    else
        att_options_set(options, option->key, fact->numbers[0]);
    return ATT_OK;
}

/* [channels, height, width] */
static att_status note_input_size(const note *n, att_config *config)
{
    const double *size = n->fact->numbers;
    if (n->fact->kind != ATT_FACT_NUMBERS || n->fact->count != 3)
        return fail_note(n, "[channels, height, width]");
    att_fact channels = {.kind = ATT_FACT_NUMBERS, .numbers = {size[0]}, .count = 1};
    att_fact sides = {.kind = ATT_FACT_NUMBERS, .numbers = {size[1], size[2]}, .count = 2};
    ATT_TRY(att_config_note(n->context, n->what, "in_chans", &channels, config));
    return att_config_note(n->context, n->what, "img_size", &sides, config);
}

/* Accepts one number for all channels, or three. */
static att_status note_channels(const note *n, double low, double *to, bool *has)
{
    const att_fact *fact = n->fact;
    bool counted = fact->kind == ATT_FACT_NUMBERS && (fact->count == 1 || fact->count == 3);
    for (int i = 0; counted && i < fact->count; i++)
        counted = fact->numbers[i] >= low && fact->numbers[i] <= 1e3;
    if (!counted)
        return fail_note(n, low > 0 ? "one or three positive numbers" : "one or three numbers");
    if (*has)
        return ATT_OK;
    for (int i = 0; i < 3; i++)
        to[i] = fact->numbers[fact->count == 1 ? 0 : i];
    *has = true;
    return ATT_OK;
}

static att_status note_crop(const note *n, double *crop_pct)
{
    if (n->fact->kind != ATT_FACT_NUMBERS || n->fact->count != 1 || !(n->fact->numbers[0] > 0.01) ||
        !(n->fact->numbers[0] <= 10))
        return fail_note(n, "a number above 0.01 and up to 10");
    if (*crop_pct == 0)
        *crop_pct = n->fact->numbers[0];
    return ATT_OK;
}

static bool is_side(double number)
{
    return number >= 1 && number <= 65536 && number == floor(number);
}

/* Accepts [channels, height, width], or one number for both sides. */
static att_status note_test_size(const note *n, att_config *config)
{
    const att_fact *fact = n->fact;
    const double *height = &fact->numbers[fact->count == 3], *width = &fact->numbers[fact->count == 3 ? 2 : 0];
    if (fact->kind != ATT_FACT_NUMBERS || (fact->count != 1 && fact->count != 3) || !is_side(*height) ||
        !is_side(*width))
        return fail_note(n, "[channels, height, width]");
    if (config->test_height == 0) {
        config->test_height = (int)*height;
        config->test_width = (int)*width;
    }
    return ATT_OK;
}

static att_status note_choice(const note *n, const char *choices, const char *expected, char *to, size_t size)
{
    if (n->fact->kind != ATT_FACT_TEXT || !att_checkpoint_lists(choices, n->fact->text))
        return fail_note(n, expected);
    return note_word(n, to, size);
}

att_status att_config_note(att_context *context, const char *what, const char *key, const att_fact *fact,
                           att_config *config)
{
    note n = {context, what, key, fact};
    const att_option *option = att_family_option(key);
    if (option && (option->training || option->internal))
        return option->training ? ATT_OK : ATT_ERR_NOT_FOUND;
    if (option)
        return note_option(&n, option, &config->options);
    if (strcmp(key, "model") == 0 || strcmp(key, "architecture") == 0)
        return note_word(&n, config->name, sizeof config->name);
    if (strcmp(key, "input_size") == 0)
        return note_input_size(&n, config);
    if (strcmp(key, "mean") == 0)
        return note_channels(&n, -1e3, config->mean, &config->has_mean);
    if (strcmp(key, "std") == 0)
        return note_channels(&n, 1e-6, config->std, &config->has_std);
    if (strcmp(key, "crop_pct") == 0)
        return note_crop(&n, &config->crop_pct);
    if (strcmp(key, "test_crop_pct") == 0)
        return note_crop(&n, &config->test_crop_pct);
    if (strcmp(key, "test_input_size") == 0 || strcmp(key, "test_img_size") == 0)
        return note_test_size(&n, config);
    if (strcmp(key, "crop_mode") == 0)
        return note_choice(&n, "center floor squash border keep within",
                           "\"center\", \"floor\", \"squash\", \"border\", \"keep\" or \"within\"", config->crop_mode,
                           sizeof config->crop_mode);
    if (strcmp(key, "interpolation") == 0)
        return note_choice(
            &n, "bicubic bilinear nearest bicubic_float bilinear_float bilinear_plain",
            "\"bicubic\", \"bilinear\", \"nearest\", \"bicubic_float\", \"bilinear_float\" or \"bilinear_plain\"",
            config->interpolation, sizeof config->interpolation);
    return ATT_ERR_NOT_FOUND;
}
