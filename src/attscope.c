/* attscope.c - the one file that knows the lists: it hands every op and kernel to a new context. */
#include <attscope/context.h>

#include "core/context.h"
#include "graph/registry.h"
#if __has_include("kernels/cpu/list.h")
#include "kernels/cpu/list.h"
#else
#define att_kernels_cpu att_kernels_ref
#define att_cpu_version NULL
#endif
#include "kernels/ref/list.h"
#include "ops/list.h"
#include <stddef.h>

static const att_backend cpu_backend = {
    .name = "cpu", .memory = &att_host_memory, .kernels = att_kernels_cpu, .version = att_cpu_version};
static const att_backend ref_backend = {.name = "ref", .memory = &att_host_memory, .kernels = att_kernels_ref};

static const att_backend *const backends[] = {&cpu_backend, &ref_backend, NULL};

static const att_registry registry = {.ops = att_ops, .backends = backends};

att_status att_context_create(const att_settings *settings, att_context **context)
{
    return att_context_create_with(settings, &registry, context);
}
