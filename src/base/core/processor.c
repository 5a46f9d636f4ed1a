#include "base/core/processor.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define TIER(of, name, features) {#name, features},
const att_tier att_tiers[] = {ATT_EACH_TIER(TIER, ){NULL, 0}};

unsigned att_processor_features(void)
{
    unsigned features = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        features |= ATT_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        features |= ATT_AVX512;
    if (__builtin_cpu_supports("avx512bf16"))
        features |= ATT_AVX512_BF16;
#endif
    return features;
}

/* Whether products of bf16 take less time than those of f32. Intel's processors multiply pairs of bf16 faster with AMX
 * only: on a Sapphire Rapids that hides AMX, oneDNN's products reach 180 to 210 GFLOP/s in bf16, 225 to 275 in f32. */
static bool multiplies_bf16_fast(void)
{
#if defined(__x86_64__)
    enum { FEATURES = 7, AMX_BF16 = 22 };
    unsigned a, b, c, d = 0;
    if (__builtin_cpu_is("intel") && __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d))
        return d >> AMX_BF16 & 1;
#endif
    return true;
}

unsigned att_default_features(void)
{
    const char *wanted = getenv("ATTSCOPE_CPU");
    for (const att_tier *tier = att_tiers; wanted && tier->name; tier++)
        if (strcmp(wanted, tier->name) == 0)
            return tier->features;
    return multiplies_bf16_fast() ? ATT_ALL_FEATURES : ATT_ALL_FEATURES & ~ATT_AVX512_BF16;
}

int att_tier_within(unsigned features)
{
    int tier = 0;
    while (att_tiers[tier].features & ~features)
        tier++;
    return tier;
}

const char *att_tier_name(unsigned features)
{
    return att_tiers[att_tier_within(features)].name;
}
