#include "engine/kernels/cpu/list.h"

#include <stddef.h>
#include <string.h>

#include "engine/kernels/cpu/tiered.h"

#define ADDRESS(name) &att_cpu_##name,
#define TIERED_ADDRESSES(name) ATT_EACH_TIER(ADDRESS, name)

const att_kernel *const att_kernels_cpu[] = {ATT_TIER_KERNELS(TIERED_ADDRESSES) ATT_CPU_KERNELS(ADDRESS)
                                                 ATT_CPU_WIDENED_KERNELS(ADDRESS) NULL};

const att_kernel *att_cpu_kernel_for(const att_problem *problem)
{
    for (const att_kernel *const *kernel = att_kernels_cpu; *kernel; kernel++)
        if (strcmp((*kernel)->op, problem->op) == 0 && (*kernel)->tier <= att_context_tier(problem->context) &&
            (!(*kernel)->accepts || (*kernel)->accepts(problem)))
            return *kernel;
    return NULL;
}

const att_tier_functions *att_cpu_functions(const att_context *context)
{
#if defined(__x86_64__)
    if (att_context_tier(context) >= ATT_TIER_AVX512_BF16)
        return &att_cpu_functions_avx512_bf16;
    if (att_context_tier(context) >= ATT_TIER_AVX512)
        return &att_cpu_functions_avx512;
    if (att_context_tier(context) >= ATT_TIER_AVX2)
        return &att_cpu_functions_avx2;
#endif
    (void)context;
    return &att_cpu_functions_baseline;
}
