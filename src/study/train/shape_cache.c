#include "study/train/shape_cache.h"

#include "base/core/error.h"
#include "base/core/memory.h"

struct att_shape_entry {
    att_shapes shapes;
    uint64_t used; /* number of its last use */
    size_t bytes;
    void *held; /* the owner's struct */
};

void *att_shape_cache_find(att_shape_cache *cache, const att_shapes *shapes)
{
    for (int i = 0; i < cache->count; i++)
        if (att_shapes_equal(&cache->entries[i].shapes, shapes)) {
            cache->entries[i].used = ++cache->uses;
            return cache->entries[i].held;
        }
    return NULL;
}

att_status att_shape_cache_add(att_shape_cache *cache, const att_shapes *shapes, void **entry)
{
    void *held = att_allocate(cache->context, cache->entry_size);
    if (!held || !att_list_grow(cache->context, &cache->entries, cache->count, &cache->room, sizeof *cache->entries)) {
        att_free(cache->context, held);
        return att_fail_memory(cache->context, cache->entry_size, "what is compiled for the shapes of inputs");
    }
    cache->entries[cache->count++] = (struct att_shape_entry){.shapes = *shapes, .used = ++cache->uses, .held = held};
    *entry = held;
    return ATT_OK;
}

static void drop_at(att_shape_cache *cache, int index)
{
    cache->free_entry(cache->entries[index].held);
    att_free(cache->context, cache->entries[index].held);
    cache->entries[index] = cache->entries[--cache->count];
}

/* Sets *oldest to the entry that was unused longest, except `own`; to -1 if there is no other. Returns the bytes of all
 * entries. */
static size_t survey(const att_shape_cache *cache, const void *own, int *oldest)
{
    size_t bytes = 0;
    *oldest = -1;
    for (int i = 0; i < cache->count; i++) {
        bytes = att_size_sum(bytes, cache->entries[i].bytes);
        if (cache->entries[i].held != own && (*oldest < 0 || cache->entries[i].used < cache->entries[*oldest].used))
            *oldest = i;
    }
    return bytes;
}

void att_shape_cache_make_room(att_shape_cache *cache, const void *entry, size_t bytes)
{
    int oldest;
    for (int i = 0; i < cache->count; i++)
        if (cache->entries[i].held == entry)
            cache->entries[i].bytes = bytes;
    while ((survey(cache, entry, &oldest) > cache->most_bytes || bytes > att_memory_left(cache->context)) &&
           oldest >= 0)
        drop_at(cache, oldest);
}

void att_shape_cache_drop(att_shape_cache *cache, void *entry)
{
    for (int i = cache->count; i-- > 0;)
        if (cache->entries[i].held == entry)
            drop_at(cache, i);
}

void att_shape_cache_clear(att_shape_cache *cache)
{
    while (cache->count > 0)
        drop_at(cache, cache->count - 1);
    att_free(cache->context, cache->entries);
    cache->entries = NULL;
    cache->room = 0;
}
