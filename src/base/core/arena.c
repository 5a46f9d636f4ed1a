#include <string.h>

#include "base/core/memory.h"

enum { BLOCK_BYTES = 1 << 16, ALIGNMENT = 64 };

struct att_arena_block {
    struct att_arena_block *next;
    size_t used, size;
};

static size_t round_up(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *att_arena_allocate(att_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    size = round_up(size ? size : 1);
    struct att_arena_block *block = arena->blocks;
    size_t header = round_up(sizeof *block);
    if (!block || block->size - block->used < size) {
        size_t bytes = header + (size > BLOCK_BYTES ? size : BLOCK_BYTES);
        block = att_allocate(arena->context, bytes);
        if (!block)
            return NULL;
        *block = (struct att_arena_block){.next = arena->blocks, .used = header, .size = bytes};
        arena->blocks = block;
    }
    void *result = (char *)block + block->used;
    block->used += size;
    return result;
}

char *att_arena_string(att_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = att_arena_allocate(arena, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void att_arena_free(att_arena *arena)
{
    while (arena->blocks) {
        struct att_arena_block *next = arena->blocks->next;
        att_free(arena->context, arena->blocks);
        arena->blocks = next;
    }
}
