#include "engine/kernels/cpu/list.h"

#include <stddef.h>

#include "engine/kernels/cpu/tiered.h"

#define ADDRESS(name) &att_cpu_##name,
#define ADDRESS_IN_TIER(name, tier, features) &att_cpu_##name##_##tier,
#define TIERED_ADDRESSES(name) ATT_EACH_TIER(ADDRESS_IN_TIER, name)

const att_kernel *const att_kernels_cpu[] = {ATT_TIER_KERNELS(TIERED_ADDRESSES) ATT_CPU_KERNELS(ADDRESS)
                                                 ATT_CPU_WIDENED_KERNELS(ADDRESS) NULL};

const att_tier_functions *att_cpu_functions(const att_context *context)
{
    static const att_tier_functions *const functions[] = {TIERED_ADDRESSES(functions)};
    return functions[att_context_tier_index(context)];
}
