/* serve/query.h - the query of a request's target, "name=value&name=value", in the encoding of URLs. */
#ifndef ATT_SERVE_QUERY_H
#define ATT_SERVE_QUERY_H

#include "base/core/text.h"

typedef enum att_query_found {
    ATT_QUERY_ABSENT,
    ATT_QUERY_FOUND,
    ATT_QUERY_REPEATED,
    ATT_QUERY_MALFORMED
} att_query_found;

/* Decodes the value of the parameter `name`: "%41" stands for a byte, '+' for a space. MALFORMED: a '%' without two
 * hexadecimal digits, an encoded NUL, or a value of `size` bytes or more. text: only written if FOUND. */
att_query_found att_query_find(const char *query, const char *name, char *text, size_t size);

/* Decodes the value of the next parameter `name`, from *at on, which begins as the query, and moves *at behind it. */
att_query_found att_query_find_next(const char **at, const char *name, char *text, size_t size);

/* Appends the query, still encoded, without the parameters of this name. */
void att_query_without(const char *query, const char *name, att_text *out);

#endif
