/* backend/backend.h - where plans run: a memory and a list of kernels. */
#ifndef ATT_BACKEND_BACKEND_H
#define ATT_BACKEND_BACKEND_H

#include "backend/kernel.h"

/* Where arenas and weights live, and how host data gets there. Host code never dereferences what allocate() returns;
 * `enter` and `leave` (optional) bracket every kernel call. */
typedef struct att_memory {
    void *(*allocate)(att_context *context, size_t bytes); /* zeroed, aligned to 64; NULL where there is none */
    void (*release)(att_context *context, void *block, size_t bytes);
    void (*copy_in)(void *block, const void *host, size_t bytes);
    void (*copy_out)(void *host, const void *block, size_t bytes);
    void (*clear)(void *block, size_t bytes);
    bool host; /* kernels may read and write the caller's memory in place */
    void (*enter)(void);
    void (*leave)(void);
} att_memory;

typedef struct att_backend {
    const char *name;
    const att_memory *memory;
    const att_kernel *const *kernels; /* NULL-terminated, in order of preference */
    const char *(*version)(void);     /* of the library its bits depend on: "onednn-2.6.3"; NULL where there is none */
} att_backend;

extern const att_memory att_host_memory;

/* NULL: there is none of that name. */
const att_backend *att_backend_find(const att_context *context, const char *name);

#endif
