/* bench/triad.h - measures the memory bandwidth: a[i] = b[i] + s c[i] over arrays much larger than the caches, shared
 * among all threads of the context (STREAM, McCalpin 1995). */
#ifndef ATT_BENCH_TRIAD_H
#define ATT_BENCH_TRIAD_H

#include <attscope/context.h>

typedef struct att_triad att_triad;

/* On success the caller destroys *triad with att_triad_destroy(). Errors: ERR_MEMORY. */
att_status att_triad_create(att_context *context, att_triad **triad);
void att_triad_destroy(att_triad **triad);

/* Bytes read and written in one pass. As in STREAM, each array counts once. */
double att_triad_bytes(const att_triad *triad);
void att_triad_run(att_triad *triad);

#endif
