/* core/processor.h - the sets of processor features that code is compiled for. */
#ifndef ATT_CORE_PROCESSOR_H
#define ATT_CORE_PROCESSOR_H

#include <attscope/context.h>

#include "base/core/export.h"

/* The tiers of the instruction set: X(of, name, features), the preferred one first. A tier is a set of features, for
 * which the files in folders tier/ are compiled; cmake/targets.cmake has the compiler's flags of each name. The last
 * tier needs no feature. of: passed on to X. ATT_WITHOUT_...: sanitizer builds leave out some tiers. */
#if defined(__x86_64__) && !defined(ATT_WITHOUT_AVX512_BF16)
#define ATT_TIER_AVX512_BF16(X, of) X(of, avx512_bf16, ATT_AVX2 | ATT_AVX512 | ATT_AVX512_BF16)
#else
#define ATT_TIER_AVX512_BF16(X, of)
#endif
#if defined(__x86_64__) && !defined(ATT_WITHOUT_AVX512)
#define ATT_TIER_AVX512(X, of) X(of, avx512, ATT_AVX2 | ATT_AVX512)
#else
#define ATT_TIER_AVX512(X, of)
#endif
#if defined(__x86_64__) && !defined(ATT_WITHOUT_AVX2)
#define ATT_TIER_AVX2(X, of) X(of, avx2, ATT_AVX2)
#else
#define ATT_TIER_AVX2(X, of)
#endif
#define ATT_EACH_TIER(X, of) ATT_TIER_AVX512_BF16(X, of) ATT_TIER_AVX512(X, of) ATT_TIER_AVX2(X, of) X(of, baseline, 0)

#define ATT_TIER_FEATURES_(of, name, features) ATT_FEATURES_##name = (features),
enum { ATT_EACH_TIER(ATT_TIER_FEATURES_, ) };
#undef ATT_TIER_FEATURES_

typedef struct att_tier {
    const char *name;
    unsigned features;
} att_tier;

/* In the order of ATT_EACH_TIER; ends with name NULL. */
extern const att_tier att_tiers[];
/* Index of the context's tier: the first one whose features the processor has and the settings allow. */
int att_context_tier_index(const att_context *context);

/* The features that the processor has. */
unsigned att_processor_features(void);
/* The features that a context uses by default: att_settings_defaults(). */
unsigned att_default_features(void);
/* Index and name of the first tier that needs no other features. */
int att_tier_within(unsigned features);
ATT_FOR_LAB const char *att_tier_name(unsigned features);

#endif
