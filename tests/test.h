/* test.h - a test program is a file with TEST()s. main() (test.c) runs all of them, in the order of the file.
 *
 *     TEST(a_sum_is_exact)
 *     {
 *         assert_int_equal(1 + 1, 2);
 *     }
 *
 * Headers of fixtures define further kinds of tests, such as SCRATCH_TEST() (io/scratch.h), from TEST_WITH(). Also
 * includes cmocka, and the headers of the C library that most tests use. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <attscope/context.h>

/* Fails with the context's message unless `call` returns ATT_OK. */
#define CHECK(context, call)                                                                            \
    do {                                                                                                \
        att_status check_status = (call);                                                               \
        if (check_status != ATT_OK)                                                                     \
            fail_msg("%s: %s: %s", #call, att_status_name(check_status), att_context_message(context)); \
    } while (0)

static inline void assert_message(const att_context *context, const char *part)
{
    const char *message = att_context_message(context);
    if (!strstr(message, part))
        fail_msg("the message \"%s\" lacks \"%s\"", message, part);
}

/* `fixture` has a context. */
#define assert_message_has(fixture, part) assert_message((fixture)->context, part)

/* `status` is what a call returned: fails unless it is `expected`, with a message that contains `part`. */
static inline void assert_fails(const att_context *context, att_status status, att_status expected, const char *part)
{
    if (status != expected || !strstr(att_context_message(context), part))
        fail_msg("%s instead of %s with \"%s\": %s", att_status_name(status), att_status_name(expected), part,
                 att_context_message(context));
}

/* Adds a test to those of this program. TEST() and TEST_WITH() call it before main(). */
void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup, CMFixtureFunction teardown);

/* Sets what runs before the first test and after the last one. TEST_GROUP() calls it before main(). */
void test_group(CMFixtureFunction setup, CMFixtureFunction teardown);

/* Runs all tests. `group` is the name for messages. Returns the number of failures. A program whose tests need more
 * than this defines its own main(), which replaces that of test.c. */
int test_run(const char *group);

/* Calls `function` before main(), functions of earlier lines first. */
#define TEST_BEFORE_MAIN(function) __attribute__((constructor(101 + __LINE__))) static void function(void)

#define TEST(name)                                     \
    static void name(void);                            \
    static void name##_in_cmocka(void **s)             \
    {                                                  \
        (void)s;                                       \
        name();                                        \
    }                                                  \
    TEST_BEFORE_MAIN(name##_add)                       \
    {                                                  \
        test_add(#name, name##_in_cmocka, NULL, NULL); \
    }                                                  \
    static void name(void)

/* A test with `parameter`, a pointer to what setup() stores in *state and teardown() removes. */
#define TEST_WITH(name, parameter, setup, teardown)         \
    static void name(parameter);                            \
    static void name##_in_cmocka(void **s)                  \
    {                                                       \
        name(*s);                                           \
    }                                                       \
    TEST_BEFORE_MAIN(name##_add)                            \
    {                                                       \
        test_add(#name, name##_in_cmocka, setup, teardown); \
    }                                                       \
    static void name(parameter __attribute__((unused)))

/* setup() runs before the first test of the program, teardown() after the last one. */
#define TEST_GROUP(setup, teardown)  \
    TEST_BEFORE_MAIN(test_add_group) \
    {                                \
        test_group(setup, teardown); \
    }

#endif
