#include "base/core/text.h"
#include "base/io/json.h"

#include <float.h>
#include <locale.h>

#include "base/io/scratch.h"

static void refuse(scratch *self, const char *text, const char *reason)
{
    json_t *root = NULL;
    assert_int_equal(att_json_parse(self->context, "source", text, strlen(text), &root), ATT_ERR_FORMAT);
    assert_null(root);
    assert_message_has(self, "source");
    assert_message_has(self, reason);
}

SCRATCH_TEST(objects_arrays_and_escapes_are_parsed)
{
    const char text[] = "{\"a\": [1, -9223372036854775808, 9223372036854775807], \"b\\u00e4\": \"\\\"]]]\"}  \n";
    json_t *root;
    assert_int_equal(att_json_parse(self->context, "source", text, sizeof(text) - 1, &root), ATT_OK);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(root, "a"), 1)), INT64_MIN);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(root, "a"), 2)), INT64_MAX);
    assert_string_equal(json_string_value(json_object_get(root, "bä")), "\"]]]");
    json_decref(root);
}

/* As in Python's json, the last value of a key counts, unless unique keys are requested. */
SCRATCH_TEST(the_last_of_repeated_keys_counts_unless_keys_must_be_unique)
{
    const char text[] = "{\"a\": 1, \"b\": 2, \"a\": 3}";
    json_t *root = NULL;
    assert_fails(self->context, att_json_parse_unique(self->context, "source", text, sizeof(text) - 1, &root),
                 ATT_ERR_FORMAT, "duplicate");
    assert_int_equal(att_json_parse(self->context, "source", text, sizeof(text) - 1, &root), ATT_OK);
    assert_int_equal(json_object_size(root), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "a")), 3);
    json_decref(root);
}

/* Returns `count` copies of the entry, which ends in a comma, between brackets, with a blank in place of the last
 * comma. The caller frees the text. */
static char *repeat(char opening, const char *entry, int count, char closing)
{
    size_t length = strlen(entry);
    char *text = malloc((size_t)count * length + 3), *at = text;
    assert_non_null(text);
    *at++ = opening;
    for (int i = 0; i < count; i++, at += length)
        memcpy(at, entry, length);
    at[-1] = ' ';
    at[0] = closing;
    at[1] = '\0';
    return text;
}

/* Short texts with many values. */
SCRATCH_TEST(large_integers_are_reals_if_asked_for)
{
    static const char text[] = "{\"limit\": 1000000000000000019884624838656, \"one\": 1}";
    json_t *root = NULL;
    assert_fails(self->context, att_json_parse(self->context, "source", text, sizeof(text) - 1, &root), ATT_ERR_FORMAT,
                 "too big integer");
    CHECK(self->context, att_json_parse_reals(self->context, "source", text, sizeof(text) - 1, &root));
    assert_true(json_number_value(json_object_get(root, "limit")) == 1000000000000000019884624838656.0);
    assert_true(json_is_real(json_object_get(root, "one")));
    json_decref(root);
}

SCRATCH_TEST(a_text_of_too_many_values_is_refused)
{
    static const char reason[] = "JSON that would need more than the limit of 536870912 bytes of memory";
    char *text = repeat('[', "{},", 3000000, ']');
    refuse(self, text, reason);
    free(text);
    /* The parser counts 256 bytes for the object, 128 for each key, 64 for each comma, and the text itself: 6 bytes for
     * each member and 2 brackets. The last member has no comma. */
    const int most = ((1 << 29) - 256 - 2 + 64) / (64 + 128 + 6);
    json_t *root = NULL;
    text = repeat('{', "\"a\":1,", most, '}');
    assert_int_equal(att_json_parse(self->context, "source", text, strlen(text), &root), ATT_OK);
    json_decref(root);
    free(text);
    text = repeat('{', "\"a\":1,", most + 1, '}');
    refuse(self, text, reason);
    free(text);
}

SCRATCH_TEST(invalid_json_is_refused)
{
    refuse(self, "", "not valid JSON: it is empty");
    refuse(self, " \n", "not valid JSON: it is empty");
    refuse(self, "null", "not valid JSON: expected an object in {} or an array in []");
    refuse(self, "\"a\"", "expected an object in {}");
    refuse(self, "{\"a\": 1,\n \"a\": x}", "line 2, column");
    refuse(self, "{\"a\": 1} x", "end of file");
    refuse(self, "{\"a\": 9223372036854775808}", "big");
    refuse(self, "{\"a\": NaN}", "at column");
    refuse(self, "{\"a\": \"\xFF\"}", "decode");
    refuse(self, "{\"a\\u0000\": 1}", "NUL");
    char deep[2 * ATT_JSON_MAX_DEPTH + 4];
    memset(deep, '[', ATT_JSON_MAX_DEPTH);
    memset(deep + ATT_JSON_MAX_DEPTH, ']', ATT_JSON_MAX_DEPTH);
    json_t *root;
    assert_int_equal(att_json_parse(self->context, "source", deep, 2 * ATT_JSON_MAX_DEPTH, &root), ATT_OK);
    json_decref(root);
    memset(deep, '[', ATT_JSON_MAX_DEPTH + 1);
    deep[ATT_JSON_MAX_DEPTH + 1] = '\0';
    refuse(self, deep, "nested");
}

SCRATCH_TEST(written_json_is_escaped_and_valid)
{
    att_json_writer *writer;
    assert_int_equal(att_json_writer_create(self->context, false, &writer), ATT_OK);
    att_json_begin_object(writer);
    att_json_key(writer, "te\"xt");
    att_json_string(writer, "a\\b\n\t\x01\x7F/\xC2\x9B\xE2\x80\xAE\xF3\xA0\x80\x81\xC3\xA4\xF0\x9F\x98\x80");
    att_json_key(writer, "broken");
    att_json_string(writer, "\xFFx\xC3 \xED\xA0\x80 \xC0\x80");
    att_json_key(writer, "none");
    att_json_string(writer, NULL);
    att_json_key(writer, "list");
    att_json_begin_array(writer);
    att_json_integer(writer, INT64_MIN);
    att_json_bool(writer, true);
    att_json_bool(writer, false);
    att_json_number(writer, NAN);
    att_json_number(writer, -INFINITY);
    att_json_float(writer, -1);
    att_json_float(writer, 0.5);
    att_json_float(writer, 1e-12);
    att_json_float(writer, NAN);
    att_json_begin_object(writer);
    att_json_end_object(writer);
    att_json_begin_array(writer);
    att_json_end_array(writer);
    att_json_end_array(writer);
    att_json_end_object(writer);
    const char *text = NULL;
    size_t length;
    assert_int_equal(att_json_writer_finish(writer, &text, &length), ATT_OK);
#define LOST "\xEF\xBF\xBD"
    assert_string_equal(text,
                        "{\"te\\\"xt\":\"a\\\\b\\n\\t\\u0001\\u007f/"
                        "\\u009b\\u202e\\udb40\\udc01\xC3\xA4\xF0\x9F\x98\x80\",\"broken\":\"" LOST "x" LOST
                        " " LOST LOST LOST " " LOST LOST
                        "\",\"none\":null,\"list\":["
                        "-9223372036854775808,true,false,null,null,-1.0,0.5,1e-12,null,{},[]]}");
    assert_int_equal(length, strlen(text));
    json_t *root;
    assert_int_equal(att_json_parse(self->context, "own", text, length, &root), ATT_OK);
    json_decref(root);
    att_json_writer_destroy(&writer);
    assert_null(writer);
}

SCRATCH_TEST(an_indented_document_has_one_value_per_line)
{
    att_json_writer *writer;
    assert_int_equal(att_json_writer_create(self->context, true, &writer), ATT_OK);
    att_json_begin_object(writer);
    att_json_key(writer, "a");
    att_json_begin_array(writer);
    att_json_integer(writer, 1);
    att_json_integer(writer, 2);
    att_json_end_array(writer);
    att_json_key(writer, "b");
    att_json_begin_object(writer);
    att_json_end_object(writer);
    att_json_end_object(writer);
    const char *text = NULL;
    size_t length;
    assert_int_equal(att_json_writer_finish(writer, &text, &length), ATT_OK);
    assert_string_equal(text, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
    att_json_writer_destroy(&writer);
}

SCRATCH_TEST(numbers_are_written_short_and_exact)
{
    char text[ATT_NUMBER_TEXT];
    assert_string_equal(att_format_number(0.1, text), "0.1");
    assert_string_equal(att_format_number(3, text), "3");
    assert_string_equal(att_format_number(-0.0, text), "-0");
    assert_string_equal(att_format_number(1e300, text), "1e+300");
    assert_string_equal(att_format_number(0.1 + 0.2, text), "0.30000000000000004");
    assert_string_equal(att_format_number(NAN, text), "nan");
    assert_string_equal(att_format_number(-INFINITY, text), "-inf");
    const double hard[] = {DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -DBL_MAX, 1.0 / 3, 123456789012345678.0};
    for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++)
        assert_true(strtod(att_format_number(hard[i], text), NULL) == hard[i]);
}

SCRATCH_TEST(the_locale_does_not_change_the_decimal_point)
{
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL) {
        print_message("skipped: this machine has no locale de_DE.UTF-8\n");
        skip();
    }
    char text[ATT_NUMBER_TEXT];
    assert_string_equal(att_format_number(-1.5e-300, text), "-1.5e-300");
    assert_string_equal(att_format_number(0.30000000000000004, text), "0.30000000000000004");
    setlocale(LC_NUMERIC, "C");
}

static void misuse(scratch *self, att_json_writer *writer)
{
    const char *text;
    size_t length;
    assert_fails(self->context, att_json_writer_finish(writer, &text, &length), ATT_ERR_ARGUMENT, "one document");
}

SCRATCH_TEST(only_one_complete_document_can_be_finished)
{
    att_json_writer *writer;
    assert_int_equal(att_json_writer_create(self->context, false, &writer), ATT_OK);
    misuse(self, writer);
    att_json_begin_object(writer);
    misuse(self, writer);
    att_json_begin_object(writer);
    att_json_integer(writer, 1);
    att_json_end_object(writer);
    misuse(self, writer);
    att_json_begin_array(writer);
    att_json_key(writer, "a");
    att_json_end_array(writer);
    misuse(self, writer);
    att_json_begin_array(writer);
    att_json_end_object(writer);
    misuse(self, writer);
    att_json_begin_object(writer);
    att_json_key(writer, "a");
    att_json_end_object(writer);
    misuse(self, writer);
    att_json_integer(writer, 1);
    att_json_integer(writer, 2);
    misuse(self, writer);
    for (int i = 0; i < 33; i++)
        att_json_begin_array(writer);
    for (int i = 0; i < 33; i++)
        att_json_end_array(writer);
    misuse(self, writer);
    for (int i = 0; i < 32; i++)
        att_json_begin_array(writer);
    for (int i = 0; i < 32; i++)
        att_json_end_array(writer);
    const char *text = NULL;
    size_t length;
    assert_int_equal(att_json_writer_finish(writer, &text, &length), ATT_OK);
    assert_int_equal(length, 64);
    misuse(self, writer);
    att_json_writer_destroy(&writer);
}

static att_status write_some(scratch *self)
{
    att_json_writer *writer;
    att_status status = att_json_writer_create(self->context, false, &writer);
    if (status != ATT_OK)
        return status;
    att_json_begin_array(writer);
    for (int i = 0; i < 1000; i++)
        att_json_integer(writer, i);
    att_json_end_array(writer);
    const char *text;
    size_t length;
    status = att_json_writer_finish(writer, &text, &length);
    att_json_writer_destroy(&writer);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, write_some);
}

SCRATCH_TEST(only_valid_utf8_is_accepted)
{
    assert_true(att_utf8_valid("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80"));
    const char *const broken[] = {"\x80",         "\xC1\xBF",         "\xC3",     "\xE0\x9F\xBF", "\xE2\x82",
                                  "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90", "\xF5\x80\x80", "\xE2\x82x"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        assert_false(att_utf8_valid(broken[i]));
}
