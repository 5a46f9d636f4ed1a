/* experiments/texts.h - texts as rows of token numbers. */
#ifndef ATT_EXPERIMENTS_TEXTS_H
#define ATT_EXPERIMENTS_TEXTS_H

#include <stdint.h>

#include "base/core/memory.h"

typedef struct att_texts_table {
    int count, tokens; /* texts, and the most tokens of a text */
    int32_t *ids;      /* [count, tokens]; 0 after a text's last token */
    int *lengths;      /* [count], each from 1 to `tokens` */
    int vocabulary;    /* numbers are in [0, vocabulary) */
} att_texts_table;

/* Reads at most `count` texts from a file: one for each line that has a token, cut after `tokens` tokens. Tokens are
 * words, which consist of ASCII letters, digits and bytes outside ASCII, and single other visible characters; letters
 * A-Z count as small ones. All different tokens have a number. Allocates in the arena. Errors: those of
 * att_file_read(); ERR_FORMAT (the file is not UTF-8, holds a byte 0, or has no token); ERR_MEMORY. */
att_status att_texts_read(att_arena *arena, const char *path, int count, int tokens, att_texts_table *texts);

/* The same with the tokens of a tokenizer (att_tokenizer_open()), special ones included; the lines that are left out
 * are those without any token beside these. Only tokens that occur have a number. Errors: those of
 * att_text_file_read(), att_tokenizer_open() and att_tokenizer_encode(); ERR_FORMAT (no line has a token); ERR_MEMORY.
 */
att_status att_texts_tokenize(att_arena *arena, const char *path, const char *tokenizer, int count, int tokens,
                              att_texts_table *texts);

/* Makes `count` texts of 20 to `tokens` tokens (uniform). The tokens are drawn independently from Zipf's law: number r
 * of ATT_TEXTS_WORDS with a probability proportional to 1 / (r + 1). */
enum { ATT_TEXTS_WORDS = 5000 };
att_status att_texts_make(att_arena *arena, uint64_t seed, int count, int tokens, att_texts_table *texts);

#endif
