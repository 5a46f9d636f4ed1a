/* graph/registry.h - the lists a context is made with. */
#ifndef ATT_GRAPH_REGISTRY_H
#define ATT_GRAPH_REGISTRY_H

#include "graph/kernel.h"

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

typedef struct att_registry {
    const att_op *const *ops;           /* NULL-terminated */
    const att_backend *const *backends; /* NULL-terminated; weights live in the first one's memory */
} att_registry;

extern const att_memory att_host_memory;

const att_op *att_registry_op(const att_context *context, const char *name);
const att_backend *att_registry_backend(const att_context *context, const char *name);

#endif
