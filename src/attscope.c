/* attscope.c - creates contexts. Only this file knows the lists of all ops and kernels. */
#include <attscope/context.h>

#include "backend/backend.h"
#include "core/context.h"
#include "graph/registry.h"
#include "kernels/cpu/list.h"
#include "kernels/ref/list.h"
#include "ops/list.h"

#include <stddef.h>

static const char *cpu_version(void)
{
    return att_cpu_version;
}

static const att_backend cpu_backend = {.name = "cpu",
                                        .memory = &att_host_memory,
                                        .kernels = att_kernels_cpu,
                                        .grouping = &att_host_grouping,
                                        .version = cpu_version};
static const att_backend ref_backend = {
    .name = "ref", .memory = &att_host_memory, .kernels = att_kernels_ref, .grouping = &att_host_grouping};

static const att_backend *const backends[] = {&cpu_backend, &ref_backend, NULL};

static const att_registry registry = {.ops = att_ops, .backends = backends};

att_status att_context_create(const att_settings *settings, att_context **context)
{
    return att_context_create_with(settings, &registry, context);
}
