/* Backends in plugins: what is said if a plugin cannot be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/core/context.h"
#include "engine/backend/backend.h"

static void expect(att_context *context, const char *text)
{
    const att_backend *backend = NULL;
    assert_int_equal(att_backend_choose(context, "cuda", &backend), ATT_ERR_UNSUPPORTED);
    if (!strstr(att_context_message(context), text))
        fail_msg("the message is \"%s\", expected \"%s\"", att_context_message(context), text);
}

static void a_missing_plugin_is_one_sentence(void **state)
{
    (void)state;
    att_context *context;
    assert_int_equal(setenv("ATTSCOPE_PLUGINS", "/nonexistent", 1), 0);
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    expect(context, "the plugin for the backend \"cuda\" is not installed");
    att_context_destroy(&context);
}

/* A file that is no shared object. */
static void a_broken_plugin_is_one_sentence(void **state)
{
    (void)state;
    char folder[] = "/tmp/att_plugins_XXXXXX", path[64];
    att_context *context;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/cuda.so", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no plugin\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(setenv("ATTSCOPE_PLUGINS", folder, 1), 0);
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    expect(context, "cuda.so does not load");
    att_context_destroy(&context);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_missing_plugin_is_one_sentence),
                                       cmocka_unit_test(a_broken_plugin_is_one_sentence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
