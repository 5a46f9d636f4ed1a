/* text/members.h - reads members of the objects in a tokenizer's file. */
#ifndef ATT_TEXT_MEMBERS_H
#define ATT_TEXT_MEMBERS_H

#include "base/core/memory.h"
#include "base/io/json.h"

/* An object in the file, and its name for messages. */
typedef struct att_part {
    att_context *context;
    att_arena *arena;     /* for what lives as long as the tokenizer */
    const char *path;     /* of the file */
    const char *name;     /* "normalizer" */
    const json_t *object; /* NULL: the file has none, or null */
} att_part;

/* Fails: "FILE: NAME: ...", with ERR_FORMAT or ERR_UNSUPPORTED. */
#define att_part_fail(part, status, format, ...) \
    att_fail((part)->context, (status), "%s: %s: " format, (part)->path, (part)->name, __VA_ARGS__)

/* Fails with ERR_FORMAT unless it is an object, and with ERR_UNSUPPORTED if it has a member that `keys` (NULL at the
 * end) lacks. "type" is always known. */
att_status att_part_check(const att_part *part, const char *const *keys);
/* Reads a switch. A missing member, or null, is `otherwise`. */
att_status att_part_flag(const att_part *part, const char *key, bool otherwise, bool *flag);
/* Reads a whole number from low to high. A missing member, or null, is `otherwise`; if that is below `low`, the member
 * must be there. */
att_status att_part_number(const att_part *part, const char *key, int low, int high, int otherwise, int *number);
/* Reads a text, which lives as long as the JSON. A missing member, or null, is `otherwise`; if that is NULL, the member
 * must be there. */
att_status att_part_text(const att_part *part, const char *key, const char *otherwise, const char **text);
/* Fails with ERR_UNSUPPORTED: the type of the object is none of `kinds`, structs that begin with a name. */
att_status att_part_unknown(const att_part *part, const void *kinds, size_t size, size_t count);
/* Reads a part that is one step or, as a "Sequence", an array `list` of parts, also of several levels: add() is called
 * for each step with its index among `kinds`, structs that begin with the name of a type. */
typedef struct att_part_steps {
    const char *list;
    const void *kinds;
    size_t size, count;
    att_status (*add)(const att_part *part, size_t kind, void *user);
    void *user;
} att_part_steps;
att_status att_part_each_step(const att_part *part, const att_part_steps *steps);
/* The member `key` as a part with this name. */
att_part att_part_member(const att_part *part, const char *key, const char *name);
/* The member "type"; "" if there is none. */
const char *att_part_type(const att_part *part);

#endif
