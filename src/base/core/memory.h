/* core/memory.h - allocation through the context's allocator. attscope's own code allocates in no other way. */
#ifndef ATT_CORE_MEMORY_H
#define ATT_CORE_MEMORY_H

#include <attscope/context.h>

#include "base/core/export.h"

/* Returns a zeroed block of `size` bytes, aligned to 64 bytes. Returns NULL, without setting a message, if memory is
 * exhausted or size is 0. */
ATT_FOR_LAB void *att_allocate(att_context *context, size_t size);
/* Like att_allocate() with count * size bytes. Returns NULL if the product overflows, too. */
ATT_FOR_LAB void *att_allocate_array(att_context *context, size_t count, size_t size);
/* Sets *pointer to a zeroed array of `count` elements. ERR_MEMORY, with a message that says it was for `what`. */
#define att_new(context, pointer, count, what) att_new_array((context), (pointer), (count), sizeof **(pointer), (what))
ATT_FOR_LAB att_status att_new_array(att_context *context, void *pointer, size_t count, size_t size, const char *what);
/* Grows or shrinks a block (NULL: allocates a new one). Added bytes are undefined. Returns NULL on failure or if size
 * is 0; `block` is then unchanged. */
ATT_FOR_LAB void *att_reallocate(att_context *context, void *block, size_t size);
ATT_FOR_LAB void att_free(att_context *context, void *block);
/* Returns the bytes left below the context's memory_limit. Larger allocations return NULL. */
size_t att_memory_left(const att_context *context);
/* Fails with ERR_MEMORY if the system cannot provide `bytes` now, without keeping them. For libraries that allocate
 * themselves and do not notice that an allocation fails. what: what the memory is for. */
att_status att_memory_require(att_context *context, size_t bytes, const char *what);
/* Saturating arithmetic on sizes: both return SIZE_MAX on overflow. */
static inline size_t att_size_product(size_t a, size_t b)
{
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}
static inline size_t att_size_sum(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}
/* Returns a copy of a string, to be freed with att_free(), or NULL if memory is exhausted. */
ATT_FOR_LAB char *att_copy_string(att_context *context, const char *text);

/* Makes room for one more item in an array of `count` items. items_at: address of the array's pointer. Returns false,
 * with the array unchanged, if memory is exhausted. */
ATT_FOR_LAB bool att_list_grow(att_context *context, void *items_at, int count, int *capacity, size_t item_size);

/* An arena: many small blocks that are freed together. Zero-initialise, then set `context`. */
typedef struct att_arena {
    att_context *context;
    struct att_arena_block *blocks;
} att_arena;
/* Both return NULL if memory is exhausted. Allocated bytes are zero. */
ATT_FOR_LAB void *att_arena_allocate(att_arena *arena, size_t size);
ATT_FOR_LAB char *att_arena_string(att_arena *arena, const char *text);
ATT_FOR_LAB void att_arena_free(att_arena *arena);

#endif
