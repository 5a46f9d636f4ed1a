/* text/normalize.h - the normaliser of a tokenizer: steps that change the characters of a text. */
#ifndef ATT_TEXT_NORMALIZE_H
#define ATT_TEXT_NORMALIZE_H

#include "data/text/characters.h"
#include "data/text/members.h"

enum { ATT_MOST_STEPS = 32 };

typedef struct att_normal_step {
    const struct att_normal_kind *kind;
    bool clean, ideographs, accents, lower; /* of BertNormalizer */
    bool left, right;                       /* of Strip */
    att_characters pattern, content;        /* of Replace */
    const struct att_charsmap *charsmap;    /* of Precompiled */
} att_normal_step;

typedef struct att_normalizer {
    att_normal_step steps[ATT_MOST_STEPS];
    int count;
} att_normalizer;

/* Reads the member "normalizer"; null: no steps. The caller frees it with att_normalizer_free(), also after a failure.
 * Errors: ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_normalizer_read(const att_part *part, att_normalizer *normalizer);
void att_normalizer_free(att_normalizer *normalizer);
/* Whether a BertNormalizer makes texts lower case: 1 or 0; -1: there is none. */
int att_normalizer_lowers(const att_normalizer *normalizer);
/* Applies all steps to *text. other: a buffer, which may take the place of *text. Errors: ERR_FORMAT (a damaged
 * "precompiled_charsmap"). If memory is exhausted, text->failed is set. */
att_status att_normalizer_apply(const att_normalizer *normalizer, att_characters *text, att_characters *other);

#endif
