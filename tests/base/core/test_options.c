/* Options declared in tables, and values by key. */
#include "base/core/context.h"
#include "base/core/options.h"
#include "test.h"

typedef struct settings {
    int sides[2], depth, norm;
    double ratio;
    char pool[8], word[8];
} settings;

static const char *pools(int index)
{
    static const char *const names[] = {"token", "avg"};
    return index < 2 ? names[index] : NULL;
}

enum { SIDES, DEPTH, NORM, RATIO, POOL, WORD, ROWS };

static const att_option rows[ROWS] = {
    {"sides", .kind = ATT_OPTION_SIDES, .low = 1, .high = 64, ATT_OPTION_AT(settings, sides)},
    {"depth", .kind = ATT_OPTION_WHOLE, .low = 1, .high = 9, ATT_OPTION_AT(settings, depth)},
    {"norm", .kind = ATT_OPTION_SWITCH, ATT_OPTION_AT(settings, norm)},
    {"ratio", .kind = ATT_OPTION_REAL, .low = 0, .high = 4, ATT_OPTION_AT(settings, ratio)},
    {"pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .choice = pools, ATT_OPTION_AT(settings, pool)},
    {"word", .kind = ATT_OPTION_TEXT, ATT_OPTION_AT(settings, word)},
};
static const att_option_table table = {rows, ROWS, sizeof(settings)};

static int setup(void **state)
{
    return att_context_create_with(NULL, NULL, (att_context **)state) != ATT_OK;
}

static int teardown(void **state)
{
    att_context_destroy((att_context **)state);
    return 0;
}

#define CONTEXT_TEST(name) TEST_WITH(name, att_context *context, setup, teardown)

TEST(aliases_become_keys)
{
    att_option_values values = att_options_none();
    att_options_set_text(&values, "gp", "avg");
    att_options_set(&values, "depth", 3);
    att_options_set(&values, "unknown", 1);
    att_options_use_keys(&table, &values);
    assert_string_equal(att_options_text(&values, "pool"), "avg");
    assert_null(att_options_find(&values, "gp"));
    assert_int_equal(att_options_number(&values, "depth", 0), 3);
    assert_non_null(att_options_find(&values, "unknown"));
}

static void stores(const att_option *option, const char *first, const char *second, bool expected)
{
    att_option_values values = att_options_none();
    const char *const texts[] = {first, second};
    bool stored = att_option_store(option, texts, second ? 2 : 1, &values);
    if (stored != expected)
        fail_msg("%s %s %s: stored %d", option->key, first, second ? second : "", stored);
    assert_int_equal(values.count, expected);
}

TEST(texts_are_read_by_kind)
{
    stores(&rows[SIDES], "8", NULL, true);
    stores(&rows[SIDES], "8", "16", true);
    stores(&rows[SIDES], "8", "65", false);
    stores(&rows[SIDES], "8.5", NULL, false);
    stores(&rows[DEPTH], "9", NULL, true);
    stores(&rows[DEPTH], "0", NULL, false);
    stores(&rows[DEPTH], "3", "3", false);
    stores(&rows[DEPTH], "nan", NULL, false);
    stores(&rows[NORM], "true", NULL, true);
    stores(&rows[NORM], "2", NULL, false);
    stores(&rows[RATIO], "0", NULL, true);
    stores(&rows[RATIO], "inf", NULL, false);
    stores(&rows[POOL], "avg", NULL, true);
    stores(&rows[POOL], "", NULL, false);
}

static void formats(const att_option_values *values, int row, const char *first, const char *second)
{
    char texts[ATT_OPTION_NUMBERS][ATT_OPTION_TEXT_BYTES];
    assert_int_equal(att_option_format(&rows[row], values, texts), !first ? 0 : second ? 2 : 1);
    if (first)
        assert_string_equal(texts[0], first);
    if (second)
        assert_string_equal(texts[1], second);
}

TEST(values_are_written_as_they_are_read)
{
    att_option_values values = att_options_none();
    formats(&values, SIDES, NULL, NULL);
    att_options_set_sides(&values, "sides", 8, 8);
    formats(&values, SIDES, "8", NULL);
    att_options_set_sides(&values, "sides", 8, 16);
    formats(&values, SIDES, "8", "16");
    att_options_set(&values, "ratio", 1.0 / 3);
    formats(&values, RATIO, "0.3333333333333333", NULL);
    att_options_set(&values, "norm", 0);
    formats(&values, NORM, "false", NULL);
    att_options_set_text(&values, "pool", "avg");
    formats(&values, POOL, "avg", NULL);
    att_options_unset(&values, "ratio");
    formats(&values, RATIO, NULL, NULL);
    assert_int_equal(values.count, 3);
}

CONTEXT_TEST(options_are_read_into_a_struct_and_written_back)
{
    settings made;
    att_option_values values = att_options_none(), back = att_options_none();
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_OK);
    assert_int_equal(made.sides[1], ATT_OPTION_UNSET);
    assert_int_equal(made.depth, ATT_OPTION_UNSET);
    assert_true(made.ratio == ATT_OPTION_UNSET);
    assert_string_equal(made.pool, "");
    att_options_write(&table, &made, &back);
    assert_int_equal(back.count, 0);
    att_options_set(&values, "sides", 8); /* one number sets both */
    att_options_set(&values, "depth", 0.5);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "depth must be in 1..9, not 0.5");
    att_options_set(&values, "depth", 5);
    att_options_set_text(&values, "pool", "max");
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "pool must be one of \"token\", \"avg\", not \"max\"");
    att_options_set(&values, "pool", 1);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "pool must be a text");
    att_options_set_text(&values, "pool", "avg");
    att_options_set_sides(&values, "depth", 5, 5);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "depth must be one number");
    att_options_set(&values, "depth", 5);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_OK);
    att_options_write(&table, &made, &back);
    assert_int_equal(made.sides[1], 8);
    for (int i = 0; i < ROWS; i++)
        assert_true(att_option_same(&rows[i], &values, &back));
}

TEST(values_are_compared_and_copied)
{
    att_option_values one = att_options_none(), other = att_options_none();
    assert_true(att_option_same(&rows[SIDES], &one, &other));
    att_options_set(&one, "sides", 8);
    assert_false(att_option_same(&rows[SIDES], &one, &other));
    att_options_set_sides(&other, "sides", 8, 8);
    assert_true(att_option_same(&rows[SIDES], &one, &other));
    att_options_set_sides(&other, "sides", 8, 16);
    assert_false(att_option_same(&rows[SIDES], &one, &other));
    att_options_set_sides(&other, "sides", 16, 8);
    assert_false(att_option_same(&rows[SIDES], &one, &other));
    att_option_copy("sides", &other, &one);
    assert_true(att_option_same(&rows[SIDES], &one, &other));
    att_options_unset(&other, "sides");
    att_option_copy("sides", &other, &one);
    assert_null(att_options_find(&one, "sides"));
}

/* Values that did not fit are refused when the options are read. */
CONTEXT_TEST(values_that_do_not_fit_are_refused)
{
    char text[2 * ATT_OPTION_TEXT_BYTES];
    settings made;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    att_option_values values = att_options_none();
    att_options_set_text(&values, "pool", text);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    values = att_options_none();
    att_options_set(&values, text, 1);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    values = att_options_none();
    att_options_set_text(&values, "other", text + ATT_OPTION_TEXT_BYTES); /* the longest allowed text */
    assert_int_equal(strlen(att_options_text(&values, "other")), ATT_OPTION_TEXT_BYTES - 1);
    assert_false(values.overflowed);
    att_options_set_text(&values, "other", text + ATT_OPTION_TEXT_BYTES - 1);
    assert_true(values.overflowed);
    values = att_options_none();
    att_options_set(&values, text + sizeof text - ATT_OPTION_KEY, 1);
    assert_false(values.overflowed);
    att_options_set(&values, text + sizeof text - ATT_OPTION_KEY - 1, 1);
    assert_true(values.overflowed);
    values = att_options_none();
    att_options_set(&values, NULL, 1);
    assert_true(values.overflowed && values.count == 0);
    values = att_options_none();
    att_options_set_text(&values, "word", NULL);
    assert_true(values.overflowed);
    values = att_options_none();
    att_options_set_text(&values, "word", "7");
    values.items[1] = values.items[0];
    values.count = 2;
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "the option word is given twice");
    values = att_options_none();
    att_options_set_text(&values, "word", "7777777");
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_OK);
    att_options_set_text(&values, "word", "88888888");
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
    assert_string_equal(att_context_message(context), "word is \"88888888\", which is longer than 7 bytes");
    values = att_options_none();
    for (int i = 0; i < ATT_MOST_OPTIONS; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        att_options_set(&values, key, i);
    }
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_OK);
    att_options_set(&values, "one_more", 1);
    assert_int_equal(att_options_read(context, &table, &values, &made), ATT_ERR_ARGUMENT);
}
