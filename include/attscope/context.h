/* attscope/context.h - the object that owns the allocator, the threads, the messages and the log.
 *
 * The library has no global state, never prints and never exits. A context and everything made from it belong to one
 * user thread at a time; several contexts can exist side by side. A context must outlive everything made from it.
 *
 * Every function whose name ends in _destroy or _close frees an object and sets the caller's pointer to it to NULL.
 * NULL and a pointer to NULL are allowed. Free an object before those that must outlive it: a session before its plan
 * and weights.
 */
#ifndef ATTSCOPE_CONTEXT_H
#define ATTSCOPE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <attscope/status.h>
#include <attscope/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_context att_context;

/* Works like realloc(). size 0: frees `old` (which may be NULL) and returns NULL. Otherwise returns a block of at least
 * `size` bytes, aligned to 64, that begins with the contents of `old`; or NULL, with `old` unchanged. old_size: the
 * size with which `old` was allocated. Called from several threads. */
typedef void *(*att_allocate_fn)(void *user, void *old, size_t old_size, size_t size);

typedef enum att_log_level { ATT_LOG_INFO, ATT_LOG_WARNING } att_log_level;
/* Receives one line without newline, on the thread that called the library. */
typedef void (*att_log_fn)(void *user, att_log_level level, const char *line);

/* Features of a processor, as bits. Kernels are compiled for some sets of features, which have names: on x86-64
 * "baseline" (none), "avx2", "avx512" (both) and "avx512_bf16" (all); on other processors only "baseline". */
enum {
    ATT_AVX2 = 1 << 0,   /* AVX2 and FMA */
    ATT_AVX512 = 1 << 1, /* AVX-512 F, BW, DQ and VL */
    ATT_AVX512_BF16 = 1 << 2
};
#define ATT_ALL_FEATURES (~0u)

typedef struct att_settings {
    int threads;       /* threads of the engine, including the caller's, at most 1024; 0: one per online processor */
    unsigned features; /* features that may be used, of those that the processor has */
    att_allocate_fn allocate; /* NULL: the C library's allocator */
    void *allocate_user;
    att_log_fn log; /* NULL: no log */
    void *log_user;
    /* Polled from any thread while a data set is opened, while checkpoints and records are read, and in
     * att_network_time(), att_network_measure(), att_explorer_run(), att_explorer_sum() and att_explorer_rollout(). If
     * it returns true, the call ends with ERR_STOPPED. Training and evaluation do not call it while the network runs;
     * their progress callback (attscope/progress.h) stops them. The steps of a sweep that run in this process
     * (attscope/lab/sweep_plan.h) call this function as well as the progress callback. NULL: never stop. */
    bool (*stop)(void *user);
    void *stop_user;
    size_t memory_limit; /* most bytes that may be allocated at the same time; an allocation that would exceed it fails
                            with ERR_MEMORY. 0: 15/16 of the memory that is available to the process (machine and
                            control groups) when the context is created */
} att_settings;

/* threads 0; the set of features that the environment variable ATTSCOPE_CPU names (baseline, avx2, avx512,
 * avx512_bf16) or, if that is not set, the fastest one: all, but without AVX512_BF16 on Intel's processors without AMX,
 * which multiply bf16 more slowly than f32; no callbacks. */
ATT_API att_settings att_settings_defaults(void);

/* Creates a context with every operation, kernel and model of the library. Programs can add modules, instruments and
 * tasks with att_module_register() (nn.h), att_instrument_register() (measure.h) and att_task_register() (task.h).
 * settings: NULL means the defaults; copied. On success the caller owns *context and frees it with
 * att_context_destroy(). Errors: ERR_MEMORY, ERR_ARGUMENT (threads outside 0..1024). A failed call leaves no context
 * and therefore no message. */
ATT_API ATT_MUST_CHECK att_status att_context_create(const att_settings *settings, att_context **context);
/* Frees the context. Free everything made from it first. */
ATT_API void att_context_destroy(att_context **context);

/* The message of the last failure, "" if there was none. Valid until the next failing call. */
ATT_API const char *att_context_message(const att_context *context);

/* For functions that a program gives to the library (modules, instruments, tasks): att_fail(context, status, format,
 * ...) sets the context's message, formatted as by printf(): what failed, where, what was expected. The value of the
 * expression is `status`, so that a function can `return att_fail(context, ATT_ERR_ARGUMENT, "...")`. Thread-safe: if
 * several threads fail in one call, one of their messages is kept whole. att_context_set_message() is the part of the
 * macro that sets the message; without a context (NULL) it does nothing. */
ATT_API void att_context_set_message(att_context *context, const char *format, ...) ATT_PRINTF(2, 3);
#define att_fail(context, status, ...) (att_context_set_message((context), __VA_ARGS__), (status))

ATT_API int att_context_threads(const att_context *context); /* number of engine threads */
/* The set of features in use, and its name: the largest set whose features the processor has and the settings allow. */
ATT_API unsigned att_context_features(const att_context *context);
ATT_API const char *att_context_tier(const att_context *context);
/* Returns whether the engine uses the processor's bf16 instructions for matrix products: the processor has AVX512_BF16
 * and the settings allow it. Otherwise ATT_MIXED plans on "cpu" store bf16 and multiply f32. They then need less memory
 * than ATT_FULL plans and, with AVX-512, about the same time; without AVX-512 they are slower. */
ATT_API bool att_context_has_bf16(const att_context *context);

/* Use of the context's allocator: bytes allocated now, the highest number so far, the limit, and the number of calls
 * (for tests that running allocates nothing). */
typedef struct att_allocation_count {
    size_t bytes_now, bytes_peak, bytes_limit;
    uint64_t calls;
} att_allocation_count;
ATT_API att_allocation_count att_context_allocations(const att_context *context);

#ifdef __cplusplus
}
#endif
#endif
