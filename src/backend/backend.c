#include "backend/backend.h"

#include <string.h>

#include "core/context.h"
#include "core/memory.h"
#include "graph/registry.h"

const att_backend *att_backend_find(const att_context *context, const char *name)
{
    for (const att_backend *const *backend = att_context_registry(context)->backends; *backend; backend++)
        if (strcmp((*backend)->name, name) == 0)
            return *backend;
    return NULL;
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
    .host = true,
};
