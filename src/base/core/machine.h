/* core/machine.h - measures the memory that is available. */
#ifndef ATT_CORE_MACHINE_H
#define ATT_CORE_MACHINE_H

#include <stddef.h>

/* Returns the bytes that this process can allocate before the system runs out of memory.
 * On Linux, the result is the minimum of: MemAvailable + SwapFree; and, for each memory control group (version 1 or 2)
 * of the process, its limit less its usage, where page cache counts as free. On other systems, the result is the
 * physical memory, or SIZE_MAX if unknown.
 * root: prefix of the paths under /proc and /sys; "" except in tests. */
size_t att_machine_memory(const char *root);

#endif
