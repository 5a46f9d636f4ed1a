/* io/json.h - JSON from outside, read by jansson under our limits. */
#ifndef ATT_IO_JSON_H
#define ATT_IO_JSON_H

#include <jansson.h>

#include <attscope/json.h>

enum { ATT_JSON_MAX_DEPTH = 64, ATT_NUMBER_TEXT = 32 };

/* Reads one document: unique keys, integers within int64, at most ATT_JSON_MAX_DEPTH levels, nothing after it but
 * space. what: the source's name in messages, which also give line and column. *root is the caller's, freed by
 * json_decref(). Errors: ERR_FORMAT, ERR_MEMORY. */
att_status att_json_parse(att_context *context, const char *what, const char *bytes, size_t size, json_t **root);

/* The shortest digits that read back as the same number ("nan", "inf", "-inf" for those), with a point whatever the
 * locale; returns `text`. */
char *att_format_number(double value, char text[static ATT_NUMBER_TEXT]);

/* Bytes of the well-formed UTF-8 character at the start of `text` (NUL-terminated), 0 where it is malformed. */
size_t att_utf8_length(const char *text);
bool att_utf8_valid(const char *text);

#endif
