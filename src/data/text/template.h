/* text/template.h - the post-processor of a tokenizer: where special tokens are put around one text or two. */
#ifndef ATT_TEXT_TEMPLATE_H
#define ATT_TEXT_TEMPLATE_H

#include "data/text/members.h"
#include "data/text/model.h"

/* A part of the result: the tokens of a text, or a special token. */
typedef struct att_template_item {
    int text; /* 0 or 1; -1: the special token `id` */
    int id;
    int type;
} att_template_item;

enum { ATT_MOST_ITEMS = 16 };
typedef struct att_template {
    att_template_item items[ATT_MOST_ITEMS];
    int count;
    int special; /* number of special tokens */
} att_template;

/* Reads the member "post_processor" into the templates of one text and of two; null: no special tokens. Errors:
 * ERR_FORMAT, ERR_UNSUPPORTED. */
att_status att_templates_read(const att_part *part, const att_vocabulary *vocabulary, att_template templates[2]);

#endif
