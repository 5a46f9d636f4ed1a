/* Backends in plugins: what is said if a plugin cannot be used. */
#include <unistd.h>

#include "base/core/context.h"
#include "engine/backend/backend.h"
#include "test.h"

static void expect(att_context *context, const char *text)
{
    const att_backend *backend = NULL;
    assert_fails(context, att_backend_choose(context, "cuda", &backend), ATT_ERR_UNSUPPORTED, text);
}

TEST(a_missing_plugin_is_one_sentence)
{
    att_context *context;
    assert_int_equal(setenv("ATTSCOPE_PLUGINS", "/nonexistent", 1), 0);
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    expect(context, "the plugin for the backend \"cuda\" is not installed");
    att_context_destroy(&context);
}

/* A file that is no shared object. */
TEST(a_broken_plugin_is_one_sentence)
{
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
