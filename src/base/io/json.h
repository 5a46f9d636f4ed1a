/* io/json.h - reads JSON with jansson, under limits that make untrusted input safe. */
#ifndef ATT_IO_JSON_H
#define ATT_IO_JSON_H

#include <jansson.h>

#include <attscope/lab/json.h>

#include "base/core/export.h"

enum { ATT_JSON_MAX_DEPTH = 64, ATT_JSON_MAX_MEMORY = 1 << 29 };
/* Most bytes of config.json and other settings beside weights. transformers' names of ImageNet-22k's classes, from
 * numbers to names and back, take 1.7 MB. */
enum { ATT_JSON_SETTINGS_BYTES = 4 << 20 };

/* Parses one document: an object or an array. A byte order mark in front of it is ignored. If an object has a key
 * twice, the last value is used, as in Python.
 * Fails with ERR_FORMAT, with line and column, if the document is malformed, has integers beyond int64, has more than
 * ATT_JSON_MAX_DEPTH levels, is followed by other characters than white space, or would need more than
 * ATT_JSON_MAX_MEMORY bytes (checked before it is built). Other error: ERR_MEMORY.
 * what: the name of the source in messages. Caller frees *root with json_decref(). */
ATT_FOR_LAB att_status att_json_parse(att_context *context, const char *what, const char *bytes, size_t size,
                                      json_t **root);
/* Like att_json_parse(), but fails with ERR_FORMAT if an object has a key twice. */
att_status att_json_parse_unique(att_context *context, const char *what, const char *bytes, size_t size, json_t **root);

/* Like att_json_parse(), but reads integers as reals, so that they may be beyond int64. */
att_status att_json_parse_reals(att_context *context, const char *what, const char *bytes, size_t size, json_t **root);

/* An array of objects in a file. */
typedef struct att_json_array {
    const char *name; /* the member of the file's object that it is; NULL: it is the file */
    /* Called for each element, in order. what: "FILE: name[index]", for messages. */
    att_status (*element)(void *user, const char *what, const json_t *element, int64_t index);
    bool found; /* set by att_json_read_arrays() */
} att_json_array;
/* Reads the elements of arrays in a file, so that only one at a time is built in memory. Other members of the file's
 * object are skipped, and of them only brackets and quotes are checked. Errors: ERR_FORMAT, also if an array is there
 * twice or an element has more than 64 MiB; those of opening a file (io/file.h) and of element(). */
att_status att_json_read_arrays(att_context *context, const char *path, att_json_array *arrays, int count, void *user);

/* Iterates over the members of an object in its text, so that only one member at a time is built in memory. */
typedef struct att_json_members {
    att_context *context;
    const char *what; /* name of the source for messages; owned by the caller */
    char *text;       /* owned by the caller; strings are decoded in place */
    size_t size, at;
    bool begun;
} att_json_members;
typedef struct att_json_member {
    char *key;   /* UTF-8, NUL-terminated */
    char *value; /* `size` bytes of JSON, not checked and not NUL-terminated */
    size_t size;
} att_json_member;
/* Returns the number of members before the end of the object or the first syntax error. att_json_members_next() must
 * not have been called before. */
size_t att_json_members_count(att_json_members members);
/* Gets the next member. After the last one, sets key to NULL and checks that only white space follows the object. Key
 * and value point into the text. Keys may repeat. Errors: ERR_FORMAT, ERR_MEMORY. */
att_status att_json_members_next(att_json_members *members, att_json_member *member);
/* Decodes the member's value in place to a NUL-terminated string. Fails with ERR_FORMAT if the value is not a string.
 */
att_status att_json_member_string(const att_json_members *members, const att_json_member *member, char **string);

#endif
