/* Creates contexts. Only this file knows the lists of all ops and kernels. */
#include <attscope/context.h>

#include "base/core/context.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/wide.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/list.h"

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

/* The backend of graphs in f64: fast kernels for the products and LAPACK for singular values; reference kernels, which
 * compute in f64, for all else. */
#define ADDRESS(name) &att_cpu_##name,
#define ADDRESS_IN_TIER(name, tier, features) &att_cpu_##name##_##tier,
#define WIDE_ADDRESSES(name) ATT_EACH_TIER(ADDRESS_IN_TIER, name)
#define REF_ADDRESS(name) &att_ref_##name,
static const att_kernel *const wide_kernels[] = {ATT_WIDE_KERNELS(WIDE_ADDRESSES) ADDRESS(singular_values)
                                                     ATT_OP_LIST(REF_ADDRESS) NULL};
static const att_backend wide_backend = {
    .name = "f64", .memory = &att_host_memory, .kernels = wide_kernels, .grouping = &att_host_grouping};

static const att_backend *const backends[] = {&cpu_backend, &ref_backend, &wide_backend, NULL};

static const att_registry registry = {.ops = att_ops, .backends = backends};

att_status att_context_create(const att_settings *settings, att_context **context)
{
    return att_context_create_with(settings, &registry, context);
}
