/* core/pages.h - gives pages of memory back to the system. */
#ifndef ATT_CORE_PAGES_H
#define ATT_CORE_PAGES_H

#include <attscope/context.h>

/* Sets bytes of a block of att_allocate() to 0. The system takes whole pages back until they are written again, unless
 * the context has an allocator of its own. */
void att_discard(const att_context *context, void *bytes, size_t size);

#endif
