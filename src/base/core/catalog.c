#include "base/core/catalog.h"

#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/text.h"

static int built_in_count(const att_catalog *catalog)
{
    int count = 0;
    while (catalog->built_in(count))
        count++;
    return count;
}

/* Returns registered descriptor `index` of this kind, or NULL past the last one. */
static const void *registered_at(const att_catalog *catalog, const att_context *context, int index)
{
    const att_registered_list *list = att_context_registered(context);
    for (int i = 0; i < list->count; i++)
        if (list->items[i].kind == catalog && index-- == 0)
            return list->items[i].descriptor;
    return NULL;
}

const void *att_catalog_at(const att_catalog *catalog, const att_context *context, int index)
{
    int built_in = built_in_count(catalog);
    if (index < 0)
        return NULL;
    if (index < built_in)
        return catalog->built_in(index);
    return context ? registered_at(catalog, context, index - built_in) : NULL;
}

int att_catalog_count(const att_catalog *catalog, const att_context *context)
{
    int count = built_in_count(catalog);
    while (att_catalog_at(catalog, context, count))
        count++;
    return count;
}

const void *att_catalog_find(const att_catalog *catalog, const att_context *context, const char *name)
{
    const void *descriptor;
    for (int i = 0; name && (descriptor = att_catalog_at(catalog, context, i)); i++)
        if (strcmp(catalog->name(descriptor), name) == 0)
            return descriptor;
    return NULL;
}

typedef struct view {
    const att_catalog *catalog;
    const att_context *context;
} view;

static const char *name_at(const void *user, int index)
{
    const view *v = user;
    return v->catalog->name(att_catalog_at(v->catalog, v->context, index));
}

const char *att_catalog_nearest(const att_catalog *catalog, const att_context *context, const char *name)
{
    const view v = {catalog, context};
    return att_text_nearest(name, name_at, &v, att_catalog_count(catalog, context));
}

void att_catalog_list(const att_catalog *catalog, const att_context *context, att_text *names)
{
    const void *descriptor;
    for (int i = 0; (descriptor = att_catalog_at(catalog, context, i)); i++)
        att_text_append(names, "%s%s", i ? ", " : "", catalog->name(descriptor));
}

/* --- registering -------------------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool att_name_is_valid(const char *text)
{
    size_t length = 0;
    if (!text || !is_letter(*text))
        return false;
    while (is_letter(text[length]) || (text[length] >= '0' && text[length] <= '9') || text[length] == '_')
        length++;
    return !text[length] && length < ATT_NAME_BYTES;
}

att_status att_catalog_check(const att_catalog *catalog, att_context *context, const char *name)
{
    if (!name)
        return att_fail(context, ATT_ERR_ARGUMENT, "this %s has no name, so it cannot be registered", catalog->kind);
    if (!att_name_is_valid(name))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "%s \"%.64s\": a name must be 1 to %d letters, digits and underscores, the first a letter",
                        catalog->kind, name, ATT_NAME_BYTES - 1);
    if (catalog->reserved && strcmp(name, catalog->reserved) == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\": this name is reserved; choose another name",
                        catalog->kind, name);
    if (att_catalog_find(catalog, context, name))
        return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\": this name is in use; choose another name", catalog->kind,
                        name);
    return ATT_OK;
}

att_status att_catalog_add(const att_catalog *catalog, att_context *context, const void *descriptor)
{
    return att_context_register(context, catalog, descriptor);
}
