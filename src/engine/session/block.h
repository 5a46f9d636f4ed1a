/* session/block.h - one block of memory for several sessions, of which one runs at a time. */
#ifndef ATT_SESSION_BLOCK_H
#define ATT_SESSION_BLOCK_H

#include "engine/plan/plan.h"

typedef struct att_session_block {
    att_context *context;
    const att_memory *memory;
    char *values;
    size_t bytes;
    const att_session *last; /* the session that ran last; the memory of all others is undefined */
} att_session_block;

/* Allocates the memory that a session needs. The block must outlive its sessions and does not move. Errors: ERR_MEMORY.
 */
att_status att_session_block_create(const att_plan *plan, int max_batch, att_session_block **block);
void att_session_block_destroy(att_session_block **block);
/* Bytes of such a block. */
size_t att_session_block_bytes(const att_plan *plan, int max_batch);

/* Returns memory for a session from the block; NULL if it lacks room, or block is NULL. *used: bytes that the session
 * has already. */
char *att_session_block_take(const att_session_block *block, size_t bytes, size_t *used);
/* Whether the memory is the block's. */
bool att_session_block_holds(const att_session_block *block, const char *values);

/* As att_session_create(), with memory of the block; what does not fit has memory of its own. NULL: all has. Runs of
 * one session end the validity of the outputs of others, and their find_nonfinite(). */
ATT_MUST_CHECK att_status att_session_create_in(const att_plan *plan, att_weights *weights, int max_batch,
                                                att_session_block *block, att_session **session);

#endif
