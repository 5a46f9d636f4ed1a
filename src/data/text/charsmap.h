/* text/charsmap.h - the "precompiled_charsmap" of SentencePiece: a table of texts and what takes their place. */
#ifndef ATT_TEXT_CHARSMAP_H
#define ATT_TEXT_CHARSMAP_H

#include "data/text/characters.h"
#include "data/text/members.h"

typedef struct att_charsmap att_charsmap;

/* Reads the member "precompiled_charsmap": base64 of the size of a trie in bytes (4 bytes, least significant first),
 * the trie, and the texts, each ended by a zero byte. The arena owns *charsmap. Errors: ERR_FORMAT, ERR_MEMORY. */
att_status att_charsmap_read(const att_part *part, const att_charsmap **charsmap);
/* Replaces each grapheme cluster of fewer than 6 bytes that a text of the table begins, and of the others each
 * character, by what the table says for the shortest such text, as `tokenizers` does. Reads `from`, adds to `to`.
 * Errors: ERR_FORMAT (the trie leads out of the table). */
att_status att_charsmap_apply(const att_charsmap *charsmap, const att_characters *from, att_characters *to);

#endif
