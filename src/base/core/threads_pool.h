/* core/threads_pool.h - creates the threads that a context owns. */
#ifndef ATT_CORE_THREADS_POOL_H
#define ATT_CORE_THREADS_POOL_H

#include <attscope/context.h>

typedef struct att_thread_pool att_thread_pool;

/* Starts threads - 1 threads, which sleep until there is work. The caller of att_threads_run() is the remaining one. */
att_status att_thread_pool_create(att_context *context, int threads, att_thread_pool **pool);
void att_thread_pool_destroy(att_context *context, att_thread_pool **pool);
att_thread_pool *att_context_pool(const att_context *context);

#endif
