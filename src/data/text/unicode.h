/* text/unicode.h - properties of characters, as utf8proc knows them. All functions are thread-safe. */
#ifndef ATT_TEXT_UNICODE_H
#define ATT_TEXT_UNICODE_H

#include "data/text/characters.h"

/* The property White_Space. */
bool att_code_is_space(uint32_t code);
/* The categories Cc, Cf and Co (controls, formats and private use), without tabs and line ends. */
bool att_code_is_control(uint32_t code);
/* The categories P*, and all of ASCII that is neither a letter, a digit, a control nor a blank. */
bool att_code_is_punctuation(uint32_t code);
/* A nonspacing mark (Mn), and a mark of any kind (Mn, Mc, Me). */
bool att_code_is_nonspacing(uint32_t code);
bool att_code_is_mark(uint32_t code);
/* Part of a word, as \w in regular expressions: letters, marks, decimal digits, connectors and joiners. */
bool att_code_is_word(uint32_t code);
/* An ideograph of the blocks that BERT surrounds by blanks. */
bool att_code_is_ideograph(uint32_t code);

/* How many columns the character takes in a font of fixed width: 0 for marks, 2 for ideographs and most emoji. */
int att_code_columns(uint32_t code);

/* Replaces each character by its lower case, which is two characters for U+0130 only. Reads `from`, adds to `to`. */
void att_characters_lower(const att_characters *from, att_characters *to);
/* Decomposes each character, canonically (NFD) or also by compatibility (NFKD), and sorts marks. Reads `from`, adds to
 * `to`, which is empty; `from` serves as a buffer and is changed. */
void att_characters_decompose(att_characters *from, att_characters *to, bool compatibility);
/* Returns the end of the grapheme cluster that begins at `first`. */
size_t att_characters_cluster(const att_characters *text, size_t first);

#endif
