/* Properties of characters, decompositions, and the trie of strings. */
#include "data/text/unicode.h"

#include "base/io/scratch.h"
#include "data/text/trie.h"

static att_characters list_of(scratch *self, const char *text)
{
    att_characters list = {.context = self->context};
    assert_int_equal(att_characters_decode(&list, text, strlen(text)), strlen(text));
    return list;
}

/* Checks the codes, and that the characters come from these bytes; NULL: not checked. Frees the list. */
static void expect(att_characters *list, const uint32_t *codes, const uint32_t *begins, size_t count)
{
    assert_false(list->failed);
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list->items[i].code, codes[i]);
        if (begins)
            assert_int_equal(list->items[i].begin, begins[i]);
    }
    att_characters_free(list);
}

SCRATCH_TEST(decompositions)
{
    /* U+1E69 is s with dots below (class 220) and above (230); after it a cedilla (202), which comes first. */
    static const uint32_t sorted[] = {'s', 0x327, 0x323, 0x307, 'x'}, from[] = {0, 3, 0, 0, 5};
    att_characters text = list_of(self, "\xE1\xB9\xA9\xCC\xA7x"), made = {.context = self->context};
    att_characters_decompose(&text, &made, false);
    expect(&made, sorted, from, 5);
    att_characters_free(&text);

    static const uint32_t plain[] = {0xFB01, 0x1112, 0x1161, 0x11AB}, compatible[] = {'f', 'i', 0x1112, 0x1161, 0x11AB};
    for (int i = 0; i < 2; i++) { /* U+FB01 and U+D55C */
        text = list_of(self, "\xEF\xAC\x81\xED\x95\x9C");
        made = (att_characters){.context = self->context};
        att_characters_decompose(&text, &made, i == 1);
        expect(&made, i == 1 ? compatible : plain, NULL, i == 1 ? 5 : 4);
        att_characters_free(&text);
    }
}

/* Equal classes keep their order, in short and in long runs of marks. */
SCRATCH_TEST(sorting_marks_is_stable)
{
    static const uint32_t marks[] = {0x301, 0x327, 0x300, 0x323}; /* classes 230, 202, 230, 220 */
    for (size_t count = 1; count < 100; count++) {
        att_characters text = {.context = self->context}, made = {.context = self->context};
        for (size_t i = 0; i < count; i++)
            att_characters_add(&text, marks[i % 4], (att_character){0, (uint32_t)i, (uint32_t)i + 1});
        att_characters_decompose(&text, &made, false);
        assert_int_equal(made.count, count);
        for (size_t i = 0, last = 0; i < count; i++) {
            const uint32_t code = made.items[i].code, begin = made.items[i].begin;
            const size_t key = (code == 0x327 ? 0 : code == 0x323 ? 1000 : 2000) + begin;
            assert_int_equal(code, marks[begin % 4]);
            assert_true(i == 0 || key > last);
            last = key;
        }
        att_characters_free(&text);
        att_characters_free(&made);
    }
}

SCRATCH_TEST(lower_case)
{
    /* A, U+0130, U+0131, U+03A3, U+1E9E, U+10400 */
    static const uint32_t lower[] = {'a', 'i', 0x307, 0x131, 0x3C3, 0xDF, 0x10428}, from[] = {0, 1, 1, 3, 5, 7, 10};
    att_characters text = list_of(self, "A\xC4\xB0\xC4\xB1\xCE\xA3\xE1\xBA\x9E\xF0\x90\x90\x80"),
                   made = {.context = self->context};
    att_characters_lower(&text, &made);
    expect(&made, lower, from, 7);
    att_characters_free(&text);
}

SCRATCH_TEST(properties)
{
    static const struct {
        bool (*is)(uint32_t code);
        uint32_t yes[8], no[8]; /* 0 at the end */
    } cases[] = {
        {att_code_is_space, {'\t', '\r', ' ', 0x85, 0xA0, 0x2028, 0x3000}, {8, 0x1F, 'x', 0x200B, 0x180E, 0xFEFF}},
        {att_code_is_control, {1, 0x1F, 0x7F, 0x85, 0xAD, 0x200D, 0xE000}, {'\t', '\n', '\r', ' ', 0x2028, 0x1FB80}},
        {att_code_is_punctuation, {'!', '$', '^', '`', '~', 0xA1, 0x2014}, {'a', '0', 0x7F, ' ', 0xA2, 0xB4, 0x2191}},
        {att_code_is_nonspacing, {0x300, 0x5B9, 0x1D167}, {'a', 0x903, 0x20DD, 0x2B0}},
        {att_code_is_mark, {0x300, 0x903, 0x20DD}, {'a', 0x2B0, 0xA8}},
        {att_code_is_word, {'a', '0', '_', 0xE9, 0x903, 0x200D, 0x24B6}, {'-', ' ', 0xB2, 0x2014, 0x1F600, 0x200B}},
        {att_code_is_ideograph,
         {0x3400, 0x4E00, 0x9FFF, 0xFAFF, 0x2B81F, 0x2B920, 0x2FA1F},
         {0x33FF, 0x4DC0, 0xA000, 0x3042, 0x2B91F, 0x2CEB0, 0x2FA20}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (const uint32_t *code = cases[i].yes; *code; code++)
            if (!cases[i].is(*code))
                fail_msg("case %zu: U+%04X is not", i, (unsigned)*code);
        for (const uint32_t *code = cases[i].no; *code; code++)
            if (cases[i].is(*code))
                fail_msg("case %zu: U+%04X is", i, (unsigned)*code);
    }
}

SCRATCH_TEST(clusters)
{
    /* a and a mark; CR LF; two flags; a family of three; b */
    static const size_t ends[] = {2, 4, 6, 8, 13, 14};
    att_characters text = list_of(self,
                                  "a\xCC\x81\r\n\xF0\x9F\x87\xB9\xF0\x9F\x87\xB7\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA"
                                  "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
                                  "b");
    for (size_t i = 0, at = 0; i < sizeof ends / sizeof *ends; i++) {
        at = att_characters_cluster(&text, at);
        assert_int_equal(at, ends[i]);
    }
    att_characters_free(&text);
}

/* Every string of up to three of these bytes whose sum is divisible by 3 is in the trie, and no other. */
SCRATCH_TEST(a_trie_has_what_was_set)
{
    static const unsigned char bytes[] = {1, 'a', 0x80, 0xFF};
    enum { ALL = 4 + 16 + 64 };
    char strings[ALL][3];
    size_t lengths[ALL], count = 0, size = 0;
    att_trie trie;
    for (size_t length = 1, choices = 4; length <= 3; length++, choices *= 4)
        for (size_t n = 0; n < choices; n++, count++) {
            lengths[count] = length;
            for (size_t k = 0, rest = n; k < length; k++, rest /= 4)
                strings[count][k] = (char)bytes[rest % 4];
            size += length;
        }
    assert_int_equal(count, ALL);
    CHECK(self->context, att_trie_make(self->context, "a test", size, &trie));
    for (size_t i = 0; i < ALL; i += 3)
        att_trie_set(&trie, strings[i], lengths[i], (int32_t)i);
    for (size_t i = 0; i < ALL; i++) {
        const int32_t node = att_trie_find(&trie, strings[i], lengths[i]);
        assert_int_equal(node >= 0 ? trie.values[node] : ATT_TRIE_NONE, i % 3 == 0 ? (int32_t)i : ATT_TRIE_NONE);
    }
    att_trie_set(&trie, strings[0], lengths[0], 7);
    assert_int_equal(trie.values[att_trie_find(&trie, strings[0], lengths[0])], 7);
    att_trie_free(&trie);
    assert_fails(self->context, att_trie_make(self->context, "a test", ATT_TRIE_MOST_NODES, &trie), ATT_ERR_FORMAT,
                 "a test: the pieces have 16777216 bytes together, above the limit of 16777216");
}
