/* core/machine.h - what the machine has to offer. */
#ifndef ATT_CORE_MACHINE_H
#define ATT_CORE_MACHINE_H

#include <stddef.h>

/* Bytes that this process could take now before the system had to end some process: the least of what Linux calls
 * available (with the free swap) and of what each memory control group that the process is in (version 1 or 2) has
 * left, its cached files counted as free. Elsewhere the machine's memory; SIZE_MAX where that is unknown, too.
 * root: "", or a folder that stands for "/". */
size_t att_machine_memory(const char *root);

#endif
