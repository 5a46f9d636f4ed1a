/* core/catalog.h - lists the descriptors of one kind, such as modules: first the built-in ones, then those that a
 * program registered with a context. */
#ifndef ATT_CORE_CATALOG_H
#define ATT_CORE_CATALOG_H

#include <attscope/context.h>

#include "base/core/text.h"

/* One constant per kind of descriptor. Its address identifies the kind. */
typedef struct att_catalog {
    const char *kind;                   /* for messages: "module" */
    const char *reserved;               /* a word that must not be a name, such as "none"; NULL: no word */
    const void *(*built_in)(int index); /* returns NULL past the last one */
    const char *(*name)(const void *descriptor);
} att_catalog;

enum { ATT_NAME_BYTES = 24 }; /* size of the longest name, including its NUL */

/* In these functions, a NULL context selects the built-in descriptors only. */

int att_catalog_count(const att_catalog *catalog, const att_context *context);
/* Returns NULL if `index` is outside 0..count-1. */
const void *att_catalog_at(const att_catalog *catalog, const att_context *context, int index);
/* Returns NULL if no descriptor has this name. */
const void *att_catalog_find(const att_catalog *catalog, const att_context *context, const char *name);
/* Returns the existing name that a mistyped `name` most likely stands for (att_text_nearest()), or NULL. */
const char *att_catalog_nearest(const att_catalog *catalog, const att_context *context, const char *name);
/* Appends all names as "a, b, c". */
void att_catalog_list(const att_catalog *catalog, const att_context *context, att_text *names);

/* Returns whether the text is a valid name: 1 to 23 letters, digits and underscores, starting with a letter. Returns
 * false for NULL. */
bool att_name_is_valid(const char *text);
/* Fails with ERR_ARGUMENT if a new descriptor cannot have this name: the name is invalid, reserved or in use. */
att_status att_catalog_check(const att_catalog *catalog, att_context *context, const char *name);
/* Adds a descriptor whose name has passed att_catalog_check(). Caller keeps ownership; the descriptor must outlive the
 * context. Error: ERR_MEMORY. */
att_status att_catalog_add(const att_catalog *catalog, att_context *context, const void *descriptor);

#endif
