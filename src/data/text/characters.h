/* text/characters.h - texts as lists of characters, each with its place in the original text. */
#ifndef ATT_TEXT_CHARACTERS_H
#define ATT_TEXT_CHARACTERS_H

#include "base/core/memory.h"

/* A character of a text that is being normalised, and the bytes [begin, end) of the original text that it comes from.
 */
typedef struct att_character {
    uint32_t code;
    uint32_t begin, end;
} att_character;

/* A list that grows. Zero-initialise, then set `context`. If an allocation fails, `failed` is set and later additions
 * do nothing, so it is enough to check `failed` once at the end. */
typedef struct att_characters {
    att_context *context;
    att_character *items;
    size_t count, capacity;
    bool failed;
} att_characters;

/* Makes room for `more` characters. Returns false if memory is exhausted. */
bool att_characters_reserve(att_characters *list, size_t more);
void att_characters_free(att_characters *list);

/* Adds a character with this code, at the place of `of`, which may not be an item of the list. */
static inline void att_characters_add(att_characters *list, uint32_t code, att_character of)
{
    if (list->count < list->capacity || att_characters_reserve(list, 1))
        list->items[list->count++] = (att_character){code, of.begin, of.end};
}
/* Adds `count` characters. */
void att_characters_append(att_characters *list, const att_character *items, size_t count);
/* Adds the characters of a text. Returns the offset of the first byte that is not UTF-8, or `length`. length: below
 * 2^32. */
size_t att_characters_decode(att_characters *list, const char *bytes, size_t length);

enum { ATT_CODE_BYTES = 4 };
/* Writes a character as UTF-8. Returns the number of its bytes. */
size_t att_code_encode(uint32_t code, char bytes[static ATT_CODE_BYTES]);

/* Words of a text: parts [first, first + count) of its list of characters. */
typedef struct att_word {
    size_t first, count;
} att_word;
/* A list that grows, as above. */
typedef struct att_words {
    att_context *context;
    att_word *items;
    size_t count, capacity;
    bool failed;
} att_words;
/* Adds the word [first, end), unless it is empty. */
void att_words_add(att_words *list, size_t first, size_t end);
void att_words_free(att_words *list);

#endif
