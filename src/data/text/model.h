/* text/model.h - the models of tokenizers, which divide words into pieces of a vocabulary. */
#ifndef ATT_TEXT_MODEL_H
#define ATT_TEXT_MODEL_H

#include <attscope/tokenizer.h>

#include "base/core/text.h"
#include "data/text/characters.h"
#include "data/text/members.h"
#include "data/text/trie.h"

enum { ATT_MOST_PIECES = 1 << 22 }; /* ids are below this number */

/* Pieces by id, and ids by piece. */
typedef struct att_vocabulary {
    int count;      /* ids are below it */
    size_t *places; /* [count], where the piece begins in `texts`; SIZE_MAX: there is no piece with this id */
    att_text texts; /* each ended by a zero byte */
    att_trie trie;
} att_vocabulary;

/* Makes room for `count` ids and pieces of `bytes` bytes together. The caller frees the vocabulary with
 * att_vocabulary_free(), also after a failure. Errors: ERR_FORMAT, ERR_MEMORY. */
att_status att_vocabulary_make(att_context *context, const char *what, int count, size_t bytes,
                               att_vocabulary *vocabulary);
void att_vocabulary_free(att_vocabulary *vocabulary);
/* Adds a piece; of two equal ones the later gets the text. The id must be free. */
void att_vocabulary_add(att_vocabulary *vocabulary, const char *piece, int id);
/* Adds a piece that no text is divided into: only its id has the text. */
void att_vocabulary_name(att_vocabulary *vocabulary, const char *piece, int id);
/* Returns the id of a piece; -1 if there is none. */
int att_vocabulary_find(const att_vocabulary *vocabulary, const char *piece);
/* Returns the piece with this id; NULL if there is none. */
const char *att_vocabulary_piece(const att_vocabulary *vocabulary, int id);

/* A list of tokens that grows, as att_characters does, and a buffer for models. */
typedef struct att_token_list {
    att_context *context;
    att_token *items;
    int count, capacity;
    bool failed;
    void *buffer;
    size_t buffer_size;
} att_token_list;
/* Adds a token for the characters [first, first + count), which are not none. */
void att_token_list_add(att_token_list *list, int id, const att_character *first, size_t count);
/* Returns a buffer of at least `size` bytes, valid until the next call; NULL, and sets `failed`, if memory is
 * exhausted.
 */
void *att_token_list_buffer(att_token_list *list, size_t size);
void att_token_list_free(att_token_list *list);

typedef struct att_text_model {
    const struct att_text_model_kind *kind;
    att_vocabulary vocabulary;
    int unknown;
    int32_t continued;  /* WordPiece: the node of the prefix of pieces that begin no word; -1: no piece has it */
    int most;           /* WordPiece: most characters of a word */
    double *scores;     /* Unigram: [vocabulary.count] */
    double least_score; /* Unigram: of an unknown character */
} att_text_model;

/* A model ends in a constant of this type; att_text_model_read() lists it. */
typedef struct att_text_model_kind {
    const char *type;
    const char *const keys[6]; /* of its settings, NULL at the end */
    /* Reads the settings and the vocabulary, which gets at least `least` ids. */
    att_status (*read)(const att_part *part, int least, att_text_model *model);
    /* Adds the tokens of a word of at least one character. */
    void (*encode)(const att_text_model *model, const att_character *word, size_t count, att_token_list *tokens);
} att_text_model_kind;
extern const att_text_model_kind att_wordpiece, att_unigram;

/* Reads the member "model". least: the vocabulary gets at least so many ids, of which added tokens take some. The
 * caller frees the model with att_text_model_free(), also after a failure. Errors: ERR_FORMAT, ERR_UNSUPPORTED,
 * ERR_MEMORY. */
att_status att_text_model_read(const att_part *part, int least, att_text_model *model);
void att_text_model_free(att_text_model *model);

#endif
