/* train/shape_cache.h - what was compiled for the shapes of a network's inputs, such as a plan and its session: one
 * entry for each combination of shapes, bounded by memory. */
#ifndef ATT_TRAIN_SHAPE_CACHE_H
#define ATT_TRAIN_SHAPE_CACHE_H

#include "networks/models/inputs.h"

/* Zero-initialise, then set the first four members. Entries are structs of the owner, zero at first. */
typedef struct att_shape_cache {
    att_context *context;
    size_t entry_size;
    void (*free_entry)(void *entry); /* frees what an entry holds, which may have failed half-way */
    size_t most_bytes;               /* all entries together keep to this; an entry that is larger is kept alone */
    struct att_shape_entry *entries;
    int count, room;
    uint64_t uses;
} att_shape_cache;

/* Returns the entry for these shapes, which then counts as used; NULL if there is none. */
void *att_shape_cache_find(att_shape_cache *cache, const att_shapes *shapes);
/* Adds an entry for shapes that have none. *entry lives until it is dropped, or freed to make room for another. */
att_status att_shape_cache_add(att_shape_cache *cache, const att_shapes *shapes, void **entry);
/* Records that the entry takes `bytes` in all, and frees others, the one unused longest first, until all of them keep
 * to most_bytes and these bytes are below the context's limit. Call it before they are allocated. */
void att_shape_cache_make_room(att_shape_cache *cache, const void *entry, size_t bytes);
/* Frees one entry (NULL: none), or all. */
void att_shape_cache_drop(att_shape_cache *cache, void *entry);
void att_shape_cache_clear(att_shape_cache *cache);

#endif
