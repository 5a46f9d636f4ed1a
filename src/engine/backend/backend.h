/* backend/backend.h - a backend: its memory and its list of kernels. */
#ifndef ATT_BACKEND_BACKEND_H
#define ATT_BACKEND_BACKEND_H

#include "base/core/export.h"
#include "engine/backend/kernel.h"

/* Recordings of kernel calls and clears, which are repeated at less cost than the calls themselves. From begin() to
 * end(), which one thread calls, calls and clears take no effect but are recorded; copies are not allowed. replay()
 * makes them again, with the pointers and numbers that they had. */
typedef struct att_recorder {
    att_status (*begin)(att_context *context);
    att_status (*end)(att_context *context, void **recording); /* *recording is NULL on failure */
    att_status (*replay)(att_context *context, void *recording);
    void (*release)(void *recording);
} att_recorder;

/* The memory that holds arenas and weights. Host code never dereferences what allocate() returns; it uses copy_in() and
 * copy_out(). If not NULL, `enter` and `leave` are called before and after every kernel call. Kernel calls, copies and
 * clears of all threads of a context take effect in the order of the calls, but possibly later. wait() returns when all
 * of them have taken effect, and is called before data is copied out. */
typedef struct att_memory {
    void *(*allocate)(att_context *context, size_t bytes); /* zeroed, 64-byte aligned; NULL: out of memory */
    void (*release)(att_context *context, void *block, size_t bytes);
    void (*copy_in)(void *block, const void *host, size_t bytes);
    void (*copy_out)(void *host, const void *block, size_t bytes);
    void (*clear)(void *block, size_t bytes);
    void (*wait)(void); /* NULL: every call has taken effect when it returns */
    /* Bytes that may still be allocated. Larger requests fail without a call of allocate(). */
    size_t (*left)(const att_context *context);
    bool host; /* kernels can read and write the caller's memory directly */
    void (*enter)(void);
    void (*leave)(void);
    const att_recorder *recorder; /* NULL: calls cannot be recorded */
} att_memory;

/* Parameters for choosing the group size, the number of samples per call: a power of two of at most `most`, such that
 * matrix products have about infer_rows or train_rows rows and the activations of a group take at most arena_bytes; in
 * plans of several segments, which keep activations elsewhere, at most segment_bytes.
 * Constant for a backend, because the bits of the results depend on them. threads: host threads that call kernels, 0
 * for all threads of the context. */
typedef struct att_grouping {
    int infer_rows, train_rows, most;
    size_t arena_bytes, segment_bytes;
    int threads;
} att_grouping;

typedef struct att_backend {
    const char *name;
    const att_memory *memory;
    const att_kernel *const *kernels; /* NULL-terminated, in order of preference */
    const att_grouping *grouping;
    const char *(*version)(void); /* of the library that determines the bits of results: "onednn-2.6.3"; NULL: none */
    /* Names of the algebraic rewritings (patterns/list.h) that cost this backend more than they save, NULL after the
     * last; NULL: none. */
    const char *const *unwanted_patterns;
} att_backend;

extern const att_memory att_host_memory;
/* The grouping of CPU backends. */
extern const att_grouping att_host_grouping;

/* Host threads that call the backend's kernels. */
int att_backend_threads(const att_backend *backend, const att_context *context);

/* NULL if there is no backend of that name, plugins not counted. */
ATT_FOR_LAB const att_backend *att_backend_find(const att_context *context, const char *name);
/* Writes the backend to *backend, and loads its plugin if it has one (backend/plugin.h). ERR_NOT_FOUND with the nearest
 * name in the message if there is none of that name. */
att_status att_backend_choose(att_context *context, const char *name, const att_backend **backend);

#endif
