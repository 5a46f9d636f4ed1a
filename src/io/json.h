/* io/json.h - JSON from outside, read by jansson under our limits. */
#ifndef ATT_IO_JSON_H
#define ATT_IO_JSON_H

#include <jansson.h>

#include <attscope/lab/json.h>

#include "core/export.h"

enum { ATT_JSON_MAX_DEPTH = 64, ATT_JSON_MAX_MEMORY = 1 << 29 };

/* Reads one document: integers within int64, at most ATT_JSON_MAX_DEPTH levels, nothing after it but space; a byte
 * order mark before it is passed over. Of a key that an object has twice the last value counts, as in Python. A
 * document whose values would need more memory than ATT_JSON_MAX_MEMORY bytes is refused before it is built. what: the
 * source's name in messages, which also give line and column. *root is the caller's, freed by json_decref(). Errors:
 * ERR_FORMAT, ERR_MEMORY. */
ATT_FOR_LAB att_status att_json_parse(att_context *context, const char *what, const char *bytes, size_t size,
                                      json_t **root);
/* The same with ERR_FORMAT for a key that an object has twice. */
att_status att_json_parse_unique(att_context *context, const char *what, const char *bytes, size_t size, json_t **root);

/* The members of an object, taken one after another from its text, so that no more than one of them is built in memory.
 */
typedef struct att_json_members {
    att_context *context;
    const char *what; /* for messages; the caller's */
    char *text;       /* the caller's; changed */
    size_t size, at;
    bool begun;
} att_json_members;
typedef struct att_json_member {
    char *key;   /* UTF-8, NUL-terminated */
    char *value; /* JSON text, `size` bytes, that may still be malformed; not terminated */
    size_t size;
} att_json_member;
/* The number of members before the end or the first byte that cannot be part of one; for `members` that have not begun.
 */
size_t att_json_members_count(att_json_members members);
/* The next member; key NULL: there is none, and nothing but space follows. Keys and values point into the text and stay
 * valid as long as it does. Keys may repeat. Errors: ERR_FORMAT, ERR_MEMORY. */
att_status att_json_members_next(att_json_members *members, att_json_member *member);
/* The member's value where it is a string, decoded in place, NUL-terminated; ERR_FORMAT where it is something else. */
att_status att_json_member_string(const att_json_members *members, const att_json_member *member, char **string);

/* Bytes of the well-formed UTF-8 character at the start of `text` (NUL-terminated), 0 where it is malformed. */
size_t att_utf8_length(const char *text);
bool att_utf8_valid(const char *text);

#endif
