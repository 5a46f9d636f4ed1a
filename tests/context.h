/* context.h - for tests: one context for all tests of a program. */
#ifndef TESTS_CONTEXT_H
#define TESTS_CONTEXT_H

#include "test.h"

static att_context *context;

/* Fails with the context's message unless `call` returns ATT_OK. */
#define must(call) CHECK(context, call)

/* Creates the context before the first test, with this value of a field of att_settings. Destroys it after the last. */
#define SHARED_CONTEXT(field, value)                              \
    static int open_context(void **state)                         \
    {                                                             \
        (void)state;                                              \
        att_settings settings = att_settings_defaults();          \
        settings.field = value;                                   \
        return att_context_create(&settings, &context) != ATT_OK; \
    }                                                             \
    TEST_GROUP(open_context, close_context)

static inline int close_context(void **state)
{
    (void)state;
    att_context_destroy(&context);
    return 0;
}

#endif
