/* text/added.h - added tokens: pieces that are found in the text itself, before it is divided into words. */
#ifndef ATT_TEXT_ADDED_H
#define ATT_TEXT_ADDED_H

#include "data/text/characters.h"
#include "data/text/model.h"
#include "data/text/normalize.h"

typedef struct att_added_token {
    const char *text;
    int id;
    bool single;      /* not beside another letter or digit */
    bool left, right; /* takes the blanks on this side, too */
    bool normalized;  /* is looked for in the normalised text, and in normalised form */
    bool special;
} att_added_token;

typedef struct att_added {
    att_added_token *tokens; /* in the arena */
    int count;
    int ids;                  /* above all their ids */
    att_trie raw, normalized; /* from texts to indices of `tokens` */
} att_added;

/* Reads the member "added_tokens" of the file, a list. The caller frees *added with att_added_free(), also after a
 * failure. Errors: ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_added_read(const att_part *file, att_added *added);
/* Gives the tokens' ids their texts in the vocabulary, and prepares the search. Errors: ERR_FORMAT (an id contradicts
 * the vocabulary; a text that the normaliser removes), ERR_MEMORY. */
att_status att_added_place(const att_part *file, att_added *added, att_vocabulary *vocabulary,
                           const att_normalizer *normalizer);
void att_added_free(att_added *added);

/* Where a search is. Begin with zeros. */
typedef struct att_added_search {
    size_t at;    /* of the next match */
    size_t taken; /* the end of the last match, with its blanks */
} att_added_search;
/* Finds the next token in the text: the leftmost, of these the longest. trie: added->raw or ->normalized. Sets [*first,
 * *end) to its characters. Returns NULL after the last. */
const att_added_token *att_added_next(const att_added *added, const att_trie *trie, const att_characters *text,
                                      att_added_search *search, size_t *first, size_t *end);

#endif
