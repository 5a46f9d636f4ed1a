/* One block of memory for several sessions, of which one runs at a time. */
#include "engine/session/block.h"

#include "base/core/error.h"
#include "engine/session/session.h"

enum { ALIGNMENT = 64 };

static size_t aligned(size_t bytes)
{
    return att_size_sum(bytes, ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Pieces of memory that a session reserves. */
static size_t piece_count(const att_plan *plan)
{
    enum { OTHERS = 9 };
    return (size_t)(plan->input_count + plan->output_count) + OTHERS;
}

size_t att_session_block_bytes(const att_plan *plan, int max_batch)
{
    size_t slack = att_size_product(piece_count(plan), 2 * (size_t)ALIGNMENT);
    return aligned(att_size_sum(att_session_bytes(plan, max_batch), slack));
}

att_status att_session_block_create(const att_plan *plan, int max_batch, att_session_block **out)
{
    size_t bytes = att_session_block_bytes(plan, max_batch);
    att_session_block *block;
    ATT_TRY(att_new(plan->context, &block, 1, "the memory of sessions"));
    *block = (att_session_block){.context = plan->context, .memory = plan->units.backend->memory, .bytes = bytes};
    block->values = block->memory->allocate(block->context, bytes);
    if (!block->values) {
        att_free(plan->context, block);
        return att_fail_memory(plan->context, bytes, "the memory of sessions");
    }
    *out = block;
    return ATT_OK;
}

void att_session_block_destroy(att_session_block **out)
{
    att_session_block *block = *out;
    if (!block)
        return;
    block->memory->release(block->context, block->values, block->bytes);
    att_free(block->context, block);
    *out = NULL;
}

char *att_session_block_take(const att_session_block *block, size_t bytes, size_t *used)
{
    size_t from = aligned(*used);
    if (!block || from > block->bytes || bytes > block->bytes - from)
        return NULL;
    *used = from + bytes;
    return block->values + from;
}

bool att_session_block_holds(const att_session_block *block, const char *values)
{
    return block && values >= block->values && values < block->values + block->bytes;
}
