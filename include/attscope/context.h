/* attscope/context.h - the object that owns everything process-like: allocator, threads, messages, log.
 *
 * The library has no globals, never prints and never exits. A context and all that is made from it belong to one user
 * thread at a time; several contexts may live side by side. The context must outlive everything made from it.
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

/* realloc-like: size 0 frees `old` (which may be NULL) and returns NULL; otherwise returns a block of at least `size`
 * bytes, aligned to 64, that begins with the old contents, or NULL with `old` untouched. Called from several threads.
 */
typedef void *(*att_allocate_fn)(void *user, void *old, size_t old_size, size_t size);

typedef enum att_log_level { ATT_LOG_INFO, ATT_LOG_WARNING } att_log_level;
/* One line without newline. Called from the thread that made the call. */
typedef void (*att_log_fn)(void *user, att_log_level level, const char *line);

/* Processor tiers, each including those before it. */
typedef enum att_tier { ATT_TIER_BASELINE, ATT_TIER_AVX2, ATT_TIER_AVX512, ATT_TIER_AVX512_BF16 } att_tier;

typedef struct att_settings {
    int threads;              /* engine threads, the caller's included; 0: one per processor this process may use */
    att_tier tier_cap;        /* highest tier to use; the processor's own is found at start */
    att_allocate_fn allocate; /* NULL: the C library's */
    void *allocate_user;
    att_log_fn log; /* NULL: no log */
    void *log_user;
    /* The library calls it repeatedly, from any thread, while it opens a data set and while it reads checkpoints and
     * records. If it returns true, the call ends with ERR_STOPPED. Training and evaluation do not call it while the
     * network runs; their progress callback (attscope/progress.h) stops them. The steps of a sweep that run in this
     * process (attscope/lab/sweep_plan.h) call both. NULL: no such request. */
    bool (*stop)(void *user);
    void *stop_user;
    size_t memory_limit; /* bytes to have at once: what would lead beyond fails with ERR_MEMORY; 0: 15/16 of what the
                            machine (and the control groups the process is in) can spare when the context is made */
} att_settings;

/* threads 0; the highest tier, capped by the environment's ATTSCOPE_CPU (baseline, avx2, avx512, avx512_bf16) where
 * that is set; no callbacks. */
ATT_API att_settings att_settings_defaults(void);

/* Makes a context with every op, kernel and model of the library registered. Programs add modules, instruments and
 * tasks of their own by att_module_register() (nn.h), att_instrument_register() (measure.h) and att_task_register()
 * (task.h). settings: NULL means the defaults; copied. On success *context is the caller's, to be freed with
 * att_context_destroy(). Errors: ERR_MEMORY, ERR_ARGUMENT (threads outside 0..1024); without a context there is no
 * message, the status says it. */
ATT_API ATT_MUST_CHECK att_status att_context_create(const att_settings *settings, att_context **context);
/* Frees the context and sets *context to NULL; NULL and pointers to NULL are allowed. Everything made from it must be
 * freed before. */
ATT_API void att_context_destroy(att_context **context);

/* The sentence that belongs to the last failure, "" where there was none; valid until the next failing call. */
ATT_API const char *att_context_message(const att_context *context);

/* For functions that a program hands to the library (modules, instruments, tasks): att_fail(context, status, format,
 * ...) puts a sentence into the context, formatted as printf does: what failed, where, what was expected. Its value is
 * `status`, as in `return att_fail(context, ATT_ERR_ARGUMENT, "...")`. Thread-safe: of several threads that fail in one
 * call, one sentence survives whole. */
ATT_API void att_fail_say(att_context *context, const char *format, ...) ATT_PRINTF(2, 3);
#define att_fail(context, status, ...) (att_fail_say((context), __VA_ARGS__), (status))

ATT_API int att_context_threads(const att_context *context);
ATT_API att_tier att_context_tier(const att_context *context);
/* "baseline", "avx2", "avx512", "avx512_bf16"; never NULL. */
ATT_API const char *att_tier_name(att_tier tier);
/* Whether matrix products in bf16 are fast here, as ATT_MIXED plans of the backend "cpu" need them: the processor has
 * AVX512_BF16, and tier_cap does not keep it away. */
ATT_API bool att_context_has_bf16(const att_context *context);

/* Bytes that this context's allocator has given out and not got back, at most how many those may be, and how many calls
 * were made to it (for tests that nothing allocates while running). */
typedef struct att_allocation_count {
    size_t bytes_now, bytes_peak, bytes_limit;
    uint64_t calls;
} att_allocation_count;
ATT_API att_allocation_count att_context_allocations(const att_context *context);

#ifdef __cplusplus
}
#endif
#endif
