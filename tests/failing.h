/* failing.h - for tests: memory that fails on demand.
 *
 *     lack of = lack_of_memory(context, &memory);
 *     while (lack_again(&of))
 *         of.status = call(context);
 *
 * runs the call with the 1st, 2nd, ... allocation failing, until it succeeds. */
#ifndef TESTS_FAILING_H
#define TESTS_FAILING_H

#include "sanitized.h"
#include "test.h"

typedef struct failing {
    long left;     /* number of allocations that succeed; -1: all */
    bool recovers; /* only one allocation fails; later ones succeed */
} failing;

/* For att_settings; user: a failing. May be called by several threads. */
static inline void *failing_allocate(void *user, void *old, size_t old_size, size_t size)
{
    failing *memory = user;
    if (size == 0) {
        free(old);
        return NULL;
    }
    long left = __atomic_load_n(&memory->left, __ATOMIC_RELAXED);
    while (left > 0 &&
           !__atomic_compare_exchange_n(&memory->left, &left, left - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    if (left == 0) {
        __atomic_store_n(&memory->left, memory->recovers ? -1 : 0, __ATOMIC_RELAXED);
        return NULL;
    }
    void *block = aligned_alloc(64, (size + 63) / 64 * 64);
    if (block && old)
        memcpy(block, old, old_size < size ? old_size : size);
    if (block)
        free(old);
    return block;
}

/* Returns settings of one thread whose memory fails as *memory says. */
static inline att_settings failing_settings(failing *memory)
{
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.allocate = failing_allocate;
    settings.allocate_user = memory;
    memory->left = -1;
    return settings;
}

typedef struct lack {
    att_context *context;
    failing *memory;
    long step;    /* 1: every allocation fails once; larger: some are skipped */
    long allowed; /* number of allocations that succeeded in the last run */
    size_t before;
    att_status status; /* of the last run */
} lack;

static inline lack lack_of_memory(att_context *context, failing *memory)
{
    return (lack){context, memory, 1, -1, att_context_allocations(context).bytes_now, ATT_ERR_MEMORY};
}

/* Returns whether to run again, which is until a run succeeds. Checks the last run: a failure is ERR_MEMORY, and
 * nothing is left allocated. At least one run must fail. */
static inline bool lack_again(lack *of)
{
    of->memory->left = -1;
    assert_int_equal(att_context_allocations(of->context).bytes_now, of->before);
    if (of->status == ATT_OK) {
        assert_true(of->allowed > 0);
        return false;
    }
    if (of->status != ATT_ERR_MEMORY)
        fail_msg("with %ld allocations: %s: %s", of->allowed, att_status_name(of->status),
                 att_context_message(of->context));
    assert_true(of->allowed < 100000);
    /* Sanitizers look for what a failure leaks. After the first failures, every third one shows that, too. */
    const long thinned = is_sanitized() && of->allowed >= 30 ? 3 : 1;
    of->allowed += of->allowed < 0 ? 1 : of->step * thinned;
    of->memory->left = of->allowed;
    return true;
}

#endif
