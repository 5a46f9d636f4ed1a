/* text/trie.h - finds which of many strings begin at a place of a text. */
#ifndef ATT_TEXT_TRIE_H
#define ATT_TEXT_TRIE_H

#include "base/core/memory.h"

enum { ATT_TRIE_ROOT = 0, ATT_TRIE_NONE = -1 };
/* Most nodes of a trie: node and byte fit into 32 bits. */
enum { ATT_TRIE_MOST_NODES = 1 << 24 };

/* Strings of bytes with a value each: a tree with an edge for each byte. Node ATT_TRIE_ROOT is the empty string. */
typedef struct att_trie {
    att_context *context;
    struct att_trie_edge {
        uint32_t key;   /* node << 8 | byte */
        uint32_t child; /* 0: the slot is empty */
    } * edges;          /* hash table with linear probing */
    size_t mask;        /* slots of the table - 1 */
    int shift;          /* 32 - the binary logarithm of the slots */
    int32_t *values;    /* [nodes], ATT_TRIE_NONE: the node is no string, only the beginning of one */
    uint32_t node_count, capacity;
} att_trie;

/* Makes an empty trie. On success the caller frees it with att_trie_free(). bytes: at least the sum of the strings'
 * lengths. Errors: ERR_FORMAT (above ATT_TRIE_MOST_NODES; the message begins with `what`), ERR_MEMORY. */
att_status att_trie_make(att_context *context, const char *what, size_t bytes, att_trie *trie);
void att_trie_free(att_trie *trie);
/* Adds a string, or replaces its value, which is 0 or more. */
void att_trie_set(att_trie *trie, const char *bytes, size_t length, int32_t value);
/* Returns the node of a whole string, of which it may be the beginning only; -1 if there is none. */
int32_t att_trie_find(const att_trie *trie, const char *bytes, size_t length);

/* The first slot to look into (multiplicative hashing, Knuth, volume 3, 6.4). */
static inline size_t att_trie_slot(const att_trie *trie, uint32_t key)
{
    return (key * 0x9E3779B1u) >> trie->shift;
}

/* Returns the node after one more byte, or after the bytes of one more character; -1 if no string begins so. */
static inline int32_t att_trie_byte(const att_trie *trie, int32_t node, unsigned char byte)
{
    const uint32_t key = (uint32_t)node << 8 | byte;
    for (size_t at = att_trie_slot(trie, key);; at++) {
        const struct att_trie_edge *edge = &trie->edges[at & trie->mask];
        if (edge->child == 0)
            return ATT_TRIE_NONE;
        if (edge->key == key)
            return (int32_t)edge->child;
    }
}
int32_t att_trie_wide(const att_trie *trie, int32_t node, uint32_t code);
static inline int32_t att_trie_step(const att_trie *trie, int32_t node, uint32_t code)
{
    return code < 0x80 ? att_trie_byte(trie, node, (unsigned char)code) : att_trie_wide(trie, node, code);
}

#endif
