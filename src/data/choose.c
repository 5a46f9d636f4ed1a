#include "data/choose.h"

#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "data/dataset.h"

typedef struct choice {
    att_context *context;
    const att_dataset *dataset;
    int64_t *images;
    int count, capacity;
} choice;

static att_status add(choice *c, int64_t image)
{
    for (int i = 0; i < c->count; i++)
        if (c->images[i] == image)
            return ATT_OK;
    if (c->count == ATT_MAX_CHOSEN)
        return att_fail(c->context, ATT_ERR_ARGUMENT, "the list names more than %d images", (int)ATT_MAX_CHOSEN);
    if (!att_list_grow(c->context, &c->images, c->count, &c->capacity, sizeof *c->images))
        return att_fail_memory(c->context, ((size_t)c->count + 1) * sizeof *c->images, "a list of images");
    c->images[c->count++] = image;
    return ATT_OK;
}

static bool is_escaped_comma(const char *text)
{
    return text[0] == '\\' && text[1] == ',';
}

/* Copies the first item of a list to `item`, with "\," replaced by a comma. Returns the item's length in the list, in
 * bytes. */
static size_t take_item(const char *list, char *item)
{
    size_t at = 0;
    while (list[at] && list[at] != ',') {
        at += is_escaped_comma(list + at);
        *item++ = list[at++];
    }
    *item = '\0';
    return at;
}

/* Whether the pattern matches the whole name, or the rest of the name after one of its slashes. */
static bool name_matches(const char *name, const char *pattern)
{
    while (name) {
        if (att_text_matches(pattern, name))
            return true;
        name = strchr(name, '/');
        name = name ? name + 1 : NULL;
    }
    return false;
}

static att_status add_named(choice *c, const char *pattern)
{
    char name[ATT_DATA_MAX_NAME];
    bool found = false;
    for (int64_t i = 0; i < c->dataset->count; i++) {
        if (!name_matches(att_dataset_short_name(c->dataset, i, name, sizeof name), pattern))
            continue;
        found = true;
        ATT_TRY(add(c, i));
    }
    if (found)
        return ATT_OK;
    return att_fail(c->context, ATT_ERR_ARGUMENT, "no image is called \"%s\"; the first is called \"%s\"", pattern,
                    att_dataset_short_name(c->dataset, 0, name, sizeof name));
}

static att_status add_numbered(choice *c, const char *digits)
{
    intmax_t number = strtoimax(digits, NULL, 10);
    if (number < c->dataset->count)
        return add(c, number);
    return att_fail(c->context, ATT_ERR_ARGUMENT, "there is no image %s; the data set has %lld, numbered from 0",
                    digits, (long long)c->dataset->count);
}

static att_status add_item(choice *c, const char *item)
{
    return item[strspn(item, "0123456789")] == '\0' ? add_numbered(c, item) : add_named(c, item);
}

/* item: a buffer as large as the list. */
static att_status add_items(choice *c, const char *list, char *item)
{
    for (const char *at = list;; at++) {
        at += take_item(at, item);
        if (!*item)
            return att_fail(c->context, ATT_ERR_ARGUMENT, "the list of images \"%s\" has an empty item", list);
        ATT_TRY(add_item(c, item));
        if (!*at)
            return ATT_OK;
    }
}

att_status att_dataset_choose(const att_dataset *dataset, att_context *context, const char *list, int64_t **images,
                              int *count)
{
    choice c = {.context = context, .dataset = dataset};
    char *item = att_copy_string(context, list);
    att_status status = item ? add_items(&c, list, item) : att_fail_memory(context, strlen(list), "a list of images");
    att_free(context, item);
    if (status != ATT_OK) {
        att_free(context, c.images);
        return status;
    }
    *images = c.images;
    *count = c.count;
    return ATT_OK;
}
