/* bench/triad.h - what the machine's memory reaches: a[i] = b[i] + s c[i] over arrays far beyond every cache, divided
 * among all of the context's threads. (McCalpin's STREAM, 1995) */
#ifndef ATT_BENCH_TRIAD_H
#define ATT_BENCH_TRIAD_H

#include <attscope/context.h>

typedef struct att_triad att_triad;

/* On success *triad is the caller's, freed by att_triad_destroy(). Errors: ERR_MEMORY. */
att_status att_triad_create(att_context *context, att_triad **triad);
void att_triad_destroy(att_triad **triad);

/* Read and written in one pass, as STREAM counts: each array once. */
double att_triad_bytes(const att_triad *triad);
void att_triad_run(att_triad *triad);

#endif
