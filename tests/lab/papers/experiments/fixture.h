/* experiments/fixture.h - a context for the tests of experiments, and numbers that tools/goldens/experiments.py draws,
 * too. */
#ifndef TESTS_EXPERIMENTS_FIXTURE_H
#define TESTS_EXPERIMENTS_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <attscope/context.h>

static att_context *context;

#define OK(call)                                                                     \
    do {                                                                             \
        if ((call) != ATT_OK)                                                        \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, att_context_message(context)); \
    } while (0)

static inline int open_context(void **state)
{
    (void)state;
    att_settings settings = att_settings_defaults();
    settings.threads = 2;
    return att_context_create(&settings, &context) == ATT_OK ? 0 : -1;
}

static inline int close_context(void **state)
{
    (void)state;
    att_context_destroy(&context);
    return 0;
}

/* uniform() of tools/goldens/formula.py. */
static inline double uniform(const char *key, uint32_t index)
{
    uint32_t seed = 0x811c9dc5u;
    for (; *key; key++)
        seed = (seed ^ (unsigned char)*key) * 0x01000193u;
    uint32_t z = seed + index * 0x9e3779b9u;
    z = (z ^ (z >> 16)) * 0x85ebca6bu;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return (double)(z ^ (z >> 16)) / 4294967296.0 - 0.5;
}

#endif
