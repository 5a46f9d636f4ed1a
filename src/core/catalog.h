/* core/catalog.h - the descriptors of one kind, such as modules: the built-in ones, then those that a program
 * registered with a context. */
#ifndef ATT_CORE_CATALOG_H
#define ATT_CORE_CATALOG_H

#include <attscope/context.h>

#include "core/text.h"

/* One constant for each kind. Its address tells the kinds apart. */
typedef struct att_catalog {
    const char *kind;                   /* "module", for messages */
    const char *reserved;               /* a word that users write in place of a name, "none"; NULL: there is none */
    const void *(*built_in)(int index); /* NULL past the last */
    const char *(*name)(const void *descriptor);
} att_catalog;

enum { ATT_NAME_BYTES = 24 }; /* of the longest name, with its NUL */

/* context NULL: the built-in ones alone. */
int att_catalog_count(const att_catalog *catalog, const att_context *context);
/* NULL outside of 0..count-1. */
const void *att_catalog_at(const att_catalog *catalog, const att_context *context, int index);
/* NULL where there is none of that name. */
const void *att_catalog_find(const att_catalog *catalog, const att_context *context, const char *name);
/* The name that `name` was probably meant to be; NULL: none is near. */
const char *att_catalog_nearest(const att_catalog *catalog, const att_context *context, const char *name);
/* Appends all names, "a, b, c". */
void att_catalog_list(const att_catalog *catalog, const att_context *context, att_text *names);

/* Whether the text can be a name: 1 to 23 letters, digits and underscores, the first a letter. NULL cannot. */
bool att_name_is_valid(const char *text);
/* ERR_ARGUMENT where a new descriptor cannot have this name: it is no name, it is reserved, or one has it already. */
att_status att_catalog_check(const att_catalog *catalog, att_context *context, const char *name);
/* Adds a descriptor whose name was checked. It stays the caller's and must outlive the context. ERR_MEMORY. */
att_status att_catalog_add(const att_catalog *catalog, att_context *context, const void *descriptor);

#endif
