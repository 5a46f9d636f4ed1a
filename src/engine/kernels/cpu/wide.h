/* kernels/cpu/wide.h - kernels for graphs in f64, compiled once per processor tier as those of tiered.h. They are for
 * the products that take nearly all of a transformer's time; the backend "f64" takes the reference kernels for all
 * else. */
#ifndef ATT_KERNELS_CPU_WIDE_H
#define ATT_KERNELS_CPU_WIDE_H

#include "engine/kernels/cpu/tiered.h"

/* X(name) */
#define ATT_WIDE_KERNELS(X) X(linear_wide) X(attention_wide)

#define ATT_WIDE_DECLARE_(name, tier, features) extern const att_kernel att_cpu_##name##_##tier;
#define ATT_WIDE_DECLARE(name) ATT_EACH_TIER(ATT_WIDE_DECLARE_, name)
ATT_WIDE_KERNELS(ATT_WIDE_DECLARE)
#undef ATT_WIDE_DECLARE
#undef ATT_WIDE_DECLARE_

#endif
