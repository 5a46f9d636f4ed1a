#include "data/text/trie.h"

#include "base/core/error.h"
#include "data/text/characters.h"

att_status att_trie_make(att_context *context, const char *what, size_t bytes, att_trie *trie)
{
    *trie = (att_trie){.context = context, .node_count = 1};
    if (bytes >= ATT_TRIE_MOST_NODES)
        return att_fail(context, ATT_ERR_FORMAT, "%s: the pieces have %zu bytes together, above the limit of %d", what,
                        bytes, (int)ATT_TRIE_MOST_NODES);
    int bits = 6;
    while ((size_t)1 << bits < 2 * (bytes + 1))
        bits++;
    const size_t slots = (size_t)1 << bits;
    trie->mask = slots - 1;
    trie->shift = 32 - bits;
    trie->capacity = (uint32_t)bytes + 1;
    att_status status = att_new(context, &trie->edges, slots, "a vocabulary");
    if (status == ATT_OK)
        status = att_new(context, &trie->values, trie->capacity, "a vocabulary");
    if (status == ATT_OK)
        trie->values[ATT_TRIE_ROOT] = ATT_TRIE_NONE;
    else
        att_trie_free(trie);
    return status;
}

void att_trie_free(att_trie *trie)
{
    att_free(trie->context, trie->edges);
    att_free(trie->context, trie->values);
    *trie = (att_trie){.context = trie->context};
}

/* Returns the node after one more byte, which is made if there is none. */
static int32_t step_or_add(att_trie *trie, int32_t node, unsigned char byte)
{
    int32_t child = att_trie_byte(trie, node, byte);
    if (child >= 0)
        return child;
    const uint32_t key = (uint32_t)node << 8 | byte;
    size_t at = att_trie_slot(trie, key);
    while (trie->edges[at & trie->mask].child != 0)
        at++;
    child = (int32_t)trie->node_count++;
    trie->edges[at & trie->mask] = (struct att_trie_edge){key, (uint32_t)child};
    trie->values[child] = ATT_TRIE_NONE;
    return child;
}

void att_trie_set(att_trie *trie, const char *bytes, size_t length, int32_t value)
{
    int32_t node = ATT_TRIE_ROOT;
    for (size_t i = 0; i < length; i++)
        node = step_or_add(trie, node, (unsigned char)bytes[i]);
    trie->values[node] = value;
}

int32_t att_trie_find(const att_trie *trie, const char *bytes, size_t length)
{
    int32_t node = ATT_TRIE_ROOT;
    for (size_t i = 0; i < length && node >= 0; i++)
        node = att_trie_byte(trie, node, (unsigned char)bytes[i]);
    return node;
}

int32_t att_trie_wide(const att_trie *trie, int32_t node, uint32_t code)
{
    char bytes[ATT_CODE_BYTES];
    const size_t count = att_code_encode(code, bytes);
    for (size_t i = 0; i < count && node >= 0; i++)
        node = att_trie_byte(trie, node, (unsigned char)bytes[i]);
    return node;
}
