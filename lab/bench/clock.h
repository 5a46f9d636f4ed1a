/* bench/clock.h - time and peak memory. */
#ifndef ATT_BENCH_CLOCK_H
#define ATT_BENCH_CLOCK_H

#include <stdint.h>

#include "base/core/clock.h"
#include "base/core/quantile.h"

/* Peak resident memory of this process (VmHWM); 0 if unknown. */
int64_t att_clock_peak_bytes(void);

#endif
