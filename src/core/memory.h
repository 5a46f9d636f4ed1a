/* core/memory.h - every allocation of ours goes through the context's allocator. */
#ifndef ATT_CORE_MEMORY_H
#define ATT_CORE_MEMORY_H

#include <attscope/context.h>

#include "core/export.h"

/* A block of `size` bytes, zeroed, aligned to 64; NULL where there is none left (no message). size 0 gives NULL. */
ATT_FOR_LAB void *att_allocate(att_context *context, size_t size);
/* count * size bytes as above; NULL on overflow too. */
ATT_FOR_LAB void *att_allocate_array(att_context *context, size_t count, size_t size);
/* Grows or shrinks; new bytes are undefined. On failure NULL, and `block` is untouched. */
ATT_FOR_LAB void *att_reallocate(att_context *context, void *block, size_t size);
ATT_FOR_LAB void att_free(att_context *context, void *block);
/* Bytes that are left until the context's memory_limit, beyond which the above give NULL. */
size_t att_memory_left(const att_context *context);
/* Sizes that are summed up before anything is allocated; SIZE_MAX where they are too large to be counted. */
static inline size_t att_size_product(size_t a, size_t b)
{
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}
static inline size_t att_size_sum(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}
/* A copy of a string; NULL where memory is out. */
char *att_copy_string(att_context *context, const char *text);

/* Room for one more item in a growing array of `count` items, whose pointer lies at `items_at`; false where memory is
 * out, and all is as before. */
bool att_list_grow(att_context *context, void *items_at, int count, int *capacity, size_t item_size);

/* An arena: many small blocks, freed together. Zero-initialise, then set `context`. */
typedef struct att_arena {
    att_context *context;
    struct att_arena_block *blocks;
} att_arena;
ATT_FOR_LAB void *att_arena_allocate(att_arena *arena, size_t size); /* zeroed; NULL where memory is out */
ATT_FOR_LAB char *att_arena_string(att_arena *arena, const char *text);
ATT_FOR_LAB void att_arena_free(att_arena *arena);

#endif
