/* backend/backend.h - where plans run: a memory and a list of kernels. */
#ifndef ATT_BACKEND_BACKEND_H
#define ATT_BACKEND_BACKEND_H

#include "backend/kernel.h"
#include "core/export.h"

/* Where arenas and weights live, and how host data gets there. Host code never dereferences what allocate() returns;
 * `enter` and `leave` (optional) bracket every kernel call. Calls, copies and clears of all threads of a context are
 * carried out in the order in which they were made, but perhaps later: wait() returns when all have been, and comes
 * before anything is copied out. */
typedef struct att_memory {
    void *(*allocate)(att_context *context, size_t bytes); /* zeroed, aligned to 64; NULL where there is none */
    void (*release)(att_context *context, void *block, size_t bytes);
    void (*copy_in)(void *block, const void *host, size_t bytes);
    void (*copy_out)(void *host, const void *block, size_t bytes);
    void (*clear)(void *block, size_t bytes);
    void (*wait)(void); /* NULL: a call has been carried out when it returns */
    /* Bytes that may still be allocated: what exceeds them is refused before anything is tried. */
    size_t (*left)(const att_context *context);
    bool host; /* kernels may read and write the caller's memory in place */
    void (*enter)(void);
    void (*leave)(void);
} att_memory;

/* Chooses how many samples one call works on: a power of two of at most `most`, such that matrix products have about
 * infer_rows or train_rows rows and the activations of a group take at most arena_bytes. Fixed for a backend, because
 * bits depend on it. */
typedef struct att_grouping {
    int infer_rows, train_rows, most;
    size_t arena_bytes;
} att_grouping;

typedef struct att_backend {
    const char *name;
    const att_memory *memory;
    const att_kernel *const *kernels; /* NULL-terminated, in order of preference */
    const att_grouping *grouping;
    const char *(*version)(void); /* of the library its bits depend on: "onednn-2.6.3"; NULL where there is none */
} att_backend;

extern const att_memory att_host_memory;
/* Of processors. */
extern const att_grouping att_host_grouping;

/* NULL: there is none of that name. */
ATT_FOR_LAB const att_backend *att_backend_find(const att_context *context, const char *name);
/* The same, with ERR_NOT_FOUND and the nearest name in the message. */
att_status att_backend_choose(att_context *context, const char *name, const att_backend **backend);

#endif
