#include "data/text/unicode.h"

#include <string.h>

#include <utf8proc.h>

/* --- properties --------------------------------------------------------------------------------------------------- */

static utf8proc_category_t category_of(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

bool att_code_is_space(uint32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= '\t' && code <= '\r');
    utf8proc_category_t category = category_of(code);
    return code == 0x85 || (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
}

bool att_code_is_control(uint32_t code)
{
    if (code < 0x80)
        return (code < ' ' && code != '\t' && code != '\n' && code != '\r') || code == 0x7F;
    utf8proc_category_t category = category_of(code);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

static bool is_letter_or_digit(uint32_t ascii)
{
    return (ascii >= '0' && ascii <= '9') || (ascii >= 'A' && ascii <= 'Z') || (ascii >= 'a' && ascii <= 'z');
}

bool att_code_is_punctuation(uint32_t code)
{
    if (code < 0x80)
        return code > ' ' && code < 0x7F && !is_letter_or_digit(code);
    utf8proc_category_t category = category_of(code);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool att_code_is_nonspacing(uint32_t code)
{
    return code >= 0x80 && category_of(code) == UTF8PROC_CATEGORY_MN;
}

bool att_code_is_mark(uint32_t code)
{
    if (code < 0x80)
        return false;
    utf8proc_category_t category = category_of(code);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool att_code_is_word(uint32_t code)
{
    if (code < 0x80)
        return is_letter_or_digit(code) || code == '_';
    utf8proc_category_t category = category_of(code);
    bool joiner = code == 0x200C || code == 0x200D;
    bool circled = (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
                   (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189); /* Other_Alphabetic */
    return joiner || circled || category == UTF8PROC_CATEGORY_PC ||
           (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL);
}

int att_code_columns(uint32_t code)
{
    return utf8proc_charwidth((utf8proc_int32_t)code);
}

bool att_code_is_ideograph(uint32_t code)
{
    static const uint32_t blocks[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
                                         {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && code >= blocks[i][0]; i++)
        if (code <= blocks[i][1])
            return true;
    return false;
}

/* --- lower case --------------------------------------------------------------------------------------------------- */

void att_characters_lower(const att_characters *from, att_characters *to)
{
    enum { I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };
    for (size_t i = 0; i < from->count; i++) {
        const att_character c = from->items[i];
        if (c.code < 0x80)
            att_characters_add(to, c.code >= 'A' && c.code <= 'Z' ? c.code + 'a' - 'A' : c.code, c);
        else if (c.code == I_WITH_DOT)
            att_characters_add(to, 'i', c);
        else
            att_characters_add(to, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c.code), c);
        if (c.code == I_WITH_DOT)
            att_characters_add(to, DOT_ABOVE, c);
    }
}

/* --- decomposition ------------------------------------------------------------------------------------------------ */

static int class_of(uint32_t code)
{
    return code < 0x300 ? 0 : utf8proc_get_property((utf8proc_int32_t)code)->combining_class; /* U+0300: the first */
}

static void sort_few(att_character *marks, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const att_character mark = marks[i];
        size_t at = i;
        for (; at > 0 && class_of(marks[at - 1].code) > class_of(mark.code); at--)
            marks[at] = marks[at - 1];
        marks[at] = mark;
    }
}

/* Sorts in linear time. scratch: room for `count` characters. */
static void sort_many(att_character *marks, size_t count, att_character *scratch)
{
    size_t places[256 + 1] = {0};
    for (size_t i = 0; i < count; i++)
        places[class_of(marks[i].code) + 1]++;
    for (size_t c = 1; c < 256; c++)
        places[c] += places[c - 1];
    for (size_t i = 0; i < count; i++)
        scratch[places[class_of(marks[i].code)]++] = marks[i];
    memcpy(marks, scratch, count * sizeof *marks);
}

/* Puts neighbouring characters whose combining class is not 0 in the order of their classes (Unicode Standard, 3.11).
 * Equal ones keep their order. */
static void sort_marks(att_characters *text, att_characters *scratch)
{
    enum { FEW = 16 };
    for (size_t i = 0, end; i < text->count; i = end + 1) {
        for (end = i; end < text->count && class_of(text->items[end].code) != 0; end++)
            ;
        if (end - i <= FEW) {
            sort_few(text->items + i, end - i);
            continue;
        }
        scratch->count = 0;
        if (att_characters_reserve(scratch, end - i))
            sort_many(text->items + i, end - i, scratch->items);
        text->failed = text->failed || scratch->failed;
    }
}

void att_characters_decompose(att_characters *from, att_characters *to, bool compatibility)
{
    enum { LONGEST = 32 }; /* Unicode's longest decomposition has 18 characters */
    const utf8proc_option_t options = UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
    utf8proc_int32_t codes[LONGEST];
    bool sorted = true;
    for (size_t i = 0; i < from->count; i++) {
        const att_character c = from->items[i];
        if (c.code < 0x80) {
            att_characters_add(to, c.code, c);
            continue;
        }
        utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)c.code, codes, LONGEST, options, NULL);
        for (utf8proc_ssize_t k = 0; k < count && k < LONGEST; k++) {
            att_characters_add(to, (uint32_t)codes[k], c);
            sorted = sorted && class_of((uint32_t)codes[k]) == 0;
        }
    }
    if (!sorted)
        sort_marks(to, from);
}

/* --- grapheme clusters -------------------------------------------------------------------------------------------- */

size_t att_characters_cluster(const att_characters *text, size_t first)
{
    utf8proc_int32_t state = 0;
    for (size_t i = first + 1; i < text->count; i++) {
        const uint32_t a = text->items[i - 1].code, b = text->items[i].code;
        if ((a < 0x80 && b < 0x80 && b != '\n') ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)a, (utf8proc_int32_t)b, &state))
            return i;
    }
    return text->count;
}
