/* Tokens of texts: those of `tokenizers`, pairs, lengths, and texts that are refused. */
#include <attscope/tokenizer.h>

#include "base/io/json.h"
#include "base/io/scratch.h"
#include "golden_path.h"

enum { PAIRS = 40 };
static const char *const names[] = {"uncased", "cased", "unigram", "xlnet"};

/* --- goldens of tools/goldens/texts.py ---------------------------------------------------------------------------- */

static const char *golden(const char *name, const char *ending, char path[512])
{
    char file[64];
    snprintf(file, sizeof file, "texts/%s.%s", name, ending);
    golden_path(file, path, 512);
    return path;
}

static json_t *read_json(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root)
        fail_msg("%s: %s", path, error.text);
    return root;
}

static att_encode_text text_of(const char *text)
{
    return (att_encode_text){text, strlen(text)};
}

/* Checks that the tokens are those of the line, "id:type:begin:end ...". */
static void assert_tokens(const att_encoding *encoding, const char *line, const char *text)
{
    char found[8192] = "";
    size_t length = 0;
    for (int i = 0; i < encoding->count && length < sizeof found; i++) {
        const att_token *t = &encoding->tokens[i];
        length += (size_t)snprintf(found + length, sizeof found - length, "%s%d:%d:%zu:%zu", i > 0 ? " " : "", t->id,
                                   t->type, t->begin, t->end);
    }
    if (strncmp(found, line, length) != 0 || line[length] != '\n')
        fail_msg("\"%s\" has the tokens\n%s\nexpected\n%s", text, found, line);
}

static void expect_line(scratch *self, const att_tokenizer *tokenizer, FILE *rows, const char *text, const char *second,
                        int most)
{
    char row[8192];
    att_encoding encoding;
    const att_encode_text first = text_of(text), pair = second ? text_of(second) : first;
    const att_encode_options options = {.max_length = most};
    CHECK(self->context, att_tokenizer_encode(tokenizer, &first, second ? &pair : NULL, &options, &encoding));
    assert_non_null(fgets(row, sizeof row, rows));
    assert_tokens(&encoding, row, text);
    att_encoding_free(self->context, &encoding);
}

/* Compares all texts with the rows of the golden `name`. */
static void compare(scratch *self, const att_tokenizer *tokenizer, const char *name)
{
    char path[512];
    golden_path("texts/lines.json", path, sizeof path);
    json_t *lines = read_json(path);
    FILE *rows = fopen(golden(name, "txt", path), "r");
    assert_non_null(rows);
    assert_int_equal(json_array_size(lines), 160);
    for (size_t i = 0; i < json_array_size(lines); i++)
        expect_line(self, tokenizer, rows, json_string_value(json_array_get(lines, i)), NULL, 0);
    for (size_t i = 0; i < PAIRS; i++)
        expect_line(self, tokenizer, rows, json_string_value(json_array_get(lines, i)),
                    json_string_value(json_array_get(lines, i + 1)), 8 + (int)i % 20);
    assert_int_equal(fgetc(rows), EOF);
    fclose(rows);
    json_decref(lines);
}

static att_tokenizer *open_golden(scratch *self, const char *name)
{
    char path[512];
    att_tokenizer *tokenizer = NULL;
    CHECK(self->context, att_tokenizer_open(self->context, golden(name, "json", path), &tokenizer));
    return tokenizer;
}

SCRATCH_TEST(tokens_are_those_of_tokenizers)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        att_tokenizer *tokenizer = open_golden(self, names[i]);
        compare(self, tokenizer, names[i]);
        att_tokenizer_destroy(&tokenizer);
    }
}

/* Writes the pieces of a tokenizer as vocab.txt. */
static void write_vocabulary(scratch *self, const att_tokenizer *tokenizer, const char *line_end)
{
    char path[512];
    FILE *file = fopen(scratch_path(self, "vocab.txt", path), "w");
    assert_non_null(file);
    for (int i = 0; i < att_tokenizer_describe(tokenizer).count; i++)
        fprintf(file, "%s%s", att_tokenizer_piece(tokenizer, i), line_end);
    assert_int_equal(fclose(file), 0);
}

SCRATCH_TEST(vocab_txt_gives_the_same_tokens)
{
    const char *const ends[] = {"\n", "\r\n"};
    for (int i = 0; i < 2; i++) {
        att_tokenizer *tokenizer = open_golden(self, "uncased"), *list = NULL;
        write_vocabulary(self, tokenizer, ends[i]);
        CHECK(self->context, att_tokenizer_open(self->context, self->folder, &list));
        compare(self, list, "uncased");
        att_tokenizer_destroy(&list);
        att_tokenizer_destroy(&tokenizer);
    }
}

/* --- descriptions ------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_tokenizer_describes_itself)
{
    att_tokenizer *tokenizer = open_golden(self, "cased");
    const att_tokenizer_info info = att_tokenizer_describe(tokenizer);
    assert_string_equal(info.model, "WordPiece");
    assert_int_equal(info.unknown, 1);
    assert_int_equal(info.limit, 0);
    assert_int_equal(info.special[0], 2);
    assert_int_equal(info.special[1], 3);
    for (int i = 0; i < info.count; i++)
        assert_int_equal(att_tokenizer_find(tokenizer, att_tokenizer_piece(tokenizer, i)), i);
    assert_string_equal(att_tokenizer_piece(tokenizer, 2), "[CLS]");
    assert_string_equal(att_tokenizer_piece(tokenizer, info.count - 1), "<mask>");
    assert_null(att_tokenizer_piece(tokenizer, info.count));
    assert_null(att_tokenizer_piece(tokenizer, -1));
    assert_int_equal(att_tokenizer_find(tokenizer, "no piece"), -1);
    att_tokenizer_destroy(&tokenizer);
    assert_null(tokenizer);
    att_tokenizer_destroy(&tokenizer);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void expect_pieces(scratch *self, const att_tokenizer *tokenizer, const att_encode_text *text,
                          const att_encode_options *options, const char *pieces)
{
    char found[1024] = "";
    att_encoding encoding;
    CHECK(self->context, att_tokenizer_encode(tokenizer, text, NULL, options, &encoding));
    for (int i = 0; i < encoding.count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i > 0 ? " " : "",
                 att_tokenizer_piece(tokenizer, encoding.tokens[i].id));
    assert_string_equal(found, pieces);
    att_encoding_free(self->context, &encoding);
}

static void expect_same(scratch *self, const att_tokenizer *tokenizer, const char *given,
                        const att_encode_options *options, const char *same)
{
    att_encoding a, b;
    CHECK(self->context, att_tokenizer_encode(tokenizer, &(att_encode_text){given, strlen(given)}, NULL, options, &a));
    CHECK(self->context, att_tokenizer_encode(tokenizer, &(att_encode_text){same, strlen(same)}, NULL, NULL, &b));
    assert_int_equal(a.count, b.count);
    for (int i = 0; i < a.count; i++)
        assert_int_equal(a.tokens[i].id, b.tokens[i].id);
    att_encoding_free(self->context, &a);
    att_encoding_free(self->context, &b);
}

SCRATCH_TEST(texts_can_become_lower_case_first)
{
    att_tokenizer *tokenizer = open_golden(self, "cased");
    const att_encode_options lower = {.lower = true};
    expect_same(self, tokenizer, "The NOT of \xC3\x84 and \xC4\xB0", &lower, "the not of \xC3\xA4 and i\xCC\x87");
    expect_same(self, tokenizer, "[MASK]", &lower, "[mask]");
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(zero_bytes_and_empty_texts)
{
    att_tokenizer *tokenizer = open_golden(self, "uncased");
    const att_encode_options plain = {.plain = true};
    expect_pieces(self, tokenizer, &(att_encode_text){"not\0 a\0ll\0", 10}, &plain, "n ##o ##t a ##l ##l");
    expect_pieces(self, tokenizer, &(att_encode_text){NULL, 0}, NULL, "[CLS] [SEP]");
    expect_pieces(self, tokenizer, &(att_encode_text){NULL, 0}, &plain, "");
    expect_pieces(self, tokenizer, &(att_encode_text){"\xE2\x80\x8B", 3}, NULL, "[CLS] [SEP]");
    att_tokenizer_destroy(&tokenizer);
    tokenizer = open_golden(self, "unigram");
    expect_pieces(self, tokenizer, &(att_encode_text){"a\0b", 3}, &plain,
                  "\xE2\x96\x81"
                  "a <unk> b");
    expect_pieces(self, tokenizer, &(att_encode_text){"", 0}, NULL, "[CLS] [SEP]");
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(text_that_is_not_utf8_is_refused)
{
    static const struct {
        const char *text;
        size_t length;
        const char *message;
    } cases[] = {
        {"abc\xFF", 4, "the text is not UTF-8 at byte 3 (0xFF)"},
        {"\xC3", 1, "at byte 0 (0xC3)"},
        {"a\xED\xA0\x80", 4, "at byte 1 (0xED)"},
        {"a\xF0\x9F\x98", 4, "at byte 1 (0xF0)"},
        {"\xF0\x9F\x98\x80\x80", 5, "at byte 4 (0x80)"},
        {"\xE2\x96\x81z", 3, NULL},
        {"\xF4\x90\x80\x80", 4, "at byte 0 (0xF4)"},
    };
    att_tokenizer *tokenizer = open_golden(self, "cased");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* In memory of its own, so that sanitizers see a byte too many. */
        char *copy = malloc(cases[i].length);
        att_encoding encoding = {.count = 77};
        memcpy(copy, cases[i].text, cases[i].length);
        const att_encode_text text = {copy, cases[i].length};
        const att_status status = att_tokenizer_encode(tokenizer, &text, NULL, NULL, &encoding);
        if (cases[i].message) {
            assert_fails(self->context, status, ATT_ERR_FORMAT, cases[i].message);
            assert_int_equal(encoding.count, 77);
        } else {
            CHECK(self->context, status);
            att_encoding_free(self->context, &encoding);
        }
        free(copy);
    }
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(lengths)
{
    att_tokenizer *tokenizer = open_golden(self, "uncased");
    const att_encode_text text = text_of("all all all all"), one = text_of("all");
    att_encoding encoding;
    CHECK(self->context, att_tokenizer_encode(tokenizer, &text, &one, NULL, &encoding));
    const int all = encoding.count;
    assert_int_equal(all, 3 + 5 * 3);
    att_encoding_free(self->context, &encoding);
    for (int most = 3; most < all; most++) {
        att_encode_options options = {.max_length = most};
        CHECK(self->context, att_tokenizer_encode(tokenizer, &text, &one, &options, &encoding));
        assert_int_equal(encoding.count + encoding.removed, all);
        assert_int_equal(encoding.count, most);
        att_encoding_free(self->context, &encoding);
    }
    att_encode_options none = {.max_length = 2, .name = "texts.txt: line 3"};
    assert_fails(self->context, att_tokenizer_encode(tokenizer, &text, &one, &none, &encoding), ATT_ERR_ARGUMENT,
                 "texts.txt: line 3: a length of at most 2 tokens has no room for the 3 special tokens");
    none.max_length = -1;
    assert_fails(self->context, att_tokenizer_encode(tokenizer, &text, &one, &none, &encoding), ATT_ERR_ARGUMENT,
                 "at most -1");
    const att_encode_text large = {"", ((size_t)64 << 20) + 1};
    assert_fails(self->context, att_tokenizer_encode(tokenizer, &large, NULL, NULL, &encoding), ATT_ERR_ARGUMENT,
                 "the text has 67108865 bytes, above the limit of 67108864");
    att_tokenizer_destroy(&tokenizer);
}

/* Many marks in a wrong order are sorted in linear time, as few are. */
SCRATCH_TEST(many_marks_are_sorted)
{
    enum { MARKS = 50000 };
    static char text[2 * MARKS + 1];
    att_tokenizer *tokenizer = open_golden(self, "unigram");
    text[0] = 'a';
    for (int i = 0; i < MARKS; i++)
        memcpy(text + 1 + 2 * i, i % 2 ? "\xCC\x81" : "\xCC\xA7", 2); /* U+0301 and U+0327 */
    const att_encode_options plain = {.plain = true};
    expect_pieces(self, tokenizer, &(att_encode_text){text, sizeof text}, &plain,
                  "\xE2\x96\x81"
                  "a");
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(every_allocation_may_fail)
{
    char path[512];
    const att_encode_text text = text_of("All we ne\xCC\xA7\xCC\x81 ed [MASK] is new_word \xE4\xBD\xA0\xE5\xA5\xBD.");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        att_tokenizer *tokenizer = NULL;
        lack of = lack_of_memory(self->context, &self->memory);
        golden(names[i], "json", path);
        while (lack_again(&of)) {
            of.status = att_tokenizer_open(self->context, path, &tokenizer);
            if (of.status == ATT_OK)
                att_tokenizer_destroy(&tokenizer);
        }
        tokenizer = open_golden(self, names[i]);
        of = lack_of_memory(self->context, &self->memory);
        while (lack_again(&of)) {
            att_encoding encoding;
            of.status = att_tokenizer_encode(tokenizer, &text, &text, NULL, &encoding);
            if (of.status == ATT_OK)
                att_encoding_free(self->context, &encoding);
        }
        att_tokenizer_destroy(&tokenizer);
    }
}

/* --- files of texts ----------------------------------------------------------------------------------------------- */

SCRATCH_TEST(a_file_has_a_text_in_each_line)
{
    static const char *const expected[] = {"one", "", " two ", "\xE4\xBD\xA0", "", " "};
    att_text_file file;
    scratch_text(self, "file", "\xEF\xBB\xBFone\r\n\n two \n\xE4\xBD\xA0\n\r\n \n");
    CHECK(self->context, att_text_file_read(self->context, self->path, &file));
    assert_int_equal(file.count, 6);
    for (int i = 0; i < file.count; i++) {
        assert_string_equal(file.texts[i].bytes, expected[i]);
        assert_int_equal(file.texts[i].length, strlen(expected[i]));
    }
    att_text_file_free(self->context, &file);
    scratch_text(self, "file", "one\ntw\xE4\xBD\n");
    assert_fails(self->context, att_text_file_read(self->context, self->path, &file), ATT_ERR_FORMAT,
                 "line 2 is not UTF-8 at byte 2 (0xE4)");
    scratch_write(self, "one\0\n", 5);
    assert_fails(self->context, att_text_file_read(self->context, self->path, &file), ATT_ERR_FORMAT, "zero byte");
    assert_fails(self->context, att_text_file_read(self->context, "/nowhere", &file), ATT_ERR_NOT_FOUND, "/nowhere");
    scratch_text(self, "file", "\n\n");
    CHECK(self->context, att_text_file_read(self->context, self->path, &file));
    assert_int_equal(file.count, 2);
    att_text_file_free(self->context, &file);
    scratch_text(self, "file", "");
    assert_fails(self->context, att_text_file_read(self->context, self->path, &file), ATT_ERR_ARGUMENT,
                 "there are no texts");
}
