#include "data/text/charsmap.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/base64.h"
#include "data/text/unicode.h"

/* The trie is a double array of 32-bit units (Aoe, IEEE Trans. Softw. Eng. 15(9), 1989, as in Darts-clone): bits 0-7
 * the label, bit 8 whether a text ends here, bit 9 whether the offset counts in units of 256, bits 10-31 the offset.
 * The child for a byte is at (place ^ byte). The unit of an end is a number: an offset into the texts, with bit 31 set.
 */
struct att_charsmap {
    const char *path;
    const unsigned char *trie; /* [units], least significant byte first */
    size_t units;
    const char *texts; /* [text_size], then a zero byte */
    size_t text_size;
};

static uint32_t unit_at(const att_charsmap *map, size_t at)
{
    const unsigned char *b = map->trie + 4 * at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

static att_status split_table(const att_part *part, att_charsmap *map, const unsigned char *bytes, size_t size)
{
    if (size >= 4)
        map->trie = bytes; /* for unit_at() */
    const size_t trie_size = size >= 4 ? unit_at(map, 0) : 0;
    if (size < 4 || trie_size == 0 || trie_size % 4 != 0 || trie_size > size - 4)
        return att_part_fail(part, ATT_ERR_FORMAT,
                             "\"precompiled_charsmap\" is damaged: it has %zu bytes, of which %zu "
                             "should be its trie",
                             size, trie_size);
    map->trie = bytes + 4;
    map->units = trie_size / 4;
    map->texts = (const char *)bytes + 4 + trie_size;
    map->text_size = size - 4 - trie_size;
    for (const char *text = map->texts; text < map->texts + map->text_size; text += strlen(text) + 1)
        if (!att_utf8_valid(text))
            return att_part_fail(part, ATT_ERR_FORMAT,
                                 "\"precompiled_charsmap\" is damaged: its texts are not UTF-8 at "
                                 "byte %zu",
                                 (size_t)(text - map->texts));
    return ATT_OK;
}

att_status att_charsmap_read(const att_part *part, const att_charsmap **charsmap)
{
    const char *text;
    ATT_TRY(att_part_text(part, "precompiled_charsmap", NULL, &text));
    const size_t length = strlen(text);
    att_charsmap *map = att_arena_allocate(part->arena, sizeof *map);
    unsigned char *bytes = att_arena_allocate(part->arena, length / 4 * 3 + 1); /* the last stays 0 */
    size_t size = 0;
    if (!map || !bytes)
        return att_fail_memory(part->context, length, "a precompiled_charsmap");
    map->path = att_arena_string(part->arena, part->path);
    if (!map->path)
        return att_fail_memory(part->context, strlen(part->path), "a precompiled_charsmap");
    if (!att_base64_decode(text, length, bytes, &size))
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" is not base64", "precompiled_charsmap");
    ATT_TRY(split_table(part, map, bytes, size));
    *charsmap = map;
    return ATT_OK;
}

/* --- look-up ------------------------------------------------------------------------------------------------------ */

enum { ABSENT, FOUND, DAMAGED };

/* Sets *text to what takes the place of the shortest text of the table that begins `key`. */
static int look_up(const att_charsmap *map, const char *key, size_t length, const char **text)
{
    size_t at = offset_of(unit_at(map, 0));
    for (size_t i = 0; i < length && key[i] != 0; i++) {
        const unsigned char byte = (unsigned char)key[i];
        at ^= byte;
        if (at >= map->units)
            return DAMAGED;
        const uint32_t unit = unit_at(map, at);
        if ((unit & (1u << 31 | 0xFF)) != byte)
            return ABSENT;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1))
            continue;
        const size_t place = at < map->units ? unit_at(map, at) & ~(1u << 31) : SIZE_MAX;
        if (place >= map->text_size || (map->texts[place] & 0xC0) == 0x80)
            return DAMAGED;
        *text = map->texts + place;
        return FOUND;
    }
    return ABSENT;
}

/* Adds the characters of `text` in place of `count` characters. Each has the place of the character with its index, or
 * of the last one. */
static void replace(const att_character *of, size_t count, const char *text, att_characters *to)
{
    for (size_t i = 0; *text; i++) {
        uint32_t code;
        text += att_utf8_decode(text, &code);
        att_characters_add(to, code, of[i < count ? i : count - 1]);
    }
}

/* Replaces `count` characters as a whole, if the table has them. */
static int replace_together(const att_charsmap *map, const att_character *of, size_t count, att_characters *to)
{
    enum { MOST = 5 };
    char key[MOST + ATT_CODE_BYTES];
    size_t length = 0;
    const char *text = NULL;
    for (size_t i = 0; i < count; i++) {
        length += att_code_encode(of[i].code, key + length);
        if (length > MOST)
            return ABSENT;
    }
    int found = look_up(map, key, length, &text);
    if (found == FOUND)
        replace(of, count, text, to);
    return found;
}

/* Replaces a grapheme cluster. */
static int replace_cluster(const att_charsmap *map, const att_character *of, size_t count, att_characters *to)
{
    int found = replace_together(map, of, count, to);
    for (size_t i = 0; found == ABSENT && i < count; i++) {
        const int single = count > 1 ? replace_together(map, of + i, 1, to) : ABSENT;
        if (single == DAMAGED)
            return DAMAGED;
        if (single == ABSENT)
            att_characters_add(to, of[i].code, of[i]);
    }
    return found;
}

att_status att_charsmap_apply(const att_charsmap *charsmap, const att_characters *from, att_characters *to)
{
    for (size_t i = 0, end; i < from->count && !to->failed; i = end) {
        end = att_characters_cluster(from, i);
        if (replace_cluster(charsmap, from->items + i, end - i, to) == DAMAGED)
            return att_fail(to->context, ATT_ERR_FORMAT,
                            "%s: \"precompiled_charsmap\" is damaged: its trie leads out of the table for U+%04X",
                            charsmap->path, (unsigned)from->items[i].code);
    }
    return ATT_OK;
}
