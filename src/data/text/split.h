/* text/split.h - the pre-tokeniser of a tokenizer: steps that divide a normalised text into words. */
#ifndef ATT_TEXT_SPLIT_H
#define ATT_TEXT_SPLIT_H

#include "data/text/characters.h"
#include "data/text/members.h"

enum { ATT_MOST_SPLITS = 8 };

typedef enum att_prepend { ATT_PREPEND_NEVER, ATT_PREPEND_FIRST, ATT_PREPEND_ALWAYS } att_prepend;

typedef struct att_split_step {
    const struct att_split_kind *kind;
    uint32_t replacement; /* of Metaspace */
    att_prepend prepend;
    bool divide;
} att_split_step;

typedef struct att_splitter {
    att_split_step steps[ATT_MOST_SPLITS];
    int count;
} att_splitter;

/* Reads the member "pre_tokenizer"; null: no steps, and the text is one word. Errors: ERR_FORMAT, ERR_UNSUPPORTED. */
att_status att_splitter_read(const att_part *part, att_splitter *splitter);

/* A text and its words, and room for those that a step makes. */
typedef struct att_divided {
    att_characters text, other_text;
    att_words words, other_words;
} att_divided;

/* Divides work->words, which cover work->text. If memory is exhausted, `failed` of one of the four lists is set. */
void att_splitter_apply(const att_splitter *splitter, att_divided *work);

#endif
