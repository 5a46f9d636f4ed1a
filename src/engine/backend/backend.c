#include "engine/backend/backend.h"

#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "engine/backend/plugin.h"
#include "engine/graph/registry.h"

const att_backend *att_backend_find(const att_context *context, const char *name)
{
    for (const att_backend *const *backend = att_context_registry(context)->backends; *backend; backend++)
        if (strcmp((*backend)->name, name) == 0)
            return *backend;
    return NULL;
}

static const char *backend_name(const void *user, int index)
{
    const att_registry *registry = user;
    return registry->backends[index]->name;
}

att_status att_backend_choose(att_context *context, const char *name, const att_backend **backend)
{
    *backend = att_backend_find(context, name);
    if (*backend)
        return ATT_OK;
    if (strcmp(name, "cuda") == 0)
        return att_backend_load(context, name, backend);
    const att_registry *registry = att_context_registry(context);
    int count = 0;
    while (registry->backends[count])
        count++;
    const char *nearest = att_text_nearest(name, backend_name, registry, count);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no backend \"%s\"%s%s%s", name,
                    nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static void host_release(att_context *context, void *block, size_t bytes)
{
    (void)bytes;
    att_free(context, block);
}

static void host_copy_in(void *block, const void *host, size_t bytes)
{
    memcpy(block, host, bytes);
}

static void host_copy_out(void *host, const void *block, size_t bytes)
{
    memcpy(host, block, bytes);
}

static void host_clear(void *block, size_t bytes)
{
    memset(block, 0, bytes);
}

const att_memory att_host_memory = {
    .allocate = att_allocate,
    .release = host_release,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .clear = host_clear,
    .left = att_memory_left,
    .host = true,
};

/* infer_rows: enough rows of a matrix product to use a core fully while operands stay in its cache. train_rows: enough
 * rows for efficient weight gradients. */
const att_grouping att_host_grouping = {.infer_rows = 256,
                                        .train_rows = 800,
                                        .most = 64,
                                        .arena_bytes = (size_t)96 << 20,
                                        .segment_bytes = (size_t)96 << 20};

int att_backend_threads(const att_backend *backend, const att_context *context)
{
    return backend->grouping->threads ? backend->grouping->threads : att_context_threads(context);
}
