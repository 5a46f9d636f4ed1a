#include "data/text/characters.h"

#include <string.h>

#include <utf8proc.h>

#include "base/core/text.h"

enum { FIRST = 64 };

/* Grows the array of items of a list to at least `wanted` items. Returns false, with the array unchanged, if memory is
 * exhausted. */
static bool grow(att_context *context, void *items_at, size_t *capacity, size_t wanted, size_t size)
{
    size_t grown = *capacity > 0 ? *capacity : FIRST;
    void *items;
    memcpy(&items, items_at, sizeof items);
    while (grown < wanted && grown <= SIZE_MAX / 2)
        grown *= 2;
    items = grown < wanted ? NULL : att_reallocate(context, items, att_size_product(grown, size));
    if (!items)
        return false;
    memcpy(items_at, &items, sizeof items);
    *capacity = grown;
    return true;
}

bool att_characters_reserve(att_characters *list, size_t more)
{
    if (list->failed)
        return false;
    if (list->capacity - list->count < more)
        list->failed =
            !grow(list->context, &list->items, &list->capacity, att_size_sum(list->count, more), sizeof *list->items);
    return !list->failed;
}

void att_characters_free(att_characters *list)
{
    att_free(list->context, list->items);
    *list = (att_characters){.context = list->context};
}

void att_characters_append(att_characters *list, const att_character *items, size_t count)
{
    if (count == 0 || !att_characters_reserve(list, count))
        return;
    memcpy(list->items + list->count, items, count * sizeof *items);
    list->count += count;
}

size_t att_characters_decode(att_characters *list, const char *bytes, size_t length)
{
    enum { LONGEST = 4 };
    char last[LONGEST + 1] = {0}; /* a copy of the text's end, so that decoding does not read beyond it */
    if (!att_characters_reserve(list, length))
        return length;
    for (size_t at = 0; at < length;) {
        const char *from = bytes + at;
        uint32_t code = (unsigned char)*from;
        size_t size = 1;
        if (length - at < LONGEST) {
            memset(last, 0, sizeof last);
            memcpy(last, from, length - at);
            from = last;
        }
        if (code >= 0x80)
            size = att_utf8_decode(from, &code);
        if (size == 0)
            return at;
        att_characters_add(list, code, (att_character){0, (uint32_t)at, (uint32_t)(at + size)});
        at += size;
    }
    return length;
}

size_t att_code_encode(uint32_t code, char bytes[static ATT_CODE_BYTES])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)bytes);
}

void att_words_add(att_words *list, size_t first, size_t end)
{
    if (first == end || list->failed)
        return;
    if (list->count == list->capacity)
        list->failed = !grow(list->context, &list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (!list->failed)
        list->items[list->count++] = (att_word){first, end - first};
}

void att_words_free(att_words *list)
{
    att_free(list->context, list->items);
    *list = (att_words){.context = list->context};
}
