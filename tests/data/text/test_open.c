/* Files of tokenizers: what is read from them, and what is refused. */
#include <attscope/tokenizer.h>

#include "base/io/base64.h"
#include "base/io/scratch.h"

/* The parts of a small tokenizer.json, of which tests replace one. */
#define VOCABULARY "\"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"[SEP]\": 2, \"a\": 3, \"##b\": 4, \"c\": 5}"
#define WORDPIECE "\"model\": {\"type\": \"WordPiece\", " VOCABULARY "}"
#define UNIGRAM                                                                                                   \
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -1], [\"ab\", -1.5], " \
    "[\"b\", -1]]}"
#define BERT "\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}"

static att_status open_text(scratch *self, const char *text, att_tokenizer **tokenizer)
{
    char path[512];
    scratch_text(self, "tokenizer.json", text);
    return att_tokenizer_open(self->context, scratch_path(self, "tokenizer.json", path), tokenizer);
}

/* Checks the pieces of a text, and frees the tokenizer. */
static void expect(scratch *self, att_tokenizer *tokenizer, const char *text, const char *second, const char *pieces)
{
    char found[512] = "";
    att_encoding encoding;
    const att_encode_text first = {text, strlen(text)}, pair = {second, second ? strlen(second) : 0};
    CHECK(self->context, att_tokenizer_encode(tokenizer, &first, second ? &pair : NULL, NULL, &encoding));
    for (int i = 0; i < encoding.count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s/%d", i > 0 ? " " : "",
                 att_tokenizer_piece(tokenizer, encoding.tokens[i].id), encoding.tokens[i].type);
    assert_string_equal(found, pieces);
    att_encoding_free(self->context, &encoding);
}

static void expect_pieces(scratch *self, const char *json, const char *text, const char *second, const char *pieces)
{
    att_tokenizer *tokenizer = NULL;
    CHECK(self->context, open_text(self, json, &tokenizer));
    expect(self, tokenizer, text, second, pieces);
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(components_that_a_file_lacks_do_nothing)
{
    expect_pieces(self, "{" WORDPIECE "}", "abb", NULL, "a/0 ##b/0 ##b/0");
    expect_pieces(self, "{" WORDPIECE "}", "a b", "a", "[UNK]/0 a/1");
    expect_pieces(self, "{" BERT ", " WORDPIECE "}",
                  "A\xCC\x81"
                  "b, c",
                  NULL, "a/0 ##b/0 [UNK]/0 c/0");
    expect_pieces(self, "{\"model\": {\"continuing_subword_prefix\": \"##\", " VOCABULARY "}}", "ab", NULL,
                  "a/0 ##b/0");
}

SCRATCH_TEST(unigram_takes_the_best_sum)
{
    expect_pieces(self, "{" UNIGRAM "}", "aab", NULL, "a/0 ab/0");
    expect_pieces(self, "{" UNIGRAM "}", "xyazb", NULL, "<unk>/0 a/0 <unk>/0 b/0");
    /* Of sums that differ by rounding only, tokenizers 0.23 takes this one. With the exact scores it would be the one
     * with the short piece in front. */
    expect_pieces(self,
                  "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"_\", "
                  "-2.445738919288008], [\"ababababababab\", -9.210257156715475], [\"abababababab\", "
                  "-8.84721786961035]]}}",
                  "_abababababababababababababababababababab", NULL,
                  "_/0 ababababababab/0 ababababababab/0 abababababab/0");
}

SCRATCH_TEST(metaspace_marks_words)
{
    static const struct {
        const char *scheme, *pieces;
    } cases[] = {{"\"prepend_scheme\": \"always\"", "_b/0 _b/0 [MASK]/0 _b/0"},
                 {"\"prepend_scheme\": \"first\"", "_b/0 _b/0 [MASK]/0 b/0"},
                 {"\"prepend_scheme\": \"never\"", "b/0 _b/0 [MASK]/0 b/0"},
                 {"\"add_prefix_space\": false", "b/0 _b/0 [MASK]/0 b/0"},
                 {"\"split\": false", "_b/0 _b/0 [MASK]/0 _b/0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1024];
        snprintf(
            json, sizeof json,
            "{\"added_tokens\": [{\"id\": 3, \"content\": \"[MASK]\", \"special\": true}], \"pre_tokenizer\": "
            "{\"type\": \"Metaspace\", \"replacement\": \"_\", %s}, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, "
            "\"vocab\": [[\"<unk>\", 0], [\"b\", -1], [\"_b\", -1]]}}",
            cases[i].scheme);
        expect_pieces(self, json, "b b[MASK]b", NULL, cases[i].pieces);
    }
}

SCRATCH_TEST(roberta_puts_two_separators_between_texts)
{
    static const char roberta[] =
        "\"post_processor\": {\"type\": \"RobertaProcessing\", \"sep\": [\"[SEP]\", 2], \"cls\": "
        "[\"[CLS]\", 1], \"trim_offsets\": true, \"add_prefix_space\": false}";
    char json[1024];
    snprintf(json, sizeof json, "{" BERT ", %s, " WORDPIECE "}", roberta);
    expect_pieces(self, json, "a", "c", "[CLS]/0 a/0 [SEP]/0 [SEP]/0 c/0 [SEP]/0");
    expect_pieces(self, json, "a", NULL, "[CLS]/0 a/0 [SEP]/0");
}

SCRATCH_TEST(long_words_are_unknown)
{
    expect_pieces(self, "{\"model\": {\"type\": \"WordPiece\", \"max_input_chars_per_word\": 3, " VOCABULARY "}}",
                  "abb", NULL, "a/0 ##b/0 ##b/0");
    expect_pieces(self, "{\"model\": {\"type\": \"WordPiece\", \"max_input_chars_per_word\": 3, " VOCABULARY "}}",
                  "abbb", NULL, "[UNK]/0");
}

/* Opens a tokenizer with the added token "new", id 6, and these settings of it; and "ne", id 7, and "new-", id 8. */
static void expect_added(scratch *self, const char *settings, const char *text, const char *pieces)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"added_tokens\": [{\"id\": 6, \"content\": \"new\", %s}, {\"id\": 7, \"content\": \"ne\"}, {\"id\": 8, "
             "\"content\": \"new-\", \"normalized\": false}], " BERT ", " WORDPIECE "}",
             settings);
    expect_pieces(self, json, text, NULL, pieces);
}

SCRATCH_TEST(added_tokens_are_found_in_the_text)
{
    expect_added(self, "\"normalized\": true", "aNewb new ne-", "a/0 new/0 [UNK]/0 new/0 ne/0 [UNK]/0");
    expect_added(self, "\"normalized\": false", "New new-new", "ne/0 [UNK]/0 new-/0 new/0");
    expect_added(self, "\"normalized\": false, \"single_word\": true", "anew new newa c",
                 "a/0 ne/0 [UNK]/0 new/0 ne/0 [UNK]/0 c/0");
    expect_added(self, "\"special\": true", "New new", "ne/0 [UNK]/0 new/0");
}

/* The bytes of tokens that take blanks include these. */
SCRATCH_TEST(added_tokens_take_blanks)
{
    static const struct {
        const char *settings;
        size_t begin, end;
    } cases[] = {{"\"lstrip\": true", 1, 6}, {"\"rstrip\": true", 3, 8}, {"\"single_word\": true", 3, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1024];
        att_tokenizer *tokenizer = NULL;
        att_encoding encoding;
        snprintf(json, sizeof json,
                 "{\"added_tokens\": [{\"id\": 6, \"content\": \"new\", %s}], " BERT ", " WORDPIECE "}",
                 cases[i].settings);
        CHECK(self->context, open_text(self, json, &tokenizer));
        CHECK(self->context,
              att_tokenizer_encode(tokenizer, &(att_encode_text){"a  new  c", 9}, NULL, NULL, &encoding));
        assert_int_equal(encoding.count, 3);
        assert_int_equal(encoding.tokens[1].id, 6);
        assert_int_equal(encoding.tokens[1].begin, cases[i].begin);
        assert_int_equal(encoding.tokens[1].end, cases[i].end);
        att_encoding_free(self->context, &encoding);
        att_tokenizer_destroy(&tokenizer);
    }
}

SCRATCH_TEST(truncation_is_a_limit)
{
    att_tokenizer *tokenizer = NULL;
    scratch_text(self, "tokenizer_config.json", "{\"model_max_length\": 512}");
    CHECK(self->context, open_text(self,
                                   "{\"truncation\": {\"max_length\": 128, \"strategy\": \"LongestFirst\", \"stride\": "
                                   "0, \"direction\": \"Right\"}, " WORDPIECE "}",
                                   &tokenizer));
    assert_int_equal(att_tokenizer_describe(tokenizer).limit, 128);
    att_tokenizer_destroy(&tokenizer);
    CHECK(self->context, open_text(self, "{" WORDPIECE "}", &tokenizer));
    assert_int_equal(att_tokenizer_describe(tokenizer).limit, 512);
    att_tokenizer_destroy(&tokenizer);
    scratch_text(self, "tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
    CHECK(self->context, open_text(self, "{" WORDPIECE "}", &tokenizer));
    assert_int_equal(att_tokenizer_describe(tokenizer).limit, 0);
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(a_setting_that_contradicts_the_tokenizer_is_refused)
{
    att_tokenizer *tokenizer = NULL;
    scratch_text(self, "tokenizer_config.json", "{\"do_lower_case\": false}");
    assert_fails(self->context, open_text(self, "{" BERT ", " WORDPIECE "}", &tokenizer), ATT_ERR_FORMAT,
                 "tokenizer_config.json: \"do_lower_case\" is false, but the \"lowercase\" of tokenizer.json is true; "
                 "make both the same");
    CHECK(self->context, open_text(self, "{" WORDPIECE "}", &tokenizer));
    att_tokenizer_destroy(&tokenizer);
    scratch_text(self, "tokenizer_config.json", "{\"do_lower_case\": true}");
    CHECK(self->context, open_text(self, "{" BERT ", " WORDPIECE "}", &tokenizer));
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(other_files_are_refused)
{
    static const struct {
        const char *json, *message;
        att_status status;
    } cases[] = {
        {"{", "tokenizer.json: not valid JSON", ATT_ERR_FORMAT},
        {"[]", "the file: expected an object in {}", ATT_ERR_FORMAT},
        {"{}", "model: the type \"\" is not supported; those that are: WordPiece, Unigram", ATT_ERR_UNSUPPORTED},
        {"{\"model\": {\"type\": \"BPE\"}}", "model: the type \"BPE\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"extra\": 1, " WORDPIECE "}", "the file: the setting \"extra\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"NFC\"}, " WORDPIECE "}",
         "normalizer: the type \"NFC\" is not supported; those that are: BertNormalizer, Replace, Strip, StripAccents, "
         "Lowercase, NFD, NFKD, Precompiled",
         ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFD\"}, {\"type\": "
         "\"Prepend\"}]}, " WORDPIECE "}",
         "normalizer[1]: the type \"Prepend\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"Sequence\"}, " WORDPIECE "}", "normalizer: \"normalizers\" must be an array",
         ATT_ERR_FORMAT},
        {"{\"normalizer\": [], " WORDPIECE "}", "normalizer: the type \"\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": 1}, " WORDPIECE "}",
         "normalizer: \"lowercase\" must be true or false", ATT_ERR_FORMAT},
        {"{\"normalizer\": {\"type\": \"BertNormalizer\", \"emoji\": 1}, " WORDPIECE "}",
         "normalizer: the setting \"emoji\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"x+\"}, \"content\": \"\"}, " WORDPIECE
         "}",
         "normalizer: the regular expression \"x+\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \"\"}, \"content\": \"\"}, " WORDPIECE "}",
         "normalizer: \"pattern\" must be an object with a \"String\" that is not empty, or a \"Regex\"",
         ATT_ERR_FORMAT},
        {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": "
         "\"$0\"}, " WORDPIECE "}",
         "normalizer: \"content\" is \"$0\"; groups of a regular expression are not supported", ATT_ERR_UNSUPPORTED},
        {"{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \"x\"}}, " WORDPIECE "}",
         "normalizer: \"content\" must be a text", ATT_ERR_FORMAT},
        {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"A\"}, " WORDPIECE "}",
         "normalizer: \"precompiled_charsmap\" is not base64", ATT_ERR_FORMAT},
        {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"\"}, " WORDPIECE "}",
         "normalizer: \"precompiled_charsmap\" is damaged: it has 0 bytes, of which 0 should be its trie",
         ATT_ERR_FORMAT},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, " WORDPIECE "}",
         "pre_tokenizer: the type \"ByteLevel\" is not supported; those that are: BertPreTokenizer, WhitespaceSplit, "
         "Metaspace",
         ATT_ERR_UNSUPPORTED},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"__\"}, " WORDPIECE "}",
         "pre_tokenizer: \"replacement\" is \"__\"; expected one character", ATT_ERR_FORMAT},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": "
         "\"last\"}, " WORDPIECE "}",
         "pre_tokenizer: \"prepend_scheme\" is \"last\"; expected always, first or never", ATT_ERR_UNSUPPORTED},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {}}}", "model: \"vocab\" has no pieces", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"WordPiece\"}}", "model: \"vocab\" must be an object in {}, from pieces to ids",
         ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}",
         "model: \"unk_token\" is \"[UNK]\", which \"vocab\" does not have", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0, \"b\": 0}}}",
         "model: \"vocab\" gives \"a\" and \"b\" the same id, 0", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": -1}}}",
         "\"a\" with an id that is not a whole number from 0 to 4194303", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 4194304}}}", "\"a\" with an id that is not",
         ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]]}}",
         "model: \"unk_id\" must be a whole number from 0 to 0", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"Unigram\", \"unk_id\": 1, \"vocab\": [[\"a\", 0]]}}", "\"unk_id\" must be",
         ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\", \"0\"]]}}",
         "model: \"vocab\", element 0: expected an array of a piece and its score", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": []}}",
         "model: \"vocab\" must be an array of 1 to 4194304 pieces", ATT_ERR_FORMAT},
        {"{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"byte_fallback\": true, \"vocab\": [[\"a\", 0]]}}",
         "model: \"byte_fallback\", pieces for single bytes, is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"post_processor\": {\"type\": \"ByteLevel\"}, " WORDPIECE "}",
         "post_processor: the type \"ByteLevel\" is not supported", ATT_ERR_UNSUPPORTED},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": [\"[CLS]\", "
         "1]}, " WORDPIECE "}",
         "post_processor: \"[SEP]\" has id 3, but the vocabulary has a there", ATT_ERR_FORMAT},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"x\", 9], \"cls\": [\"[CLS]\", 1]}, " WORDPIECE
         "}",
         "post_processor: \"x\" has id 9, but the vocabulary has no piece there", ATT_ERR_FORMAT},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"[CLS]\", 1]}, " WORDPIECE "}",
         "post_processor: \"sep\" must be an array of a piece and its id", ATT_ERR_FORMAT},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": "
         "\"B\"}}]}, " WORDPIECE "}",
         "post_processor: \"single\" must be a list that has the sequence A, and no sequence B, once",
         ATT_ERR_UNSUPPORTED},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": "
         "\"C\"}}]}, " WORDPIECE "}",
         "post_processor.single[0]: the sequence \"C\" is neither A nor B", ATT_ERR_FORMAT},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
         "\"[CLS]\"}}]}, " WORDPIECE "}",
         "post_processor.single[0]: \"special_tokens\" gives \"[CLS]\" no ids", ATT_ERR_FORMAT},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{}]}, " WORDPIECE "}",
         "post_processor.single[0]: expected \"SpecialToken\" or \"Sequence\"", ATT_ERR_FORMAT},
        {"{\"added_tokens\": {}, " WORDPIECE "}", "added_tokens: \"added_tokens\" must be an array", ATT_ERR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 4, \"content\": \"a\"}], " WORDPIECE "}",
         "added_tokens: \"a\" has id 4 as an added token, but id 3 in the vocabulary", ATT_ERR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 4, \"content\": \"new\"}], " WORDPIECE "}",
         "added_tokens: the added token \"new\" has id 4, which is that of \"##b\"", ATT_ERR_FORMAT},
        {"{\"added_tokens\": [{\"content\": \"new\"}], " WORDPIECE "}",
         "added_tokens[0]: \"id\" must be a whole number from 0 to 4194303", ATT_ERR_FORMAT},
        {"{\"added_tokens\": [{\"id\": 9, \"content\": \"\\u200b\"}], " BERT ", " WORDPIECE "}",
         "added_tokens: the added token 9 (\"???\") is empty after normalisation", ATT_ERR_FORMAT},
        {"{\"truncation\": {\"max_length\": 9, \"direction\": \"Left\"}, " WORDPIECE "}",
         "truncation: the direction \"Left\" is not supported; expected Right", ATT_ERR_UNSUPPORTED},
        {"{\"truncation\": {\"max_length\": 9, \"strategy\": \"OnlyFirst\"}, " WORDPIECE "}",
         "truncation: the strategy \"OnlyFirst\" is not supported; expected LongestFirst", ATT_ERR_UNSUPPORTED},
    };
    const size_t before = att_context_allocations(self->context).bytes_now;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_tokenizer *tokenizer = NULL;
        assert_fails(self->context, open_text(self, cases[i].json, &tokenizer), cases[i].status, cases[i].message);
        assert_null(tokenizer);
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
}

/* A trie that leads out of the table is found when a text takes that way. */
SCRATCH_TEST(a_damaged_charsmap_is_refused)
{
    static const unsigned char tables[][13] = {
        {4, 0, 0, 0, 0, 4, 0, 0, 'x', 0},               /* the root's children are beyond the table */
        {8, 0, 0, 0, 0, 0x80, 1, 0, 'a', 1, 0, 0, 'x'}, /* "a" is followed by a text beyond the table */
    };
    for (int i = 0; i < 2; i++) {
        char json[1024];
        att_tokenizer *tokenizer = NULL;
        att_encoding encoding;
        att_text text = {.context = self->context};
        att_base64_append(&text, tables[i], i == 0 ? 10 : 13);
        snprintf(json, sizeof json,
                 "{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"%s\"}, " WORDPIECE "}",
                 text.data);
        att_text_free(&text);
        CHECK(self->context, open_text(self, json, &tokenizer));
        assert_fails(self->context, att_tokenizer_encode(tokenizer, &(att_encode_text){"a", 1}, NULL, NULL, &encoding),
                     ATT_ERR_FORMAT,
                     "tokenizer.json: \"precompiled_charsmap\" is damaged: its trie leads out of the table for U+0061");
        att_tokenizer_destroy(&tokenizer);
    }
}

/* --- vocab.txt ---------------------------------------------------------------------------------------------------- */

#define LINES "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nB\n##b\n<s>\n</s>\n"

static att_status open_list(scratch *self, const char *lines, const char *config, const char *map,
                            att_tokenizer **tokenizer)
{
    char path[512];
    const char *const names[] = {"vocab.txt", "tokenizer_config.json", "special_tokens_map.json"}, *const texts[] = {
                                                                                                       lines, config,
                                                                                                       map};
    for (int i = 0; i < 3; i++) {
        remove(scratch_path(self, names[i], path));
        if (texts[i])
            scratch_text(self, names[i], texts[i]);
    }
    return att_tokenizer_open(self->context, self->folder, tokenizer);
}

static void expect_list(scratch *self, const char *config, const char *map, const char *second, const char *pieces)
{
    att_tokenizer *tokenizer = NULL;
    CHECK(self->context, open_list(self, LINES, config, map, &tokenizer));
    expect(self, tokenizer, "B ab[PAD]", second, pieces);
    att_tokenizer_destroy(&tokenizer);
}

SCRATCH_TEST(settings_beside_vocab_txt)
{
    expect_list(self, NULL, NULL, NULL, "[CLS]/0 [UNK]/0 a/0 ##b/0 [PAD]/0 [SEP]/0");
    expect_list(self, "{\"do_lower_case\": false}", NULL, "a", "[CLS]/0 B/0 a/0 ##b/0 [PAD]/0 [SEP]/0 a/1 [SEP]/1");
    expect_list(self, "{\"cls_token\": \"<s>\"}", "{\"sep_token\": {\"content\": \"</s>\"}}", NULL,
                "<s>/0 [UNK]/0 a/0 ##b/0 [PAD]/0 </s>/0");
    expect_list(self, "{\"tokenizer_class\": \"MPNetTokenizer\"}", NULL, "a",
                "<s>/0 [UNK]/0 a/0 ##b/0 [UNK]/0 [UNK]/0 [UNK]/0 </s>/0 </s>/0 a/0 </s>/0");
    expect_list(self,
                "{\"tokenizer_class\": \"BertTokenizerFast\", \"added_tokens_decoder\": {\"9\": {\"content\": \"b[\", "
                "\"special\": false, \"normalized\": true}}}",
                NULL, NULL, "[CLS]/0 [UNK]/0 a/0 ##b/0 [PAD]/0 [SEP]/0");
    expect_list(self, "{\"added_tokens_decoder\": {\"9\": {\"content\": \"ab\", \"lstrip\": true}}}", NULL, NULL,
                "[CLS]/0 [UNK]/0 ab/0 [PAD]/0 [SEP]/0");
}

SCRATCH_TEST(other_settings_beside_vocab_txt_are_refused)
{
    static const struct {
        const char *lines, *config, *map, *message;
        att_status status;
    } cases[] = {
        {"a\n", NULL, NULL, "vocab.txt: no line is \"[UNK]\", the \"unk_token\"", ATT_ERR_FORMAT},
        {"[UNK]\n[CLS]\n", NULL, NULL, "vocab.txt: no line is \"[SEP]\", the \"sep_token\"", ATT_ERR_FORMAT},
        {"", NULL, NULL, "vocab.txt", ATT_ERR_FORMAT},
        {"[UNK]\n\xFF\n", NULL, NULL, "vocab.txt: line 2 is not UTF-8", ATT_ERR_FORMAT},
        {LINES, "[]", NULL, "tokenizer_config.json: expected an object in {}", ATT_ERR_FORMAT},
        {LINES, "{", NULL, "tokenizer_config.json: not valid JSON", ATT_ERR_FORMAT},
        {LINES, "{\"cls_token\": \"a\"}", "{\"cls_token\": \"B\"}",
         "\"cls_token\" is \"a\" in tokenizer_config.json, but \"B\" in special_tokens_map.json; remove one",
         ATT_ERR_FORMAT},
        {LINES, "{\"tokenizer_class\": \"BertJapaneseTokenizer\"}", NULL,
         "tokenizer_config.json names the class \"BertJapaneseTokenizer\", whose vocab.txt is not supported",
         ATT_ERR_UNSUPPORTED},
        {LINES, "{\"do_basic_tokenize\": false}", NULL, "\"do_basic_tokenize\": false in tokenizer_config.json",
         ATT_ERR_UNSUPPORTED},
        {LINES, "{\"never_split\": [\"a\"]}", NULL, "\"never_split\" of tokenizer_config.json", ATT_ERR_UNSUPPORTED},
        {LINES, "{\"do_lower_case\": \"yes\"}", NULL, "normalizer: \"lowercase\" must be true or false",
         ATT_ERR_FORMAT},
        {LINES, "{\"added_tokens_decoder\": {\"x\": {\"content\": \"a\"}}}", NULL,
         "\"added_tokens_decoder\" has \"x\", which is not an id with a token", ATT_ERR_FORMAT},
    };
    const size_t before = att_context_allocations(self->context).bytes_now;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_tokenizer *tokenizer = NULL;
        assert_fails(self->context, open_list(self, cases[i].lines, cases[i].config, cases[i].map, &tokenizer),
                     cases[i].status, cases[i].message);
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
}

SCRATCH_TEST(folders_without_a_tokenizer_are_refused)
{
    char path[512];
    att_tokenizer *tokenizer = NULL;
    assert_fails(self->context, att_tokenizer_open(self->context, self->folder, &tokenizer), ATT_ERR_NOT_FOUND,
                 "has neither tokenizer.json nor vocab.txt");
    scratch_text(self, "spiece.model", "x");
    assert_fails(self->context, att_tokenizer_open(self->context, self->folder, &tokenizer), ATT_ERR_UNSUPPORTED,
                 "spiece.model is not read; make tokenizer.json by transformers: AutoTokenizer.from_pretrained(");
    assert_fails(self->context, att_tokenizer_open(self->context, scratch_path(self, "spiece.model", path), &tokenizer),
                 ATT_ERR_UNSUPPORTED, "expected a tokenizer.json, a vocab.txt, or a folder with one of them");
    assert_fails(self->context, att_tokenizer_open(self->context, "/nowhere/vocab.txt", &tokenizer), ATT_ERR_NOT_FOUND,
                 "/nowhere/vocab.txt");
    assert_fails(self->context, att_tokenizer_open(self->context, NULL, &tokenizer), ATT_ERR_ARGUMENT, "NULL");
}
